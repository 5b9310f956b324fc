"""The format of an API key: `eh_<id>_<secret>`. The public id finds it in the store, which has a hash of the whole.

The secret has 256 random bits, so the hash needs no salt.
"""

import hashlib
import re
import secrets
import string
from dataclasses import dataclass, field
from typing import Final

_ALPHABET: Final = string.ascii_lowercase + string.digits
_ID_LENGTH: Final = 12
_TOKEN: Final = re.compile(rf"eh_([a-z0-9]{{{_ID_LENGTH}}})_[A-Za-z0-9_-]{{43}}")


@dataclass(frozen=True, slots=True)
class GeneratedKey:
    """A new key. `text` is shown once to its owner, and never in a repr."""

    id: str
    text: str = field(repr=False)

    @property
    def hash(self) -> str:
        """The hash to store."""
        return token_hash(self.text)


def generate_key() -> GeneratedKey:
    """Return a new random key."""
    key_id = "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
    return GeneratedKey(key_id, f"eh_{key_id}_{secrets.token_urlsafe(32)}")


def key_id_of(text: str) -> str | None:
    """Return the id in a key, or None for a text that is no key."""
    match = _TOKEN.fullmatch(text)
    return match.group(1) if match else None


def token_hash(text: str) -> str:
    """Return the hash of a key to store and to compare."""
    return hashlib.sha256(text.encode()).hexdigest()
