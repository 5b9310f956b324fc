"""The host tries to import each package.

The host refuses a harmful package with an error that names the package, and keeps nothing of the package. The next
package set is not affected.

The guard is the trial import in an ordinary sandbox with limits (`environments.health`). Without `_refuse_harm`, each
of these sets would be installed, with only a note.
"""

import hashlib
import io
import tarfile
import zipfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.engine.environments.build import import_check as health
from evaluator_host.engine.environments.record import empty_environment
from evaluator_host.engine.packages.lock import Pin
from evaluator_host.engine.service import Service
from evaluator_host.types.errors import PackagesFailed
from evaluator_host.types.evaluator import Language
from tests.builds import JAVASCRIPT, PYTHON, building, evaluated, installed, nothing_left, refusal, value_of
from tests.indexes import Index
from tests.packages import Archive, npm_package, wheel

PYTHON_HARM = {
    "hangs": ("while True: pass", "does not end within"),
    "floods": ("while True: print('x' * 100_000)", "output"),
    "floodserr": ("import sys\nwhile True: sys.stderr.write('x' * 100_000)", "output"),
    "prints": ("print('x' * 1_000_000)", "output"),
    "exits": ("import sys\nsys.exit(0)", "ends the process"),
    "exitshard": ("import os\nos._exit(0)", "ends the process"),
    "dies": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "ends the process"),
    "crashes": ("import ctypes\nctypes.string_at(0)", "ends the process"),
    "forks": ("import os\nwhile True: os.fork()", "processes"),
    "threads": ("import threading\nwhile True: threading.Thread(target=threading.Event().wait).start()", "processes"),
    "eats": ("kept = []\nwhile True: kept.append(bytearray(20_000_000))", "MB of memory"),
    "fills": ("with open('/tmp/full', 'wb') as f:\n    while True: f.write(bytes(1_000_000))", "MB"),
}
NODE_HARM = {
    "hangs": ("for (;;) {}", "does not end within"),
    "floods": ("for (;;) console.log('x'.repeat(100000))", "does not end within"),
    "exits": ("process.exit(0)", "ends the process"),
    "dies": ("process.kill(process.pid, 'SIGKILL')", "ends the process"),
}


@pytest.fixture(scope="module")
async def service(index: Index, home: Path) -> AsyncIterator[Service]:
    async with building(home, index) as opened:
        yield opened


