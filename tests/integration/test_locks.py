"""Locks from the real indexes, with the real resolvers; and indexes of our own for what real ones do not offer."""

import asyncio
import base64
import hashlib
import io
import json
import os
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator_host.errors import IndexUnavailable, InvalidPin, InvalidRequest, Misconfigured, PackagesFailed
from evaluator_host.model import Language
from evaluator_host.packages import tools as processes
from evaluator_host.packages.imports import exact_pins_for
from evaluator_host.packages.index import IndexSettings
from evaluator_host.packages.lock import Lock, Target, resolve
from evaluator_host.packages.npm_lock import manifest
from evaluator_host.packages.pins import parse
from evaluator_host.packages.scripts import read_script
from evaluator_host.packages.suggest import suggest
from evaluator_host.packages.tools import Command, OutputFlood, installed_tools, run

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
TARGETS = {PYTHON: Target("3.13"), JAVASCRIPT: Target("24"), TYPESCRIPT: Target("24")}
CA_FILE = os.environ.get("SSL_CERT_FILE")
PROXY = os.environ.get("HTTPS_PROXY")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> IndexSettings:
    """The real indexes, by whatever way out this machine has."""
    cache = tmp_path_factory.mktemp("downloads")
    return IndexSettings(cache_dir=cache, ca_file=Path(CA_FILE) if CA_FILE else None, proxy=PROXY)


async def lock_of(raw: Sequence[Any], language: Language, index: IndexSettings, **options: Any) -> Lock:
    return await resolve(parse(raw, language), language, target=TARGETS[language], index=index, **options)


# --- npm pins: npm's own libraries decide ---


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("lodash@4.17.21", "lodash@4.17.21"),
        (" lodash @ v4.17.21 ", "lodash@4.17.21"),
        ("lodash@=4.17.21", "lodash@4.17.21"),
        ("@types/node@20.1.0", "@types/node@20.1.0"),
        ("JSONStream@1.3.5", "JSONStream@1.3.5"),
        ("x@1.0.0-beta.1+build", "x@1.0.0-beta.1"),
        ({"name": "@types/node", "version": "20.1.0"}, "@types/node@20.1.0"),
    ],
)
def test_every_spelling_of_an_npm_pin_has_one_form(raw: Any, canonical: str) -> None:
    assert [pin.text for pin in parse([raw], JAVASCRIPT)] == [canonical]


@pytest.mark.parametrize(
    ("item", "what", "hint"),
    [
        ("lodash@^4.17.21", "range", "lodash@4.17.21"),
        ("lodash@~4.17", "range", None),
        ("lodash@4", "range", None),
        ("lodash@4.x", "range", None),
        ("lodash@>=1.2.3 <2", "range", "lodash@1.2.3"),
        ("lodash@1.0.0 || 2.0.0", "range", "lodash@1.0.0"),
        ("lodash@*", "range", None),
        ("lodash", "no version", None),
        ("@types/node", "no version", None),
        ("lodash@latest", "tag", None),
        ("lodash@1.2.3.4", "semantic version", None),
        ("lodash@01.2.3", "semantic version", None),
        ("lodash@npm:evil@1.0.0", "alias", None),
        ("npm:lodash@4.17.21", "alias", None),
        ("lodash@git+ssh://git@example.org/a.git", "git", None),
        ("github:a/b", "git", None),
        ("a/b", "git", None),
        ("lodash@a/b#main", "commits", None),
        ("lodash@https://example.org/x.tgz", "URL", None),
        ("lodash@file:../x", "path", None),
        ("./lodash", "path", None),
        ("~/lodash", "path", None),
        ("x.tgz", "path", None),
        ("--registry=https://example.org", "option", None),
        ("_x@1.0.0", "underscore", None),
        ("node_modules@1.0.0", "not a valid package name", None),
        ("__proto__@1.0.0", "underscore", None),
        ("lodash@4.17.21\nevil@1.0.0", "line break", None),
        ("lodash==4.17.21", "pip's spelling", "lodash@4.17.21"),
        ("lodash[x]==4.17.21", "pip's spelling", "lodash@4.17.21"),
        ("lodash>=4", "range of pip", None),
        ({"name": "lodash", "version": "^4.17.21"}, "range", "lodash@4.17.21"),
        ({"name": "lodash", "version": "latest"}, "tag", None),
        ({"name": "lodash@1.0.0", "version": "2.0.0"}, "not a pin", None),
    ],
)
def test_what_is_no_exact_npm_pin_is_refused_by_name(item: Any, what: str, hint: str | None) -> None:
    with pytest.raises(InvalidPin) as caught:
        parse(["zod@3.22.4", item], TYPESCRIPT)
    (problem,) = caught.value.problems
    assert problem.field == "packages[1]"
    assert what in problem.message
    assert problem.hint == hint


