"""If many packages are looked up at once, certificates are not read, and names are not compared, on the event loop."""

import builtins
import difflib
import io
import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import certifi
import pytest

from evaluator_host.engine.packages import index as index_settings
from evaluator_host.engine.packages.index import IndexSettings, npm_workspace
from evaluator_host.engine.packages.lock import LockTarget
from evaluator_host.engine.packages.pin_parser import parse
from evaluator_host.engine.packages.pip.programs import PipPrograms
from evaluator_host.engine.packages.providers import ImportedModule, find_providers, named_provider
from evaluator_host.engine.packages.suggest import suggest
from evaluator_host.engine.packages.tools import Resolver
from evaluator_host.engine.system.processes import Command, Finished
from evaluator_host.types.errors import InvalidPin
from evaluator_host.types.evaluator import Language

COUNT = 20
TARGET = LockTarget("3.11", "x86_64", (2, 36))


@pytest.fixture
def index(tmp_path: Path) -> IndexSettings:
    address = "https://user:word@index.test/simple"
    return IndexSettings(
        tmp_path / "cache", pip_index_url=address, ca_file=Path(certifi.where()), work_dir=tmp_path / "work"
    )


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, index: IndexSettings) -> Counter[tuple[str, bool]]:
    """Counts how often certificates are read, files are opened or names are compared, on the event loop's thread and on
    other threads.

    Files of other hosts on the same loop are not counted.
    """
    named_provider("warm", Language.PYTHON)  # this reads the tables of names, which happens only once in a process
    calls: Counter[tuple[str, bool]] = Counter()
    loop = threading.get_ident()

    def is_own(file: Any) -> bool:
        return str(file).startswith(str(index.cache_dir.parent)) or file == index.ca_file

    def count(place: Any, name: str, what: str) -> None:
        real: Callable[..., Any] = getattr(place, name)

        def noted(*args: Any, **more: Any) -> Any:
            calls[what, threading.get_ident() == loop] += what != "files" or is_own(args[0])
            return real(*args, **more)

        monkeypatch.setattr(place, name, noted)

    count(index_settings, "require_authorities", "certificates")
    count(builtins, "open", "files")
    count(io, "open", "files")
    count(difflib, "get_close_matches", "names")
    return calls


async def answered(command: Command, _timeout_s: float) -> Finished:
    return Finished(0, json.dumps({"found": False, "version": None, "has": {}}), "")


async def test_imports_of_unknown_packages(index: IndexSettings, counted: Counter[tuple[str, bool]]) -> None:
    modules = [ImportedModule(f"nobody{number}") for number in range(COUNT)]
    resolver = Resolver(index, TARGET, run=answered)
    await find_providers(modules, Language.PYTHON, resolver=resolver, programs=PipPrograms())
    assert counted["certificates", False] == COUNT <= counted["files", False]
    assert [what for (what, is_loop), times in counted.items() if times and is_loop] == []


@pytest.mark.long
async def test_pins_of_unknown_packages(index: IndexSettings, counted: Counter[tuple[str, bool]]) -> None:
    raw = [f"beautifulsouper{number}" for number in range(COUNT)]
    with pytest.raises(InvalidPin) as refused:
        parse(raw, Language.PYTHON)
    counted.clear()
    await suggest(refused.value.problems, raw, Language.PYTHON, target=TARGET, index=index, run=answered)
    assert (counted["certificates", False], counted["names", False]) == (2 * COUNT, COUNT)
    assert [what for (what, is_loop), times in counted.items() if times and is_loop] == []


async def test_workspaces_of_npm(index: IndexSettings, counted: Counter[tuple[str, bool]]) -> None:
    async with npm_workspace(index) as workspace:
        assert (workspace.path / "home" / "user.npmrc").stat().st_mode & 0o077 == 0
    assert counted["certificates", False] == 1
    assert [what for (what, is_loop), times in counted.items() if times and is_loop] == []
