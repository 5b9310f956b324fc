"""Files in packages do no harm: start-up hooks, shadowed modules, commands, archive bombs.

The guards: the runner starts with `-I -S` and with its own modules first; a set is mounted only for its own evaluators;
`bin` is removed; and a meter ends a build that writes too much (without the meter, the bomb is unpacked completely).
"""

import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import PackagesFailed
from tests.builds import JAVASCRIPT, building, evaluated, installed, nothing_left, refusal, value_of
from tests.indexes import Index
from tests.packages import Archive, npm_package, wheel

LOUD = "import os\nos.environ['LOUD'] = os.environ.get('LOUD', '') + '{0} '\n"
SEES = """
import builtins, json, os, sys
def evaluate(i, o, t):
    return {'score': 1, 'loud': os.environ.get('LOUD', ''), 'json': json.__file__, 'os': os.__file__, 'n': len(sys.path)}
"""


@pytest.fixture(scope="module")
async def service(index: Index, home: Path) -> AsyncIterator[Service]:
    async with building(home, index) as opened:
        yield opened


HOOKS = {
    "hook.py": "said = 1",
    "hook-nspkg.pth": "import os; os.environ['LOUD'] = 'pth'\n",
    "sitecustomize.py": LOUD.format("sitecustomize"),
    "usercustomize.py": LOUD.format("usercustomize"),
}
SHADOWS = {
    f"{name}.py": f"raise SystemExit('shadowed {name}')"
    for name in (
        "json",
        "os",
        "runner",
        "socket",
        "struct",
        "signal",
        "traceback",
        "asyncio",
        "builtins",
        "encodings",
        "types",
    )
}
SHADOWS |= {
    f"evaluator_runner/{name}.py": "raise SystemExit('shadowed')"
    for name in ("__init__", "guest", "frames", "supervisor")
}


@pytest.mark.long("test_builder_imports.py has a package that harms its importer")
async def test_hooks_of_a_set_act_in_its_own_sandboxes_alone(service: Service, index: Index, home: Path) -> None:
    index.add_python(wheel("hook", HOOKS))
    mine = await value_of(service, SEES, "hook==1.0.0")
    assert mine["score"] == 1
    # the `.pth` file works as in an ordinary installation; the two start-up modules are not loaded
    assert mine["loud"] in ("", "pth")
    for _ in range(2):
        assert (await value_of(service, SEES))["loud"] == ""
    index.add_python(wheel("neighbour", {"neighbour.py": ""}))
    assert (await value_of(service, SEES, "neighbour==1.0.0"))["loud"] == ""
    nothing_left(home)


@pytest.mark.long
async def test_modules_of_the_library_and_of_the_runner_are_not_shadowed(
    service: Service, index: Index, home: Path
) -> None:
    index.add_python(wheel("shadow", {"shadow.py": "said = 5", **SHADOWS}))
    code = SEES.replace("import builtins", "import shadow, builtins")
    found = await value_of(service, code, "shadow==1.0.0")
    assert found["score"] == 1
    assert not found["json"].startswith("/opt/packages")
    assert not found["os"].startswith("/opt/packages")
    assert (await evaluated(service, "def evaluate(i, o, t): return 2")).score == 2
    nothing_left(home)


@pytest.mark.long
async def test_builtins_of_node_and_of_the_runner_are_not_shadowed(service: Service, index: Index, home: Path) -> None:
    names = ("fsx", "runner.cjs")
    for name in names:
        index.add_npm(npm_package(name, {"index.js": "module.exports = 'package'"}))
    files = {
        "index.js": "module.exports = [typeof require('fs').readFileSync, typeof require('path').join]",
        "node_modules/fs/index.js": "module.exports = {}",
        "node_modules/path/index.js": "module.exports = {}",
    }
    index.add_npm(npm_package("shadow", files, manifest={"bundledDependencies": []}))
    code = 'import kinds from "shadow"; export const evaluate = (i, o, t) => ({score: 1, kinds: kinds.join()})'
    found = await value_of(service, code, "shadow@1.0.0", language=JAVASCRIPT)
    assert found["kinds"] == "function,function"
    nothing_left(home)


@pytest.mark.long
async def test_commands_of_a_package_are_on_nobodys_path(service: Service, index: Index, home: Path) -> None:
    commands = "".join(f"{name} = tool:run\n" for name in ("uv", "node", "npm", "sh", "env"))
    tool = wheel("tool", {"tool.py": "def run(): pass", "tool-1.0.0.dist-info/entry_points.txt": f"[console_scripts]\n{commands}",
                          "tool-1.0.0.data/scripts/bwrap": "#!/bin/sh\nexit 1"})  # fmt: skip
    index.add_python(tool)
    code = """
import os, shutil
def evaluate(i, o, t):
    return {'score': 1, 'found': [path for name in ('python', 'uv', 'node', 'bwrap') if (path := shutil.which(name)) and 'packages' in path]}
"""
    assert (await value_of(service, code, "tool==1.0.0"))["found"] == []
    (files,) = [files for files in installed(home) if (files / "tool.py").exists()]
    assert not (files / "bin").exists()
    index.add_python(wheel("after", {"after.py": ""}))  # after this, the next build still uses the host's own tools
    assert (await evaluated(service, "def evaluate(i, o, t): return 1", "after==1.0.0")).score == 1
    nothing_left(home)


def bomb(name: str, size_mb: int) -> Archive:
    """Return a wheel that becomes a thousand times larger when unpacked."""
    small = wheel(name, {f"{name}.py": ""})
    content = io.BytesIO(small.content)
    block = bytes(1 << 20)
    with zipfile.ZipFile(content, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(size_mb // 20):
            archive.writestr(f"{name}-{number}.bin", block * 20)
    return Archive(name, small.file_name, content.getvalue())


@pytest.mark.long
async def test_a_bomb_is_stopped_before_it_fills_the_disk(index: Index, tmp_path: Path) -> None:
    index.add_python(bomb("bomb", 100))
    zeros = {f"{number}.bin": bytes(20 << 20) for number in range(5)}
    index.add_npm(npm_package("bomb", {"index.js": "", **zeros}))
    async with building(tmp_path, index, environments_mb=40) as service:
        error = await refusal(service, "bomb==1.0.0")
        assert isinstance(error, PackagesFailed)
        assert "40 MB" in error.detail or "80 MB" in error.detail
        error = await refusal(service, "bomb@1.0.0", language=JAVASCRIPT)
        assert isinstance(error, PackagesFailed)
        assert installed(tmp_path) == []
        nothing_left(tmp_path)
