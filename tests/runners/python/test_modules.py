"""Modules that come with an evaluator in comments at its end: imported, named in tracebacks, kept to their place."""

from pathlib import Path
from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess, body

CALLED = "def evaluate(inputs, outputs, trace):\n    return score()\n"


def whole(code: str, **modules: str) -> str:
    """An evaluator's text; modules by path, `__` for a slash."""
    parts = [code]
    for key, text in modules.items():
        path = key.replace("__", "/")
        parts += [
            f"# /// module {path.removesuffix('/init').replace('/', '.')} {path.replace('/init', '/__init__')}.py"
        ]
        parts += [f"#|{line}" for line in text.split("\n")]
    return "\n".join([*parts, ""])


def test_modules_packages_and_folders_are_imported(runner: RunnerProcess) -> None:
    code = whole(
        '"""Said."""\nfrom __future__ import annotations\nfrom models import ONE\nimport pkg.inner, folder.leaf\n'
        "import inspect\n\ndef evaluate(inputs, outputs, trace):\n    import late\n"
        "    told = inspect.getsource(pkg.inner.two)\n"
        "    return {'score': ONE + pkg.inner.two() + folder.leaf.FOUR + late.EIGHT, 'told': told}\n",
        models="ONE = 1",
        pkg__init="from .inner import two",
        pkg__inner="from models import ONE\ndef two(): return ONE + 1",
        folder__leaf="FOUR = 4",
        late="EIGHT = 8",
    )
    loaded = runner.load(code, check=True)
    assert loaded.header["reason"] == "function evaluate with 3 parameters"
    assert body(loaded)["missing_imports"] == []
    assert body(runner.call(None, None, None))["value"] == {"score": 15, "told": "def two(): return ONE + 1\n"}


def error_of(runner: RunnerProcess, code: str, **header: Any) -> dict[str, Any]:
    frame = runner.load(code, **header)
    assert frame.type == "load_failed", frame
    return dict(body(frame)["error"])


def test_tracebacks_name_the_modules_file_and_the_line_is_the_evaluators(runner: RunnerProcess) -> None:
    runner.load(whole(f"from models import score\n{CALLED}", models="\ndef score():\n    return 1 / 0\n"))
    error = body(runner.call(None, None, None))["error"]
    assert (error["line"], error["column"]) == (3, 12)
    assert 'File "evaluator.py", line 3, in evaluate\n    return score()\n' in error["traceback"]
    assert 'File "models.py", line 3, in score\n    return 1 / 0\n           ^^^^^\n' in error["traceback"]


def test_a_module_that_does_not_load(runner: RunnerProcess) -> None:
    error = error_of(runner, whole(f"\nimport models\n{CALLED}", models="x = 1\ndef y(:\n"))
    assert (error["code"], error["type"], error["line"]) == ("load_error", "SyntaxError", 2)
    assert error["message"] == "invalid syntax (models.py, line 2)"


def test_a_module_with_an_import_that_is_missing(runner: RunnerProcess) -> None:
    error = error_of(runner, whole(f"\nimport models\n{CALLED}", models="import gone"))
    assert (error["message"], error["line"]) == ("No module named 'gone'", 2)
    assert 'File "models.py", line 1, in <module>' in error["traceback"]
    assert error["hint"].startswith("pin the package")


def test_a_relative_import_says_what_to_write(runner: RunnerProcess) -> None:
    error = error_of(runner, f"from .helper import score\n{CALLED}")
    assert (
        error["hint"]
        == "say in `path` where the code lies among its `files` (evals/score.py), or import by the name alone"
    )


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("colorsys.py", "mine"),
        ("custom/colorsys.py", "Python's"),
        ("time.py", "Python's"),
    ],
)
def test_what_lay_in_the_root_comes_before_packages_and_the_rest_after(
    runner: RunnerProcess, path: str, found: str
) -> None:
    name = path.rpartition("/")[2].removesuffix(".py")
    code = f"import {name} as m\ndef evaluate(a, b, c):\n    return 'mine' if hasattr(m, 'MINE') else \"Python's\"\n"
    runner.load(f"{code}# /// module {name} {path}\n#|MINE = 1\n", contract="evaluate")
    assert body(runner.call(None, None, None))["value"] == found


def test_the_restricted_policy_has_none_of_them(start: Any, restricted_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "pinned.py").write_text("x = 1\n")
    options = ("--restricted", str(restricted_dir), "--packages", str(tmp_path))
    code = whole(f"from models import score\n{CALLED}", models="score = 1")
    error = error_of(start(*options), code, policy="restricted")
    assert (error["code"], "importing `models` is not allowed" in error["message"]) == ("policy_violation", True)
    runner = start(*options)
    code = whole("import pinned\ndef evaluate(a, b, c):\n    return pinned.x\n", pinned="x = 2")
    assert runner.load(code, policy="restricted").type == "loaded"
    assert body(runner.call(None, None, None))["value"] == 1, "the package, and nothing under its name"


@pytest.mark.parametrize("line", ["../../x /etc/passwd", "x", "", "evaluator evaluator.py", " ", "a..b a//b.py"])
def test_odd_names_are_never_looked_at(runner: RunnerProcess, line: str) -> None:
    loaded = runner.load(f"def evaluate(inputs, outputs, trace):\n    return 1.0\n# /// module {line}\n#|1/0\n")
    assert loaded.type == "loaded"
    assert body(runner.call(None, None, None))["value"] == 1.0
