"""`mcp`: serve tools for coding agents (Model Context Protocol) on standard input and output."""

from collections.abc import Awaitable, Callable

from evaluator_host.engine.system.extras import extra
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import load_settings, run_async


def mcp(
    *,
    url: options.UrlOption = None,
    sandbox: options.SandboxOption = None,
    data_dir: options.DataDirOption = None,
) -> None:
    """Serve tools for coding agents (Model Context Protocol) on standard input and output, until the input ends."""
    settings = load_settings(sandbox=sandbox, data_dir=data_dir)
    with extra("mcp", "`evaluator-host mcp`"):
        from evaluator_host.integrations.mcp_server import make_server  # noqa: PLC0415 - optional dependency

    run_async(lambda: _serve(make_server(settings, url).run_stdio_async))


async def _serve(run: Callable[[], Awaitable[None]]) -> None:
    """Run the server. If tasks fail, raise the first error, without the exception groups that the SDK adds."""
    try:
        await run()
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from group
