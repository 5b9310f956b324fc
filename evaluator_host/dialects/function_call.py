"""How a platform calls a function in Python, as expressions over the arguments of `evaluate`.

`migrate` rewrites evaluators of a dialect by it. In an expression `{inputs}`, `{outputs}` and `{trace}` are the names
of the new parameters, `{key}` is the name of the ground truth, as a literal.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

TRUTH: Final = "{inputs}.get({key})"
AS_OBJECT: Final = '{outputs} if isinstance({outputs}, dict) else {{"output": {outputs}}}'
TRUTH_AS_OBJECT: Final = (
    '{inputs}.get({key}) if isinstance({inputs}.get({key}), dict) else {{"output": {inputs}.get({key})}}'
)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One way to call a function.

    Attributes:
      arguments: What a parameter of each name gets.
      entries: Names of the function; empty for any name.
      by_position: Names of parameters are free; `arguments` are in the order in which they are passed.
      decorators: Decorators that only mark the function; they are removed.
      result: What an adapter returns for `result`, the function's value.
    """

    arguments: Mapping[str, str]
    entries: tuple[str, ...] = ()
    by_position: bool = False
    decorators: tuple[str, ...] = ()
    result: str = "result"
