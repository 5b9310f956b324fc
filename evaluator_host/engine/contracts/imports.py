"""Finds evaluators and rows in files of other platforms; also contains the tables for reading platforms' exports.

This module does not open files: callers pass the contents of files, and the module reports the paths of missing files.
The host runs it in a process with limited memory and time.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from evaluator_host.types.evaluator import Contract, Json, Language

SUFFIXES: Final = {
    ".py": Language.PYTHON,
    ".js": Language.JAVASCRIPT,
    ".mjs": Language.JAVASCRIPT,
    ".cjs": Language.JAVASCRIPT,
    ".ts": Language.TYPESCRIPT,
    ".mts": Language.TYPESCRIPT,
}
ANSWER: Final = "correct_answer"
"""The input that holds the ground truth of an imported row."""

_NAME_CHARACTERS: Final = 56  # maximum length of a name; a number may be added to it, and 63 characters are allowed
_SHOWN_BYTES: Final = 2000


@dataclass(frozen=True, slots=True)
class FoundEvaluator:
    """An evaluator in a file of another platform.

    Attributes:
      name: Name for storing the evaluator.
      code: Source of the evaluator, unchanged.
      where: Position of the evaluator in the imported file, such as `tests[0].assert[1]`.
      file: Path of the file that contains the code; None for code inside another document.
      config: `settings.config` of the evaluator.
      sampling: Fraction of live traces to score, 0 to 1; None for the default.
      asks: Names of the models that the code calls, such as `judge` or `embedding`.
    """

    name: str
    code: str
    where: str
    language: Language = Language.PYTHON
    contract: Contract = Contract.AUTO
    file: str | None = None
    entry: str | None = None
    threshold: float | None = None
    config: dict[str, Json] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    description: str = ""
    sampling: float | None = None
    asks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedRows:
    """Rows in a file of another platform, in the form that the API accepts; `where` is their position in the file."""

    name: str
    records: list[dict[str, Json]]
    where: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A part of an imported file that is not imported.

    Attributes:
      where: Position of the part in the file.
      reason: Why it is not imported.
      value: The part itself, so that nothing is lost; a long part is truncated.
    """

    where: str
    reason: str
    value: Json = None


@dataclass(slots=True)
class Found:
    """All evaluators and rows that an import found in a file, and the parts that it left out."""

    platform: str
    evaluators: list[FoundEvaluator] = field(default_factory=list)
    rows: list[ImportedRows] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def leave_out(self, where: str, reason: str, value: Json = None) -> None:
        """Record a part that is not imported."""
        self.left_out.append(LeftOut(where, reason, shown(value)))


def shown(value: Json) -> Json:
    """Return a value for a report; a large value is truncated."""
    text = value if isinstance(value, str) else repr(value)
    return value if len(text) <= _SHOWN_BYTES else f"{text[:_SHOWN_BYTES]}…"


class SentFiles:
    """The files of an import, by their paths from a common root.

    Args:
      texts: Contents of the files, by path.
      folder: Folder to which relative paths refer.
      missing: Set that collects the paths of files that are needed but were not sent.
    """

    def __init__(self, texts: Mapping[str, str], folder: str, missing: set[str]) -> None:
        self._texts = texts
        self._folder = folder
        self._missing = missing

    def path(self, relative: str) -> str | None:
        """Return a path relative to the root for a path relative to the folder, or None if it is outside the root."""
        path = posixpath.normpath(posixpath.join(self._folder, relative.replace("\\", "/")))
        return None if path.startswith(("/", "..")) else path

    def text(self, relative: str) -> str | None:
        """Return the content of a file, or None when it was not sent."""
        path = self.path(relative)
        if path is None:
            return None
        if path not in self._texts:
            self._missing.add(path)
        return self._texts.get(path)

    def matching(self, pattern: str) -> list[str]:
        """Return the sent files that match a glob pattern, as paths relative to the folder; `**` matches folders."""
        path = self.path(pattern)
        if path is None:
            return []
        # a missing path may be a pattern: the sender then sends all files that match the pattern
        self._missing.add(path)
        regular = re.compile(
            re.escape(path).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*").replace(r"\?", "[^/]") + r"\Z"
        )
        return [posixpath.relpath(one, self._folder or ".") for one in sorted(self._texts) if regular.match(one)]


class ImportFormat(Protocol):
    """Reads one platform's document: a decoded JSON or YAML file."""

    def recognises(self, document: Json) -> bool:
        """Return whether a document comes from this platform."""
        ...

    def read(self, document: Json, files: SentFiles, name: str) -> Found:
        """Return the evaluators and rows of a document.

        Args:
          document: The decoded file.
          files: Further files to which the document may refer.
          name: Name of the rows, and first part of each evaluator's name.

        Raises:
          InvalidRequest: the document has a fault.
        """
        ...


