"""`doctor` findings that say how strong each kind of isolation is; SECURITY.md has more details."""

from typing import Final

from evaluator_host.engine.sandbox.base import Finding
from evaluator_host.engine.sandbox.linux.rlimits import is_gvisor

_RULES: Final = (
    "keeps sandboxes from reading, changing, contacting or signalling anything outside, and from exceeding their limits"
)
_SHARED: Final = "does not stop an exploit of the host's kernel, which the sandboxes share"
_TENANTS: Final = "for tenants who do not trust each other: the docker backend with EVALUATOR_HOST_DOCKER_RUNTIME=runsc"
_GVISOR: Final = (
    f"gVisor {_RULES}, and answers the sandboxes' system calls itself: an exploit of the host's kernel must get "
    "through gVisor's first. Recommended for tenants who do not trust each other"
)
_VIRTUAL: Final = (
    f"a virtual machine with a kernel of its own {_RULES}; does not stop an exploit of the hypervisor. Recommended for "
    "tenants who do not trust each other"
)


def isolation_finding(runtime: str = "") -> Finding:
    """Return the finding that says what bubblewrap, or an OCI runtime with this name, does not isolate."""
    detail = f"{_RULES}; {_SHARED}. Better {_TENANTS}"
    if is_gvisor(runtime):
        detail = _GVISOR
    elif runtime.startswith("kata"):
        detail = _VIRTUAL
    return Finding("boundary", ok=True, detail=detail)
