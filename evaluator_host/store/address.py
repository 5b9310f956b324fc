"""The address of a host's database: SQLite in its data directory, or the PostgreSQL of a URL."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from evaluator_host.model.errors import Misconfigured

FILE_NAME: Final = "evaluator-host.db"
_POSTGRESQL: Final = ("postgres", "postgresql")  # the first is how several platforms spell it
_SECRET: Final = ("password", "sslpassword")  # a URL may have them as parameters


class Engine(StrEnum):
    """The kind of database."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of one database.

    Attributes:
      url: For SQLAlchemy, with an asynchronous driver.
      file: Of SQLite; None for PostgreSQL.
    """

    engine: Engine
    url: URL
    file: Path | None = None

    def __str__(self) -> str:
        if self.file:
            return str(self.file)
        return self.url.difference_update_query(_SECRET).render_as_string(hide_password=True)


def sqlite_address(file: Path) -> Address:
    """Return the address of a SQLite file."""
    file = file.absolute()
    return Address(Engine.SQLITE, URL.create("sqlite+aiosqlite", database=str(file)), file)


def address(database_url: str | None, data_dir: Path) -> Address:
    """Return the address of a host's database.

    Args:
      database_url: `postgresql://…`, also `postgres://…`, with any driver; `sqlite:///file`; None for SQLite in
        the data directory.
      data_dir: Data directory of the host.

    Raises:
      Misconfigured: it is no URL, or names another kind of database. The message omits it: it may hold a password.
    """
    if not database_url:
        return sqlite_address(data_dir / FILE_NAME)
    try:
        url = make_url(database_url.strip())
    except (ArgumentError, ValueError) as error:
        raise Misconfigured(
            "EVALUATOR_HOST_DATABASE_URL (or DATABASE_URL) is no URL; "
            "write postgresql://user:password@host:5432/database, with %40 for an @ in the password"
        ) from error
    kind = url.drivername.partition("+")[0]
    if kind in _POSTGRESQL:
        return Address(Engine.POSTGRESQL, url.set(drivername="postgresql+psycopg"))
    if kind == "sqlite" and url.database not in (None, "", ":memory:"):
        return sqlite_address(Path(str(url.database)))
    raise Misconfigured(
        f"EVALUATOR_HOST_DATABASE_URL (or DATABASE_URL) names a database of kind {kind!r}; "
        "Evaluator Host keeps its records in PostgreSQL (postgresql://…) or, without a URL, in a SQLite file"
    )
