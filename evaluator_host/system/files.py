"""Files that appear whole or not at all: written beside their place, synced to disk, then linked or renamed into it."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_once(file: Path, content: bytes) -> None:
    """Write a file for its owner alone; keep the one that is there when another process was first.

    Raises:
      OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with _draft(file, content) as draft, suppress(FileExistsError):
        os.link(draft, file)


def replace_file(file: Path, content: bytes) -> None:
    """Write a file for its owner alone, in place of the one that is there.

    Raises:
      OSError: it cannot be written.
    """
    with _draft(file, content) as draft:
        draft.replace(file)


@contextmanager
def _draft(file: Path, content: bytes) -> Iterator[Path]:
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)
