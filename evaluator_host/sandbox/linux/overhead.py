"""Processes and memory that a runner (or gVisor) needs inside a sandbox, on top of the limits of its guest.

`SandboxSpec.processes` is a promise to the evaluator, but the kernel counts the runner's own threads too (cgroup
`pids.max`, Docker's `PidsLimit`). Both backends add the same number, so that an evaluator hits `process_limit` at the
same place on either.
"""

from typing import Final

from evaluator_host.model.evaluator import Language

PYTHON_PROCESSES: Final = 8
# 1 supervisor (process 1, reads and writes the channel) + 1 loaded process that forks the rows + 1 the row's own first
# process; the rest for a loaded process that is replaced while the old one dies, and for late reaping. Bare CPython has
# no threads of its own.

JAVASCRIPT_PROCESSES: Final = 32
# Node 24 starts 1 main thread + 4 V8 platform workers + 1 delayed-task scheduler + 1 signal inspector and, when first
# needed, 4 libuv pool threads: 11. A supervisor next to a row process doubles that; esbuild (a Go program: 8 to 10
# threads on two cores) comes on top while a script is bundled.

GVISOR_PROCESSES: Final = 128
# gVisor's own kernel runs inside the container's cgroup and is a Go program: with room for 64 processes in all, three
# of four sandboxes died while they started, with room for 128 none (measured with runsc 2022-12-19).

GVISOR_MEMORY_MB: Final = 64
# That kernel takes 30 to 50 MB for itself.

NOFILE: Final = 1024
# Descriptors a guest may hold: what Debian gives a login. A row that leaks them fails alone.


def is_gvisor(runtime: str | None) -> bool:
    """Whether an OCI runtime of that name is gVisor; operators name variants `runsc-kvm`, `runsc-rootless`."""
    return runtime is not None and runtime.startswith("runsc")


def process_limit(language: Language, processes: int) -> int:
    """Return the limit to set in the kernel for an evaluator that may have `processes` processes and threads."""
    own = PYTHON_PROCESSES if language is Language.PYTHON else JAVASCRIPT_PROCESSES
    return processes + own
