"""UiPath projects on disk: commands use the folder that exists, `evaluations` or `evals`; if a file is missing, the
error suggests a similar name.
"""

import re
from pathlib import Path

import pytest

from evaluator_host.types.errors import InvalidRequest
from evaluator_host.vendors.uipath.project import find_code, find_eval_set, find_layout, layout_of_eval_set, read_json
from evaluator_host.vendors.uipath.template import class_name, evaluator_code, file_name, kebab


def make(root: Path, *files: str) -> None:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("{}")


def test_the_folder_that_is_there_is_taken(tmp_path: Path) -> None:
    assert find_layout(tmp_path).name == "evaluations"
    (tmp_path / "evals").mkdir()
    assert find_layout(tmp_path).name == "evals"
    (tmp_path / "evaluations" / "evaluators").mkdir(parents=True)
    assert find_layout(tmp_path).name == "evaluations"
    (tmp_path / "evals" / "evaluators").mkdir()
    with pytest.raises(InvalidRequest, match="both evaluations and evals; choose one with --folder"):
        find_layout(tmp_path)
    assert find_layout(tmp_path, folder="evals").name == "evals"
    with pytest.raises(InvalidRequest, match="evaluations or evals, not 'tests'"):
        find_layout(tmp_path, folder="tests")


def test_code_is_found_by_its_name_and_by_its_path(tmp_path: Path) -> None:
    make(tmp_path, "evals/evaluators/custom/my_custom_evaluator.py")
    layout = find_layout(tmp_path)
    file = layout.custom / "my_custom_evaluator.py"
    assert [find_code(layout, named) for named in (file.name, file.stem, str(file))] == [file] * 3


def test_code_that_is_not_there_is_answered_with_a_near_name(tmp_path: Path) -> None:
    layout = find_layout(tmp_path, folder="evals")
    with pytest.raises(
        InvalidRequest, match=r"could not find 'a\.py' in the evals/evaluators/custom folder, which has none"
    ):
        find_code(layout, "a.py")
    make(tmp_path, "evals/evaluators/custom/my_custom_evaluator.py", "elsewhere.py")
    with pytest.raises(InvalidRequest, match=re.escape("did you mean my_custom_evaluator.py?")):
        find_code(layout, "my-custom-evaluator.py")
    with pytest.raises(InvalidRequest, match=re.escape("folder; it has my_custom_evaluator.py")):
        find_code(layout, "zzz.py")
    with pytest.raises(InvalidRequest, match="is not in the evals/evaluators/custom folder; move it there"):
        find_code(layout, "elsewhere.py")


@pytest.mark.parametrize("folder", ["eval_sets", "eval-sets"])
def test_eval_sets_are_found_in_both_spellings(tmp_path: Path, folder: str) -> None:
    make(tmp_path, f"evals/{folder}/first.json", "evals/evaluators/custom/a.py")
    layout = find_layout(tmp_path)
    file = layout.folder / folder / "first.json"
    assert [find_eval_set(layout, named) for named in ("first", "first.json", str(file))] == [file] * 3
    found = layout_of_eval_set(file)
    assert found is not None
    assert (found.root, found.name) == (tmp_path, "evals")
    with pytest.raises(InvalidRequest, match=re.escape("did you mean first.json?")):
        find_eval_set(layout, "frist")


def test_a_file_that_is_not_json_is_refused_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf{}")
    assert read_json(tmp_path / "a.json") == {}
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(InvalidRequest, match=r"a\.json is not JSON"):
        read_json(tmp_path / "a.json")
    with pytest.raises(InvalidRequest, match="cannot read"):
        read_json(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("name", "named", "file", "files"),
    [
        ("my-custom-evaluator", "MyCustomEvaluator", "my_custom_evaluator.py", "my-custom-evaluator"),
        ("MyCustomEvaluator", "MyCustomEvaluator", "my_custom_evaluator.py", "my-custom-evaluator"),
        ("tone", "ToneEvaluator", "tone.py", "tone-evaluator"),
        ("json evaluator", "JsonEvaluator", "json_evaluator.py", "json-evaluator"),
        ("class", "ClassEvaluator", "class_.py", "class-evaluator"),
    ],
)
def test_new_files_and_classes_get_valid_names(name: str, named: str, file: str, files: str) -> None:
    assert (class_name(name), file_name(name), kebab(named)) == (named, file, files)
    compile(evaluator_code(name), file, "exec")
    assert f"class {named}(" in evaluator_code(name)


def test_files_are_called_as_uipath_calls_them() -> None:
    assert [kebab(one) for one in ("HTTPCheck2Evaluator", "JSON_Eval")] == ["h-t-t-p-check2-evaluator", "j-s-o-n_-eval"]


@pytest.mark.parametrize("name", ["", "9x", "a/b", "../a", "a.b", "é", "x" * 90])
def test_a_text_that_is_not_a_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="is not a valid name for an evaluator"):
        evaluator_code(name)
