"""Databases for tests: SQLite files, and databases on a real PostgreSQL server that runs for one session of tests.

The server is Debian's, started as an ordinary user on a socket in its own folder; nothing listens on a port.

    address = databases.make("sqlite")        # a database with all tables and no rows; each call makes another one
    async with opened_store(address) as store:
        ...

Each new database is a copy of a migrated database, since a migration takes longer than most tests of a store;
`databases.make_empty` makes a database without tables. Modules whose tests should all run on both kinds of database use
the fixture `database_url` or `empty_database_url` from tests/conftest.py.
"""

import asyncio
import contextlib
import itertools
import os
import pwd
import secrets
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.types.json import Json
from sqlalchemy import Engine, event

from evaluator_host.engine.sandbox.linux.watchdog import child_pids
from evaluator_host.platform.store.database import Database, address
from evaluator_host.platform.store.schema import migrate
from evaluator_host.platform.store.secrets import SecretBox
from evaluator_host.platform.store.store import Store
from tests.leftovers import make_folder

ENGINES = ("sqlite", "postgresql")
# both kinds of database, as parameters of a test
EACH_ENGINE = (
    "sqlite",
    pytest.param("postgresql", marks=pytest.mark.engine),
)

_USER = "postgres"
_START_S = 30
_NUMBERS = itertools.count(1)
# Nothing needs to reach a disk, since nothing outlives the session; committed data still survives if the server is killed.
_FAST = ("fsync=off", "full_page_writes=off", "max_connections=200", "shared_buffers=32MB")

_END_OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
# A copy of a database needs its own id, because it would otherwise count as the original.
_RENAME = "UPDATE database_identity SET id = %s"


class PostgreSQL:
    """A PostgreSQL server for one session of tests. `url(name)` returns the URL of a database.

    With a `host`, the server also listens at this address.
    """

    def __init__(self, host: str = "") -> None:
        self._host = host
        self._folder = make_folder("eh-pg")
        self._log = self._folder / "log"
        self._bin = _binaries()
        data = self._folder / "data"
        try:
            if os.geteuid() == 0:
                owner = pwd.getpwnam(_USER)
                os.chown(self._folder, owner.pw_uid, owner.pw_gid)
            self._run("initdb", "-D", str(data), "-U", "host", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
            self.start()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def url(self, name: str = "postgres") -> str:
        return f"postgresql://host@/{name}?host={self._folder}"

    @property
    def socket(self) -> str:
        """Address at which the server listens, `unix://…`."""
        return f"unix://{self._folder}/.s.PGSQL.5432"

    def make_database(self, *, template: str = "template1") -> str:
        """Make a copy of another database on this server, or an empty database, and return its URL."""
        name = f"test_{next(_NUMBERS)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return self.url(name)

    def admit_addresses(self, network: str) -> None:
        """Let every machine of a network connect."""
        with (self._folder / "data" / "pg_hba.conf").open("a") as file:
            file.write(f"host all all {network} trust\n")
        self._process.send_signal(signal.SIGHUP)

    def copy(self, url: str) -> str:
        """Copy a database, which may be in use, to a new database by means of a dump. Return the URL of the new
        database.
        """
        copied = self.make_database()
        dumped = subprocess.run([self._bin / "pg_dump", url], check=True, capture_output=True, timeout=60).stdout
        load = [self._bin / "psql", "-q", "-v", "ON_ERROR_STOP=1", copied]
        subprocess.run(load, input=dumped, check=True, capture_output=True, timeout=60)
        return copied

    def end_connections(self, url: str) -> None:
        """End every connection to a database, as a restart of the server does."""
        with psycopg.connect(url) as connection:
            connection.execute(_END_OTHERS)

    def read(self, url: str) -> dict[str, object]:
        """Return the rows of each table of a database, as JSON."""
        with psycopg.connect(url) as connection:
            names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            rows = (connection.execute(f'SELECT json_agg(t) FROM "{name}" t'.encode()).fetchone() for (name,) in names)
            return {name: found[0] for (name,), found in zip(names, rows, strict=True) if found}

    def restore(self, url: str, tables: dict[str, object]) -> None:
        """Give each table of a database the rows that `read` returned, and the database its own id."""
        with psycopg.connect(url) as connection:
            connection.execute(_END_OTHERS)
            # in this role the server checks no foreign keys, so the tables can change in any order
            steps = ["SET session_replication_role = replica", *(f'DELETE FROM "{name}"' for name in tables)]
            connection.execute(";".join(steps).encode())
            for name, rows in tables.items():
                if rows:
                    step = f'INSERT INTO "{name}" SELECT * FROM json_populate_recordset(NULL::"{name}", %s)'
                    connection.execute(step.encode(), [Json(rows)])
            connection.execute(_RENAME, [_new_identity()])

    def freeze(self) -> None:
        """Stop answering, without closing anything."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the server and all its connections, as a loss of power would."""
        children = child_pids(self._process.pid)
        self._signal_all(signal.SIGKILL)
        self._process.wait()
        # wait for these processes to end, because they still use the server's shared memory
        while any(Path(f"/proc/{pid}").exists() for pid in children):
            time.sleep(0.01)

    def start(self) -> None:
        """Start the server, with the data that it had before."""
        self._process = self._start(self._folder / "data")

    def stop(self) -> None:
        if self._process.poll() is None:
            self.thaw()
            # this signal ends the server at once, since its data is not needed any more
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, data: Path) -> "subprocess.Popen[bytes]":
        command = [str(self._bin / "postgres"), "-D", str(data), "-k", str(self._folder), "-h", self._host]
        for setting in _FAST:
            command += ["-c", setting]
        with self._log.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder, **_as_its_user())
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            assert process.poll() is None, self._log.read_text()
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url()):
                return process
            time.sleep(0.05)
        process.kill()
        raise AssertionError(f"PostgreSQL does not start: {self._log.read_text()}")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._bin / program), *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=60, **_as_its_user())
        assert done.returncode == 0, done.stdout + done.stderr

    def _signal_all(self, number: signal.Signals) -> None:
        children = child_pids(self._process.pid)
        for pid in (self._process.pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


@contextlib.contextmanager
def counted_statements() -> Iterator[list[str]]:
    """Yield a list to which every statement that this process sends to a database is added."""
    seen: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


async def cancelled_at_commit(database: Database, work: Coroutine[object, object, object]) -> None:
    """Run `work` in a task, and cancel the task while the database commits its first transaction."""
    task = asyncio.ensure_future(work)
    loop, engine = asyncio.get_running_loop(), database._engine.sync_engine

    def cancel(_: object) -> None:
        loop.call_soon(task.cancel)

    event.listen(engine, "commit", cancel)
    try:
        await asyncio.wait([task])
    finally:
        event.remove(engine, "commit", cancel)
    assert task.cancelled()


@contextlib.asynccontextmanager
async def opened_store(url: str, folder: Path) -> AsyncIterator[Store]:
    """Open the store of a database that has all tables. `open_store` checks each column, which takes longer than many
    tests.

    Args:
      url: URL of the database.
      folder: Data directory, which has the key of secrets.
    """
    store = Store(Database(address(url, folder)), SecretBox(None, folder))
    try:
        yield store
    finally:
        await store.close()


def _new_identity() -> str:
    return f"db-{secrets.token_hex(12)}"


def _as_its_user() -> dict[str, object]:
    """Return options that run a command as the user of Debian's PostgreSQL package, because PostgreSQL refuses to run
    as root.
    """
    if os.geteuid() != 0:
        return {}
    owner = pwd.getpwnam(_USER)
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [], "umask": 0o077}


