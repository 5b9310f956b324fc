"""What a runner needs for itself inside a sandbox, on top of what its guest may use.

`SandboxSpec.processes` is a promise to the evaluator; the kernel counts the runner's own threads at the same limit
(cgroup `pids.max`, Docker's `PidsLimit`). Both backends add the same number, so that one evaluator hits
`process_limit` at the same place on either.
"""

from typing import Final

from evaluator_host.model import Language

PYTHON_PROCESSES: Final = 8
# 1 supervisor (process 1, reads and writes the channel) + 1 loaded process that forks the rows + 1 the row's own first
# process; the rest for a loaded process that is replaced while the old one dies, and for late reaping. Bare CPython has
# no threads of its own.

JAVASCRIPT_PROCESSES: Final = 32
# Node 24 starts 1 main thread + 4 V8 platform workers + 1 delayed-task scheduler + 1 signal inspector and, when first
# needed, 4 libuv pool threads: 11. A supervisor next to a row process doubles that; esbuild (a Go program: 8 to 10
# threads on two cores) comes on top while a script is bundled.


NOFILE: Final = 1024
# Descriptors a guest may hold: what Debian gives a login. A row that leaks them fails alone.


def process_limit(language: Language, processes: int) -> int:
    """Return the kernel's limit for a sandbox whose evaluator may have `processes` processes and threads."""
    own = PYTHON_PROCESSES if language is Language.PYTHON else JAVASCRIPT_PROCESSES
    return processes + own
