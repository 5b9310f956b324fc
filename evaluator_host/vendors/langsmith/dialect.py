"""Arguments and results of LangSmith's evaluators (dialect `langsmith`): `perform_eval`, and functions of its SDKs.

The Python runner sends `{"value": …}`, or `{"refused": type}` for a type that the SDK does not accept. Source of the
rules: langsmith 0.15.0 (PyPI) and 0.12.0 (npm), evaluation/evaluator, and the documentation of LangSmith's website.
"""

from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts.base import Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.conversation import messages_of
from evaluator_host.engine.contracts.interpret import Scored, contradiction
from evaluator_host.engine.contracts.native import (
    NamedScore,
    bind_native,
    invalid,
    scored,
    shown,
    unreadable,
    without_truth,
)
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Kind, Note, Returned

_FIELDS: Final = ("key", "score", "value", "comment")
_MORE: Final = (
    "correction", "metadata", "evaluator_info", "feedback_config", "extra", "source_run_id", "target_run_id",
)  # fmt: skip
_REFERENCES: Final = ("reference_outputs", "referenceOutputs")
_ARGUMENTS: Final = frozenset(("inputs", "outputs", "attachments", *_REFERENCES))
_PAGES: Final = ("perform_eval", "performEval")
_BESIDE: Final = ("comment", "reasoning", "reason", "explanation")
_HINT: Final = "return a number, a bool, a string, or an object with `score`, `value` or `comment`"


class _Refused(Exception):
    """LangSmith does not accept a value; the message says why."""


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return `run` and `example`: the row's `variables`, or both made from the row's other fields."""
    return bind_native(_with_run(row), settings, _run_and_example, needs="run")


def bind_javascript(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the two arguments that the JavaScript SDK passes: an object with all values, and the example."""
    row = _with_run(row)
    bound = bind(row, settings)
    if isinstance(bound, EvaluationError):
        return bound
    native = row.variables if row.variables is not None else _run_and_example(row, settings)
    run, example = native.get("run"), native.get("example")
    run = run if isinstance(run, dict) else {}
    known = example if isinstance(example, dict) else {}
    first = {
        **run,
        "run": run,
        "example": example,
        "inputs": known.get("inputs") or run.get("inputs") or {},
        "outputs": run.get("outputs") or {},
        "referenceOutputs": known.get("outputs") or {},
        "attachments": known.get("attachments") or {},
    }
    return Binding({"args": [first, example]})


def _with_run(row: Row) -> Row:
    """If a row's variables are `inputs`, `outputs` and a reference, convert them to `run` and `example`."""
    given = row.variables
    if given is None or "outputs" not in given or not given.keys() & {*_REFERENCES} or given.keys() - _ARGUMENTS:
        return row
    inputs = given.get("inputs") or {}
    expected = next((given[name] for name in _REFERENCES if name in given), None)
    run = {"inputs": inputs, "outputs": given["outputs"]}
    example = {"inputs": inputs, "outputs": expected, "attachments": given.get("attachments") or {}}
    return replace(row, variables={"run": run, "example": example})


