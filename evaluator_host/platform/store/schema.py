"""Brings a database to this version's tables, once for all hosts that use it. Refuses a newer database.

    SQLite: file lock ─▶ BEGIN IMMEDIATE ─▶ a copy in backups/ ─▶ migrations ─▶ references checked ─▶ COMMIT
            (a migration that fails leaves no copy, so that a host that starts again and again does not fill the disk)
    PostgreSQL: BEGIN ─▶ advisory lock ─▶ migrations ─▶ COMMIT

The tables of each package, such as `evaluator_host.platform.labels`, have their own revision number. Tables that a
database does not have are created as the package declares them. Existing tables are changed by the package's modules
`migrations/r0002_<outcome>.py`, each with a function `upgrade()`; the first revision needs no module.

`migrate` blocks: a host calls it in a thread, before it uses the database.
"""

import importlib
import logging
import os
import runpy
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Column, Connection, MetaData, Text, create_engine, delete, event, insert, inspect, select
from sqlalchemy import Table as SchemaTable
from sqlalchemy.exc import ProgrammingError

from evaluator_host.engine.system.files import FileLock
from evaluator_host.platform.folders import modules
from evaluator_host.platform.store.database import (
    Address,
    DatabaseKind,
    backups_dir,
    connect_args,
    newest_backup,
    prepare_engine,
    translated,
)
from evaluator_host.platform.store.tables import Table
from evaluator_host.types.errors import Misconfigured

VERSION_TABLE: Final = "evaluator_host_revisions"
_VERSIONS: Final = SchemaTable(
    VERSION_TABLE, MetaData(), Column("package", Text, primary_key=True), Column("revision", Text, nullable=False)
)
# table of revisions in databases that development versions before 1.0.0 created
_TABLE_BEFORE_1_0: Final = "evaluator_host_revision"
_FIRST: Final = "0001"
_ADVISORY_LOCK: Final = 0x6576_616C_686F_7374  # a random number that no other program is likely to use
_WAIT_S: Final = 600.0  # seconds to wait for another process, which may be writing a lot
_QUIET_S: Final = 2.0  # seconds of waiting after which the wait is logged
_LOOK_EVERY_S: Final = 0.05
_LACKING_SHOWN: Final = 10  # maximum number of tables and columns that a message names

_log = logging.getLogger(__name__)


def migrate(address: Address) -> None:
    """Bring a database to this version's tables; create it if there is none.

    Raises:
      Misconfigured: a newer version has used the database, its tables lack columns, or it has tables of another
        program.
      StoreUnavailable: the database does not answer, or cannot write. Nothing was changed.
    """
    with translated(address), _alone(address):
        engine = prepare_engine(create_engine(blocking_url(address), hide_parameters=True, **_arguments(address)))
        try:
            if address.engine is DatabaseKind.SQLITE:
                event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
            with ExitStack() as copies, engine.begin() as connection:
                _upgrade(connection, address, copies)
        finally:
            engine.dispose()


@dataclass(frozen=True, slots=True)
class TableGroup:
    """The tables of one package, and the modules that change these tables, the oldest module first."""

    package: str
    tables: tuple[SchemaTable, ...]
    migrations: tuple[Path, ...]

    @property
    def head(self) -> str:
        """The newest revision that this version knows."""
        return _number(self.migrations[-1]) if self.migrations else _FIRST

    def knows(self, revision: str) -> bool:
        """Return whether this version can use tables of this revision, or can migrate them to its own revision."""
        return revision in (_FIRST, *map(_number, self.migrations))


def table_groups() -> list[TableGroup]:
    """Return the groups of all tables; a group comes after the groups that its tables refer to."""
    load_tables()
    packages: dict[str, list[SchemaTable]] = {}
    owners = {mapper.local_table: mapper.class_.__module__.rpartition(".")[0] for mapper in Table.registry.mappers}
    for table in Table.metadata.sorted_tables:
        packages.setdefault(owners[table], []).append(table)
    return [TableGroup(name, (*tables,), migrations_of(name)) for name, tables in packages.items()]


@cache
def load_tables() -> None:
    """Import every resource's module `table`, once."""
    for path in modules("table"):
        importlib.import_module(path)


def migrations_of(package: str) -> tuple[Path, ...]:
    """Return the migrations of a package's tables, the oldest first."""
    folder = Path(next(iter(sys.modules[package].__path__))) / "migrations"
    return (*sorted(folder.glob("r*.py")),)


def revisions_of(address: Address) -> dict[str, str]:
    """Return `{group of tables: revision}` for a database."""
    engine = prepare_engine(create_engine(blocking_url(address), hide_parameters=True))
    try:
        with engine.connect() as connection:
            return _revisions(connection)
    finally:
        engine.dispose()


