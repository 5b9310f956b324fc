"""Copies the database of a running host to one file, with SQLite's backup or pg_dump, and restores such a file.

A copy contains the database as it was at one moment. Other processes can write to the database meanwhile.
"""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from evaluator_host.platform.store.database import Address
from evaluator_host.platform.store.schema import newer_tables
from evaluator_host.types.errors import Misconfigured, StoreUnavailable

_WAIT_S: Final = 60.0
_TOOLS: Final = Path("/usr/lib/postgresql")  # folder where Debian keeps the tools of each version


def copy_database(address: Address, file: Path) -> None:
    """Write a copy of a database to a new file.

    Raises:
      StoreUnavailable: the database does not answer, or the copy cannot be written.
      Misconfigured: pg_dump is not installed, or older than the server.
    """
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if address.file is None:
        _run_tool("pg_dump", address, "--format=custom", "--no-owner", "--no-acl", f"--file={file}")
        return
    try:
        with closing(sqlite3.connect(f"file:{address.file}?mode=ro", uri=True, timeout=_WAIT_S)) as source:
            source.execute("VACUUM INTO ?", (str(file),))
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{address.file} cannot be copied: {error}") from error


def restore_database(address: Address, copy: Path, revisions: Mapping[str, str]) -> None:
    """Fill an empty database from a file that `copy_database` wrote.

    `revisions` maps each group of tables in the copy to its revision.

    Raises:
      Misconfigured: a newer version made the copy, or the database is not empty.
      StoreUnavailable: the database does not answer.
    """
    if newer := newer_tables(revisions):
        raise Misconfigured(f"the backup is at {newer}: a newer Evaluator Host made it. Restore it with that version")
    if address.file is None:
        _run_tool(
            "pg_restore", address, "--no-owner", "--no-acl", "--single-transaction", "--exit-on-error",
            f"--dbname={address.url.database}", str(copy),
        )  # fmt: skip
        return
    if address.file.exists():
        raise Misconfigured(
            f"there is already a database: {address.file}. Give an empty folder as --data-dir, or move the file away"
        )
    address.file.parent.mkdir(parents=True, exist_ok=True)
    partial = address.file.with_name(f"{address.file.name}.partial")
    try:
        with (
            copy.open("rb") as source,
            os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as made,
        ):
            shutil.copyfileobj(source, made)
            made.flush()
            os.fsync(made.fileno())
        partial.rename(address.file)  # renaming is a single step, so a killed command leaves no incomplete database
    finally:
        partial.unlink(missing_ok=True)


def _run_tool(name: str, address: Address, *arguments: str) -> None:
    """Run a tool of PostgreSQL; the password is passed in the environment, which other users cannot read."""
    url = address.url
    given = {"PGHOST": url.host, "PGPORT": url.port and str(url.port), "PGUSER": url.username,
             "PGPASSWORD": url.password, "PGDATABASE": url.database}  # fmt: skip
    parameters = {"sslmode": "PGSSLMODE", "host": "PGHOST", "port": "PGPORT"}
    given |= {parameters[key]: str(value) for key, value in url.query.items() if key in parameters}
    environment = {**os.environ, **{key: value for key, value in given.items() if value}}
    done = subprocess.run([_tool(name), *arguments], env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise StoreUnavailable(
            f"{name} failed: {done.stderr.strip().splitlines()[-1] if done.stderr else 'no reason given'}"
        )


def _tool(name: str) -> str:
    newest = sorted(
        _TOOLS.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0
    )
    found = str(newest[-1]) if newest else shutil.which(name)
    if found is None:
        raise Misconfigured(f"{name} is not installed (Debian: apt-get install postgresql-client)")
    return found
