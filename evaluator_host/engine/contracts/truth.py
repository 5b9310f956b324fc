"""Warns about a row that has the expected answer in another column than the one that its dialect takes it from."""

import re
from functools import lru_cache
from itertools import islice
from typing import Final

from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.reads import functions
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.engine.contracts.words import EXPECTED, meaning
from evaluator_host.types.evaluator import Evaluator, Row
from evaluator_host.types.outcome import Loaded, Note, ParameterFacts

_MOST_CHARS: Final = 50_000  # longest code that is searched
_MOST_NAMED: Final = 1000  # occurrences of a name that are examined
_MOST_ASSIGNED: Final = 5  # names that are assigned a value
_BEFORE_CHARS: Final = 80  # characters before a name, which show what it is read from
_OWNER: Final = re.compile(r"(\w*)['\"]?[\])?!]*\s*(?:\??\.(?:get\(['\"])?|\[['\"])$")
_GETATTR: Final = re.compile(r"\bgetattr\((\w+),\s*['\"]$")
_STATEMENT: Final = re.compile(r"(?m)^[ \t]*(?:\} ?)?(?:else )?((?:if|elif)\b[^\n]*)")
_VALUE: Final = r"\bNAME['\"]?[\])]*(?:\??\.\w+\b(?!\()|\[['\"]\w+['\"]\])?"  # the name, or a part of its value
_WHOLE: Final = rf"(?:[\w.$?\[\]'\"]|\.get\(){{0,80}}?{_VALUE}"  # the value together with what it is read from
_ASSIGNED: Final = (
    r"(?m)^[ \t]*(?:(?:const|let|var) )?(\w+)(?: ?:[^=\n]{0,80})? ?= ?"
    rf"{_WHOLE}(?: (?:or|if|\?\?|\|\|) [^\n]{{0,80}})?;? ?$"
)
_ASKED: Final = (
    rf"(?m)(?:\b(?:if|elif|while|not|assert|and|or)\b|!|&&|\|\|)[\s(]*{_WHOLE}"
    r"\s*(?::|\)|\]|\band\b|\bor\b|\belse\b|&&|\|\||\?(?![.?])|$)"
)
_TESTED: Final = (
    rf"{_VALUE}\s*(?:is\s+(?:not\s+)?None|[!=]==?\s*(?:None|null|undefined))\b",
    r"['\"]NAME['\"]\s+(?:not\s+)?in\b",
    _ASKED,
    rf"(?:\breturn\s|=>|(?<![=!<>])=(?!=)|[(,:])\s*{_WHOLE}\s*\?(?![.?])",
)


def missing_truth(evaluator: Evaluator, loaded: Loaded, row: Row) -> tuple[Note, ...]:
    """Return a warning if the code reads the expected answer, and the row has it in a column that is not passed."""
    key, code, dialect = evaluator.settings.correct_answer_key, evaluator.code, dialect_of(loaded.contract)
    names = (*dialect.truth, *dialect.truth_or_column)
    if not names or row.variables is not None or key in row.inputs or len(code) > _MOST_CHARS:
        return ()
    there = [name for name, value in row.inputs.items() if value is not None and meaning(name) == EXPECTED]
    if not there:
        return ()
    parameters = tuple(one for function in functions(loaded) for one in function.parameters)
    read = [name for name in names if _is_read(name, parameters, code)]
    given = any(_is_given(name, dialect, row, parameters, code) for name in (*read, *there))
    if not read or given or any(_is_tested(name, code) for name in read):
        return ()
    columns = ", ".join(f"`{name[:80]}`" for name in there[:5])
    message = f"the code reads `{read[0]}`, which is the column `{key}`: the row has {columns} instead"
    return (Note("missing_column", message, f"map the column: {key}={there[0][:80]}"),)


def _is_given(name: str, dialect: Dialect, row: Row, parameters: tuple[ParameterFacts, ...], code: str) -> bool:
    """Return whether the code gets a column that it reads under the column's own name."""
    if all(row.inputs.get(one) is None for one in (name, name.removesuffix("s"))):
        return False
    if any(map(_has_columns, _owners(name, code))):
        return True
    return bool(dialect.truth_or_column) and name not in dialect.truth and _is_read(name, parameters, code)


@lru_cache(maxsize=256)
def _is_read(name: str, parameters: tuple[ParameterFacts, ...], code: str) -> bool:
    of, _, key = name.rpartition(".")
    if of:
        return any(one.name == of and key in one.keys for one in parameters)
    if any((one.read and one.name == name) or (name in one.keys and not _has_columns(one.name)) for one in parameters):
        return True
    return not all(map(_has_columns, _owners(name, code)))


@lru_cache(maxsize=256)
def _owners(name: str, code: str) -> tuple[str, ...]:
    """Return the objects from which the code reads a key or an attribute of this name."""
    found = []
    for one in islice(re.finditer(rf"\b{re.escape(name)}\b", code), _MOST_NAMED):
        before = code[max(0, one.start() - _BEFORE_CHARS) : one.start()]
        if (owner := _OWNER.search(before) or _GETATTR.search(before)) and owner[1] not in ("self", "this"):
            found.append(owner[1])
    return tuple(found)


def _has_columns(name: str) -> bool:
    """Return whether a value that is called so has the columns of a row, by their own names."""
    return meaning(name) == "inputs" or name == "metadata" or name.endswith("variables")


@lru_cache(maxsize=256)
def _is_tested(name: str, code: str) -> bool:
    """Return whether the code asks if there is a value, or a statement asks it of the object that would have it."""
    of, _, key = name.rpartition(".")
    value = rf"{of}[\])]*(?:\??\.(?:get\()?|\[)['\"]?{key}" if of else name
    assigned = [*dict.fromkeys(re.findall(_ASSIGNED.replace("NAME", value), code))][:_MOST_ASSIGNED]
    if any(re.search(one.replace("NAME", each), code) for each in (value, *assigned) for one in _TESTED):
        return True
    statements = "\n".join(_STATEMENT.findall(code))
    owners = {of} if of else set(_owners(name, code)) - {""}
    return any(re.search(one.replace("NAME", each), statements) for each in owners for one in _TESTED)
