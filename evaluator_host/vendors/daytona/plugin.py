"""Registers the host's code for clients of Daytona."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    wires={"daytona": EntryPoint("evaluator_host.vendors.daytona.wire:WIRE")},
)
