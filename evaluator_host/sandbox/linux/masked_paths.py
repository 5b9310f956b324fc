"""What of /proc and /sys no guest sees, on either backend: kernel files that tell of this machine, not of the sandbox.

What remains visible, and why, is written down in docs/sandbox.md; tests/attacks/test_view.py compares.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROC_FILES: Final = (
    "/proc/cmdline",  # of the kernel: passwords and addresses of whoever booted the machine
    "/proc/keys",  # other programs' keys of this user, by name
    "/proc/swaps",  # a path of the host
    "/proc/sys/kernel/core_pattern",  # another
    "/proc/sys/kernel/random/boot_id",  # the machine's name until it is booted again
)
PROC_FOLDERS: Final = ("/proc/fs",)  # volumes of the host by name

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
"""What Docker itself hides: a list of one's own replaces it."""

SYS: Final = "/sys"
"""Devices, their serial numbers, the engine's cgroups; no runtime needs it, and bubblewrap does not mount it."""


def docker_masked_paths() -> list[str]:
    """Return the paths that a container finds empty; those that its kernel lacks are left out by the engine."""
    return sorted((*PROC_FILES, *PROC_FOLDERS, *ENGINE_DEFAULTS, SYS))


def masked_paths_on(root: Path = Path("/")) -> tuple[Path, ...]:
    """Return the paths below /proc that this machine has and a bubblewrap sandbox finds empty."""
    return tuple(_existing(root))


def _existing(root: Path) -> Iterator[Path]:
    for name in (*PROC_FILES, *PROC_FOLDERS):
        if (root / name.lstrip("/")).exists():
            yield Path(name)
