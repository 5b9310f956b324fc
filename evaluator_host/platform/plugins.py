"""`Plugin`: parts that a vendor's package adds, and that other modules look up. See docs/dialects/adding.md."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evaluator_host.engine.contracts.imports import ImportFormat
from evaluator_host.engine.contracts.row_documents import RowDocument
from evaluator_host.types.entry_point import EntryPoint
from evaluator_host.types.plugin_folders import plugin_folders


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """Parts that one package adds, and that work without a host. Each part is imported when it is first used.

    Routes, tasks, tables and commands are in other modules of the package, see `Resource`.

    Attributes:
      wires: APIs of other platforms (`Wire` objects), by their names in `EVALUATOR_HOST_WIRES`.
      imports: Reads the platform's own files, such as configurations and exports.
      row_document: Reads rows from a JSON document in the platform's own format.
      find_project: Takes the path of a Python file. Returns the `Project` that the file belongs to; None for a file
        outside the platform's projects.
      find_model: Returns the `ModelPlace` of a model that callers registered, or None; called as `find_model(database,
        workspace_id, namespace, name)`.
      stored_files: Returns the ids of stored files to which the plugin's objects in a database refer.
    """

    wires: Mapping[str, EntryPoint[Any]] = field(default_factory=dict)
    imports: EntryPoint[ImportFormat] | None = None
    row_document: EntryPoint[RowDocument] | None = None
    find_project: EntryPoint[Callable[[Path], Any]] | None = None
    find_model: EntryPoint[Callable[..., Awaitable[Any]]] | None = None
    stored_files: EntryPoint[Callable[[Any], Awaitable[set[str]]]] | None = None


@cache
def plugins() -> Mapping[str, Plugin]:
    """Return the `PLUGIN` of each `plugin.py`, keyed by the plugin's name."""
    found = {
        name: import_module(f"{folder.package}.plugin").PLUGIN
        for name, folder in plugin_folders().items()
        if folder.has("plugin")
    }
    return MappingProxyType(found)


def row_document(document: dict[str, Any]) -> RowDocument | None:
    """Return the reader for a JSON document with rows in a platform's format. None if no plugin can read it."""
    readers = (one.row_document.load() for one in plugins().values() if one.row_document is not None)
    return next((reader for reader in readers if reader.recognises(document)), None)
