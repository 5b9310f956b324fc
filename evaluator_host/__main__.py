"""Where the command `evaluator-host` begins; `python -m evaluator_host` is the same."""

import gc


def main() -> None:
    """Run the command line and exit: 0 scored, 1 ran but did not score, 2 the caller's mistake, 3 ours.

    While it is imported, no garbage is looked for: modules are none, and the search takes a fifth of a start.
    """
    gc.disable()
    from evaluator_host.cli.command import run_command  # noqa: PLC0415 - see above
    from evaluator_host.cli.main import requested_commands  # noqa: PLC0415

    commands = requested_commands()
    gc.freeze()
    gc.enable()
    run_command(commands)


if __name__ == "__main__":
    main()
