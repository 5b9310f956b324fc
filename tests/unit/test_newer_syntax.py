"""If code uses syntax or modules from a newer Python version, the error names that version, instead of reporting a
mistake in the code.
"""

import sys

import pytest

from evaluator_host.engine.service.advice import advised
from evaluator_host.types.evaluator import Contract, Evaluator
from evaluator_host.types.outcome import ErrorCode, EvaluationError

NEWER = {
    "type Score = float": 12,
    "type Pair[T] = tuple[T, T]": 12,
    "def first[T](items: list[T]) -> T: return items[0]": 12,
    "async def first[T](items): pass": 12,
    "class Box[T]: pass": 12,
    "def first[T = int](items): pass": 13,
    "class Box[T = int]: pass": 13,
    "f\"{row[\"a\"]}\"": 12,
    "x = rf'{row['a']}'": 12,
    "f\"{'\\n'.join(lines)}\"": 12,
    "f'''{\n    1  # one\n}'''": 12,
    "x = t'{name}'": 14,
    "try: pass\nexcept ValueError, KeyError: pass": 14,
    "lazy import json": 15,
}  # fmt: skip
MISTAKES = ("type = = 1", "def f(x: pass", "f'{a[}'", "x = 'it's'", "class A(: pass", "type X", "text 'a'", "print 'x'")


def hint(code: str, python: str | None = None) -> str:
    with pytest.raises(SyntaxError) as raised:
        compile(code, "evaluator.py", "exec")
    error = EvaluationError(ErrorCode.SYNTAX_ERROR, str(raised.value.msg), line=raised.value.lineno)
    return advised(error, Evaluator(code, python=python), Contract.AUTO).hint or ""


@pytest.mark.parametrize(("code", "minor"), NEWER.items())
def test_newer_syntax_names_its_version(code: str, minor: int) -> None:
    if sys.version_info < (3, minor):
        assert f"Python 3.{minor} syntax: set `python` to 3.{minor}" in hint(code)
        assert " syntax: set `python`" not in hint(code, python=f"3.{minor}")
    else:
        compile(code, "evaluator.py", "exec")


@pytest.mark.parametrize("code", MISTAKES)
def test_a_mistake_is_not_taken_for_it(code: str) -> None:
    assert " syntax: set `python`" not in hint(code)


@pytest.mark.parametrize(("python", "said"), [("3.11", True), ("3.13", True), ("3.14", False)])
def test_a_module_of_a_newer_library_names_its_version(python: str, said: bool) -> None:
    code = "import concurrent.interpreters"
    message = "No module named 'concurrent.interpreters'"
    error = EvaluationError(ErrorCode.LOAD_ERROR, message, type="ModuleNotFoundError", hint="pin it")
    found = advised(error, Evaluator(code, python=python), Contract.AUTO).hint or ""
    assert ("concurrent.interpreters is a module of Python 3.14: set `python` to 3.14" in found) is said
