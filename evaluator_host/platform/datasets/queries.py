"""Searches, compares and edits the rows of data sets, and describes their columns. Runs in limited processes."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from evaluator_host.platform.datasets.files import RowLimits, write_rows
from evaluator_host.platform.datasets.readers import Record
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import Json
from evaluator_host.types.groups import Numbers
from evaluator_host.types.json_values import decode_json, encode_json, value_at
from evaluator_host.types.numbers import parsed
from evaluator_host.types.stored import (
    ColumnFacts,
    DatasetFacts,
    FoundRow,
    FoundRows,
    RowChange,
    RowChanges,
    TopValue,
)

_CONDITION: Final = re.compile(r"(?P<column>[^=!<>~]+)(?P<sign>!=|>=|<=|=|~|>|<)(?P<value>.*)", re.DOTALL)
# integers are compared as integers, because a float cannot represent all ids over 2**53
_WHOLE: Final = re.compile(r"\s*[+-]?\d+\s*")
_PAGE_BYTES: Final = 4 << 20
_COLUMNS: Final = 200
_DISTINCT: Final = 10_000
_TOP: Final = 5
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a column: `score>=0.5`, `city=Rome`, `city!=Rome`, `answer~paris` (contains; case is ignored)."""

    column: str
    sign: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Parse a condition such as `city=Rome`.

        Raises:
          InvalidRequest: the string is not a condition.
        """
        found = _CONDITION.fullmatch(text)
        if found is None:
            hint = "write a column, one of = != ~ > < >= <=, and a value: city=Rome, answer~paris, meta.score>=0.5"
            raise InvalidRequest(
                f"{text[:80]!r} is not a condition", problems=(Problem("where", "is not a condition", hint),)
            )
        return cls(found["column"].strip(), found["sign"], found["value"].strip())

    def holds(self, row: dict[str, Any]) -> bool:
        """Return whether a row meets the condition.

        `<` and `>` compare numbers, `=` compares numbers or strings, and `~` compares strings.
        """
        value = value_at(row, self.column)
        if self.sign in ("=", "!="):
            return (_text(value) == self.value or _number(value) == _number(self.value) is not None) == (
                self.sign == "="
            )
        if self.sign == "~":
            return self.value.lower() in _text(value).lower()
        one, other = _number(value), _number(self.value)
        if one is None or other is None:
            return False
        return {">": one > other, "<": one < other, ">=": one >= other, "<=": one <= other}[self.sign]


def has_text(value: Any, text: str) -> bool:
    """Return whether a value contains the text, in upper or lower case. Names of columns and keys are not searched."""
    wanted, left = text.casefold(), [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
        elif one is not None and not isinstance(one, bool) and wanted in str(one).casefold():
            return True
    return False


def encoded_answer(query: Callable[..., object], file: Path, *args: Any) -> bytes:
    """Return the answer of one of the functions below as JSON, because only the caller of the host reads it.

    In the host, decoding an answer with millions of values would stop all threads for seconds.
    """
    return encode_json(query(file, *args))


def search_rows(
    file: Path, text: str, conditions: Sequence[Condition], sort: str | None, first: int, limit: int
) -> FoundRows:
    """Return the rows in a file of JSON lines that contain `text` (see `has_text`) and meet all conditions.

    `sort` is a column, with `-` before it for descending order; rows without a value come last. The first `first` rows
    that match are left out. At most `limit` rows are returned, or fewer once they have 4 MB.
    """
    places, numbers, keys = array("Q"), array("Q"), list[tuple[Any, ...]]()
    with file.open("rb") as lines:
        place = 0
        for number, line in enumerate(lines):
            row = decode_json(line) if text or conditions or sort else {}
            if (not text or has_text(row, text)) and all(one.holds(row) for one in conditions):
                places.append(place)
                numbers.append(number)
                if sort:
                    keys.append(_order(value_at(row, sort.removeprefix("-"))))
            place += len(line)
        order = range(len(places))
        chosen = order if sort is None else _sorted(keys, descending=sort.startswith("-"))
        found, held = list[FoundRow](), 0
        for at in chosen[first : first + limit]:
            lines.seek(places[at])
            line = lines.readline()
            held += len(line)
            if found and held > _PAGE_BYTES:
                break
            found.append(FoundRow(numbers[at], decode_json(line)))
    return FoundRows(tuple(found), len(places))


def compare_rows(file: Path, other: Path, first: int, limit: int) -> RowChanges:
    """Return how the rows of `other` differ from those of `file`, in the order of `other`.

    If a row was removed and another row was added in its place, this counts as one changed row. The first `first`
    differences are left out. At most `limit` differences are returned, or fewer once their rows have 4 MB.
    """
    old, new = _Lines.of(file), _Lines.of(other)
    found, kinds, held = list[RowChange](), Counter[str](), 0
    with file.open("rb") as before, other.open("rb") as after:
        for one, two in _differing(old.hashes, new.hashes):
            kind = "added" if one is None else "removed" if two is None else "changed"
            at = kinds.total()
            kinds[kind] += 1
            if first <= at < first + limit and held <= _PAGE_BYTES:
                texts = old.line(before, one), new.line(after, two)
                held += sum(map(len, texts))
                rows = [decode_json(text) if text else None for text in texts]
                number = two if two is not None else cast("int", one)
                found.append(RowChange(kind, number, *rows))
    return RowChanges(tuple(found), kinds["changed"], kinds["added"], kinds["removed"])


@dataclass(slots=True)
class _Lines:
    """For each line in a file, its offset and a hash."""

    places: "array[int]"
    hashes: list[int]

    @classmethod
    def of(cls, file: Path) -> "_Lines":
        found = cls(array("Q"), [])
        place = 0
        with file.open("rb") as lines:
            for line in lines:
                found.places.append(place)
                found.hashes.append(hash(line))
                place += len(line)
        return found

    def line(self, lines: BinaryIO, number: int | None) -> bytes:
        if number is None:
            return b""
        lines.seek(self.places[number])
        return lines.readline()


def _differing(old: list[int], new: list[int]) -> Iterator[tuple[int | None, int | None]]:
    """Yield the numbers of rows that differ, as `(old, new)`. One number is None if the row was added or removed."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    end = next((at for at in range(shorter - start) if old[-1 - at] != new[-1 - at]), shorter - start)
    matcher = SequenceMatcher(None, old[start : len(old) - end], new[start : len(new) - end])
    for kind, *places in matcher.get_opcodes():
        if kind != "equal":
            one, one_end, two, two_end = (place + start for place in places)
            for pair in zip_longest(range(one, one_end), range(two, two_end)):
                # rows that occur often may be paired by position, so both rows of a pair may be equal, which is not a
                # difference
                if None in pair or old[pair[0]] != new[pair[1]]:
                    yield pair


