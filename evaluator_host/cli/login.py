"""`login`: the host that commands call from then on."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from evaluator_host.cli.console import err, plain
from evaluator_host.config.settings import home_folder
from evaluator_host.system.files import replace_file


def login(
    url: Annotated[str, typer.Argument(help="Address of the host: https://evaluators.example")],
    *,
    key: Annotated[
        str | None, typer.Option(envvar="EVALUATOR_HOST_KEY", help="Key of the host; a terminal asks for it.")
    ] = None,
) -> None:
    """Keep the address and the key of a host: commands that call a host use them from then on."""
    if key is None and sys.stdin.isatty():
        key = typer.prompt("Key (empty for a host without keys)", default="", hide_input=True, show_default=False)
    os.environ["EVALUATOR_HOST_KEY"] = key = key or ""
    from evaluator_host.cli.remote_host import host  # noqa: PLC0415 - each command that calls a host imports this

    with host(url) as client:
        version = client.info().version
    file = login_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(file, json.dumps({"url": url, "key": key}).encode())
    err.print(plain(f"{url} answers ({version}); it is kept in {file}"))


def login_file() -> Path:
    """Return where `login` keeps the address and the key of a host."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or home_folder() / ".config") / "evaluator-host" / "login.json"


def use_login() -> None:
    """Use the host of `login` where the environment names none."""
    try:
        kept = json.loads(login_file().read_bytes())
    except (OSError, ValueError):
        return
    if "EVALUATOR_HOST_URL" not in os.environ and isinstance(kept.get("url"), str):
        os.environ["EVALUATOR_HOST_URL"] = kept["url"]
        if kept.get("key"):
            os.environ.setdefault("EVALUATOR_HOST_KEY", kept["key"])