def _binaries() -> Path:
    """Return the folder with PostgreSQL's programs: the newest version from Debian's packages, or the version on PATH
    if Debian's packages are not installed.
    """
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if versions:
        return versions[-1].parent
    found = shutil.which("initdb")
    assert found, "PostgreSQL is not installed; Debian: apt-get install postgresql (make test does it as root)"
    return Path(found).resolve().parent


class Databases:
    """Makes databases of either kind; the PostgreSQL server starts when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: PostgreSQL | None = None
        self._migrated: dict[str, str] = {}
        self._lent: list[str] = []  # PostgreSQL databases that can be lent again
        self._new: dict[str, object] = {}  # rows of a new PostgreSQL database

    @property
    def postgresql(self) -> PostgreSQL:
        if self._server is None:
            self._server = PostgreSQL()
        return self._server

    def make(self, engine: str) -> str:
        """Return the URL of a new database with all tables."""
        if engine not in self._migrated:
            made = self.make_empty(engine)
            migrate(address(made, self._folder))
            self._migrated[engine] = made
        template = self._migrated[engine]
        if engine == "postgresql":
            made = self.postgresql.make_database(template=urlsplit(template).path.removeprefix("/"))
            with psycopg.connect(made) as connection:
                connection.execute(_RENAME, [_new_identity()])
            return made
        made = self.make_empty(engine)
        file = Path(made.removeprefix("sqlite:///"))
        file.parent.mkdir(mode=0o700)
        shutil.copy(template.removeprefix("sqlite:///"), file)
        with contextlib.closing(sqlite3.connect(file)) as database, database:
            database.execute("PRAGMA synchronous = OFF")
            database.execute(_RENAME.replace("%s", "?"), [_new_identity()])
        return made

    @contextlib.contextmanager
    def lend(self, engine: str) -> Iterator[str]:
        """Yield the URL of a database as `make` returns it; the block may change its rows, but not its tables.

        PostgreSQL databases are lent again, because making one takes a third of a second of processor time.
        """
        if engine != "postgresql":
            yield self.make(engine)
            return
        url = self._lent.pop() if self._lent else self.make(engine)
        self._new = self._new or self.postgresql.read(url)
        yield url
        self.postgresql.restore(url, self._new)
        self._lent.append(url)

    def make_empty(self, engine: str) -> str:
        """Return the URL of a new database without tables; for SQLite, the file does not exist yet."""
        if engine == "postgresql":
            return self.postgresql.make_database()
        return f"sqlite:///{self._folder / f'{next(_NUMBERS)}' / 'host.db'}"

    def close(self) -> None:
        if self._server is not None:
            self._server.stop()
