"""A package index for tests on a loopback port, which makes wheels and records every request."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from tests.answering import answering


class Index:
    """A PEP 503 index; `asked` are the paths that were requested."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open = threading.Event()  # files are held back until this event is set
        self.open.set()
        self.url = ""
        self._files: dict[str, tuple[str, bytes]] = {}

    def add(self, name: str, code: str, *, size: int = 0, version: str = "1.0.0", needs: str = "") -> str:
        """Publish a version of a module, with `size` additional bytes of data, and return its pin (`name==version`)."""
        wheel = _wheel(name, version, needs, {f"{name}.py": code.encode(), f"{name}_data.bin": bytes(size)})
        file_name = f"{name}-{version}-py3-none-any.whl"
        link = f'<a href="/files/{file_name}#sha256={hashlib.sha256(wheel).hexdigest()}">{file_name}</a>'
        self._files[f"/files/{file_name}"] = ("application/octet-stream", wheel)
        page = f"/simple/{name}/"
        others = self._files.get(page, ("", b"<!DOCTYPE html>"))[1]
        self._files[page] = ("text/html", others + link.encode())
        return f"{name}=={version}"

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """During the block, send no files until the event `open` is set."""
        self.open.clear()
        try:
            yield
        finally:
            self.open.set()

    @property
    def simple(self) -> str:
        """The index's URL, for the setting `pip_index_url`."""
        return f"{self.url}/simple"

    def answer(self, path: str, _authorization: str | None) -> tuple[int, str, bytes]:
        self.asked.append(path)
        if path.startswith("/files/"):
            self.open.wait(60)
        return (200, *self._files[path]) if path in self._files else (404, "text/plain", b"")


@contextmanager
def serving() -> Iterator[Index]:
    index = Index()
    with answering(index.answer) as index.url:
        yield index


def _wheel(name: str, version: str, needs: str, files: dict[str, bytes]) -> bytes:
    info = f"{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, data in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(path, data)
    return content.getvalue()
