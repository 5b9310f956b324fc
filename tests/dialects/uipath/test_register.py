"""A sandbox describes the evaluators in a file. Registering them writes exactly the files that UiPath writes."""

import json
from pathlib import Path

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Contract, Evaluator
from evaluator_host.vendors.uipath.project import Layout, find_layout
from evaluator_host.vendors.uipath.registering import Registered, left_out, register, usable_classes
from tests.conftest import ON_BUBBLEWRAP
from tests.dialects.uipath.evaluators import FIXTURES, IMPORTS, PATTERN, evaluator

pytestmark = ON_BUBBLEWRAP


async def registered(service: Service, layout: Layout, code: str, *, reset: bool = False) -> list[Registered]:
    file = layout.custom / "mine.py"
    report = await service.check(Evaluator(code, contract=Contract("uipath")))
    return register(layout, file, usable_classes(report, file), reset=reset)


def written(root: Path) -> list[str]:
    return sorted(file.name for file in root.rglob("*.json"))


async def refused(service: Service, tmp_path: Path, code: str) -> str:
    with pytest.raises(InvalidRequest) as caught:
        await registered(service, find_layout(tmp_path), code)
    assert written(tmp_path) == [], "a refused evaluator must not be registered"
    problems = [f"{one.field}: {one.message} {one.hint or ''}" for one in caught.value.problems]
    return " | ".join([caught.value.detail, *problems])


async def test_the_complete_example(service: Service, tmp_path: Path) -> None:
    layout = find_layout(tmp_path)
    await registered(service, layout, PATTERN)
    name = "pattern-comparison-evaluator"
    assert (layout.types / f"{name}-types.json").read_bytes() == (FIXTURES / f"{name}-types.json").read_bytes()
    content = json.loads((layout.evaluators / f"{name}.json").read_text())
    golden = json.loads((FIXTURES / f"{name}.json").read_text())
    assert content == {**golden, "evaluatorSchema": "file://mine.py:PatternComparisonEvaluator"}


async def test_every_evaluator_of_a_file_and_no_base_of_them(service: Service, tmp_path: Path) -> None:
    base = f"{IMPORTS}class Base(BaseEvaluator[BaseEvaluationCriteria, BaseEvaluatorConfig, str]):\n    pass\n"
    layout = find_layout(tmp_path)
    code = base + evaluator("return 1", name="First") + evaluator("return 1", name="Second")
    made = await registered(service, layout, code)
    assert [(one.name, one.id) for one in made] == [("First", "first-id"), ("Second", "second-id")]
    assert written(tmp_path) == [
        "first-types.json", "first.json", "second-types.json", "second.json",
    ]  # fmt: skip
    report = await service.check(Evaluator(code, contract=Contract("uipath")))
    assert left_out(report) == ["Base is left out: it lacks evaluate, get_evaluator_id"]


@pytest.mark.long
async def test_settings_of_the_file_stay(service: Service, tmp_path: Path) -> None:
    layout = find_layout(tmp_path)
    code = evaluator("return 1", config="threshold: float = 0.5\nmode: str = 'a'")
    (made,) = await registered(service, layout, code)
    changed = {**made.content, "note": "ours"}
    changed["evaluatorConfig"] = {**changed["evaluatorConfig"], "threshold": 0.9, "gone": 1}
    made.file.write_text(json.dumps(changed))

    (again,) = await registered(service, layout, code)
    content = json.loads(again.file.read_text())
    assert again.kept == ("threshold",)
    assert (content["evaluatorConfig"]["threshold"], content["evaluatorConfig"]["mode"]) == (0.9, "a")
    assert ("gone" in content["evaluatorConfig"], content["note"]) == (False, "ours")

    (reset,) = await registered(service, layout, code, reset=True)
    assert json.loads(reset.file.read_text())["evaluatorConfig"]["threshold"] == 0.5


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("class MyEvaluator:\n    pass\n", "could not find a class inheriting from BaseEvaluator in mine.py"),
        ("import uipath.eval.evaluators\nx = (\n", "mine.py cannot be loaded | mine.py:2: "),
        ("import uipath.eval.evaluators\nimport neighbour\nclass Mine(neighbour.Base):\n    pass\n", "No module named 'neighbour'"),
        (
            evaluator("return 1").replace("def get_evaluator_id", "def other"),
            "Error getting evaluator ID",
        ),
        (
            evaluator("return 1").replace("BaseEvaluatorConfig[ECriteria]", "BaseEvaluatorConfig[BaseEvaluationCriteria]"),
            "Type inconsistency in E: Config EConfig expects criteria type BaseEvaluationCriteria",
        ),
        (evaluator("return 1").replace("'e-id'", r"'e\n'"), r"get_evaluator_id() returns 'e\n', which is not an id"),
        (
            evaluator("return 1", name="A") + evaluator("return 1", name="B").replace("'b-id'", "'a-id'"),
            "B: A already has the id 'a-id'",
        ),
        (evaluator("return 1", config="threshold: float"), "threshold"),
    ],
    ids=["no class", "syntax", "local module", "no id", "inconsistent", "bad id", "id twice", "no default"],
)  # fmt: skip
async def test_reasons_that_keep_a_file_from_being_registered(
    service: Service, tmp_path: Path, code: str, said: str
) -> None:
    assert said in await refused(service, tmp_path, code)


async def test_an_id_that_another_file_has_is_refused(service: Service, tmp_path: Path) -> None:
    layout = find_layout(tmp_path)
    layout.evaluators.mkdir(parents=True)
    (layout.evaluators / "other.json").write_text('{"id": "e-id"}')
    with pytest.raises(InvalidRequest) as caught:
        await registered(service, layout, evaluator("return 1"))
    assert caught.value.problems[0].message == "evaluations/evaluators/other.json already has the id 'e-id'"
