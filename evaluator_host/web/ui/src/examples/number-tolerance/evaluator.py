import math
import re

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


def number(value, name):
    text = "" if isinstance(value, bool) else str(value).strip()
    found = float(text) if re.fullmatch(NUMBER, text) else math.nan
    if not math.isfinite(found):
        raise ValueError(f"{name} is not a number")
    return found


def evaluate(inputs, outputs, trace):
    if "correct_answer" not in inputs:
        raise ValueError("the row has no correct_answer to compare with")
    expected = number(inputs["correct_answer"], "correct_answer")
    found = re.search(r"-?[0-9][0-9,]*(\.[0-9]+)?([eE][+-]?[0-9]+)?", str(outputs if outputs is not None else ""))
    if found is None:
        return {"score": 0, "reason": "no number in the output"}
    value = float(found[0].replace(",", ""))
    tolerance = number(inputs.get("tolerance", 0.01), "tolerance") * max(abs(expected), 1e-9)
    return {"score": float(abs(value - expected) <= tolerance), "value": value, "reason": f"{value} against {expected}"}
