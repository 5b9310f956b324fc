"""Registers the host's code for Langfuse, except the dialect."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    imports=EntryPoint("evaluator_host.vendors.langfuse.export:EXPORT"),
    wires={"langfuse": EntryPoint("evaluator_host.vendors.langfuse.wire:WIRE")},
)
