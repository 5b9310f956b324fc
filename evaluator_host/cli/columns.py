"""From one record of a data file to a row: which column goes to which field.

A record with an object under `inputs` (or `variables`) is a row as the API takes it. Any other record is flat: every
column is in `inputs`, `outputs` (or `output`) is also the outputs, and an object under `trace` is also the trace.
"""

from dataclasses import dataclass
from typing import Any, Final

from evaluator_host.errors import InvalidRequest, Problem
from evaluator_host.model import Row

_MISSING: Final = object()  # a column that is not there, where null is a value

ROW_FIELDS: Final = ("inputs", "outputs", "trace", "variables", "criteria")
_WHOLE: Final = ("outputs", "trace", "criteria")  # fields that a mapping sets
_KEYED: Final = ("inputs", "variables")  # fields in which a mapping sets one key


class BadRow(Exception):
    """A record that is no row; `str` says why."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """Where row fields come from: `outputs=answer`, `inputs.correct_answer=expected`, `variables.target=meta.gold`."""

    columns: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, pairs: list[str]) -> "Mapping":
        """Return the mapping of `FIELD=COLUMN` texts.

        Raises:
          InvalidRequest: one is no such text, or sets what no row has.
        """
        bad = [pair for pair in pairs if not _is_mapping(pair)]
        if bad:
            hint = f"FIELD is {', '.join(_WHOLE)}, inputs.NAME or variables.NAME; --map outputs=answer"
            raise InvalidRequest(
                "a mapping cannot be taken",
                problems=tuple(Problem("--map", f"{pair!r} is not FIELD=COLUMN", hint) for pair in bad),
            )
        return cls(tuple((field, column) for field, _, column in (pair.partition("=") for pair in pairs)))


def to_row(record: Any, mapping: Mapping) -> Row:
    """Return the row of a record.

    Raises:
      BadRow: it is no object, or a field or mapped column is not what it must be.
    """
    if not isinstance(record, dict):
        raise BadRow(f"a row is an object, not {type(record).__name__}")
    fields = _row_fields(record) if is_row(record) else _flat_fields(record)
    for target, column in mapping.columns:
        value = _column(record, column)
        field, _, key = target.partition(".")
        if key:
            fields[field] = {**(fields.get(field) or {}), key: value}
        else:
            fields[field] = value
    for field in ("trace", "variables"):
        if fields.get(field) is not None and not isinstance(fields[field], dict):
            raise BadRow(f"{field} must be an object, not {type(fields[field]).__name__}")
    return Row(**fields)


def is_row(record: dict[str, Any]) -> bool:
    """Whether a record is a row as the API takes it."""
    return isinstance(record.get("inputs"), dict) or isinstance(record.get("variables"), dict)


def _row_fields(record: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {name: record[name] for name in ROW_FIELDS if name in record}
    if not isinstance(fields.get("inputs", {}), dict):
        raise BadRow(f"inputs must be an object, not {type(fields['inputs']).__name__}")
    if "outputs" not in fields and "output" in record:
        fields["outputs"] = record["output"]
    return fields


def _flat_fields(record: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {"inputs": dict(record)}
    for name in ("outputs", "output"):
        if name in record:
            fields["outputs"] = record[name]
            break
    if isinstance(record.get("trace"), dict):
        fields["trace"] = record["trace"]
    return fields


def _column(record: dict[str, Any], column: str) -> Any:
    """Return a column by its name, or by a dotted path into nested objects."""
    if column in record:
        return record[column]
    value: Any = record
    for part in column.split("."):
        value = value.get(part, _MISSING) if isinstance(value, dict) else _MISSING
        if value is _MISSING:
            raise BadRow(f"there is no column {column!r}")
    return value


def _is_mapping(pair: str) -> bool:
    target, equals, column = pair.partition("=")
    field, dot, key = target.partition(".")
    known = field in _WHOLE if not dot else bool(field in _KEYED and key)
    return bool(equals and column and known)
