def evaluate(inputs, outputs, trace):
    if inputs.get("correct_answer") is None:
        raise ValueError("the row has no correct_answer to compare with")
    found, expected = "" if outputs is None else str(outputs), str(inputs["correct_answer"])
    edits = distance(found, expected)
    longest = max(len(found), len(expected))
    return {"score": 1.0 - edits / longest if longest else 1.0, "edits": edits}


def distance(one, other):
    """Count insertions, deletions and replacements, keeping one row of the table at a time."""
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        here = [row]
        for column, wanted in enumerate(other, start=1):
            here.append(min(above[column] + 1, here[column - 1] + 1, above[column - 1] + (letter != wanted)))
        above = here
    return above[-1]
