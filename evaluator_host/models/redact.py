"""Takes a secret out of whatever came back from where it was sent, in the forms in which it may have been repeated."""

import base64
import json
from typing import Any, Final
from urllib.parse import quote

MASKED: Final = "[masked]"


class Redactor:
    """Replaces a secret in texts and JSON values; None masks nothing."""

    def __init__(self, secret: str | None) -> None:
        self._forms = sorted(_forms(secret), key=len, reverse=True) if secret else []

    def text(self, text: str) -> str:
        """Return a text without the secret."""
        for form in self._forms:
            text = text.replace(form, MASKED)
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without the secret, in names and values alike."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(str(name)): self.value(inner) for name, inner in value.items()}
            case list():
                return [self.value(inner) for inner in value]
            case _:
                return value


def _forms(secret: str) -> set[str]:
    encoded = {base64.b64encode(text.encode()).decode().rstrip("=") for text in (secret, f"Bearer {secret}")}
    return {secret, quote(secret, safe=""), quote(secret), json.dumps(secret)[1:-1], *encoded}
