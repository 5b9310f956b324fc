"""Removes guards from the JavaScript runner; `weakened` removes guards from the host and the backend.

    with weakened_javascript({Guard.CLEANING}, folder=tmp_path):
        ...  # what a row leaves behind stays

On bubblewrap, a sandbox without a guard of the runner gets a copy of the runner in which lines are replaced.
"""

import shutil
import subprocess
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from evaluator_host.engine.config import settings as config
from evaluator_host.engine.environments import toolchain
from evaluator_host.engine.sandbox.bubblewrap import backend as bubblewrap
from evaluator_host.selftest.attack import Guard
from tests.attacks.weakened import weakened
from tests.engines import DATA_DIR

_BELIEVES: Final = """  function encodeResult(value, limit, told = '') {
    const naive = JSON.stringify(value);
    const kind = { __proto__: null, '{': 'object', '[': 'array', '"': 'string', t: 'bool', f: 'bool', n: 'null' }[naive[0]] ?? 'number';
    if (kind) return '{"kind":"' + kind + '","value":' + naive + ',"nonfinite":[],"unsupported":null,"notes":[]}';
"""

# (file, text, replacement); the test fails if the text is no longer there
EDITS: Final[dict[Guard, tuple[tuple[str, str, str], ...]]] = {
    Guard.CLEANING: (
        ("worker/row_cleanup.cjs", "found.length > 0", "found.length < 0"),
        ("worker/row_cleanup.cjs", "for (const folder of folders) {", "for (const folder of []) {"),
        ("worker/main.cjs", "!require('./module_state.cjs').resetModules()", "false"),
        ("worker/integrity.cjs", " || !held.every(holds)", ""),
    ),
    Guard.CHANNEL: (("worker/main.cjs", "\nforbidCodeFromStrings();\n", "\n"),),
    Guard.ENCODING: (("guest/values.js", "  function encodeResult(value, limit, told = '') {\n", _BELIEVES),),
    Guard.STREAMS: (("worker/main.cjs", "if (slot.leavesFiles) output.collectFiles();", ""),),
}


@contextmanager
def weakened_javascript(guards: AbstractSet[Guard], *, folder: Path) -> Iterator[None]:
    """Start all sandboxes without these guards during the block.

    Args:
      guards: The guards to remove.
      folder: A new folder for a copy of the runner.
    """
    general = folder / "general"
    general.mkdir()
    with weakened(guards - EDITS.keys(), folder=general), pytest.MonkeyPatch.context() as patch:
        if guards & (EDITS.keys() | {Guard.READ_ONLY}):
            _start_edited(patch, guards, _build_edited(guards, folder))
        yield


def _start_edited(patch: pytest.MonkeyPatch, guards: AbstractSet[Guard], runner: Path) -> None:
    """Let new sandboxes start with this runner in place of the installed runner."""
    build = bubblewrap.bubblewrap_args

    def arguments(*args: Any, **kwargs: Any) -> list[str]:
        made = build(*args, **kwargs)
        for at, word in enumerate(made):
            if word == "--ro-bind" and made[at + 2] == "/opt/runner" and "/javascript-runner-" in made[at + 1]:
                made[at : at + 2] = ["--bind" if Guard.READ_ONLY in guards else "--ro-bind", str(runner)]
        return made

    patch.setattr(bubblewrap, "bubblewrap_args", arguments)


def _build_edited(guards: AbstractSet[Guard], folder: Path) -> Path:
    """Return the folder of a runner that was built from edited sources."""
    copy, runner = folder / "javascript", folder / "runner"
    shutil.copytree(config.RUNTIMES_DIR / "javascript", copy, ignore=shutil.ignore_patterns("node_modules"))
    for guard in guards & EDITS.keys():
        for name, text, instead in EDITS[guard]:
            file = copy / name
            source = file.read_text()
            assert text in source, (
                f"{name} has changed: {text!r} is not in it; adapt tests/attacks/weakened_javascript.py"
            )
            file.write_text(source.replace(text, instead))
    build = [toolchain.node_path(), copy / "toolchain" / "build.mjs", toolchain.esbuild_path(DATA_DIR), runner]
    subprocess.run(list(map(str, build)), check=True)
    for path in (folder, runner, *runner.iterdir()):
        path.chmod(0o777 if Guard.READ_ONLY in guards else 0o755)
    return runner