def is_current(connection: Connection, address: Address) -> bool:
    """Return whether a database has all tables of this version, each in the revision of this version.

    Raises:
      Misconfigured: a newer version has used the database, or its tables lack columns.
    """
    found, groups = _revisions(connection), table_groups()
    _require_known(found, address)
    _require_columns(connection, address, [group for group in groups if found.get(group.package) == group.head])
    return all(found.get(group.package) == group.head for group in groups)


def _revisions(connection: Connection) -> dict[str, str]:
    if not inspect(connection).has_table(VERSION_TABLE):
        return {}
    return {str(row.package): str(row.revision) for row in connection.execute(select(_VERSIONS))}


def _number(migration: Path) -> str:
    return migration.name[1:].partition("_")[0]


def _upgrade(connection: Connection, address: Address, copies: ExitStack) -> None:
    if address.engine is DatabaseKind.POSTGRESQL:
        lock = f"xact_lock({_ADVISORY_LOCK})"
        if not _taken(lambda: bool(connection.exec_driver_sql(f"SELECT pg_try_advisory_{lock}").scalar()), address):
            connection.exec_driver_sql(f"SELECT pg_advisory_{lock}")
    found, groups = _revisions(connection), table_groups()
    missing = [group for group in groups if group.package not in found]
    older = [group for group in groups if found.get(group.package, group.head) != group.head]
    if not missing and not older:
        _require_columns(connection, address, groups)
        return
    _require_known(found, address)
    _require_untaken(connection, address, missing)
    keep_copy = copies.enter_context(_copied(address.file)) if older and address.file is not None else None
    try:
        _VERSIONS.create(connection, checkfirst=True)
        Table.metadata.create_all(connection, [table for group in missing for table in group.tables], checkfirst=False)
        for group in older:
            _run_migrations(connection, group, found[group.package])
    except ProgrammingError as error:
        raise Misconfigured(
            f"the tables of Evaluator Host cannot be created in {address}: {str(error.orig).splitlines()[0]}. "
            "Give Evaluator Host a separate database, and a user that may create tables there"
        ) from error
    for group in (*missing, *older):
        connection.execute(delete(_VERSIONS).where(_VERSIONS.c.package == group.package))
        connection.execute(insert(_VERSIONS).values(package=group.package, revision=group.head))
    _check_references(connection, address)
    _require_columns(connection, address, groups)
    if keep_copy is not None:
        _log.info("a copy of the database from before the migration is in %s", keep_copy())
    if found:
        made = ", ".join(f"{group.package} {group.head}" for group in (*missing, *older))
        _log.info("the tables of the database %s were migrated to this version: %s", address, made)
    else:
        _log.info("tables were created in the empty database %s", address)


def _run_migrations(connection: Connection, group: TableGroup, current: str) -> None:
    from alembic import migration, operations  # noqa: PLC0415 - takes 80 ms; only a start that migrates needs it

    context = migration.MigrationContext.configure(connection)
    with operations.Operations.context(context):
        for path in group.migrations:
            if _number(path) > current:
                runpy.run_path(str(path))["upgrade"]()


def _require_untaken(connection: Connection, address: Address, missing: list[TableGroup]) -> None:
    """Refuse a database that has tables of another program with the same names."""
    names = {table.name for group in missing for table in group.tables}
    there = set(inspect(connection).get_table_names())
    taken = sorted(there & names)
    if taken and _TABLE_BEFORE_1_0 in there:
        raise _of_an_early_commit(address, f"has the table {_TABLE_BEFORE_1_0}")
    if taken:
        raise Misconfigured(
            f"{address} has tables of another program: {', '.join(taken)}. Give Evaluator Host a separate database"
        )


def _require_columns(connection: Connection, address: Address, groups: list[TableGroup]) -> None:
    """Check that tables have the columns that this version reads and writes.

    The revision is not enough: development versions before 1.0.0 changed tables without a migration.
    """
    names = [table.name for group in groups for table in group.tables]
    there = inspect(connection).get_multi_columns(filter_names=names)
    found = {table: {str(column["name"]) for column in columns} for (_, table), columns in there.items()}
    lacking = [f"the table {name}" for name in names if name not in found]
    lacking += [
        f"the column {table.name}.{column.name}"
        for group in groups
        for table in group.tables
        for column in table.columns
        if table.name in found and column.name not in found[table.name]
    ]
    if lacking:
        shown = ", ".join(lacking[:_LACKING_SHOWN]) + (", …" if len(lacking) > _LACKING_SHOWN else "")
        raise _of_an_early_commit(address, f"lacks {shown}")


