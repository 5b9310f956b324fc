"""Stores logins: the host that commands call by default, and a key for each host. A key is sent only to its host."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from evaluator_host.engine.config.settings import home_folder
from evaluator_host.engine.system.files import replace_file
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import err, plain


@dataclass(slots=True)
class Logins:
    """The content of the login file."""

    url: str | None = None  # the host of the last login
    keys: dict[str, str] = field(default_factory=dict)  # a dict from the URL of each host to the key for it

    def add(self, url: str, key: str) -> None:
        """Make a host the default, and store its key. The key is empty for a host without keys."""
        self.url, self.keys[url] = url, key
        file = login_file()
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(file, json.dumps({"url": self.url, "keys": self.keys}).encode())


def login_file() -> Path:
    """Return the path of the JSON file that `login` writes."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or home_folder() / ".config") / "evaluator-host" / "login.json"


def read_logins() -> Logins:
    """Return the saved logins; an empty dict if the file does not exist or is damaged."""
    try:
        kept = json.loads(login_file().read_bytes())
        keys = {str(url): str(key) for url, key in kept["keys"].items()}
        return Logins(str(kept["url"]), keys)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Logins()


def use_login() -> None:
    """Set EVALUATOR_HOST_URL to the host of the last login, unless the variable is already set."""
    url = read_logins().url
    if url is not None:
        os.environ.setdefault("EVALUATOR_HOST_URL", url)


def tell_here() -> None:
    """Print that a command runs on this machine, and how to use the host of the last login, if there is one."""
    if (url := read_logins().url) is not None:
        err.print(
            plain(f"this command runs on this machine; to run it on {url}, where you are logged in, add --url {url}")
        )


def key_for(url: str) -> str | None:
    """Return the key to send to a host: EVALUATOR_HOST_KEY, or the key that was saved for this host.

    Raises:
      InvalidRequest: `url` is not the address of a host.
    """
    from evaluator_host.client.calls import host_url  # noqa: PLC0415 - httpx, which `run` on this machine does not need

    given = load_settings().key
    return given.get_secret_value() if given is not None else read_logins().keys.get(host_url(url)) or None
