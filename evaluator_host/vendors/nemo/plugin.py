"""Registers the host's code for NeMo, except the dialect."""

from typing import Final

from evaluator_host.platform.plugins import Plugin
from evaluator_host.types.entry_point import EntryPoint

PLUGIN: Final = Plugin(
    find_model=EntryPoint("evaluator_host.vendors.nemo.models:find_model"),
    stored_files=EntryPoint("evaluator_host.vendors.nemo.entities:stored_files"),
)
