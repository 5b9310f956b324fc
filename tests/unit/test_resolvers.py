"""The tools that resolve pins get no credentials in their arguments, the host shortens their errors, and a lock that
was changed is refused.
"""

import asyncio
from pathlib import Path

import pytest

from evaluator_host.engine.packages.index import IndexSettings, npm_workspace, uv_workspace
from evaluator_host.engine.packages.lock import Lock, LockedPackage, LockTarget, Pin
from evaluator_host.engine.packages.tools import shorten
from evaluator_host.types.evaluator import Language


def operator_index(directory: Path) -> IndexSettings:
    return IndexSettings(
        cache_dir=directory,
        pip_index_url="https://bob:p%40ss-w0rd@index.example.org/simple",
        npm_registry="https://index.example.org/npm",
        npm_token="npm_t0ken",
        proxy="http://eve:pr0xy-pass@proxy.example.org:3128",
    )


async def test_credentials_never_reach_an_argument_a_message_or_a_repr(tmp_path: Path) -> None:
    index = operator_index(tmp_path)
    said = "Failed: https://bob:p%40ss-w0rd@index.example.org/simple p@ss-w0rd npm_t0ken http://eve:pr0xy-pass@proxy"
    async with uv_workspace(index) as uv, npm_workspace(index) as npm:
        shown = shorten(said, index) + repr(index) + repr(uv) + repr(npm) + uv.environment["UV_DEFAULT_INDEX"]
        rc_file = Path(npm.environment["npm_config_userconfig"])
        rc_text, rc_mode = await asyncio.to_thread(lambda: (rc_file.read_text(), rc_file.stat().st_mode))
        assert uv.environment["UV_INDEX_OPERATOR_PASSWORD"] == "p@ss-w0rd"
        assert '//index.example.org/npm/:_authToken="npm_t0ken"' in rc_text
        assert rc_mode & 0o077 == 0
    assert not uv.path.is_dir()
    assert not npm.path.is_dir()
    for secret in ("p%40ss-w0rd", "p@ss-w0rd", "npm_t0ken", "pr0xy-pass"):
        assert secret not in shown


def test_a_builder_gets_addresses_without_credentials(tmp_path: Path) -> None:
    public = operator_index(tmp_path).for_builder()
    assert public.secrets == ()
    assert public.pip_index_url == "https://index.example.org/simple"
    assert public.cache_dir != tmp_path


def test_words_of_a_resolver_are_shortened(tmp_path: Path) -> None:
    said = "\x1b[31merror\x1b[0m: /home/ann/.cache/uv/x.lock broke\n\n" + "line\n" * 50
    lines = shorten(said, IndexSettings(cache_dir=tmp_path)).splitlines()
    assert lines[0] == "error: … broke"
    assert len(lines) == 15


def a_lock() -> Lock:
    pins = (Pin("numpy", "2.1.0"), Pin("requests", "2.32.3", ("socks",)))
    packages = (LockedPackage("numpy", "2.1.0", requested=True, hashes=("sha256:00",), dependencies=("x",)),)
    return Lock(
        Language.PYTHON, LockTarget("3.13"), pins, packages, "numpy==2.1.0 \\\n    --hash=sha256:00\n", notes=("note",)
    )


def test_a_stored_lock_reads_back_the_same() -> None:
    assert Lock.from_json(a_lock().to_json()) == a_lock()


@pytest.mark.parametrize("change", [("sha256:00", "sha256:11"), ("3.13", "3.12"), ("x86_64", "aarch64"), ("{", "[")])
def test_a_changed_lock_is_refused(change: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=r"lock|Expecting"):
        Lock.from_json(a_lock().to_json().replace(*change))
