"""Connections to the database: transactions that write, snapshots that read, and faults as the host's own errors.

A SQLite file has one writer at a time. Writers of this process queue for a lock here, so that none polls for the lock
of the file; writers of other processes are waited for. Messages never contain values: these may be a user's data.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any, Final

from sqlalchemy import Connection, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.orm import DeclarativeBase

from evaluator_host.model.errors import InvalidRequest, StoreUnavailable
from evaluator_host.store.address import Address, Engine

_WAIT_S: Final = 15.0  # for another process's write, or for a free connection
_CONNECTIONS: Final = 8
_WRITES: Final = "evaluator_host_writes"


class Database:
    """One database. Bound to one event loop."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._engine = _engine(address)
        self._writing = asyncio.Lock() if address.engine is Engine.SQLITE else None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Open a transaction that reads and writes: commit at the end of the block, roll back when it raises.

        Raises:
          StoreUnavailable: the database does not answer, or cannot write.
        """
        turn: AbstractAsyncContextManager[Any] = self._writing or nullcontext()
        with translated(self.address):
            async with turn, self._engine.connect() as connection:
                _ = await connection.execution_options(**{_WRITES: True})
                async with connection.begin():
                    yield connection

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Open a snapshot to read from; it neither waits for a writer nor blocks one.

        Raises:
          StoreUnavailable: the database does not answer.
        """
        with translated(self.address):
            async with self._engine.connect() as connection:
                yield connection

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Translate the driver's exceptions to the host's.

    Raises:
      InvalidRequest: the database does not take a value.
      StoreUnavailable: the database does not answer, or cannot write.
    """
    try:
        yield
    except (DataError, OverflowError) as error:
        raise InvalidRequest(
            "the database cannot store or compare a value: it holds a NUL character, or too large a number"
        ) from error
    except (OperationalError, InterfaceError, PoolTimeout, OSError, sqlite3.OperationalError) as error:
        raise _unavailable(address, error) from error
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise _unavailable(address, error) from error


def insert_unless_there(connection: AsyncConnection, table: type[DeclarativeBase]) -> Any:
    """Return an INSERT that does nothing where the row exists already (`ON CONFLICT DO NOTHING`)."""
    dialect = postgresql if connection.dialect.name == Engine.POSTGRESQL else sqlite
    return dialect.insert(table).on_conflict_do_nothing()


def _unavailable(address: Address, error: Exception) -> StoreUnavailable:
    cause = getattr(error, "orig", None) or error
    reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
    return StoreUnavailable(f"the database {address} does not serve: {reason}; nothing was changed, try again")


def _engine(address: Address) -> AsyncEngine:
    if address.engine is Engine.POSTGRESQL:
        return create_async_engine(
            address.url,
            hide_parameters=True,
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=_WAIT_S,
            pool_pre_ping=True,  # replaces connections that the server has closed
            connect_args={"connect_timeout": 10, "application_name": "evaluator-host"},
        )
    engine = create_async_engine(
        address.url,
        hide_parameters=True,
        pool_size=_CONNECTIONS,
        max_overflow=0,
        pool_timeout=_WAIT_S,
        connect_args={"timeout": _WAIT_S, "isolation_level": None},  # `_begin_sqlite` sends BEGIN, not the driver
    )
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("foreign_keys = ON", "synchronous = NORMAL"):  # WAL is a property of the file, see `schema`
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Begin as a writer or as a reader: SQLite lets no reader wait to become a writer midway."""
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
