"""Compiles the Python files of a package set, because sandboxes cannot write byte code into the set.

The set's own version of Python compiles the files in a sandbox without packages. The sandbox gets sources as text, and
does not run them. The host writes the byte code, up to a limit, to new files in `__pycache__` folders of the set.
"""

import asyncio
import contextlib
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from evaluator_host.engine.environments.build.import_check import ProgramSandbox
from evaluator_host.engine.environments.record import empty_environment
from evaluator_host.engine.sandbox.base import Backend
from evaluator_host.engine.system.tree import open_folder, walk
from evaluator_host.types.evaluator import Json, Language
from evaluator_host.types.outcome import Returned

_TOTAL_S: Final = 120.0
_WHOLE: Final = 300  # a package with at most this many files is compiled whole, in a second or two
_GROUP_BYTES: Final = 1 << 20  # maximum size in bytes of the sources in one call, and of one file
# maximum size of a result in KB: byte code is about as large as its source, and is returned as two hexadecimal digits
# for each byte
_RESULT_KB: Final = 8_192
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_COMPILE: Final = """
import importlib.util
import marshal

def main(sources):
    return [compiled(*source) for source in sources]

def compiled(name, text, mtime, size):
    try:
        code = compile(text.encode("latin-1"), f"/opt/packages/{name}", "exec", dont_inherit=True)
    except Exception:
        return None
    header = b"".join((number & 0xFFFFFFFF).to_bytes(4, "little") for number in (0, mtime, size))
    return (importlib.util.MAGIC_NUMBER + header + marshal.dumps(code)).hex()
"""


async def compile_sources(
    files: Path, sources: Sequence[str], *, python: str, backend: Backend, room_bytes: int
) -> None:
    """Compile the Python files that are read when a package set's packages are imported.

    All files of a small package are compiled, because some packages, such as pydantic, import most of their modules
    late. Compiling all files of a large set would take longer than installing the set. A file that cannot be compiled
    gets no byte code.

    Args:
      files: Folder of the installed set. Nobody else writes to it.
      sources: Paths of the Python files that imports read, relative to `files`.
      python: Minor version of the set's Python, such as `3.13`.
      backend: Backend of the sandboxes that compile.
      room_bytes: Maximum size of all byte code together.

    Raises:
      SandboxUnavailable: no sandbox can be started.
      SandboxLost: a sandbox died for a reason other than the sources.
      HostBusy: the machine had no processor time for compiling.
      OSError: the disk is full.
    """
    environment = empty_environment(Language.PYTHON, python)
    names = sorted(await asyncio.to_thread(with_small_packages, files, sources))
    groups = _groups(files, names)
    tag = f"cpython-{python.replace('.', '')}"
    async with contextlib.aclosing(ProgramSandbox(_COMPILE, environment, backend, result_kb=_RESULT_KB)) as program:
        while program.spent_s < _TOTAL_S and (group := await asyncio.to_thread(next, groups, None)):
            outcome = await program.call(sources=group)
            if isinstance(outcome, Returned):
                room_bytes -= await asyncio.to_thread(_write, files, group, outcome.value, tag, room_bytes)


def with_small_packages(files: Path, sources: Sequence[str]) -> set[str]:
    """Return `sources` and all Python files of packages with at most 300 files; paths are relative to `files`."""
    wanted = set(sources)
    for package in {source.partition("/")[0] for source in sources if "/" in source}:
        with contextlib.closing(walk(files / package, strict=False)) as entries:
            own = (f"{package}/{entry.path}" for entry in entries if entry.is_file and entry.name.endswith(".py"))
            found = list(itertools.islice(own, _WHOLE + 1))
        if len(found) <= _WHOLE:
            wanted.update(found)
    return wanted


def _groups(files: Path, names: Sequence[str]) -> Iterator[list[tuple[str, str, int, int]]]:
    group: list[tuple[str, str, int, int]] = []
    room = _GROUP_BYTES
    for name in names:
        above, base = os.path.split(name)
        with contextlib.suppress(OSError), open_folder(files, above) as folder:
            with os.fdopen(os.open(base, _READ, dir_fd=folder), "rb") as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode) or about.st_size > _GROUP_BYTES:
                    continue
                text = file.read(_GROUP_BYTES).decode("latin-1")
            if len(text) > room:
                yield group
                group, room = [], _GROUP_BYTES
            group.append((name, text, int(about.st_mtime), len(text)))
            room -= len(text)
    if group:
        yield group


def _write(files: Path, group: Sequence[tuple[str, str, int, int]], said: Json, tag: str, room_bytes: int) -> int:
    written = 0
    for (name, *_), code in zip(group, said if isinstance(said, list) else (), strict=False):
        if isinstance(code, str) and len(code) // 2 <= room_bytes - written:
            with contextlib.suppress(ValueError):  # the sandbox returned text that is not hexadecimal
                written += _write_one(files, name, bytes.fromhex(code), tag)
    return written


def _write_one(files: Path, name: str, code: bytes, tag: str) -> int:
    above, base = os.path.split(name)
    compiled = f"{base.removesuffix('.py')}.{tag}.pyc"
    try:
        with open_folder(files, above) as folder, contextlib.suppress(FileExistsError):
            os.mkdir("__pycache__", 0o755, dir_fd=folder)
        with open_folder(files, f"{above}/__pycache__") as folder:
            # replace the file, because it may be a hard link to a download
            with contextlib.suppress(FileNotFoundError):
                os.unlink(compiled, dir_fd=folder)
            file = os.open(compiled, _CREATE, 0o644, dir_fd=folder)
    except OSError:  # the name is too long, or a folder or another entry has this name
        return 0
    with os.fdopen(file, "wb") as opened:
        return opened.write(code)
