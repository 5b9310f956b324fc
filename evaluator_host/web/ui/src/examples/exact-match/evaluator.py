def evaluate(inputs, outputs, trace):
    if "correct_answer" not in inputs:
        raise ValueError("the row has no correct_answer to compare with")
    expected = inputs["correct_answer"]
    # In Python True equals 1; in JSON it does not.
    same_kind = isinstance(outputs, bool) == isinstance(expected, bool)
    return same_kind and outputs == expected
