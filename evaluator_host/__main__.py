"""Entry point of the command `evaluator-host`, and of `python -m evaluator_host`."""

import gc


def main() -> None:
    """Run the command line. Exit with 0 (scored), 1 (not scored), 2 (the caller's mistake) or 3 (the host's fault).

    The garbage collector is off while the command is imported: a collection would free nothing, and would take a fifth
    of the start-up time.
    """
    gc.disable()
    from evaluator_host.cli.main import command_line  # noqa: PLC0415
    from evaluator_host.platform.terminal.command import run_command  # noqa: PLC0415 - see above

    run_command(command_line())


if __name__ == "__main__":
    main()
