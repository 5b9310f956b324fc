"""Replaces row keys with aliases if JSON escapes the keys.

Only JavaScript needs this, because of a fault in V8.

Once `JSON.parse` has read an object with a backslash in a key, it may later confuse keys: a key that needs an escape
(for `"` or a line break) may be read as the earlier key.
"""

import hashlib
import json
import re
from typing import Any, Final

from evaluator_host.types.evaluator import Language
from evaluator_host.types.json_texts import Octets

# matches the end of a key: from its last escape to the colon
_ESCAPED_KEY: Final = re.compile(rb'\\.[^"\\]*+"[ \t\r\n]*+:', re.DOTALL)
_UNESCAPED: Final = re.compile(r"[ !#-\[\]-~]*")  # matches keys that no encoder escapes


def may_have_escaped_key(text: Octets, language: Language) -> bool:
    """Return whether JSON may have an escaped key; always false for languages in which escaped keys do no harm."""
    return language is not Language.PYTHON and _ESCAPED_KEY.search(text) is not None


def with_aliases(body: Any) -> Any:
    """Replace the keys that JSON escapes in a call's body with aliases, and add a table of the aliases to the body."""
    names = dict.fromkeys(_escaped_keys(body))
    # a prefix for the aliases; no other key begins with it
    mark = hashlib.sha256(json.dumps([*names]).encode()).hexdigest()[:16]
    aliases = {name: f"{mark}-{number}" for number, name in enumerate(names)}
    return {"aliases": {alias: name for name, alias in aliases.items()}, **_renamed(body, aliases)} if names else body


def _escaped_keys(value: Any) -> list[str]:
    if isinstance(value, list):
        return [key for item in value for key in _escaped_keys(item)]
    if not isinstance(value, dict):
        return []
    own = [key for key in value if _UNESCAPED.fullmatch(key) is None]
    return own + [key for item in value.values() for key in _escaped_keys(item)]


def _renamed(value: Any, aliases: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {aliases.get(key, key): _renamed(item, aliases) for key, item in value.items()}
    return [_renamed(item, aliases) for item in value] if isinstance(value, list) else value
