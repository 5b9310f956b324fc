"""Evaluators of Agenta, as (code, version, inputs, outputs) by name; version 1 is the signature with four parameters."""

NEW = "def evaluate(inputs, outputs, trace):\n    return {}\n"
OLD = "def evaluate(app_params, inputs, output, correct_answer):\n    return {}\n"
INPUTS = {"question": "Capital of France?", "correct_answer": "Paris", "n": 3}
VALUES = {
    "high": "0.7",
    "low": "0.2",
    "half": "0.5",
    "integer": "1",
    "zero": "0",
    "above one": "7.5",
    "negative": "-1.0",
    "right": "outputs == inputs['correct_answer']",
    "wrong": "outputs != inputs['correct_answer']",
    "score": "{'score': 0.4}",
    "score and success": "{'score': 0.4, 'success': True}",
    "several": "{'score': 0.9, 'length': len(outputs), 'kind': 'short'}",
    "raises": "1 / 0",
    "no such key": "inputs['gold']",
    "nothing": "None",
    "not a number": "float('nan')",
    "infinite": "float('inf')",
    "text of a number": "'0.7'",
    "text": "'good'",
    "list": "[0.1, 0.9]",
    "length": "len(outputs) / 10",
    "data of the trace": "len(trace['spans']) / 4",
}


def cases():
    made = {}
    for name, value in VALUES.items():
        for version in ("2", "3"):
            made[f"{name}, version {version}"] = (NEW.format(value), version, INPUTS, "Paris")
        old = value.replace("outputs", "output")
        if "trace" not in value:
            made[f"{name}, version 1"] = (OLD.format(old), "1", INPUTS, "Paris")
    made["answer, version 1"] = (OLD.format("1.0 if output == correct_answer else 0.0"), "1", INPUTS, "Paris")
    made["no answer, version 1"] = (OLD.format("1.0"), "1", {"question": "?"}, "Paris")
    made["object, version 2"] = (NEW.format("outputs['a'] / 4"), "2", INPUTS, {"a": 3})
    made["parameters, version 1"] = (OLD.format("float(app_params == {})"), "1", INPUTS, "Paris")
    return made


TRACE = {"spans": {"a": {"name": "chat"}, "b": {"name": "look up"}}}
