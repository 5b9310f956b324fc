"""Installation scripts of packages run only if the operator allows it, and then only in the builder.

The guards: `--only-binary :all:` and `--ignore-scripts`, without which the scripts run and leave their marks; the
builder's mounts, its user, and its environment without credentials; and a separate cache for each command, because a
script leaves a file `poisoned` in its cache.
"""

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import PackagesFailed
from tests.builds import JAVASCRIPT, building, evaluated, installed, nothing_left, refusal, value_of
from tests.indexes import Index
from tests.packages import npm_package, source_archive, wheel

PASSWORD = "c0rp-passw0rd"
PROXY_PASSWORD = "pr0xy-passw0rd"
MARK = Path(f"/tmp/ran-by-a-package-{os.getpid()}")  # a script that runs outside of all sandboxes would leave this file

LOOTER = """
def made():
    loot = {"environ": dict(os.environ), "ids": os.getresuid(), "files": {}, "wrote": [], "processes": []}
    for path in ("/etc/shadow", "/root/.ssh", "/proc/1/environ", HOME, os.path.dirname(HOME), HOME + "/environments/sets"):
        try:
            loot["files"][path] = os.listdir(path) if os.path.isdir(path) else open(path, errors="replace").read()
        except OSError as error:
            loot["files"][path] = error.errno
    for process in os.listdir("/proc"):
        if process.isdigit():
            for name in ("cmdline", "environ"):
                try:
                    loot["processes"].append(open(f"/proc/{process}/{name}").read())
                except OSError:
                    pass
    targets = ["/tmp/ran-by-a-package", "/etc/mark", "/usr/mark", HOME + "/mark", HOME + "/environments/mark"]
    targets += [HOME + "/environments/build/downloads/" + name for name in ("uv/mark", "npm/mark", "mark")]
    targets += [HOME + "/environments/build/staging/mark", HOME + "/environments/sets/mark"]
    for path in targets:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w").close()
            loot["wrote"].append(path)
        except OSError:
            pass
    for folder, _, files in os.walk(os.environ["UV_CACHE_DIR"]):
        loot["files"].update({"cache of others": f for f in files if "poisoned" in f})
    open(os.environ["UV_CACHE_DIR"] + "/poisoned", "w").close()
    if os.fork() == 0:  # and one that stays
        os.setsid()
        os.closerange(0, 1000)
        import time
        time.sleep(300)
    return {NAME + ".py": "LOOT = " + repr(loot)}
"""


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with Index(user=f"bob:{PASSWORD}") as serving:
        yield serving


@pytest.fixture(scope="module")
def open_index() -> Iterator[Index]:
    with Index() as serving:
        yield serving


@pytest.fixture(scope="module")
async def service(index: Index, home: Path) -> AsyncIterator[Service]:
    async with building(home, index) as opened:
        yield opened


@pytest.fixture(scope="module")
async def permissive(
    open_index: Index, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Service, Path]]:
    """A host that allows source builds.

    The host is configured with passwords for the index, although the index needs none.
    """
    home = tmp_path_factory.mktemp("permissive")
    proxy = f"http://carol:{PROXY_PASSWORD}@127.0.0.1:9"
    changes: dict[str, Any] = {
        "allow_source_builds": True,
        "proxy": proxy,
        "no_proxy": "127.0.0.1",
        "npm_token": PASSWORD,
    }
    changes["pip_index_url"] = open_index.pip_url.replace("://", f"://bob:{PASSWORD}@")
    async with building(home, open_index, **changes) as opened:
        yield opened, home


def marks(home: Path) -> list[Path]:
    """Return the marks (files) that scripts have left outside a sandbox, or in folders that several builds share."""
    return [*home.rglob("ran"), *home.rglob("*poisoned*"), *([MARK] if MARK.exists() else [])]


def there(paths: list[str]) -> list[str]:
    return [path for path in paths if Path(path).exists()]


async def test_a_build_script_is_not_run_where_the_operator_does_not_allow_it(
    service: Service, index: Index, home: Path
) -> None:
    index.add_python(source_archive("script", f"open({str(MARK)!r}, 'w').close()\ndef made(): return {{}}"))
    error = await refusal(service, "script==1.0.0")
    assert isinstance(error, PackagesFailed)
    assert "allow_source_builds" in error.detail
    assert marks(home) == []
    assert not [path for path in index.paths() if path.endswith(".tar.gz")]
    nothing_left(home)


async def test_a_dependency_without_a_wheel_is_not_built_either(service: Service, index: Index, home: Path) -> None:
    index.add_python(source_archive("inner", f"open({str(MARK)!r}, 'w').close()\ndef made(): return {{}}"))
    index.add_python(wheel("outer", {"outer.py": ""}, requires="inner==1.0.0"))
    assert isinstance(await refusal(service, "outer==1.0.0"), PackagesFailed)
    assert marks(home) == []
    nothing_left(home)