PIECES = st.sampled_from(
    [
        "lodash",
        "@",
        "1.2.3",
        "^",
        "/",
        ".",
        "npm:",
        "#",
        "-",
        "git+",
        "://",
        " ",
        "\n",
        "=",
        "latest",
        "\ud800",
        "%",
        "__proto__",
    ]
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=6).map("".join)), max_size=60))
def test_anything_is_npm_pins_or_refused(raw: list[str]) -> None:
    bad: tuple[int, ...] = ()
    try:
        parse(raw, JAVASCRIPT)
    except InvalidPin as error:
        bad = tuple(int(found[1]) for p in error.problems if (found := re.fullmatch(r"packages\[(\d+)\]", p.field)))
    good = [item for number, item in enumerate(raw) if number not in bad]
    pins = parse(good, JAVASCRIPT)
    assert parse([pin.text for pin in pins], TYPESCRIPT) == tuple(replace(pin, language=TYPESCRIPT) for pin in pins)


def test_npm_specifiers_in_a_file_become_pins_and_nothing_moves() -> None:
    source = 'import _ from "npm:lodash@4.17.21/fp"; x()\nconst s = "npm:no@1"\nconst t = require(\'npm:@types/node@20.1.0\')\n'
    script = read_script(source, TYPESCRIPT)
    assert [pin.text for pin in script.pins] == ["@types/node@20.1.0", "lodash@4.17.21"]
    assert 'from "lodash/fp"' in script.source
    assert "require('@types/node'" in script.source
    assert '"npm:no@1"' in script.source
    assert len(script.source) == len(source)
    assert script.source.index("; x()") == source.index("; x()")


def test_a_range_in_a_specifier_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidPin) as caught:
        read_script('\n\nimport _ from "npm:lodash@^4.17.21"\n', JAVASCRIPT)
    assert "line 3" in caught.value.problems[0].message
    assert caught.value.problems[0].hint == "lodash@4.17.21"


# --- locks from the real indexes ---


async def test_a_python_set_locks_every_package_with_hashes(index: IndexSettings) -> None:
    told: list[tuple[str, int, int | None]] = []
    raw = ["pandas==2.2.3", "numpy==2.1.0", "requests[socks]==2.32.3"]
    lock = await lock_of(raw, PYTHON, index, progress=lambda *step: told.append(step))
    by_name = {package.name: package for package in lock.packages}
    assert {name for name, package in by_name.items() if package.requested} == {"numpy", "pandas", "requests"}
    assert {"python-dateutil", "urllib3", "pysocks"} <= set(by_name)
    assert by_name["numpy"].version == "2.1.0"
    assert "numpy" in by_name["pandas"].dependencies
    assert all(hash_.startswith("sha256:") for package in lock.packages for hash_ in package.hashes)
    assert all(package.hashes for package in lock.packages)
    assert "://" not in lock.text
    assert told == [("resolving", 0, None), ("resolved", len(by_name), len(by_name))]
    assert Lock.from_json(lock.to_json()) == lock


async def test_the_same_set_in_another_spelling_is_the_same_lock(index: IndexSettings, tmp_path: Path) -> None:
    one = await lock_of(["jsonschema==4.23.0", "rapidfuzz==3.10.0"], PYTHON, index)
    other = await lock_of(["RapidFuzz == 3.10", "jsonschema==v4.23"], PYTHON, replace(index, cache_dir=tmp_path))
    assert one == other
    assert one.digest == other.digest


async def test_another_runtime_or_platform_is_another_environment(index: IndexSettings) -> None:
    pins = parse(["six==1.16.0"], PYTHON)
    targets = [Target("3.13"), Target("3.12"), Target("3.13", "aarch64"), Target("3.13", glibc=(2, 36))]
    locks = [await resolve(pins, PYTHON, target=target, index=index) for target in targets]
    assert len({lock.text for lock in locks}) == 1
    assert len({lock.digest for lock in locks}) == len(targets)


