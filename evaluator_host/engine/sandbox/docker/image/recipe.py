"""The recipe of the runtime image: pins, files, and the digest that shows whether an image is out of date."""

import hashlib
import json
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Final

from evaluator_host.engine.config.settings import RUNTIMES_DIR, SANDBOX_IMAGES_DIR
from evaluator_host.engine.sandbox.base import Platform
from evaluator_host.engine.sandbox.bubblewrap.policy import COMMANDS
from evaluator_host.engine.sandbox.docker.policy import IMAGE_NODE
from evaluator_host.engine.sandbox.local import LocalTools
from evaluator_host.engine.sandbox.pythons import machine_name
from evaluator_host.engine.sandbox.runtimes import added_files

LABEL_RECIPE: Final = "evaluator-host.recipe"
LABEL_BASE: Final = "evaluator-host.base"

BASE_FILES: Final = ("base.Dockerfile", "pins.json", "strip.sh")
_RECIPE_FILES: Final = (*BASE_FILES, "Dockerfile")
GLIBC: Final = (2, 41)  # C library of Debian trixie, the suite in pins.json
_RUNNERS: Final = ("python", "javascript")
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules", "tests"})


@dataclass(frozen=True, slots=True)
class Pins:
    """The pins in `sandbox_images/pins.json`: Debian suite, base image, its Python version, packages to install."""

    suite: str
    base_image: str
    base_digest: str | None
    python: str
    packages: tuple[str, ...]

    @property
    def base_reference(self) -> str:
        """Return the name of the base image to pull, with the digest if it is known."""
        return f"{self.base_image}@{self.base_digest}" if self.base_digest else self.base_image


def read_pins() -> Pins:
    """Return the pins in `pins.json`."""
    data = json.loads((SANDBOX_IMAGES_DIR / "pins.json").read_bytes())
    base = data["base"]
    return Pins(data["suite"], base["image"], base["digest"], data["python"], tuple(data["packages"]))


@cache
def image_platform(machine: str) -> Platform:
    """Return the platform in containers of the runtime image; `machine` is the processor type, such as `x86_64`."""
    return Platform(read_pins().python, machine_name(machine), GLIBC)


def recipe_digest(runtimes_dir: Path | None = None) -> str:
    """Return the digest of the runners and the recipe; an image with another digest is out of date.

    Args:
      runtimes_dir: The folder of the runners' sources; None for the runners of this host and its plugins.
    """
    files = [(f"images/{name}", SANDBOX_IMAGES_DIR / name) for name in _RECIPE_FILES]
    sources = [named for runner in _RUNNERS for named in _tree((runtimes_dir or RUNTIMES_DIR) / runner, runner)]
    added = added_files() if runtimes_dir is None else ()
    return _digest([*files, *sorted((*sources, *added), key=lambda named: PurePosixPath(named[0]))])


def base_digest() -> str:
    """Return the digest of the files in the recipe of the base image."""
    return _digest((name, SANDBOX_IMAGES_DIR / name) for name in BASE_FILES)


def write_context(target: IO[bytes], tools: LocalTools) -> None:
    """Write the build context of the runtime image as a tar: `Dockerfile` and `opt/`.

    Owners, times and modes are always the same, so that the engine finds equal content in its build cache.
    """
    with tarfile.open(fileobj=target, mode="w") as tar:
        _add(tar, "Dockerfile", SANDBOX_IMAGES_DIR / "Dockerfile")
        _add(tar, "opt/node/bin/node", tools.node, executable=True)
        _add(tar, "opt/esbuild/esbuild", tools.esbuild, executable=True)
        for name, program in (("python3", "/usr/bin/python3"), ("python", "/usr/bin/python3"), ("node", IMAGE_NODE)):
            link = tarfile.TarInfo(f"{COMMANDS.lstrip('/')}/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, program
            tar.addfile(link)
        folders = {
            "restricted": tools.restricted,
            "runner/python": tools.runtimes / "python",
            "runner/javascript": tools.javascript,
        }
        for folder, root in folders.items():
            for name, path in _tree(root, f"opt/{folder}"):
                _add(tar, name, path)


def write_base_context(target: IO[bytes]) -> None:
    """Write the build context of the base image as a tar."""
    with tarfile.open(fileobj=target, mode="w") as tar:
        _add(tar, "Dockerfile", SANDBOX_IMAGES_DIR / "base.Dockerfile")
        _add(tar, "strip.sh", SANDBOX_IMAGES_DIR / "strip.sh")


def _tree(root: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Yield the files below `root` in the same order on every machine; leave out hidden files."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not hidden and not _LEFT_OUT.intersection(relative.parts):
            yield f"{name}/{relative.as_posix()}", path


def _digest(files: Iterable[tuple[str, Path]]) -> str:
    whole = hashlib.sha256()
    for name, path in files:
        whole.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def _add(tar: tarfile.TarFile, name: str, path: Path, *, executable: bool = False) -> None:
    info = tarfile.TarInfo(name)
    info.mode = 0o755 if executable else 0o644
    info.size = path.stat().st_size
    with path.open("rb") if info.size else BytesIO() as source:
        tar.addfile(info, source)
