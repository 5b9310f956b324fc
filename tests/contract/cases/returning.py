"""Turns a value that code returns into cases: one evaluator for each contract and language."""

from dataclasses import dataclass, replace
from textwrap import indent
from typing import Any

from evaluator_host.model.evaluator import Contract, Language
from tests.contract.cases.case import Case, Expected, failed, scored

EVALUATE, V1, MAIN = Contract.EVALUATE, Contract.EVALUATE_V1, Contract.MAIN
BARE = frozenset(("bare_score",))  # under `main`, where an object is documented

_PYTHON = {
    EVALUATE: "def evaluate(inputs, outputs, trace):\n{body}\n",
    V1: "def evaluate(app_params, inputs, output, correct_answer):\n{body}\n",
    MAIN: "def main(completion):\n{body}\n",
}
_JAVASCRIPT = {
    EVALUATE: "function evaluate(inputs, outputs, trace) {{\n{body}\n}}\n",
    V1: "function evaluate(appParams, inputs, output, correctAnswer) {{\n{body}\n}}\n",
    MAIN: "function main(variables) {{\n{body}\n}}\n",
}
_TYPESCRIPT = "function evaluate(inputs: Record<string, any>, outputs: any, trace: any): any {{\n{body}\n}}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """Code that returns one value, and what it becomes; `v1` and `main` are as `evaluate` unless given."""

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


def cases_of(row: Returning) -> list[Case]:
    cases = []
    for contract, expected in (
        (EVALUATE, row.evaluate),
        (V1, row.v1 or row.evaluate),
        (MAIN, row.main or row.evaluate),
    ):
        made = replace(expected, contract=contract.value)
        core = contract is EVALUATE or expected is not row.evaluate
        if row.py is not None:
            code = _PYTHON[contract].format(body=indent(row.py, "    "))
            cases.append(_case(f"py-{contract}-{row.name}", Language.PYTHON, code, made, row, core=core))
        if row.js is not None:
            code = _JAVASCRIPT[contract].format(body=indent(row.js, "  "))
            cases.append(_case(f"js-{contract}-{row.name}", Language.JAVASCRIPT, code, made, row, core=core))
    if row.typed and row.js is not None:
        code = _TYPESCRIPT.format(body=indent(row.js, "  "))
        made = replace(row.evaluate, contract=EVALUATE.value)
        cases.append(_case(f"ts-{EVALUATE}-{row.name}", Language.TYPESCRIPT, code, made, row))
    return cases


def _case(
    case_id: str, language: Language, code: str, expected: Expected, row: Returning, *, core: bool = True
) -> Case:
    return Case(
        id=f"return-{case_id}",
        language=language,
        code=code,
        expected=expected,
        inputs={"correct_answer": "x"},
        outputs="x",
        threshold=row.threshold,
        core=core,
    )
