"""Registers the host's code for LangSmith, except the dialect."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    imports=EntryPoint("evaluator_host.vendors.langsmith.export:EXPORT"),
)
