"""The running host that a command talks to: by `--url`, with the key of the settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from evaluator_host.cli.edge import load_settings
from evaluator_host.client import DEFAULT_URL, Client

HostOption = Annotated[str, typer.Option("--url", help="The host; EVALUATOR_HOST_KEY is its key, where it wants one.")]


@contextmanager
def host(url: str = DEFAULT_URL) -> Iterator[Client]:
    """Open a client of a host."""
    key = load_settings().key
    with Client(url, key=key.get_secret_value() if key is not None else None) as client:
        yield client
