"""Package index settings for uv and npm: index addresses, proxy, extra CA and credentials.

uv and npm get credentials in environment variables or in a file that only this user can read. Credentials are removed
from all messages before anybody sees the messages.
"""

import asyncio
import base64
import json
import re
import shutil
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

import certifi

from evaluator_host.engine.system.tree import work_folder
from evaluator_host.types.errors import MachineExhausted, Misconfigured

_INDEX_NAME: Final = "operator"
_PREFIX: Final = "evaluator-host-resolve-"
_RETRIES: Final = "2"
_HIDDEN: Final = "***"
# minimum length of a secret to mask; masking shorter ones would blank out parts of words
_SHORTEST_SECRET: Final = 4


@dataclass(frozen=True)
class IndexSettings:
    """The operator's settings of package indexes; pip.conf, uv.toml and .npmrc are not read."""

    cache_dir: Path  # the folder for downloads; it has `uv/` and `npm/`
    # PEP 503 index, which may contain user and password; None means uv's default
    pip_index_url: str | None = field(default=None, repr=False)
    # npm registry, which may contain user and password; None means npm's default
    npm_registry: str | None = field(default=None, repr=False)
    npm_token: str | None = field(default=None, repr=False)  # bearer token of the npm registry
    ca_file: Path | None = None  # PEM file of certificate authorities to trust in addition to the public ones
    proxy: str | None = field(default=None, repr=False)  # proxy for http and https; may contain user and password
    no_proxy: str = ""  # hosts reached without the proxy, comma-separated
    timeout_s: float = 120.0  # time limit for resolving one package set, in seconds
    # parent of the resolvers' folders, which hold credentials; None for the system's temporary folder
    work_dir: Path | None = None

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """Return all strings that must never be shown, the longest first."""
        found = {self.npm_token or ""}
        for url in (self.pip_index_url, self.npm_registry, self.proxy):
            parts = urlsplit(url or "")
            if parts.password:
                plain = unquote(parts.password)
                found |= {parts.password, plain, quote(plain, safe=""), _basic(parts)}
        return tuple(sorted((secret for secret in found if len(secret) >= _SHORTEST_SECRET), key=len, reverse=True))

    def for_builder(self) -> "IndexSettings":
        """Return settings for a command that runs package code: no credentials, and a separate download cache."""
        return replace(
            self,
            pip_index_url=_public(self.pip_index_url),
            npm_registry=_public(self.npm_registry),
            npm_token=None,
            proxy=_public(self.proxy),
            cache_dir=self.cache_dir / "builder",
        )

    def redact(self, text: str) -> str:
        """Return a message of uv or npm with the credentials masked."""
        for secret in self.secrets:
            text = text.replace(secret, _HIDDEN)
        return re.sub(r"(?<=://)[^/\s@]+@", "", text)


@dataclass(frozen=True, slots=True)
class ToolFolder:
    """An empty directory in which uv or npm runs, and the program's environment variables."""

    path: Path
    environment: Mapping[str, str] = field(repr=False)


@asynccontextmanager
async def uv_workspace(index: IndexSettings) -> AsyncIterator[ToolFolder]:
    """Yield a directory for one uv process, and remove it afterwards, because it contains credentials.

    Raises:
      Misconfigured: the CA file cannot be read.
    """
    async with work_folder(index.work_dir, _PREFIX) as path:
        # this runs in a thread, because many look-ups begin at once, and each copies half a megabyte of certificates
        yield ToolFolder(path, await asyncio.to_thread(_uv_environment, index, path))


