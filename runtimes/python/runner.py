"""Starts the Python runner: `python3 -I -S -B runner.py [options]`, see `runtimes/PROTOCOL.md`."""

import os
import sys


def main() -> None:
    """Add this file's folder to the import path (`-I` leaves it out) and run the package."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # os.path, because pathlib costs 10 ms
    from evaluator_runner import startup

    del sys.path[0]
    startup.run(sys.argv[1:])


if __name__ == "__main__":
    main()
