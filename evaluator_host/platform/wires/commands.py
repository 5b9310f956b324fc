"""`wires list` lists the wires. `wires check` tests whether platforms can use the responses of a running host."""

from typing import Annotated, Any, Final

import httpx
import typer

from evaluator_host.client import DEFAULT_URL
from evaluator_host.client.calls import default_url
from evaluator_host.engine.config.settings import Settings, WireOptions, revealed
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.platform.terminal.console import out, plain, print_json
from evaluator_host.platform.wires.table import require_known, wires
from evaluator_host.platform.wires.wire import Probe, Wire
from evaluator_host.types.errors import HostUnreachable
from evaluator_host.types.json_values import encode_json

_SHOWN: Final = 2000
_FAULT: Final = 3
app = typer.Typer(name="wires", no_args_is_help=True)


@app.command(name="list")
def list_(*, as_json: options.JsonOption = False) -> None:
    """List the wires, and whether the settings of this machine turn them on."""
    settings = load_settings()
    known = [wire.load() for wire in wires().values()]
    found = [{"name": one.name, "on": one.name in settings.wires, "path": one.path, "stands_in_for": one.title,
              "clock_s": one.clock_s, "row_s": one.limit_s(_options(settings, one.name)),
              "body_bytes": one.body_bytes, "set_on_the_platform": one.variable} for one in known]  # fmt: skip
    if as_json:
        print_json(found)
        return
    for one in found:
        out.print(plain(f"{'on ' if one['on'] else 'off'}  {one['name']:<9}  {one['stands_in_for']}"))
        out.print(
            plain(f"     {one['path']}; the platform waits {one['clock_s']:g} s, a row may take {one['row_s']:g} s")
        )


@app.command()
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the wire; `wires list` shows them.")],
    *,
    url: Annotated[
        str,
        typer.Option(
            default_factory=default_url,
            show_default=DEFAULT_URL,
            help="Address of the host, or of the wire on it. The key is taken from EVALUATOR_HOST_KEY.",
        ),
    ],
    as_json: options.JsonOption = False,
) -> None:
    """Send a wire the requests of its platform, and print the answers.

    The exit code is 3 if an answer is not what the platform needs.
    """
    require_known((name,), "NAME")
    settings, wire = load_settings(), wires()[name].load()
    base = url.rstrip("/")
    base = base if wire.path in base else base + wire.path
    secret = _options(settings, name).secret
    key = revealed(secret) or revealed(settings.key)
    tried = [_try(wire, base, key, probe) for probe in wire.probes(base.partition(wire.path)[2])]
    if as_json:
        print_json(tried)
    else:
        out.print(plain(f"set on the platform: {wire.variable.format(url=base)}"))
        for one in tried:
            out.print(
                plain(f"{'ok' if one['ok'] else 'NO'}  {one['title']}: {one['method']} {one['url']} -> {one['status']}")
            )
            out.print(plain(f"    {one['body']}"))
    raise typer.Exit(0 if all(one["ok"] for one in tried) else _FAULT)


def _options(settings: Settings, name: str) -> WireOptions:
    return settings.wire_options.get(name, WireOptions())


def _try(wire: Wire, base: str, key: str | None, probe: Probe) -> dict[str, Any]:
    """Send one request. Return its title, URL, status and body, and whether the platform can use the response.

    Raises:
      HostUnreachable: nothing answers at the URL.
    """
    headers = {**({} if key is None else {"Authorization": f"Bearer {key}"}), **probe.headers}
    address = base + probe.path
    content = None if probe.body is None else encode_json(probe.body)
    headers["Content-Type"] = "application/json"
    try:
        got = httpx.request(
            probe.method, address, headers=headers, timeout=wire.clock_s, content=content, trust_env=False
        )
    except httpx.TimeoutException:
        return _tried(probe, address, ok=False, status=None, body=f"no answer within {wire.clock_s:g} s")
    except httpx.HTTPError as error:
        raise HostUnreachable(f"nothing answers at {address}: {error}; start it with `evaluator-host serve`") from error
    try:
        ok = probe.expects(got)
    except (ValueError, KeyError, TypeError):
        ok = False
    return _tried(probe, address, ok=ok, status=got.status_code, body=got.text[:_SHOWN])


def _tried(probe: Probe, address: str, *, ok: bool, status: int | None, body: str) -> dict[str, Any]:
    return {"title": probe.title, "method": probe.method, "url": address, "ok": ok, "status": status, "body": body}
