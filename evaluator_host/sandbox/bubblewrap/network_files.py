"""What a sandbox with network has of this machine: how names are resolved, and whose certificates are trusted."""

from pathlib import Path
from typing import Final

from evaluator_host.config.settings import system_ca_file

_CERTIFICATES: Final = "ssl/certs/ca-certificates.crt"
_BUNDLES: Final = (
    _CERTIFICATES,  # Debian, Alpine, Arch
    "pki/tls/certs/ca-bundle.crt",  # Fedora
    "ssl/ca-bundle.pem",  # SUSE
    "ssl/cert.pem",
)


def network_files(etc: Path = Path("/etc")) -> dict[str, bytes]:
    """Return contents of files under a sandbox's /etc, by name.

    The name service is not the machine's own: its modules talk to services that no sandbox reaches.
    """
    bundles = (system_ca_file(), *(etc / name for name in _BUNDLES))
    bundle = next((file for file in bundles if file is not None and file.is_file()), None)
    return {
        "nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
        "hosts": b"127.0.0.1 localhost sandbox\n::1 localhost\n" + _read(etc / "hosts"),
        "resolv.conf": _read(etc / "resolv.conf"),
        _CERTIFICATES: b"" if bundle is None else _read(bundle),
    }


def _read(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""
