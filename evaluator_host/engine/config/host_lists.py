"""The form of entries in the operator's lists of hosts. An entry that cannot match anything is refused at the start."""

import ipaddress
import re
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator

NAME: Final = r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_ADDRESS: Final = r"[0-9a-f:.]*:[0-9a-f:.]*"  # an IPv6 address
_PORT: Final = r"(?::[0-9]{1,5})?"
_WORKSPACE: Final = r"(?:[a-z0-9][a-z0-9._-]{0,62}/)?"


def _entry(form: str, advice: str) -> AfterValidator:
    pattern = re.compile(form, re.IGNORECASE)

    def require(entry: str) -> str:
        if pattern.fullmatch(entry) is None:
            raise ValueError(f"{entry[:200]!r} is not allowed here; {advice}")
        return entry

    return AfterValidator(require)


def _network(entry: str) -> str:
    try:
        ipaddress.ip_network(entry)
    except ValueError as error:
        raise ValueError(f"{error}; write a network such as 10.1.0.0/16") from error
    return entry


_HOST: Final = rf"{NAME}{_PORT}|\[{_ADDRESS}\]{_PORT}|{_ADDRESS}"
_EACH: Final = "write each host as api.example.com or api.example.com:443"

OwnName: TypeAlias = Annotated[
    str, _entry(rf"{NAME}|{_ADDRESS}", "write each name or address as evals.example.com, without a port")
]
"""A name of this host, as in a Host header without its port."""

ListedHost: TypeAlias = Annotated[str, _entry(_HOST, _EACH)]
"""A host, with or without a port."""

ListedHostOrAll: TypeAlias = Annotated[str, _entry(rf"{_HOST}|\*", f"{_EACH}, or * for all hosts")]
"""A host, or `*`; the word `public`, which alerts know, has the form of a name."""

GrantedHost: TypeAlias = Annotated[
    str,
    _entry(
        rf"{_WORKSPACE}(?:\*|(?:\*\.)?{NAME}|\[{_ADDRESS}\]){_PORT}",
        "write each host as api.example.com:443, *.example.com or WORKSPACE/api.example.com",
    ),
]
"""A host that evaluators may be granted, for all workspaces or for one."""

Network: TypeAlias = Annotated[str, AfterValidator(_network)]
"""A network such as `10.1.0.0/16`."""
