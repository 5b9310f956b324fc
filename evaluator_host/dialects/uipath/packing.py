"""Chooses the files of a project to send to a sandbox, up to a size; excludes files that may hold secrets."""

from pathlib import Path
from typing import Final

from evaluator_host.dialects.uipath.project import FOLDERS

PACKED_BYTES: Final = 900_000
"""Of a program with its files: below the 1 MB that a host takes as code by default."""
MOST_FILES: Final = 2000

_LEFT_OUT: Final = frozenset({"node_modules", "__pycache__", "site-packages", "dist", "build"})


def is_packed(folder: Path) -> bool:
    """Whether files of a folder are sent: not those of hidden folders, virtual environments and build output."""
    name = folder.name
    return not (name.startswith(".") or name in _LEFT_OUT or (folder / "pyvenv.cfg").exists())


def is_of_evaluations(folder: Path) -> bool:
    """Whether a folder holds the evaluators and eval sets, which are not sent to an agent."""
    return folder.name in FOLDERS


def over_packed(root: Path, what: str, size: int, files: dict[str, int]) -> str:
    """Return the error message for a project whose files are too large or too many.

    Args:
      root: Of the project.
      what: It is for: `its agent`.
      size: Of the program, in bytes.
      files: Sizes by path.
    """
    largest = sorted(files, key=lambda name: files[name], reverse=True)[:3]
    return (
        f"the project {root} has {size >> 10} KB for {what}, packed, over the ceiling of {PACKED_BYTES >> 10} KB; "
        f"its largest files are {', '.join(largest)}"
    )
