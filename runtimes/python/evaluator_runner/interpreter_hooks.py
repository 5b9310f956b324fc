"""Removes hooks that user code left in the interpreter: tracers, profilers, alarms."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import sys

from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_settrace, _setprofile, _alarm = sys.settrace, sys.setprofile, _signal.alarm
_get_recursion, _set_recursion = sys.getrecursionlimit, sys.setrecursionlimit
_RECURSION = 1000


def call(function: Callable[..., Any], args: Any = (), kwargs: Any = {}) -> Any:  # noqa: B006 - never changed
    """Call user code; then, before any other function of the runner runs, remove the hooks that the code left."""
    try:
        return function(*args, **kwargs) if kwargs else function(*args)
    finally:
        _settrace(None)
        try:
            _setprofile(None)
        except BaseException:  # noqa: BLE001 - a user's profiler sees this call and may raise
            _setprofile(None)
        _alarm(0)
        if _get_recursion() < _RECURSION:  # the runner needs a recursion limit of at least this value
            _set_recursion(_RECURSION)
