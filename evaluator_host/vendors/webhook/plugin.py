"""Registers the host's code for webhooks."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    wires={"webhook": EntryPoint("evaluator_host.vendors.webhook.wire:WIRE")},
)