async def test_a_lock_installs_with_verified_hashes(index: IndexSettings, tmp_path: Path) -> None:
    lock = await lock_of(["idna==3.10", "six==1.16.0"], PYTHON, index)
    (tmp_path / "lock.txt").write_text(lock.text)
    await install(["uv", "pip", "install", "--require-hashes", "--target", "site", "-r", "lock.txt"], tmp_path, index)
    assert (tmp_path / "site" / "six.py").is_file()
    assert (tmp_path / "site" / "idna").is_dir()
    (tmp_path / "lock.txt").write_text(re.sub(r"sha256:[0-9a-f]{4}", "sha256:0000", lock.text))
    with pytest.raises(AssertionError, match=r"(?i)hash mismatch"):
        await install(
            ["uv", "pip", "install", "--require-hashes", "--target", "other", "-r", "lock.txt"], tmp_path, index
        )


async def install(argv: list[str], directory: Path, index: IndexSettings) -> None:
    tools = installed_tools()
    program = {"uv": [str(tools.uv)], "npm": [str(tools.node), str(tools.npm / "bin" / "npm-cli.js")]}[argv[0]]
    environment = {
        "HOME": str(directory),
        "UV_CACHE_DIR": str(directory / "cache"),
        "npm_config_cache": str(directory / "cache"),
    }
    if index.ca_file:
        environment |= {"SSL_CERT_FILE": str(index.ca_file), "NODE_EXTRA_CA_CERTS": str(index.ca_file)}
    if index.proxy:
        environment["HTTPS_PROXY"] = index.proxy
    python = ["--python", str(tools.python), "--no-config"] if argv[0] == "uv" else []
    done = await run(Command((*program, *argv[1:], *python), directory, environment), 60)
    assert done.code == 0, done.stderr


async def test_an_npm_set_locks_every_package_with_integrity(index: IndexSettings, tmp_path: Path) -> None:
    raw = ["nanoid@5.0.7", "@isaacs/cliui@8.0.2", "esbuild@0.21.5"]
    lock = await lock_of(raw, TYPESCRIPT, index)
    names = {package.name for package in lock.packages}
    assert {package.name for package in lock.packages if package.requested} == {"nanoid", "@isaacs/cliui", "esbuild"}
    assert {"string-width", "@esbuild/linux-x64"} <= names
    assert not {name for name in names if name.startswith("@esbuild/") and name != "@esbuild/linux-x64"}
    assert all(re.match(r"sha\d+-", hash_) for package in lock.packages for hash_ in package.hashes)
    content = json.loads(lock.text)
    assert content["lockfileVersion"] == 3
    assert not [path for path, entry in content["packages"].items() if "resolved" in entry]
    assert Lock.from_json(lock.to_json()) == lock


async def test_an_npm_lock_installs_with_npm_ci(index: IndexSettings, tmp_path: Path) -> None:
    pins = parse(["lodash@4.17.21"], JAVASCRIPT)
    lock = await resolve(pins, JAVASCRIPT, target=TARGETS[JAVASCRIPT], index=index)
    (tmp_path / "package.json").write_text(manifest(pins))
    (tmp_path / "package-lock.json").write_text(lock.text)
    await install(["npm", "ci", "--ignore-scripts", "--no-audit"], tmp_path, index)
    assert json.loads((tmp_path / "node_modules" / "lodash" / "package.json").read_text())["version"] == "4.17.21"
    assert lock == await lock_of(["lodash@v4.17.21"], TYPESCRIPT, index)


async def test_no_pins_need_no_index(tmp_path: Path) -> None:
    nowhere = IndexSettings(cache_dir=tmp_path, pip_index_url="http://127.0.0.1:9/simple")
    lock = await lock_of([], PYTHON, nowhere)
    assert lock.packages == ()
    assert lock.digest != (await lock_of([], JAVASCRIPT, nowhere)).digest


