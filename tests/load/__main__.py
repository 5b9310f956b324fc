"""`python -m tests.load --minutes 5`: runs the full load test, and prints a table of the outcome.

With `--mode template` sandboxes are forked from a template, with `--mode workers` the host has two processes, and
`--mode both` does both; with `--ordinary` the host runs as an ordinary user.
"""

import argparse
import sys

from evaluator_host.engine.system.tree import temporary_folder
from tests.conftest import BACKENDS
from tests.engines import engine_address
from tests.load.scenario import Outcome, run_load

TEMPLATE = {"EVALUATOR_HOST_SANDBOX_START": "template"}
WORKERS = {"EVALUATOR_HOST_WORKERS": "2"}
MODES = {"default": {}, "template": TEMPLATE, "workers": WORKERS, "both": TEMPLATE | WORKERS}


def main() -> int:
    """Run the test; return 1 if an answer was wrong or something was left behind."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--callers", type=int, default=1000)
    parser.add_argument("--backend", choices=BACKENDS, default="bubblewrap")
    parser.add_argument("--mode", choices=MODES, default="default")
    parser.add_argument("--ordinary", action="store_true", help="run the host as a user without rights")
    asked = parser.parse_args()
    environment = load_environment(asked.backend) | MODES[asked.mode]
    with temporary_folder(None, "evaluator-host-load-") as folder:
        found = run_load(
            folder, backend=asked.backend, callers=asked.callers, seconds=asked.minutes * 60,
            environment=environment, ordinary=asked.ordinary,
        )  # fmt: skip
    show(found)
    return 1 if found.faults else 0


def load_environment(backend: str) -> dict[str, str]:
    """Return the settings of the host.

    Idle sandboxes end soon, so that afterwards a sandbox that is still there is a leftover. The queue is short, so that
    most calls are refused at any time, and all others are answered during the run.
    """
    environment = {
        "EVALUATOR_HOST_IDLE_TTL_S": "3",
        "EVALUATOR_HOST_IDLE_SANDBOXES": "0",
        "EVALUATOR_HOST_QUEUE_LIMIT": "100",
    }
    return {**environment, "EVALUATOR_HOST_DOCKER_HOST": engine_address()} if backend == "docker" else environment


def show(found: Outcome) -> None:
    print(f"{'workspace':<10} {'answered':>8} {'refused':>8} {'p50 ms':>8} {'p95 ms':>8}")
    for name, tally in found.tallies.items():
        times = f"{tally.percentile(50):>8.0f} {tally.percentile(95):>8.0f}"
        print(f"{name:<10} {tally.answered:>8} {tally.refused:>8} {times}")
    answered = sum(tally.answered for tally in found.tallies.values())
    print(f"{answered / found.seconds:.0f} answers a second over {found.seconds:.0f} s")
    memory = found.watch.memory_mb
    print(f"host memory: {memory[0]:.0f} MB before, {max(memory):.0f} MB at most, {found.watch.grown_mb:+.1f} MB drift")
    print(f"descriptors: {found.descriptors_before} before, {found.descriptors_after} after")
    print(f"files left in the data directory: {sorted(found.left_in_data) or 'none'}")
    print(f"wrong answers: {len(found.faults)}")
    for fault in found.faults[:20]:
        print(f"  {fault}")


if __name__ == "__main__":
    sys.exit(main())
