"""Builds with a hostile or broken index end in time with an error that names the package, and send no request to
another index.

The guards: one index per tool and no configuration except the host's own (`packages.index`); `index_timeout_s`; the
builder's memory limit, without which the flood fills the machine's memory; and the rules of uv and npm about
credentials in redirects.
"""

import asyncio
import base64
import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host.types.errors import HostError, IndexUnavailable, PackagesFailed
from evaluator_host.types.evaluator import Language
from tests.builds import JAVASCRIPT, PYTHON, building, evaluated, installed, nothing_left, refusal, value_of
from tests.indexes import Index, drip, flood, hang, redirect
from tests.packages import npm_package, wheel

RETURNS_ONE = {PYTHON: "def evaluate(i, o, t): return 1", JAVASCRIPT: "export const evaluate = (i, o, t) => 1"}
USER = "bob:c0rp-passw0rd"
BOTH = pytest.mark.parametrize(
    ("pin", "language"), [("inhouse==1.0.0", PYTHON), ("inhouse@1.0.0", JAVASCRIPT)], ids=["pip", "npm"]
)


@pytest.fixture
def index() -> Iterator[Index]:
    with Index() as serving:
        yield serving


# `hangs`: the page is never sent; `drips`: the file is sent so slowly that it never ends
MANNERS = {"hangs": (hang, "page"), "drips": (drip, "file")}


@pytest.mark.long
async def test_an_index_that_never_answers_is_given_up_and_can_be_asked_again(index: Index, tmp_path: Path) -> None:
    pins = []
    for name, language in itertools.product(MANNERS, (PYTHON, JAVASCRIPT)):
        manner, where = MANNERS[name]
        offer(index, language, name)
        for path in pages(language, name) if where == "page" else archives(language, name):
            index.odd[path] = manner
        pins.append((f"{name}{'==' if language is PYTHON else '@'}1.0.0", language))
    async with building(tmp_path, index, index_timeout_s=3) as service:
        errors = await asyncio.gather(*(refusal(service, pin, language=language) for pin, language in pins))
        nothing_left(tmp_path)
    # from the first bytes of the slow wheel, uv may already notice that the file is not an archive
    early = (IndexUnavailable, PackagesFailed)
    for (pin, _), error in zip(pins, errors, strict=True):
        assert isinstance(error, early if pin == "drips==1.0.0" else IndexUnavailable), (pin, error)
    index.odd.clear()
    async with building(tmp_path, index) as service:
        for language in (PYTHON, JAVASCRIPT):
            every = [pin for pin, of in pins if of is language]
            assert (await evaluated(service, RETURNS_ONE[language], *every, language=language)).score == 1


@pytest.mark.long
@BOTH
@pytest.mark.parametrize("where", ["page", "file"])
async def test_an_index_that_sends_without_end_is_stopped(
    index: Index, tmp_path: Path, pin: str, language: Language, where: str
) -> None:
    offer(index, language)
    for path in pages(language) if where == "page" else archives(language):
        index.odd[path] = flood
    async with building(tmp_path, index, build_memory_mb=256, environments_mb=50) as service:
        error = await refusal(service, pin, language=language)
        assert isinstance(error, PackagesFailed | IndexUnavailable)
        nothing_left(tmp_path)
        downloads = tmp_path / "environments" / "build" / "downloads"
        assert sum(path.stat().st_size for path in downloads.rglob("*") if path.is_file()) < 200_000_000


@pytest.mark.long
@BOTH
async def test_a_redirect_takes_no_password_to_another_host(tmp_path: Path, pin: str, language: Language) -> None:
    with Index(user=USER) as corporate, Index(host="localhost") as other:
        offer(other, language)
        for path in (*pages(language), *archives(language)):
            corporate.odd[path] = redirect(other.url + path)
        async with building(tmp_path, corporate) as service:
            with contextlib.suppress(HostError):  # the build may fail or succeed; only the requests are checked
                await evaluated(service, RETURNS_ONE[language], pin, language=language)
        assert corporate.asked
        basic = base64.b64encode(USER.encode()).decode()
        assert [asked for asked in other.asked if basic in (asked.authorization or "")] == []
        nothing_left(tmp_path)


@pytest.mark.sampled(6)
@BOTH
@pytest.mark.parametrize("target", ["file:///etc/passwd", "http://127.0.0.1:9/", "loop"])
async def test_a_redirect_to_nowhere_or_into_the_host_is_refused(
    index: Index, tmp_path: Path, pin: str, language: Language, target: str
) -> None:
    for path in pages(language):
        index.odd[path] = redirect(path if target == "loop" else target)
    async with building(tmp_path, index, index_timeout_s=20) as service:
        error = await refusal(service, pin, language=language)
    assert isinstance(error, PackagesFailed | IndexUnavailable)
    assert "root:" not in error.detail
    assert installed(tmp_path) == []
    nothing_left(tmp_path)


@pytest.mark.long
@BOTH
async def test_a_package_of_the_same_name_elsewhere_is_never_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin: str, language: Language
) -> None:
    """The host never asks a second index for a package of the same name (dependency confusion), though every usual
    setting points to an index with a newer version.
    """
    with Index() as corporate, Index() as public:
        corporate.add_python(wheel("inhouse", {"inhouse.py": "said = 'ours'"}))
        corporate.add_npm(npm_package("inhouse", {"index.js": "module.exports = 'ours'"}))
        public.add_python(wheel("inhouse", {"inhouse.py": "said = 'evil'"}, version="99.0.0"))
        public.add_npm(npm_package("inhouse", {"index.js": "module.exports = 'evil'"}))
        home = tmp_path / "home"
        (home / ".config" / "uv").mkdir(parents=True)
        (home / ".config" / "uv" / "uv.toml").write_text(f'[[index]]\nurl = "{public.pip_url}"\n')
        (home / ".npmrc").write_text(f"registry={public.npm_url}\n")
        (home / "pip.conf").write_text(f"[global]\nextra-index-url={public.pip_url}\n")
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("PIP_CONFIG_FILE", str(home / "pip.conf"))
        for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
            monkeypatch.setenv(name, public.pip_url)
        for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
            monkeypatch.setenv(name, public.npm_url)
        async with building(tmp_path / "data", corporate) as service:
            if language is PYTHON:
                code = "import inhouse\ndef evaluate(i, o, t): return {'score': 1, 'label': inhouse.said}"
            else:
                code = 'import said from "inhouse"; export const evaluate = (i, o, t) => ({score: 1, label: said})'
            assert (await value_of(service, code, pin, language=language))["label"] == "ours"
        assert public.asked == []


def offer(index: Index, language: Language, name: str = "inhouse") -> None:
    if language is PYTHON:
        index.add_python(wheel(name, {f"{name}.py": "said = 1"}))
    else:
        index.add_npm(npm_package(name, {"index.js": "module.exports = 1"}))


def pages(language: Language, name: str = "inhouse") -> list[str]:
    return [f"/simple/{name}/"] if language is PYTHON else [f"/npm/{name}"]


def archives(language: Language, name: str = "inhouse") -> list[str]:
    if language is PYTHON:
        return [f"/files/{name}-1.0.0-py3-none-any.whl"]
    return [f"/npm/{name}/-/{name}-1.0.0.tgz"]
