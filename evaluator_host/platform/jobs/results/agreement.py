"""Computes how far an evaluator agrees with people's labels: accuracy, Cohen's kappa, a confusion matrix, intervals.

Intervals are 95 % intervals. The interval of a fraction is Wilson's (Journal of the American Statistical Association
22, 1927, p. 209). The interval of kappa (Cohen, Educational and Psychological Measurement 20, 1960, p. 37) follows from
the interval of the accuracy, because kappa's standard error is 0 if all rows agree, even if there are few. The weighted
kappa has quadratic weights (Cohen, Psychological Bulletin 70, 1968, p. 213), for labels that are numbers.
"""

import itertools
import math
import unicodedata
from collections import Counter
from typing import Final

from evaluator_host.types.bounds import reaches
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Json
from evaluator_host.types.names import counted
from evaluator_host.types.numbers import exact, parsed, wilson
from evaluator_host.types.outcome import Status
from evaluator_host.types.results import Agreement, AgreementCell, ClassAgreement

CLASSES: Final = 50
_LABEL_CHARS: Final = 200  # maximum number of characters of a label, because a column may contain whole documents
_FIRST: Final = 5  # maximum number of rows that a cell of the matrix names
_VERDICTS: Final = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "correct"), True),
    **dict.fromkeys(("false", "no", "fail", "failed", "incorrect"), False),
}
_LARGE: Final = 1e5
_BINARY: Final = frozenset(("0", "1"))
_SAID: Final = frozenset(("true", "false"))
_SHOWN, _SHOWN_CHARS = 4, 40


def judged_as(human: Json, result: dict[str, Json], passing: float = 0.5) -> tuple[str, str] | None:
    """Return a row's class `(by the person, by the evaluator)`; None if the person or the evaluator gave no class.

    If the person's label is a string, it is compared with the result's label. If the result has no label, a number (or
    a string with a number) is compared with the score. True, false, `yes`, `fail` and similar values are compared with
    `passed`; if `passed` is missing, a score of at least `passing` counts as passed.
    """
    score, label, passed = result.get("score"), result.get("label"), result.get("passed")
    human = _meant(human, label)
    if isinstance(human, str):
        label = str(label)
        return None if len(label) > _LABEL_CHARS else (_class(human), _class(label))
    if isinstance(human, bool):
        said = passed if passed is not None else None if score is None else reaches(score, passing)
        return None if said is None else (str(human).lower(), str(said).lower())
    if not isinstance(human, int | float) or score is None:
        return None
    number = _number(human)
    return None if number is None else (_of_number(number), _of_number(score))


def _of_number(number: float) -> str:
    """Return the class of a number: its first six digits, or all digits of a large number.

    The workbench offers people numbers with six digits, so the label 0.333333 agrees with a score of 1 / 3.
    """
    return f"{number:.6g}" if abs(number) < _LARGE else f"{number:.15g}"


def _meant(human: Json, label: Json) -> Json:
    """Return a person's label as the string, bool or number to compare; None if the string cannot be compared.

    A string is compared with the result's label, a bool with its verdict, a number with its score.
    """
    if not isinstance(human, str):
        return human
    if len(human) > _LABEL_CHARS:
        return None
    human = human.strip()
    if label is not None and human:
        return human
    number = _number(human)
    return _VERDICTS.get(human.lower()) if number is None else number


def _class(label: str) -> str:
    return unicodedata.normalize("NFC", label.strip())


class LabelledRows:
    """Counts rows by their label and their result.

    Labels that differ only in case, or are equal numbers, are one class, which has the name of its first label. `pairs`
    counts rows by `(class by the person, class by the evaluator)`; `first` has the first of these rows. The other
    counters are for the rows that cannot be compared, see `Agreement`. `passing` is the lowest score that passes in
    rows without a verdict.
    """

    def __init__(
        self, pairs: Counter[tuple[str, str]] | None = None, *, unlabelled: int = 0, passing: float = 0.5
    ) -> None:
        self.pairs = Counter[tuple[str, str]]() if pairs is None else pairs
        self.first: dict[tuple[str, str], list[int]] = {}
        self._names: dict[str | float, str] = {}
        self.unlabelled = unlabelled
        self.passing = passing
        self.incomparable = 0
        self.waiting = 0
        self.by_score = 0  # rows whose score was compared, because `passed` is missing
        self.by_status: Counter[str] = Counter()

    def add(self, row: int, human: Json, result: dict[str, Json] | None) -> None:
        """Count a row by the label from people and the evaluator's result. None stands for no label or no result."""
        if human is None or (isinstance(human, str) and not human.strip()):
            self.unlabelled += 1
        elif result is None:
            self.waiting += 1
        elif result["status"] != Status.SCORED:
            self.by_status[str(result["status"])] += 1
        elif (pair := judged_as(human, result, self.passing)) is None:
            self.incomparable += 1
        else:
            # this class is named first, so that both classes get the evaluator's spelling
            judged = self._named(pair[1])
            pair = self._named(pair[0]), judged
            self.pairs[pair] += 1
            self.by_score += isinstance(_meant(human, result.get("label")), bool) and result.get("passed") is None
            if len(rows := self.first.setdefault(pair, [])) < _FIRST:
                rows.append(row)

    @property
    def classes(self) -> int:
        """Number of different labels of people and the evaluator."""
        return len(self._names)

    def _named(self, spelling: str) -> str:
        number = _number(spelling)
        return self._names.setdefault(spelling.casefold() if number is None else number, spelling)


