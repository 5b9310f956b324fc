"""The runner reports keys of `app_params` that legacy code reads but does not get."""

from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess, body

CODE = """
def evaluate(app_params, inputs, output, correct_answer):
    try:
        return eval(output, {"app_params": app_params, "inputs": inputs})
    except KeyError:
        return -1
"""


@pytest.mark.parametrize("share", [None, "a"])
def test_keys_that_are_read_in_vain(runner: RunnerProcess, share: str | None) -> None:
    assert runner.load(CODE).header["contract"] == "evaluate-v1"
    for expression, value, unset in (
        ("app_params['a']", 1, []),
        ("app_params.get('a')", 1, []),
        ("app_params.get('b', 7)", 7, ["b"]),
        ("app_params['b']", -1, ["b"]),
        ("1 if 'b' in app_params else 0", 0, ["b"]),
        ("app_params.pop('b', 3)", 3, ["b"]),
        ("app_params.setdefault('b', 4)", 4, ["b"]),
        ("app_params.get('b', 1) + app_params.get('c', 1) + app_params.get('b', 1)", 3, ["b", "c"]),
        ("len(app_params) + len({**app_params}) + isinstance(app_params, dict)", 3, []),
        ("len(__import__('json').dumps(app_params))", 8, []),
        ("sum(app_params.get(str(i), 1) for i in range(500))", 500, [str(i) for i in range(20)]),
        ("inputs.get('b', 2)", 2, []),
    ):
        found: dict[str, Any] = body(runner.call({"a": 1}, {}, expression, None, share=share))
        assert (found["value"], found.get("unset_params", [])) == (value, unset), expression


def test_a_key_that_fails_the_row(runner: RunnerProcess) -> None:
    runner.load("def evaluate(app_params, inputs, output, correct_answer):\n    return app_params['b']\n")
    answer = runner.call({"a": 1}, {}, "", None)
    assert (answer.type, body(answer)["unset_params"]) == ("failed", ["b"])
