"""Each version of an evaluator is prepared once. The host keeps only a limited number of prepared evaluators, and never
confuses them.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.data_files import DataFiles
from evaluator_host.engine.environments.store import InstalledSet
from evaluator_host.engine.packages.providers import ImportedModule, Provider
from evaluator_host.engine.service import prepared as preparing
from evaluator_host.engine.service import preparer as module
from evaluator_host.engine.service.pins import PinLookup
from evaluator_host.engine.service.prepared import evaluator_digest
from evaluator_host.engine.service.preparer import Preparer
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.evaluator import Environment, Evaluator, EvaluatorSettings, Language, Limits

NO_DATA = DataFiles(Path("/nonexistent"), most_bytes=0)
CODE = "def evaluate(inputs, outputs, trace):\n    return 1\n"


class Sets:
    """The package sets of a host that has one set."""

    def __init__(self) -> None:
        self.queries = self
        self.install()

    def install(self) -> None:
        environment = Environment("sha256:set", Language.PYTHON, "python 3.11", path=Path("/set"))
        self.known = InstalledSet(("six==1.16.0",), environment)

    async def python(self, _asked: str | None) -> None:
        return None

    async def providers(
        self, modules: Sequence[ImportedModule], _language: Language, _python: str | None, *, workspace: str
    ) -> list[Provider]:
        return [Provider() for _ in modules]

    async def require(self, *_args: object, **_more: object) -> InstalledSet:
        return self.known


@pytest.fixture
def preparer(tmp_path: Path) -> Preparer:
    sets = Sets()
    return Preparer(Settings(data_dir=tmp_path), sets, PinLookup(sets.providers), data=NO_DATA)  # type: ignore[arg-type]


async def test_an_evaluator_is_neither_cleaned_nor_hashed_again(
    preparer: Preparer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await preparer.prepare(Evaluator(CODE), "w")
    for name in ("cleaned", "evaluator_digest", "require_fit"):
        monkeypatch.setattr(preparing, name, None)
    assert await preparer.prepare(Evaluator(CODE.encode().decode()), "w") is first


async def test_a_change_of_result_or_sandbox_is_prepared_again(preparer: Preparer) -> None:
    base = Evaluator(CODE, threshold=1.0)
    others = [
        replace(base, code=CODE + "\n"),
        replace(base, threshold=1),
        replace(base, threshold=True),
        replace(base, name="n"),
        replace(base, limits=Limits(timeout_s=1.0)),
        replace(base, settings=EvaluatorSettings(config={"a": 1})),
        replace(base, settings=EvaluatorSettings(config={"a": True})),
        replace(base, settings=EvaluatorSettings(config={"a": 2**70})),
    ]
    for evaluator in (base, *others, base, *others):
        made = await preparer.prepare(evaluator, "w")
        assert (made.digest, made.evaluator) == (evaluator_digest(evaluator), evaluator)
    made = await preparer.prepare(base, "w")
    assert (await preparer.prepare(base, "other")).request.workspace == "other"
    assert (await preparer.prepare(base, "w", check=True)).request.digest != made.request.digest


async def test_a_configuration_that_its_caller_changes_is_not_changed_in_what_is_kept(preparer: Preparer) -> None:
    config = {"words": ["a"]}
    await preparer.prepare(Evaluator(CODE, settings=EvaluatorSettings(config=config)), "w")
    config["words"].append("b")
    again = await preparer.prepare(Evaluator(CODE, settings=EvaluatorSettings(config={"words": ["a"]})), "w")
    assert again.request.load.config == {"words": ["a"]}


@pytest.mark.parametrize("name", ["files", "data", "secrets"])
async def test_a_changed_evaluator_is_prepared_anew(preparer: Preparer, name: str) -> None:
    evaluator = Evaluator(CODE, settings=EvaluatorSettings(config={}))
    before = await preparer._rest(evaluator)
    assert await preparer._rest(evaluator) is before
    getattr(evaluator, name)["NAME"] = "value"
    assert await preparer._rest(evaluator) != before
    getattr(evaluator, name).clear()
    assert await preparer._rest(evaluator) == before
    evaluator.settings.config["n"] = 1
    assert await preparer._rest(evaluator) != before


async def test_a_set_that_is_installed_anew_is_used_from_then_on(tmp_path: Path) -> None:
    sets = Sets()
    preparer = Preparer(Settings(data_dir=tmp_path), sets, PinLookup(sets.providers), data=NO_DATA)  # type: ignore[arg-type]
    evaluator = Evaluator(CODE, packages=("six==1.16.0",))
    first = await preparer.prepare(evaluator, "w")
    assert (await preparer.prepare(evaluator, "w")).request is first.request
    sets.install()
    assert (await preparer.prepare(evaluator, "w")).environment is sets.known.environment


async def test_no_more_is_kept_than_fits(preparer: Preparer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 3)
    made = [await preparer.prepare(Evaluator(CODE + f"# {n}\n"), "w") for n in range(4)]
    assert await preparer.prepare(Evaluator(CODE + "# 1\n"), "w") is made[1]
    assert await preparer.prepare(Evaluator(CODE + "# 0\n"), "w") is not made[0]
    monkeypatch.setattr(module, "_KEPT_BYTES", 10_000)
    long = Evaluator(CODE + "#" * 20_000)
    assert await preparer.prepare(long, "w") is not await preparer.prepare(long, "w")


async def test_a_refused_evaluator_is_refused_again(preparer: Preparer) -> None:
    for _ in range(2):
        with pytest.raises(InvalidRequest):
            await preparer.prepare(Evaluator(CODE, limits=Limits(memory_mb=10**9)), "w")


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (EvaluatorSettings(correct_answer_key="x" * 1001), "correct_answer_key"),
        (EvaluatorSettings(entry="x" * 1001), "entry"),
        (EvaluatorSettings(score_output="x" * 1001), "score_output"),
        (EvaluatorSettings(config={"x": ["x" * (1 << 19)] * 3}), "config"),
    ],
)
async def test_settings_with_long_texts_are_refused(
    preparer: Preparer, settings: EvaluatorSettings, field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await preparer.prepare(Evaluator(CODE, settings=settings), "default")
    assert [one.field for one in refused.value.problems] == [f"evaluator.settings.{field}"]


@pytest.mark.parametrize(
    "evaluator",
    [Evaluator(CODE + "#" * (1 << 21)), Evaluator(CODE, settings=EvaluatorSettings(config={"x": "x" * (1 << 21)}))],
    ids=["code", "config"],
)
async def test_a_refusal_of_much_text_names_the_setting(preparer: Preparer, evaluator: Evaluator) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await preparer.prepare(evaluator, "default")
    (problem,) = refused.value.problems
    assert "EVALUATOR_HOST_CODE_KB" in (problem.hint or "")
