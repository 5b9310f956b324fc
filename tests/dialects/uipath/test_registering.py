"""The host does not trust a sandbox's report about classes: no path is outside the project, no file is written twice."""

from pathlib import Path
from typing import Any

import pytest

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluation import CheckReport
from evaluator_host.types.outcome import EnvironmentInfo, EvaluatorClass
from evaluator_host.vendors.uipath.project import find_code, find_layout
from evaluator_host.vendors.uipath.registering import register, usable_classes

FILE = Path("mine.py")


def report(*classes: EvaluatorClass) -> CheckReport:
    told: dict[str, Any] = dict.fromkeys(("contract", "contract_source", "reason"))
    empty: dict[str, Any] = dict.fromkeys(("parameters", "missing_imports", "problems", "notes"), ())
    environment = EnvironmentInfo("sha256:0", "python 3.13", ())
    return CheckReport(ok=True, **told, **empty, environment=environment, classes=classes)


def one(name: str, evaluator_id: str = "") -> EvaluatorClass:
    return EvaluatorClass(name, id=evaluator_id or name, types={"a": 1}, config={"name": name})


@pytest.mark.parametrize(
    "name", ["../../outside", "/etc/outside", "a/b", "", "a\x00", "a b", "..", "A" * 81, "A\n"], ids=repr
)
def test_an_invalid_class_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        usable_classes(report(one("Good"), one(name, "x")), FILE)
    assert [problem.message for problem in caught.value.problems] == [
        "files are named after the class, so its name must be a short Python identifier"
    ]


def test_two_classes_do_not_share_files() -> None:
    with pytest.raises(InvalidRequest) as caught:
        usable_classes(report(one("AB"), one("aB", "other")), FILE)
    assert caught.value.problems[0].message == "the files of this class and of AB would have the same names"


def test_registered_files_are_in_the_project(tmp_path: Path) -> None:
    (made,) = register(find_layout(tmp_path), FILE, usable_classes(report(one("Good")), FILE), reset=False)
    assert sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*.json")) == [
        made.types.relative_to(tmp_path), made.file.relative_to(tmp_path),
    ]  # fmt: skip


def test_a_link_out_of_the_project_is_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    layout = find_layout(tmp_path / "project")
    layout.folder.mkdir(parents=True)
    layout.evaluators.symlink_to(outside)
    with pytest.raises(InvalidRequest, match="outside the project"):
        register(layout, FILE, usable_classes(report(one("Good")), FILE), reset=False)
    assert list(outside.iterdir()) == []


def test_a_link_out_of_the_project_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("")
    layout = find_layout(tmp_path / "project")
    layout.custom.mkdir(parents=True)
    (layout.custom / "mine.py").symlink_to(tmp_path / "secret.py")
    with pytest.raises(InvalidRequest, match="outside the project"):
        find_code(layout, "mine.py")
