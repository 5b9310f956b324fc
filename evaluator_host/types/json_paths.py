"""Walks JSON values, and writes paths of values inside them: `$.a[0]["not a name"]`."""

import json
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

Path: TypeAlias = "tuple[Path, str | int] | None"
"""The path of the object or list that contains a value, and the key or position of the value; None for the whole
value."""

_CHARS: Final = 200
_KEY_CHARS: Final = 100


def places(value: Any) -> Iterator[tuple[Path, Any]]:
    """Yield a value and all values inside it, in the order of their JSON, without recursion."""
    rest: list[tuple[Path, Any]] = [(None, value)]
    while rest:
        place = path, one = rest.pop()
        yield place
        if isinstance(one, dict):
            rest += [((path, key), item) for key, item in reversed(one.items())]
        elif isinstance(one, list | tuple):
            rest += [((path, at), one[at]) for at in range(len(one) - 1, -1, -1)]


def steps_of(path: Path) -> list[str | int]:
    """Return the keys and list positions that lead to a value."""
    steps = list[str | int]()
    while path is not None:
        path, step = path
        steps.append(step)
    return steps[::-1]


def render_path(path: Path) -> str:
    """Return a path as a string; for a long path, only its beginning."""
    text = "$" + "".join(map(_step, steps_of(path)))
    return text if len(text) <= _CHARS else text[:_CHARS] + "…"


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    step = step[:_KEY_CHARS].encode("utf-8", "replace").decode()
    return f".{step}" if step.isidentifier() else f"[{json.dumps(step, ensure_ascii=False)}]"
