"""Counts the statements that a store sends to its database, and the rows or steps that they take; seconds are not
measured.

For SQLite, the steps of its virtual machine are counted. For PostgreSQL, EXPLAIN ANALYZE runs each statement again and
reports how many rows each scan has read; statements that write are counted, but not run again.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from sqlalchemy import event, text

from evaluator_host.platform.store.database import Database, DatabaseKind
from evaluator_host.platform.store.store import Store

_STEP: Final = 10  # number of instructions of SQLite that count as one step


@dataclass
class Count:
    """The cost of a block; `read` counts steps in SQLite, or rows in PostgreSQL."""

    statements: int = 0
    read: int = 0
    asked: list[tuple[str, Any]] = field(default_factory=list)


@contextmanager
def counting(database: Database) -> Iterator[Count]:
    """During the block, count the statements sent to a database on connections that are opened in the block."""
    count = Count()
    engine = database._engine.sync_engine

    def prepare(connection: Any, _: Any) -> None:
        if database.address.engine is DatabaseKind.SQLITE:
            connection.run_async(lambda driver: driver.set_progress_handler(step, _STEP))

    def step() -> None:
        count.read += 1

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        count.statements += 1
        count.asked.append((statement, parameters))

    event.listen(engine, "connect", prepare)
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield count
    finally:
        event.remove(engine, "connect", prepare)
        event.remove(engine, "before_cursor_execute", note)
    if database.address.engine is DatabaseKind.POSTGRESQL:
        url = database.address.url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(url, cursor_factory=psycopg.ClientCursor) as connection:
            count.read = sum(_rows_read(connection, *one) for one in count.asked if one[0].startswith("SELECT"))


async def learn(store: Store) -> None:
    """Make PostgreSQL update its statistics, as it regularly does by itself. SQLite never does this on a host."""
    if store.database.address.engine is DatabaseKind.POSTGRESQL:
        async with store.database.transaction() as connection:
            await connection.execute(text("ANALYZE"))


async def cost(database: Database, work: Callable[[], Awaitable[object]]) -> Count:
    """Return the cost of some work in the database, on new connections."""
    await database.close()
    with counting(database) as count:
        await work()
        await database.close()
    return count


def _rows_read(connection: psycopg.Connection[Any], statement: str, parameters: Any) -> int:
    found = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}".encode(), parameters).fetchone()
    assert found is not None
    return _of_plan(found[0][0]["Plan"])


def _of_plan(plan: dict[str, Any]) -> int:
    below = plan.get("Plans", ())
    lost = sum(int(plan.get(name, 0)) for name in ("Rows Removed by Filter", "Rows Removed by Index Recheck"))
    own = lost + (0 if below else int(plan["Actual Rows"]))
    return int(own * plan["Actual Loops"]) + sum(map(_of_plan, below))
