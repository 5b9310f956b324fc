def attack(inputs):
    with open("large", "wb") as file:
        for _ in range(40):
            file.write(b"x" * (1 << 20))
    return "40 MB in one file"
