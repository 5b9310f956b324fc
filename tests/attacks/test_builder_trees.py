"""The host refuses packages with folders nested deeper than any limit, names them in the error, and removes them. Other
callers notice nothing, not even after a restart.

The guards are `system.tree` (with `os.walk` and `rmtree` instead, the host would not start again), `contents.settle`,
and `DiskWatch`, which ends a build whose files it cannot measure.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host.engine.environments.build.builder import Builder
from evaluator_host.engine.environments.build.command import DiskWatch
from evaluator_host.engine.environments.contents import differences, digests, settle
from evaluator_host.engine.environments.folder import EnvironmentFolder
from evaluator_host.engine.environments.record import Record
from evaluator_host.engine.packages.lock import Lock, LockTarget
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.system.tree import remove, size_bytes, temporary_folder
from evaluator_host.types.errors import PackagesFailed
from evaluator_host.types.evaluator import Language
from tests.builds import building, evaluated, installed, nothing_left, refusal
from tests.descriptors import descriptors
from tests.indexes import Index
from tests.packages import source_archive, wheel
from tests.unit.test_tree import nest

ONE = "def evaluate(i, o, t): return 1"
NESTED = """
import os
def nest(levels, mode=0o755):
    top = os.getcwd()
    os.mkdir("deep"); os.chdir("deep")
    for _ in range(levels):
        os.mkdir("d", mode); os.chdir("d")
    os.chdir(top)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A data directory that `system.tree` removes, because pytest cannot remove such deep folders."""
    with temporary_folder(None, "evaluator-host-trees-") as folder:
        (folder / "data").mkdir()
        yield folder / "data"


@pytest.mark.long
async def test_a_wheel_of_nested_folders_is_refused_by_name_and_forgotten(home: Path) -> None:
    with Index() as index:
        index.add_python(wheel("nested", {"nested.py": "", "d/" * 1500 + "x.txt": "x"}))
        index.add_python(wheel("long", {"long.py": "", "/".join(["n" * 200] * 6) + "/x.txt": "x"}))
        index.add_python(wheel("harmless", {"harmless.py": ""}))
        async with building(home, index) as service:
            for name in ("nested", "long"):
                error = await refusal(service, f"{name}==1.0.0")
                assert isinstance(error, PackagesFailed)
                assert "64 levels" in error.detail
            assert installed(home) == []
            nothing_left(home)
            assert (await evaluated(service, ONE, "harmless==1.0.0")).score == 1
            stage = home / "environments" / "build" / "staging" / f"{'0' * 64}.left"
            nest(stage, 1500)  # a folder like those that a killed host leaves behind
        async with building(home, index) as service:
            assert (await evaluated(service, ONE, "harmless==1.0.0")).score == 1
            nothing_left(home)
            service.environments._folder.drop_downloads()
            assert (await refusal(service, "nested==1.0.0")).detail.startswith("A package nests folders")
            nothing_left(home)


@pytest.mark.long
async def test_a_source_build_of_nested_folders_leaves_nothing_and_stops_no_other(home: Path) -> None:
    with Index() as index:
        index.add_python(source_archive("nested", NESTED + "def made():\n    nest(3000)\n    return {'nested.py': ''}"))
        closed = NESTED + "def made():\n    nest(90, 0o300)\n    os.chmod('deep', 0)\n    return {'closed.py': ''}"
        index.add_python(source_archive("closed", closed))
        index.add_python(wheel("harmless", {"harmless.py": ""}))
        async with building(home, index, allow_source_builds=True) as service:
            for name in ("nested", "closed"):
                assert (await evaluated(service, ONE, f"{name}==1.0.0")).score == 1
            nothing_left(home)
        left = home / "environments" / "work" / this_instance().replace(f"-{os.getpid()}-", "-999999999-")
        left.mkdir(parents=True)
        nest(left / "private", 3000, mode=0o000)
        async with building(home, index, allow_source_builds=True) as service:
            assert (await evaluated(service, ONE, "harmless==1.0.0")).score == 1
            nothing_left(home)


@pytest.mark.long
async def test_nested_folders_do_not_switch_off_the_limit_of_the_disk(home: Path) -> None:
    body = (
        NESTED
        + """
def made():
    nest(1500)
    for number in range(40):
        with open(f"f{number}", "wb+") as file:
            os.posix_fallocate(file.fileno(), 0, 20 << 20)
        __import__("time").sleep(0.1)
    return {"large.py": ""}
