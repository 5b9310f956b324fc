"""Separates the files in `--file` into text files and data files. Sends data files to the service that evaluates."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from evaluator_host.engine.system.files import reading
from evaluator_host.engine.system.tree import walk
from evaluator_host.types.errors import InvalidRequest

_MOST_FILES: Final = 2000
_TEXT_BYTES: Final = 512 << 10


def split_files(given: Sequence[Path], root: Path) -> tuple[list[Path], dict[str, Path]]:
    """Return the files that are sent as text, and the data files by their paths in the sandbox.

    A file that is large or not UTF-8 is a data file, and so is every file in a folder. The path in the sandbox is the
    path from the project's root; a folder or file outside the project keeps only its name.

    Raises:
      InvalidRequest: a file cannot be read, or a link in a folder points outside the folder.
    """
    texts: list[Path] = []
    data: dict[str, Path] = {}
    for path in given:
        real, base = path.resolve(), root.resolve()
        shown = real.relative_to(base).as_posix() if real.is_relative_to(base) else real.name
        if real.is_dir():
            data |= {f"{shown}/{inner}".removeprefix("./"): file for inner, file in _below(real)}
        elif _is_text(real, str(path)):
            texts.append(path)
        else:
            data[shown] = real
    if len(data) > _MOST_FILES:
        raise InvalidRequest(f"--file names {len(data)} data files, but an evaluator may have at most {_MOST_FILES}")
    return texts, data


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    with reading(str(folder)), closing(walk(folder)) as entries:
        for entry in entries:
            file = folder / entry.path
            if entry.is_link and not (file.resolve().is_relative_to(folder) and file.is_file()):
                raise InvalidRequest(
                    f"{file} resolves through a link to {file.resolve()}, which is not a file "
                    f"in {folder}; replace the link with the file itself"
                )
            if entry.is_file or entry.is_link:
                yield entry.path, file


def _is_text(file: Path, shown: str) -> bool:
    with reading(shown), file.open("rb") as opened:
        start = opened.read(_TEXT_BYTES + 1)
    if len(start) > _TEXT_BYTES or b"\0" in start:
        return False
    try:
        start.decode()
    except UnicodeDecodeError:
        return file.suffix in {".py", ".js", ".ts"}  # code is always sent as text, whatever its size or encoding
    return True
