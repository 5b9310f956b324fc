"""Opens a host's database: address, transactions, read snapshots. Converts driver errors to the host's exceptions.

Workspaces take turns with the connections, so that the slow queries of one workspace do not delay the others. A SQLite
file has one writer at a time. Writers in this process take turns here, so that they do not have to poll for the lock of
the file. Writers wait for the lock of the file only if another process writes. Messages never contain values, because
these may be a user's data.
"""

import asyncio
import os
import sqlite3
import time
from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from traceback import clear_frames
from typing import Any, Final

import aiosqlite
from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Executable,
    Interval,
    Select,
    TypeDecorator,
    delete,
    event,
    func,
    literal,
    make_url,
    select,
    text,
    true,
)
from sqlalchemy import Engine as SyncEngine
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute

from evaluator_host.engine.system.extras import extra
from evaluator_host.engine.system.threads import worked_for
from evaluator_host.engine.system.turns import Turns
from evaluator_host.types.errors import (
    DISK_FULL,
    InvalidRequest,
    Misconfigured,
    NotFound,
    StoreUnavailable,
    refusal_of,
)
from evaluator_host.types.names import what_was_meant

_WAIT_S: Final = 15.0  # seconds to wait for another process's write, or for a free connection
_CONNECTIONS: Final = 8
_VACUUMED_PAGES: Final = 2000
_NAMES: Final = 1000  # maximum number of names to compare with a misspelt one
_PART_BYTES: Final = 4 << 20  # maximum number of characters of texts to read from the database at a time
_ROWS_AT_ONCE: Final = 50
_KEYS_AT_ONCE: Final = 10_000  # maximum number of keys in one query; SQLite allows 32,766
_NUMBERS_AT_ONCE: Final = 5000
_KEPT: Final = 2  # connections reserved for keys and for `DatabaseWatch`, since calls may occupy all others
_ANSWERING: Final = {  # connection parameters with which a lost PostgreSQL server is noticed within half a minute
    "connect_timeout": 10,
    "application_name": "evaluator-host",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
_LOST: Final = {  # settings with which PostgreSQL frees the locks of a host whose machine is gone or does not respond
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 5,
    "tcp_keepalives_count": 4,
    "idle_in_transaction_session_timeout": 300_000,
}
_TICK_S: Final = 2.0  # the coarsest resolution, in seconds, that file times have in any file system
_WRITES: Final = "evaluator_host_writes"
FILE_NAME: Final = "evaluator-host.db"
_POSTGRESQL: Final = ("postgres", "postgresql")  # schemes of a PostgreSQL URL; several platforms use the first
_SECRET: Final = ("password", "sslpassword")  # parameters of a URL that are secret

_MORE_CONNECTIONS: Final = "raise max_connections of the server, or let fewer programs connect to it"
_TO_DO: Final = (  # words in the driver's error, each with advice on what to do
    ("unable to open database file", "check that its folder exists, and that the user of this host may write to it"),
    ("readonly database", "let the user of this host write to the file, its folder, and the -wal and -shm files there"),
    ("disk is full", DISK_FULL),
    ("database is locked", "try again; if this machine is not busy, end the process that locks the database"),
    ("timeout expired", "find out why the server does not answer, or correct EVALUATOR_HOST_DATABASE_URL"),
    ("too many clients", _MORE_CONNECTIONS),
    ("connection slots are reserved", _MORE_CONNECTIONS),
    ("No space left on device", "make room on the disk of the database's server, then try again"),
    ("failed", "start the server, or correct EVALUATOR_HOST_DATABASE_URL"),  # the connection or the login failed
)


class DatabaseKind(StrEnum):
    """The kind of database: SQLite or PostgreSQL."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of one database and its kind."""

    engine: DatabaseKind
    url: URL  # URL for SQLAlchemy, with an asynchronous driver
    file: Path | None = None  # file of a SQLite database; None for PostgreSQL

    def __str__(self) -> str:
        if self.file:
            return str(self.file)
        return self.url.difference_update_query(_SECRET).render_as_string(hide_password=True)


def sqlite_address(file: Path) -> Address:
    """Return the address of a SQLite file."""
    file = file.absolute()
    return Address(DatabaseKind.SQLITE, URL.create("sqlite+aiosqlite", database=str(file)), file)


def address(database_url: str | None, data_dir: Path) -> Address:
    """Return the address of a host's database.

    Args:
      database_url: `postgresql://…`, also `postgres://…`, with any driver; `sqlite:///file`; None for SQLite in
        the data directory.
      data_dir: Data directory of the host.

    Raises:
      Misconfigured: the URL is not valid, or of another kind of database. The message
        omits the URL, because it may contain a password.
    """
    if not database_url:
        return sqlite_address(data_dir / FILE_NAME)
    try:
        url = make_url(database_url.strip())
    except (ArgumentError, ValueError) as error:
        raise Misconfigured(
            "EVALUATOR_HOST_DATABASE_URL (or DATABASE_URL) is not a URL; "
            "write postgresql://user:password@host:5432/database, with %40 for an @ in the password"
        ) from error
    kind = url.drivername.partition("+")[0]
    if kind in _POSTGRESQL:
        with extra("postgres", "a PostgreSQL database"):
            import psycopg  # noqa: F401, PLC0415 - if it is missing, the error below says what to install
        return Address(DatabaseKind.POSTGRESQL, url.set(drivername="postgresql+psycopg"))
    if kind == "sqlite" and url.database not in (None, "", ":memory:"):
        return sqlite_address(Path(str(url.database)))
    raise Misconfigured(
        f"EVALUATOR_HOST_DATABASE_URL (or DATABASE_URL) names a database of kind {kind!r}; "
        "Evaluator Host keeps its records in PostgreSQL (postgresql://…) or, without a URL, in a SQLite file"
    )


class Database:
    """Connections to one database. Use it in one event loop only.

    Attributes:
      lost: Why the database is no longer used: its SQLite file was removed or replaced. None while it is in use.
    """

    def __init__(self, address: Address, *, connections: int = _CONNECTIONS) -> None:
        self.address = address
        self.lost: str | None = None
        self._engine = _engine(address, connections)
        self._turns = Turns(connections)
        self._writing = Turns(1) if address.engine is DatabaseKind.SQLITE else None

    def with_kept_connections(self) -> "Database":
        """Return the same database with separate connections. Writers on all connections wait for each other."""
        kept = Database(self.address, connections=_KEPT)
        kept._writing = self._writing
        return kept

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Open a transaction that reads and writes: commit when the block ends, roll back if the block raises.

        Raises:
          StoreUnavailable: the database does not answer, or cannot write.
        """
        with self._translated():
            async with self._connected(self._writing) as connection:
                _ = await connection.execution_options(**{_WRITES: True})
                async with connection.begin():
                    yield connection

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Open a snapshot for reading. The reader does not wait for writers, and writers do not wait for the reader.

        Raises:
          StoreUnavailable: the database does not answer.
        """
        with self._translated():
            async with self._connected() as connection:
                yield connection

    @asynccontextmanager
    async def _connected(self, writing: Turns | None = None) -> AsyncIterator[AsyncConnection]:
        """Yield a connection when it is the turn of the present task's workspace.

        The workspaces take turns among the writers (`writing`), or among all connections.
        """
        turns, wait_s = (self._turns, _WAIT_S) if writing is None else (writing, None)
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(wait_s):
                    await held.enter_async_context(turns.turn(worked_for()))
            except TimeoutError as error:
                raise PoolTimeout(f"no connection was free within {_WAIT_S:g} s") from error
            yield await held.enter_async_context(self._engine.connect())

    @contextmanager
    def _translated(self) -> Iterator[None]:
        if self.lost is not None:
            raise StoreUnavailable(self.lost)
        with translated(self.address):
            yield

    def mark(self) -> tuple[Any, ...] | None:
        """Return a value that changes whenever any process writes to the database. None if it is not known.

        The value is unknown for PostgreSQL, and for a SQLite file written a moment ago, since two writes may have the
        same time.
        """
        if (file := self.address.file) is None:
            return None
        found = [file_facts(path) for path in (file, file.with_name(f"{file.name}-wal"))]
        written = max(one.st_mtime for one in found if one is not None) if found[0] else time.time()
        if not time.time() - written > _TICK_S:
            return None
        return tuple(one and (one.st_ino, one.st_size, one.st_mtime_ns, one.st_mode) for one in found)

    async def fetch_all(self, query: Executable) -> Sequence[Any]:
        """Return all rows of a query, read in a separate snapshot."""
        async with self.reading() as connection:
            return (await connection.execute(query)).all()

    async def fetch_part(self, query: Select[Any], *, most_bytes: int = _PART_BYTES) -> list[Any]:
        """Return the first rows of a query, up to the row at which their texts reach `most_bytes` characters."""
        found, size, count = list[Any](), 0, 1
        async with self.reading() as connection, connection.stream(query) as rows:
            while part := await rows.fetchmany(count):
                for row in part:
                    found.append(row)
                    size += sum(len(value) for value in row if isinstance(value, str))
                    if size >= most_bytes:
                        return found
                count = min(_ROWS_AT_ONCE, 1 + (most_bytes - size) * len(found) // (size + 1))
        return found

    async def fetch_parts(
        self, order: Select[Any], query: Select[Any], key: InstrumentedAttribute[Any], *, most_bytes: int = _PART_BYTES
    ) -> AsyncGenerator[list[Any], None]:
        """Yield the rows of a query, sorted, in parts of at most `most_bytes` characters, or of one row.

        `order` selects the key and the size of each row, in the order of the rows. The database sorts only these
        columns. If it sorted whole rows, it would read all their texts again for each part. The first column of `query`
        is the key.
        """
        ids: list[Any] = []
        size = 0
        for one, more in await self.fetch_all(order):
            if ids and (size + more > most_bytes or len(ids) == _KEYS_AT_ONCE):
                yield await self._of_keys(query, key, ids)
                ids, size = [], 0
            ids.append(one)
            size += more
        if ids:
            yield await self._of_keys(query, key, ids)

    async def _of_keys(self, query: Select[Any], key: InstrumentedAttribute[Any], ids: list[Any]) -> list[Any]:
        found = {row[0]: row for row in await self.fetch_all(query.where(key.in_(ids)))}
        return [found[one] for one in ids if one in found]

    async def fetch_first(self, query: Executable) -> Any:
        """Return the first row of a query, read in a separate snapshot, or None."""
        async with self.reading() as connection:
            return (await connection.execute(query)).first()

    async def fetch_values(self, query: Executable) -> Sequence[Any]:
        """Return the values in a query's first column, read in a separate snapshot."""
        async with self.reading() as connection:
            return (await connection.scalars(query)).all()

    async def fetch_value(self, query: Executable) -> Any:
        """Return the first column of the first row of a query, read in a separate snapshot, or None."""
        async with self.reading() as connection:
            return await connection.scalar(query)

    async def fetch_numbers(self, query: Select[Any], column: InstrumentedAttribute[int]) -> "array[int]":
        """Return the values of a query that selects only this column, sorted. Other tasks may run meanwhile.

        The column has no negative numbers, and no number twice.
        """
        found = array("q", [-1])
        query = query.order_by(column).limit(_NUMBERS_AT_ONCE)
        while some := await self.fetch_values(query.where(column > found[-1])):
            found.extend(some)
        return found[1:]

    async def now(self) -> datetime:
        """Return the time of the database's clock, which all hosts share. SQLite uses the clock of the machine."""
        if self.address.engine is DatabaseKind.SQLITE:
            return datetime.now(UTC)
        found: datetime = await self.fetch_value(text("SELECT clock_timestamp()"))
        return found.astimezone(UTC)

    async def change_rows(self, statement: Executable) -> int:
        """Run a statement in a separate transaction, and return how many rows it changed."""
        async with self.transaction() as connection:
            return (await connection.execute(statement)).rowcount

    async def delete_rows(self, table: Any, chosen: ColumnElement[bool], *, at_once: int) -> int:
        """Delete chosen rows of a table, `at_once` at a time so that no writer waits long. Return the row count."""
        key = list(table.primary_key.columns)[-1]  # `chosen` should compare the other columns of the key with values
        # with ORDER BY, SQLite would read the whole table to find out that no row is chosen
        if not await self.fetch_all(select(key).where(chosen).limit(1)):
            return 0
        # PostgreSQL may read and sort all rows that are left for each list of keys, so the lists are long
        some, removed = select(key).where(chosen).order_by(key).limit(_KEYS_AT_ONCE), 0
        # each part begins after the last one, because PostgreSQL would read the deleted rows again until it cleans up
        after: ColumnElement[bool] = true()
        while keys := await self.fetch_values(some.where(after)):
            for last in (*keys[at_once - 1 : -1 : at_once], keys[-1]):
                # this is a range, because databases may read the whole table for a list of keys
                removed += await self.change_rows(delete(table).where(chosen, after, key <= last))
                after = key > last
            if len(keys) < _KEYS_AT_ONCE:
                break
        return removed

    async def give_space_back(self) -> None:
        """Return the space of deleted rows to the file system, a few MB at a time. PostgreSQL does this itself."""
        while self.address.engine is DatabaseKind.SQLITE:
            async with self.transaction() as connection:
                before = await connection.scalar(text("PRAGMA freelist_count"))
                driver: Any = (await connection.get_raw_connection()).driver_connection
                # `execute` would free only one page
                await driver.executescript(f"PRAGMA incremental_vacuum({_VACUUMED_PAGES})")
                if await connection.scalar(text("PRAGMA freelist_count")) in (0, before):
                    return

    async def require_writable(self) -> None:
        """Check that the host can write.

        PostgreSQL must not be read-only, and no other process may keep the SQLite file locked.

        Raises:
          StoreUnavailable: the host cannot write, or the database does not answer.
        """
        if self.address.engine is DatabaseKind.SQLITE:
            async with self.transaction():
                return
        if await self.fetch_value(text("SHOW transaction_read_only")) == "on":
            raise StoreUnavailable(f"the database {self.address} is read-only; let this host write to it")

    async def close(self) -> None:
        """Close every connection that is not in use; the next call opens new connections."""
        await self._engine.dispose()


class Repository:
    """Base of the classes that store one kind of record in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def _not_found(self, what: str, given: str, names: Select[Any], *, otherwise: str) -> NotFound:
        """Return the error for an unknown name, which suggests the most similar of `names`, or else `otherwise`."""
        known = [str(row[0]) for row in await self._database.fetch_all(names.limit(_NAMES))]
        return NotFound(f"there is no {what} {given[:80]}; {what_was_meant(given, known, otherwise=otherwise)}")


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn exceptions of the database driver in the block into exceptions of this host.

    Raises:
      InvalidRequest: the database does not accept a value.
      StoreUnavailable: the database does not answer, or cannot write.
    """
    try:
        try:
            yield
        except DBAPIError as error:
            # The error and SQLAlchemy's frames refer to each other. If the frames are not cleared, they keep the values
            # of the statement until the next garbage collection.
            clear_frames(error.__traceback__)
            raise
    except (IntegrityError, sqlite3.IntegrityError):
        raise
    except (DataError, OverflowError) as error:
        raise InvalidRequest(
            "the database cannot store or compare a value: it contains a NUL character or too large a number; change it"
        ) from error
    except (DBAPIError, PoolTimeout, OSError, sqlite3.Error) as error:
        raise _unavailable(address, error) from error


def file_facts(file: Path) -> os.stat_result | None:
    """Return `os.stat` of a file, or None when there is no such file."""
    try:
        return file.stat()
    except OSError:
        return None


def backups_dir(file: Path) -> Path:
    """Return the folder in which migrations keep copies of a SQLite file."""
    return file.parent / "backups"


def newest_backup(file: Path | None) -> Path | None:
    """Return the newest copy of a SQLite file, or None."""
    return max(backups_dir(file).glob("*.db"), default=None) if file else None


def clock(connection: AsyncConnection, *, before: timedelta = timedelta()) -> ColumnElement[datetime]:
    """Return an SQL expression for the database's time, minus the duration `before`."""
    if connection.dialect.name == "sqlite":
        return literal((datetime.now(UTC) - before).replace(tzinfo=None))
    return func.clock_timestamp() - literal(before, Interval)


def insert_unless_there(connection: AsyncConnection, table: type[DeclarativeBase]) -> Any:
    """Return an INSERT that does nothing if the row already exists (`ON CONFLICT DO NOTHING`)."""
    # the engine has already imported this module
    dialect: Any = import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
    return dialect.insert(table).on_conflict_do_nothing()


async def insert_many(
    connection: AsyncConnection, table: type[DeclarativeBase], records: Sequence[Any], **same: Any
) -> None:
    """Insert dataclasses of one type as rows. `same` are further columns, each with one value for all rows.

    Only times are converted for the driver, because SQLAlchemy's conversion takes a dozen microseconds per row.
    """
    names = [field.name for field in fields(records[0])]
    values = attrgetter(*names)
    columns = ", ".join(f'"{name}"' for name in (*same, *names))
    mark = "?" if connection.dialect.name == DatabaseKind.SQLITE else "%s"
    marks = ", ".join([mark] * (len(same) + len(names)))
    query = f'INSERT INTO "{table.__tablename__}" ({columns}) VALUES ({marks})'  # noqa: S608 - our own names
    common = tuple(same.values())
    rows = [(*common, *values(record)) for record in records]
    for at, name in enumerate(names, len(common)):
        kind = table.__table__.c[name].type
        if isinstance(kind, TypeDecorator) and (convert := kind.bind_processor(connection.dialect)) is not None:
            rows = [(*row[:at], convert(row[at]), *row[at + 1 :]) for row in rows]
    await connection.exec_driver_sql(query, rows)


def row_values(record: Any) -> dict[str, Any]:
    """Convert a dataclass to the values of a table row, without the deep copies that `asdict` makes."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def columns_of(table: type[DeclarativeBase], record: type[Any]) -> list[Any]:
    """Return the table's columns for the fields of a dataclass, in the order of the fields."""
    return [getattr(table, field.name) for field in fields(record)]


def damaged(file: Path, reason: str) -> StoreUnavailable:
    """Return the error for a damaged SQLite file; it names the newest backup."""
    kept = newest_backup(file)
    copy = f"the newest copy is {kept}" if kept else f"there is no copy in {backups_dir(file)}"
    return StoreUnavailable(
        f"the database {file} is damaged: {reason}; stop the host, keep the file, and put a copy in its place ({copy})"
    )


def _unavailable(address: Address, error: Exception) -> StoreUnavailable:
    cause = getattr(error, "orig", None) or error
    reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
    if address.file and isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError):
        return damaged(address.file, reason)
    if isinstance(cause, OSError):
        return StoreUnavailable(f"the database {address} cannot be used: {refusal_of(cause)}")
    to_do = next((advice for words, advice in _TO_DO if words in reason), "try again")
    return StoreUnavailable(f"the database {address} does not work: {reason}; nothing was changed; {to_do}")


def prepare_engine(engine: SyncEngine) -> SyncEngine:
    """Make connections of a SQLAlchemy engine refuse the encoding SQL_ASCII, and free their locks when they are lost.

    Only connections to PostgreSQL are changed.
    """

    def prepare(connection: Any, entry: Any) -> None:
        if entry.driver_connection.info.parameter_status("server_encoding") == "SQL_ASCII":
            raise Misconfigured(
                "the PostgreSQL database has the encoding SQL_ASCII, which stores bytes, not characters; create one "
                "with UTF8: CREATE DATABASE evaluators ENCODING 'UTF8' TEMPLATE template0"
            )
        cursor = connection.cursor()
        # connection poolers do not accept these settings as connection parameters, so a query sets them; a stricter
        # value that the operator has set stays (0 means no limit)
        cursor.execute(
            "SELECT set_config(name, LEAST(NULLIF(setting::int, 0), most)::text, false) "
            "FROM pg_settings JOIN unnest(%s::text[], %s::int[]) AS lost (name, most) USING (name)",
            [list(_LOST), list(_LOST.values())],
        )
        cursor.close()
        connection.commit()

    if engine.dialect.name == DatabaseKind.POSTGRESQL:
        # the listener is inserted first, so that it runs before SQLAlchemy queries the version
        event.listen(engine, "connect", prepare, insert=True)
    return engine


def connect_args(url: URL) -> dict[str, Any]:
    """Return this host's connection parameters for a PostgreSQL server, except those that the URL sets."""
    return {name: value for name, value in _ANSWERING.items() if name not in url.query}


def _engine(address: Address, connections: int) -> AsyncEngine:
    pool: dict[str, Any] = {"pool_size": connections, "max_overflow": 0, "pool_timeout": _WAIT_S}
    if address.engine is DatabaseKind.POSTGRESQL:
        made = create_async_engine(
            address.url,
            **pool,
            hide_parameters=True,
            pool_pre_ping=True,  # replaces connections that the server has closed
            connect_args=connect_args(address.url),
        )
        prepare_engine(made.sync_engine)
        return made
    pool["pool_size"] += 1  # one more connection for the writer, so that it never waits for readers
    there = {"mode": "rw", "uri": "true"}  # opening fails if the file was removed; it would otherwise be created empty
    engine = create_async_engine(
        address.url.set(database=address.file.as_uri(), query=there) if address.file else address.url,
        **pool,
        hide_parameters=True,
        connect_args={"async_creator_fn": _Connection},
    )
    event.listen(engine.sync_engine, "connect", _prepare_sqlite)
    event.listen(engine.sync_engine, "begin", _begin_sqlite)
    event.listen(engine.sync_engine, "invalidate", _roll_back)
    event.listen(engine.sync_engine, "handle_error", _replace_connections)
    return engine


class _Connection(aiosqlite.Connection):
    """A connection that two tasks may close at the same time, as SQLAlchemy does when a task is cancelled."""

    def __init__(self, file: str, **options: Any) -> None:
        # the driver sends no BEGIN, because `_begin_sqlite` does
        connect = partial(sqlite3.connect, file, timeout=_WAIT_S, isolation_level=None, **options)
        super().__init__(connect, iter_chunk_size=64)
        self._thread.daemon = True  # a host may end without waiting for this thread

    def stop(self) -> "asyncio.Future[Any] | None":
        """Stop the thread of the connection. The base class would never return if the thread had already ended."""
        return super().stop() if self._running else None


def _prepare_sqlite(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    # the file stores the WAL mode, so it is not set here (see `schema`)
    for pragma in ("foreign_keys = ON", "synchronous = NORMAL"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
    # SQLite's own `lower` changes only the letters of ASCII
    connection.create_function("lower", 1, lambda value: None if value is None else str(value).lower())


def _roll_back(connection: Any, _: Any, error: BaseException | None) -> None:
    """Roll back a cancelled caller's transaction, since SQLite keeps the lock while a cursor exists."""
    if error is not None:
        # any error may be ignored here, because the connection is closed next
        with suppress(Exception, asyncio.CancelledError):
            connection.rollback()


def _replace_connections(failed: Any) -> None:
    """Replace all connections after a refused write. A connection to a file that was read-only can never write."""
    failed.is_disconnect |= "readonly database" in str(failed.original_exception)


def _begin_sqlite(connection: Connection) -> None:
    """Begin a transaction as a writer or as a reader, because in SQLite a reader cannot wait to become a writer."""
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
