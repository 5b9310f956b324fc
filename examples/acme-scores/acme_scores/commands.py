import typer

from evaluator_host.client.calls import Call
from evaluator_host.client.transport import TransportT, Verbs, verb
from evaluator_host.platform.terminal.remote_host import ClientOption

app = typer.Typer(name="acme-scores", no_args_is_help=True)


class StarVerbs(Verbs[TransportT]):
    """The methods for stars that `Client` and `AsyncClient` get."""

    @verb
    async def give(self, stars: int) -> None:
        """Give Acme this many stars."""
        await self._transport.send(Call("PUT", f"/acme/stars/{stars}", type(None)))

    @verb
    async def sum(self) -> int:
        """Return how many stars Acme has been given in total."""
        return (await self._transport.send(Call("GET", "/acme/stars", dict[str, int])))["sum"]


@app.command()
def scale() -> None:
    """Print how many stars you can give."""
    typer.echo("0 to 5 stars")


@app.command()
def give(stars: int, *, client: ClientOption) -> None:
    """Give Acme this many stars."""
    client.verbs(StarVerbs).give(stars)
