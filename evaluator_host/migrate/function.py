"""Describes the legacy function of a program and its parameters, for all languages."""

from dataclasses import dataclass
from typing import Final

from tree_sitter import Node

from evaluator_host.migrate.grammar import JAVASCRIPT, PYTHON
from evaluator_host.migrate.scopes import Scope
from evaluator_host.migrate.syntax import child, text

LEGACY: Final = 4  # number of parameters in the legacy signature
_FIRST: Final = frozenset(("appparams", "appconfig", "params"))
_FOURTH: Final = frozenset(("correctanswer", "groundtruth", "expected", "target", "reference", "datapoint", "label"))
_BLOCKS: Final = (PYTHON.block, JAVASCRIPT.block)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its syntax node, name or pattern, annotation and default value."""

    node: Node
    pattern: Node
    annotation: Node | None
    default: Node | None

    @property
    def name(self) -> str:
        """Return the parameter's name in the source, or its whole destructuring pattern."""
        return text(self.pattern)

    @property
    def is_plain(self) -> bool:
        """Return whether the parameter is a plain name, not a destructuring pattern."""
        return self.pattern.type == "identifier"

    @property
    def is_named_first(self) -> bool:
        """Return whether this parameter's name is usual for the first legacy parameter, the application's settings."""
        return self._words in _FIRST

    @property
    def is_named_fourth(self) -> bool:
        """Return whether this parameter's name is usual for the fourth legacy parameter, the correct answer."""
        return self._words in _FOURTH

    @property
    def _words(self) -> str:
        return self.name.replace("_", "").lower()


@dataclass(frozen=True, slots=True)
class Legacy:
    """A function with the legacy signature.

    Attributes:
      parameters: The four legacy parameters, in order. For a `Spread`, the parameters before the rest parameter.
      names: The names that the function has in its module.
    """

    node: Node
    scope: Scope
    parameters: tuple[Parameter, ...]
    names: tuple[str, ...] = ()

    @property
    def has_statements(self) -> bool:
        """Return whether the function's body is a block, not an expression."""
        body = child(self.node, "body")
        return body is not None and body.type in _BLOCKS


class Current(Exception):
    """The function already has the new signature, so there is nothing to rewrite."""


class Spread(Exception):
    """The function takes its last arguments as a list (`*args` or `...args`), so it is rewritten in a different way.

    Attributes:
      function: The function, with only the parameters before the list. There are fewer than four.
      rest: The parameter that is the list.
    """

    def __init__(self, function: Legacy, rest: Node) -> None:
        super().__init__(text(rest))
        self.function = function
        self.rest = rest
