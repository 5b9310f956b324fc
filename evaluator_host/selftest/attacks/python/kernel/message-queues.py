# include: calls.py

def attack(inputs):
    answer = call(240, 180, inputs["mark"].encode(), 0o102, 0o600, 0)
    if isinstance(answer, int):
        call(241, 181, inputs["mark"].encode())
    return allowed(answer)
