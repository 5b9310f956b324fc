"""Suggests the key that was probably meant, if code failed or gave no score because of a misspelt key.

The runner's facts about the code show which keys it reads. The text of the code is not searched.
"""

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from evaluator_host.engine.contracts.reads import functions
from evaluator_host.engine.contracts.table import dialect_of
from evaluator_host.types.evaluator import Json, Language, Row
from evaluator_host.types.names import nearest_name
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Loaded

_UNDEFINED: Final = re.compile(
    r"^Cannot read properties of (?:undefined|null)|is not (?:a function|iterable)$|^undefined is not"
    r"|^'(?:NoneType|dict|str|list)' object |returned nothing \((?:undefined|None)\)"
)
"""Error messages of code that used a value that the row does not have."""
_OF_TEXT: Final = {
    "python": tuple(name for name in dir(str) if not name.startswith("_")),
    "javascript": (
        *("length", "at", "charAt", "charCodeAt", "codePointAt", "concat", "endsWith", "includes", "indexOf"),
        *("lastIndexOf", "localeCompare", "match", "matchAll", "normalize", "padEnd", "padStart", "repeat", "replace"),
        *("replaceAll", "search", "slice", "split", "startsWith", "substring", "toLowerCase", "toString"),
        *("toUpperCase", "trim", "trimEnd", "trimStart"),
    ),
}
_OF_OBJECTS: Final = frozenset({*dir(dict), "hasOwnProperty", "toString", "valueOf", "toJSON", "constructor"})
_TOPS: Final = 3
_SHOWN: Final = 12  # maximum number of keys of an object that a hint lists
_LACKING: Final = 8  # maximum number of missing keys to compare with a row's own keys; each takes milliseconds
_NODES: Final = 300  # maximum number of values in a row to search for a key whose position is not known


def misspelt_key(error: EvaluationError, row: Row, loaded: Loaded, language: Language) -> str | None:
    """Return a hint with the nearest key, if the code reads a key that the row lacks.

    Return None if a misspelt key cannot be the cause.
    """
    key = error.message.strip("'\"") if error.type == "KeyError" else None
    if key is None and error.code != ErrorCode.NON_FINITE and not _UNDEFINED.search(error.message):
        return None
    lacking = (
        (place, value, read)
        for place, value, read in _reads(row, loaded)
        if key in (None, read) and not _has(value, read, language)
    )
    for place, value, read in islice(lacking, _LACKING):
        if (meant := nearest_name(read, _known(value, language))) is not None:
            return _meant(place, read, meant, value)
    return None if key is None else _deeper(key, row)


def _reads(row: Row, loaded: Loaded) -> Iterator[tuple[str, Json, str]]:
    """Yield each key that the code reads from an argument: the parameter's name, the argument, and the key."""
    for function in functions(loaded):
        places = dialect_of(loaded.contract).positions or tuple(one.name for one in function.parameters)
        for place, one in zip(places, function.parameters, strict=False):
            value: Json = {"inputs": row.inputs, "outputs": row.outputs, "output": row.outputs}.get(place)
            yield from ((one.name, value, key) for key in one.keys)


def _has(value: Json, read: str, language: Language) -> bool:
    return read in _known(value, language) or (isinstance(value, dict) and read in _OF_OBJECTS)


def _known(value: Json, language: Language) -> Collection[str]:
    if isinstance(value, dict):
        return value
    if isinstance(value, str):
        return _OF_TEXT[language.runner]
    return ()


def _deeper(key: str, row: Row) -> str | None:
    """Return a hint if a nested object in the row has a similar key; facts about the code do not cover such keys."""
    left: list[tuple[str, Json]] = [("inputs", row.inputs), ("outputs", row.outputs), ("variables", row.variables)]
    found: dict[str, tuple[str, Json]] = {}
    for at, (place, value) in enumerate(left):
        if isinstance(value, list) and value:
            left.append((f"{place}[0]", value[0]))
        if not isinstance(value, dict):
            continue
        left.extend([(f"{place}['{name}']", one) for name, one in value.items()][: max(0, _NODES - len(left))])
        if at >= _TOPS:
            found.update((name, (place, value)) for name in value if name not in found)
    meant = None if key in found else nearest_name(key, found)
    return None if meant is None else _meant(found[meant][0], key, meant, found[meant][1])


def _meant(place: str, read: str, meant: str, value: Json) -> str:
    """Return a hint that suggests the nearest key.

    It also lists the object's other keys, because another key may be meant.
    """
    others = [one for one in value if one != meant] if isinstance(value, dict) else []
    more = ", …" if len(others) > _SHOWN else ""
    listed = f" It also has {', '.join(map(str, others[:_SHOWN]))}{more}" if others else ""
    return f"`{place}` has no `{read}`: did you mean `{meant}`?{listed}"
