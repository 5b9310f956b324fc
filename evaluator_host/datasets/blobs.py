"""Stores files unchanged, by id; a file appears whole or not at all."""

import asyncio
import hashlib
import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_host.model.errors import MachineExhausted, TooLarge

_SETTLED_S: Final = 3600.0
_PARTIAL: Final = "partial-"


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored file: its id, its size in bytes, and its SHA-256 in hex."""

    id: str
    size: int
    digest: str


class BlobFolder:
    """The folder of a host's stored files.

    Args:
      path: Of the folder.
      max_bytes: Size limit of a file.
    """

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes

    async def receive(self, chunks: AsyncIterator[bytes]) -> Blob:
        """Store a file that arrives in chunks.

        Raises:
          TooLarge: the file is over this host's limit.
          MachineExhausted: the disk is full.
        """
        self._path.mkdir(parents=True, mode=0o700, exist_ok=True)
        size, digest = 0, hashlib.sha256()
        handle, name = tempfile.mkstemp(prefix=_PARTIAL, dir=self._path)
        partial = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > self._max_bytes:
                        raise TooLarge(
                            f"the file is over this host's ceiling of {self._max_bytes >> 20} MB; send it in parts, or "
                            "have the operator raise EVALUATOR_HOST_DATASETS_MB"
                        )
                    digest.update(chunk)
                    await asyncio.to_thread(file.write, chunk)
                await asyncio.to_thread(_settle, file.fileno())
            blob = Blob(f"file_{secrets.token_hex(12)}", size, digest.hexdigest())
            await asyncio.to_thread(partial.rename, self.file(blob.id))
        except OSError as error:
            raise MachineExhausted.by(error, doing="keep the file") from error
        finally:
            await asyncio.to_thread(partial.unlink, missing_ok=True)
        return blob

    def file(self, blob_id: str) -> Path:
        """Return the path of a file."""
        return self._path / blob_id

    def remove(self, blob_id: str) -> None:
        """Remove a file, if it exists."""
        self.file(blob_id).unlink(missing_ok=True)

    def ids(self) -> list[str]:
        """Return the ids of all stored files."""
        found = self._path.iterdir() if self._path.is_dir() else ()
        return [path.name for path in found if not path.name.startswith(_PARTIAL)]

    def sweep(self, known: Collection[str]) -> int:
        """Remove broken uploads, and files whose ids are not `known`, once an hour old; return how many."""
        gone = 0
        for path in self._path.iterdir() if self._path.is_dir() else ():
            if path.name not in known and time.time() - path.stat().st_mtime > _SETTLED_S:
                path.unlink(missing_ok=True)
                gone += 1
        return gone


def _settle(descriptor: int) -> None:
    os.fsync(descriptor)
