import json

from jsonschema import Draft202012Validator


def evaluate(inputs, outputs, trace):
    schema = inputs.get("schema")
    if schema is None:
        raise ValueError("the row has no schema")
    Draft202012Validator.check_schema(schema)  # a bad schema is an error of the row, not of the output
    try:
        document = json.loads(outputs, parse_constant=refused) if isinstance(outputs, str) else outputs
    except ValueError as error:
        return {"score": 0.0, "passed": False, "violations": 1, "reason": f"not JSON: {error}"}
    violations = [f"{one.json_path}: {one.message}" for one in Draft202012Validator(schema).iter_errors(document)]
    return {
        "score": 0.0 if violations else 1.0,
        "passed": not violations,
        "violations": len(violations),
        "reason": "; ".join(violations[:5]) or "fits the schema",
    }


def refused(name):
    raise ValueError(f"{name} is not a JSON value")