@pytest.mark.long
async def test_a_build_script_that_is_allowed_finds_nothing_and_changes_nothing(
    permissive: tuple[Service, Path], open_index: Index
) -> None:
    service, home = permissive
    body = f"HOME = {str(home)!r}\n{LOOTER}"
    for name in ("looter", "second"):  # the second package looks for traces of the first
        open_index.add_python(source_archive(name, body))
        code = f"import {name}\ndef evaluate(i, o, t):\n    return {{'score': 1, 'details': {name}.LOOT}}"
        loot = (await value_of(service, code, f"{name}==1.0.0"))["details"]
        for secret in (PASSWORD, PROXY_PASSWORD, "bob", "carol"):
            assert secret not in json.dumps(loot)
        assert loot["files"]["/etc/shadow"] in (2, 13)
        assert "cache of others" not in loot["files"]
        assert there(loot["wrote"]) == []
        assert os.geteuid() != 0 or loot["ids"][0] > 19_999
        assert marks(home) == []
    nothing_left(home)


@pytest.mark.long
async def test_a_build_script_that_never_ends_is_blamed_and_not_the_index(open_index: Index, tmp_path: Path) -> None:
    open_index.add_python(source_archive("endless", "import time\ndef made():\n    time.sleep(600)\n"))
    async with building(tmp_path, open_index, allow_source_builds=True, index_timeout_s=2) as service:
        error = await refusal(service, "endless==1.0.0")
        assert isinstance(error, PackagesFailed)
        assert "Building the packages from source did not end within 2 s" in error.detail
        nothing_left(tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    "tamper",
    [
        "os.symlink('/etc/passwd', f'{folder}/link.py')",
        "os.symlink('/', f'{folder}/root')",
        "os.symlink('loop', f'{folder}/loop')",
        "os.mkfifo(f'{folder}/pipe')",
        "os.mknod(f'{folder}/socket', stat.S_IFSOCK | 0o600)",
    ],
    ids=["link out", "link to the root", "link to itself", "pipe", "socket"],
)
async def test_odd_files_that_a_build_leaves_are_refused(
    permissive: tuple[Service, Path], open_index: Index, tamper: str, request: pytest.FixtureRequest
) -> None:
    """If the package's code writes an odd file into the package set during the build, the host refuses the set. Each
    case writes another kind of file.
    """
    service, home = permissive
    name = "odd" + "".join(filter(str.isalpha, request.node.callspec.id))
    body = f"""
import glob, stat
def made():
    for folder in glob.glob({str(home)!r} + "/environments/build/staging/*/files"):  # none while it is resolved
        {tamper}
    return {{NAME + ".py": ""}}
"""
    open_index.add_python(source_archive(name, body))
    error = await refusal(service, f"{name}==1.0.0")
    assert isinstance(error, PackagesFailed)
    assert "link to a place outside" in error.detail or "not a file" in error.detail
    assert not [files for files in installed(home) if (files / f"{name}.py").exists()]
    nothing_left(home)


SCRIPTS = ("preinstall", "install", "postinstall", "prepare", "prepublish", "preprepare", "dependencies")


async def test_no_script_of_an_npm_package_is_run(service: Service, index: Index, home: Path) -> None:
    leaves = f"node -e \"require('fs').writeFileSync('{MARK}', '')\"; touch {MARK}; touch $INIT_CWD/ran"
    scripts = dict.fromkeys(SCRIPTS, leaves)
    gyp = f"{{'targets': [{{'target_name': 'x', 'actions': [{{'action': ['touch', '{MARK}']}}]}}]}}"
    index.add_npm(npm_package("inner", {"index.js": ""}, manifest={"scripts": scripts}))
    manifest = {"scripts": scripts, "dependencies": {"inner": "1.0.0"}, "gypfile": True}
    files = {"index.js": "module.exports = 7", "binding.gyp": gyp, "prebuilds/addon.node": "without it, none is used"}
    index.add_npm(npm_package("outer", files, manifest=manifest))
    code = 'import seven from "outer"; export const evaluate = (i, o, t) => seven'
    result = await evaluated(service, code, "outer@1.0.0", language=JAVASCRIPT)
    assert result.score == 7
    assert marks(home) == []
    nothing_left(home)


@pytest.mark.long
async def test_settings_that_a_package_brings_along_are_not_read(service: Service, index: Index, home: Path) -> None:
    with Index() as other:
        other.add_npm(npm_package("deeper", {"index.js": "module.exports = 'evil'"}))
        index.add_npm(npm_package("deeper", {"index.js": "module.exports = 1"}))
        files = {
            "index.js": "module.exports = require('deeper')",
            ".npmrc": f"registry={other.npm_url}\nignore-scripts=false\n",
        }
        index.add_npm(npm_package("settings", files, manifest={"dependencies": {"deeper": "1.0.0"}}))
        code = 'import one from "settings"; export const evaluate = (i, o, t) => one'
        assert (await evaluated(service, code, "settings@1.0.0", language=JAVASCRIPT)).score == 1
        assert other.asked == []
    nothing_left(home)
