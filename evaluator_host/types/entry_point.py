"""`EntryPoint`: the name of an object or module that is imported when it is first used."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class EntryPoint(Generic[_Part]):
    """An object or module that is imported when it is first used, so that naming it costs almost nothing.

    Attributes:
      path: `package.module:name`, or `package.module` for the module itself.
    """

    path: str

    def load(self) -> _Part:
        """Import and return the object or module."""
        module, _, name = self.path.partition(":")
        found: Any = import_module(module)
        part: _Part = getattr(found, name) if name else found
        return part
