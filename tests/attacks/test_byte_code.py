"""Byte code in package sets. On every backend, the Python version that imports packages also compiles them, and the
host writes the byte code only to the right place.

The guards: a sandbox without packages compiles, and the host writes only through descriptors
(`environments.build.byte_code`). A `.pyc` is trusted as much as the `.py` beside it, but a package must not decide
where or how much the host writes.
"""

import importlib.util
import marshal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evaluator_host.engine.environments.build import byte_code
from evaluator_host.engine.environments.build.byte_code import compile_sources
from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, Row
from tests.builds import building, installed
from tests.engines import engine_address
from tests.indexes import Index
from tests.packages import wheel
from tests.python_versions import OTHER, OWN

ROOM = 1 << 20
TAG = f"cpython-{OWN.replace('.', '')}"
MANY = "\n".join(f"def f{number}(a, b={number}):\n    return [a, b, {{'c': a}}]" for number in range(1500))
# This evaluator imports `many.text` and then compiles its source in the same process. The score is the processor time
# of compiling, divided by that of importing.
IMPORTED = """
import time
def evaluate(inputs, outputs, trace):
    started = time.process_time()
    import many.text as it
    imported = time.process_time()
    compile(open(it.__file__).read(), it.__file__, "exec")
    return {"score": (time.process_time() - imported) / (imported - started), "reason": it.__cached__}
"""


@pytest.fixture(scope="module")
async def service(index: Index, home: Path) -> AsyncIterator[Service]:
    async with building(home, index) as opened:
        yield opened


@pytest.mark.long
@pytest.mark.parametrize("python", [OWN, OTHER])
async def test_a_set_is_compiled_by_its_own_python(service: Service, index: Index, home: Path, python: str) -> None:
    index.add_python(wheel("many", {"many/__init__.py": "", "many/text.py": MANY}))
    result = await service.evaluate(Evaluator(IMPORTED, packages=("many==1.0.0",), python=python), Row())
    assert result.error is None, result.error
    name = f"many/__pycache__/text.cpython-{python.replace('.', '')}.pyc"
    assert result.reason == f"/opt/packages/{name}"
    assert [files for files in installed(home) if (files / name).is_file()]
    assert result.score is not None
    assert result.score > 5, "the byte code must be read, not compiled again"


@pytest.mark.long
async def test_a_set_of_containers_is_compiled_by_the_python_of_their_image(index: Index, tmp_path: Path) -> None:
    index.add_python(wheel("many", {"many/__init__.py": "", "many/text.py": MANY}))
    address = engine_address()
    async with building(tmp_path, index, sandbox="docker", docker_host=address) as containers:
        result = await containers.evaluate(Evaluator(IMPORTED, packages=("many==1.0.0",)), Row())
        assert result.error is None, result.error
        assert result.reason == "/opt/packages/many/__pycache__/text.cpython-313.pyc"
        assert result.score is not None
        assert result.score > 5, "the byte code must be read, not compiled again"
        [verified] = await containers.environments.verify()
        assert not verified.broken, "the image must have the same files as the folder"


async def compiled(service: Service, files: Path, *names: str, room_bytes: int = ROOM) -> list[str]:
    """Compile files, and return the names of the byte code files that exist afterwards."""
    await compile_sources(files, names, python=OWN, backend=service.pool.backend, room_bytes=room_bytes)
    return byte_code_of(files)


def byte_code_of(files: Path) -> list[str]:
    return sorted(path.relative_to(files).as_posix() for path in files.rglob("*.pyc"))


def laid_out(folder: Path, **texts: str) -> Path:
    """Write a package set with these modules (name=source), and return its folder."""
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return folder


async def test_nothing_of_the_set_runs_while_it_is_compiled(service: Service, tmp_path: Path) -> None:
    harm = "import os\nos._exit(7)"
    files = laid_out(tmp_path / "set", sitecustomize=harm, marshal=harm, importlib=harm, encodings=harm)
    (files / "runs.pth").write_text("import os; os._exit(7)")
    names = sorted(path.name for path in files.glob("*.py"))
    found = await compiled(service, files, *names)
    assert found == [f"__pycache__/{name.removesuffix('.py')}.{TAG}.pyc" for name in names]


