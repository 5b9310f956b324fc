"""Registers the host's code for OpenAI, except the dialect."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    wires={"openai": EntryPoint("evaluator_host.vendors.openai_grader.wire:WIRE")},
)
