"""Registers the host's code for Braintrust, except the dialect."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    imports=EntryPoint("evaluator_host.vendors.braintrust.export:EXPORT"),
)
