"""A database is migrated to this version once, and a copy of the old database is kept. A newer database, or the
database of another program, is not changed.
"""

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from evaluator_host.platform.store import schema
from evaluator_host.platform.store.database import Address, DatabaseKind, address, backups_dir, newest_backup
from evaluator_host.platform.store.schema import VERSION_TABLE, migrate, table_groups
from evaluator_host.platform.store.store import open_read_only, open_store
from evaluator_host.platform.store.tables import Table
from evaluator_host.types.errors import Misconfigured
from tests.keyed import eventually

STORE = "evaluator_host.platform.store"
LATER = '''
"""A later version: a column, and a row of its own."""
import sqlalchemy as sa
from alembic import op
def upgrade():
    op.add_column("workspaces", sa.Column("colour", sa.Text, nullable=False, server_default="red"))
    op.create_table("later", sa.Column("id", sa.Integer, primary_key=True))
    op.execute("INSERT INTO later VALUES (1)")
    {more}
'''


@pytest.fixture
def where(empty_database_url: str, tmp_path: Path) -> Address:
    return address(empty_database_url, tmp_path)


def later_version(folder: Path, more: str = "") -> Callable[[str], tuple[Path, ...]]:
    """Write a migration of a later version. Return a function that lists this migration, to replace the host's function
    that lists migrations.
    """
    folder.mkdir()
    later = folder / "r9999_later.py"
    later.write_text(LATER.format(more=more))
    return lambda package: (later,) if package == STORE else ()


def migrating(where: Address, later: Path) -> subprocess.Popen[str]:
    """Start a process that brings a database to a later version."""
    script = (
        "import sys; from pathlib import Path; from evaluator_host.platform.store import schema\n"
        "from evaluator_host.platform.store.database import address\n"
        "later = (Path(sys.argv[1]),)\n"
        f"schema.migrations_of = lambda package: later if package == {STORE!r} else ()\n"
        "schema.migrate(address(sys.argv[2], Path()))"
    )
    url = where.url.render_as_string(hide_password=False)
    return subprocess.Popen([sys.executable, "-c", script, str(later), url], stderr=subprocess.PIPE, text=True)


def asked(where: Address, query: str, *, rows: bool = True) -> list[tuple[object, ...]]:
    drivername = "sqlite+pysqlite" if where.engine is DatabaseKind.SQLITE else where.url.drivername
    engine = sa.create_engine(where.url.set(drivername=drivername))
    with engine.begin() as connection:
        answer = connection.exec_driver_sql(query)
        found = [tuple(row) for row in answer] if rows else []
    engine.dispose()
    return found


def test_the_tables_of_each_package_are_made_and_have_a_revision(where: Address) -> None:
    migrate(where)
    groups = table_groups()
    assert sorted(asked(where, f"SELECT package, revision FROM {VERSION_TABLE}")) == sorted(
        (group.package, group.head) for group in groups
    )
    assert {table.name for group in groups for table in group.tables} == set(Table.metadata.tables)
    drivername = "sqlite+pysqlite" if where.engine is DatabaseKind.SQLITE else where.url.drivername
    engine = sa.create_engine(where.url.set(drivername=drivername))
    with engine.connect() as connection:
        options = {
            "compare_type": True,
            "compare_server_default": True,
            "include_object": lambda _, name, kind, *__: (kind, name) != ("table", VERSION_TABLE),
        }
        assert compare_metadata(MigrationContext.configure(connection, opts=options), Table.metadata) == []
    engine.dispose()
    assert asked(where, "SELECT id, name FROM workspaces") == [("default", "default")]


OTHERS = """
from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column
from evaluator_host.platform.store.tables import Table, WorkspaceTable

class NoteTable(Table):
    __tablename__ = "notes"
    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(ForeignKey(WorkspaceTable.id))
"""
CHANGE = """
import sqlalchemy as sa
from alembic import op

def upgrade():
    op.add_column("notes", sa.Column("text", sa.Text, nullable=False, server_default="none"))
"""


@pytest.mark.slow
@pytest.mark.long
def test_tables_of_another_package_come_later_and_change_by_themselves(where: Address, tmp_path: Path) -> None:
    migrate(where)
    package = tmp_path / "notes_of_others"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "table.py").write_text(OTHERS)
    migrated_with(where, tmp_path)
    asked(where, "INSERT INTO notes VALUES ('a', 'default') RETURNING id")
    (package / "migrations").mkdir()
    (package / "migrations" / "r0002_text.py").write_text(CHANGE)
    with (package / "table.py").open("a") as file:
        file.write("    text: Mapped[str] = mapped_column(server_default='none')\n")
    migrated_with(where, tmp_path)
    assert asked(where, "SELECT id, text FROM notes") == [("a", "none")]
    revisions = dict(asked(where, f"SELECT package, revision FROM {VERSION_TABLE}"))
    assert revisions["notes_of_others"] == "0002"
    assert revisions[STORE] == "0001"
    migrate(where)  # this time the package is not imported, as if it were not installed


