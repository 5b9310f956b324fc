"""Stores the uploaded files of filesets unchanged, by id; a file appears only when it is complete."""

import asyncio
import hashlib
import os
import secrets
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from evaluator_host.platform.datasets.files import FileFolder, at_most, partial_prefix
from evaluator_host.platform.datasets.object_rows import Bucket
from evaluator_host.types.errors import MachineExhausted


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored file: its id, its size in bytes, and its SHA-256 in hex."""

    id: str
    size: int
    digest: str


class BlobFolder(FileFolder):
    """The folder that holds the files of filesets.

    Args:
      path: Path of the folder on this machine.
      max_bytes: Size limit for one file.
      bucket: Object storage with the files of all hosts that share a database; None if this folder has all files.
    """

    def __init__(self, path: Path, *, max_bytes: int, bucket: Bucket | None = None) -> None:
        super().__init__(path)
        self._max_bytes = max_bytes
        self._bucket = bucket

    async def receive(self, chunks: AsyncIterator[bytes]) -> Blob:
        """Store a file that arrives in chunks, and return its description.

        Raises:
          TooLarge: the file is over this host's limit.
          MachineExhausted: the disk is full.
        """
        size, digest = 0, hashlib.sha256()
        with MachineExhausted.refused("keep the file"):
            self.path.mkdir(parents=True, mode=0o700, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=partial_prefix(), dir=self.path)
            partial = Path(name)
            try:
                with os.fdopen(handle, "wb") as file:
                    async for chunk in at_most(self._max_bytes, chunks):
                        size += len(chunk)
                        digest.update(chunk)
                        await asyncio.to_thread(file.write, chunk)
                    file.flush()
                    await asyncio.to_thread(os.fsync, file.fileno())
                blob = Blob(f"file_{secrets.token_hex(12)}", size, digest.hexdigest())
                if self._bucket is not None:
                    await asyncio.to_thread(self._bucket.put_file, _key(blob.id), partial)
                await asyncio.to_thread(partial.rename, self.file(blob.id))
            finally:
                await asyncio.to_thread(partial.unlink, missing_ok=True)
        return blob

    def copied(self, blob_id: str) -> Path:
        """Return a file's path on this machine. If the file is only in the bucket, copy it first, which blocks.

        Raises:
          StoreUnavailable: the bucket does not answer.
        """
        path = self.file(blob_id)
        if self._bucket is not None and not path.exists():
            self.path.mkdir(parents=True, mode=0o700, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=partial_prefix(), dir=self.path)
            os.close(handle)
            partial = Path(name)
            try:
                self._bucket.copy_file(_key(blob_id), partial)
                partial.rename(path)
            finally:
                partial.unlink(missing_ok=True)
        return path

    def remove(self, blob_id: str) -> None:
        """Remove a file, if it exists. Call this in a thread, because it blocks."""
        if self._bucket is not None:
            self._bucket.delete(_key(blob_id))
        self.file(blob_id).unlink(missing_ok=True)


def _key(blob_id: str) -> str:
    return f"filesets/{blob_id}"
