"""The environment without packages: what an evaluator runs on that pins nothing."""

import hashlib
import platform
import sys

from evaluator_host.model import Environment, Language


def empty_environment(language: Language) -> Environment:
    """Return a runner's environment without packages; TypeScript shares JavaScript's."""
    shared = Language.PYTHON if language is Language.PYTHON else Language.JAVASCRIPT
    key = f"{shared}\n{sys.platform}-{platform.machine()}\n"
    return Environment(
        digest="sha256:" + hashlib.sha256(key.encode()).hexdigest(),
        language=shared,
        runtime="python" if shared is Language.PYTHON else "node",
    )
