"""Lists all tests that pytest collects, and the tests in each shard. As a plugin (`-p tests.collected`), it prints
them.
"""

import json
from typing import Any, Final

import pytest

from tests.distribution import in_shard, part_of

SHARDS: Final = 6
HEAD: Final = '{"all"'


def described(items: list[pytest.Item]) -> dict[str, list[list[Any]]]:
    """Return facts about each test (`all`) and the names of the tests in each shard (`shards`). The facts about a test
    are its name, its part (`part_of`), whether its whole file is marked as long, and whether it needs an engine.
    """
    told = [
        [
            item.nodeid,
            part_of(item),
            bool((item.get_closest_marker("long") or pytest.mark.long).args),
            item.get_closest_marker("engine") is not None,
        ]
        for item in items
    ]
    shards = [[item.nodeid for item in in_shard(items, number, SHARDS)] for number in range(1, SHARDS + 1)]
    return {"all": told, "shards": shards}


def pytest_collection_finish(session: pytest.Session) -> None:
    print("\n" + json.dumps(described(session.items)))
