"""Finds all wires (routes for other platforms). `EVALUATOR_HOST_WIRES` names the wires that a host serves."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from evaluator_host.platform.plugins import plugins
from evaluator_host.types.entry_point import EntryPoint
from evaluator_host.types.errors import Misconfigured, Problem
from evaluator_host.types.names import nearest_name


@cache
def wires() -> Mapping[str, EntryPoint[Any]]:
    """Return the wires of all plugins, keyed by name, in alphabetical order."""
    found = {name: wire for plugin in plugins().values() for name, wire in plugin.wires.items()}
    return dict(sorted(found.items()))


def require_known(names: Iterable[str], setting: str) -> None:
    """Check that there is a wire with each of these names.

    Args:
      names: Names of wires.
      setting: Name of the setting that contains these names, for the message.

    Raises:
      Misconfigured: a name is unknown; the hint is the most similar name.
    """
    for name in names:
        if name not in wires():
            near = nearest_name(name, wires())
            hint = f"did you mean {near}?" if near else f"the wires are {', '.join(wires())}"
            problem = Problem(setting, f"there is no wire {name[:80]!r}", hint)
            raise Misconfigured(f"there is no wire {name[:80]!r}; {hint}", problems=(problem,))
