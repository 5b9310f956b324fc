"""Connects a command to a running host: the host in `--url`, or the host of the last login."""

import re
import sys
from typing import Annotated, Final

import typer

from evaluator_host.client import DEFAULT_URL, Client
from evaluator_host.client.calls import default_url, host_url
from evaluator_host.platform.terminal.console import GIVEN_URL, err, plain
from evaluator_host.platform.terminal.logins import key_for, login_file, read_logins
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.jobs import JobReport
from evaluator_host.types.names import counted

_FROM_LAST: Final = re.compile(r"last(?:-(\d{1,3}))?")


def host(url: str, *, timeout_s: float = 600.0) -> Client:
    """Return an HTTP client for a running host."""
    return Client(url, key=key_for(url), timeout_s=timeout_s)


def _opened(context: typer.Context, url: str) -> Client:
    """Return a client for the host at a URL; the client is closed when the command ends."""
    asks_model = any(one.name == "model_url" for one in context.command.params)
    if asks_model and url.rstrip("/").endswith("/v1"):
        raise InvalidRequest(f"--url is the address of the host; give the address of the model as --model-url {url}")
    source = context.get_parameter_source("client")
    if source is not None and source.name == "COMMANDLINE":
        GIVEN_URL.set(url)
    return context.with_resource(host(url))


ClientOption = Annotated[
    Client,
    typer.Option(
        "--url",
        envvar="EVALUATOR_HOST_URL",
        help="URL of the host. The key is taken from EVALUATOR_HOST_KEY.",
        metavar="URL",
        parser=str,
        callback=_opened,
        default_factory=default_url,
        show_default=DEFAULT_URL,
    ),
]


def named_job(client: Client, given: str) -> JobReport:
    """Return the job with this id, or the job that `last` (the newest job) or `last-1` (the job before it) names.

    Raises:
      InvalidRequest: there are too few jobs for `last-N`.
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
        known = f"there {'is' if len(newest) == 1 else 'are'} only {counted(len(newest), 'job')}"
        raise InvalidRequest(
            f"{given} counts back {before} from the newest job, but {known}; evaluator-host jobs list shows them all"
        )
    return newest[before]


def login(
    url: Annotated[str, typer.Argument(help="Address of the host: https://evaluators.example")],
    *,
    key: Annotated[
        str | None, typer.Option(envvar="EVALUATOR_HOST_KEY", help="Key of the host; a terminal asks for it.")
    ] = None,
) -> None:
    """Save the address and the key of a host: commands under 'Use a host' then call it, others need --url."""
    if key is None and sys.stdin.isatty():
        key = typer.prompt("Key (empty for a host without keys)", default="", hide_input=True, show_default=False)
    url = host_url(url)
    with Client(url, key=key or None) as client:
        version = client.info().version
    read_logins().add(url, key or "")
    err.print(plain(f"{url} answers ({version}); this login is saved in {login_file()}"))
