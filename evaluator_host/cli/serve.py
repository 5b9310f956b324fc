"""`serve`: runs the host as an HTTP server.

The host listens on an address that other machines can reach only if a key exists.
"""

import atexit
import errno
import faulthandler
import gc
import ipaddress
import logging
import resource
import socket
from typing import Annotated, Final

import typer

from evaluator_host.engine.system.forker import Forker
from evaluator_host.platform.terminal import options
from evaluator_host.platform.terminal.command import cli_state, load_settings, run_async
from evaluator_host.platform.terminal.console import out
from evaluator_host.types.errors import Misconfigured

_log = logging.getLogger(__name__)
_BACKLOG: Final = 2048
_FEWEST_DESCRIPTORS: Final = 64  # about as many file descriptors as an idle host with one sandbox has open
# number of new objects after which garbage is collected; with Python's default of 700, decoding a body with a million
# values would take twice as long
_COLLECTED_AFTER: Final = 10_000
# seconds after the grace period to answer running calls, store results, and end sandboxes
_STOP_S: Final = 4.8


def serve(
    *,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port to listen on; 0 chooses a free port.", show_default="PORT, else 8710"),
    ] = None,
    data_dir: options.DataDirOption = None,
    sandbox: options.SandboxOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Number of processes that answer calls.", show_default="1; more on a machine with over four cores"
        ),
    ] = None,
) -> None:
    """Serve the API and the pages until SIGINT, SIGTERM or SIGHUP. Options override EVALUATOR_HOST_* variables."""
    require_descriptors()
    settings = load_settings(host=host, port=port, data_dir=data_dir, sandbox=sandbox, workers=workers)
    gc.disable()  # garbage collection during the imports would take a tenth of the start-up time
    from evaluator_host.engine.config.settings import unknown_variables  # noqa: PLC0415
    from evaluator_host.platform.http.error_log import log_to_stderr  # noqa: PLC0415
    from evaluator_host.server.server import require_key, serve_http  # noqa: PLC0415 - FastAPI, which `run` never needs
    from evaluator_host.server.workers import open_workers  # noqa: PLC0415

    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER)
    gc.enable()
    forker = Forker()  # created before any thread starts, because a process with threads must not fork
    log_to_stderr(debug=cli_state.debug)
    for problem in unknown_variables():
        _log.warning("%s", problem)
    if not _is_loopback(settings.host):
        run_async(lambda: require_key(settings))
    faulthandler.enable()  # log a traceback if native code crashes
    atexit.register(_only_free_memory)  # registered first, so that it is called last

    def end_in_time() -> None:
        """End the process after its grace period, even if a thread still computes or a system call is still waiting."""
        faulthandler.dump_traceback_later(settings.stop_grace_s + _STOP_S, exit=True)

    with (
        listen(settings.host, settings.port) as listener,
        open_workers(settings, listener, forker=forker, debug=cli_state.debug) as part,
    ):
        run_async(lambda: serve_http(settings, listener, greet=out.print, on_stop=end_in_time, part=part))


def _only_free_memory() -> None:
    """Cancel the time limit while the interpreter ends: all data is stored, and only memory remains to be freed."""
    faulthandler.cancel_dump_traceback_later()
    gc.freeze()


def require_descriptors() -> str:
    """Check the limit on open files, which include connections. Return the limit as a string for a message.

    Raises:
      Misconfigured: the limit is too low for a host.
    """
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and most < _FEWEST_DESCRIPTORS:
        raise Misconfigured(
            f"the limit on open files is {most}, which is too low for a host: raise the limit to 1024 or more "
            "(`ulimit -n 1024`, LimitNOFILE= in systemd)"
        )
    return "the limit of this machine" if most == resource.RLIM_INFINITY else str(most)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this host and port.

    Raises:
      Misconfigured: the port is taken, or this machine does not have the address.
    """
    address = "127.0.0.1" if host == "localhost" else host
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        # SO_REUSEPORT is set after `bind`, so that a second host cannot take the same port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise Misconfigured(
                f"port {port} of {address} is in use, perhaps by a running host; stop that host, or choose another "
                "port: --port 8711 (PORT=8711 with make run)"
            ) from error
        raise Misconfigured(f"cannot listen on {address} port {port}: {error.strerror}") from error
    return listener


def _is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
