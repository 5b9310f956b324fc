async def correct(completion, answer) -> float:
    return 1.0 if completion[-1]["content"] == answer else 0.0