@pytest.mark.parametrize(
    ("raw", "language", "words", "hint"),
    [
        (["numpy==2.1.77"], PYTHON, ["numpy has no version 2.1.77", "numpy==2.1.3", "numpy==2.2.0"], "numpy==2.1.3"),
        (["nunpy==1.0.0"], PYTHON, ["no package nunpy", "numpy"], "numpy"),
        (["numpy==1.26.0"], PYTHON, ["numpy==1.26.0 has no wheel", "3.13", "allow_source_builds"], "numpy==2.1.0"),
        (["jieba==0.42.1"], PYTHON, ["jieba==0.42.1 has no wheel", "allow_source_builds"], None),
        (["lodash@4.17.99"], JAVASCRIPT, ["lodash has no version 4.17.99", "lodash@4.17.", "lodash@4.18.0"], ...),
        (["@no-such-scope-zz/x@1.0.0"], TYPESCRIPT, ["no package @no-such-scope-zz/x"], None),
        (["fsevents@2.3.3"], JAVASCRIPT, ["fsevents@2.3.3", "darwin"], ...),
    ],
)
async def test_what_cannot_be_had_is_named_with_a_way_out(
    raw: list[str], language: Language, words: list[str], hint: Any, index: IndexSettings
) -> None:
    with pytest.raises(PackagesFailed) as caught:
        await lock_of(raw, language, index)
    assert [word for word in words if word not in caught.value.detail] == []
    if hint is not ...:
        assert [problem.hint for problem in caught.value.problems] == [hint]


@pytest.mark.parametrize(
    ("raw", "language", "words"),
    [
        (["pydantic==2.10.0", "pydantic-core==2.26.0"], PYTHON, ["pydantic==2.10.0 depends on pydantic-core==2.27.0"]),
        (["react@18.2.0", "react-dom@17.0.2"], JAVASCRIPT, ['peer react@"17.0.2" from react-dom@17.0.2']),
    ],
)
async def test_a_conflict_is_told_in_the_resolvers_own_words(
    raw: list[str], language: Language, words: list[str], index: IndexSettings
) -> None:
    with pytest.raises(PackagesFailed, match="cannot be installed together") as caught:
        await lock_of(raw, language, index)
    detail = caught.value.detail
    assert [word for word in words if word not in detail] == []
    assert len(detail.splitlines()) <= 16
    assert "/tmp" not in detail
    assert "\x1b" not in detail


async def test_an_extra_that_does_not_exist_is_noted(index: IndexSettings) -> None:
    lock = await lock_of(["six[nosuch]==1.16.0"], PYTHON, index)
    assert "nosuch" in lock.notes[0]


async def test_a_machine_without_wheels_is_refused(index: IndexSettings) -> None:
    with pytest.raises(Misconfigured, match="riscv64"):
        await resolve(parse(["six==1.16.0"], PYTHON), PYTHON, target=Target("3.13", "riscv64"), index=index)


async def test_pins_of_the_other_language_are_no_set(index: IndexSettings) -> None:
    with pytest.raises(InvalidRequest):
        await resolve(parse(["six==1.16.0"], PYTHON), JAVASCRIPT, target=TARGETS[JAVASCRIPT], index=index)


# --- suggestions ---


@pytest.mark.parametrize(
    ("item", "language", "hint"),
    [
        ("scipy==1.14.*", PYTHON, r"scipy==1\.14\.1"),
        ("requests[socks]>=2.31,<2.32", PYTHON, r"requests\[socks\]==2\.31\.0"),
        ("six", PYTHON, r"six==\d+\.\d+\.\d+"),
        ("six@latest", PYTHON, r"six==\d+\.\d+\.\d+"),
        ("nunpy>=1", PYTHON, r"numpy==\d+\.\d+\.\d+"),
        ("nosuch-zzqq", PYTHON, None),
        ("lodash@^3", JAVASCRIPT, r"lodash@3\.10\.1"),
        ("lodash>=4,<4.17", JAVASCRIPT, r"lodash@4\.16\.6"),
        ("@types/node", JAVASCRIPT, r"@types/node@\d+\.\d+\.\d+"),
        ("lodash@latest", JAVASCRIPT, r"lodash@\d+\.\d+\.\d+"),
        ("git+https://example.org/a", PYTHON, None),
    ],
)
async def test_a_refused_pin_is_answered_with_the_newest_that_matches(
    item: str, language: Language, hint: str | None, index: IndexSettings
) -> None:
    with pytest.raises(InvalidPin) as caught:
        parse([item], language)
    (problem,) = await suggest(
        caught.value.problems, [item], language, target=TARGETS[language], index=index, timeout_s=30
    )
    assert problem.hint == hint if hint is None else re.fullmatch(hint, problem.hint or "")


