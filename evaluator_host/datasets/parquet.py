"""Rows of a Parquet file, a few hundred at a time; needs the extra `evaluator-host[parquet]`."""

import base64
import datetime as dt
import math
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO, Final

from evaluator_host.model.errors import InvalidRequest

_ROWS_AT_ONCE: Final = 256


def parquet_records(file: BinaryIO, *, max_row_bytes: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of a Parquet file as JSON values.

    Times become ISO 8601, decimals numbers, bytes text (base64 unless they are UTF-8), NaN and infinities null.

    Raises:
      InvalidRequest: it is no Parquet file, or pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra that is large, and slow to import
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise InvalidRequest(
            "this host was installed without Parquet; install evaluator-host[parquet], or send JSONL"
        ) from error
    try:
        with parquet.ParquetFile(file) as table:
            for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE):
                if batch.nbytes > max_row_bytes * _ROWS_AT_ONCE:
                    raise InvalidRequest(f"{_ROWS_AT_ONCE} rows of the Parquet file have {batch.nbytes >> 20} MB")
                for row in batch.to_pylist():
                    yield {name: _jsonable(value) for name, value in row.items()}
    except pa.ArrowException as error:
        raise InvalidRequest(f"the data file is not Parquet that can be read: {error}") from error


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
            return _scalar(value)


def _scalar(value: Any) -> Any:
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes():
            return _text(value)
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return value.total_seconds()
        case uuid.UUID():
            return str(value)
        case _:
            raise InvalidRequest(f"a Parquet column holds {type(value).__name__}, which has no JSON form")


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
