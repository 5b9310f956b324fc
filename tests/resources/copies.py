"""Makes copies of the source tree without folders such as `platform/labels` or `vendors/langfuse`."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from tests.docs.blocks import ROOT

_COPIED = ("evaluator_host", "runtimes", "sandbox_images", "pyproject.toml")
_LEFT_OUT = ("node_modules", "attacks", "src")


def copy_without(folders: Iterable[str], made: Path) -> Path:
    """Copy the source tree to a new folder, and remove folders such as `platform/labels` from the copy."""
    made.mkdir()
    for one in _COPIED:
        if (ROOT / one).is_dir():
            shutil.copytree(ROOT / one, made / one, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
        else:
            shutil.copy(ROOT / one, made)
    for folder in folders:
        shutil.rmtree(made / "evaluator_host" / folder)
        for path in made.glob(f"runtimes/*/dialects/{Path(folder).name}*"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    return made
