"""The host lists the versions of a package that a user can choose."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import certifi
import pytest

from evaluator_host.engine.packages.index import IndexSettings
from evaluator_host.engine.packages.lock import LockTarget
from evaluator_host.engine.packages.pip.versions import File, _listed, opened, usable
from evaluator_host.engine.packages.versions import VersionList
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Language


def versions(*names: str, requires: str | None = None) -> list[str]:
    return usable((File(name, requires) for name in names), "3.12", "x86_64", [2, 28])


def test_versions_are_newest_first_and_drafts_last() -> None:
    names = [f"x-{version}-py3-none-any.whl" for version in ("1.9", "1.10", "2.0rc1", "1.2.post1", "2!0.1")]
    assert versions(*names, "x-1.10-cp312-cp312-manylinux_2_17_x86_64.whl") == [
        "2!0.1",
        "1.10",
        "1.9",
        "1.2.post1",
        "2.0rc1",
    ]


@pytest.mark.parametrize(
    ("file_name", "fits"),
    [
        ("x-1-py3-none-any.whl", True),
        ("x-1-py2.py3-none-any.whl", True),
        ("x-1-cp312-cp312-manylinux2014_x86_64.whl", True),
        ("x-1-cp39-abi3-manylinux_2_28_x86_64.whl", True),
        ("x-1-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("x-1-cp312-cp312-manylinux_2_34_x86_64.whl", False),
        ("x-1-cp313-cp313-manylinux_2_17_x86_64.whl", False),
        ("x-1-cp312-cp312-manylinux_2_17_aarch64.whl", False),
        ("x-1-cp312-cp312-musllinux_1_2_x86_64.whl", False),
        ("x-1-cp312-cp312-win_amd64.whl", False),
        ("x-1-py2-none-any.whl", False),
        ("x-1.tar.gz", False),
        ("x-1-nonsense.whl", False),
        ("x-1.whl", False),
    ],
)
def test_a_version_is_there_when_a_wheel_loads(file_name: str, fits: bool) -> None:
    assert versions(file_name) == (["1"] if fits else [])


@pytest.mark.parametrize(
    ("requires", "fits"),
    [(None, True), (">=3.9", True), (">=3.13", False), ("<3.12", False), ("==3.12.*", True), ("??", True)],
)
def test_a_version_for_another_python_is_not_there(requires: str | None, fits: bool) -> None:
    assert versions("x-1-py3-none-any.whl", requires=requires) == (["1"] if fits else [])


def test_both_forms_of_a_page_are_read_and_withdrawn_files_left_out() -> None:
    page = b'{"files": [{"filename": "a", "url": "/f/a#1", "requires-python": ">=3"}, {"filename": "b", "url": "b", "yanked": "bad"}, {"filename": "c", "url": "../c", "yanked": false}]}'
    at = "https://index.example/simple/x/"
    expected = [File("a", ">=3", "https://index.example/f/a#1"), File("c", None, "https://index.example/simple/c")]
    assert list(_listed(page, "application/vnd.pypi.simple.v1+json", at)) == expected
    page = b'<a href="/f/a#1" data-requires-python="&gt;=3">a</a> <a data-yanked="" href="#2">b</a>\n<A href="../c"> c </A>'
    assert list(_listed(page, "text/html", at)) == expected


@pytest.mark.parametrize("name", ["", "..", "../x", "x/y", "-x", "x y", "x==1", "http://x", "x" * 200, "@x/y"])
async def test_a_text_that_is_not_a_name_is_never_looked_up(name: str, tmp_path: Path) -> None:
    index = IndexSettings(cache_dir=tmp_path)
    with pytest.raises(InvalidRequest):
        await VersionList(index).list_versions(name, Language.PYTHON, target=LockTarget("3.12"))


@contextmanager
def answering(to: str | None, asked_with: list[str | None]) -> Iterator[str]:
    """Yield the address of a server that redirects requests to `to`. If `to` is None, the server redirects them to its
    own path `/whole`.

    `asked_with` collects the Authorization header of each request.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked_with.append(self.headers.get("Authorization"))
            moved = to if to is not None else None if self.path == "/whole" else "/whole"
            self.send_response(200 if moved is None else 302)
            if moved is not None:
                self.send_header("Location", moved)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_password_of_an_index_stays_on_its_host() -> None:
    there: list[str | None] = []
    here: list[str | None] = []
    with answering(None, there) as other, answering(f"{other}/file", here) as index:
        asked = {"index": index, "user": "me", "password": "secret", "authorities": certifi.where()}
        opened(f"{index}/file", asked, {}).close()
        assert here[0] is not None
        assert there == [None, None]
        opened(f"{other}/file", {**asked, "index": other}, {}).close()
        assert None not in there[2:]
        assert len(there) == 4
