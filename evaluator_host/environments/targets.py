"""The runtime that package sets are installed for (the backend's, not always this machine's), and the set of none."""

import hashlib
import platform as machine
import sys

from evaluator_host.model.errors import PackagesFailed
from evaluator_host.model.evaluator import Environment, Language
from evaluator_host.packages.lock import Lock, Target
from evaluator_host.sandbox.base import Platform


def target_for(platform: Platform, language: Language, python: str | None = None) -> Target:
    """Return the target that sets of a language are resolved for.

    Args:
      platform: Of the backend.
      language: Of the evaluator.
      python: Minor version of Python; None for the backend's own.
    """
    runtime = (python or platform.python) if language is Language.PYTHON else platform.node
    return Target(runtime, platform.machine, platform.glibc)


def require_fit(lock: Lock, own: Target) -> None:
    """Refuse a lock that does not run on a target: another interpreter or processor, or an older C library.

    Raises:
      PackagesFailed: it does not fit.
    """
    if (lock.target.runtime, lock.target.machine) == (own.runtime, own.machine) and lock.target.glibc <= own.glibc:
        return
    raise PackagesFailed(
        f"the package set is for {_described(lock.language, lock.target)}, and this host has "
        f"{_described(lock.language, own)}: take it from a host like this one, or have the same pins built here anew"
    )


def _described(language: Language, target: Target) -> str:
    name = "Python" if language is Language.PYTHON else "Node"
    return f"{name} {target.runtime} on {target.platform}"


def empty_environment(language: Language, python: str | None = None) -> Environment:
    """Return the environment without packages, which JavaScript and TypeScript share.

    Args:
      language: Of the evaluator.
      python: Minor version of Python; None for the host's own.
    """
    shared = Language.PYTHON if language is Language.PYTHON else Language.JAVASCRIPT
    key = f"{shared}\n{sys.platform}-{machine.machine()}\n"
    if python is not None:
        key += f"python {python}\n"
    return Environment(
        digest="sha256:" + hashlib.sha256(key.encode()).hexdigest(),
        language=shared,
        runtime=("python" if python is None else f"python {python}") if shared is Language.PYTHON else "node",
    )
