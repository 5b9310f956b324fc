"""Reads the fields of spans that came from outside, for every shape of trace: ids, numbers, attributes, spellings.

Nothing here raises: a value of the wrong type counts as absent.
"""

import base64
import binascii
import math
import re
from dataclasses import dataclass
from typing import Any, Final

ATTRIBUTE_DEPTH: Final = 16  # levels of kvlistValue and arrayValue
INTEGER: Final = re.compile(r"-?[0-9]{1,19}")

_HEX_ID: Final = re.compile(r"[0-9a-fA-F]{16}|[0-9a-fA-F]{32}")


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One span in the documented shape, not yet under its parent.

    Attributes:
      id: In hex for OTLP, else as it came; `span-<position>` for a span without one.
      parent: Id of its parent; None for a root.
      start_ns: Nanoseconds since 1970, which order siblings; 0 when unknown.
      span: `{"name", "start_time", "end_time", "status_code", "attributes", …}`.
    """

    id: str
    parent: str | None
    start_ns: int
    span: dict[str, Any]


def first_of(raw: dict[str, Any], *keys: str) -> Any:
    """Return the first of these fields that is not null, or None."""
    return next((raw[key] for key in keys if raw.get(key) is not None), None)


def as_text(value: Any) -> str | None:
    """Return a string as it is, None for anything else."""
    return value if isinstance(value, str) else None


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; an empty list for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def as_object(value: Any) -> dict[str, Any]:
    """Return an object as it is, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def number(value: Any) -> float | int | None:
    """Return a finite number below 10^18, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value if isinstance(value, float) else 0.0) and abs(value) < 1e18 else None


def identifier(value: Any) -> str | None:
    """Return an id in hex; None for no id (absent, empty, all zeros)."""
    if not isinstance(value, str) or not value.strip("0="):
        return None
    if _HEX_ID.fullmatch(value):
        return value.lower()
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value
    if len(raw) not in (8, 16):
        return value
    return raw.hex() if any(raw) else None


def attributes(raw: Any, *, depth: int = ATTRIBUTE_DEPTH) -> dict[str, Any]:
    """Return attributes by name, from an object or from OTLP's list `[{"key", "value": {"stringValue": …}}]`.

    Args:
      raw: The object or the list.
      depth: Levels of arrayValue and kvlistValue to decode; deeper values become null.
    """
    if isinstance(raw, dict):
        return {str(key): value for key, value in raw.items()}
    return {item["key"]: _value(item.get("value"), depth) for item in objects(raw) if isinstance(item.get("key"), str)}


def _value(raw: Any, depth: int) -> Any:
    """Decode an `AnyValue` of OTLP, as opentelemetry/proto/common/v1/common.proto defines it."""
    if not isinstance(raw, dict) or depth == 0:
        return raw if isinstance(raw, str | int | float | bool) else None
    for key, value in raw.items():
        kind = str(key).replace("_v", "V")
        if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue", "intValue"):
            is_text = kind == "intValue" and isinstance(value, str) and INTEGER.fullmatch(value)
            return int(value) if is_text else _value(value, 0)
        inner = value.get("values") if isinstance(value, dict) else value
        if kind == "arrayValue":
            return [_value(item, depth - 1) for item in inner] if isinstance(inner, list) else []
        if kind == "kvlistValue":
            return attributes(inner, depth=depth - 1)
    return None
