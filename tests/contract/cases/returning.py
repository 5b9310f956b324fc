"""Turns returned values into cases: for each contract and language, one evaluator returns all of the values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import indent
from typing import Any

from evaluator_host.types.evaluator import Contract, Language
from tests.contract.cases.case import Case, Expected, failed, scored

EVALUATE, V1, MAIN = Contract.EVALUATE, Contract.EVALUATE_V1, Contract.MAIN
BARE = frozenset(("bare_score",))  # values that are not tried with `main`, for which only objects are documented

_PYTHON = {
    EVALUATE: "def evaluate(inputs, outputs, trace):\n    return VALUES[outputs]()\n",
    V1: "def evaluate(app_params, inputs, output, correct_answer):\n    return VALUES[output]()\n",
    MAIN: "def main(completion):\n    return VALUES[completion]()\n",
}
_JAVASCRIPT = {
    EVALUATE: "function evaluate(inputs, outputs, trace) { return VALUES[outputs](); }\n",
    V1: "function evaluate(appParams, inputs, output, correctAnswer) { return VALUES[output](); }\n",
    MAIN: "function main(variables) { return VALUES[variables.completion](); }\n",
}
_TYPESCRIPT = (
    "function evaluate(inputs: Record<string, any>, outputs: string, trace: any): any { return VALUES[outputs](); }\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """Code that returns one value, and the expected result for each contract; by default, `v1` and `main` give the same
    as `evaluate`.
    """

    name: str
    py: str | None = None
    js: str | None = None
    evaluate: Expected
    v1: Expected | None = None
    main: Expected | None = None
    typed: bool = False
    threshold: float | None = None


def number(name: str, py: str | None, js: str | None, score: Any, **more: Any) -> Returning:
    typed, threshold = more.pop("typed", False), more.pop("threshold", None)
    expected = scored(score, **more)
    return Returning(
        name=name,
        py=py,
        js=js,
        evaluate=expected,
        main=replace(expected, warnings=expected.warnings | BARE),
        typed=typed,
        threshold=threshold,
    )


def refused(
    name: str, py: str | None, js: str | None, message: str = "", *, error: str = "invalid_result"
) -> Returning:
    return Returning(name=name, py=py, js=js, evaluate=failed(error, message))


def cases_of(rows: Sequence[Returning]) -> list[Case]:
    """Return a case for each value, contract and language; all cases of a contract and language share an evaluator."""
    cases = []
    for contract in (EVALUATE, V1, MAIN):
        program = _python_values(rows) + _PYTHON[contract]
        cases += [_case("py", Language.PYTHON, program, row, contract) for row in rows if row.py is not None]
        program = _javascript_values(rows) + _JAVASCRIPT[contract]
        cases += [_case("js", Language.JAVASCRIPT, program, row, contract) for row in rows if row.js is not None]
    typed = [row for row in rows if row.typed and row.js is not None]
    program = _javascript_values(typed).replace("= {", ": Record<string, () => any> = {", 1) + _TYPESCRIPT
    return cases + [_case("ts", Language.TYPESCRIPT, program, row, EVALUATE) for row in typed]


def _python_values(rows: Sequence[Returning]) -> str:
    """Return the source of a Python dict that has, under each value's name, a function that returns the value."""
    functions = [(row.name, f"returns_{number}", row.py) for number, row in enumerate(rows) if row.py is not None]
    made = [f"def {function}():\n{indent(body, '    ')}\n" for _, function, body in functions]
    return "\n".join([*made, "VALUES = {", *(f"    {name!r}: {function}," for name, function, _ in functions), "}\n"])


def _javascript_values(rows: Sequence[Returning]) -> str:
    made = [f"  '{row.name}': () => {{\n{indent(row.js, '    ')}\n  }}," for row in rows if row.js is not None]
    return "\n".join(["const VALUES = {", *made, "};\n"])


def _case(short: str, language: Language, code: str, row: Returning, contract: Contract) -> Case:
    expected = {EVALUATE: row.evaluate, V1: row.v1 or row.evaluate, MAIN: row.main or row.evaluate}[contract]
    return Case(
        id=f"return-{short}-{contract}-{row.name}",
        language=language,
        code=code,
        expected=replace(expected, contract=contract.value),
        inputs={"correct_answer": "x"},
        outputs=row.name,
        threshold=row.threshold,
    )
