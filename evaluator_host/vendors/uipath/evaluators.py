"""Finds a project's registered evaluators by id, and reads their code without importing it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import Json
from evaluator_host.types.names import nearest_name
from evaluator_host.vendors.uipath.project import Layout, read_json

_PREFIX: Final = "file://"
_BUILT_IN: Final = {
    "uipath-contains": "ContainsEvaluator",
    "uipath-exact-match": "ExactMatchEvaluator",
    "uipath-json-similarity": "JsonSimilarityEvaluator",
    "uipath-tool-call-args": "ToolCallArgsEvaluator",
    "uipath-tool-call-count": "ToolCallCountEvaluator",
    "uipath-tool-call-order": "ToolCallOrderEvaluator",
    "uipath-tool-call-output": "ToolCallOutputEvaluator",
}
_OF_THE_PACKAGE: Final = """\
from uipath.eval.evaluators import {name} as InThePackage


class {name}(InThePackage):
    \"""As it is in the package.\"""
"""
_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class ProjectEvaluator:
    """A registered evaluator of a UiPath project.

    Attributes:
      id: Id by which eval sets refer to it.
      name: Name to show.
      config: Content of its JSON file.
      code: Path of the file with its code. For UiPath's own evaluators, the code itself, which needs a pin of `uipath`.
      entry: Name of its class.
    """

    id: str
    name: str
    config: dict[str, Json]
    code: Path | str
    entry: str

    @property
    def is_built_in(self) -> bool:
        """Whether the evaluator's code comes from the package `uipath`, not from the project."""
        return isinstance(self.code, str)


def find_evaluators(layout: Layout, ids: Sequence[str]) -> list[ProjectEvaluator]:
    """Return the evaluators with these ids, in the order of the ids.

    Raises:
      InvalidRequest: an evaluator is not registered, or its files are not valid.
    """
    known, unread = _known(layout)
    problems: list[Problem] = []
    found = []
    for one in ids:
        if one not in known:
            problems.append(_unknown(layout, one, sorted(known), unread))
            continue
        try:
            found.append(_evaluator(layout, one, known[one]))
        except InvalidRequest as error:
            problems.append(Problem(one, error.detail))
    if problems:
        raise InvalidRequest("the eval set names evaluators that cannot run", problems=tuple(problems))
    return found


def _known(layout: Layout) -> tuple[dict[str, tuple[Path, dict[str, Json]]], list[str]]:
    known: dict[str, tuple[Path, dict[str, Json]]] = {}
    unread = []
    for file in sorted(layout.evaluators.glob("*.json")) if layout.evaluators.is_dir() else []:
        try:
            content = read_json(file)
        except InvalidRequest as error:
            unread.append(error.detail)
            continue
        if not isinstance(content, dict) or not isinstance(content.get("id"), str):
            unread.append(f"{layout.shown(file)} has no id")
        elif content["id"] in known:
            other = layout.shown(known[content["id"]][0])
            raise InvalidRequest(f"{layout.shown(file)} and {other} have the same id, {content['id']!r}; change one")
        else:
            known[content["id"]] = (file, content)
    return known, unread


def _unknown(layout: Layout, one: str, known: list[str], unread: list[str]) -> Problem:
    meant = nearest_name(one, known)
    if meant is not None:
        hint = f"did you mean {meant}?"
    elif known:
        hint = f"choose from {', '.join(known[:_SHOWN])}"
    else:
        hint = "register the evaluators of a file with evaluator-host uipath register FILE"
    message = f"no evaluator in {layout.shown(layout.evaluators)} has this id"
    return Problem(one, "; ".join([message, *unread]), hint)


def _evaluator(layout: Layout, one: str, found: tuple[Path, dict[str, Json]]) -> ProjectEvaluator:
    file, content = found
    config = content.get("evaluatorConfig")
    if not isinstance(config, dict):
        raise InvalidRequest(f"{layout.shown(file)} has no evaluatorConfig; register the evaluator again")
    name = config.get("name")
    name = name if isinstance(name, str) and name else one
    built_in = _BUILT_IN.get(str(content.get("evaluatorTypeId")))
    if built_in is not None:
        return ProjectEvaluator(one, name, content, _OF_THE_PACKAGE.format(name=built_in), built_in)
    code, entry = _schema(layout, file, content)
    return ProjectEvaluator(one, name, content, code, entry)


def _schema(layout: Layout, file: Path, content: dict[str, Json]) -> tuple[Path, str]:
    """Return the file and the class that `evaluatorSchema` names."""
    schema = content.get("evaluatorSchema")
    if not isinstance(schema, str) or not schema.startswith(_PREFIX):
        raise InvalidRequest(
            f"{layout.shown(file)} is of type {content.get('evaluatorTypeId')!r}, which does not run here; for an "
            "evaluator of your own write evaluatorSchema: file://my_evaluator.py:MyEvaluator"
        )
    path, colon, entry = schema.removeprefix(_PREFIX).rpartition(":")
    if not colon or not path or not entry.isidentifier():
        raise InvalidRequest(f"the evaluatorSchema of {layout.shown(file)} is {schema!r}, not file://FILE.py:CLASS")
    return _code(layout, path), entry


def _code(layout: Layout, path: str) -> Path:
    """Find a file by its path in the project, the evaluators' folder or the custom folder; refuse other files."""
    for folder in (layout.root, layout.evaluators, layout.custom):
        found = folder / path
        if found.is_file() and found.resolve().is_relative_to(layout.root.resolve()):
            return found
    raise InvalidRequest(
        f"there is no file {path!r} in {layout.shown(layout.custom)}; put it there, or correct evaluatorSchema"
    )
