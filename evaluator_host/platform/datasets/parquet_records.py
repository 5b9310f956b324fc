"""Reads the rows of a Parquet file as JSON values.

A value that Python's types cannot hold (nanoseconds, the year 12000) is computed from the number that Arrow stores. A
row with a value that cannot be written at all becomes a `BadRow`, because the content of a file must never look like a
fault of the host.
"""

import base64
import datetime as dt
import math
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO, Final

from evaluator_host.engine.system.extras import extra
from evaluator_host.platform.datasets.mapping import BadRow
from evaluator_host.types.errors import InvalidRequest

_ROWS_AT_ONCE: Final = 16
_BATCH_BYTES: Final = 64 << 20
_SHOWN_CHARS: Final = 200
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SECOND_CHARS: Final = len("2026-01-02T03:04:05")
_DAY_S: Final = 86_400
_ERA_DAYS: Final = 146_097  # days in 400 years; the calendar repeats itself every 400 years
_ERA_START: Final = dt.date(2000, 1, 1)
_TO_ERA_START: Final = (_ERA_START - dt.date(1970, 1, 1)).days


def parquet_records(file: BinaryIO) -> Iterator[dict[str, Any] | BadRow]:
    """Yield the rows of a Parquet file as JSON values.

    Times become ISO 8601, and durations become seconds. Decimals become numbers, or text if rounding would be needed.
    Bytes become text, in base64 if they are not UTF-8. NaN and infinities become null.

    Raises:
      InvalidRequest: the file is not a Parquet file, or pyarrow is not installed.
    """
    with extra("parquet", "reading Parquet", InvalidRequest):
        import pyarrow as pa  # noqa: PLC0415 - large, and slow to import
        from pyarrow import parquet  # noqa: PLC0415
    try:
        with parquet.ParquetFile(file) as table:
            schema = table.schema_arrow
        repeated = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
        # these columns are read as dictionaries, so that a value that many rows share is decoded once
        with parquet.ParquetFile(file, read_dictionary=repeated) as table:
            for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE, use_threads=False):
                if batch.nbytes > _BATCH_BYTES:
                    raise InvalidRequest(
                        f"{_ROWS_AT_ONCE} rows of the Parquet file take {batch.nbytes >> 20} MB, more than the "
                        f"{_BATCH_BYTES >> 20} MB that can be read at once; send them as JSONL"
                    )
                # convert large rows one by one, because the JSON of each row repeats a value that many rows share
                large = batch.nbytes * _ROWS_AT_ONCE > _BATCH_BYTES
                for at in range(0, batch.num_rows, 1 if large else _ROWS_AT_ONCE):
                    yield from _records(batch.slice(at, 1 if large else _ROWS_AT_ONCE))
    except (InvalidRequest, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:  # this machine, not the file, is at fault
            raise
        message = f"the data file is not Parquet, or is damaged: {str(error)[:_SHOWN_CHARS]}"
        raise InvalidRequest(message) from error


def _records(batch: Any) -> list[dict[str, Any] | BadRow]:
    """Convert the rows of a batch to JSON values: together or, if a row cannot be written as JSON, one by one."""
    names = batch.schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidRequest(f"several columns have the same name: {', '.join(twice)[:_SHOWN_CHARS]}; rename them")
    # only values of this type have nanoseconds, which Python would drop
    if not any("time64[ns]" in str(kind) for kind in batch.schema.types):
        try:
            return [{name: _jsonable(value) for name, value in row.items()} for row in batch.to_pylist()]
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001, S110 - pyarrow raises whatever a value leads it to
            pass
    return [_record(names, batch.slice(at, 1)) for at in range(batch.num_rows)]


def _record(names: list[str], row: Any) -> dict[str, Any] | BadRow:
    record: dict[str, Any] = {}
    for name, column in zip(names, row.columns, strict=True):
        try:
            record[name] = _scalar_value(column[0])
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            return BadRow(
                f"{name[:_SHOWN_CHARS]} has a value that cannot be written as JSON: {str(error)[:_SHOWN_CHARS]}"
            )
    return record


def _scalar_value(scalar: Any) -> Any:
    """Convert an Arrow value to JSON. If Python's types cannot hold the value, compute it from Arrow's number."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_dictionary(kind) or isinstance(scalar, pa.ExtensionScalar):
        return _scalar_value(scalar.value)
    if pa.types.is_struct(kind):
        return {name: _scalar_value(inner) for name, inner in scalar.items()}
    if pa.types.is_map(kind):
        return [[_scalar_value(inner) for inner in entry.values()] for entry in scalar.values]
    if pa.types.is_nested(kind):
        return [_scalar_value(inner) for inner in scalar.values]
    if pa.types.is_time64(kind) and scalar.value % 1000 and kind.unit == "ns":  # Python would drop the nanoseconds
        return _time(*divmod(scalar.value, _PER_SECOND["ns"]), digits=9)
    try:
        return _jsonable(scalar.as_py())
    except (ValueError, OverflowError):
        return _by_number(scalar)


def _by_number(scalar: Any) -> Any:
    """Convert to JSON a moment or a duration that Python's types cannot hold.

    Raises:
      ValueError: the value is neither a moment nor a duration, or the calendar has no such day.
    """
    import pyarrow as pa  # noqa: PLC0415 - as above

    kind = scalar.type
    if pa.types.is_date(kind):
        return _far_date(scalar.value if pa.types.is_date32(kind) else scalar.value // (_DAY_S * 1000))
    if not (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)):
        raise ValueError(f"its type {kind} cannot be read")
    per_second = _PER_SECOND[kind.unit]
    if pa.types.is_duration(kind):
        return scalar.value / per_second
    seconds, fraction = divmod(scalar.value, per_second)
    digits = f".{fraction:0{len(str(per_second)) - 1}d}" if fraction else ""
    days, rest_s = divmod(seconds, _DAY_S)
    # Python can represent all years that 64-bit nanoseconds cover, but not the nanoseconds themselves
    if kind.unit == "ns":
        second = str(_jsonable(pa.scalar(seconds, pa.timestamp("s", kind.tz)).as_py()))
        return second[:_SECOND_CHARS] + digits + second[_SECOND_CHARS:]
    time = _time(rest_s, fraction, digits=len(str(per_second)) - 1)
    return f"{_far_date(days)}T{time}{'+00:00' if kind.tz else ''}"


def _time(seconds: int, fraction: int, *, digits: int) -> str:
    """Convert seconds since midnight to a time of day, with a fraction of `digits` digits."""
    shown = f".{fraction:0{digits}d}" if fraction else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{shown}"


def _far_date(days: int) -> str:
    """Return the date `days` days after 1970-01-01. Years after 9999 and before 0 have a sign, as in ISO 8601."""
    eras, rest = divmod(days - _TO_ERA_START, _ERA_DAYS)
    day = _ERA_START + dt.timedelta(days=rest)
    year = day.year + 400 * eras
    shown = f"{year:04}" if 0 <= year <= dt.MAXYEAR else f"{year:+05}"
    return f"{shown}-{day:%m-%d}"


def _jsonable(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _jsonable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_jsonable(inner) for inner in value]
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case _:
            return _from_python(value)


def _from_python(value: Any) -> Any:
    match value:
        case Decimal():
            return _number(value)
        case bytes():
            return _text(value)
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return value.total_seconds()
        case uuid.UUID():
            return str(value)
        case _:
            raise TypeError(f"a {type(value).__name__}")


def _number(value: Decimal) -> int | float | str:
    """Convert a decimal to a number, or to text if a float cannot hold its exact value."""
    if value == value.to_integral_value():
        return int(value)
    near = float(value)
    return near if Decimal(repr(near)) == value else f"{value:f}"


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
