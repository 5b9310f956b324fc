"""Functions for dialects of other platforms: they build rows in a platform's form, and combine named scores."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeGuard

from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import FINITE, Scored, contradiction
from evaluator_host.engine.contracts.metric_leaves import MOST_METRICS, NAME_CHARS, finite, too_many_metrics
from evaluator_host.engine.contracts.words import names_truth
from evaluator_host.types.evaluator import EvaluatorSettings, Json, Row
from evaluator_host.types.numbers import mean_of
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Note, Returned
from evaluator_host.types.warnings import remedy_of

_SHOWN: Final = 200
_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class NamedScore:
    """One score of a platform.

    Attributes:
      name: Name of the score on the platform.
      value: A number or bool (a score), a string (a label), or None if there is neither; any other value is refused.
      reason: Explanation of the score.
      passed: Verdict, if the platform has one. A bool as `value` is a verdict too.
    """

    name: str
    value: Json
    reason: str | None = None
    passed: bool | None = None


def without_truth(row: Row, settings: EvaluatorSettings) -> tuple[dict[str, Json], Json]:
    """Return two values: the inputs without the ground truth, and the ground truth itself.

    If there is no ground truth, return all inputs and None. If the settings do not name the column with the ground
    truth, this column also stays among the inputs.
    """
    key = truth_column(row.inputs, settings)
    if key is None:
        return row.inputs, None
    keeps = key != settings.correct_answer_key
    return {name: value for name, value in row.inputs.items() if keeps or name != key}, row.inputs[key]


def with_outputs(columns: dict[str, Json], outputs: Json, *names: str) -> dict[str, Json]:
    """Return the columns, and the outputs under each of these names.

    A column with one of these names counts only if the row has no outputs.
    """
    said = dict.fromkeys(names, outputs)
    return {**said, **columns} if outputs is None else {**columns, **said}


def own_columns(
    row: Row, settings: EvaluatorSettings, *, truth: frozenset[str], others: frozenset[str]
) -> dict[str, Json] | None:
    """Return the columns of a row if its column `input` is the platform's own field, else None.

    The column counts as the platform's field if there is also a column for the ground truth, or if all column names are
    names that the platform uses. If `input` is the only column, it is an ordinary column.
    """
    given = row.inputs
    if "input" not in given or len(given) == 1 or given.get("output", row.outputs) != row.outputs:
        return None
    truths = {*truth, settings.correct_answer_key}
    is_own = not truths.isdisjoint(given) or given.keys() <= {"input", "output", "outputs", "metadata", *others}
    return given if is_own else None


def truth_column(inputs: dict[str, Json], settings: EvaluatorSettings) -> str | None:
    """Return the column with the ground truth.

    This is the column that the settings name, else the only column with a name that means ground truth.
    """
    key = settings.correct_answer_key
    if key in inputs:
        return key
    if key != DEFAULTS.correct_answer_key:
        return None
    named = [name for name, value in inputs.items() if names_truth(name) and value is not None]
    return named[0] if len(named) == 1 else None


def question(inputs: dict[str, Json]) -> Json:
    """Return the user's question: the input with a name that means question, else the only input, else all inputs."""
    for name in ("user_input", "question", "input", "query", "prompt"):
        if name in inputs:
            return inputs[name]
    asked = [value for name, value in inputs.items() if not names_truth(name)]
    return asked[0] if len(asked) == 1 else inputs


def bind_native(
    row: Row,
    settings: EvaluatorSettings,
    build: Callable[[Row, EvaluatorSettings], dict[str, Json]],
    *,
    needs: str,
    inner: str = "",
    beside: tuple[str, ...] = (),
    around: str = "",
) -> Binding | EvaluationError:
    """Return a call with one argument, the platform's own row: `row.variables` if given, else the result of `build`.

    Args:
      row: The row.
      settings: Settings of the evaluator, with the name of the ground truth.
      build: Returns the platform's row for inputs, outputs and trace.
      needs: Key that `row.variables` must have; empty if no key is required.
      inner: Key of the object that contains the fields for evaluators in the platform's row; empty if there is no such
        object. If `row.variables` lack this key, `row.variables` are used as that object.
      beside: Other keys that the platform's row may have.
      around: Key under which the platform sends its whole row; empty if there is no such key.
    """
    given = row.variables
    if given is None:
        return Binding({"args": [build(row, settings)]})
    if around and given.keys() == {around} and isinstance(given[around], dict):
        given = given[around]
    if inner and isinstance(given.get(inner), dict | list):
        if others := given.keys() - {inner, needs, *beside}:
            return _read_in_two_ways(inner, sorted(others))
    elif inner and (needs == inner or needs in given):
        outer = {} if needs == inner else {needs: given[needs]}
        return Binding({"args": [{inner: given, **outer}]})
    if needs and needs not in given:
        keys = ", ".join(given) or "nothing"
        return EvaluationError(
            ErrorCode.MISSING_INPUT,
            f"`variables` are read as the platform's own row, but lack {needs!r}; they contain {keys[:_SHOWN]}",
            hint=f"add {needs!r}, or send inputs and outputs instead of variables",
        )
    return Binding({"args": [given]})


