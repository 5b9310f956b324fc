"""Paths of /proc and /sys that are hidden in every sandbox, because they describe the machine.

docs/sandbox.md lists what stays visible, and why; tests/attacks/test_view.py compares.
"""

from pathlib import Path
from typing import Final

PROC_FILES: Final = (
    "/proc/cmdline",  # the kernel's command line, which may hold passwords and addresses
    "/proc/keys",  # other programs' keys of this user, by name
    "/proc/swaps",  # paths of the host
    "/proc/sys/kernel/core_pattern",  # a path of the host
    "/proc/sys/kernel/random/boot_id",  # identifies the machine until its next boot
)
PROC_FOLDERS: Final = ("/proc/fs",)  # names of the host's volumes

ENGINE_DEFAULTS: Final = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
)
"""Docker's own list, which a list in the create request replaces."""

SYS: Final = "/sys"
"""Devices, serial numbers, the engine's cgroups. No runtime needs it, and the bubblewrap backend does not mount it."""


def docker_masked_paths() -> list[str]:
    """Return the paths that a container shows empty; the engine skips those that its kernel lacks."""
    return sorted((*PROC_FILES, *PROC_FOLDERS, *ENGINE_DEFAULTS, SYS))


def masked_paths_on(root: Path = Path("/")) -> tuple[Path, ...]:
    """Return the paths below /proc that exist on this machine and that a bubblewrap sandbox shows empty."""
    return tuple(Path(name) for name in (*PROC_FILES, *PROC_FOLDERS) if (root / name.lstrip("/")).exists())
