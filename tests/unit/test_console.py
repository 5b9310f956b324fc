"""The output of the command line arrives whole."""

import os
import signal
import subprocess
import sys
import time

import pytest

INTERRUPTED = """
import signal, sys
from evaluator_host.cli.console import out, print_json
from evaluator_host.cli.command import run_command

signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
text = "x" * 1_000_000
run_command((lambda: print_json(text)) if sys.argv[1] == "json" else (lambda: out.print(text)))
"""


@pytest.mark.parametrize(("how", "size"), [("json", 1_000_003), ("text", 1_000_001)])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_long_answer_into_a_slow_pipe_is_whole_whatever_signals_come(how: str, size: int, unbuffered: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, how]
    variables = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.read(1)
        time.sleep(0.1)  # it waits for room in the pipe, and is interrupted
        assert len(first + process.stdout.read()) == size
    assert process.returncode in (0, -signal.SIGALRM)  # the timer may outlive the interpreter's handlers
