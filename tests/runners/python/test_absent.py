"""The runner reports imports of modules that do not exist, even if the code catches the error."""

from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess, body

EVALUATE = "\ndef evaluate(inputs, outputs, trace):\n    return 1.0\n"
IN_A_ROW = "def evaluate(inputs, outputs, trace):\n    try:\n        {0}\n    except {1}:\n        return 0.0\n    return 1.0\n"

CHAIN = (
    "try:\n    import ujsonx as json\nexcept ImportError:\n    try:\n        import orjsonx as json\n"
    "    except ImportError:\n        "
)


def told(frame: Any) -> list[tuple[str, int]]:
    return [(one["module"], one["line"]) for one in body(frame).get("missing_imports", [])]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("try:\n    import numpyx as np\nexcept ImportError:\n    np = None", [("numpyx", 2)]),
        ("try:\n    from numpyx.linalg import norm\nexcept Exception:\n    def norm(x): return 0", [("numpyx", 2)]),
        ("try:\n    import numpyx\nexcept ImportError:\n    import sys\n    sys.stderr.write('none')", [("numpyx", 2)]),
        ("import contextlib\nwith contextlib.suppress(ImportError):\n    import numpyx", [("numpyx", 3)]),
        (
            "import importlib\ntry:\n    importlib.import_module('numpyx')\nexcept ImportError:\n    pass",
            [("numpyx", 3)],
        ),
        ("import importlib.util\nHAS = importlib.util.find_spec('numpyx') is not None", [("numpyx", 2)]),
        ("try:\n    import numpyx, scipyx\nexcept ImportError:\n    pass", [("numpyx", 2)]),
        ("try:\n    from google.cloud import storagex\nexcept ImportError:\n    pass", [("google.cloud.storagex", 2)]),
        (
            CHAIN + "json = None",
            [("ujsonx", 2), ("orjsonx", 5)],
        ),
        # the code imports another module under the same name instead
        ("try:\n    import ujsonx as json\nexcept ImportError:\n    import json", []),
        ("try:\n    import tomlx as toml\nexcept ModuleNotFoundError:\n    import tomllib as toml", []),
        (
            CHAIN + "import json",
            [],
        ),
        (
            "from importlib.util import find_spec\nif find_spec('ujsonx'):\n    import ujsonx as json\nelse:\n    import json",
            [],
        ),
        (
            "import importlib\ntry:\n    json = importlib.import_module('ujsonx')\nexcept ImportError:\n    import json",
            [],
        ),
        # modules that no package provides, and names that a module does not have
        ("try:\n    import winreg\nexcept ImportError:\n    winreg = None", []),
        ("try:\n    from json import no_such_name\nexcept ImportError:\n    pass", []),
        ("try:\n    import json.no_such_part\nexcept ImportError:\n    pass", []),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpyx", []),
        ("import ctypes, sqlite3, xml.sax, encodings, ssl, decimal", []),
    ],
)
def test_an_import_that_is_caught_while_loading(runner: RunnerProcess, code: str, missing: list[Any]) -> None:
    frame = runner.load(code + EVALUATE)
    assert (frame.type, told(frame)) == ("loaded", missing)
    assert "missing_imports" not in body(runner.call({}, None, None))


@pytest.mark.parametrize(
    ("statement", "caught", "module"),
    [
        ("import numpyx", "ImportError", "numpyx"),
        ("from numpyx.a import b", "Exception", "numpyx"),
        ("__import__('numpyx')", "ModuleNotFoundError", "numpyx"),
        ("(lambda: __import__('numpyx'))()", "ModuleNotFoundError", "numpyx"),
    ],
)
def test_an_import_that_a_row_catches(runner: RunnerProcess, statement: str, caught: str, module: str) -> None:
    assert told(runner.load(IN_A_ROW.format(statement, caught))) == []
    for share in (None, "a", "a"):
        answer = runner.call({}, None, None, share=share)
        assert (answer.type, body(answer)["value"], told(answer)) == ("result", 0.0, [(module, 3)])


def test_an_import_that_is_not_caught_is_reported_with_the_error(runner: RunnerProcess) -> None:
    frame = runner.load("\nimport numpyx.linalg\n" + EVALUATE)
    assert (frame.type, told(frame)) == ("load_failed", [("numpyx", 2)])


def test_an_import_of_a_row_that_fails_by_it(runner: RunnerProcess) -> None:
    runner.load("def evaluate(inputs, outputs, trace):\n    import numpyx\n    return 1\n")
    answer = runner.call({}, None, None)
    assert (answer.type, told(answer)) == ("failed", [("numpyx", 2)])


def test_a_client_of_a_package_that_is_not_pinned(runner: RunnerProcess) -> None:
    code = "import openai\nclient = openai.OpenAI()\n" + IN_A_ROW.format("client.models.list()", "Exception")
    assert told(runner.load(code)) == []
    answer = runner.call({}, None, None)
    assert (body(answer)["value"], told(answer)) == (0.0, [("openai", 5)])


def test_a_caught_import_by_an_extension_module_is_optional(runner: RunnerProcess) -> None:
    runner.load("import pickle\n" + IN_A_ROW.format("pickle.loads(b'cnumpyx\\narray\\n.')", "ImportError"))
    found = body(runner.call({}, None, None))["missing_imports"]
    assert found == [{"module": "numpyx", "line": 4, "optional": True}]


def test_files_of_the_evaluator_are_its_own_code(runner: RunnerProcess) -> None:
    files = {"helpers.py": "import json\ntry:\n    import numpyx\nexcept ImportError:\n    numpyx = None\n"}
    frame = runner.load("import helpers\n" + EVALUATE, body={"files": files, "path": None})
    assert body(frame)["missing_imports"] == [{"module": "numpyx", "line": 3, "file": "helpers.py"}]


@pytest.mark.long
def test_a_guest_cannot_make_it_long(runner: RunnerProcess) -> None:
    code = "for i in range(5000):\n    try:\n        __import__('m' * 500 + str(i))\n    except ImportError:\n        pass\n"
    many = "\n".join(f"try: import m{i}\nexcept ImportError: pass" for i in range(300))
    assert len(told(runner.load(code + many + EVALUATE))) <= 20


@pytest.mark.timeout(60)  # to read the code again for each import would take much longer
def test_very_many_missing_imports_are_read_once(runner: RunnerProcess) -> None:
    names = [f"numpyx{number}" for number in range(2000)]
    caught = "".join(f"try:\n    import {name}\nexcept ImportError:\n    {name} = None\n" for name in names)
    answer = runner.load(caught + EVALUATE, body={"known": dict.fromkeys(names, "")})
    assert (answer.type, len(told(answer))) == ("loaded", 20)
