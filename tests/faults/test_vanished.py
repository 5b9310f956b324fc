"""A machine vanishes, as in standby or a power failure, without closing its connections: the host and the database soon
free the event streams and locks that the machine held.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from evaluator_host.platform.store.database import Database, address
from evaluator_host.platform.store.schema import migrate
from tests.databases import PostgreSQL
from tests.elsewhere import Elsewhere, elsewhere
from tests.keyed import bearer, make_key
from tests.server import Server

pytestmark = [
    pytest.mark.long("the kernel needs a minute; unit/test_keep_alive.py uses shorter times"),
    pytest.mark.engine,
    pytest.mark.timeout(400),
]

SOON_S = 150  # seconds; the kernel needs a minute to notice that the machine has vanished
STREAMS = 3
WATCHES = """
import sys, threading, httpx
client = httpx.Client(timeout=None, headers={"Authorization": "Bearer " + sys.argv[2]})
def watch():
    with client.stream("GET", sys.argv[1]) as events:
        print(events.status_code, flush=True)
        events.read()
for _ in range(int(sys.argv[3])):
    threading.Thread(target=watch).start()
"""
HOLDS = """
import asyncio, sys
from pathlib import Path
from sqlalchemy import text
from evaluator_host.platform.store.database import Database, address
async def main():
    async with Database(address(sys.argv[1], Path("/"))).transaction() as connection:
        await connection.execute(text("UPDATE workspaces SET name = 'held'"))
        print("holds", flush=True)
        await asyncio.sleep(1000)
asyncio.run(main())
"""


@pytest.fixture
def machine() -> Iterator[Elsewhere]:
    with elsewhere() as made:
        yield made


def test_event_streams_of_a_machine_that_vanished_are_free_again(machine: Elsewhere, tmp_path: Path) -> None:
    environment = {
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{tmp_path / 'host.db'}",
        "EVALUATOR_HOST_ALLOWED_HOSTS": f'["{machine.here}"]',
        "EVALUATOR_HOST_EVENT_STREAMS": str(STREAMS),
    }
    key = make_key("tenant", "tenant", url=environment["EVALUATOR_HOST_DATABASE_URL"])
    with Server(log=tmp_path / "log", environment=environment, host="0.0.0.0") as server:
        server.client.headers.update(bearer(key))
        slow = "import time\ndef evaluate(inputs, outputs, trace):\n    time.sleep(1)\n    return 1.0\n"
        body = {"evaluators": [{"code": slow}], "dataset": {"rows": [{"outputs": n} for n in range(500)]}}
        job = server.client.post("/v1/jobs", json=body).json()["id"]
        server.client.post(f"/v1/jobs/{job}/pause")
        while server.client.get(f"/v1/jobs/{job}").json()["status"] != "paused":
            time.sleep(0.1)
        events = f"/v1/jobs/{job}/events"
        watching = machine.run(
            sys.executable, "-c", WATCHES, f"http://{machine.here}:{server.port}{events}", key, str(STREAMS)
        )
        assert watching.stdout is not None
        assert [watching.stdout.readline().strip() for _ in range(STREAMS)] == ["200"] * STREAMS

        def status() -> int:
            with server.client.stream("GET", events) as response:
                return response.status_code

        assert status() == 429
        machine.vanish()
        until = time.monotonic() + SOON_S
        while status() == 429:
            assert time.monotonic() < until
            time.sleep(1)


async def test_locks_of_a_machine_that_vanished_are_free_again(machine: Elsewhere) -> None:
    with PostgreSQL(machine.here) as server:
        server.admit_addresses(f"{machine.network}.0/24")
        here = address(server.make_database(), Path("/"))
        migrate(here)
        far = f"postgresql://host@{machine.here}/{here.url.database}"
        holding = machine.run(sys.executable, "-c", HOLDS, far)
        assert holding.stdout is not None
        assert holding.stdout.readline() == "holds\n"
        machine.vanish()
        database = Database(here)
        async with asyncio.timeout(SOON_S), database.transaction() as connection:
            await connection.execute(text("UPDATE workspaces SET name = 'free'"))
        await database.close()
