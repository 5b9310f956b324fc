"""Gives legacy evaluators their `app_params`, and records keys that the evaluators read although they are absent."""

from __future__ import annotations

from evaluator_runner import jsontext
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 20
_KEY_CHARS = 200

unset: dict[str, None] = {}
"""Absent keys that the evaluator has read in the current row."""


class Params(dict):  # type: ignore[type-arg]
    """A dict that records which absent keys are read."""

    __slots__ = ()

    def __missing__(self, key: Any) -> Any:
        self._look_for(key)
        raise KeyError(key)

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if self._look_for(key) else default

    def __contains__(self, key: object) -> bool:
        return self._look_for(key)

    def _look_for(self, key: object) -> bool:
        there = dict.__contains__(self, key)
        if not there and type(key) is str and len(unset) < _MOST:
            unset[key[:_KEY_CHARS]] = None
        return there

    def pop(self, key: Any, *default: Any) -> Any:
        """Remove a key and return its value, or the default."""
        self._look_for(key)
        return dict.pop(self, key, *default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the value of a key; if the key is absent, set it to the default."""
        self._look_for(key)
        return dict.setdefault(self, key, default)


def added_to(body: bytes) -> bytes:
    """Add the recorded keys to an answer's body (a JSON object), and forget them; return the body."""
    if not unset:
        return body
    keys = list(unset)
    unset.clear()
    return body[:-1] + jsontext.to_bytes(f',"unset_params":{jsontext.encode(keys)}}}')
