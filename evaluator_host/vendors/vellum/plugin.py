"""Registers the host's code for Vellum."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    wires={"vellum": EntryPoint("evaluator_host.vendors.vellum.wire:WIRE")},
)
