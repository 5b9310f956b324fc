"""The modules of a project that an evaluator imports: which go along, and what is refused."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.dialects.uipath.modules import explained, layout_of_code, with_modules
from evaluator_host.dialects.uipath.project import Layout
from evaluator_host.model.errors import InvalidRequest
from evaluator_host.model.outcome import ErrorCode, EvaluationError
from tests.dialects.uipath.projects import write


def sent(root: Path, code: str, *, beside: str = "evals/evaluators/custom") -> str:
    """What is sent for an evaluator."""
    file = root / beside / "mine.py"
    write(file, code)
    return with_modules(code, file, Layout(root, "evals"))


def modules(root: Path, code: str, **changes: Any) -> list[str]:
    """Name and path of each module that goes along."""
    whole = sent(root, code, **changes)
    assert whole.startswith(code), "the evaluator's own text stays where it was"
    return sorted(re.findall(r"^# /// module (.+)$", whole[len(code) :], re.MULTILINE))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    for name in ("models", "pkg/__init__", "pkg/inner", "pkg/deep/__init__", "pkg/deep/leaf", "ns/leaf", "both"):
        write(project / f"{name}.py", "x = 1\n")
    for name in ("helper", "both", "own/__init__", "own/leaf", "json"):
        write(project / "evals" / "evaluators" / "custom" / f"{name}.py", "x = 2\n")
    return project


HERE = "evals/evaluators/custom"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from models import x\n", ["models models.py"]),
        ("import pkg.inner as y, json\n", ["pkg pkg/__init__.py", "pkg.inner pkg/inner.py"]),
        ("from pkg import inner, x\n", ["pkg pkg/__init__.py", "pkg.inner pkg/inner.py"]),
        ("from ns.leaf import x\n", ["ns.leaf ns/leaf.py"]),
        ("import helper\n", [f"helper {HERE}/helper.py"]),
        ("from own.leaf import x\n", [f"own {HERE}/own/__init__.py", f"own.leaf {HERE}/own/leaf.py"]),
        ("import both\n", ["both both.py"]),
        ("from evals.evaluators.custom.helper import x\n", [f"evals.evaluators.custom.helper {HERE}/helper.py"]),
        ('"""Said."""\nfrom __future__ import annotations\nimport models', ["models models.py"]),
        ("def f():\n    try:\n        import models\n    except ImportError:\n        import pkg\n",
         ["models models.py", "pkg pkg/__init__.py"]),
        ("import models\nif TYPE_CHECKING:\n    import pkg\nelse:\n    import helper\n",
         [f"helper {HERE}/helper.py", "models models.py"]),
    ],
)  # fmt: skip
def test_what_goes_along(root: Path, code: str, found: list[str]) -> None:
    assert modules(root, code) == found


@pytest.mark.parametrize(
    "code",
    [
        "import json, numpy, uipath.eval\nfrom __future__ import annotations\n",
        "from . import helper\nfrom .helper import x\nfrom ...models import x\n",
        "import gone, models_\n",
        "def evaluate(:\n    import models\n",
        "import models\0",
        "x = '''\nimport models\n'''\n# import models",
        "",
    ],
)
def test_an_evaluator_without_local_imports_is_sent_as_it_is(root: Path, code: str) -> None:
    assert sent(root, code) == code


def test_modules_follow_as_comments(root: Path) -> None:
    write(root / "models.py", '\ufeff"""é"""\r\n\r\nfrom pkg import inner\n  \n# /// module x y\n#|z')
    write(root / "pkg" / "inner.py", "from . import deep\nfrom .deep import leaf\nfrom ...beyond import y\n")
    whole = sent(root, "import models")
    assert whole.splitlines()[:8] == [
        "import models", "# /// module models models.py", '#|"""é"""', "#|", "#|from pkg import inner", "#|  ",
        "#|# /// module x y", "#|#|z",
    ]  # fmt: skip
    assert modules(root, "import models") == [
        "models models.py", "pkg pkg/__init__.py", "pkg.deep pkg/deep/__init__.py", "pkg.deep.leaf pkg/deep/leaf.py",
        "pkg.inner pkg/inner.py",
    ]  # fmt: skip
    assert sent(root, "import models\n") == whole


def test_the_root_is_looked_at_before_the_standard_library_as_there(root: Path) -> None:
    write(root / "statistics.py", "x = 1\n")
    write(root / "uipath.py", "x = 1\n")
    assert modules(root, "import statistics, json, uipath\n") == ["statistics statistics.py"]


def test_what_may_hold_secrets_or_answers_stays(root: Path) -> None:
    for name in (".hidden/x", "venv/x", "build/x", "evals/eval_sets/x"):
        write(root / f"{name}.py", "secret = 1\n")
    write(root / "venv" / "pyvenv.cfg", "")
    write(root / ".env", "KEY=1")
    for name in ("venv.x", "build.x", "evals.eval_sets.x"):
        assert sent(root, f"import {name}\n") == f"import {name}\n"
    (root / "settings.py").symlink_to(root / ".env")
    with pytest.raises(InvalidRequest, match=r"settings\.py leads to .*\.env, which is no module that goes along"):
        sent(root, "import settings\n")


def test_links_within_the_project_go_along_and_no_others(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "outside" / "leaf.py", "x = 1\n")
    (root / "alias.py").symlink_to("models.py")
    (root / "linked.py").symlink_to("/etc/passwd")
    (root / "folder").symlink_to(tmp_path / "outside")
    (root / "round").symlink_to(root)
    (root / "nowhere.py").symlink_to("/not/there")
    assert modules(root, "import alias, nowhere\n") == ["alias alias.py"]
    with pytest.raises(InvalidRequest, match=r"linked\.py leads out of the project .*, to /etc/passwd"):
        sent(root, "import linked\n")
    with pytest.raises(InvalidRequest, match=r"folder/leaf\.py leads out of the project"):
        sent(root, "import folder.leaf\n")
    assert len(modules(root, f"import {'round.' * 5}models\n")) == 1
    os.mkfifo(root / "pipe.py")
    long = "a" * 300
    assert sent(root, f"import pipe, {long}\n") == f"import pipe, {long}\n"
    assert sent(root, f"import {'round.' * 5000}gone\n").endswith("gone\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"x = '\0'\n", r"broken\.py holds a null byte"),
        (b"x = '\xff'\n", r"broken\.py is not UTF-8"),
        (b"# coding: nonsense\n", r"broken\.py is not UTF-8, nor what it says it is"),
        (b"#" * (1 << 20) + b"#", r"broken\.py is over 1 MB"),
    ],
)
def test_a_module_that_cannot_go_along(root: Path, content: bytes, said: str) -> None:
    (root / "broken.py").write_bytes(content)
    with pytest.raises(InvalidRequest, match=said):
        sent(root, "import broken\n")


def test_other_encodings_and_errors_of_syntax_are_the_sandboxes_matter(root: Path) -> None:
    (root / "old.py").write_bytes("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    write(root / "broken.py", "import models\ndef x(:\n")
    write(root / "deep.py", "(" * 5000 + ")" * 5000)
    whole = sent(root, "import old, broken, deep\n")
    assert "#|x = 'é'" in whole
    assert "#|def x(:" in whole


def test_the_name_of_the_evaluators_own_module(root: Path) -> None:
    write(root / "evaluator.py", "x = 1\n")
    with pytest.raises(InvalidRequest, match="has the name of the evaluator's own module"):
        sent(root, "import evaluator\n")


def test_cycles_end_and_ten_thousand_modules_are_refused(root: Path) -> None:
    write(root / "a.py", "import b, mine\n")
    write(root / "b.py", "import a\n")
    assert modules(root, "import a\n") == ["a a.py", "b b.py", f"mine {HERE}/mine.py"]
    for number in range(10_000):
        (root / f"m{number}.py").write_text(f"import m{number + 1}\n")
    with pytest.raises(InvalidRequest, match=r"more than 2000 modules or 3515 KB .*; import fewer"):
        sent(root, "import m0\n")


def test_too_much_says_what_is_large(root: Path) -> None:
    for name in ("large", "small"):
        write(root / f"{name}.py", "# x\n" * {"large": 200_000, "small": 30_000}[name])
    with pytest.raises(
        InvalidRequest, match=r"KB for its evaluator, packed, .* largest files are large\.py, small\.py"
    ):
        sent(root, "import large, small\n")


def test_which_project_a_file_is_of(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert layout_of_code(root / HERE / "mine.py") == Layout(root, "evals")
    assert layout_of_code(root / "evals" / "evaluators" / "mine.py") == Layout(root, "evals")
    assert layout_of_code(root / "evals" / "mine.py") is None
    assert layout_of_code(root / "models.py") is None
    monkeypatch.chdir(root / HERE)
    assert layout_of_code(Path("mine.py")) == Layout(root, "evals")


def test_a_module_that_is_missing_is_explained(root: Path) -> None:
    file = root / HERE / "mine.py"
    error = EvaluationError(ErrorCode.LOAD_ERROR, "No module named 'numpi.x'", "ModuleNotFoundError", hint="pin it")
    hint = explained(error, file, Layout(root, "evals")).hint
    assert hint == (
        f"neither Python nor a pinned package has numpi.x, and there is no module numpi/x.py and no package numpi/x/ "
        f"in {root} and in {root / HERE}; put it there, or pin its package: --package NAME==VERSION"
    )
    left = EvaluationError(ErrorCode.LOAD_ERROR, "No module named 'models'", "ModuleNotFoundError")
    assert str(explained(left, file, Layout(root, "evals")).hint).startswith(f"{root / 'models.py'} did not go along")
    odd = EvaluationError(ErrorCode.LOAD_ERROR, "No module named '../../etc'", "ModuleNotFoundError")
    assert explained(odd, file, Layout(root, "evals")) is odd
    other = EvaluationError(ErrorCode.LOAD_ERROR, "it's not", "ValueError")
    assert explained(other, file, Layout(root, "evals")) is other
