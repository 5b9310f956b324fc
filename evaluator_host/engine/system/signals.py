"""The signals that stop a program."""

import signal


def stopping_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that stop this program; under `nohup`, SIGHUP (the terminal was closed) is not one of them."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *(() if ignored else (signal.SIGHUP,)))
