"""How deep a decoded JSON value nests: the one measure for returned values, trace attributes and rows."""

from typing import Any, Final

VALUE_DEPTH: Final = 64  # levels a returned value may have (runtimes/PROTOCOL.md)


def nests_within(value: Any, levels: int) -> bool:
    """Whether a value has at most so many levels of lists and objects; walks layer by layer, never recursing."""
    layer = [value]
    for _ in range(levels):
        layer = [inner for item in layer if isinstance(item, dict | list) for inner in _items(item)]
        if not layer:
            return True
    return not any(isinstance(item, dict | list) for item in layer)


def _items(value: dict[str, Any] | list[Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value
