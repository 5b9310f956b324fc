"""Runs evaluators of dialect `main`: a function `main` that gets a row's variables by name."""

from __future__ import annotations

from evaluator_runner import entry, jsontext
from evaluator_runner.binding import AttributeDict
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTRACT = "main"
PREBOUND = True

_decode = jsontext.decoder(AttributeDict)


def applies(namespace: dict[str, Any], name: str | None) -> bool:
    """Return whether there is a function `main`, or a function `name` that is not called `evaluate`."""
    return name != "evaluate" and entry.is_function(namespace.get(name or "main"))


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls `main`, or the function `name`.

    JSON objects are passed as dicts whose keys are also attributes.
    """
    found = entry.find_function(namespace, name or "main")
    found.decode = _decode
    return found
