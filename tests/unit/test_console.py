"""The command line's output arrives completely, and contains no control codes for a terminal."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from evaluator_host.platform.terminal.console import plain, print_json, print_json_lines

INTERRUPTED = """
import signal, sys
from evaluator_host.platform.terminal.console import out, print_json
from evaluator_host.platform.terminal.command import run_command

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
        time.sleep(0.1)  # the program waits for space in the pipe, and is interrupted
        assert len(first + process.stdout.read()) == size
    # if the timer fires after the interpreter has removed its handlers, the signal ends the process
    assert process.returncode in (0, -signal.SIGALRM)


OBEYED = "\x1b\x07\x7f\x9b\u2028\u202e\u2066"
"""Characters that move the cursor, set colours, or change the direction of text."""


def test_control_codes_are_escaped_in_texts_and_in_json(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    row = {f"a{OBEYED}": f"{OBEYED}é\n"}
    print_json(row)
    indented = capfdbinary.readouterr().out.decode()
    print_json_lines([row, row], prefix="7\t")
    lines = capfdbinary.readouterr().out.decode()
    for printed in (indented, lines, plain(OBEYED)):
        assert not set(OBEYED) & set(printed)
    assert json.loads(indented) == row
    assert [json.loads(line.removeprefix("7\t")) for line in lines.splitlines()] == [row, row]
