import re


def evaluate(inputs, outputs, trace):
    expected = words(inputs.get("correct_answer"))
    if not expected:
        raise ValueError("the row has no correct_answer to compare with")
    found = words(outputs)
    common = longest_common(found, expected)
    precision = common / len(found) if found else 0.0
    recall = common / len(expected)
    f1 = 2 * precision * recall / (precision + recall) if common else 0.0
    return {"score": f1, "precision": precision, "recall": recall, "common_words": common}


def words(value):
    return re.findall(r"\w+", str("" if value is None else value).lower())


def longest_common(one, other):
    """Return the length of the longest common subsequence, keeping one row of the table at a time."""
    above = [0] * (len(other) + 1)
    for word in one:
        here = [0]
        for column, wanted in enumerate(other):
            here.append(above[column] + 1 if word == wanted else max(above[column + 1], here[column]))
        above = here
    return above[-1]