def describe_columns(file: Path) -> list[ColumnFacts]:
    """Return statistics of the columns in a file of JSON lines: the first 200 columns, in the order of the file."""
    columns: dict[str, _Column] = {}
    rows = 0
    with file.open("rb") as lines:
        for line in lines:
            rows += 1
            for name, value in decode_json(line).items():
                if name not in columns and len(columns) < _COLUMNS:
                    columns[name] = _Column()
                if name in columns:
                    columns[name].note_value(value)
    return [column.facts(name, rows) for name, column in columns.items()]


@dataclass(slots=True)
class _Column:
    kinds: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)
    is_complete: bool = True
    empty: int = 0
    numbers: Numbers = field(default_factory=Numbers)
    shortest: int | None = None
    longest: int | None = None

    def note_value(self, value: Any) -> None:
        kind = _kind(value)
        self.kinds[kind] += 1
        if kind == "null":
            return
        text = _text(value)
        # the hash distinguishes long texts with the same beginning
        text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}{hash(text)}"
        if text in self.values or len(self.values) < _DISTINCT:
            self.values[text] += 1
        else:
            self.is_complete = False
        if (number := _number(value)) is not None:
            self.numbers.add(number)
        if isinstance(value, str):
            self.empty += not value
            self.shortest = len(value) if self.shortest is None else min(self.shortest, len(value))
            self.longest = max(self.longest or 0, len(value))

    def facts(self, name: str, rows: int) -> ColumnFacts:
        present = self.kinds.total() - self.kinds["null"]
        is_number = self.numbers.count == present > 0
        return ColumnFacts(
            name=name,
            present=present,
            missing=rows - present,
            kinds=dict(self.kinds.most_common()),
            distinct=len(self.values) if self.is_complete else None,
            top=tuple(TopValue(value[:_SHOWN], count) for value, count in self.values.most_common(_TOP)),
            min=self.numbers.min if is_number else None,
            max=self.numbers.max if is_number else None,
            mean=self.numbers.mean() if is_number else None,
            min_length=self.shortest,
            max_length=self.longest,
            empty=self.empty,
        )


