"""`setup` prepares the pinned tools; `images build` builds the Docker runtime image."""

from typing import Annotated

import typer

from evaluator_host.cli import options
from evaluator_host.cli.command import load_settings, run_async
from evaluator_host.cli.console import err, out, plain, print_json
from evaluator_host.environments import toolchain
from evaluator_host.wiring.backends import build_images

app = typer.Typer(name="images", help="The runtime image of the docker backend.", no_args_is_help=True)


@app.callback()
def _images() -> None:
    """Make `images` a group although it has one command."""


@app.command()
def build(
    *,
    base: Annotated[
        str | None, typer.Option(help="Image to build on.", show_default="Debian trixie: pulled, else bootstrapped")
    ] = None,
    data_dir: options.DataDirOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Build the runtime image of the docker backend; takes minutes the first time."""
    settings = load_settings(data_dir=data_dir)
    tag = run_async(lambda: build_images(settings, base=base, progress=lambda line: err.print(plain(line))))
    if as_json:
        print_json({"image": tag})
    else:
        out.print(plain(f"built {tag}"))


def setup(*, data_dir: options.DataDirOption = None, as_json: options.JsonOption = False) -> None:
    """Prepare the pinned tools for running evaluators. Does nothing the second time."""
    settings = load_settings(data_dir=data_dir)
    esbuild = run_async(lambda: toolchain.ensure_esbuild(settings.data_dir))
    restricted = toolchain.restricted_python_dir(settings.data_dir)
    tools = {"node": str(toolchain.node_path()), "esbuild": str(esbuild), "RestrictedPython": str(restricted)}
    if as_json:
        print_json(tools)
    else:
        for name, path in tools.items():
            out.print(plain(f"{name} {path}"))
