"""Registers the host's code for UiPath, except the dialect."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    row_document=EntryPoint("evaluator_host.vendors.uipath.records:EVAL_SETS"),
    find_project=EntryPoint("evaluator_host.vendors.uipath.modules:project_around"),
)
