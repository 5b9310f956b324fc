"""Registers the host's code for Laminar."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    wires={"laminar": EntryPoint("evaluator_host.vendors.laminar.wire:WIRE")},
)