def encode_edits(
    changed: dict[int, dict[str, Json]], removed: Sequence[int], added: Sequence[dict[str, Json]]
) -> bytes:
    """Encode an edit as JSON for `edit_rows`, because bytes can be sent to another process quickly. Blocking."""
    return encode_json([list(changed.items()), list(removed), list(added)])


def edit_rows(
    stage: Path,
    file: Path,
    edits: bytes,
    format_: str,
    limits: RowLimits,
) -> DatasetFacts:
    """Edit the rows in a file of JSON lines, write them into a folder (see `write_rows`), and return facts about them.

    `edits` is JSON, see `encode_edits`. Row numbers begin at 0.

    Raises:
      InvalidRequest: a row to change or remove does not exist, or no row is left.
    """
    pairs, removed, added = decode_json(edits)
    changed = dict(pairs)
    gone = frozenset(removed)
    unknown = {*changed, *gone}

    def rows() -> Iterator[Record]:
        count = 0
        with file.open("rb") as lines:
            for count, line in enumerate(lines, start=1):
                unknown.discard(count - 1)
                if count - 1 not in gone:
                    yield count, changed[count - 1] if count - 1 in changed else decode_json(line)
        yield from enumerate(added, start=count + 1)

    facts = write_rows(stage, rows(), format_=format_, limits=limits)
    if unknown:
        raise InvalidRequest(f"the data set has no row {min(unknown)}; rows are numbered from 0")
    if facts.bad_rows:
        raise InvalidRequest(f"a row is not valid: {facts.bad_lines[0].message}")
    return facts


def _sorted(keys: list[tuple[Any, ...]], *, descending: bool) -> Sequence[int]:
    present = [at for at, key in enumerate(keys) if key]
    present.sort(key=keys.__getitem__, reverse=descending)
    return [*present, *(at for at, key in enumerate(keys) if not key)]


def _order(value: Any) -> tuple[Any, ...]:
    """Return the key by which a value is sorted: numbers before strings. The key is empty if there is no value."""
    if value is None:
        return ()
    number = _number(value)
    return (1, _text(value)) if number is None else (0, number)


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case dict():
            return "\n".join(f"{name}\n{_text(inner)}" for name, inner in value.items())
        case list():
            return "\n".join(map(_text, value))
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = parsed(value) if isinstance(value, str) else float(value)
        if number is None or not math.isfinite(number):
            return None
        return number if isinstance(value, float) or not _WHOLE.fullmatch(str(value)) else int(value)
    except (OverflowError, ValueError):  # Python refuses to read thousands of digits as an int, even if they are zeros
        return None


def _kind(value: Any) -> str:
    kinds = {bool: "bool", int: "number", float: "number", str: "text", list: "list", dict: "object"}
    return kinds.get(type(value), "null")
