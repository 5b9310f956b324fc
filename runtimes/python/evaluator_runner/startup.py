"""Starts the runner: moves the channel to private descriptors, gives up privileges, sends hello."""

from __future__ import annotations

import os
import sys

from evaluator_runner import kernel
from evaluator_runner.options import Options

PROTOCOL_VERSION = 1
CHANNEL_IN = 10
CHANNEL_OUT = 11
OPERATOR_ERR = 12


def run(arguments: list[str]) -> None:
    """Send hello, then serve until the channel ends."""
    forked = arguments[:1] == ["--template"]
    if forked:
        from evaluator_runner import template

        # the template never returns from this call; only the process of a new sandbox does
        template.run(int(arguments[1]))
        arguments = sys.argv[1:]
    _move_channel()
    options = Options(arguments)
    if not kernel.adopt_orphans():
        print(
            "runner: the kernel does not let the runner adopt orphaned processes, so a process may outlive its row",
            file=sys.stderr,
        )
    try:
        if options.drop_to is not None:
            kernel.drop_to(*options.drop_to)
    except kernel.Refused as refused:
        raise SystemExit(f"runner: {refused}") from refused
    if forked:
        kernel.die_with_parent()  # set this after the change of user, which would reset it
    kernel.set_inspectable(inspectable=False)
    _say_hello()

    from evaluator_runner import handles, supervisor  # import these modules only now, while the host handles `hello`

    try:
        ours = supervisor.Supervisor(CHANNEL_IN, CHANNEL_OUT, options=options)
    except OSError as error:
        print(f"runner: {error}", file=sys.stderr)
        raise SystemExit(handles.refused(error, "the runner could not start").exit_code) from error
    ours.run()


def _move_channel() -> None:
    """Move the channel off descriptors 0, 1 and 2, so that no output of user code can reach it."""
    os.closerange(3, 1024)  # the backend may have left other descriptors open
    os.dup2(0, CHANNEL_IN, inheritable=False)
    os.dup2(1, CHANNEL_OUT, inheritable=False)
    os.dup2(2, OPERATOR_ERR, inheritable=False)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    sys.stderr = open(OPERATOR_ERR, "w", encoding="utf-8", errors="replace", closefd=False, buffering=1)  # noqa: SIM115


def _say_hello() -> None:
    runtime = "python " + ".".join([str(part) for part in sys.version_info[:3]])
    header = f'{{"type":"hello","protocol":{PROTOCOL_VERSION},"language":"python","runtime":"{runtime}"}}'.encode()
    os.write(CHANNEL_OUT, len(header).to_bytes(4, "big") + bytes(4) + header)
