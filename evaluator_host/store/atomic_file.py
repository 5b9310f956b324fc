"""A file that the first who wants it writes."""

import os
import secrets
from contextlib import suppress
from pathlib import Path


def write_once(file: Path, content: bytes) -> None:
    """Write a file for its owner alone, unless somebody else just did; it is there whole or not at all.

    Raises:
      OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