def _run_and_example(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    has_truth = inputs is not row.inputs
    outputs = _as_object(row.outputs)
    messages = messages_of(row)
    if messages is not None:
        inputs = {**inputs, "messages": messages}
        outputs = {"messages": messages, **(outputs or {})}
    run = {"inputs": inputs, "outputs": outputs, "trace": row.trace}
    expected = _as_object(truth) if has_truth else None
    return {"run": run, "example": {"inputs": inputs, "outputs": expected, "metadata": {}}}


def _as_object(value: Json) -> Json:
    return value if isinstance(value, dict) or value is None else {"output": value}


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the returned feedback. The score is the mean of the numbers and bools in it."""
    if (error := unreadable(returned)) is not None:
        return error
    value, name = returned.value, settings.entry or "evaluate"
    if language is Language.PYTHON:
        if not isinstance(value, dict) or value.keys() not in ({"value"}, {"refused"}):
            return contradiction()
        if "refused" in value:
            return invalid(f"LangSmith does not accept a value of type {str(value['refused'])[:100]}", _HINT)
        value = value["value"]
    elif returned.kind is Kind.MISSING:
        value = None
    try:
        native = _feedbacks(value, name, language)
    except _Refused as refused:
        return invalid(str(refused), _HINT)
    if name in _PAGES and isinstance(value, dict) and not _is_feedback(value):
        return _of_pages(value, native, settings.score_output)
    return scored(map(_named, native), native, chosen=settings.score_output)


def _of_pages(value: dict[str, Json], native: list[dict[str, Json]], chosen: str | None) -> Scored | EvaluationError:
    """Convert an object with feedback by name to a result; functions for LangSmith's website return such objects.

    If several pieces of feedback are numbers, the piece called `chosen` is the score. If none has this name, there is
    no score.
    """
    comment = value.get("comment")
    without = [NamedScore(key, None) for key, one in value.items() if one is None]
    found = scored([*map(_named, native), *without], native, chosen=chosen)
    if not isinstance(found, Scored):
        return found
    found = replace(found, reason=comment if isinstance(comment, str) else found.reason)
    numbers = [one for one in native if one["score"] is not None]
    if len(numbers) < 2 or chosen is not None:
        return found
    said = f"none of the {len(numbers)} pieces of feedback is called score: each becomes a metric, and score is null"
    note = Note("no_score", said)
    metrics = {one: number for one, number in found.metrics.items() if one != "score"}
    return replace(found, score=None, passed=None, metrics=metrics, notes=(note,))


def _feedbacks(value: Json, name: str, language: Language) -> list[dict[str, Json]]:
    """Convert a returned value to the pieces of feedback that LangSmith stores.

    Raises:
      _Refused: LangSmith does not accept the value.
    """
    pages = name in _PAGES
    if isinstance(value, dict) and "results" in value and not pages:
        value = value["results"]
        if not isinstance(value, list):
            raise _Refused("`results` is not a list")
    if isinstance(value, list):
        if not value:
            raise _Refused("the list of results is empty")
        return [_feedback(one, None if language is Language.PYTHON else name, language) for one in value]
    if pages and isinstance(value, dict) and not _is_feedback(value):
        return _by_name(value)
    if isinstance(value, bool | int | float) and (language is Language.PYTHON or pages):
        return [_stored({"key": name, "score": value})]
    if isinstance(value, str) and value and language is Language.PYTHON:
        return [_stored({"key": name, "value": value})]
    return [_feedback(value, name, language)]


def _is_feedback(value: dict[str, Json]) -> bool:
    return "score" in value or ("key" in value and "value" in value)


def _by_name(value: dict[str, Json]) -> list[dict[str, Json]]:
    found = []
    for key, one in value.items():
        if isinstance(one, bool | int | float):
            found.append(_stored({"key": key, "score": one}))
        elif isinstance(one, str) and key not in _BESIDE:
            found.append(_stored({"key": key, "value": one}))
    if not found:
        raise _Refused(f"{shown(value)} has no key with a number, bool or string; feedback needs one")
    return found


def _feedback(value: Json, name: str | None, language: Language) -> dict[str, Json]:
    """Convert one piece of feedback to the form that LangSmith stores. If it has no key, its key is `name`."""
    if not isinstance(value, dict) or not value:
        raise _Refused(f"LangSmith does not accept {shown(value)} as a result")
    key = value.get("key") or name
    if not isinstance(key, str):
        raise _Refused(f"{shown(value)} has no `key`, which every result needs when there are several")
    if language is Language.PYTHON:
        unknown = [one for one in value if one not in _FIELDS and one not in _MORE]
        if all(one not in value for one in _FIELDS[1:]):
            raise _Refused(f"{shown(value)} has no `score`, `value` or `comment`")
        if unknown and key not in _PAGES:
            raise _Refused(f"{shown(value)} has fields that LangSmith does not know: {', '.join(unknown)[:100]}")
    if not isinstance(value.get("score"), bool | int | float | None):
        raise _Refused(f"the score {shown(value['score'])} is neither a number nor a bool")
    if not isinstance(value.get("comment"), str | None):
        raise _Refused(f"the comment {shown(value['comment'])} is not a string")
    return _stored({**value, "key": key})


def _stored(value: dict[str, Json]) -> dict[str, Json]:
    more = {name: value[name] for name in _MORE if value.get(name) is not None}
    return {**{name: value.get(name) for name in _FIELDS}, **more}


def _named(one: dict[str, Json]) -> NamedScore:
    value = one["score"]
    if value is None and isinstance(one["value"], str):
        value = one["value"]
    return NamedScore(one["key"], value, one["comment"])


DIALECT: Final = Dialect(
    contract=Contract("langsmith"),
    bind=bind,
    bind_javascript=bind_javascript,
    interpret=interpret,
    native_row={
        "run": {"inputs": {"question": "What is the capital of France?"}, "outputs": {"answer": "Paris"}},
        "example": {"inputs": {"question": "What is the capital of France?"}, "outputs": {"answer": "Paris"}},
    },
    takes=("correct_answer_key", "messages", "score_output", "variables"),
    truth=("reference_outputs", "referenceOutputs", "example.outputs"),
    sdk=Sdk(
        module="langsmith",
        stand_in=StandIn("dialects/langsmith/modules", preimport="langsmith.evaluation"),
        real=frozenset({"langsmith", "openevals", "agentevals", "langchain", "langchain-core"}),
    ),
)
