"""Packages with very large metadata never block the host's event loop for other callers.

Blocking is measured as the processor time that the loop's thread uses in one iteration of the loop, because that time
is the same on a busy machine.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import PackagesFailed
from tests.builds import JAVASCRIPT, building, evaluated, nothing_left, refusal
from tests.indexes import Index
from tests.packages import Archive, npm_package, tarball, wheel

ONE = "def evaluate(i, o, t): return 1"
_BLOCKED_S = 0.25


@pytest.fixture(scope="module")
async def service(index: Index, home: Path) -> AsyncIterator[Service]:
    async with building(home, index) as opened:
        await evaluated(opened, ONE)
        yield opened


@asynccontextmanager
async def never_blocked(service: Service) -> AsyncIterator[None]:
    """Fail if, during the block, an iteration of the event loop takes too much processor time, or if a warm evaluator
    of another workspace scores no row.
    """
    worst, rows, over = 0.0, 0, asyncio.Event()

    async def measure() -> None:
        nonlocal worst
        while not over.is_set():
            before = time.thread_time()
            await asyncio.sleep(0)
            worst = max(worst, time.thread_time() - before)
            await asyncio.sleep(0.01)

    async def call() -> None:
        nonlocal rows
        while not over.is_set():
            assert (await evaluated(service, ONE)).score == 1
            rows += 1
            await asyncio.sleep(0.2)

    tasks = [asyncio.create_task(measure()), asyncio.create_task(call())]
    try:
        yield
    finally:
        over.set()
        await asyncio.gather(*tasks)
    assert worst < _BLOCKED_S
    assert rows > 0


@pytest.mark.long("test_builder_index.py has answers of an index that harm the host")
async def test_a_wheel_of_many_modules(service: Service, index: Index, home: Path) -> None:
    """A wheel with 10,000 modules blocks nobody. The host once compared each module with every other module, which took
    36 seconds.
    """
    modules = {f"m{number:06d}.py": "" for number in range(6_000)}
    index.add_python(wheel("many", {"many.py": "", **modules}))
    async with never_blocked(service):
        assert (await evaluated(service, "import many\n" + ONE, "many==1.0.0")).score == 1
    nothing_left(home)


def manifest_of(name: str, rest: str) -> Archive:
    """Return a package with the given package.json; the package cannot be imported."""
    described = npm_package(name, {}).manifest
    text = json.dumps(described)[:-1] + f', "rest": {rest}}}'
    files = {"package/package.json": text, "package/index.js": "throw new Error('no')"}
    return Archive(name, f"{name}-1.0.0.tgz", tarball(files), manifest=described)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "rest"),
    [("deepjson", "[" * 20_000 + "]" * 20_000), ("bigjson", "[" + "{}," * 2_000_000 + "0]")],
    ids=["nested", "large"],
)
async def test_a_package_json_that_is_nested_or_large(
    service: Service, index: Index, home: Path, name: str, rest: str
) -> None:
    index.add_npm(manifest_of(name, rest))
    async with never_blocked(service):
        error = await refusal(service, f"{name}@1.0.0", language=JAVASCRIPT)
    assert isinstance(error, PackagesFailed)
    assert name in error.detail
    nothing_left(home)


LIES = """
import sys, types
for i in range(30_000):
    module = types.ModuleType(f"lie{i}")
    module.__file__ = f"/opt/packages/q{i}.py"
    sys.modules[f"lie{i}"] = module
"""
ODD = """
import sys, types
for number, name in enumerate(("a" * 5000, "b" * 300, "c\\0d", "\\udcff\\ud800", "../../../etc/passwd")):
    module = types.ModuleType(f"odd{number}")
    module.__file__ = "/opt/packages/" + name + ".py"
    sys.modules[f"odd{number}"] = module
"""
TIMES = """
import time
class Number:
    __rsub__ = __sub__ = lambda self, other: self
    __mul__ = lambda self, other: float("nan")
time.perf_counter = Number
"""


@pytest.mark.long
@pytest.mark.parametrize(("name", "body"), [("lies", LIES), ("odd", ODD), ("times", TIMES)])
async def test_false_statements_of_a_package_about_its_import_block_nobody(
    service: Service, index: Index, home: Path, name: str, body: str
) -> None:
    index.add_python(wheel(name, {f"{name}.py": body}))
    async with never_blocked(service):
        assert (await evaluated(service, ONE, f"{name}==1.0.0")).score == 1
    nothing_left(home)


def offer_odd(index: Index, field: str, value: object) -> str:
    """Offer a package with an odd field in its metadata, and return the package's name."""
    name = f"odd-{field.lower()}"
    index.add_npm(npm_package(name, {"index.js": "module.exports = 1"}))
    kind, body = index.files[f"/npm/{name}"]
    document = json.loads(body)
    document["versions"]["1.0.0"][field] = value
    index.files[f"/npm/{name}"] = (kind, json.dumps(document).encode())
    return name


@pytest.mark.long
@pytest.mark.parametrize(
    ("field", "value"),
    [("optionalDependencies", "x"), ("dependencies", ["a"]), ("os", [1]), ("cpu", 5), ("libc", {"a": 1}),
     ("version", {"a": 1}), ("dist", {"integrity": 5}), ("name", "../../x")],
)  # fmt: skip
async def test_an_odd_document_of_the_registry_is_an_answer(
    service: Service, index: Index, home: Path, field: str, value: object
) -> None:
    error = await refusal(service, f"{offer_odd(index, field, value)}@1.0.0", language=JAVASCRIPT)
    assert isinstance(error, PackagesFailed)
    nothing_left(home)


@pytest.mark.long
async def test_odd_fields_that_npm_ignores_are_installed(service: Service, index: Index, home: Path) -> None:
    fields = {"deprecated": {"a": 1}, "bin": 5, "engines": [None], "peerDependenciesMeta": [1]}
    names = [offer_odd(index, field, value) for field, value in fields.items()]
    imports = "".join(f'import x{number} from "{name}";' for number, name in enumerate(names))
    code = f"{imports} export const evaluate = (i, o, t) => x0 + x1 + x2 + x3"
    pins = [f"{name}@1.0.0" for name in names]
    assert (await evaluated(service, code, *pins, language=JAVASCRIPT)).score == len(names)
    nothing_left(home)
