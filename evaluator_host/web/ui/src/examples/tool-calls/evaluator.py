import json
from collections import Counter


def evaluate(inputs, outputs, trace):
    if "expected_tool_calls" not in inputs:
        raise ValueError("the row has no expected_tool_calls")
    expected = Counter(map(as_text, inputs["expected_tool_calls"]))
    calls = outputs.get("tool_calls") if isinstance(outputs, dict) else outputs
    made = Counter(map(as_text, calls if isinstance(calls, list) else []))
    total = expected.total() + made.total()
    right = (expected & made).total()
    missing, added = expected - made, made - expected
    return {
        "score": 2 * right / total if total else 1.0,  # no calls were expected, and none were made
        "passed": not missing and not added,
        "missing": missing.total(),
        "added": added.total(),
        "reason": f"missing: {', '.join(missing) or 'nothing'}; added: {', '.join(added) or 'nothing'}",
    }


def as_text(call):
    """Return a call as text. Equal calls give the same text, whether they are flat or nested."""
    if not isinstance(call, dict):
        return f"not a call: {json.dumps(call)}"
    call = call.get("function", call)
    arguments = call.get("arguments", {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except json.JSONDecodeError:
            pass  # compared as text
    return f"{call.get('name')}({json.dumps(arguments, sort_keys=True, ensure_ascii=False)})"
