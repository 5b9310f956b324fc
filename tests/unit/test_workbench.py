"""The host serves the workbench's files, a browser loads little before it shows a page, the sources make no markup or
code from text, and the lock file names no addresses for downloads.
"""

import base64
import gzip
import hashlib
import json
import os
import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from evaluator_host.platform.http.error_responses import install_error_handlers
from evaluator_host.web.workbench import DIST, PAGES, Workbench, is_page

SOURCES = DIST.parent / "src"
MOST_SCRIPT_BYTES = 100_000
ROUTED = re.findall(r'path: "(/[^"]*)"', (SOURCES / "routes.ts").read_text("utf-8"))


def browser(dist: Path) -> httpx.AsyncClient:
    app = FastAPI()
    install_error_handlers(app)
    pages = Workbench(dist)
    app.router.routes.extend(pages.routes())
    app.router.default = pages.not_found(app.router.default)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


def build(dist: Path, page: str) -> None:
    (dist / "assets").mkdir(parents=True, exist_ok=True)
    (dist / "assets" / "app-1.js.gz").write_bytes(gzip.compress(b"let a;"))
    (dist / "docs.html").write_text("docs")
    (dist / "index.html").write_text(page)


async def test_pages_that_are_not_built_say_how_to_build_them(tmp_path: Path) -> None:
    async with browser(tmp_path / "dist") as client:
        answer = await client.get("/")
        assert (answer.status_code, answer.headers["content-type"]) == (404, "text/plain; charset=utf-8")
        assert "make setup" in answer.text
        build(tmp_path / "dist", "<p>")
        assert (await client.get("/")).text == "<p>"


async def test_only_browsers_get_a_page_for_a_path_that_nothing_serves(tmp_path: Path) -> None:
    build(tmp_path, "<p>")
    async with browser(tmp_path) as client:
        page = await client.get("/nothing", headers={"Accept": "text/html,*/*;q=0.8"})
        assert (page.status_code, page.text, "content-security-policy" in page.headers) == (404, "<p>", True)
        for method, accept in (("GET", "*/*"), ("GET", "application/json"), ("POST", "text/html")):
            answer = await client.request(method, "/nothing", headers={"Accept": accept})
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), (method, accept)


async def test_a_later_build_is_served_without_a_new_start(tmp_path: Path) -> None:
    build(tmp_path, "first")
    async with browser(tmp_path) as client:
        assert (await client.get("/jobs/1")).text == "first"
        build(tmp_path, "second")
        os.utime(tmp_path / "index.html", ns=(1, 1))
        assert (await client.get("/jobs/1")).text == "second"


async def test_every_answer_has_a_nonce_of_its_own(tmp_path: Path) -> None:
    build(tmp_path, '<meta nonce="{{nonce}}">')
    async with browser(tmp_path) as client:
        seen = set()
        for _ in range(2):
            answer = await client.get("/")
            (nonce,) = re.findall(r'nonce="([\w-]{16,})"', answer.text)
            policy = answer.headers["content-security-policy"]
            assert f"style-src 'self' 'nonce-{nonce}';" in policy
            assert "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self';" in policy
            assert "unsafe" not in policy.replace("'wasm-unsafe-eval'", "")
            seen.add(nonce)
        assert len(seen) == 2


async def test_the_script_inside_of_a_page_runs_and_no_other_one(tmp_path: Path) -> None:
    build(tmp_path, "<script>let a = 1;</script><script src='b.js'></script>")
    async with browser(tmp_path) as client:
        policy = (await client.get("/")).headers["content-security-policy"]
    digest = base64.b64encode(hashlib.sha256(b"let a = 1;").digest()).decode()
    assert f"script-src 'self' 'wasm-unsafe-eval' 'sha256-{digest}';" in policy
    assert policy.count("sha256-") == 1


async def test_assets_are_kept_for_ever_and_come_small_to_whom_can_read_that(tmp_path: Path) -> None:
    build(tmp_path, "")
    async with browser(tmp_path) as client:
        for wanted, encoding in (("gzip, br", "gzip"), ("identity", None), ("gzip;q=0", None)):
            answer = await client.get("/assets/app-1.js", headers={"Accept-Encoding": wanted})
            assert answer.text == "let a;"
            assert answer.headers.get("content-encoding") == encoding
            assert "immutable" in answer.headers["cache-control"]
            assert answer.headers["vary"] == "Accept-Encoding"
        for name in ("app-1.js.gz", "../index.html", "%2e%2e%2findex.html", "..%5cindex.html", "app-2.js", ""):
            assert (await client.get(f"/assets/{name}")).status_code == 404, name


@pytest.mark.parametrize("path", ["/", "/docs", "/jobs", "/jobs/job_1", "/assets/app-1.js", "/environments/sha256:1/x"])
def test_paths_of_pages_are_recognised(path: str) -> None:
    assert is_page(path)


@pytest.mark.parametrize(
    "path", ["", "*", "//", "/v1/jobs", "//jobs", "/docs/x", "/docsx", "/metrics", "/jobsx", "/v1//jobs", "/assets"]
)
def test_other_paths_do_not_count_as_pages(path: str) -> None:
    assert not is_page(path)


def test_the_host_answers_every_path_that_the_page_routes() -> None:
    assert ROUTED
    assert {path[1:].split("/")[0] for path in ROUTED} == PAGES


@pytest.mark.engine  # this test needs the built pages
async def test_the_frame_is_there_before_any_script_runs() -> None:
    async with browser(DIST) as client:
        page = (await client.get("/jobs")).text
    head, _, frame = page.partition('<div id="app">')
    # the page has nothing that would delay the first paint
    assert not re.search(r'rel="(stylesheet|modulepreload)"|<script [^>]*src', page)
    assert ".frame-header" in head
    assert re.findall(r'<a href="([^"]+)">', frame) == ["/", "/evaluators", "/datasets", "/jobs", "/labels"]
    assert "undefined" not in frame


@pytest.mark.engine  # this test needs the built pages
@pytest.mark.parametrize("path", ROUTED)
def test_a_page_needs_little_script(path: str) -> None:
    listed = json.loads((DIST / "assets.json").read_text("utf-8"))
    names = {*listed["first"], *listed["pages"][path]}
    assert len(names) < 10  # the browser sends one request for each name
    sizes = [min(file.stat().st_size for file in (DIST / "assets").glob(f"{name}*")) for name in names]
    assert 10_000 < sum(sizes) < MOST_SCRIPT_BYTES


def test_no_source_makes_markup_or_code_of_text() -> None:
    forbidden = re.compile(
        r"dangerouslySetInnerHTML|\b(inner|outer)HTML\b|insertAdjacentHTML|document\.write|\beval\(|new Function"
    )
    sources = [file for file in SOURCES.rglob("*") if file.suffix in (".ts", ".tsx", ".html")]
    assert len(sources) > 20
    for file in sources:
        assert not forbidden.search(file.read_text("utf-8")), file


def test_the_lock_file_names_no_place_to_download_from() -> None:
    assert '"resolved"' not in (DIST.parent / "package-lock.json").read_text("utf-8")