def _uv_environment(index: IndexSettings, path: Path) -> dict[str, str]:
    environment = _proxy(index) | {
        "HOME": str(path),
        "UV_CACHE_DIR": str(index.cache_dir / "uv"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_HTTP_RETRIES": _RETRIES,
        "NO_COLOR": "1",
    }
    if index.ca_file is not None:
        environment["SSL_CERT_FILE"] = str(_trusted(index.ca_file, path))
    if index.pip_index_url:
        address, parts = _without_credentials(index.pip_index_url)
        environment["UV_DEFAULT_INDEX"] = f"{_INDEX_NAME}={address}"
        if parts.username:
            environment[f"UV_INDEX_{_INDEX_NAME.upper()}_USERNAME"] = unquote(parts.username)
            environment[f"UV_INDEX_{_INDEX_NAME.upper()}_PASSWORD"] = unquote(parts.password or "")
    return environment


@asynccontextmanager
async def npm_workspace(index: IndexSettings) -> AsyncIterator[ToolFolder]:
    """Yield a directory with an `.npmrc` for one npm process; remove it afterwards, because it contains credentials.

    Raises:
      Misconfigured: the CA file cannot be read.
    """
    async with work_folder(index.work_dir, _PREFIX) as path:
        yield ToolFolder(path, await asyncio.to_thread(_npm_environment, index, path))


def _npm_environment(index: IndexSettings, path: Path) -> dict[str, str]:
    (path / "home").mkdir()
    rc_file = path / "home" / "user.npmrc"
    rc_file.write_text(_npmrc(index), "utf-8")
    rc_file.chmod(0o600)
    (path / "home" / "global.npmrc").touch()
    environment = _proxy(index) | {
        "HOME": str(path / "home"),
        "npm_config_userconfig": str(rc_file),
        "npm_config_globalconfig": str(path / "home" / "global.npmrc"),
        "npm_config_cache": str(index.cache_dir / "npm"),
        "NO_COLOR": "1",
    }
    if index.ca_file is not None:
        environment["NODE_EXTRA_CA_CERTS"] = str(_copied(index.ca_file, path / "home"))
    return environment


def _npmrc(index: IndexSettings) -> str:
    """Return npm's configuration with registry and credentials; values are JSON strings, so no value can add a line."""
    lines = {
        "ignore-scripts": "true", "audit": "false", "fund": "false", "update-notifier": "false", "progress": "false",
        "omit-lockfile-registry-resolved": "true", "logs-max": "0", "loglevel": "silent", "color": "false",
        "allow-git": "none", "allow-remote": "none", "allow-file": "none", "allow-directory": "none",
        "fetch-retries": _RETRIES, "fetch-retry-mintimeout": "500", "fetch-retry-maxtimeout": "4000",
    }  # fmt: skip
    if index.npm_registry:
        address, parts = _without_credentials(index.npm_registry)
        address = address.rstrip("/") + "/"
        lines["registry"] = json.dumps(address)
        scope = address.split(":", maxsplit=1)[1]
        if index.npm_token:
            lines[f"{scope}:_authToken"] = json.dumps(index.npm_token)
        elif parts.username:
            lines[f"{scope}:_auth"] = json.dumps(_basic(parts))
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def _basic(parts: SplitResult) -> str:
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return base64.b64encode(pair.encode()).decode()


def _without_credentials(url: str) -> tuple[str, SplitResult]:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=host)), parts


def _public(url: str | None) -> str | None:
    return _without_credentials(url)[0] if url else None


def _proxy(index: IndexSettings) -> dict[str, str]:
    if not index.proxy:
        return {}
    names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
    return dict.fromkeys(names, index.proxy) | {"NO_PROXY": index.no_proxy, "no_proxy": index.no_proxy}


def _trusted(ca_file: Path, directory: Path) -> Path:
    """Return a new file with the public and the operator's certificate authorities; uv accepts only one file."""
    bundle = _copied(ca_file, directory)
    bundle.write_bytes(Path(certifi.where()).read_bytes() + b"\n" + bundle.read_bytes())
    return bundle


def require_authorities(ca_file: Path, context: ssl.SSLContext | None = None) -> None:
    """Check that a file has certificates in PEM form, and make `context` trust them.

    Raises:
      Misconfigured: the file cannot be read, or has no certificate.
      MachineExhausted: too many files are open to read the file now.
    """
    named = "correct or unset EVALUATOR_HOST_CA_FILE or SSL_CERT_FILE, whichever names it"
    try:
        (context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).load_verify_locations(ca_file)
    except ssl.SSLError as error:
        raise Misconfigured(f"the CA file {ca_file} has no certificate in PEM form: {named}") from error
    except OSError as error:
        if (lacks := MachineExhausted.cause_of(error)) is not None:
            raise lacks from error
        raise Misconfigured(f"the CA file {ca_file} cannot be read ({error.strerror}): {named}") from error


def _copied(ca_file: Path, directory: Path) -> Path:
    """Return a copy of the CA file for uv and npm.

    uv and npm may run as another user, and Node ignores a file that it cannot read.
    """
    require_authorities(ca_file)
    return Path(shutil.copyfile(ca_file, directory / "authorities.pem"))
