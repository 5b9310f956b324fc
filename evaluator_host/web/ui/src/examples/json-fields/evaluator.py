import json


def evaluate(inputs, outputs, trace):
    wanted = inputs.get("expected_fields")
    if not isinstance(wanted, dict):
        raise ValueError("the row has no expected_fields to compare with")
    try:
        found = json.loads(outputs, parse_constant=refused) if isinstance(outputs, str) else outputs
    except ValueError:
        return {"score": 0, "reason": "the output is not JSON"}
    found = found if isinstance(found, dict) else {}
    wrong = [name for name, value in wanted.items() if name not in found or not same(found[name], value)]
    score = 1 - len(wrong) / len(wanted) if wanted else 1
    return {"score": score, "reason": f"wrong: {', '.join(wrong)}" if wrong else "every field is right"}


def same(found, wanted):
    """Return whether two JSON values are equal; the order of keys does not count, and 1 is not true."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(one, wanted[name]) for name, one in found.items())
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return found == wanted


def refused(name):
    raise ValueError(f"{name} is not a JSON value")
