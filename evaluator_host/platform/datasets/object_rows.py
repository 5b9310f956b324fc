"""Keeps the rows of data sets in S3-compatible storage, so that all hosts that share a database can read them.

The storage has the files `rows.jsonl` and `rows.index` of each data set, under `datasets/<id>/`. The host that receives
an upload keeps a local copy. Other hosts use the index to read only parts of the rows, and keep copies of small data
sets. Each upload gets a new id.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Final

from evaluator_host.engine.system.extras import extra
from evaluator_host.engine.system.tree import remove
from evaluator_host.platform.datasets.files import INDEX, PLACE, ROWS, STRIDE, RowsFolder
from evaluator_host.types.errors import Misconfigured, StoreUnavailable

# maximum size of a data set that is copied; larger data sets are read in ranges, without a local copy
_CACHED_BYTES: Final = 64 << 20
_RANGE_BYTES: Final = 4 << 20
# how long to retry requests that the storage refuses (a request without a response fails after 30 s)
_AGAIN_WITHIN: Final = timedelta(seconds=20)


class Bucket:
    """An S3-compatible bucket that hosts share. The methods block.

    Args:
      url: `s3://bucket/prefix`. Credentials and endpoint are in the environment variables that AWS defines.

    Raises:
      Misconfigured: the URL is not valid, or `evaluator-host[s3]` is not installed.
    """

    def __init__(self, url: str) -> None:
        with extra("s3", "EVALUATOR_HOST_STORAGE_URL"):
            import obstore  # noqa: PLC0415 - an extra
            from obstore.store import from_url  # noqa: PLC0415 - as above
        self.obstore = obstore
        self._url = url
        try:
            self.store = from_url(url, retry_config={"max_retries": 3, "retry_timeout": _AGAIN_WITHIN})
        except (ValueError, obstore.exceptions.BaseError) as error:
            raise Misconfigured(
                f"EVALUATOR_HOST_STORAGE_URL is not the address of a bucket: {error}; write it as s3://bucket/prefix"
            ) from error

    def put_file(self, key: str, path: Path) -> None:
        """Store a file under a new key.

        Raises:
          StoreUnavailable: the bucket does not accept the file.
        """
        with self.translated(), path.open("rb") as file:
            self.obstore.put(self.store, key, file, mode="create")

    def copy_file(self, key: str, path: Path) -> None:
        """Write an object to a file.

        Raises:
          StoreUnavailable: the object cannot be read.
        """
        with self.translated(), path.open("wb") as file:
            for piece in self.obstore.get(self.store, key).stream():
                file.write(piece)

    def delete(self, *keys: str) -> None:
        """Delete objects, if they exist.

        Raises:
          StoreUnavailable: the bucket does not answer.
        """
        with self.translated():
            self.obstore.delete(self.store, list(keys))

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn errors of the storage client in the block into errors of this host.

        Raises:
          StoreUnavailable: the storage does not answer, refuses the request, or has no such object.
        """
        failures: tuple[Any, ...] = (FileNotFoundError, self.obstore.exceptions.BaseError)
        try:
            yield
        except failures as error:
            reason = str(error).partition("\n")[0]
            raise StoreUnavailable(
                f"the storage {self._url} does not work: {reason}; check "
                "EVALUATOR_HOST_STORAGE_URL and what its user may do"
            ) from error


