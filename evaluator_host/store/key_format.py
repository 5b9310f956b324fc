"""What a key looks like: `eh_<id>_<secret>`. The id is public and finds it; of the whole only a hash is kept.

The secret has 256 random bits, so that a plain hash cannot be searched and needs no salt.
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
    """A key as its owner has it. `text` is shown once and is in no representation."""

    id: str
    text: str = field(repr=False)

    @property
    def hash(self) -> str:
        """What is kept of it."""
        return token_hash(self.text)


def generate_key() -> GeneratedKey:
    """Make a key."""
    key_id = "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
    return GeneratedKey(key_id, f"eh_{key_id}_{secrets.token_urlsafe(32)}")


def key_id_of(text: str) -> str | None:
    """Return the id of what may be a key, or None for what cannot be one."""
    match = _TOKEN.fullmatch(text)
    return match.group(1) if match else None


def token_hash(text: str) -> str:
    """Return what is kept of a key."""
    return hashlib.sha256(text.encode()).hexdigest()