async def test_suggestions_are_silent_without_an_index(tmp_path: Path) -> None:
    with pytest.raises(InvalidPin) as caught:
        parse(["numpy>=2.1.0", "pandas"], PYTHON)
    nowhere = IndexSettings(cache_dir=tmp_path, pip_index_url="http://127.0.0.1:9/simple")
    problems = await suggest(
        caught.value.problems, ["numpy>=2.1.0", "pandas"], PYTHON, target=TARGETS[PYTHON], index=nowhere, timeout_s=1
    )
    assert problems == caught.value.problems


async def test_an_import_is_answered_with_an_exact_pin(index: IndexSettings) -> None:
    exact, none = await exact_pins_for(["yaml", "os"], PYTHON, target=TARGETS[PYTHON], index=index)
    assert re.fullmatch(r"pyyaml==\d+\.\d+\.\d+", exact or "")
    assert none is None


# --- indexes of our own ---


@dataclass
class Site:
    """What an index serves by path; `user` asks for credentials, `hang` never answers, `status` answers nothing else."""

    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    user: str | None = None
    hang: threading.Event | None = None
    status: int | None = None
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, authorization: str | None) -> tuple[int, str, bytes]:
        self.asked.append(path)
        if self.hang:
            self.hang.wait(60)
        if self.status:
            return self.status, "text/plain", b""
        if self.user and authorization != "Basic " + base64.b64encode(self.user.encode()).decode():
            return 401, "text/plain", b""
        return (200, *self.files[path]) if path in self.files else (404, "text/plain", b"")


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            status, kind, body = site.answer(self.path.partition("?")[0], self.headers.get("Authorization"))
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", "Basic")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(b"" if self.command == "HEAD" else body)
            except BrokenPipeError:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 its name in the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        if site.hang:
            site.hang.set()
        server.shutdown()
        thread.join()
        server.server_close()


def python_project(site: Site, name: str, **files: bytes) -> None:
    links = []
    for file_name, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        site.files[f"/files/{file_name}"] = ("application/octet-stream", content)
        links.append(f'<a href="/files/{file_name}#sha256={digest}">{file_name}</a>')
    site.files[f"/simple/{name}/"] = ("text/html", ("<!DOCTYPE html>" + "\n".join(links)).encode())


def wheel(name: str, requires: str = "") -> bytes:
    content = io.BytesIO()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n" + (
        f"Requires-Dist: {requires}\n" if requires else ""
    )
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(f"{name}.py", "")
        archive.writestr(f"{name}-1.0.0.dist-info/METADATA", metadata)
        archive.writestr(
            f"{name}-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.0.dist-info/RECORD", "")
    return content.getvalue()


def source_archive(name: str, marker: Path) -> bytes:
    """A package whose build leaves a marker: whoever resolves it must not run it."""
    backend = (
        f"import os, pathlib\npathlib.Path({str(marker)!r}).write_text(repr(dict(os.environ)))\n"
        "def prepare_metadata_for_build_wheel(directory, config=None):\n"
        f"    info = pathlib.Path(directory) / '{name}-1.0.0.dist-info'\n    info.mkdir()\n"
        f"    (info / 'METADATA').write_text('Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0.0\\n')\n"
        "    return info.name\n"
        "def build_wheel(directory, config=None, metadata=None):\n    raise SystemExit('not needed')\n"
    )
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": backend,
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n",
    }
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for file_name, text in files.items():
            member = tarfile.TarInfo(f"{name}-1.0.0/{file_name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return content.getvalue()


def npm_project(site: Site, name: str, **more: Any) -> None:
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(name.encode()).digest()).decode()
    dist = {"tarball": f"{site.url}/{name}/-/{name}-1.0.0.tgz", "integrity": integrity}
    version = {"name": name, "version": "1.0.0", "dist": dist, **more}
    document = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    site.files[f"/{name}"] = ("application/json", json.dumps(document).encode())


def with_user(url: str, user: str) -> str:
    return url.replace("://", f"://{user}@")


