"""Combines the values that all evaluators in a file return for a row into one result; each value becomes a metric."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.interpret import Scored, contradiction, with_own_name
from evaluator_host.engine.contracts.native import invalid, not_returned, together
from evaluator_host.types.evaluator import EvaluatorSettings, Json, Language
from evaluator_host.types.json_values import decode_json
from evaluator_host.types.numbers import mean_of
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Kind, Note, Returned
from evaluator_host.types.warnings import remedy_of

EVERY: Final = "*"
_TEXT_CHARS: Final = 4096
_OF_IMPORTS: Final = ("ImportError", "ModuleNotFoundError")
_LACKING: Final = ", which the row does not have"  # end of the message for a column that the row lacks
_BY_PLACE: Final = re.compile(r"scorer_\d+")


def interpret_every(
    rules: Dialect,
    returned: Returned,
    language: Language,
    settings: EvaluatorSettings,
    code: str,
    *,
    advise: Callable[[EvaluationError], EvaluationError],
) -> tuple[Scored | EvaluationError, Json]:
    """Return one result with the scores of all evaluators as metrics, and the value that each evaluator returned.

    If an evaluator gives further metrics, their names are `evaluator.metric`. An evaluator that has only a position in
    a list, and no name, gets the name of its only score. The metric `score` is always the score of the result, so an
    evaluator called `score` becomes the metric `score.score`. If `settings.score_output` names an evaluator, a metric,
    or a score that only one evaluator returns, this becomes the score of the result. If it names nothing that was
    returned, or if `settings.entry` is `*`, the result has no score. Otherwise, the score is the mean of all scores. An
    evaluator that failed adds a warning. If all evaluators failed, the row fails with the first error about an import,
    or else with the first error. `code` is the evaluator's; `advise` adds a hint to an error.
    """
    try:
        outcomes = [_outcome(raw) for raw in returned.value["every"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        return contradiction(), None
    own_settings = replace(settings, score_output=_within_only([name for name, _ in outcomes], settings.score_output))
    results = _Results([name for name, _ in outcomes])
    for name, outcome in outcomes:
        if isinstance(outcome, EvaluationError):
            results.add_failure(name, advise(outcome))
            continue
        scored = _scored(rules, outcome, language, own_settings, name)
        if isinstance(scored, EvaluationError):
            results.add_failure(name, advise(scored))
        elif scored.error is not None:
            results.native += scored.native
            results.add_failure(name, advise(scored.error))
        else:
            results.add(name, with_own_name(scored, code), outcome.notes)
    read, errors, shown = results.read, results.errors, results.shown
    if errors and not read:
        raised = (one for one in errors if one.code is ErrorCode.USER_EXCEPTION and _LACKING not in one.message)
        ran = next(raised, errors[0])
        return next((one for one in errors if one.type in _OF_IMPORTS), ran), shown
    whole, chosen = _whole(read, settings, of=len(outcomes)), settings.score_output
    if chosen is not None and chosen not in dict(outcomes):
        if source := results.sources.of(chosen):
            whole = _part(rules, dict(outcomes), read, source, language, settings)
        elif len(outcomes) > 1 and all(name in read and not read[name].skipped for name, _ in outcomes):
            return results.sources.refusal(chosen, results.metrics or read), shown
    whole = replace(whole, metrics=results.metrics, notes=tuple(results.notes), native=tuple(results.native))
    return whole, shown


class _Results:
    """The results of a file's evaluators for one row; `names` are the names of all these evaluators."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.read: dict[str, Scored] = {}  # results of the evaluators that did not fail
        self.errors: list[EvaluationError] = []  # errors of the others
        self.sources = _Sources()
        self.metrics: dict[str, float | int] = {}
        self.notes: list[Note] = []
        self.native: list[dict[str, Json]] = []
        self.shown: dict[str, Json] = {}  # for each evaluator: what users see of its result

    def add_failure(self, name: str, error: EvaluationError) -> None:
        self.errors.append(error)
        self.notes.append(Note("entry_failed", f"{name}: {error.message}", error.hint or remedy_of("entry_failed")))
        self.shown[name] = {"status": "failed", "error": {"code": error.code.value, "message": error.message}}

    def add(self, name: str, scored: Scored, notes: Sequence[Note]) -> None:
        """Add the result of an evaluator; `notes` are notes on the value that it returned."""
        self.read[name] = scored
        self.native += scored.native
        self.notes += [replace(note, message=f"{name}: {note.message}") for note in (*notes, *scored.notes)]
        own = _name_of_score(scored)
        is_unnamed = _BY_PLACE.fullmatch(name) and own not in {"score", *self.metrics, *self._names}
        label = own if own is not None and is_unnamed else name
        metric = "score.score" if label == "score" and len(self._names) > 1 else label
        if scored.score is not None:
            self.metrics[metric] = scored.score
        self.sources.add(name, metric, own)
        # metrics that only repeat the score under another name
        left_out = {"score", name, label, own}
        for one in scored.metrics.keys() - left_out:
            self.sources.add(name, f"{label}.{one}", one, inner=one)
        self.metrics |= {f"{label}.{one}": value for one, value in scored.metrics.items() if one not in left_out}
        self.shown[name] = {
            "status": "skipped" if scored.skipped else "scored",
            **{field: getattr(scored, field) for field in ("score", "passed", "label", "reason")},
        }


