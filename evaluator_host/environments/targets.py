"""For which runtime and platform package sets are installed: it is the backend's, not always this machine's."""

from evaluator_host.model.errors import PackagesFailed
from evaluator_host.model.evaluator import Language
from evaluator_host.packages.lock import Lock, Target
from evaluator_host.sandbox.base import Platform


def target_for(platform: Platform, language: Language, python: str | None = None) -> Target:
    """Return what sets of a language are resolved for.

    Args:
      platform: Of the backend.
      language: Of the evaluator.
      python: Minor version of Python; None for the backend's own.
    """
    runtime = (python or platform.python) if language is Language.PYTHON else platform.node
    return Target(runtime, platform.machine, platform.glibc)


def require_fit(lock: Lock, own: Target) -> None:
    """Check that a locked set runs on a target: same interpreter and processor, a C library that is no older.

    Raises:
      PackagesFailed: it does not.
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
