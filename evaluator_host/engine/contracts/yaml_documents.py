"""Reads YAML and JSON of limited size as the platforms' own programs do: as YAML 1.2, with PyYAML's safe loader.

PyYAML by default reads YAML 1.1, in which `no` is false, `1:30` is 90 and `2024-01-01` is a date.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, ClassVar, Final

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Json

# maximum number of values in a document; with aliases, a short document may stand for millions
_MOST_VALUES: Final = 1_000_000
_DEEPEST: Final = 100


_TYPES: Final = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("merge", r"<<", "<"),
)


@cache
def _loader() -> Any:
    """Return a safe loader with the types of YAML 1.2's core schema; it uses libyaml, which is twice as fast."""
    import yaml  # noqa: PLC0415 - few processes read YAML

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc] # PyYAML has no types
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for name, pattern, first in _TYPES:
        Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{pattern})\Z"), ["" if one == "\0" else one for one in first]
        )
    Loader.add_constructor("tag:yaml.org,2002:int", _integer)
    return Loader


def _integer(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def read_yaml(text: str) -> Json:
    """Return the value in a YAML or JSON string.

    Raises:
      InvalidRequest: the string is not valid, or has several documents, a tag for objects of a programming language, or
        too many values.
    """
    import yaml  # noqa: PLC0415 - few processes read YAML

    try:
        # checked before `load`, because `load` would overflow the stack on deep nesting
        _require_shallow(yaml.parse(text, _loader()))
        value = yaml.load(text, _loader())  # noqa: S506 - a subclass of the safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1})" if mark is not None else ""
        what = getattr(error, "problem", None) or str(error).partition("\n")[0] or "the text is nested too deeply"
        raise InvalidRequest(f"the text is not valid YAML or JSON{place}: {what}") from error
    # errors from PyYAML's functions that convert tagged values
    except (LookupError, ArithmeticError, AttributeError, TypeError) as error:
        message = "the text is not valid YAML or JSON: a value does not fit its tag, such as !!bool; leave out the tag"
        raise InvalidRequest(message) from error
    _require_plain(value)
    return value


def _require_shallow(events: Iterable[Any]) -> None:
    import yaml  # noqa: PLC0415 - few processes read YAML

    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise InvalidRequest(f"the YAML is nested more than {_DEEPEST} levels deep; write it with fewer levels")


def _require_plain(value: Any) -> None:
    """Check that a value can be written as JSON of a reasonable size."""
    count, level = 0, [value]
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                for key in [key for key in one if not isinstance(key, str)]:
                    one[str(key)] = one.pop(key)
                below += one.values()
            elif isinstance(one, list):
                below += one
            elif not isinstance(one, str | int | float | bool | None):
                kind = type(one).__name__
                raise InvalidRequest(f"the text has a value of type {kind}, which JSON does not have; write a string")
            if len(below) > _MOST_VALUES:
                break
        count += len(below)
        if count > _MOST_VALUES:
            raise InvalidRequest(f"the YAML has more than {_MOST_VALUES:,} values; shorten it")
        if not below:
            return
        level = below
    raise InvalidRequest(f"the YAML is nested more than {_DEEPEST} levels deep; write it with fewer levels")