@pytest.fixture
def short_box(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit a trial import to 300 MB, and to one second for packages that would never end."""
    timeout_s = 1.0 if name in ("hangs", "floods", "floodserr") else 30.0
    monkeypatch.setattr(health, "_IMPORT_S", timeout_s)
    monkeypatch.setattr(health, "_LIMITS", replace(health._LIMITS, timeout_s=timeout_s, memory_mb=300))


def lay_out(archive: Archive, folder: Path) -> None:
    """Unpack an archive into a folder as an installation would, so that every user can read the files."""
    folder.chmod(0o755)
    if archive.file_name.endswith(".whl"):
        zipfile.ZipFile(io.BytesIO(archive.content)).extractall(folder)
        return
    with tarfile.open(fileobj=io.BytesIO(archive.content)) as tar:
        tar.extractall(folder / "unpacked", filter="data")
    (folder / "node_modules").mkdir()
    (folder / "unpacked" / "package").rename(folder / "node_modules" / archive.name)


async def unknown(modules: Sequence[str], _: Language) -> list[str | None]:
    return [None for _ in modules]


async def tried(service: Service, archive: Archive, folder: Path, language: Language) -> str:
    """Let the host try to import a package, and return why it refuses the package.

    The set of a Python package also contains a good package, which is tried first.
    """
    both = [wheel("bystander", {"bystander.py": ""}), archive] if language is PYTHON else [archive]
    for one in both:
        lay_out(one, folder)
    digest = f"sha256:{hashlib.sha256(archive.content).hexdigest()}"
    environment = replace(empty_environment(language), digest=digest, path=folder)
    pins = [Pin(one.name, one.version, (), language) for one in both]
    with pytest.raises(PackagesFailed) as refused:
        await health.check_imports(environment, pins, service.pool.backend, pins_for=unknown)
    return refused.value.detail


def assert_named(detail: str, name: str, words: str) -> None:
    assert f"Importing {name} " in detail
    assert words in detail
    assert len(detail) < 300


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", PYTHON_HARM)
async def test_a_python_package_that_harms_its_importer_is_named(
    service: Service, tmp_path: Path, short_box: None, name: str
) -> None:
    code, words = PYTHON_HARM[name]
    assert_named(await tried(service, wheel(name, {f"{name}.py": code}), tmp_path, PYTHON), name, words)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", NODE_HARM)
async def test_an_npm_package_that_harms_its_importer_is_named(
    service: Service, tmp_path: Path, short_box: None, name: str
) -> None:
    code, words = NODE_HARM[name]
    assert_named(await tried(service, npm_package(name, {"index.js": code}), tmp_path, JAVASCRIPT), name, words)


@pytest.mark.long
async def test_a_set_whose_package_harms_its_importer_is_not_installed(
    service: Service, index: Index, home: Path
) -> None:
    index.add_python(wheel("dies", {"dies.py": PYTHON_HARM["dies"][0]}))
    index.add_python(wheel("bystander", {"bystander.py": ""}))
    index.add_npm(npm_package("dies", {"index.js": NODE_HARM["dies"][0]}))
    refused = (
        await refusal(service, "bystander==1.0.0", "dies==1.0.0"),
        await refusal(service, "dies@1.0.0", language=JAVASCRIPT),
    )
    for error in refused:
        assert isinstance(error, PackagesFailed)
        assert_named(error.detail, "dies", "ends the process")
    assert installed(home) == []
    nothing_left(home)


@pytest.mark.long
async def test_a_package_that_raises_is_noted_and_the_rest_of_its_set_works(service: Service, index: Index) -> None:
    index.add_python(wheel("raises", {"raises.py": "import nosuchlibrary"}))
    index.add_python(wheel("fine", {"fine.py": "said = 3"}))
    code = "import fine\ndef evaluate(i, o, t): return fine.said"
    result = await evaluated(service, code, "raises==1.0.0", "fine==1.0.0")
    assert result.score == 3
    report = await service.environments.find_report(result.environment.digest)
    assert any("raises cannot be imported: ModuleNotFoundError" in note for note in report.notes)


async def test_files_that_a_small_package_reads_in_use_are_compiled_too(
    service: Service, index: Index, home: Path
) -> None:
    index.add_python(wheel("lazily", {"lazily/__init__.py": "", "lazily/later/used.py": "said = 4"}))
    code = "import lazily.later.used\ndef evaluate(i, o, t): return lazily.later.used.said"
    assert (await evaluated(service, code, "lazily==1.0.0")).score == 4
    [files] = [files for files in installed(home) if (files / "lazily").exists()]
    assert len(list(files.glob("lazily/later/__pycache__/used.*.pyc"))) == 1


LIES = """
import builtins, importlib, os, sys, time
class Lie(str):
    def __sub__(self, other): return self
    def __mul__(self, other): return 'no number'
time.perf_counter = Lie
real = importlib.import_module
def forged(name, *rest):
    module = real(name, *rest)
    for number in range(50):
        fake = type(sys)(f"fake{number}")
        fake.__file__ = "/opt/packages/" + "../" * number + "etc/passwd.py\\x00\\n/opt/packages/../../x.py"
        sys.modules[f"fake{number}"] = fake
    return module
importlib.import_module = forged
"""


@pytest.mark.long
async def test_a_packages_own_statements_about_its_trial_are_not_trusted(
    service: Service, index: Index, home: Path
) -> None:
    """The host does not trust what a package says during its own trial import. This package changes the clock, and
    claims that files of the host are its sources, which would then be compiled.
    """
    index.add_python(wheel("liar", {"liar.py": LIES}))
    index.add_python(wheel("zfine", {"zfine.py": ""}))
    code = "def evaluate(i, o, t): return 1"
    assert await value_of(service, code, "liar==1.0.0", "zfine==1.0.0") == 1
    nothing_left(home)
