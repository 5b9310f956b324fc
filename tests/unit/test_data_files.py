"""Data files of a workspace: the limit on their size holds even if several callers send files at the same time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from evaluator_host.engine.data_files import DataFiles
from evaluator_host.types.errors import OverQuota
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
    assert all(isinstance(one, OverQuota) for one in refused), (
        "one, or both that are alike if the two others were faster"
    )
    assert set(files.list_files("default")) == kept
    assert stored_bytes(tmp_path) == sum(one.size_bytes for one in kept) == 800 << 10
