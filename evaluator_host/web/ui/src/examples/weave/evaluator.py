import weave


@weave.op()
def exact(expected: str, output: str) -> dict:
    return {"score": float(output == expected)}
