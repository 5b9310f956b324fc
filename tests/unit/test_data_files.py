"""The limits on the size of a workspace's data files and on the number of folders for sandboxes hold, even with several
callers at once.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from evaluator_host.engine import data_files
from evaluator_host.engine.data_files import DataFiles, note_use
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.types.errors import MachineExhausted, OverQuota
from evaluator_host.types.stored import DataFile

MOST_BYTES = 1 << 20


def stored_bytes(folder: Path) -> int:
    """Return the total size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


async def test_uploads_at_the_same_time_do_not_exceed_what_a_workspace_may_store(tmp_path: Path) -> None:
    files, begun = DataFiles(tmp_path, most_bytes=MOST_BYTES), asyncio.Barrier(4)

    async def chunks(content: bytes) -> AsyncIterator[bytes]:
        await begun.wait()
        yield content * (400 << 10)

    sent = [files.receive("default", chunks(content)) for content in (b"a", b"a", b"b", b"c")]
    answers = await asyncio.gather(*sent, return_exceptions=True)
    kept = {one for one in answers if isinstance(one, DataFile)}
    refused = [one for one in answers if not isinstance(one, DataFile)]
    assert refused
    assert all(isinstance(one, OverQuota) for one in refused), "the only reason to refuse a file must be the quota"
    assert set(files.list_files("default")) == kept
    assert stored_bytes(tmp_path) == sum(one.size_bytes for one in kept) == 800 << 10


def one_file(files: DataFiles) -> str:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"content"

    return asyncio.run(files.receive("default", chunks())).digest


def deep(digest: str, number: int) -> dict[str, str]:
    """Return paths that together need 302 folders."""
    return {f"{number}/{one}/{'d/' * 3}x": digest for one in range(75)} | {f"{number}x": digest}


def test_folders_of_a_workspace_are_bounded_until_those_before_are_unused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "_FOLDERS", 1000)
    files = DataFiles(tmp_path, most_bytes=MOST_BYTES, unused_s=600)
    digest = one_file(files)
    made = [files.lay_out("default", deep(digest, number)) for number in range(3)]
    folders = [path for path in made[0].path.parent.rglob("*") if path.is_dir()]
    assert made[0].path.parent.name.startswith(f"{len(folders) + 1}-")
    for _ in range(2):  # the first refusal leaves no folders that count towards the limit
        with pytest.raises(OverQuota, match=r"need 303 folders.* take 909 of at most 1000; .*fewer folders"):
            files.lay_out("default", deep(digest, 3))
    assert files.lay_out("other", {}).path.is_dir()
    for one in made:
        assert files.lay_out("default", deep(digest, made.index(one))) == one
        os.utime(one.path.parent, (time.time() - 700,) * 2)
    note_use(made[1])
    assert files.lay_out("default", deep(digest, 3)).path.is_dir()
    assert [one.path.is_dir() for one in made] == [False, True, False]
    with pytest.raises(FileNotFoundError):
        note_use(made[0])


def test_callers_at_the_same_time_get_no_more_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "_FOLDERS", 1000)
    files = DataFiles(tmp_path, most_bytes=MOST_BYTES)
    digest = one_file(files)

    def asked(number: int) -> bool:
        with suppress(OverQuota):
            return files.lay_out("default", deep(digest, number)).path.is_dir()
        return False

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(asked, range(12))) <= 3
    assert sum(path.is_dir() for path in tmp_path.glob("*/layouts/**/*")) <= 1000


@pytest.mark.long
def test_a_file_is_never_copied_because_it_has_too_many_links(tmp_path: Path) -> None:
    files = DataFiles(tmp_path, most_bytes=MOST_BYTES)
    digest = one_file(files)
    (stored,) = tmp_path.glob("*/files/*")
    (tmp_path / "links").mkdir()
    try:
        for number in range(66_000):
            os.link(stored, tmp_path / "links" / str(number))
    except OSError:  # ext4 allows 65,000 links to a file
        with pytest.raises(OverQuota, match="too many paths"):
            files.lay_out("default", {"a": digest})
        assert not list(tmp_path.glob("*/layouts/*"))
    else:
        assert (files.lay_out("default", {"a": digest}).path / "a").samefile(stored)


def test_an_upload_that_a_killed_host_left_takes_no_room(tmp_path: Path) -> None:
    files = DataFiles(tmp_path, most_bytes=MOST_BYTES)
    one_file(files)
    (folder,) = tmp_path.glob("*/files")
    left = folder / f"partial-{this_instance().rpartition('-')[0]}-1.5"
    left.write_bytes(bytes(MOST_BYTES))
    one_file(files)
    assert stored_bytes(tmp_path) == len(b"content")


async def test_an_upload_leaves_the_reserve_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = DataFiles(tmp_path, most_bytes=100 << 20, reserve_bytes=1)
    sent = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal sent
        for sent in range(1, 100):
            if sent == 10:
                monkeypatch.setattr(files, "_reserve_bytes", 1 << 60)
            yield bytes(1 << 20)

    with pytest.raises(MachineExhausted, match="FREE_DISK"):
        await files.receive("default", chunks())
    assert sent < 16
    assert stored_bytes(tmp_path) == 0


def test_no_folders_are_made_on_a_full_disk(tmp_path: Path) -> None:
    digest = one_file(DataFiles(tmp_path, most_bytes=MOST_BYTES))
    full = DataFiles(tmp_path, most_bytes=MOST_BYTES, reserve_bytes=1 << 60)
    with pytest.raises(MachineExhausted, match="FREE_DISK"):
        full.lay_out("default", {"a": digest})
    assert not list(tmp_path.glob("*/layouts/*"))


def test_other_users_of_the_machine_cannot_list_the_files_of_a_workspace(tmp_path: Path) -> None:
    files = DataFiles(tmp_path / "data", most_bytes=MOST_BYTES)
    files.lay_out("default", {"a": one_file(files)})
    paths = [tmp_path / "data", *tmp_path.glob("data/*"), *tmp_path.glob("data/*/*")]
    assert {path.name for path in paths} > {"data", "files", "layouts"}
    assert [path for path in paths if path.stat().st_mode & 0o044] == []