def agreement(evaluator: str, column: str, labelled: LabelledRows) -> Agreement:
    """Return accuracy, kappa and confusion matrix of an evaluator for the labels in `column`.

    Raises:
      InvalidRequest: there are too many different labels.
    """
    pairs = labelled.pairs
    classes = _in_order({name for pair in pairs for name in pair})
    if len(classes) > CLASSES:
        raise InvalidRequest(
            f"{column!r} and the results have over {CLASSES} different labels, too many to compare; choose a "
            "column with fewer labels"
        )
    total = pairs.total()
    human, said = Counter[str](), Counter[str]()
    for (one, other), count in pairs.items():
        human[one] += count
        said[other] += count
    agreed = sum(pairs[name, name] for name in classes)
    constant = _constant(human, said)
    by_chance = sum(human[name] * said[name] for name in classes)
    reach = wilson(agreed, total)
    kappa, interval = (None, None) if constant or reach is None else _kappa(agreed, by_chance, total, reach)
    cells = [
        AgreementCell(*pair, pairs[pair], tuple(labelled.first.get(pair, ())))
        for pair in itertools.product(classes, classes)
        if pairs[pair]
    ]
    return Agreement(
        evaluator=evaluator,
        label=column,
        rows=total,
        unlabelled=labelled.unlabelled,
        failed=labelled.by_status[Status.FAILED],
        skipped=labelled.by_status[Status.SKIPPED],
        waiting=labelled.waiting,
        incomparable=labelled.incomparable,
        accuracy=agreed / total if total else None,
        accuracy_interval=reach,
        kappa=kappa,
        kappa_interval=interval,
        weighted_kappa=None if constant else _weighted(classes, pairs, human, said),
        classes=tuple(
            ClassAgreement(
                name,
                human[name],
                said[name],
                recall=pairs[name, name] / human[name] if human[name] else None,
                recall_interval=wilson(pairs[name, name], human[name]),
                precision=pairs[name, name] / said[name] if said[name] else None,
                precision_interval=wilson(pairs[name, name], said[name]),
            )
            for name in classes
        ),
        confusion=tuple(cells),
        left_out=_left_out(labelled),
        note="; ".join(filter(None, (_note(labelled, human, said), constant))) or None,
    )


def _left_out(labelled: LabelledRows) -> str:
    reasons = (
        (labelled.unlabelled, "row", "without a label"),
        (labelled.by_status[Status.FAILED], "labelled row", "that failed"),
        (labelled.by_status[Status.SKIPPED], "labelled row", "that the evaluator skipped"),
        (labelled.waiting, "labelled row", "without a result"),
        (labelled.incomparable, "labelled row", "with a result that cannot be compared with the label"),
    )
    return ", ".join(f"{counted(rows, noun)} {why}" for rows, noun, why in reasons if rows)


def _note(labelled: LabelledRows, human: Counter[str], said: Counter[str]) -> str | None:
    notes = []
    if by_score := labelled.by_score:
        notes.append(
            f"{counted(by_score, 'row')} {'has' if by_score == 1 else 'have'} no verdict, so a score of at least "
            f"{exact(labelled.passing)} counts as passed; to change this, give the evaluator a `threshold`"
        )
    if human.keys() <= _BINARY and (others := sum(count for name, count in said.items() if name not in _BINARY)):
        scores = "1 score is" if others == 1 else f"{others} scores are"
        notes.append(
            f"people's labels are only 0 and 1, but {scores} neither 0 nor 1; to compare labels with the verdict, "
            "use labels such as yes and no"
        )
    elif human and human.keys().isdisjoint(said) and not said.keys() <= _SAID:
        notes.append(
            f"people's labels ({_some(human)}) and the evaluator's ({_some(said)}) have none in common, so no row can "
            "agree"
        )
    return "; ".join(notes) or None


def _some(classes: Counter[str]) -> str:
    more = f" and {len(classes) - _SHOWN} more" if len(classes) > _SHOWN else ""
    return ", ".join(name[:_SHOWN_CHARS] for name, _ in classes.most_common(_SHOWN)) + more


def _constant(human: Counter[str], said: Counter[str]) -> str:
    """Return why there is no kappa: the evaluator or people gave the same verdict on all rows. Else return `""`."""
    who = [one for one, given in (("the evaluator", said), ("people", human)) if len(given) == 1]
    return f"{' and '.join(who)} gave the same verdict on all rows, so there is no kappa" if who else ""


def _kappa(agreed: int, by_chance: int, total: int, interval: tuple[float, float]) -> tuple[float, tuple[float, float]]:
    """Return kappa and its interval; `interval` is that of the accuracy."""
    observed, chance = agreed / total, by_chance / total**2
    low, kappa, high = ((share - chance) / (1 - chance) for share in (interval[0], observed, interval[1]))
    return kappa, (max(-1.0, low), high)


def _weighted(
    classes: list[str], pairs: Counter[tuple[str, str]], human: Counter[str], said: Counter[str]
) -> float | None:
    numbers = {name: number for name in classes if (number := _number(name)) is not None}
    if not classes or len(numbers) < len(classes):
        return None
    largest = max(map(abs, numbers.values())) or 1.0
    # the numbers are scaled, so that no square overflows
    numbers = {name: number / largest for name, number in numbers.items()}
    total = pairs.total()
    apart = sum(count * (numbers[one] - numbers[other]) ** 2 for (one, other), count in pairs.items()) / total
    by_chance = sum(
        human[one] * said[other] * (numbers[one] - numbers[other]) ** 2 for one in classes for other in classes
    )
    return None if not by_chance else 1 - apart / (by_chance / total**2)


def _number(value: str | float) -> float | None:
    try:
        number = parsed(value) if isinstance(value, str) else float(value)
    except OverflowError:
        return None
    return number if number is not None and math.isfinite(number) else None


def _in_order(names: set[str]) -> list[str]:
    numbers = {name: _number(name) for name in names}
    return sorted(names, key=lambda name: (numbers[name] is None, numbers[name] or 0.0, name))
