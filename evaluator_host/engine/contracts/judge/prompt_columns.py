"""Finds columns that a judge's prompt reads but rows lack, and the columns that were probably meant instead."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from evaluator_host.engine.contracts.reads import keys_read
from evaluator_host.engine.contracts.words import alike
from evaluator_host.types.evaluator import Contract, Language, Row
from evaluator_host.types.names import nearest_name
from evaluator_host.types.outcome import EvaluationError, Loaded

_UNDEFINED: Final = re.compile(r"(^|\.)UndefinedError$")
SHOWN: Final = 12
"""Maximum number of columns that a message names."""

_COLUMNS: Final = 1000  # maximum number of columns to compare with a name in the prompt
_SHOWN_CHARS: Final = 80


def lacking_column(error: EvaluationError, row: Row, loaded: Loaded) -> str | None:
    """Return a hint if a judge failed because a row lacks a column that the prompt reads; else None."""
    if loaded.contract is not Contract.JUDGE or not _UNDEFINED.search(error.type or ""):
        return None
    needed = keys_read(loaded, Language.PYTHON)
    names = lacking(needed, [row])
    if not names:
        return None
    sources = {f"inputs.{name}": meant_by(name, row.inputs, needed) for name in names[:SHOWN]}
    return f"the row lacks {quoted(names)}, which the prompt reads: {how_to_map(sources)}"


def lacking(needed: Iterable[str], rows: Sequence[Row]) -> list[str]:
    """Return the columns among `needed` that none of the rows has."""
    return [name for name in needed if not any(name in row.inputs for row in rows)]


def meant_by(name: str, columns: Iterable[str], needed: Iterable[str]) -> str:
    """Return the column that was probably meant by a name in a prompt, or `COLUMN` if no column is likely.

    A column that the prompt also reads under its own name does not count.
    """
    known = {*needed}
    free = [one for one in islice(columns, _COLUMNS) if one not in known]
    return alike(name, free) or nearest_name(name, free) or "COLUMN"


def how_to_map(sources: Mapping[str, str]) -> str:
    """Return text that shows how to map row fields to columns: as options of a command, and in JSON."""
    options = " ".join(f"--map {_option(field, source)}" for field, source in sources.items())
    pairs = ", ".join(f'"{field}": "{source}"' for field, source in sources.items())
    return f'{options} (in JSON, "mapping": {{{pairs}}})'


def quoted(names: Sequence[str]) -> str:
    """Return names as they appear in messages: `` `reference`, `tables` ``."""
    return ", ".join(f"`{name[:_SHOWN_CHARS]}`" for name in names[:SHOWN])


def _option(field: str, source: str) -> str:
    given = f"{field}={source}"
    return given if re.fullmatch(r"[\w.=-]+", given) else f"'{given}'"
