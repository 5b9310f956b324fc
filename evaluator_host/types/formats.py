"""The file formats for rows, with the suffix and Content-Type of each."""

from enum import StrEnum
from pathlib import PurePath
from typing import Final

from .errors import InvalidRequest


class Format(StrEnum):
    """A file format for rows."""

    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    JSON = "json"
    PARQUET = "parquet"
    XLSX = "xlsx"

    @property
    def media_type(self) -> str:
        """Return the Content-Type of the format."""
        return next(media_type for media_type, format_ in _MEDIA_TYPES.items() if format_ is self)

    @classmethod
    def of_name(cls, name: str) -> "Format":
        """Return the format for the suffix of a file name.

        Raises:
          InvalidRequest: the suffix is unknown.
        """
        found = _SUFFIXES.get(PurePath(name).suffix.lower())
        if found is None:
            hint = f"name the `format`: {', '.join(cls)}"
            if PurePath(name).suffix.lower() in (".xls", ".ods", ".xlsb", ".numbers"):
                hint = "save it as .xlsx or as CSV UTF-8 in the program that made it"
            raise InvalidRequest(f"cannot tell the format of {name} by its suffix ({' '.join(_SUFFIXES)}); {hint}")
        return found

    @classmethod
    def of_media_type(cls, media_type: str) -> "Format":
        """Return the format for a Content-Type; parameters such as charset are ignored.

        Raises:
          InvalidRequest: the media type is unknown.
        """
        found = _MEDIA_TYPES.get(media_type.partition(";")[0].strip().lower())
        if found is None:
            raise InvalidRequest(
                f"no format of data has the Content-Type {media_type!r}; send one of {', '.join(_MEDIA_TYPES)}"
            )
        return found


_SUFFIXES: Final = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
    ".json": Format.JSON,
    ".parquet": Format.PARQUET,
    ".xlsx": Format.XLSX,
}
_MEDIA_TYPES: Final = {
    "application/x-ndjson": Format.JSONL,
    "application/jsonl": Format.JSONL,
    "text/csv": Format.CSV,
    "text/tab-separated-values": Format.TSV,
    "application/json": Format.JSON,
    "application/vnd.apache.parquet": Format.PARQUET,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": Format.XLSX,
}
