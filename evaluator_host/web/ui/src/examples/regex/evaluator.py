import re


def evaluate(inputs, outputs, trace):
    pattern = inputs.get("pattern")
    if not pattern:
        raise ValueError("the row has no pattern")
    match = re.search(pattern, "" if outputs is None else str(outputs))
    return {"score": float(bool(match)), "passed": bool(match), "reason": f"found {match[0]!r}" if match else "no match"}
