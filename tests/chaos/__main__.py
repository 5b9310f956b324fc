"""`python -m tests.chaos --minutes 10 --seed 1`: runs a host under random faults; exits with 1 if an answer is wrong.

The seed determines the faults and the callers' requests: the same seed gives the same plan. `--plan` only prints the
plan, `--report` writes the outcome of a run to a JSON file, and `--replay` repeats the run in such a file.
"""

import argparse
import json
import signal
import sys
from pathlib import Path

from tests.chaos.plan import make_plan
from tests.chaos.run import Run, run_chaos
from tests.conftest import BACKENDS
from tests.databases import ENGINES


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=ENGINES, default="sqlite")
    parser.add_argument("--backend", choices=BACKENDS, default="bubblewrap")
    parser.add_argument("--ordinary", action="store_true", help="run the host as a user without rights")
    parser.add_argument("--workers", type=int, default=1, help="number of the host's processes that answer calls")
    parser.add_argument(
        "--beside", action="store_true", help="run another host on the same data, with a clock that is behind"
    )
    parser.add_argument("--burners", type=int, default=0, help="number of endless loops beside the host")
    parser.add_argument("--plan", action="store_true", help="only print the plan")
    parser.add_argument("--report", type=Path, help="write a report to this file")
    parser.add_argument("--replay", type=Path, help="repeat the run in this report")
    parser.add_argument("--keep", type=Path, help="folder for the logs; without it, they are removed")
    asked = parser.parse_args()
    names = ("minutes", "seed", "database", "backend", "ordinary", "burners", "workers", "beside")
    chosen = (
        json.loads(asked.replay.read_text())["run"] if asked.replay else {name: getattr(asked, name) for name in names}
    )
    run = Run(**chosen)
    for fault in make_plan(run.seed, run.options):
        print(fault)
    if asked.plan:
        return 0
    for number in (signal.SIGTERM, signal.SIGINT):  # faults are undone even if the run is stopped
        signal.signal(number, signal.default_int_handler)
    report = run_chaos(run, keep=asked.keep)
    if asked.report:
        asked.report.write_text(json.dumps(report, indent=2))
    print(json.dumps({name: value for name, value in report.items() if name != "plan"}, indent=2))
    return 1 if report["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