def _read_in_two_ways(inner: str, others: list[str]) -> EvaluationError:
    """Return the error for ambiguous variables: they may be the platform's row, or the fields of its object `inner`."""
    beside = ", ".join(map(repr, others))[:_SHOWN]
    return EvaluationError(
        ErrorCode.BINDING_ERROR,
        f"`variables` can be read in two ways: as the platform's row, which has all fields in {inner!r} and no "
        f"{beside}, or as the fields themselves, of which {inner!r} is one",
        hint=f'put {beside} into {inner!r}, or send {{"{inner}": …}} with all fields in it',
    )


def scored(
    named: Iterable[NamedScore],
    native: Iterable[dict[str, Json]],
    *,
    notes: tuple[Note, ...] = (),
    chosen: str | None = None,
    first_leads: bool = False,
    skipped: Note | None = None,
) -> Scored | EvaluationError:
    """Return one result for a platform's scores: their mean is its score, and their first string is its label.

    Args:
      named: Scores in the platform's order.
      native: Objects that the platform would store.
      notes: Notes of the result.
      chosen: Name of the only score that counts (`settings.score_output`), or None.
      first_leads: Whether only the first score counts.
      skipped: Note for a row that is skipped because no score that counts has a value; None if such a row counts as
        scored.
    """
    found = list(named)
    if chosen is not None and found and all(one.name != chosen for one in found):
        error = not_returned(chosen, (one.name for one in found))
        return Scored(None, None, {}, native=tuple(native), error=error)
    metrics: dict[str, float | int] = {}
    numbers: dict[str, tuple[NamedScore, float | int]] = {}
    added: list[Note] = []
    left_out = 0
    for one in found:
        if one.value is None or isinstance(one.value, str):
            continue
        if not isinstance(one.value, int | float):
            return invalid(f"the score {one.name[:_SHOWN]!r} is {shown(one.value)}, not a number")
        number = finite(float(one.value) if isinstance(one.value, bool) else one.value)
        if number is None:
            message = f"the score {one.name[:_SHOWN]!r} is not a finite number"
            return EvaluationError(ErrorCode.NON_FINITE, message, hint=FINITE)
        if one.name in numbers:
            kept = numbers[one.name][1]
            message = f"two scores have the name {one.name[:_SHOWN]!r}: {kept:g} is kept, and {number:g} is left out"
            added.append(Note("duplicate_metric", message, remedy_of("duplicate_metric")))
            continue
        numbers[one.name] = (one, number)
        if len(numbers) < MOST_METRICS and len(one.name) <= NAME_CHARS:
            metrics[one.name] = number
        else:
            left_out += 1
    if left_out:
        added.append(too_many_metrics(left_out))
    label = next((one.value for one in found if isinstance(one.value, str)), None)
    own = [one for one in found[: 1 if first_leads else None] if chosen in (None, one.name)]
    if counts := [pair for one in own if (pair := numbers.get(one.name)) is not None and pair[0] is one]:
        return _whole(counts, metrics, label, (*notes, *added), tuple(native))
    metrics.pop("score", None)
    alone = own[0].name if first_leads and own else chosen
    return _without_score(own, alone, metrics, (*notes, *added), tuple(native), skipped)