async def test_an_index_with_credentials_works_and_the_lock_knows_nothing_of_them(tmp_path: Path) -> None:
    with serving(Site(user="bob:s3cr3t-w0rd")) as site:
        python_project(site, "inhouse", **{"inhouse-1.0.0-py3-none-any.whl": wheel("inhouse")})
        npm_project(site, "inhouse")
        index = IndexSettings(
            cache_dir=tmp_path,
            pip_index_url=with_user(site.url, "bob:s3cr3t-w0rd") + "/simple",
            npm_registry=with_user(site.url, "bob:s3cr3t-w0rd"),
        )
        python = await lock_of(["inhouse==1.0.0"], PYTHON, index)
        npm = await lock_of(["inhouse@1.0.0"], JAVASCRIPT, index)
    for lock in (python, npm):
        assert [package.name for package in lock.packages] == ["inhouse"]
        for secret in ("s3cr3t-w0rd", "bob", "127.0.0.1"):
            assert secret not in lock.to_json()


@pytest.mark.parametrize(("raw", "language"), [("inhouse==1.0.0", PYTHON), ("inhouse@1.0.0", JAVASCRIPT)])
async def test_wrong_credentials_are_the_index_not_answering(raw: str, language: Language, tmp_path: Path) -> None:
    with serving(Site(user="bob:right")) as site:
        url = with_user(site.url, "bob:wr0ng-w0rd")
        index = IndexSettings(cache_dir=tmp_path, pip_index_url=f"{url}/simple", npm_registry=url)
        with pytest.raises(IndexUnavailable) as caught:
            await lock_of([raw], language, index)
    assert "wr0ng-w0rd" not in caught.value.detail


@pytest.mark.parametrize(("raw", "language"), [("inhouse==1.0.0", PYTHON), ("inhouse@1.0.0", JAVASCRIPT)])
async def test_a_broken_index_is_the_index_not_answering(raw: str, language: Language, tmp_path: Path) -> None:
    with serving(Site(status=503)) as site:
        index = IndexSettings(cache_dir=tmp_path, pip_index_url=f"{site.url}/simple", npm_registry=site.url)
        with pytest.raises(IndexUnavailable):
            await lock_of([raw], language, index)


@pytest.mark.parametrize(("raw", "language"), [("inhouse==1.0.0", PYTHON), ("inhouse@1.0.0", JAVASCRIPT)])
async def test_no_index_at_all_is_the_index_not_answering(raw: str, language: Language, tmp_path: Path) -> None:
    index = IndexSettings(
        cache_dir=tmp_path, pip_index_url="http://127.0.0.1:9/simple", npm_registry="http://127.0.0.1:9/"
    )
    with pytest.raises(IndexUnavailable, match="cannot be reached"):
        await lock_of([raw], language, index)


async def test_the_operators_own_configuration_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Site()) as real, serving(Site()) as other:
        python_project(real, "inhouse", **{"inhouse-1.0.0-py3-none-any.whl": wheel("inhouse")})
        npm_project(real, "inhouse")
        (tmp_path / ".npmrc").write_text(f"registry={other.url}\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_INDEX_URL", "npm_config_registry"):
            monkeypatch.setenv(name, other.url)
        monkeypatch.setenv("NODE_OPTIONS", "--no-such-option")
        index = IndexSettings(cache_dir=tmp_path / "c", pip_index_url=f"{real.url}/simple", npm_registry=real.url)
        await lock_of(["inhouse==1.0.0"], PYTHON, index)
        await lock_of(["inhouse@1.0.0"], JAVASCRIPT, index)
        assert other.asked == []


