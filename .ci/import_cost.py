"""Measures the cost of importing light modules: the host's small replacements for other platforms' packages.

The cost is the processor time, and how many modules are loaded besides those that the interpreter always loads. Each
import runs in fresh interpreters, isolated as in a sandbox; the fastest of several runs counts. The exit code is 1 if
an import costs more than 30 ms, which is the most that a dialect may add to a cold call. Light modules that need locked
packages (pydantic) are listed but not measured.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from evaluator_host.engine.config.settings import RUNTIMES_DIR
from evaluator_host.engine.contracts.table import all_dialects

MOST_MS: Final = 30.0
RUNS: Final = 9
PROGRAM: Final = """
import sys, time
sys.path.insert(0, {folder!r})
known, before = set(sys.modules), time.process_time()
__import__({module!r})
print((time.process_time() - before) * 1000, len(set(sys.modules) - known))
"""


def cost(folder: Path, module: str) -> tuple[float, int]:
    """Return how many milliseconds of processor time an import takes, and how many modules it loads."""
    program = PROGRAM.format(folder=str(folder), module=module)
    command = [sys.executable, "-I", "-S", "-c", program]
    found = []
    for _ in range(RUNS):
        ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - it runs the program above
        ms, count = ran.stdout.split()
        found.append((float(ms), int(count)))
    return min(found)


def main() -> int:
    """Measure the imports of all light modules, and return the exit code."""
    worst = 0.0
    for dialect in all_dialects():
        if dialect.sdk is None:
            continue
        if dialect.sdk.needed:
            print(f"{dialect.contract:<14} needs {', '.join(sorted(dialect.sdk.needed))}")
            continue
        stand_in = dialect.sdk.stand_in
        ms, count = cost(RUNTIMES_DIR / "python" / stand_in.folder, stand_in.preimport)
        worst = max(worst, ms)
        print(f"{dialect.contract:<14} {ms:5.1f} ms, {count} modules")
    return int(worst > MOST_MS)


if __name__ == "__main__":
    sys.exit(main())