class ObjectRows(RowsFolder):
    """Stores the rows of a database's data sets in a bucket, and keeps copies in a local folder. The methods block.

    Args:
      folder: Local folder for unfinished uploads and for copies.
      url: `s3://bucket/prefix`.

    Raises:
      Misconfigured: the URL is not valid, or `evaluator-host[s3]` is not installed.
    """

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._bucket = Bucket(url)
        self._obstore, self._store, self._translated = self._bucket.obstore, self._bucket.store, self._bucket.translated

    def keep(self, stage: Path, dataset_id: str) -> None:
        """Store a filled folder in the bucket, then in the local folder.

        Raises:
          StoreUnavailable: the bucket does not accept the files.
        """
        for name in (ROWS, INDEX):  # the index comes last: once it is there, the data set counts as stored
            self._bucket.put_file(_key(dataset_id, name), stage / name)
        super().keep(stage, dataset_id)

    def lines(self, dataset_id: str, *, first: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield rows as `(number, JSON line)`, starting at row `first`, from this host's copy or from the bucket."""
        if super().has_rows(dataset_id) or self._size(dataset_id) <= _CACHED_BYTES:
            self._copied(dataset_id)
            yield from super().lines(dataset_id, first=first)
            return
        yield from self._remote_rows(dataset_id, first)

    def json_pieces(self, dataset_id: str, first: int, *, limit: int) -> Iterator[bytes]:
        """Yield rows as a JSON array, as `RowsFolder` does. A row from the bucket is in memory as a whole."""
        if super().has_rows(dataset_id) or self._size(dataset_id) <= _CACHED_BYTES:
            self._copied(dataset_id)
            yield from super().json_pieces(dataset_id, first, limit=limit)
            return
        yield b"["
        for place, (_, line) in enumerate(islice(self._remote_rows(dataset_id, first), limit)):
            yield (b"," if place else b"") + line
        yield b"]"

    def _remote_rows(self, dataset_id: str, first: int) -> Iterator[tuple[int, bytes]]:
        start = first // STRIDE
        for number, line in enumerate(self._remote_lines(dataset_id, start), start=start * STRIDE):
            if number >= first:
                yield number, line

    def has_rows(self, dataset_id: str) -> bool:
        """Return whether the rows of a data set are in the local folder or in the bucket."""
        if super().has_rows(dataset_id):
            return True
        try:
            self._size(dataset_id)
        except StoreUnavailable:
            return False
        return True

    def missing(self, dataset_ids: Iterable[str]) -> list[str]:  # noqa: ARG002 - part of the interface
        """Return an empty list: hosts that share a database also share the bucket, so no data set is missing."""
        return []

    def file(self, dataset_id: str) -> Path:
        """Return the path of the rows in the local folder. If they are not there, copy them from the bucket first."""
        self._copied(dataset_id)
        return super().file(dataset_id)

    def remove(self, dataset_id: str) -> None:
        """Remove the rows of a data set from the bucket and from the local folder, if they exist."""
        self._bucket.delete(*(_key(dataset_id, name) for name in (INDEX, ROWS)))
        super().remove(dataset_id)

    def _size(self, dataset_id: str) -> int:
        with self._translated():
            self._obstore.head(self._store, _key(dataset_id, INDEX))
            return int(self._obstore.head(self._store, _key(dataset_id, ROWS))["size"])

    def _copied(self, dataset_id: str) -> None:
        """Copy a data set from the bucket into the folder, unless the copy exists."""
        if super().has_rows(dataset_id):
            return
        stage = self.stage(dataset_id)
        try:
            for name in (INDEX, ROWS):
                self._bucket.copy_file(_key(dataset_id, name), stage / name)
            if not super().has_rows(dataset_id):
                super().keep(stage, dataset_id)
        finally:
            remove(stage)

    def _remote_lines(self, dataset_id: str, start: int) -> Iterator[bytes]:
        """Yield the rows in the bucket as JSON lines, beginning at entry `start` of the index.

        Read a few MB at a time.
        """
        size = self._size(dataset_id)
        with self._translated():
            index = bytes(self._obstore.get(self._store, _key(dataset_id, INDEX)).bytes())
        at = start * PLACE.size
        place = PLACE.unpack_from(index, at)[0] if at < len(index) else size
        rest = b""
        while place < size:
            end = min(size, place + _RANGE_BYTES)
            with self._translated():
                piece = bytes(self._obstore.get_range(self._store, _key(dataset_id, ROWS), start=place, end=end))
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line + b"\n" for line in whole)
            place = end
        if rest:
            yield rest


def _key(dataset_id: str, name: str) -> str:
    return f"datasets/{dataset_id}/{name}"