async def test_a_build_script_is_never_run_on_the_host(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    with serving(Site(user="bob:s3cr3t-w0rd")) as site:
        python_project(site, "evil", **{"evil-1.0.0.tar.gz": source_archive("evil", marker)})
        url = with_user(site.url, "bob:s3cr3t-w0rd") + "/simple"
        with pytest.raises(PackagesFailed, match="allow_source_builds"):
            await lock_of(["evil==1.0.0"], PYTHON, IndexSettings(cache_dir=tmp_path / "c", pip_index_url=url))
    assert not marker.exists()


async def test_a_source_build_is_resolved_by_the_builder_alone_and_without_credentials(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    commands: list[Command] = []

    async def builder(command: Command, timeout_s: float) -> processes.Finished:
        commands.append(command)
        return await run(command, timeout_s)

    with serving(Site()) as site:
        python_project(site, "evil", **{"evil-1.0.0.tar.gz": source_archive("evil", marker)})
        url = with_user(site.url, "bob:s3cr3t-w0rd") + "/simple"
        index = IndexSettings(cache_dir=tmp_path / "c", pip_index_url=url)
        with pytest.raises(Misconfigured):
            await lock_of(["evil==1.0.0"], PYTHON, index, allow_source_builds=True)
        lock = await lock_of(["evil==1.0.0"], PYTHON, index, allow_source_builds=True, builder=builder)
    assert lock.source_builds
    assert [package.name for package in lock.packages] == ["evil"]
    assert len(commands) == 1
    assert "s3cr3t-w0rd" not in marker.read_text()


@pytest.mark.parametrize(
    "source",
    ["git+file:///tmp/evil.git", "github:a/b", "file:../evil", "URL/evil.tgz", "git+ssh://git@example.invalid/a.git"],
)
async def test_an_npm_package_cannot_pull_in_what_the_registry_does_not_have(source: str, tmp_path: Path) -> None:
    with serving(Site()) as site:
        npm_project(site, "good", dependencies={"evil": source.replace("URL", site.url)})
        index = IndexSettings(cache_dir=tmp_path, npm_registry=site.url)
        with pytest.raises(PackagesFailed, match="outside the registry"):
            await lock_of(["good@1.0.0"], JAVASCRIPT, index)
        assert "/evil.tgz" not in site.asked


async def test_a_python_package_cannot_pull_in_what_the_index_does_not_have(tmp_path: Path) -> None:
    with serving(Site()) as site:
        content = wheel("good", f"evil @ {site.url}/evil-1.0.0-py3-none-any.whl")
        python_project(site, "good", **{"good-1.0.0-py3-none-any.whl": content})
        with pytest.raises(PackagesFailed):
            await lock_of(
                ["good==1.0.0"], PYTHON, IndexSettings(cache_dir=tmp_path, pip_index_url=f"{site.url}/simple")
            )
        assert not [path for path in site.asked if "evil" in path]


async def test_a_version_without_a_hash_is_refused(tmp_path: Path) -> None:
    with serving(Site()) as site:
        npm_project(site, "good", dist={"tarball": f"{site.url}/good.tgz"})
        with pytest.raises(PackagesFailed, match="integrity"):
            await lock_of(["good@1.0.0"], JAVASCRIPT, IndexSettings(cache_dir=tmp_path, npm_registry=site.url))


def processes_with(text: str) -> list[str]:
    """Programs whose environment mentions a text, as the kernel tells."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(("raw", "language"), [("inhouse==1.0.0", PYTHON), ("inhouse@1.0.0", JAVASCRIPT)])
@pytest.mark.parametrize("way", ["cancelled", "timeout"])
async def test_a_hanging_index_leaves_no_process(raw: str, language: Language, way: str, tmp_path: Path) -> None:
    with serving(Site(hang=threading.Event())) as site:
        index = IndexSettings(
            cache_dir=tmp_path / "downloads",
            pip_index_url=f"{site.url}/simple",
            npm_registry=site.url,
            timeout_s=3.0 if way == "timeout" else 60.0,
        )
        task = asyncio.create_task(lock_of([raw], language, index))
        while not site.asked:
            await asyncio.sleep(0.02)
        assert processes_with(str(tmp_path)) != []
        if way == "cancelled":
            task.cancel()
        with pytest.raises(asyncio.CancelledError if way == "cancelled" else IndexUnavailable):
            await task
        assert processes_with(str(tmp_path)) == []


async def test_a_program_that_floods_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "OUTPUT_BYTES", 100_000)
    with pytest.raises(OutputFlood):
        await run(Command(("/usr/bin/yes",), tmp_path, {"MARK": str(tmp_path)}), 30)
    assert processes_with(str(tmp_path)) == []


async def test_a_child_of_a_program_does_not_outlive_it(tmp_path: Path) -> None:
    argv = ("/bin/sh", "-c", "sleep 60 >/dev/null 2>&1 & echo done")
    done = await run(Command(argv, tmp_path, {"MARK": str(tmp_path)}), 30)
    assert (done.code, done.stdout) == (0, "done\n")
    for _ in range(100):
        if not processes_with(str(tmp_path)):
            return
        await asyncio.sleep(0.02)
    pytest.fail("the child lives on")
