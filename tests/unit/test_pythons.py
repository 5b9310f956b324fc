"""Python interpreters are found at configured paths, on the PATH and in home folders; other files are ignored."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator_host.engine.backends import backend_findings, choose_backend
from evaluator_host.engine.config.settings import Settings, python_homes, search_path
from evaluator_host.engine.sandbox.bubblewrap.mounts import find_python
from evaluator_host.engine.sandbox.pythons import MINORS, PythonFacts, Pythons, own_python, require_glibc
from evaluator_host.types.errors import SandboxUnavailable

OWN = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def another() -> PythonFacts:
    """An interpreter of a different minor version, such as those that uv and pyenv install."""
    pythons = Pythons(search_path=search_path(), homes=python_homes())
    minor = next(minor for minor in pythons.minors() if minor != OWN)
    found = pythons.find_version(minor)
    assert found is not None
    return found


def test_the_own_interpreter_is_always_there() -> None:
    assert Pythons().minors() == (OWN,)
    assert Pythons().find_version(OWN) == own_python()
    assert own_python().executable == (Path(sys.base_prefix).resolve() / "bin" / f"python{OWN}").resolve()


def test_another_is_found_where_it_is_named_and_on_the_path(another: PythonFacts) -> None:
    for pythons in (
        Pythons([another.executable]),
        Pythons([another.prefix]),
        Pythons(search_path=[another.executable.parent]),
    ):
        assert pythons.find_version(another.minor) == another
        assert set(pythons.minors()) == {OWN, another.minor}


def test_a_sandbox_sees_only_files_of_the_chosen_interpreter(another: PythonFacts) -> None:
    seen = find_python(another)
    assert f"python{another.minor}" in seen.executable.name
    assert any(bind.source.name == f"python{another.minor}" and bind.source.is_dir() for bind in seen.binds)
    assert not any(OWN in bind.source.name for bind in seen.binds)


def test_files_that_are_not_interpreters_do_not_count(tmp_path: Path, another: PythonFacts) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    missing = next(minor for minor in MINORS if minor not in (OWN, another.minor))
    for text in ("#!/bin/sh\nexit 1\n", "#!/bin/sh\necho '{}'\n", f'#!/bin/sh\nexec "{another.executable}" "$@"\n'):
        program = folder / f"python{missing}"
        program.write_text(text)
        program.chmod(0o755)
        assert Pythons(search_path=[folder]).find_version(missing) is None
    assert Pythons().find_version("3.99") is None


def test_a_folder_that_is_closed_to_the_host_is_passed_over(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    minor = next(minor for minor in MINORS if minor != OWN)
    code = (
        "import os, sys; from pathlib import Path; from evaluator_host.engine.sandbox import pythons; "
        "own = pythons.own_python(); pythons.own_python = lambda: own; "
        "os.geteuid() or os.setuid(65534); folder = [Path(sys.argv[1])]; "
        "found = pythons.Pythons(folder, search_path=folder, homes=[folder[0] / 'home']); "
        "print(found.find_version(sys.argv[2]))"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(closed), minor], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout.strip()) == (0, "None"), ran.stderr


# the C library as Python 3.14 reports it, and as older versions report it
@pytest.mark.parametrize("told", [("musl", "1.2.5"), ("", "")])
async def test_another_c_library_is_refused_with_the_reason(
    told: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    require_glibc()
    monkeypatch.setattr(platform, "libc_ver", lambda: told)
    settings = Settings(data_dir=tmp_path, sandbox="bubblewrap")
    with pytest.raises(SandboxUnavailable, match=r"musl.*packages that evaluators pin are built for glibc"):
        await choose_backend(settings)
    (finding,) = (await backend_findings(settings))["bubblewrap"]
    assert not finding.ok
    assert "not glibc" in finding.detail
