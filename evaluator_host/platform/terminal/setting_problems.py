"""Says which part of a setting is invalid and what was probably meant.

Never shows a value that may contain a secret.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Final, get_args, get_origin, get_type_hints

from pydantic import BaseModel, SecretStr
from pydantic_settings import SettingsError

from evaluator_host.engine.config.settings import Settings, value_of, variable_of
from evaluator_host.types.errors import Problem
from evaluator_host.types.names import what_was_meant

_UNKNOWN: Final = ("extra_forbidden", "unexpected_keyword_argument")
_TOO_SHORT: Final = "too_short"


def setting_problem(fault: Any, given: Mapping[str, Any]) -> Problem:
    """Convert a fault that pydantic found in the settings to a problem; `given` has the settings from options."""
    loc = fault["loc"]
    name = str(loc[0]) if loc else "settings"
    source = f"--{name.replace('_', '-')}" if name in given else variable_of(name)
    path, kind = ".".join(map(str, loc[1:])), _type_at(loc)
    start = f"{path}: " if path else ""
    if fault["type"] in _UNKNOWN:
        known = list(_fields(_type_at(loc[:-1])))
        meant = what_was_meant(str(loc[-1]), known, otherwise="check its spelling.")
        return Problem(source, f"{start}this field is unknown; {meant} The fields are {', '.join(known)}")
    if fault["type"] == "missing":
        return Problem(source, f"{start}this field is required")
    if fault["type"] == "tuple_type" and isinstance(fault["input"], str) and not path:
        return _not_json(name)
    if fault["type"] == _TOO_SHORT and kind is SecretStr:
        return Problem(source, f"{start}must have at least {fault['ctx']['min_length']} characters")
    if fault["type"] == "value_error":  # raised by a check of this host, whose message names the value if it may
        return Problem(source, f"{start}{fault['ctx']['error']}")
    shown = f", not {fault['input']!r}" if _may_show(kind, fault["input"]) else ""
    return Problem(source, f"{start}{fault['msg']}{shown}")


def not_json(error: SettingsError) -> Problem:
    """Return the problem for a list or an object that is not JSON."""
    # the message is `error parsing value for field "judge_hosts" from source …`
    return _not_json(str(error).split('"')[1])


def _not_json(name: str) -> Problem:
    if get_origin(_type_at((name,))) is not tuple:
        return Problem(variable_of(name), "this is not JSON; write an object: {…}")
    entries = [one.strip() for one in value_of(name).strip("[]").split(",")]
    return Problem(variable_of(name), f"this is not JSON; did you mean {json.dumps(entries)}?")


def _may_show(kind: Any, value: Any) -> bool:
    """Return whether a value may be shown: neither the value nor any of its fields or keys can be secret."""
    return kind is not SecretStr and not _fields(kind) and get_origin(kind) is not dict and not isinstance(value, dict)


def _type_at(loc: Sequence[str | int]) -> Any:
    """Return the type of the value at this path of the settings; None if the path does not lead to a known field."""
    kind: Any = Settings
    for part in loc:
        kind = get_args(kind)[1] if get_origin(kind) is dict else _fields(kind).get(str(part))
        kind = _without_none(kind)
    return kind


def _fields(kind: Any) -> dict[str, Any]:
    """Return the fields of a model or dataclass with their types; none for other types."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    return get_type_hints(kind) if isinstance(kind, type) and is_dataclass(kind) else {}


def _without_none(kind: Any) -> Any:
    """Return the type T of `T | None`."""
    others = [one for one in get_args(kind) if one is not type(None)]
    return others[0] if type(None) in get_args(kind) and len(others) == 1 else kind
