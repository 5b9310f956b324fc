"""Modules that are sent with an evaluator can be imported, are named in tracebacks, and are found in the right order."""

from pathlib import Path
from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess, body

CALLED = "def evaluate(inputs, outputs, trace):\n    return score()\n"


def files(**modules: str) -> dict[str, dict[str, str]]:
    """Return the body of a load with these modules; each keyword is a module's path, in which `__` stands for a slash."""
    paths = {key.replace("__", "/").replace("/init", "/__init__"): text for key, text in modules.items()}
    return {"files": {f"{path}.py": text for path, text in paths.items()}}


def test_modules_packages_and_folders_are_imported(runner: RunnerProcess) -> None:
    code = (
        '"""Said."""\nfrom __future__ import annotations\nfrom models import ONE\nimport pkg.inner, folder.leaf\n'
        "import inspect\n\ndef evaluate(inputs, outputs, trace):\n    import late\n"
        "    told = inspect.getsource(pkg.inner.two)\n"
        "    return {'score': ONE + pkg.inner.two() + folder.leaf.FOUR + late.EIGHT, 'told': told}\n"
    )
    modules = files(
        models="ONE = 1",
        pkg__init="from .inner import two",
        pkg__inner="from models import ONE\ndef two(): return ONE + 1",
        folder__leaf="FOUR = 4",
        late="EIGHT = 8",
    )
    loaded = runner.load(code, check=True, body=modules)
    assert loaded.header["reason"] == "function evaluate with 3 parameters"
    assert body(loaded)["missing_imports"] == []
    assert body(runner.call(None, None, None))["value"] == {"score": 15, "told": "def two(): return ONE + 1\n"}


def error_of(runner: RunnerProcess, code: str, **header: Any) -> dict[str, Any]:
    frame = runner.load(code, **header)
    assert frame.type == "load_failed", frame
    return dict(body(frame)["error"])


def test_tracebacks_name_the_modules_file_and_the_line_is_the_evaluators(runner: RunnerProcess) -> None:
    runner.load(f"from models import score\n{CALLED}", body=files(models="\ndef score():\n    return 1 / 0\n"))
    error = body(runner.call(None, None, None))["error"]
    assert (error["line"], error["column"]) == (3, 12)
    assert 'File "evaluator.py", line 3, in evaluate\n    return score()\n' in error["traceback"]
    assert 'File "models.py", line 3, in score\n    return 1 / 0\n           ^^^^^\n' in error["traceback"]


def test_a_module_that_does_not_load(runner: RunnerProcess) -> None:
    error = error_of(runner, f"\nimport models\n{CALLED}", body=files(models="x = 1\ndef y(:\n"))
    assert (error["code"], error["type"], error["line"]) == ("load_error", "SyntaxError", 2)
    assert error["message"] == "invalid syntax (models.py, line 2)"


def test_a_module_with_an_import_that_is_missing(runner: RunnerProcess) -> None:
    error = error_of(runner, f"\nimport models\n{CALLED}", body=files(models="import gone"))
    assert (error["message"], error["line"]) == ("No module named 'gone'", 2)
    assert 'File "models.py", line 1, in <module>' in error["traceback"]
    assert error["hint"].startswith("pin the package")


@pytest.mark.parametrize(
    ("statement", "file", "path"),
    [
        ("from .helper import score", "evals/helper.py", "evals/score.py"),
        ("from . import helper as score", "evals/helper.py", "evals/score.py"),
        ("from ..core.texts import norm as score", "evals/core/texts.py", "evals/inner/score.py"),
    ],
)
def test_a_relative_import_says_what_to_send(runner: RunnerProcess, statement: str, file: str, path: str) -> None:
    error = error_of(runner, f"{statement}\n{CALLED}")
    assert f'`files` {{"{file}": "…"}}, `path` "{path}"), or import it by its name alone' in error["hint"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("colorsys.py", "mine"),
        ("custom/colorsys.py", "Python's"),
        ("time.py", "Python's"),
    ],
)
def test_modules_in_the_root_come_before_packages_and_others_after_them(
    runner: RunnerProcess, path: str, found: str
) -> None:
    name = path.rpartition("/")[2].removesuffix(".py")
    code = f"import {name} as m\ndef evaluate(a, b, c):\n    return 'mine' if hasattr(m, 'MINE') else \"Python's\"\n"
    beside = f"{path.rpartition('/')[0]}/evaluator.py".lstrip("/")
    runner.load(code, contract="evaluate", body={"files": {path: "MINE = 1\n"}, "path": beside})
    assert body(runner.call(None, None, None))["value"] == found


def test_the_restricted_policy_has_none_of_them(start: Any, restricted_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "pinned.py").write_text("x = 1\n")
    options = ("--restricted", str(restricted_dir), "--packages", str(tmp_path))
    code = f"from models import score\n{CALLED}"
    error = error_of(start(*options), code, policy="restricted", body=files(models="score = 1"))
    assert (error["code"], "importing `models` is not allowed" in error["message"]) == ("policy_violation", True)
    runner = start(*options)
    code = "import pinned\ndef evaluate(a, b, c):\n    return pinned.x\n"
    assert runner.load(code, policy="restricted", body=files(pinned="x = 2")).type == "loaded"
    assert body(runner.call(None, None, None))["value"] == 1, (
        "the import must find the package, and not the module with the same name"
    )
