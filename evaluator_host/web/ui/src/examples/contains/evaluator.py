def evaluate(inputs, outputs, trace):
    if "correct_answer" not in inputs:
        raise ValueError("the row has no correct_answer to look for")
    expected = str(inputs["correct_answer"]).lower()
    found = expected in str(outputs if outputs is not None else "").lower()
    return {"score": float(found), "passed": found, "reason": f"{expected!r} is {'' if found else 'not '}in the output"}
