"""Arguments and results of HoneyHive's evaluators (dialect `honeyhive`), which get outputs and inputs, or one event.

The runner sends `{"eval_name": name, "value": returned}`. Source of the rules: honeyhive 1.7.0, experiments/core.py.
"""

from typing import Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored, contradiction
from evaluator_host.engine.contracts.native import NamedScore, bind_native, scored, unreadable, without_truth
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Note, Returned

_EMPTY: Final[dict[str, Json]] = {"score": None, "explanation": None, "extras": {}}


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return HoneyHive's row: outputs, inputs, and the ground truth if the row has one."""
    return bind_native(row, settings, _row, needs="outputs")


def _row(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    return {"inputs": inputs, "outputs": row.outputs, "ground_truth": truth}


def interpret(
    returned: Returned, language: Language, *, settings: EvaluatorSettings = DEFAULTS
) -> Scored | EvaluationError:
    """Read a number, bool or string, or a dict of these; like HoneyHive, drop other values, but with a warning."""
    if (error := unreadable(returned)) is not None:
        return error
    sent = returned.value
    if not isinstance(sent, dict) or "value" not in sent:
        return contradiction()
    name, value = str(sent.get("eval_name")), sent["value"]
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    dropped: list[str] = []
    native: dict[str, Json] = {"eval_name": name, **_EMPTY}
    if isinstance(value, dict):
        native |= _read(value, dropped)
    elif _is_scalar(value):
        native["score"] = value
    elif value is not None:
        dropped.append("the returned value")
    notes = tuple(
        Note("dropped", f"HoneyHive drops {one}, which is not a number, bool or string") for one in dropped[:10]
    )
    extras = [NamedScore(key, one) for key, one in native["extras"].items() if not isinstance(one, str)]
    first = NamedScore(name, native["score"], native["explanation"])
    return scored([first, *extras], (native,), notes=notes, first_leads=True)


def _read(value: dict[str, Json], dropped: list[str]) -> dict[str, Json]:
    """Return the score, the explanation and the other usable values of a dict; add the rest to `dropped`."""
    score, explanation = value.get("score"), value.get("explanation")
    if score is not None and not _is_scalar(score):
        dropped.append("`score`")
        score = None
    extras = {key: one for key, one in value.items() if key not in {"score", "explanation"} and _is_scalar(one)}
    dropped += [f"`{key}`" for key in value if key not in {"score", "explanation"} and key not in extras]
    return {"score": score, "explanation": None if explanation is None else str(explanation), "extras": extras}


def _is_scalar(value: Json) -> bool:
    return isinstance(value, bool | int | float | str)


def failed(error: EvaluationError) -> tuple[dict[str, Json], ...]:
    """Return what HoneyHive stores for a row that failed with an exception: a score without a value."""
    return ({**_EMPTY},) if error.code is ErrorCode.USER_EXCEPTION else ()


DIALECT: Final = Dialect(
    contract=Contract("honeyhive"),
    bind=bind,
    interpret=interpret,
    failed=failed,
    languages=PYTHON_ONLY,
    native_row={"outputs": "Paris", "inputs": {"question": "What is the capital of France?"}, "ground_truth": "Paris"},
    takes=("correct_answer_key", "variables"),
    truth=("ground_truth", "ground_truths", "expected"),
    sdk=Sdk(
        module="honeyhive",
        stand_in=StandIn("dialects/honeyhive/modules", preimport="honeyhive"),
        real=frozenset({"honeyhive"}),
    ),
)
