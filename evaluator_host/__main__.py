"""Entry point of the command `evaluator-host`, and of `python -m evaluator_host`."""

import gc


def main() -> None:
    """Run the command line and exit: 0 scored, 1 ran but did not score, 2 the caller's mistake, 3 the host's.

    Garbage collection is off until the command is imported: modules are not garbage, and the search for it takes a
    fifth of the start.
    """
    gc.disable()
    from evaluator_host.cli.main import command_line  # noqa: PLC0415
    from evaluator_host.platform.terminal.command import run_command  # noqa: PLC0415 - see above

    run_command(command_line())


if __name__ == "__main__":
    main()
