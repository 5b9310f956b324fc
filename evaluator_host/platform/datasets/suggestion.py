"""Suggests which columns become the fields that an evaluator reads: judges by the columns' names, then their values."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from evaluator_host.engine.contracts.words import ALIKE, EXPECTED, alike, meaning, plain
from evaluator_host.types.names import nearest_name

FIRST_ROWS: Final = 100  # number of rows that are checked before a job
_OUTPUTS: Final = (
    *("outputs", "output", "answer", "response", "reply", "completion", "prediction", "generated", "generation"),
    *("modeloutput", "modelresponse", "modelanswer", "actual", "actualoutput", "predicted", "pred", "candidate"),
    *("hypothesis", "result", "answers", "responses", "replies", "completions", "predictions"),
)
_LIKE_OUTPUTS: Final = re.compile(
    r"output|answer|respon[sd]|repl(y|ies)|completion|predict|generat|antwort|ausgabe|réponse|respuesta|risposta|resposta"
)
_EXPECTED: Final = re.compile(
    r"correct|expect|gold|true|truth|target|referenc|ideal|label|erwartet|richtig|soll|attendu|esperad|atteso|attesa|wanted"
)
_OF_THE_ROW: Final = frozenset(
    {"metadata", "meta", "tags", "category", "topic", "language", "trace", "criteria", "messages"}
)
_TEXT_CHARS: Final = 20  # minimum average length of the values in a column of a model's texts
_CHARS: Final = 1000  # maximum number of characters of a value to compare
MOST_COLUMNS: Final = 1000  # maximum number of columns whose names are used
_NAME_CHARS: Final = 200  # maximum length of a name to compare with a misspelt one
_SHOWN: Final = 12
_SHOWN_CHARS: Final = 80


def listed(columns: Sequence[str]) -> str:
    """Return a phrase that lists the first columns: `id, question and 3 more`."""
    shown = ", ".join(one[:_SHOWN_CHARS] for one in columns[:_SHOWN]) or "no columns"
    return f"{shown} and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else shown


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name among `names` that is closest to an unknown name; None if no name is close."""
    return _nearest(name[:_NAME_CHARS], tuple(one for one in islice(names, MOST_COLUMNS) if len(one) <= _NAME_CHARS))


@lru_cache(32)  # the cache helps because the rows of a job usually lack the same column
def _nearest(name: str, names: tuple[str, ...]) -> str | None:
    known = {plain(one): one for one in names}
    wanted = plain(name)
    found = wanted if wanted in known else nearest_name(wanted, known)
    return None if found is None else known[found]


def suggest_mapping(
    columns: Sequence[str], reads: Iterable[str], rows: Sequence[dict[str, Any]], *, generated: bool = False
) -> dict[str, str]:
    """Return a source for each row field, if a column fits: `{"outputs": "answer", "inputs.gold": "expected"}`.

    Args:
      columns: Names of the columns.
      reads: Keys of the inputs that evaluators read.
      rows: The first records.
      generated: Whether a model writes the outputs.
    """
    if "inputs" in columns or "variables" in columns:  # these are rows in the API's own form
        return {}
    output = None if generated else output_column(columns, rows)
    found = {} if output in (None, "outputs", "output") else {"outputs": str(output)}
    for name in dict.fromkeys(reads):
        source = None if name in columns else _likeliest(name, columns, output)
        if source is not None:
            found[name if name == "correct_answer" else f"inputs.{name}"] = source
    return found


def output_column(
    columns: Sequence[str],
    rows: Sequence[dict[str, Any]] = (),
    *,
    read: Iterable[str] = (),
    taken: Iterable[str] = (),
) -> str | None:
    """Return the column that most likely has the outputs, never one with inputs or expected answers.

    Args:
      columns: Names of the columns.
      rows: The first records.
      read: Names by which the code reads the outputs; a column with such a name comes first.
      taken: Columns that the code reads as something else.
    """
    expected = [one for one in columns if _is_expected(one)]
    others = {*taken, *expected}
    wanted = {form for name in read for form in (plain(name), plain(name).removesuffix("s"))}
    free = [one for one in columns if one not in others and not _is_other(one)]
    if (same := next((one for one in free if plain(one) in wanted), None)) is not None:
        return same
    by_name = {plain(one): one for one in reversed(free)}
    named = next((by_name[name] for name in _OUTPUTS if name in by_name), None)
    like = named or next((one for one in free if _LIKE_OUTPUTS.search(plain(one))), None)
    return like or _by_values(free, expected, rows)


def expected_column(columns: Sequence[str]) -> str | None:
    """Return the first column that seems to have expected answers."""
    return next(filter(_is_expected, columns), None)


def _by_values(free: Sequence[str], expected: Sequence[str], rows: Sequence[dict[str, Any]]) -> str | None:
    """Return the column that sometimes equals the expected answers, or else the only column with long text."""
    agreeing = Counter[str]()
    for row in rows:
        truths = {_text(row.get(truth)) for truth in expected}
        agreeing.update(one for one in free if _text(row.get(one)) in truths)
    best = max(free, key=lambda one: agreeing[one], default=None)
    if best is not None and agreeing[best]:
        return best
    texts = [one for one in free if _mean_chars([row.get(one) for row in rows]) >= _TEXT_CHARS]
    return texts[0] if len(texts) == 1 else None


def _text(value: Any) -> str:
    return str(value)[:_CHARS].strip().casefold()


def _mean_chars(values: Sequence[Any]) -> float:
    texts = [one for one in values if isinstance(one, str)]
    return sum(map(len, texts)) / len(texts) if len(texts) * 2 > len(values) else 0.0


def _is_expected(column: str) -> bool:
    name = plain(column)
    return bool(_EXPECTED.search(name)) or (meaning(column) == EXPECTED and name not in _OUTPUTS)


def _is_other(column: str) -> bool:
    """Return whether a column's name shows that it contains inputs or facts about the row, not outputs."""
    name = plain(column)
    if name in _OF_THE_ROW or meaning(column) in ("inputs", "trace"):
        return True
    return any(name in words for words in ALIKE) or name.endswith(("id", "question", "prompt", "query"))


def _likeliest(name: str, columns: Sequence[str], output: str | None) -> str | None:
    wanted = plain(name)
    same = next((one for one in columns if plain(one) == wanted), None)
    if same is not None or wanted in _OUTPUTS[:2]:
        return same or output
    return alike(name, (one for one in columns if one != output))
