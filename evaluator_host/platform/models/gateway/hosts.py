"""The other hosts that evaluators may reach: how evaluators name these hosts, and which of them the operator allows."""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from evaluator_host.engine.config.host_lists import NAME
from evaluator_host.types.errors import InvalidRequest

_ENTRY: Final = re.compile(rf"(?P<host>\*|(?:\*\.)?{NAME}|\[[0-9a-f:.]+\])(?::(?P<port>[0-9]{{1,5}}))?", re.IGNORECASE)
_MOST: Final = 32  # maximum number of hosts granted to one evaluator
_TRIED: Final = 4  # maximum number of a host's addresses to try
_NOT_PUBLIC: Final = tuple(  # networks that are not public, although `ipaddress` counts them as global
    map(
        ipaddress.ip_network,
        (
            "168.63.129.16/32",  # services of Azure's platform, on each machine in Azure
            "192.0.0.0/24",  # IETF protocols, and a metadata service of Oracle's cloud
            "192.31.196.0/24",  # AS112, anycast
            "192.52.193.0/24",  # AMT relays, anycast
            "192.88.99.0/24",  # 6to4 relays, anycast
            "192.175.48.0/24",  # AS112, anycast
            "2001::/23",  # IETF protocols, Teredo among them
            "2002::/16",  # 6to4, which embeds IPv4 addresses
            "2620:4f:8000::/48",  # AS112, name servers for private addresses
            "3ffe::/16",  # 6bone, a former test network
            "3fff::/20",  # addresses for examples in documents
        ),
    )
)
_ISATAP: Final = 0x5EFE  # mark that precedes an embedded IPv4 address in an IPv6 address (RFC 5214)
_ANY_SCOPE: Final = 0xFDFF_FFFF
HTTPS: Final = 443


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of a host.

    The host is a name or an address (lower case, no brackets); `*.example.com` is any name that ends in `.example.com`.
    """

    host: str
    port: int

    @property
    def is_address(self) -> bool:
        """Return whether the host is written as an address."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True

    @property
    def authority(self) -> str:
        """Return the Host header of a plain HTTP request to this host."""
        return self._name if self.port == 80 else str(self)

    @property
    def _name(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        """Return `example.com:443`."""
        return f"{self._name}:{self.port}"

    def includes(self, other: "HostPort") -> bool:
        """Return whether a grant of this host and port includes `other`. Port 0 means every port."""
        below = self.host.startswith("*.") and other.host.removeprefix("*").endswith(self.host[1:])
        return (self.host in ("*", other.host) or below) and self.port in (0, other.port)


def host_port(text: str, *, port: int) -> HostPort | None:
    """Return `example.com:443`, `*.example.com` or `[::1]:80` as a host and port; None for other strings.

    `port` is for strings without a port.
    """
    found = _ENTRY.fullmatch(text.removesuffix("."))
    if found is None:
        return None
    number = int(found["port"]) if found["port"] else port
    return HostPort(found["host"].lower().strip("[]"), number) if number < 1 << 16 else None


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether an address is public. An address with another address in it (6to4, Teredo, ISATAP) is not."""
    if not address.is_global or address.is_multicast or any(address in network for network in _NOT_PUBLIC):
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return True
    # the only range of IPv6 unicast addresses in use; local addresses are outside it
    in_use = address in ipaddress.ip_network("2000::/3")
    return in_use and (int(address) >> 32) & _ANY_SCOPE != _ISATAP


def reachable(addresses: Iterable[str], private: Iterable[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> list[str]:
    """Return the first four addresses that callers may reach: public addresses, and any address in `private`."""

    def may_reach(text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:  # raised for an address with a zone; such addresses are link-local
            return False
        plain = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped else address
        return is_public(address) or any(plain in network for network in private)

    return [one for one in dict.fromkeys(addresses) if may_reach(one)][:_TRIED]


def granted_hosts(entries: Iterable[str], *, allowed: Iterable[str]) -> list[HostPort]:
    """Return the hosts that an evaluator may reach.

    Args:
      entries: The hosts in the evaluator's settings, such as `api.example.com:443`; the default port is 443.
      allowed: The hosts that its workspace may reach.

    Raises:
      InvalidRequest: an entry does not name a host, or the operator does not allow it.
    """
    refused = partial(InvalidRequest.of, "evaluator.network")
    ceilings = [host_port(one, port=0) for one in allowed]
    found = []
    for entry in entries:
        named = host_port(entry, port=HTTPS)
        if named is None or named.host == "*" or not named.port:
            raise refused(
                f"{entry[:200]!r} does not name a host", "write it as api.example.com:443 or *.example.com:443"
            )
        if not any(one is not None and one.includes(named) for one in ceilings):
            hint = f"the operator can allow it with EVALUATOR_HOST_NETWORK_HOSTS='[\"{named}\"]'"
            raise refused(f"evaluators may not reach {named}", hint)
        found.append(named)
    if len(found) > _MOST:
        raise refused(
            f"an evaluator may be granted at most {_MOST} hosts", "grant *.example.com:443 for names of one domain"
        )
    return found
