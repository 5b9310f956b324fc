"""Records the environment variables for keys and tokens that code reads, but that are not set."""

from __future__ import annotations

import os

from evaluator_runner import jsontext
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

_MOST = 5
_NAME_CHARS = 100
_WORDS = {"APIKEY", "CREDENTIALS", "KEY", "SECRET", "TOKEN"}
_NO_NOTES = b'"notes":[]}'

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
                if type(key) is str and len(names) < _MOST and not _WORDS.isdisjoint(key.upper().split("_")):
                    names[key[:_NAME_CHARS]] = None
                raise

    os.environ.__class__ = Environment


def added_to(body: bytes) -> bytes:
    """Add a note on the missing environment variables to a result's body."""
    told = ", ".join(names)
    message = f"the environment lacks {told}, which the code reads, so the score is what the code gives without it"
    note = jsontext.to_bytes(jsontext.encode({"code": "missing_key", "message": message}))
    if body.endswith(_NO_NOTES):
        return body[:-2] + note + b"]}"
    return body[:-2] + b"," + note + b"]}"