class FreeNames:
    """Creates names that are valid and distinct."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def give(self, *parts: str) -> str:
        """Return a name made from these parts; a name is never returned twice."""
        wanted = slug("-".join(part for part in map(slug, parts) if part)) or "evaluator"
        name, number = wanted, 1
        while name in self._given:
            number += 1
            name = f"{wanted}-{number}"
        self._given.add(name)
        return name


def slug(text: str) -> str:
    """Return a valid name: all characters except letters, digits, dots, dashes and underscores are replaced."""
    made = re.sub(r"[^A-Za-z0-9._-]+", "-", str(text)).strip("-._")
    return made[:_NAME_CHARACTERS].strip("-._")


# Exports: lists of a platform's objects -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowShape:
    """Describes how to convert one kind of a platform's objects to rows.

    A field may have several names, for example one in the platform's JSON and another one in its SDK.

    Attributes:
      what: The platform's word for these objects, shown to users: `dataset items`.
      needs: Groups of field names; an object is of this kind if it has at least one field of each group.
      inputs: Names of the field with the application's input.
      outputs: Names of the field with the application's output.
      expected: Names of the field with the expected output.
      within: Name of the field that contains an object with inputs, outputs, expected output and all other columns;
        empty if these are at the top level of the platform's object.
      kept: Names of further fields that the row keeps.
      unless: `(field, values, reason)`: objects with one of these values in this field are left out for this reason.
    """

    what: str
    needs: tuple[tuple[str, ...], ...]
    inputs: tuple[str, ...] = ("input",)
    outputs: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    within: str = ""
    kept: tuple[str, ...] = ("id", "metadata", "tags")
    unless: tuple[str, frozenset[Json], str] | None = None

    def fits(self, item: dict[str, Json]) -> bool:
        return all(any(name in item for name in group) for group in self.needs)

    def record(self, item: dict[str, Json]) -> dict[str, Json]:
        """Convert an object of this kind to a row with `inputs` and `outputs`."""
        fields = item[self.within] if self.within and isinstance(item[self.within], dict) else item
        expected, output = _first(fields, self.expected), _first(fields, self.outputs)
        if self.within:
            inputs = {name: value for name, value in fields.items() if name not in (*self.expected, *self.outputs)}
        else:
            given = _first(fields, self.inputs)
            inputs = dict(given) if isinstance(given, dict) else {"input": given}
        if expected is not None:
            inputs["expected" if ANSWER in inputs else ANSWER] = expected
        kept = {name: item[name] for name in self.kept if item.get(name) not in (None, [], {})}
        return {**kept, "inputs": inputs, **({} if output is None else {"outputs": output})}


def _first(item: dict[str, Json], names: Iterable[str]) -> Json:
    return next((item[name] for name in names if item.get(name) is not None), None)


ReadEvaluator = Callable[[dict[str, Json], FreeNames, str], list[FoundEvaluator | LeftOut] | None]
"""Returns the evaluators of an exported object, and the parts that are left out; None if it is not an evaluator.

It is called with the object, the names given so far, and the object's position.
"""


@dataclass(frozen=True, slots=True)
class PlatformExport:
    """Reads lists of one platform's objects, as its API or its SDK returns them.

    Attributes:
      platform: Name of the platform.
      evaluator: Reads an object that may be an evaluator.
      rows: The kinds of objects that become rows.
    """

    platform: str
    evaluator: ReadEvaluator
    rows: tuple[RowShape, ...]

    def recognises(self, document: Json) -> bool:
        """Return whether one of the first 20 objects comes from this platform."""
        return any(self._is_known(item) for item in list(objects(document))[:20])

    def read(self, document: Json, files: SentFiles, name: str) -> Found:  # noqa: ARG002 - exports refer to no files
        """Return the evaluators and rows in a list of objects."""
        found, names = Found(self.platform), FreeNames()
        records: list[dict[str, Json]] = []
        kind, count = "", 0
        for index, item in enumerate(objects(document)):
            count += 1
            where = f"[{index}]"
            made = self.evaluator(item, names, where)
            if made is not None:
                found.evaluators += [one for one in made if isinstance(one, FoundEvaluator)]
                found.left_out += [one for one in made if isinstance(one, LeftOut)]
            elif (shape := self._shape(item)) is None:
                found.leave_out(
                    where,
                    f"this object is neither an evaluator nor a row in the form in which {self.platform} exports them",
                    item,
                )
            elif shape.unless is not None and item.get(shape.unless[0]) in shape.unless[1]:
                found.leave_out(where, shape.unless[2], item)
            else:
                kind = kind or shape.what
                records.append(shape.record(item))
        if (total := _total(document)) > count:
            reason = f"the file has {count} of {total} objects, so pages of the list are missing: import all of them"
            found.leave_out("", reason)
        if records:
            found.rows.append(ImportedRows(slug(name) or "rows", records, kind))
        return found

    def _is_known(self, item: dict[str, Json]) -> bool:
        return self._shape(item) is not None or self.evaluator(item, FreeNames(), "") is not None

    def _shape(self, item: dict[str, Json]) -> RowShape | None:
        return next((shape for shape in self.rows if shape.fits(item)), None)


_PAGES: Final = ("data", "content", "objects", "items", "results", "rows")
_TOTALS: Final = ("total", "totalItems", "total_items", "totalCount", "total_count")


def objects(document: Json) -> Iterator[dict[str, Json]]:
    """Yield the objects in a list or in pages of an API (`{"data": […]}`); if `document` is one object, yield it."""
    if isinstance(document, dict):
        page = next((document[name] for name in _PAGES if _is_page(document.get(name))), None)
        yield from [document] if page is None else objects(page)
    elif isinstance(document, list):
        for one in document:
            if isinstance(one, dict):
                paged = len(one) <= 3 or ("id" not in one and any(name in one for name in _TOTALS))
                yield from objects(one) if paged and any(_is_page(one.get(name)) for name in _PAGES) else [one]


def _total(document: Json) -> int:
    """Return how many objects the whole list has, according to its pages; 0 if they do not say."""
    pages = [one for one in (document if isinstance(document, list) else [document]) if isinstance(one, dict)]
    pages = [one for one in pages if any(isinstance(one.get(name), list) for name in _PAGES)]
    told = [one for page in pages for one in (page, page.get("meta"), page.get("pagination")) if isinstance(one, dict)]
    totals = [one[name] for one in told for name in _TOTALS if type(one.get(name)) is int]
    return max(totals, default=0)


def _is_page(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)
