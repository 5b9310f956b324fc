"""Code imports files that are sent with an evaluator as modules or reads them as data, and each row finds them
unchanged.
"""

from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess, body

SCORE = "def evaluate(inputs, outputs, trace):\n    return score()\n"


def load(runner: RunnerProcess, code: str, files: dict[str, str], path: str | None = None, **header: Any) -> Any:
    data = {"data_files": True} if any(not name.endswith(".py") for name in files) else {}
    return runner.load(code, body={"files": files, "path": path}, **data, **header)


def test_modules_packages_and_folders_are_imported(runner: RunnerProcess) -> None:
    files = {
        "models.py": "ONE = 1",
        "pkg/__init__.py": "from .inner import two\nfrom . import deeper",
        "pkg/inner.py": "from models import ONE\ndef two(): return ONE + 1",
        "pkg/deeper/__init__.py": "from ..inner import two as again",
        "folder/leaf.py": "FOUR = 4",
    }
    code = (
        "from models import ONE\nimport pkg.inner, folder.leaf, inspect\nfrom pkg.deeper import again\n"
        "def evaluate(inputs, outputs, trace):\n"
        "    return [ONE, pkg.two(), again(), folder.leaf.FOUR, inspect.getsource(pkg.inner.two)]\n"
    )
    loaded = load(runner, code, files, check=True)
    assert body(loaded)["missing_imports"] == []
    assert body(runner.call(None, None, None))["value"] == [1, 2, 2, 4, "def two(): return ONE + 1\n"]


def test_code_that_lies_deeper_imports_what_is_beside_it_and_above(runner: RunnerProcess) -> None:
    files = {"evals/helper.py": "x = 1", "evals/__init__.py": "", "lib/text.py": "y = 2"}
    code = (
        "from .helper import x\nfrom evals import helper\nimport helper as beside\nfrom lib import text\n"
        "def evaluate(inputs, outputs, trace):\n    return [x, helper.x, beside.x, text.y, __file__, __package__]\n"
    )
    load(runner, code, files, "evals/score.py")
    assert body(runner.call(None, None, None))["value"] == [1, 1, 1, 2, "evals/score.py", "evals"]


def test_the_package_around_an_evaluator_may_import_it(runner: RunnerProcess) -> None:
    files = {"pkg/__init__.py": "from .score import LIMIT, evaluate", "pkg/text.py": "WORDS = 2"}
    code = "from .text import WORDS\nLIMIT = 3\ndef evaluate(inputs, outputs, trace):\n    return LIMIT + WORDS\n"
    load(runner, code, files, "pkg/score.py")
    assert body(runner.call(None, None, None))["value"] == 5


def test_a_client_that_a_file_makes_has_a_key_as_in_the_code(runner: RunnerProcess) -> None:
    files = {"llm.py": "import os\n# openai\nhas_key = bool(os.environ.get('OPENAI_API_KEY'))"}
    load(runner, f"import llm\ndef score(): return llm.has_key\n{SCORE}", files)
    assert body(runner.call(None, None, None))["value"] is True


def test_a_traceback_names_the_file(runner: RunnerProcess) -> None:
    load(runner, f"from lib.models import score\n{SCORE}", {"lib/models.py": "\ndef score():\n    return 1 / 0\n"})
    error = body(runner.call(None, None, None))["error"]
    assert error["line"] == 3
    assert 'File "lib/models.py", line 3, in score\n    return 1 / 0\n' in error["traceback"]


def test_data_files_are_read_by_path_beside_the_file_and_as_resources(runner: RunnerProcess) -> None:
    files = {
        "data/words.json": '["é"]',
        "lib/__init__.py": "",
        "lib/own.py": "from pathlib import Path\nimport pkgutil\n"
        "text = Path(__file__).with_name('own.txt').read_text()\n"
        "def packed(): return pkgutil.get_data('lib', 'own.txt').decode()",
        "lib/own.txt": "of its own",
    }
    code = (
        "import json, os\nfrom pathlib import Path\nfrom lib import own\n"
        "at_load = json.loads((Path(__file__).parent / 'data' / 'words.json').read_text())\n"
        "def evaluate(inputs, outputs, trace):\n"
        "    return [at_load, json.load(open('data/words.json')), own.text, own.packed()]\n"
    )
    load(runner, code, files)
    assert body(runner.call(None, None, None))["value"] == [["é"], ["é"], "of its own", "of its own"]


@pytest.mark.parametrize("share", [None, "one"])
def test_a_rows_changes_to_a_file_are_gone_before_the_next_row(runner: RunnerProcess, share: str | None) -> None:
    code = (
        "import os\ndef evaluate(inputs, outputs, trace):\n    seen = [open('a.txt').read(), sorted(os.listdir('.'))]\n"
        "    open('a.txt', 'w').write('changed'); open('more', 'w').close(); os.mkdir('sub'); os.unlink('d/b.txt')\n"
        "    os.symlink('/etc/passwd', 'd/b.txt')\n    return seen\n"
    )
    loaded = load(runner, code, {"a.txt": "first", "d/b.txt": "b"})
    assert loaded.header["notes"] == []
    for number in range(3):
        value = body(runner.call(None, None, None, share=None if share is None else f"{share} {number}"))["value"]
        assert value == ["first", ["a.txt", "d"]]


def test_files_that_loading_leaves_beside_the_data_are_reported(runner: RunnerProcess) -> None:
    code = "open('d/left', 'w').close()\ndef evaluate(inputs, outputs, trace):\n    return 1\n"
    loaded = load(runner, code, {"d/b.txt": "b"})
    assert [note["code"] for note in loaded.header["notes"]] == ["files_at_load"]


def test_a_missing_module_is_reported_with_its_file(runner: RunnerProcess) -> None:
    code = "from .gone import a\nimport lib.other, nowhere\ndef evaluate(inputs, outputs, trace):\n    return 1\n"
    files = {"lib/other.py": "import pandas_of_nobody\nfrom . import missing"}
    loaded = load(runner, code, files, "evals/score.py", check=True)
    found = [(one["module"], one["line"], one.get("file")) for one in body(loaded)["missing_imports"]]
    assert found == [
        ("evals.gone", 1, None),
        ("nowhere", 2, None),
        ("pandas_of_nobody", 1, "lib/other.py"),
        ("lib.missing", 2, "lib/other.py"),
    ]
