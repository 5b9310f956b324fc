"""The `evaluator-host` command: its subcommands and the options before them."""

from typing import Annotated

import typer

from evaluator_host import __version__
from evaluator_host.cli import (
    audit,
    check,
    datasets,
    doctor,
    evaluators,
    images,
    jobs,
    keys,
    migrate,
    packages,
    run,
    secrets,
    selftest,
    serve,
)
from evaluator_host.cli.console import out, print_json
from evaluator_host.cli.edge import edge, guarded
from evaluator_host.cli.options import JsonOption

app = typer.Typer(
    name="evaluator-host",
    help="Runs pasted Python, JavaScript and TypeScript evaluators in a sandbox and returns one normalised score.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _before(
    *,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="EVALUATOR_HOST_DEBUG", help="Show tracebacks of the host's own faults.")
    ] = False,
) -> None:
    edge.debug = debug


@app.command()
def version(*, as_json: JsonOption = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        out.print(f"evaluator-host {__version__}")


app.command()(serve.serve)
app.command()(run.run)
app.command()(check.check)
app.command()(migrate.migrate)
app.command()(doctor.doctor)
app.command()(selftest.selftest)
app.command()(images.setup)
app.command()(audit.audit)
app.add_typer(images.app, name="images")
app.add_typer(keys.app, name="keys")
app.add_typer(packages.app, name="packages")
app.add_typer(evaluators.app, name="evaluators")
app.add_typer(datasets.app, name="datasets")
app.add_typer(jobs.app, name="jobs")
app.add_typer(secrets.app, name="secrets")


def main() -> None:
    """Run the command line and exit: 0 scored, 1 ran but did not score, 2 the caller's mistake, 3 ours."""
    guarded(app)


if __name__ == "__main__":
    main()
