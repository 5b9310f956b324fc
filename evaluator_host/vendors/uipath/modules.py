"""Finds the folders from which an evaluator of a UiPath project imports its own modules.

UiPath's command line looks for these modules in the project's root; when it registers an evaluator, it also looks
beside the evaluator. Eval sets are left out, because they contain the expected answers.
"""

from pathlib import Path

from evaluator_host.engine.packages.own_files import Project
from evaluator_host.vendors.uipath.project import EVAL_SETS, FOLDERS, Layout

_THERE = frozenset({"uipath"})  # names of modules that never come from the project


def project_of(layout: Layout) -> Project:
    """Return the project whose files a layout describes."""
    return Project(layout.root, closed=_is_closed, unknown=_THERE)


def project_around(file: Path) -> Project | None:
    """Return the project around an evaluator's file, `<root>/<folder>/evaluators/…`, or None if there is no project."""
    for folder in file.absolute().parents:
        if folder.name == "evaluators" and folder.parent.name in FOLDERS:
            return project_of(Layout(folder.parent.parent, folder.parent.name))
    return None


def _is_closed(parts: tuple[str, ...]) -> bool:
    return len(parts) > 1 and parts[0] in FOLDERS and parts[1] in EVAL_SETS