def migrated_with(where: Address, folder: Path) -> None:
    """Migrate a database in a process that has imported the tables of another package."""
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2]); import notes_of_others.table\n"
        "from evaluator_host.platform.store.database import address\n"
        "from evaluator_host.platform.store.schema import migrate\n"
        "migrate(address(sys.argv[1], Path()))"
    )
    url = where.url.render_as_string(hide_password=False)
    subprocess.run([sys.executable, "-c", script, url, str(folder)], check=True, timeout=100)


def test_a_file_that_another_process_locks_is_waited_for_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "_QUIET_S", 0.1)
    where = address("", tmp_path)
    migrate(where)
    with closing(sqlite3.connect(str(where.file), isolation_level=None)) as other, ThreadPoolExecutor(1) as waiting:
        other.execute("BEGIN IMMEDIATE")
        migrated = waiting.submit(migrate, where)
        eventually(lambda: "database is locked. This host waits" in caplog.text)
        assert not migrated.done()
        other.execute("ROLLBACK")
        migrated.result(60)


def test_another_host_that_migrates_is_waited_for_and_the_log_says_so(
    where: Address, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(where)
    monkeypatch.setattr(schema, "_QUIET_S", 0.1)
    goes_on, upgrade = threading.Event(), schema._upgrade

    def slow(*args: Any) -> None:
        upgrade(*args)
        goes_on.wait(60)

    monkeypatch.setattr(schema, "_upgrade", slow)
    with ThreadPoolExecutor(2) as hosts:
        both = [hosts.submit(migrate, where) for _ in range(2)]
        eventually(lambda: "another host is migrating" in caplog.text)
        assert not any(one.done() for one in both)
        goes_on.set()
        for one in both:
            one.result(60)


def test_an_older_database_is_migrated_and_kept(
    where: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(where)
    asked(
        where,
        "INSERT INTO api_keys (id, workspace_id, name, token_hash, created_at) VALUES ('k', 'default', 'ci', 'h', '2026-01-01') RETURNING id",
    )
    if where.file is not None:
        backups = where.file.parent / "backups"
        backups.mkdir()
        (backups / "host-20260101T000000.000000Z.partial").write_bytes(b"a copy that a killed host had begun")
    monkeypatch.setattr(schema, "migrations_of", later_version(tmp_path / "later"))
    migrate(where)
    migrate(where)
    assert asked(where, "SELECT id, colour FROM workspaces") == [("default", "red")]
    assert asked(where, "SELECT id, name FROM api_keys") == [("k", "ci")]
    if where.file is None:
        return
    (kept,) = (where.file.parent / "backups").iterdir()
    assert kept.name.startswith("host-")
    assert kept.stat().st_mode & 0o077 == 0
    copy = sqlite3.connect(kept)
    assert copy.execute("SELECT id, name FROM api_keys").fetchall() == [("k", "ci")]
    assert copy.execute("SELECT count(*) FROM sqlite_master WHERE name = 'later'").fetchone() == (0,)
    assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    copy.close()


def test_a_newer_database_is_refused_by_name(where: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(where)
    with monkeypatch.context() as later:
        later.setattr(schema, "migrations_of", later_version(tmp_path / "later"))
        migrate(where)
    with pytest.raises(Misconfigured) as refused:
        migrate(where)
    said = refused.value.detail
    assert f"revision 9999 of {STORE}" in said
    assert "its own is 0001" in said
    assert "newer Evaluator Host" in said
    if where.file is not None:
        assert str(next((where.file.parent / "backups").iterdir())) in said
    assert asked(where, "SELECT count(*) FROM later") == [(1,)], "the newer database must stay as it was"


def test_a_migration_that_fails_changes_nothing(
    where: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(where)
    before = asked(where, "SELECT * FROM workspaces")
    with monkeypatch.context() as later:
        later.setattr(
            schema,
            "migrations_of",
            later_version(tmp_path / "later", more="op.execute('SELECT * FROM no_such_table')"),
        )
        with pytest.raises(Exception, match="no_such_table"):
            migrate(where)
        if (
            where.file is not None
        ):  # no copy may stay, because a host that fails at each start would fill the disk with copies
            assert list(backups_dir(where.file).iterdir()) == []
    assert asked(where, "SELECT * FROM workspaces") == before, "a migration that fails must not add its column"
    migrate(where)


@pytest.mark.long
def test_a_migration_that_is_killed_changes_nothing_and_leaves_one_copy(databases, tmp_path: Path) -> None:
    where = address(databases.make_empty("sqlite"), tmp_path)
    assert where.file is not None
    migrate(where)
    (later,) = later_version(tmp_path / "later", more="import time; time.sleep(100)")(STORE)
    folder, left = backups_dir(where.file), set[Path]()
    for _ in range(2):
        with migrating(where, later) as process:
            eventually(lambda known=left: {*folder.glob("*.partial")} - known)
            process.kill()
        # SQLite may have been killed while it copied, with a journal beside the copy
        left = {*folder.iterdir()}
        assert len({one.stem for one in left}) == 1
        assert all(".partial" in one.suffix for one in left)
    assert newest_backup(where.file) is None
    assert len(asked(where, "SELECT name FROM sqlite_master WHERE name = 'later'")) == 0
    (later,) = later_version(tmp_path / "whole")(STORE)
    with migrating(where, later) as process:
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
    assert [*folder.iterdir()] == [newest_backup(where.file)]


def test_a_migration_that_leaves_broken_references_is_undone(
    databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = address(databases.make_empty("sqlite"), tmp_path)
    migrate(where)
    broken = "op.execute(\"INSERT INTO package_set_uses VALUES ('nobody', 'x', '2026-01-01')\")"
    with monkeypatch.context() as later:
        later.setattr(schema, "migrations_of", later_version(tmp_path / "later", more=broken))
        with pytest.raises(Misconfigured, match="package_set_uses"):
            migrate(where)
    assert asked(where, "SELECT * FROM package_set_uses") == []


@pytest.mark.slow
@pytest.mark.long
def test_hosts_that_start_at_once_migrate_once(where: Address, tmp_path: Path) -> None:
    """Hosts that start at the same time migrate a database only once. If both hosts ran the later migration, the second
    run would fail or add a second row.
    """
    migrate(where)
    (later,) = later_version(tmp_path / "later", more="import time; time.sleep(0.5)")(STORE)
    with ExitStack() as stack:
        for process in [stack.enter_context(migrating(where, later)) for _ in range(2)]:
            _, errors = process.communicate(timeout=100)
            assert process.returncode == 0, errors
    assert asked(where, "SELECT * FROM later") == [(1,)]
    if where.file is not None:
        assert len(list((where.file.parent / "backups").iterdir())) == 1


def test_a_database_of_another_program_is_left_alone(where: Address) -> None:
    if where.file is not None:
        where.file.parent.mkdir(parents=True)
    drivername = "sqlite+pysqlite" if where.engine is DatabaseKind.SQLITE else where.url.drivername
    engine = sa.create_engine(where.url.set(drivername=drivername))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE workspaces (id INTEGER)")
    engine.dispose()
    with pytest.raises(Misconfigured, match="a separate database"):
        migrate(where)
    assert asked(where, "SELECT * FROM workspaces") == []


async def test_a_database_that_lacks_columns_is_refused_by_their_names(where: Address, tmp_path: Path) -> None:
    migrate(where)
    asked(where, "ALTER TABLE jobs DROP COLUMN nodes", rows=False)
    asked(where, "ALTER TABLE audit RENAME TO audit_of_others", rows=False)
    url = where.url.render_as_string(hide_password=False) if where.file is None else f"sqlite:///{where.file}"
    with pytest.raises(Misconfigured, match=r"lacks .*the column jobs\.nodes.*a version before 1\.0\.0") as refused:
        migrate(where)
    assert "lacks the table audit, " in refused.value.detail
    with pytest.raises(Misconfigured, match=r"jobs\.nodes"):
        async with open_read_only(url, tmp_path):
            pass


def test_a_database_of_the_first_commits_is_not_taken_for_that_of_another_program(where: Address) -> None:
    if where.file is not None:
        where.file.parent.mkdir(parents=True)
    asked(where, "CREATE TABLE workspaces (id INTEGER)", rows=False)
    asked(where, "CREATE TABLE evaluator_host_revision (version_num TEXT)", rows=False)
    with pytest.raises(Misconfigured, match=r"evaluator_host_revision: a version before 1\.0\.0 probably made it"):
        migrate(where)


async def test_a_sqlite_file_is_private_and_in_wal_mode(tmp_path: Path) -> None:
    async with open_store(None, tmp_path) as store:
        await store.workspaces.ensure_workspace("acme")
        files = list(tmp_path.glob("evaluator-host.db*"))  # noqa: ASYNC240
        assert {file.name for file in files} == {"evaluator-host.db", "evaluator-host.db-wal", "evaluator-host.db-shm"}
        assert all(file.stat().st_mode & 0o077 == 0 for file in files), (
            "only the owner may read the files, because they contain hashes of keys"
        )