"""
    )
    with Index() as index:
        index.add_python(source_archive("large", body))
        async with building(home, index, allow_source_builds=True, environments_mb=100) as service:
            error = await refusal(service, "large==1.0.0")
            assert "200 MB" in error.detail
            nothing_left(home)


@pytest.mark.long
async def test_a_build_that_cannot_be_looked_at_is_ended(home: Path) -> None:
    watch = DiskWatch(home, limit_mb=100, own=(home / "file",))
    (home / "file").touch()  # a file instead of a folder, so that measuring it always fails
    killed = asyncio.Event()
    await asyncio.wait_for(watch.watch(os.getpid(), killed.set), timeout=30)
    assert killed.is_set()
    assert watch.reached is not None


@pytest.mark.long
async def test_a_builder_whose_start_failed_tries_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = home / "environments" / "build"
    build.mkdir(parents=True)
    builder = Builder(build, file_mb=100)
    with monkeypatch.context() as patched:
        patched.setattr(Builder, "_tried", None)  # a fault that the builder does not expect
        with pytest.raises(TypeError):
            await builder.findings()
    assert [finding.ok for finding in await builder.findings()] == [shutil.which("bwrap") is not None]
    with monkeypatch.context() as patched:
        patched.setattr("evaluator_host.engine.environments.build.builder.has_abandoned", None)
        (home / "environments" / "work" / "host-1").mkdir(parents=True)
        other = Builder(build, file_mb=100)
        assert [finding.ok for finding in await other.findings()] == [shutil.which("bwrap") is not None]


def too_large(folder: Path) -> bool:
    """Return whether a folder has over 10 MB of files.

    A folder that is being emptied at this moment counts as too large.
    """
    try:
        return size_bytes(folder) > 10 << 20
    except OSError:
        return True


@pytest.mark.long
async def test_downloads_of_refused_packages_do_not_fill_the_disk(home: Path) -> None:
    with Index() as index:
        index.add_python(wheel("harmless", {"harmless.py": ""}))
        async with building(home, index, environments_mb=10) as service:
            downloads = home / "environments" / "build" / "downloads"
            for number in range(4):
                name = f"refused{number}"
                index.add_python(wheel(name, {f"{name}.bin": os.urandom(3 << 20), "d/" * 70 + "x": ""}))
                assert isinstance(await refusal(service, f"{name}==1.0.0"), PackagesFailed)
            until = time.monotonic() + 30
            while too_large(downloads):
                assert time.monotonic() < until
                await asyncio.sleep(0.05)
            assert (await evaluated(service, ONE, "harmless==1.0.0")).score == 1
            nothing_left(home)


@pytest.mark.long
async def test_downloads_are_kept_while_a_build_uses_them(home: Path) -> None:
    folder = EnvironmentFolder(home)
    (folder.downloads / "file").write_bytes(b"x" * 10_000)
    async with folder.using_downloads(), folder.using_downloads():
        trimming = asyncio.create_task(folder.trim_downloads(0))
        await asyncio.sleep(0.3)
        assert (folder.downloads / "file").exists()
        entering = asyncio.create_task(folder.using_downloads().__aenter__())  # a later build waits for its turn
        await asyncio.sleep(0.2)
        assert not entering.done()
    await trimming
    assert not (folder.downloads / "file").exists()
    await entering


async def test_a_build_script_that_never_ends_does_not_keep_the_downloads(home: Path) -> None:
    """A package's code must not delay the deletion of downloads, because no other build begins before the deletion."""
    with Index() as index:
        index.add_python(source_archive("endless", "import time\ndef made():\n    time.sleep(600)\n"))
        async with building(home, index, allow_source_builds=True) as service:
            endless = asyncio.create_task(refusal(service, "endless==1.0.0"))
            while not any((home / "environments").glob("work/*/private-*")):
                assert not endless.done()
                await asyncio.sleep(0.05)
            await EnvironmentFolder(home / "environments").trim_downloads(-1)
            assert not endless.done()
            endless.cancel()
            await asyncio.wait([endless])


@pytest.mark.long
def test_locks_of_sets_that_are_not_installed_are_kept_up_to_a_number_of_bytes(home: Path) -> None:
    """The locks of sets that are not installed take a limited number of bytes, because callers can create a lock for
    any set of exact versions.
    """
    folder, target = EnvironmentFolder(home), LockTarget("3.13")
    keys = [f"sha256:{number:064x}" for number in range(4)]
    for number, key in enumerate(keys):
        folder.keep_lock(key, Lock(Language.PYTHON, target, (), (), "x" * 1000))
        os.utime(folder._sets / f"{number:064x}.json", (number, number))
        folder.build_lock(key).touch()
    installed = Record(keys[0], keys[0], Language.PYTHON, "3.13", (), "", 0, "", 0.0)
    (stage := folder.new_stage(keys[0])).joinpath("files").mkdir()
    folder.put(stage, installed)
    held = folder.use_lock(keys[3])
    assert held.acquire()
    folder.trim_locks(2 * (folder._sets / f"{0:064x}.json").stat().st_size)
    assert [folder.lock_of(key) is not None for key in keys] == [True, False, True, True]
    assert sorted(path.name for path in folder._locks.iterdir()) == [f"build-{0:064x}", f"use-{3:064x}"]
    assert not folder.use_lock(keys[3]).acquire()
    held.release()
    folder.trim_locks(0)
    assert [folder.lock_of(key) is not None for key in keys] == [True, False, False, False]


@pytest.mark.long
def test_a_sweep_goes_on_after_a_folder_that_stays(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = EnvironmentFolder(home)
    for name in "abc":
        nest(folder.staging / f"{name * 64}.x", 3)

    def fail(path: Path) -> bool:
        if path.name.startswith("b"):
            raise RecursionError
        return remove(path)

    monkeypatch.setattr("evaluator_host.engine.environments.folder.remove", fail)
    assert folder.sweep() == 2
    monkeypatch.undo()
    assert folder.sweep() == 1


@pytest.mark.long
def test_an_installed_set_may_be_tampered_with_at_any_depth(home: Path) -> None:
    files = home / "files"
    (files / "a").mkdir(parents=True)
    (files / os.fsdecode(b"\xff.py")).write_text("x")
    (files / "a" / "b").symlink_to("../a")
    settle(files)
    known = digests(files)
    nest(files / "deep", 1100)
    assert len(differences(files, known)) == 1100
    before = descriptors()
    # like a host, the test keeps the error together with its traceback
    with pytest.raises(PackagesFailed, match="64 levels") as kept:
        settle(files)
    assert kept.value.__traceback__ is not None
    assert descriptors() <= before
    assert remove(files / "deep")
    assert differences(files, known) == []
    for target in ("/etc/passwd", "../../escaped", "nowhere", "loop"):
        (files / "loop").unlink(missing_ok=True)
        (files / "loop").symlink_to(target)
        with pytest.raises(PackagesFailed, match="a place outside the package"):
            settle(files)
