# include: ask.py
def attack(inputs):
    return sum("200" in send(request(f"question {number}"))[:20] for number in range(5)) > 2
