"""Makes files for attacks on the host: a Parquet file that unpacks to much more, and a package with nested folders."""

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

from evaluator_host.engine.system.extras import extra

_CELL_BYTES: Final = 30 << 20
_CELLS: Final = 10
_FOLDERS: Final = 1500
_WHEEL: Final = "selftest_nested-1.0.0-py3-none-any.whl"


def unfolding_parquet() -> bytes:
    """Return a Parquet file of one kilobyte with rows of 300 MB in total.

    Raises:
      Misconfigured: pyarrow is not installed.
    """
    with extra("parquet", "the Parquet file of an attack"):
        import pyarrow as pa  # noqa: PLC0415 - an optional package
        from pyarrow import parquet  # noqa: PLC0415
    cells = pa.DictionaryArray.from_arrays(pa.array([0] * _CELLS, pa.int32()), pa.array(["x" * _CELL_BYTES]))
    file = io.BytesIO()
    parquet.write_table(pa.table({"a": cells}), file, compression="zstd", store_schema=False)
    return file.getvalue()


FILES: Final[dict[str, Callable[[], bytes]]] = {"unfolding-parquet": unfolding_parquet}


def nested_wheel() -> bytes:
    """Return a wheel with a file below fifteen hundred folders."""
    info = "selftest_nested-1.0.0.dist-info"
    files = {
        "selftest_nested.py": "",
        "d/" * _FOLDERS + "x.txt": "",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: selftest-nested\nVersion: 1.0.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    names = [*files, f"{info}/RECORD"]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (*files.items(), (names[-1], "".join(f"{name},,\n" for name in names))):
            archive.writestr(name, text)
    return content.getvalue()


class _Handler(BaseHTTPRequestHandler):
    """Answers like a package index that has `nested_wheel` under every name."""

    def do_GET(self) -> None:
        content = nested_wheel() if self.path.endswith(".whl") else f'<a href="/{_WHEEL}">{_WHEEL}</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def package_index() -> Iterator[str]:
    """Serve a package index on 127.0.0.1 during the block, and yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/simple"
        finally:
            server.shutdown()
