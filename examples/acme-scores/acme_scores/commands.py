import typer

from evaluator_host.client.calls import Call
from evaluator_host.client.transport import TransportT, Verbs, verb
from evaluator_host.platform.terminal.remote_host import ClientOption

app = typer.Typer(name="acme-scores", no_args_is_help=True)


class StarVerbs(Verbs[TransportT]):
    """The methods for stars that both clients get."""

    @verb
    async def give(self, stars: int) -> None:
        """Give stars."""
        await self._transport.send(Call("PUT", f"/acme/stars/{stars}", type(None)))

    @verb
    async def sum(self) -> int:
        """Return the sum of all given stars."""
        return (await self._transport.send(Call("GET", "/acme/stars", dict[str, int])))["sum"]


@app.command()
def scale() -> None:
    """Print the scale of stars."""
    typer.echo("0 to 5 stars")


@app.command()
def give(stars: int, *, client: ClientOption) -> None:
    """Give stars."""
    client.verbs(StarVerbs).give(stars)