async def test_byte_code_is_what_the_import_system_takes(service: Service, tmp_path: Path) -> None:
    files = laid_out(tmp_path / "set")
    (files / "latin.py").write_bytes("# coding: latin-1\nsaid = 'é'\n".encode("latin-1"))
    [name] = await compiled(service, files, "latin.py")
    code, about = (files / name).read_bytes(), (files / "latin.py").stat()
    assert code[:4] == importlib.util.MAGIC_NUMBER
    assert [int.from_bytes(code[at : at + 4], "little") for at in (4, 8, 12)] == [0, int(about.st_mtime), about.st_size]
    said: dict[str, str] = {}
    exec(marshal.loads(code[16:]), said)
    assert said["said"] == "é"


async def test_links_lead_no_byte_code_elsewhere(service: Service, tmp_path: Path) -> None:
    files, elsewhere = laid_out(tmp_path / "set", linked="", shared=""), tmp_path / "elsewhere"
    for folder in ("fine", "inner", "plain"):
        (files / folder).mkdir()
        (files / folder / "a.py").write_text("")
    laid_out(elsewhere, target="")
    (files / "inner/__pycache__").symlink_to(elsewhere)
    (files / "plain/__pycache__").write_text("a file")
    (files / "outer").symlink_to(elsewhere)
    (files / "__pycache__").mkdir()
    (elsewhere / "kept").write_text("kept")
    (files / f"__pycache__/linked.{TAG}.pyc").symlink_to(elsewhere / "kept")
    (files / f"__pycache__/shared.{TAG}.pyc").hardlink_to(elsewhere / "kept")
    names = [
        "fine/a.py",
        "inner/a.py",
        "plain/a.py",
        "linked.py",
        "shared.py",
        "outer/target.py",
        "../elsewhere/target.py",
    ]
    found = await compiled(service, files, *names)
    assert found == [f"__pycache__/linked.{TAG}.pyc", f"__pycache__/shared.{TAG}.pyc", f"fine/__pycache__/a.{TAG}.pyc"]
    assert sorted(path.name for path in elsewhere.iterdir()) == ["kept", "target.py"]
    assert (elsewhere / "kept").read_text() == "kept"
    assert not any((files / name).is_symlink() for name in found)


async def test_sources_that_harm_a_compiler_cost_themselves_only(service: Service, tmp_path: Path) -> None:
    harm = {
        "deep": "(" * 100_000,
        "nested": "-" * 500_000 + "1",
        "nul": "a\0b",
        "huge": "#" * (1 << 20) + "\n",
        "text": "a b",
    }
    files = laid_out(tmp_path / "set", **harm, fine="said = 1\n")
    long = "n" * 250
    (files / f"{long}.py").write_text("")
    await compiled(service, files, *(f"{name}.py" for name in harm), f"{long}.py", "gone.py")
    assert await compiled(service, files, "fine.py") == [f"__pycache__/fine.{TAG}.pyc"]


async def test_byte_code_is_limited_in_size(service: Service, tmp_path: Path) -> None:
    """The host stores no more byte code than there is space for. Three files are small as source, but each takes 400 KB
    when it is compiled. There is space for two of them, and for a small last file.
    """
    folded = "\n".join(f"v{number} = 'x' * 4000 + '{number}'" for number in range(100))
    files = laid_out(tmp_path / "set", a=folded, b=folded, c=folded, d="")
    found = await compiled(service, files, "a.py", "b.py", "c.py", "d.py", room_bytes=1_000_000)
    assert found == [f"__pycache__/{name}.{TAG}.pyc" for name in ("a", "b", "d")]
    assert sum((files / name).stat().st_size for name in found) <= 1_000_000


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "said",
    [
        "7",
        "'00'",
        "{'a.py': '00'}",
        "[7, None]",
        "['no digits', b'00'.hex() * 0 + 'ab\\x00']",
        "['00'] * 9",
        "[['00']]",
    ],
)
async def test_the_answer_of_a_sandbox_is_not_trusted(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """The host does not trust the answer of a sandbox; here, it comes from a program that has taken over the compiler."""
    monkeypatch.setattr(byte_code, "_COMPILE", f"def main(sources):\n    return {said}\n")
    files = laid_out(tmp_path / "set", a="", b="")
    found = await compiled(service, files, "a.py", "b.py")
    assert set(found) <= {f"__pycache__/a.{TAG}.pyc", f"__pycache__/b.{TAG}.pyc"}
    assert all((files / name).read_bytes() == b"\0" for name in found)