def _within_only(names: list[str], chosen: str | None) -> str | None:
    """Return the chosen score's name, without the evaluator's name, if a file has only one evaluator.

    Return None if no score was chosen, if the evaluator itself was chosen, or if there are several evaluators.
    """
    if chosen is None or len(names) != 1 or chosen in names:
        return None
    return chosen.removeprefix(f"{names[0]}.")


class _Sources:
    """Records from which evaluator each metric comes, and under which name.

    The name of the evaluator's own score is None.
    """

    def __init__(self) -> None:
        self._shown: dict[str, tuple[str, str | None]] = {}
        self._own: dict[str, list[tuple[str, str | None]]] = {}

    def add(self, evaluator: str, metric: str, own: str | None, *, inner: str | None = None) -> None:
        self._shown[metric] = evaluator, inner
        if own is not None:
            self._own.setdefault(own, []).append((evaluator, inner))

    def of(self, chosen: str) -> tuple[str, str | None] | None:
        own = self._own.get(chosen, ())
        return self._shown.get(chosen) or (own[0] if len(own) == 1 else None)

    def refusal(self, chosen: str, metrics: Iterable[str]) -> EvaluationError:
        if chosen not in self._own:
            return not_returned(chosen, metrics)
        own = set(self._own[chosen])
        several = [metric for metric, source in self._shown.items() if source in own]
        message = f"settings.score_output is {chosen[:200]!r}, but several evaluators returned a score with this name"
        return invalid(message, f"name one of: {', '.join(repr(one[:200]) for one in several[:10])}")


def _part(
    rules: Dialect,
    outcomes: dict[str, Returned | EvaluationError],
    read: dict[str, Scored],
    source: tuple[str, str | None],
    language: Language,
    settings: EvaluatorSettings,
) -> Scored:
    """Return an evaluator's result, or one of its scores, with a verdict and a reason if the dialect supports these."""
    name, inner = source
    outcome = outcomes[name]
    if inner is None or isinstance(outcome, EvaluationError):
        return read[name]
    number = read[name].metrics[inner]
    part = _scored(rules, outcome, language, replace(settings, score_output=inner), name)
    return part if isinstance(part, Scored) and part.score == number else Scored(number, None, {})


def _name_of_score(scored: Scored) -> str | None:
    name = scored.native[0].get("name") if len(scored.native) == 1 else scored.name
    return name if isinstance(name, str) and name in scored.metrics else None


def _whole(read: dict[str, Scored], settings: EvaluatorSettings, *, of: int) -> Scored:
    if settings.score_output in read:
        return read[settings.score_output]
    if of == 1:
        return next(iter(read.values()))
    skipped = all(one.skipped for one in read.values())
    scores = [one.score for one in read.values() if one.score is not None]
    if settings.entry == EVERY or settings.score_output is not None or not scores:
        return Scored(None, None, {}, skipped=skipped)
    passed = together([one.passed for one in read.values() if one.score is not None])
    return Scored(mean_of(scores), passed, {}, skipped=skipped)


def _scored(
    rules: Dialect, returned: Returned, language: Language, settings: EvaluatorSettings, name: str
) -> Scored | EvaluationError:
    scored = rules.interpret(returned, language, settings=replace(settings, entry=name))
    if isinstance(scored, EvaluationError) or rules.apply_threshold is None:
        return scored
    return rules.apply_threshold(scored, None, language)


def _outcome(raw: dict[str, Any]) -> tuple[str, Returned | EvaluationError]:
    name = str(raw["name"])[:200]
    if (error := raw.get("error")) is not None:
        return name, EvaluationError(
            ErrorCode(error["code"]),
            str(error["message"])[:_TEXT_CHARS],
            type=None if error.get("type") is None else str(error["type"])[:200],
            line=error["line"] if isinstance(error.get("line"), int) else None,
            traceback=None if error.get("traceback") is None else str(error["traceback"])[: 4 * _TEXT_CHARS],
            hint=None if error.get("hint") is None else str(error["hint"])[:_TEXT_CHARS],
        )
    body = decode_json(raw["result"].encode())
    unsupported = body.get("unsupported")
    return name, Returned(
        kind=Kind(body["kind"]),
        value=body.get("value"),
        nonfinite=tuple(str(path)[:200] for path in body.get("nonfinite") or ())[:8],
        unsupported=(str(unsupported["path"])[:200], str(unsupported["type"])[:200]) if unsupported else None,
        notes=tuple(
            Note(code := str(one["code"])[:200], str(one["message"])[:_TEXT_CHARS], remedy_of(code))
            for one in body["notes"][:16]
        ),
    )
