"""Reads the rows of a data set in any of its forms: a list of rows, a file, a folder, or a pattern for files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..values.dataset_schemas import FieldMapping
from ..values.datasets import DatasetInput, DatasetRows

_KINDS = (".jsonl", ".json", ".csv")


class DatasetLoadError(Exception):
    """A data set cannot be read."""


def prepare_rows(
    dataset: DatasetInput | str | Path, *, limit: int | None, mapping: FieldMapping | None
) -> list[dict[str, Any]]:
    """Return the first `limit` rows of a data set, and add the mapped fields.

    Raises:
      DatasetLoadError: the data set cannot be read.
      RuntimeError: a row is not an object.
    """
    rows = load_dataset_as_dicts(dataset)[:limit]
    for row in rows:
        if not isinstance(row, dict):
            problem = f"'{type(row).__name__}' object has no attribute 'get'"
            raise RuntimeError(f"Metric evaluation has failed with error: {problem}")
    return [dict(row) if mapping is None else mapping.applied_to(row) for row in rows]


def load_dataset_as_dicts(dataset: DatasetInput | str | Path) -> list[dict[str, Any]]:
    """Return the rows of a data set.

    Raises:
      DatasetLoadError: the data set cannot be read.
    """
    if isinstance(dataset, DatasetRows):
        return dataset.rows
    if isinstance(dataset, list):
        return dataset
    if callable(to_rows := getattr(dataset, "to_pylist", None)):  # such as a pyarrow.Table
        return list(to_rows())
    if isinstance(dataset, str | Path):
        return [row for file in _files(Path(dataset)) for row in _read(file)]
    raise DatasetLoadError(f"a data set must be rows, a table or a path, not {type(dataset).__name__}")


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if _kind(file) in _KINDS)
    elif any(sign in str(path) for sign in "*?["):
        base = Path(path.anchor or ".")
        found = sorted(base.glob(str(path.relative_to(path.anchor))))
    else:
        found = [path] if path.is_file() else []
    if not found:
        raise DatasetLoadError(f"there is no data set at {path}")
    return found


def _kind(file: Path) -> str:
    return Path(file.stem).suffix if file.suffix == ".gz" else file.suffix


def _read(file: Path) -> list[dict[str, Any]]:
    import csv  # imported here, because only files need it
    import gzip
    import io

    raw = file.read_bytes()
    text = (gzip.decompress(raw) if file.suffix == ".gz" else raw).decode("utf-8-sig")
    match _kind(file):
        case ".csv":
            return list(csv.DictReader(io.StringIO(text)))
        case ".jsonl":
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        case ".json":
            whole = json.loads(text)
            rows = whole if isinstance(whole, list) else [whole]
        case other:
            kind = f"files with the suffix {other}" if other else "files without a suffix"
            raise DatasetLoadError(f"{file.name} cannot be read: pin the package nemo-platform, which reads {kind}")
    if not all(isinstance(row, dict) for row in rows):
        raise DatasetLoadError(f"{file.name} has a row that is not an object")
    return rows
