"""The running host that a command calls, by `--url` and the key in the settings."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from evaluator_host.cli.command import load_settings
from evaluator_host.client import DEFAULT_URL, Client
from evaluator_host.model.errors import InvalidRequest
from evaluator_host.schemas.jobs import JobReport

_FROM_LAST: Final = re.compile(r"last(?:-(\d{1,3}))?")

HostOption = Annotated[
    str,
    typer.Option("--url", envvar="EVALUATOR_HOST_URL", help="URL of the host. EVALUATOR_HOST_KEY is sent as its key."),
]


@contextmanager
def host(url: str = DEFAULT_URL) -> Iterator[Client]:
    """Open an HTTP client of a running host."""
    key = load_settings().key
    with Client(url, key=key.get_secret_value() if key is not None else None) as client:
        yield client


def named_job(client: Client, given: str) -> JobReport:
    """Return a job by its id, or counted back from the newest (`last`, `last-1`).

    Raises:
      InvalidRequest: there are fewer jobs.
      NotFound: there is no such job.
    """
    from_last = _FROM_LAST.fullmatch(given)
    if from_last is None:
        return client.jobs.get(given)
    before = int(from_last[1] or 0)
    newest = client.jobs.all(limit=before + 1)
    if not newest:
        raise InvalidRequest("there are no jobs; create one with evaluator-host jobs create")
    if len(newest) <= before:
        raise InvalidRequest(f"there is no {given}: there are {len(newest)} jobs; evaluator-host jobs list shows them")
    return newest[before]
