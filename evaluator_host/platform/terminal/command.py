"""Runs commands: loads settings, runs the event loop, and turns errors into messages and exit codes.

A user sees a traceback only with `--debug` or EVALUATOR_HOST_DEBUG.
"""

import asyncio
import errno
import itertools
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from evaluator_host.engine.system.signals import stopping_signals
from evaluator_host.platform.terminal.console import buffer_streams, err, plain
from evaluator_host.platform.terminal.words import in_options
from evaluator_host.types.errors import HostError, Misconfigured, refusal_of

if TYPE_CHECKING:
    from evaluator_host.engine.config.settings import Settings

T = TypeVar("T")

_INTERNAL: Final = 3
_ON: Final = ("1", "true", "t", "yes", "y", "on")
_INVALID: Final = "a setting is invalid; docs/settings.md lists all settings"
_NO_THREAD: Final = "can't start new thread"


@dataclass(slots=True)
class CliState:
    """Command-line options given before the subcommand; `main` sets them."""

    debug: bool = False


cli_state: Final = CliState()


def load_settings(**overrides: Any) -> "Settings":
    """Return the settings from environment variables. An override that is not None replaces the setting of that name.

    Raises:
      Misconfigured: values are invalid; `problems` names the variable or option of each invalid value.
    """
    import pydantic  # noqa: PLC0415 - `--help` needs no settings
    import pydantic_settings  # noqa: PLC0415 - as above

    from evaluator_host.engine.config.settings import Settings  # noqa: PLC0415 - as above
    from evaluator_host.platform.terminal.setting_problems import not_json, setting_problem  # noqa: PLC0415 - as above

    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)
    except pydantic_settings.SettingsError as error:  # raised for a list or object that is not JSON
        raise Misconfigured(_INVALID, problems=(not_json(error),)) from error
    except pydantic.ValidationError as error:
        problems = tuple(setting_problem(fault, given) for fault in error.errors())
        raise Misconfigured(_INVALID, problems=problems) from error


def run_async(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine until it ends, and return its result.

    A signal such as Ctrl-C cancels the coroutine, which then ends all sandboxes.

    Raises:
      SystemExit: a signal ended the coroutine; the code is 128 plus the signal.
    """
    import uvloop  # noqa: PLC0415 - `--help` and calls to a host need no event loop

    caught: list[int] = []

    async def main() -> T:
        task = asyncio.ensure_future(work())
        loop = asyncio.get_running_loop()

        def stop(number: int) -> None:
            caught.append(number)
            task.cancel()

        for number in stopping_signals():
            loop.add_signal_handler(number, stop, number)
        return await task

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main())
    except asyncio.CancelledError:
        if not caught:
            raise
        raise SystemExit(128 + caught[0]) from None


def run_command(command: Callable[[], None]) -> None:
    """Run a command line. If there is an error, print it to standard error and exit with its code."""
    buffer_streams()
    cli_state.debug = _wants_debug(sys.argv[1:])
    try:
        command()
    except HostError as error:
        if cli_state.debug:
            raise
        print_error(error)
        raise SystemExit(error.exit_code) from None
    except BrokenPipeError:  # for example in `evaluator-host … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(128 + signal.SIGPIPE) from None
    except Exception as error:
        if cli_state.debug:
            raise
        if _NO_THREAD in str(error):  # Python raises a RuntimeError with this message when it cannot start a thread
            error = OSError(errno.EAGAIN, _NO_THREAD)
        if isinstance(error, OSError):
            err.print(plain(f"error: this machine refused a request of the program: {refusal_of(error)}"))
            err.print("  `evaluator-host doctor` checks this machine; --debug shows the traceback")
        else:
            err.print(plain(f"error: {type(error).__name__}: {error}"))
            err.print("  this is a bug in Evaluator Host; run again with --debug for the traceback")
        raise SystemExit(_INTERNAL) from None


def _wants_debug(arguments: Sequence[str]) -> bool:
    """Return whether the user wants tracebacks.

    This function runs before the arguments are parsed, because parsing may fail.
    """
    before = itertools.takewhile(lambda one: one.startswith("-"), arguments)
    return "--debug" in before or os.environ.get("EVALUATOR_HOST_DEBUG", "").strip().lower() in _ON


def print_error(error: HostError) -> None:
    """Print an error to standard error, then the problems and hints that its message does not contain."""
    err.print(plain(f"error: {in_options(error.detail)}"))
    shown: set[str] = set()
    for problem in error.problems:
        hint = problem.hint if problem.hint and problem.hint not in error.detail and problem.hint not in shown else None
        shown.add(problem.hint or "")
        if problem.message not in error.detail and (hint or not problem.hint):
            err.print(plain(f"  {in_options(problem.field)}: {in_options(problem.message)}"))
        if hint:
            err.print(plain(f"    {in_options(hint) if ' ' in hint else f'did you mean {hint}?'}"))
