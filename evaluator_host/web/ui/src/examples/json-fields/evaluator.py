import json


def evaluate(inputs, outputs, trace):
    wanted = inputs.get("expected_fields")
    if not isinstance(wanted, dict):
        raise ValueError("the row has no expected_fields to compare with")
    try:
        found = json.loads(outputs) if isinstance(outputs, str) else outputs
    except ValueError:
        return {"score": 0, "reason": "the output is not JSON"}
    found = found if isinstance(found, dict) else {}
    wrong = [name for name, value in wanted.items() if name not in found or json.dumps(found[name]) != json.dumps(value)]
    score = 1 - len(wrong) / len(wanted) if wanted else 1
    return {"score": score, "reason": f"wrong: {', '.join(wrong)}" if wrong else "every field is right"}
