import json


def evaluate(inputs, outputs, trace):
    if "correct_answer" not in inputs:
        raise ValueError("the row has no correct_answer to compare with")
    try:
        found, expected = parsed(outputs), parsed(inputs["correct_answer"])
    except ValueError as error:
        return {"score": 0.0, "passed": False, "reason": f"not JSON: {error}"}
    place = first_difference(found, expected, "$")
    if place is None:
        return {"score": 1.0, "passed": True, "reason": "equal"}
    return {"score": 0.0, "passed": False, "reason": f"differs at {place}"}


def parsed(value):
    return json.loads(value, parse_constant=refused) if isinstance(value, str) else value


def refused(name):
    raise ValueError(f"{name} is not a JSON value")


def first_difference(found, expected, path):
    """Return the path of the first difference, None when there is none."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in sorted(found.keys() | expected.keys()):
            if key not in found or key not in expected:
                return f"{path}.{key}"
            place = first_difference(found[key], expected[key], f"{path}.{key}")
            if place:
                return place
        return None
    if isinstance(found, list) and isinstance(expected, list):
        for index, (one, other) in enumerate(zip(found, expected)):
            place = first_difference(one, other, f"{path}[{index}]")
            if place:
                return place
        return None if len(found) == len(expected) else f"{path}[{min(len(found), len(expected))}]"
    # In Python True equals 1; in JSON it does not.
    same_kind = isinstance(found, bool) == isinstance(expected, bool)
    return None if same_kind and found == expected else path
