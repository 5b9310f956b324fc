import typer

from evaluator_host.client.calls import Call, encode
from evaluator_host.client.transport import TransportT, Verbs, verb
from evaluator_host.platform.terminal.console import print_found, table
from evaluator_host.platform.terminal.options import JsonOption
from evaluator_host.platform.terminal.remote_host import ClientOption

app = typer.Typer(name="notes", no_args_is_help=True)


class NoteVerbs(Verbs[TransportT]):
    @verb
    async def all(self) -> list[dict[str, str]]:
        """Return the notes by name."""
        return await self._transport.send(Call("GET", "/v1/notes", list[dict[str, str]]))

    @verb
    async def put(self, name: str, text: str) -> dict[str, str]:
        """Store a note."""
        call = Call("PUT", f"/v1/notes/{name}", dict[str, str], encode({"text": text}))
        return await self._transport.send(call)


@app.command(name="list")
def list_(*, client: ClientOption, as_json: JsonOption = False) -> None:
    """List notes by name."""
    found = client.verbs(NoteVerbs).all()
    header = ("NAME", "TEXT")
    print_found(found, lambda all_: table(header, [(one["name"], one["text"]) for one in all_]), as_json=as_json)


@app.command()
def put(name: str, text: str, *, client: ClientOption) -> None:
    """Store a note."""
    client.verbs(NoteVerbs).put(name, text)
