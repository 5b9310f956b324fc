"""Masks secrets in strings and values that a caller may see."""

import base64
import dataclasses
import json
from typing import Any, Final
from urllib.parse import quote

MASKED: Final = "[masked]"
SHORTEST: Final = 8  # minimum length of a secret to mask; masking shorter ones would mask ordinary words


class Redactor:
    """Replaces secrets with `[masked]` in every form in which an endpoint may echo them.

    Secrets shorter than `SHORTEST` are not replaced.
    """

    def __init__(self, *secrets: str | None) -> None:
        known = {form for secret in secrets if secret and len(secret) >= SHORTEST for form in _forms(secret)}
        self._forms = sorted(known, key=len, reverse=True)

    def __bool__(self) -> bool:
        """Return whether there is any secret to mask."""
        return bool(self._forms)

    def text(self, text: str) -> str:
        """Return a string with the secrets masked."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASKED)
        return text

    def value(self, value: Any) -> Any:
        """Mask the secrets in the names and values of a JSON value, or of a dataclass with JSON values."""
        if not self._forms:
            return value
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(str(name)): self.value(inner) for name, inner in value.items()}
            case list() | tuple():
                return type(value)(map(self.value, value))
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
                fields = [one.name for one in dataclasses.fields(value) if one.init]
                return dataclasses.replace(value, **{name: self.value(getattr(value, name)) for name in fields})
            case _:
                return value


def _forms(secret: str) -> set[str]:
    encoded = {base64.b64encode(text.encode()).decode().rstrip("=") for text in (secret, f"Bearer {secret}")}
    quoted = json.dumps(secret)[1:-1]
    twice = json.dumps(quoted)[1:-1]  # JSON inside a JSON string, such as a tool's arguments
    return {secret, quote(secret, safe=""), quote(secret), quoted, twice, *encoded}