def _without_score(
    counts: list[NamedScore],
    alone: str | None,
    metrics: dict[str, float | int],
    notes: tuple[Note, ...],
    native: tuple[dict[str, Json], ...],
    skipped: Note | None,
) -> Scored:
    """Return the result if no score that counts is a number: the first text is the label, or the row is skipped.

    `alone` is the name of the only score that counts, or None if all count.
    """
    reason = next((one.reason for one in counts if one.reason), None)
    if skipped is not None and all(one.value is None for one in counts):
        return Scored(None, None, metrics, None, reason, (*notes, skipped), native, skipped=True)
    message = "the evaluator returned neither a number nor a bool; score is null"
    if alone is not None:
        message = f"the score {alone[:_SHOWN]!r} has no usable number; score is null"
    if alone is not None or not notes:
        notes = (*notes, Note("no_score", message, remedy_of("no_score")))
    label = next((one.value for one in counts if isinstance(one.value, str)), None)
    return Scored(None, None, metrics, label, reason, notes, native)


def not_returned(chosen: str, names: Iterable[str]) -> EvaluationError:
    """Return the error for a `settings.score_output` (`chosen`) that is not the name of a returned score."""
    came = ", ".join(repr(name[:_SHOWN]) for name in islice(names, _NAMED))
    message = f"settings.score_output is {chosen[:_SHOWN]!r}, but the evaluator returned no score with this name"
    return invalid(message, f"name one of its scores: {came}; or leave score_output out")


def _whole(
    counts: list[tuple[NamedScore, float | int]],
    metrics: dict[str, float | int],
    label: str | None,
    notes: tuple[Note, ...],
    native: tuple[dict[str, Json], ...],
) -> Scored:
    """Return a result with the only score, or with a warning and the mean of several scores.

    The row passes if all scores pass.
    """
    verdicts = [_passed(one) for one, _ in counts]
    if len(counts) == 1:
        [(only, score)] = counts
        passed, reason = verdicts[0], only.reason
    else:
        score, passed = mean_of([number for _, number in counts]), together(verdicts)
        reason = "; ".join(f"{one.name}: {one.reason}" for one, _ in counts if one.reason) or None
        notes = (*notes, _several(counts))
    return Scored(score, passed, {"score": score} | metrics | {"score": score}, label, reason, notes, native)


def together(verdicts: Sequence[bool | None]) -> bool | None:
    """Return whether all verdicts are passes, or None if a verdict is missing."""
    return None if None in verdicts else all(verdicts)


def _passed(one: NamedScore) -> bool | None:
    return one.value if one.passed is None and isinstance(one.value, bool) else one.passed


def _several(counts: list[tuple[NamedScore, float | int]]) -> Note:
    names = [one.name[:_SHOWN] for one, _ in counts[:_NAMED]]
    more = f" and {len(counts) - _NAMED} more" if len(counts) > _NAMED else ""
    message = f"the score is the mean of {len(counts)} scores: {', '.join(names)}{more}"
    return Note("several_scores", message, remedy_of("several_scores"))


def scoring_failed(unusable: Iterable[dict[str, Json]]) -> tuple[Note, ...]:
    """Return a warning for each of a platform's scores that has no usable value."""
    return tuple(
        Note("scoring_failed", f"score {shown(one.get('name'))} has no usable value", remedy_of("scoring_failed"))
        for one in islice(unusable, _NAMED)
    )


def invalid(message: str, hint: str | None = None) -> EvaluationError:
    """Return the error for a value that the platform refuses."""
    return EvaluationError(ErrorCode.INVALID_RESULT, message, hint=hint)


def unreadable(returned: Returned) -> EvaluationError | None:
    """Return the error for a value that cannot be written as JSON, or contains NaN or an infinity; else None."""
    if returned.unsupported is not None:
        path, kind = returned.unsupported
        return invalid(f"the value at {path} is of type {kind}, which cannot be written as JSON")
    if returned.nonfinite:
        where = ", ".join(returned.nonfinite)
        message = f"the value at {where[:_SHOWN]} is not a finite number"
        return EvaluationError(ErrorCode.NON_FINITE, message, hint=FINITE)
    return None


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a JSON value is a finite number; a bool is not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and finite(value) is not None


def object_sent(returned: Returned) -> dict[str, Json] | EvaluationError:
    """Return the evaluator's value if it is an object of JSON values, else an error."""
    if (error := unreadable(returned)) is not None:
        return error
    return returned.value if isinstance(returned.value, dict) else contradiction()


def text_of(value: Json) -> str:
    """Return a string as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def shown(value: Json) -> str:
    """Return a value as JSON, truncated to a length that fits into a message."""
    return json.dumps(value, ensure_ascii=False)[:_SHOWN]
