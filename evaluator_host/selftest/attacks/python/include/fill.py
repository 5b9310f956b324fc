def fill(folder, chunks):
    block = b"x" * (1 << 20)
    for number in range(chunks):
        with open(f"{folder}/{number}", "wb") as file:
            file.write(block)
    return f"{chunks} MB written to {folder}"
