"""The layout of a UiPath project on disk: evaluators and eval sets, under `evals/` or `evaluations/`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluator_host.engine.system.files import reading, writing
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.json_values import InvalidJson, decode_json
from evaluator_host.types.names import nearest_name

FOLDERS: Final = ("evaluations", "evals")
"""Possible names of the folder: UiPath's own command line reads the first, its documentation names the second."""

EVAL_SETS: Final = ("eval_sets", "eval-sets")
"""Possible names of the folder with the eval sets, which is inside one of `FOLDERS`."""

_FILE_BYTES: Final = 32 << 20
_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders of a UiPath project's evaluators and eval sets.

    Attributes:
      root: Root folder of the project.
      name: Name of the folder that holds both evaluators and eval sets: `evals` or `evaluations`.
    """

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """Path of the folder that holds evaluators and eval sets."""
        return self.root / self.name

    @property
    def evaluators(self) -> Path:
        """Path of the folder with one JSON file for each evaluator."""
        return self.folder / "evaluators"

    @property
    def custom(self) -> Path:
        """Path of the folder with the evaluators' code."""
        return self.evaluators / "custom"

    @property
    def types(self) -> Path:
        """Path of the folder with the evaluators' schemas."""
        return self.custom / "types"

    def shown(self, path: Path) -> str:
        """Return a path relative to the project, for messages."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


def find_layout(root: Path, *, folder: str | None = None) -> Layout:
    """Return a project's layout: with the given `folder`, else with an existing one, else UiPath's default.

    Raises:
      InvalidRequest: the project has both folders, or `folder` is neither `evals` nor `evaluations`.
    """
    if folder is not None:
        if folder not in FOLDERS:
            raise InvalidRequest(f"--folder must be {' or '.join(FOLDERS)}, not {folder!r}")
        return Layout(root, folder)
    there = [name for name in FOLDERS if (root / name / "evaluators").is_dir()]
    there = there or [name for name in FOLDERS if (root / name).is_dir()]
    if len(there) > 1:
        raise InvalidRequest(f"the project {root} has both {' and '.join(there)}; choose one with --folder")
    return Layout(root, there[0] if there else FOLDERS[0])


def find_code(layout: Layout, file: str) -> Path:
    """Return the path of an evaluator's code; `file` is a name in the custom folder, or a path.

    Raises:
      InvalidRequest: there is no such file; the message lists similar names.
    """
    name = file if file.endswith(".py") else f"{file}.py"
    found = layout.custom / Path(name).name
    if found.is_file() and (Path(name).name == name or Path(name).resolve() == found.resolve()):
        require_inside(layout, found)
        return found
    if (layout.root / name).is_file() or Path(name).is_file():
        where = layout.shown(layout.custom)
        raise InvalidRequest(f"{file} is not in the {where} folder; move it there, so that eval sets find it")
    there = sorted(one.name for one in layout.custom.glob("*.py")) if layout.custom.is_dir() else []
    raise InvalidRequest(
        f"could not find {Path(name).name!r} in the {layout.shown(layout.custom)} folder{_near(Path(name).name, there)}"
    )


def find_eval_set(layout: Layout, named: str) -> Path:
    """Return the file of an eval set, given by path or by file name with or without `.json`.

    Raises:
      InvalidRequest: there is no such file.
    """
    folders = [layout.folder / name for name in EVAL_SETS]
    names = (named, f"{named}.json")
    for path in (Path(named), *(folder / name for folder in (layout.root, *folders) for name in names)):
        if path.is_file():
            return path
    there = sorted(one.name for folder in folders if folder.is_dir() for one in folder.glob("*.json"))
    where = " or ".join(layout.shown(folder) for folder in folders)
    raise InvalidRequest(f"could not find the eval set {named!r} in {where}{_near(Path(named).stem + '.json', there)}")


def layout_of_eval_set(eval_set: Path) -> Layout | None:
    """Return the project layout around an eval set, `<root>/<folder>/<eval sets>/<file>`, or None if there is none."""
    folder = eval_set.resolve().parent.parent
    if (folder / "evaluators").is_dir():
        return Layout(folder.parent, folder.name)
    return None


def read_text(file: Path, most: int, *, instead: str = "") -> bytes:
    """Return the content of a file without its byte order mark.

    Args:
      file: The file to read.
      most: Size limit in bytes.
      instead: End of the error message for a larger file, which says what to do instead.

    Raises:
      InvalidRequest: the file cannot be read, or is too large.
    """
    with reading(file), file.open("rb") as opened:
        text = opened.read(most + 1)
    if len(text) > most:
        raise InvalidRequest(f"{file} is over {most >> 20} MB{instead}")
    return text.removeprefix(b"\xef\xbb\xbf")


def read_json(file: Path) -> Any:
    """Parse a JSON file and return its value.

    Raises:
      InvalidRequest: the file cannot be read, or is not JSON.
    """
    text = read_text(file, _FILE_BYTES)
    try:
        return decode_json(text)
    except InvalidJson as error:
        raise InvalidRequest(f"{file} is {error}") from error


def write_file(layout: Layout, path: Path, text: str) -> None:
    """Write a file of a project, creating its folders; refuse to follow a link out of the project.

    Raises:
      InvalidRequest: the file cannot be written, or is outside the project.
    """
    require_inside(layout, path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def require_inside(layout: Layout, path: Path) -> None:
    """Check that a file is inside the project, after following links.

    Raises:
      InvalidRequest: the file is outside the project.
    """
    if not path.resolve().is_relative_to(layout.root.resolve()):
        raise InvalidRequest(
            f"{layout.shown(path)} resolves through a link to {path.resolve()}, outside the project {layout.root}; "
            "remove this link"
        )


def _near(name: str, there: list[str]) -> str:
    if not there:
        return ", which has none"
    if (meant := nearest_name(name, there)) is not None:
        return f"; did you mean {meant}?"
    more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
    return f"; it has {', '.join(there[:_SHOWN])}{more}"
