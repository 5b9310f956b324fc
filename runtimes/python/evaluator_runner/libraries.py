"""Measures how much memory a shared library takes, from its ELF headers."""

from __future__ import annotations

import os
import resource

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

_MAGIC = b"\x7fELF\x02\x01"  # first bytes of a 64-bit, little-endian ELF file
_HEADER_BYTES = 64
_LOAD, _WRITABLE = 1, 2
_MB = 1 << 20
_SHORT = 3  # memory counts as short when less than 1 / 2**3 of the limit is left


def needed_mb(library: str, importer: str | None) -> int | None:
    """Return how many MB of data this process needs once it has loaded a library, or None if that is unknown.

    Args:
      library: The library's path, or its name in the folder of `importer`.
      importer: Path of the extension module whose import failed, if there is one.
    """
    beside = os.path.dirname(importer or "")
    for path in (library, f"{beside}/{library}", f"{beside}/lib/{library}"):
        try:
            return (_own_data_kb() >> 10) + -(-_writable_bytes(path) // _MB)
        except (OSError, ValueError, IndexError):
            continue
    return None


def is_memory_short() -> bool:
    """Return whether this process has little memory left below its limit, so that an allocation has probably failed."""
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit == resource.RLIM_INFINITY:
        return False
    try:
        return (limit >> 10) - _own_data_kb() < limit >> 10 >> _SHORT
    except (OSError, ValueError, StopIteration):
        return False


def _writable_bytes(path: str) -> int:
    """Return the size of a library's writable segments, of which each process has its own copy."""
    with open(path, "rb") as file:
        header = file.read(_HEADER_BYTES)
        if not header.startswith(_MAGIC):
            raise ValueError("the file is not a 64-bit library")
        file.seek(_number(header, 32, 8))
        size, count = _number(header, 54, 2), _number(header, 56, 2)
        entries = [file.read(size) for _ in range(count)]
    loaded = [one for one in entries if _number(one, 0, 4) == _LOAD and _number(one, 4, 4) & _WRITABLE]
    return sum(_number(one, 40, 8) for one in loaded)


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _own_data_kb() -> int:
    with open("/proc/self/status", "rb") as file:
        return int(next(line for line in file if line.startswith(b"VmData:")).split()[1])
