"""Finds the parts of resources by their modules: in the folders here, and in plugins of others."""

from collections.abc import Iterator
from functools import cache

from evaluator_host.types.plugin_folders import PluginFolder, own_folders, plugin_folders


@cache
def resource_folders() -> tuple[PluginFolder, ...]:
    """Return the packages that may bring a resource: those of the platform by name, then the plugins."""
    found = (*own_folders("platform"), *plugin_folders().values())
    return tuple({one.package: one for one in found}.values())  # a resource of the platform may be a plugin, too


def modules(name: str) -> Iterator[str]:
    """Yield the full names of all modules with this name, such as `table`, that resources have."""
    return (f"{one.package}.{name}" for one in resource_folders() if one.has(name))
