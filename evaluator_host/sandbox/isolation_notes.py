"""Findings of `doctor` about the strength of each kind of isolation; SECURITY.md says more."""

from typing import Final

from evaluator_host.sandbox.base import Finding
from evaluator_host.sandbox.linux.rlimits import is_gvisor

_RULES: Final = "stops reading, writing, connecting, signalling and using more than the limits"
_SHARED: Final = "does not stop an exploit of the host's kernel, which the guests share"
_TENANTS: Final = "for tenants who do not trust each other: the docker backend with EVALUATOR_HOST_DOCKER_RUNTIME=runsc"
_GVISOR: Final = (
    f"gVisor {_RULES}, and answers the guests' system calls itself: an exploit of the host's kernel must get through "
    "gVisor's first. Recommended for tenants who do not trust each other"
)
_VIRTUAL: Final = (
    f"a virtual machine with a kernel of its own {_RULES}; does not stop an exploit of the hypervisor. Recommended for "
    "tenants who do not trust each other"
)


def bubblewrap_isolation() -> Finding:
    """Return what bubblewrap's namespaces stop, and what they do not."""
    return _shared_kernel()


def docker_isolation(runtime: str) -> Finding:
    """Return what containers of an OCI runtime stop, and what they do not."""
    if is_gvisor(runtime):
        return Finding("boundary", ok=True, detail=_GVISOR)
    if runtime.startswith("kata"):
        return Finding("boundary", ok=True, detail=_VIRTUAL)
    return _shared_kernel()


def _shared_kernel() -> Finding:
    return Finding("boundary", ok=True, detail=f"{_RULES}; {_SHARED}. Better {_TENANTS}")
