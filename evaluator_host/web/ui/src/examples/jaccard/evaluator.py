import re


def evaluate(inputs, outputs, trace):
    expected = words(inputs.get("correct_answer"))
    if not expected:
        raise ValueError("the row has no correct_answer to compare with")
    found = words(outputs)
    return {
        "score": len(found & expected) / len(found | expected),
        "missing": len(expected - found),
        "added": len(found - expected),
        "reason": f"missing: {', '.join(sorted(expected - found)) or 'nothing'}",
    }


def words(value):
    return set(re.findall(r"\w+", str("" if value is None else value).lower()))
