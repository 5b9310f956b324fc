"""Registers the host's code for Coze Loop, except the dialect."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    wires={"coze": EntryPoint("evaluator_host.vendors.coze.wire:WIRE")},
)
