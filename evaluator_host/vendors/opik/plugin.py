"""Registers the host's code for Opik, except the dialect."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    imports=EntryPoint("evaluator_host.vendors.opik.export:EXPORT"),
    wires={"opik": EntryPoint("evaluator_host.vendors.opik.wire:WIRE")},
)
