"""Strings that are not pins would make uv or npm do something else. The host refuses each of them before it starts uv
or npm.

The guard is `packages.pins.parse`. Without it, uv and npm would get these strings: they would send requests to the
index, and `-r` would read a file.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import InvalidPin
from evaluator_host.types.evaluator import Language
from tests.builds import JAVASCRIPT, PYTHON, building, installed, nothing_left, refusal
from tests.indexes import Index
from tests.packages import npm_package, wheel


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with Index() as serving:
        serving.add_python(wheel("good", {"good.py": ""}))
        serving.add_npm(npm_package("good", {"index.js": ""}))
        yield serving


@pytest.fixture(scope="module")
async def service(index: Index, home: Path) -> AsyncIterator[Service]:
    async with building(home, index) as opened:
        yield opened


@pytest.mark.sampled(40)
@pytest.mark.parametrize(
    ("pin", "language"),
    [
        ("evil @ URL/evil-1.0.0-py3-none-any.whl", PYTHON),
        ("URL/evil-1.0.0-py3-none-any.whl", PYTHON),
        ("git+https://example.invalid/evil.git", PYTHON),
        ("-r /etc/passwd", PYTHON),
        ("-r/etc/passwd", PYTHON),
        ("-c constraints.txt", PYTHON),
        ("-e .", PYTHON),
        ("--index-url=URL", PYTHON),
        ("--extra-index-url URL", PYTHON),
        ("good==1.0.0 --index-url URL", PYTHON),
        ("good==1.0.0 --hash=sha256:00", PYTHON),
        ("good==1.0.0; python_version > '3' or evil", PYTHON),
        ("good==1.0.0;python_version>'3'\nevil==1.0.0", PYTHON),
        ("good==1.0.0\nevil==1.0.0", PYTHON),
        ("good==1.0.0\r\n--index-url=URL", PYTHON),
        ("good==1.0.0\\\n--pre", PYTHON),
        ("good==1.0.0 # comment", PYTHON),
        ("./evil", PYTHON),
        ("/tmp/evil-1.0.0.tar.gz", PYTHON),
        ("file:///tmp/evil", PYTHON),
        ("good==1.0.0,==2.0.0", PYTHON),
        ("good===1.0.0 ; x", PYTHON),
        ("good==1.*", PYTHON),
        ("../../evil==1.0.0", PYTHON),
        ("good==../../1", PYTHON),
        ("${HOME}==1.0.0", PYTHON),
        ("good@URL/evil.tgz", JAVASCRIPT),
        ("URL/evil.tgz", JAVASCRIPT),
        ("good@npm:evil@1.0.0", JAVASCRIPT),
        ("good@file:../evil", JAVASCRIPT),
        ("good@git+ssh://git@example.invalid/evil.git", JAVASCRIPT),
        ("evil/evil", JAVASCRIPT),
        ("./evil", JAVASCRIPT),
        ("--registry=URL", JAVASCRIPT),
        ("good@1.0.0 --registry=URL", JAVASCRIPT),
        ("good@1.0.0\nevil@1.0.0", JAVASCRIPT),
        ("good@1.0.0; rm -rf /", JAVASCRIPT),
        ("good@$(id)", JAVASCRIPT),
        ("../../evil@1.0.0", JAVASCRIPT),
        ("@scope/../evil@1.0.0", JAVASCRIPT),
    ],
)
async def test_a_string_that_is_not_a_pin_is_refused_by_name_and_nothing_is_requested_for_it(
    service: Service, index: Index, home: Path, pin: str, language: Language
) -> None:
    index.asked.clear()
    good = "good==1.0.0" if language is PYTHON else "good@1.0.0"
    error = await refusal(service, good, pin.replace("URL", index.url), language=language)
    assert isinstance(error, InvalidPin)
    assert [problem.field for problem in error.problems] == ["evaluator.packages[1]"]
    assert [path for path in index.paths() if "evil" in path or "passwd" in path] == []
    assert installed(home) == []
    nothing_left(home)
