"""The signals that stop a program."""

import signal


def stopping_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that stop this program: SIGINT, SIGTERM and, unless `nohup` started it, SIGHUP."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *(() if ignored else (signal.SIGHUP,)))
