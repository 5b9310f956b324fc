"""An archive cannot write outside its folder, and is refused if it differs from the archive in the lock.

The guards are uv and npm, which refuse or skip archive members whose paths lead outside; the hashes in the lock
(`--require-hashes`, integrity); `contents.settle` for links; and the builder's mounts for everything else.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import HostError, PackagesFailed
from tests.builds import JAVASCRIPT, building, evaluated, nothing_left, refusal
from tests.indexes import Index
from tests.packages import Archive, npm_package, tarball, wheel

PYTHON_CODE = "def evaluate(i, o, t): return 1"
NODE_CODE = "export const evaluate = (i, o, t) => 1"
MARK = f"written-by-a-package-{os.getpid()}"


@pytest.fixture(scope="module")
async def service(index: Index, home: Path) -> AsyncIterator[Service]:
    async with building(home, index) as opened:
        yield opened


def escaped(home: Path) -> list[str]:
    """Return the files with `MARK` in their name, except those in package sets and in the shared downloads."""
    found = [*home.rglob(f"*{MARK}*"), *(path for folder in home.parents for path in folder.glob(f"*{MARK}*"))]
    sets = [folder / "files" for folder in (home / "environments").iterdir()]
    allowed = [home / "environments" / "build" / "downloads", *sets]
    return [str(path) for path in found if not any(path.is_relative_to(folder) for folder in allowed)]


def outward(home: Path) -> list[str]:
    """Return the links in installed package sets that point outside their package set."""
    found = []
    for files in (home / "environments").glob("*/files"):
        found += [str(p) for p in files.rglob("*") if p.is_symlink() and not p.resolve().is_relative_to(files)]
    return found


UP = "../" * 12


DROPPED_WHEELS = (
    wheel("zipup", {"zipup.py": "", f"../../../{MARK}-1.py": "x"}),
    wheel("zipfar", {"zipfar.py": "", f"{UP}tmp/{MARK}-2.py": "x"}),
    wheel("zipabs", {"zipabs.py": "", f"/tmp/{MARK}-3.py": "x"}),
    wheel("zipback", {"zipback.py": "", f"..\\..\\{MARK}-4.py": "x"}),
    wheel("zipdata", {"zipdata.py": "", f"zipdata-1.0.0.data/data/../../../{MARK}-5": "x"}),
    wheel("zipscript", {"zipscript.py": "", f"zipscript-1.0.0.data/scripts/../../../{MARK}-6": "x"}),
    wheel("ziphead", {"ziphead.py": "", f"ziphead-1.0.0.data/headers/../../../../{MARK}-7": "x"}),
)
SCRIPTS = f"[console_scripts]\n../../{MARK}-10 = os:getcwd\n"
REFUSED_WHEELS = (
    wheel("ziplink", {"ziplink.py": "", f"out/{MARK}-8.py": "x"}, links={"out": "/tmp"}),
    wheel("ziprel", {"ziprel.py": "", f"out/{MARK}-9.py": "x"}, links={"out": "../../../../.."}),
    wheel("zippts", {"zippts.py": "", "zippts-1.0.0.dist-info/entry_points.txt": SCRIPTS}),
)
DROPPED_TARBALLS = (
    npm_package("tarup", {"index.js": ""}, outside={f"package/../../../../{MARK}-1": "x"}),
    npm_package("tarabs", {"index.js": ""}, outside={f"/tmp/{MARK}-2": "x"}),
    npm_package("tartop", {"index.js": ""}, outside={f"../{MARK}-3": "x"}),
    npm_package("tarlink", {"index.js": ""}, links={"package/out": "/tmp"}, outside={f"package/out/{MARK}-4": "x"}),
    npm_package("tarrel", {"index.js": ""}, links={"package/out": "../.."}, outside={f"package/out/{MARK}-5": "x"}),
    npm_package("tarbin", {"index.js": ""}, manifest={"bin": {"../../../" + MARK: "index.js"}}),
    npm_package("tarout", {"index.js": ""}, manifest={"bin": {"tool": "../../../../../../etc/passwd"}}),
)
BUNDLED = npm_package("tarbundle", {"index.js": ""}, manifest={"bundledDependencies": ["../../" + MARK]})


async def test_paths_that_lead_out_of_a_wheel_are_not_written(service: Service, index: Index, home: Path) -> None:
    for archive in DROPPED_WHEELS:
        index.add_python(archive)
    pins = [f"{archive.name}==1.0.0" for archive in DROPPED_WHEELS]
    assert (await evaluated(service, PYTHON_CODE, *pins)).score == 1
    assert escaped(home) == outward(home) == []
    nothing_left(home)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("archive", REFUSED_WHEELS, ids=lambda archive: archive.name)
async def test_a_wheel_whose_links_or_scripts_lead_out_is_refused(
    service: Service, index: Index, home: Path, archive: Archive
) -> None:
    index.add_python(archive)
    error = await refusal(service, f"{archive.name}==1.0.0")
    assert isinstance(error, PackagesFailed)
    assert archive.name in error.detail
    assert str(home) not in error.detail
    assert escaped(home) == outward(home) == []
    nothing_left(home)


@pytest.mark.long
async def test_paths_that_lead_out_of_a_tarball_are_not_written(service: Service, index: Index, home: Path) -> None:
    for archive in (*DROPPED_TARBALLS, BUNDLED):
        index.add_npm(archive)
    pins = [f"{archive.name}@1.0.0" for archive in (*DROPPED_TARBALLS, BUNDLED)]
    assert (await evaluated(service, NODE_CODE, *pins, language=JAVASCRIPT)).score == 1
    assert escaped(home) == outward(home) == []
    nothing_left(home)


async def test_a_wheel_that_is_not_the_locked_one_is_refused(service: Service, index: Index, home: Path) -> None:
    good, bad = wheel("swapped", {"swapped.py": "said = 1"}), wheel("swapped", {"swapped.py": f"said = '{MARK}'"})
    index.add_python(good, served=bad.content)
    error = await refusal(service, "swapped==1.0.0")
    assert isinstance(error, PackagesFailed)
    assert "hash" in error.detail.lower()
    nothing_left(home)


@pytest.mark.long
async def test_a_tarball_that_is_not_the_locked_one_is_refused(service: Service, index: Index, home: Path) -> None:
    good = npm_package("swapped", {"index.js": "module.exports = 1"})
    index.add_npm(good, served=npm_package("swapped", {"index.js": "module.exports = 2"}).content)
    error = await refusal(service, "swapped@1.0.0", language=JAVASCRIPT)
    assert isinstance(error, PackagesFailed)
    assert "integrity" in error.detail.lower()
    nothing_left(home)


@pytest.mark.long
async def test_a_file_that_changes_on_the_index_after_the_lock_is_always_refused(tmp_path: Path) -> None:
    """A file that changes on the index after the lock was made is refused. Here, the index replaces the file with
    another file of the same name, and gives its hash; the lock still has the old hash.
    """
    with Index() as index:
        index.add_python(wheel("later", {"later.py": "said = 1"}))
        async with building(tmp_path, index) as service:
            assert (await evaluated(service, PYTHON_CODE, "later==1.0.0")).score == 1
        async with building(tmp_path, index) as service:
            await service.environments.prune(ceiling_mb=0)
            service.environments._folder.drop_downloads()
            index.files.clear()
            index.add_python(wheel("later", {"later.py": "said = 2"}))
            error = await refusal(service, "later==1.0.0")
            assert "hash" in error.detail.lower()
        nothing_left(tmp_path)


@pytest.mark.long
async def test_a_file_that_is_not_an_archive_is_refused(service: Service, index: Index, home: Path) -> None:
    for number, content in enumerate((b"", b"PK\x03\x04" + b"\0" * 100, tarball({"x": "y"}))):
        name = f"broken{number}"
        index.add_python(Archive(name, f"{name}-1.0.0-py3-none-any.whl", content))
        assert isinstance(await refusal(service, f"{name}==1.0.0"), HostError)
    nothing_left(home)


async def test_a_wheel_that_says_it_is_another_is_refused(service: Service, index: Index, home: Path) -> None:
    index.add_python(Archive("honest", "honest-1.0.0-py3-none-any.whl", wheel("impostor", {"impostor.py": ""}).content))
    assert isinstance(await refusal(service, "honest==1.0.0"), PackagesFailed)
    nothing_left(home)
