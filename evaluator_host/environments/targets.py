"""For which runtime and platform package sets are installed: it is the backend's, not always this machine's."""

import json
import platform
import sys
from functools import lru_cache
from typing import Final

from evaluator_host.config import settings as config
from evaluator_host.model.errors import PackagesFailed
from evaluator_host.model.evaluator import Language
from evaluator_host.packages.lock import Lock, Target

NODE: Final = "24"
_IMAGE_GLIBC: Final = (2, 41)  # of Debian trixie, the base of the runtime image
_OLDEST_GLIBC: Final = (2, 28)


def target_for(backend: str, language: Language, python: str | None = None) -> Target:
    """Return what sets of a language are resolved for.

    Args:
      backend: Its name: containers have the image's interpreter, every other sandbox this machine's.
      language: Of the evaluator.
      python: Minor version of Python; None for the backend's own.
    """
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    in_image = backend == "docker"
    glibc = _IMAGE_GLIBC if in_image else _own_glibc()
    if language is not Language.PYTHON:
        return Target(NODE, machine, glibc)
    own = _image_python() if in_image else f"{sys.version_info.major}.{sys.version_info.minor}"
    return Target(python or own, machine, glibc)


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


@lru_cache(maxsize=1)
def _own_glibc() -> tuple[int, int]:
    name, version = platform.libc_ver()
    parts = version.split(".")
    return (int(parts[0]), int(parts[1])) if name == "glibc" and len(parts) > 1 else _OLDEST_GLIBC


@lru_cache(maxsize=1)
def _image_python() -> str:
    pins = json.loads((config.SANDBOX_IMAGES_DIR / "pins.json").read_text("utf-8"))
    return str(pins["python"])
