"""Writes the two JSON files of each evaluator class that a sandbox found in a file: its schemas and its settings.

The files are byte for byte those that UiPath's own command line writes, so that you can use either command.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluation import CheckReport
from evaluator_host.types.evaluator import Json
from evaluator_host.types.outcome import EvaluationError, EvaluatorClass
from evaluator_host.vendors.uipath.project import Layout, read_json, write_file
from evaluator_host.vendors.uipath.template import kebab

_PREFIX: Final = "file://"
_NAME: Final = 80  # maximum number of characters in the name of a class


@dataclass(frozen=True, slots=True)
class Registered:
    """One evaluator and the files that were written to register it.

    Attributes:
      name: Name of its class.
      id: Id by which eval sets refer to it.
      types: Path of the file with its schemas.
      file: Path of the file with its settings.
      content: Content of `file`.
      kept: Settings that keep the values of an existing file, although the code has other values.
    """

    name: str
    id: str
    types: Path
    file: Path
    content: dict[str, Json]
    kept: tuple[str, ...] = ()


def usable_classes(report: CheckReport, file: Path) -> list[EvaluatorClass]:
    """Return the evaluator classes in a file that can be registered.

    Raises:
      InvalidRequest: the file cannot be loaded, has no evaluator class, or has a class with a fault.
    """
    if not report.classes:
        faults = [_problem(file.name, fault) for fault in report.problems]
        if any(fault.code != "entry_not_found" for fault in report.problems):
            raise InvalidRequest(f"{file.name} cannot be loaded", problems=tuple(faults))
        raise InvalidRequest(
            f"could not find a class inheriting from BaseEvaluator in {file.name}; "
            "write class MyEvaluator(BaseEvaluator[MyCriteria, MyConfig, str])"
        )
    concrete = [one for one in report.classes if not one.abstract]
    problems = [_problem(one.name, one.error) for one in concrete or report.classes if one.error is not None]
    problems += [*_name_problems(concrete), *_id_problems(concrete)]
    if problems:
        raise InvalidRequest(f"{file.name} cannot be registered", problems=tuple(problems))
    return concrete


def left_out(report: CheckReport) -> list[str]:
    """Return a message for each class that is abstract and therefore not registered."""
    return [f"{one.name} is left out: it lacks {', '.join(one.abstract)}" for one in report.classes if one.abstract]


def register(layout: Layout, file: Path, classes: Sequence[EvaluatorClass], *, reset: bool) -> list[Registered]:
    """Write the JSON files of evaluators.

    Args:
      layout: Layout of the project.
      file: The file with the evaluators' code.
      classes: The classes to register, from `usable_classes`.
      reset: Whether to overwrite settings in existing files with those from the code.

    Raises:
      InvalidRequest: another evaluator of the project has the same id, or a file cannot be written.
    """
    _require_own_ids(layout, classes)
    made = [_registered(layout, file, one, reset=reset) for one in classes]
    for one, found in zip(made, classes, strict=True):
        write_file(layout, one.types, json.dumps(found.types, indent=2))
        write_file(layout, one.file, json.dumps(one.content, indent=2))
    return made


def _registered(layout: Layout, file: Path, found: EvaluatorClass, *, reset: bool) -> Registered:
    name = kebab(found.name)
    types, settings = layout.types / f"{name}-types.json", layout.evaluators / f"{name}.json"
    before = read_json(settings) if settings.is_file() and not reset else None
    before = before if isinstance(before, dict) else {}
    config, kept = _config(found.config or {}, before.get("evaluatorConfig"))
    content = {
        "version": "1.0",
        "id": found.id,
        "evaluatorTypeId": f"{_PREFIX}types/{types.name}",
        "evaluatorSchema": f"{_PREFIX}{file.name}:{found.name}",
        "description": found.docstring,
        "evaluatorConfig": config,
    }
    content |= {key: value for key, value in before.items() if key not in content}
    return Registered(found.name, str(found.id), types, settings, content, tuple(kept))


def _config(code: dict[str, Json], file: Json) -> tuple[dict[str, Json], list[str]]:
    """Return the code's settings with the file's values, and the names of the settings that differ."""
    if not isinstance(file, dict):
        return dict(code), []
    kept = [name for name, value in code.items() if name in file and file[name] != value]
    return {name: file.get(name, value) for name, value in code.items()}, kept


def _name_problems(classes: Iterable[EvaluatorClass]) -> list[Problem]:
    """Find class names that cannot become file names, because files are named after the classes."""
    seen: dict[str, str] = {}
    problems = []
    for one in classes:
        if not one.name.isidentifier() or len(one.name) > _NAME:
            problems.append(
                Problem(
                    one.name[:_NAME], "files are named after the class, so its name must be a short Python identifier"
                )
            )
        elif (other := seen.setdefault(kebab(one.name), one.name)) != one.name:
            problems.append(
                Problem(
                    one.name,
                    f"the files of this class and of {other} would have the same names",
                    "rename one of the classes",
                )
            )
    return problems


def _id_problems(classes: Iterable[EvaluatorClass]) -> list[Problem]:
    seen: dict[str, str] = {}
    problems = []
    for one in classes:
        if one.error is not None:
            continue
        if not one.id or not one.id.strip() or not one.id.isprintable():
            problems.append(Problem(one.name, f"get_evaluator_id() returns {one.id!r}, which is not an id", _ID_HINT))
        elif one.id in seen:
            problems.append(Problem(one.name, f"{seen[one.id]} already has the id {one.id!r}", _ID_HINT))
        else:
            seen[one.id] = one.name
    return problems


_ID_HINT: Final = 'return a string that no other evaluator of the project has, as in return "MyEvaluator"'


def _require_own_ids(layout: Layout, classes: Iterable[EvaluatorClass]) -> None:
    ours = {f"{kebab(one.name)}.json": one for one in classes}
    problems = []
    for file in sorted(layout.evaluators.glob("*.json")) if layout.evaluators.is_dir() else []:
        if file.name in ours:
            continue
        try:
            other = read_json(file)
        except InvalidRequest:
            continue  # the id of an unreadable file is unknown; `uipath eval` reports such a file
        taken = f"{layout.shown(file)} already has the id"
        claimed = other.get("id") if isinstance(other, dict) else None
        problems += [Problem(one.name, f"{taken} {one.id!r}", _ID_HINT) for one in ours.values() if one.id == claimed]
    if problems:
        raise InvalidRequest("two evaluators have the same id", problems=tuple(problems))


def _problem(field: str, fault: EvaluationError) -> Problem:
    where = f"{field}:{fault.line}" if fault.line is not None else field
    return Problem(where, fault.message, fault.hint)
