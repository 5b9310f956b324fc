"""Finds the modules of all resources, in the folders of this package and in plugins."""

from collections.abc import Iterator
from functools import cache

from evaluator_host.types.plugin_folders import PluginFolder, own_folders, plugin_folders


@cache
def resource_folders() -> tuple[PluginFolder, ...]:
    """Return the packages that may contain a resource: first those of the platform, sorted by name, then plugins."""
    found = (*own_folders("platform"), *plugin_folders().values())
    # without duplicates, since a resource of the platform may be registered as a plugin too
    return tuple({one.package: one for one in found}.values())


def modules(name: str) -> Iterator[str]:
    """Yield the full name of each resource's module with this name, such as `table`."""
    return (f"{one.package}.{name}" for one in resource_folders() if one.has(name))
