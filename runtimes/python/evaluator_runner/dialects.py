"""Holds the table of dialects (the ways to write an evaluator) and finds the dialect of given code.

Each name in the table is a module or a package in the folder `dialects` beside this package. It has:

- `CONTRACT`: the dialect's name in the protocol.
- `PREBOUND`: whether code may use the modules of `prebound.NAMES` without importing them.
- `applies(namespace, name)`: returns whether code that has run is written in this dialect; `name` is the entry that the
  caller asked for, or None.
- `find(namespace, *, name, config)`: returns the `Entry`, or raises a `Failure`.
- `describe(namespace, lines)`, optional: returns the description of each evaluator class, for a check.
- `is_plain(compiled)`, optional: returns whether code that has not run yet can only be of this dialect.

Every module is imported before any user code runs, so that user code cannot change what it uses.
"""

from __future__ import annotations

import os

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.entry import does_not_fit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from evaluator_runner.entry import Entry

__path__ = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "dialects")]

_NAMES = (  # in the order in which `find` tries them
    "nemo",
    "uipath",
    "evaluate_v1",
    "evaluate",
    "main",
)
_MODULES: list[Any] = [__import__(f"{__name__}.{name}", fromlist=["CONTRACT"]) for name in _NAMES]

TABLE: dict[str, Any] = {module.CONTRACT: module for module in _MODULES}
"""The dialects by contract."""


def find(namespace: dict[str, Any], *, contract: str, name: str | None, config: dict[str, Any] | None = None) -> Entry:
    """Return the entry that is called for each row.

    Args:
      namespace: Globals of the code after it has run.
      contract: The declared contract, or `auto`.
      name: Name of the function or class, or None when the caller gave none.
      config: Arguments for an evaluator class.

    Raises:
      Failure: the code has no entry, or several possible ones, or its parameters do not fit the contract.
    """
    inferred = contract == "auto"
    dialect = _meant(namespace, name) if inferred else TABLE[contract]
    entry: Entry = dialect.find(namespace, name=name, config=config or {})
    entry.contract = dialect.CONTRACT
    entry.source = "inferred" if inferred else "declared"
    if not inferred:
        entry.reason = f"contract {contract} was declared"
    return entry


def describe(namespace: dict[str, Any], lines: list[str]) -> list[dict[str, Any]]:
    """Return a description of each evaluator class in the code; `lines` are the source, to locate errors."""
    return [found for module in _MODULES if hasattr(module, "describe") for found in module.describe(namespace, lines)]


def may_use_prebound(contract: str, name: str | None, compiled: CodeType) -> bool:
    """Return whether this code, before it runs, should be given modules that it does not import."""
    if contract != "auto":
        return bool(TABLE[contract].PREBOUND)
    plain = [module for module in _MODULES if hasattr(module, "is_plain") and module.is_plain(compiled)]
    return name is not None or not plain or bool(plain[0].PREBOUND)


def _meant(namespace: dict[str, Any], name: str | None) -> Any:
    for module in _MODULES:
        if module.applies(namespace, name):
            return module
    raise does_not_fit(namespace, name or "evaluate")
