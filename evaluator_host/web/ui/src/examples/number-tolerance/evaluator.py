import re


def evaluate(inputs, outputs, trace):
    if "correct_answer" not in inputs:
        raise ValueError("the row has no correct_answer to compare with")
    try:
        expected = float(inputs["correct_answer"])
    except (TypeError, ValueError):
        raise ValueError("correct_answer is not a number")
    found = re.search(r"-?\d[\d,]*(\.\d+)?", str(outputs if outputs is not None else ""))
    if found is None:
        return {"score": 0, "reason": "no number in the output"}
    value = float(found[0].replace(",", ""))
    tolerance = float(inputs.get("tolerance", 0.01)) * max(abs(expected), 1e-9)
    return {"score": float(abs(value - expected) <= tolerance), "value": value, "reason": f"{value} against {expected}"}
