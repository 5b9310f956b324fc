"""No rewrite changes a score silently: a random program returns the same value after the rewrite, or is refused."""

import ast
import copy
import re
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from evaluator_host.migrate.draft import Wish
from evaluator_host.migrate.python.rewrite import rewrite
from evaluator_host.migrate.syntax import Unreadable
from tests.fuzz.bounds import bounded
from tests.migration.programs import KEY, programs

VALUES = st.sampled_from(["Paris", " paris", "", None, 3, 0.5, ["Paris", "x"], {"x": 1, "outputs": "Paris"}, True])


@bounded(400)
@given(
    programs(), VALUES, VALUES, st.dictionaries(st.sampled_from(["x", "data", "inputs", "output"]), VALUES, max_size=2)
)
def test_rewritten_code_returns_the_same(code: str, output: Any, truth: Any, columns: dict[str, Any]) -> None:
    try:
        ast.parse(code)
    except SyntaxError:
        return
    try:
        rewritten = rewrite(code, Wish())
    except Unreadable:
        event("refused")
        return
    assert rewritten.code is not None
    inputs = {**columns, KEY: truth}
    old = outcome(code, ({}, inputs, output, truth))
    assert outcome(rewritten.code, (inputs, output, None)) == old, f"{code}\n{rewritten.code}"
    event("failed" if old is None else "returned")


def outcome(code: str, arguments: tuple[Any, ...]) -> Any:
    """Return the value that a generated program returns, in a form that can be compared; None if the program raises an
    error.

    A string that contains a number counts as that number, as in the legacy contract, and 0 as 0.0.
    """
    namespace: dict[str, Any] = {}
    try:
        exec(compile(code, "evaluator", "exec"), namespace)
        value = namespace["evaluate"](*copy.deepcopy(arguments))
        number = isinstance(value, str | int) and not isinstance(value, bool)
        return re.sub("0x[0-9a-f]+", "", repr(float(value) if number else value))
    except Exception:  # noqa: BLE001 - a program that raises any error has no score
        return None
