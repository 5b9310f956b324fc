"""The environment without packages: what an evaluator runs on that pins nothing."""

import hashlib
import platform
import sys

from evaluator_host.model.evaluator import Environment, Language


def empty_environment(language: Language, python: str | None = None) -> Environment:
    """Return a runner's environment without packages; TypeScript shares JavaScript's.

    Args:
      language: Of the evaluator.
      python: Minor version of Python; None for the host's own.
    """
    shared = Language.PYTHON if language is Language.PYTHON else Language.JAVASCRIPT
    key = f"{shared}\n{sys.platform}-{platform.machine()}\n"
    if python is not None:
        key += f"python {python}\n"
    return Environment(
        digest="sha256:" + hashlib.sha256(key.encode()).hexdigest(),
        language=shared,
        runtime=("python" if python is None else f"python {python}") if shared is Language.PYTHON else "node",
    )