def _of_an_early_commit(address: Address, sign: str) -> Misconfigured:
    new = "EVALUATOR_HOST_DATABASE_URL" if address.file is None else "EVALUATOR_HOST_DATA_DIR"
    return Misconfigured(
        f"the database {address} {sign}: a version before 1.0.0 probably made it, and this version cannot migrate "
        f"it. Give this version another {new}, or start the version that made the database"
    )


def _require_known(revisions: Mapping[str, str], address: Address) -> None:
    """If a database has tables, check that this version knows their revisions."""
    newer = newer_tables(revisions)
    if not newer:
        return
    kept = newest_backup(address.file)
    restore = f"restore the copy from before that ({kept})" if kept else "restore a backup from before that"
    raise Misconfigured(
        f"the database {address} is at {newer}: a newer Evaluator Host has used it. Start that version again, or "
        f"{restore}, or give this version another EVALUATOR_HOST_DATA_DIR or EVALUATOR_HOST_DATABASE_URL"
    )


def newer_tables(revisions: Mapping[str, str]) -> str | None:
    """Describe the first group of tables with a revision that this version does not know. None if it knows them all."""
    for group in table_groups():
        revision = revisions.get(group.package, group.head)
        if not group.knows(revision):
            return f"revision {revision} of {group.package}, which this version does not know (its own is {group.head})"
    return None


def _check_references(connection: Connection, address: Address) -> None:
    """Check foreign keys. SQLite does not enforce them while a migration rebuilds a table."""
    if address.engine is DatabaseKind.SQLITE:
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
        if broken:
            tables = ", ".join(sorted({str(row[0]) for row in broken}))
            raise Misconfigured(
                f"rows of {tables} in {address} refer to rows that do not exist; nothing was changed; restore a backup"
            )


def blocking_url(address: Address) -> Any:
    """Return the URL of a database for a blocking driver."""
    return address.url.set(drivername="sqlite+pysqlite") if address.engine is DatabaseKind.SQLITE else address.url


def _arguments(address: Address) -> dict[str, Any]:
    if address.engine is DatabaseKind.SQLITE:
        return {"connect_args": {"timeout": _WAIT_S, "isolation_level": None}}
    return {"connect_args": connect_args(address.url)}


@contextmanager
def _alone(address: Address) -> Iterator[None]:
    """Lock a file next to a SQLite database during the block, and create the database if it is missing.

    For PostgreSQL, do nothing, because migrations lock the database itself.
    """
    if address.file is None:
        yield
        return
    lock = FileLock(address.file.with_suffix(".lock"))
    _ = _taken(lock.acquire, address) or lock.acquire(wait=True)
    try:
        # only the file's owner may read it, because it contains hashes of API keys
        os.close(os.open(address.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        _note_writer(address.file)
        with closing(sqlite3.connect(address.file, timeout=_WAIT_S)) as connection:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # this has an effect only on a new file
            connection.execute("PRAGMA journal_mode = WAL")
        yield
    finally:
        lock.release()


def _taken(take: Callable[[], bool], address: Address) -> bool:
    """Call `take` until it succeeds. After two seconds, log that another host migrates the database; return False."""
    until = time.monotonic() + _QUIET_S
    while not (taken := take()) and time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)
    if not taken:
        _log.warning("another host is migrating the database %s, or hangs while migrating it. This host waits", address)
    return taken


def _note_writer(file: Path) -> None:
    """If another process has locked a SQLite file for two seconds, log that this process waits, perhaps for minutes."""
    try:
        with closing(sqlite3.connect(file, timeout=_QUIET_S, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        _log.warning("%s: %s. This host waits until it can write there, for at most %g s", file, error, _WAIT_S)


@contextmanager
def _copied(file: Path) -> Iterator[Callable[[], Path]]:
    """Yield a function that keeps a complete copy of a database, and returns its path; see `newest_backup`.

    The copy is made at once, and removed if the block raises, or does not call the function. The caller holds the lock,
    so that nobody writes meanwhile.
    """
    folder = backups_dir(file)
    folder.mkdir(mode=0o700, exist_ok=True)
    for unfinished in folder.glob(f"{file.stem}-*.partial*"):  # a host that was killed has left these copies
        unfinished.unlink(missing_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    kept = folder / f"{file.stem}-{stamp}.db"
    partial = kept.with_suffix(".partial")
    try:
        os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(file, timeout=_WAIT_S)) as connection:
            connection.execute("VACUUM INTO ?", (str(partial),))
        yield lambda: partial.rename(kept)
    except BaseException:
        kept.unlink(missing_ok=True)
        raise
    finally:
        partial.unlink(missing_ok=True)
