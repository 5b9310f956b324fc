"""Gives clients of models placeholders for their API keys, so that code can create these clients while it loads."""

from __future__ import annotations

from evaluator_runner import imports, later
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KEYS = {  # environment variables that must have a value before code can create a client
    "anthropic": ("ANTHROPIC_API_KEY",),
    "cohere": ("CO_API_KEY", "COHERE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "OPENAI": ("OPENAI_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
}
_PLACEHOLDER = "no-key-in-a-sandbox"
_MOST = 20  # maximum number of variables that get a placeholder although no client looks for them by itself


def give_keys(texts: list[str], environment: Any) -> None:
    """For clients that code mentions, set the variables for API keys to a placeholder, unless they have a value.

    The same holds for variables that the code only reads as `api_key=os.environ["NAME"]`.
    """
    for word, names in _KEYS.items():
        if any(word in text for text in texts):
            for name in names:
                environment.setdefault(name, _PLACEHOLDER)
    passed = [one for text in texts if "environ[" in text for one in _passed_keys(text)]
    for name in [*dict.fromkeys(passed)][:_MOST]:
        if passed.count(name) == sum(text.count(name) for text in texts):
            environment.setdefault(name, _PLACEHOLDER)


def _passed_keys(code: str) -> list[str]:
    """Return the variables that code passes to clients as `api_key=os.environ["NAME"]`, once for each time."""
    found: list[str] = []
    left = [tree] if "api_key" in code and (tree := later.parsed(code)) is not None else []
    while left:
        node: Any = left.pop()
        if type(node).__name__ == "keyword" and node.arg == "api_key" and (name := _variable_of(node.value)):
            found.append(name)
        # code that catches the error of a missing key has something else to do without the key
        caught = node.body if getattr(node, "handlers", None) else []
        left.extend(one for one in imports.children(node) if one not in caught)
    return found


def _variable_of(node: Any) -> str | None:
    """Return the name of the environment variable that `os.environ["NAME"]` reads; None for other code."""
    of = getattr(node, "value", None)
    name = getattr(getattr(node, "slice", None), "value", None)
    is_read = "environ" in (getattr(of, "attr", ""), getattr(of, "id", ""))
    if not is_read or type(name) is not str or not name.isascii() or not name.isidentifier():
        return None
    return name if name.endswith(("_KEY", "_TOKEN")) else None
