"""The program that takes the README's pictures works."""

from pathlib import Path

import pytest

from tests.pictures import FOLDER, NAMES, take

pytestmark = pytest.mark.long("this takes many pictures; the other files in this folder test the pages")


async def test_every_picture_is_taken_of_the_running_pages(tmp_path: Path) -> None:
    taken = await take(tmp_path)
    assert {path.name for path in taken} == {path.name for path in FOLDER.glob("*.png")}
    assert all(10_000 < path.stat().st_size < 200_000 for path in taken)
    assert len(taken) == 2 * len(NAMES)
