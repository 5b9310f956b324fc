"""Dialect `judge`: the user fills in a form, the host generates code from it, and a model judges the rows."""

import json
from typing import Final

from evaluator_host.engine.contracts import trace_tree
from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored, contradiction
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Kind, Returned


def judge_code(form: dict[str, Json]) -> str:
    """Return the code of a judge, made from its form; `form` has the fields of `JudgeIn`, as JSON."""
    text = json.dumps(form, ensure_ascii=False, sort_keys=True)
    return f"import json\n\nFORM = json.loads({text!r})\n"


def bind(row: Row, settings: EvaluatorSettings) -> Binding:
    """Return the row's inputs, outputs and trace, and the model's answers so far, as arguments."""
    trace, notes = trace_tree.convert(row.trace)
    body: dict[str, Json] = {"args": [row.inputs, row.outputs, trace]}
    return Binding({**body, "answers": row.answers} if row.answers else body, notes)


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read score, label and reason from the returned value, or why the model did not answer."""
    value = returned.value
    if returned.kind is not Kind.OBJECT or not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return contradiction()
    if isinstance(value.get("unanswered"), str):
        return EvaluationError(ErrorCode.TARGET_FAILED, value["unanswered"])
    score = value.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float):
        return contradiction()
    return Scored(score, None, {value["name"]: score}, label=value.get("label"), reason=value.get("reason"))


DIALECT: Final = Dialect(
    contract=Contract.JUDGE,
    bind=bind,
    interpret=interpret,
    positions=("inputs", "outputs", "trace"),
    languages=PYTHON_ONLY,
    asks_models=True,
    sdk=Sdk(
        module="evaluator_judge",
        stand_in=StandIn("dialects/judge/modules", preimport="evaluator_judge"),
        real=frozenset(),
        lock="dialects/judge/requirements.lock",
        needed=frozenset({"jinja2"}),
    ),
)
