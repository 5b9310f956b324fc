"""Paths of /proc and /sys that are hidden in every sandbox, because they describe the machine.

docs/sandbox.md lists what stays visible, and why; tests/attacks/test_view.py checks that list.
"""

from pathlib import Path
from typing import Final

PROC_FILES: Final = (
    "/proc/cmdline",  # the kernel's command line, which may hold passwords and addresses
    "/proc/keys",  # describes the keys in the kernel's keyrings, also those of this user's other programs
    "/proc/swaps",  # contains paths of the host
    "/proc/sys/kernel/core_pattern",  # contains a path of the host
    "/proc/sys/kernel/random/boot_id",  # would identify the machine until its next boot
)
PROC_FOLDERS: Final = ("/proc/fs",)  # contains names of the host's volumes

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
"""The paths that Docker masks by default, repeated here because a list in the create request replaces the default."""

SYS: Final = "/sys"
"""The folder shows devices, serial numbers and the engine's cgroups. No runtime needs it, and bubblewrap does not mount
it.
"""


def docker_masked_paths() -> list[str]:
    """Return the paths that look empty in a container; the engine skips paths that do not exist."""
    return sorted((*PROC_FILES, *PROC_FOLDERS, *ENGINE_DEFAULTS, SYS))


def masked_paths_on(root: Path = Path("/")) -> tuple[Path, ...]:
    """Return the paths below /proc that exist on this machine and that look empty in a bubblewrap sandbox."""
    return tuple(Path(name) for name in (*PROC_FILES, *PROC_FOLDERS) if (root / name.lstrip("/")).exists())
