"""Records the environment variables for keys and tokens that code reads, but that are not set."""

from __future__ import annotations

import os
import sys

from evaluator_runner import jsontext, tracebacks
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

_MOST = 5
_NAME_CHARS = 100
_WORDS = {"APIKEY", "CREDENTIALS", "KEY", "SECRET", "TOKEN"}
_FOR_DOWNLOADS = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}
"""Variables that libraries read before each download, even of public files; only reads by own code count."""
_PASSING = ("/os.py", "<frozen os>", "/_collections_abc.py", "<frozen _collections_abc>")
_frame = sys._getframe  # noqa: SLF001 - the public functions make a list of all frames

names: dict[str, None] = {}
"""Names of the variables since the last answer."""


def install() -> None:
    """Record the variables for keys that code reads but that are not set, from now on."""
    kind: type = type(os.environ)

    class Environment(kind):  # type: ignore[misc]
        def __getitem__(self, key: str) -> str:
            try:
                return str(super().__getitem__(key))
            except KeyError:
                if type(key) is str and len(names) < _MOST and _is_needed(key) and not self._has_client_key(key):
                    names[key[:_NAME_CHARS]] = None
                raise

        def _has_client_key(self, name: str) -> bool:
            """Whether the client that looks for `name`, such as OPENAI_ADMIN_KEY, has its key, OPENAI_API_KEY."""
            return self.encodekey(f"{name.partition('_')[0]}_API_KEY") in self._data

    os.environ.__class__ = Environment


def _is_needed(key: str) -> bool:
    return not _WORDS.isdisjoint(key.upper().split("_")) and (key not in _FOR_DOWNLOADS or _is_read_by_own_code())


def _is_read_by_own_code() -> bool:
    """Return whether the evaluator's own code, and not a library, reads a variable just now."""
    frame = _frame(3)
    while frame.f_back is not None and frame.f_code.co_filename.endswith(_PASSING):
        frame = frame.f_back
    file = frame.f_code.co_filename
    return file == tracebacks.FILENAME or file in tracebacks.OTHERS


def added_to(body: bytes) -> bytes:
    """Add a note on the missing environment variables to a result's body."""
    told = ", ".join(names)
    message = (
        f"the environment has no value for {told}, which the code reads; the score is what the code returns without it"
    )
    return jsontext.with_note(body, "missing_key", message)
