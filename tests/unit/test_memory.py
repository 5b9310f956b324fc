"""Workspaces share the memory for requests, small requests always get memory, and large answers wait in order."""

import asyncio
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator_host.engine.config.settings import usable_memory_mb
from evaluator_host.engine.system.memory import ByteTurns, MemoryBudget
from evaluator_host.types.errors import Busy

MB = 1 << 20


def test_a_quarter_is_left_for_small_requests() -> None:
    budget = MemoryBudget(160 * MB)
    with budget.hold("a") as first, budget.hold("a") as second, budget.hold("b") as small:
        first.reserve(300 * MB)  # as long as a workspace is alone, it may use more than its share
        with pytest.raises(Busy, match="try again in 2 s"):
            second.reserve(20 * MB)
        small.reserve(9 * MB)
        small.reserve(5 * MB)
        assert budget.used_bytes == 309 * MB
    assert budget.used_bytes == 0


def test_a_second_workspace_finds_room_beside_a_flood() -> None:
    budget = MemoryBudget(1600 * MB)  # 1,200 MB of this memory are for large requests
    with budget.hold("b") as other:
        other.reserve(100 * MB)  # from now on two workspaces share the memory
    floods = [budget.hold("a") for _ in range(12)]
    granted = 0
    for flood in floods:
        try:
            flood.reserve(100 * MB)
        except Busy:
            continue
        granted += 1
    assert granted == 9
    with budget.hold("b") as other:
        other.reserve(100 * MB)
        other.add(100 * MB)
        with pytest.raises(Busy):
            other.add(200 * MB)
        assert budget.used_bytes == 1100 * MB
    for flood in floods:
        flood.__exit__()
    assert budget.used_bytes == 0


async def test_large_pieces_wait_in_order_and_one_that_is_cancelled_takes_nothing() -> None:
    turns, began, ends = ByteTurns(10), [], [asyncio.Event() for _ in range(5)]

    async def piece(number: int, size: int) -> None:
        await turns.take(size)
        began.append(number)
        await ends[number].wait()
        turns.give_back(size)

    tasks = [asyncio.create_task(piece(number, size)) for number, size in enumerate((4, 6, 99, 5, 5))]
    await asyncio.sleep(0)
    assert began == [0, 1]
    tasks[2].cancel()
    ends[0].set()
    await asyncio.gather(tasks[0], tasks[2], return_exceptions=True)
    await asyncio.sleep(0)
    assert began == [0, 1], "the piece of size five must wait, because it does not fit beside the piece of size six"
    ends[1].set()
    await tasks[1]
    await asyncio.sleep(0)
    assert began == [0, 1, 3, 4]
    for end in ends:
        end.set()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(
    ("line", "file", "text", "expected"),
    [
        ("0::/a/b", "a/memory.max", "536870912\n", 512),
        ("0::/a/b", "a/memory.max", "max\n", None),
        ("3:memory:/c", "memory/c/memory.limit_in_bytes", "268435456\n", 256),
        ("3:memory:/docker/x", "memory/memory.limit_in_bytes", "268435456\n", 256),
        ("3:pids:/c", "pids/c/memory.limit_in_bytes", "1048576\n", None),
    ],
)
def test_the_memory_of_a_cgroup_counts_where_it_is_less(
    line: str, file: str, text: str, expected: int | None, tmp_path: Path
) -> None:
    (tmp_path / "cgroup").write_text(line + "\n")
    path = tmp_path / "fs" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert usable_memory_mb(tmp_path, tmp_path / "fs") == (expected or usable_memory_mb(tmp_path / "none"))


_MOVES = """
import ctypes, mmap
from evaluator_host.engine.system.memory import use_large_pages

def large_kb():
    with open("/proc/self/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("AnonHugePages"))

data = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
data.write(bytes(range(256)) * (len(data) // 256))
before = large_kb()
use_large_pages()
assert data[:] == bytes(range(256)) * (len(data) // 256)
print(large_kb() - before)
"""


def test_present_data_moves_to_large_pages_and_stays_the_same() -> None:
    moved_kb = int(subprocess.run([sys.executable, "-c", _MOVES], check=True, capture_output=True).stdout)
    kernel = tuple(map(int, platform.release().split(".")[:2]))
    assert moved_kb >= 12 << 10 or kernel < (6, 1)
