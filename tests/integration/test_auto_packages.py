"""With `packages: "auto"`, a host pins and installs the packages that the code imports, but no package that it does not
know.
"""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.engine.config.settings import SandboxChoice, Settings
from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.platform.evaluators.evaluator_files import read_evaluator
from evaluator_host.types.errors import IndexUnavailable, InvalidRequest
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from evaluator_host.types.outcome import EvaluationResult
from tests.package_index import Index, serving
from tests.server import index_environment

PYTHON, JAVASCRIPT, TYPESCRIPT = Language.PYTHON, Language.JAVASCRIPT, Language.TYPESCRIPT
EVALUATE = "def evaluate(inputs, outputs, trace):\n    return {}\n"
LEVENSHTEIN = "class Score: pass\nclass Levenshtein:\n    def __call__(self, output, expected): return 0.5\n"
SCHEMA = "class Schema:\n    def __init__(self, kind): pass\n    def validate(self, one): return one\n"


def settings(home: Path, **changes: Any) -> Settings:
    found = {name.removeprefix("EVALUATOR_HOST_").lower(): value for name, value in index_environment().items()}
    return Settings(sandbox=SandboxChoice.BUBBLEWRAP, data_dir=home, **{"idle_sandboxes": 0, **found, **changes})


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    with serving() as index:
        index.add("schema", SCHEMA)
        index.add("emoji", "def emoji_count(text): return 1\n")
        index.add("cachetools", "")
        index.add("cachetools", "", version="2.0.0", needs="emoji>=3")
        index.add("mathruler", "import pylatexenc, sympy, tqdm\ndef grade(): return 1\n")
        for undeclared in ("pylatexenc", "sympy", "tqdm"):
            index.add(undeclared, "")
        index.add("autoevals", LEVENSHTEIN)
        for stranger in ("rewards", "numpyy", "utils", "prompt_helpers"):
            index.add(stranger, "def score(text): return 1\nraise SystemExit('a stranger runs')\n")
        yield index


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory, index: Index) -> AsyncIterator[Service]:
    """A service that installs packages from the tests' own Python index."""
    home = tmp_path_factory.mktemp("data")
    async with open_engine(settings(home, pip_index_url=index.simple, no_proxy="127.0.0.1")) as opened:
        yield opened


@pytest.fixture(scope="module")
async def real(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A service that installs packages from the public indexes."""
    async with open_engine(settings(tmp_path_factory.mktemp("data"))) as opened:
        yield opened


def auto(code: str, language: Language = PYTHON, packages: tuple[str, ...] = ("auto",), **more: Any) -> Evaluator:
    return Evaluator(code=code, language=language, packages=packages, **more)


def pins(result: EvaluationResult) -> set[str]:
    return {one.name for one in result.environment.packages if one.requested}


async def test_packages_that_the_code_imports_are_pinned_and_installed(service: Service) -> None:
    evaluator = auto(
        "from schema import Schema\nimport emoji\n" + EVALUATE.format("Schema(int).validate(emoji.emoji_count(''))")
    )
    result = await service.evaluate(evaluator, Row())
    assert (result.score, pins(result)) == (1, {"schema", "emoji"})
    (told,) = [note for note in result.warnings if note.code == "packages_chosen"]
    assert told.message.endswith(": emoji==1.0.0, schema==1.0.0")
    pinned = await service.pinned(evaluator)
    assert pinned.packages == ("emoji==1.0.0", "schema==1.0.0")
    assert (await service.evaluate(pinned, Row())).evaluator.digest == result.evaluator.digest
    assert (await service.check(evaluator)).ok


@pytest.mark.long
async def test_a_version_whose_needs_cannot_be_met_is_passed_over(service: Service) -> None:
    code = "import cachetools\n" + EVALUATE.format("1 if cachetools else 0")
    assert (await service.pinned(auto(code))).packages == ("cachetools==1.0.0",)


@pytest.mark.long
async def test_packages_that_a_package_imports_without_declaring_them_are_installed(service: Service) -> None:
    code = "from mathruler import grade\n" + EVALUATE.format("grade()")
    result = await service.evaluate(auto(code), Row())
    assert (result.score, pins(result)) == (1, {"mathruler", "pylatexenc", "sympy", "tqdm"})


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("imports", "used", "chosen"),
    [
        ("from autoevals import Levenshtein", "Levenshtein()(output, expected)", {"autoevals"}),
        ("import autoevals", "autoevals.Levenshtein()(output, expected)", {"autoevals"}),
        (
            "from autoevals import Levenshtein as near\ndef distance(a, b):\n    return near()(a, b)",
            "distance(output, expected)",
            {"autoevals"},
        ),
        ("from autoevals import Levenshtein, Score", "Score(name='same', score=0.5)", set()),
        ("from autoevals import Levenshtein\ndef unused(a, b):\n    return Levenshtein()(a, b)", "0.5", set()),
    ],
)
async def test_a_package_is_installed_if_the_evaluator_uses_names_that_its_replacement_lacks(
    service: Service, imports: str, used: str, chosen: set[str]
) -> None:
    evaluator = auto(f"{imports}\n\ndef handler(input, output, expected):\n    return {used}\n")
    row = Row(variables={"input": "2+2", "output": "5", "expected": "4"})
    result = await service.evaluate(evaluator, row)
    assert (result.score, pins(result)) == (0.5, chosen), result.error
    assert [one.module for one in (await service.check(replace(evaluator, packages=()))).missing_imports] == list(
        chosen
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "code",
    [
        "import emoji\nemoji.load('words')\nfrom emoji import emoji_count\n" + EVALUATE.format("emoji_count(outputs)"),
        "import emoji\nemoji.load()\n\ndef evaluate(inputs, outputs, trace):\n    import emoji\n    return emoji.emoji_count(outputs)\n",
    ],
)
async def test_an_import_that_rows_need_counts_beside_one_that_they_do_not(service: Service, code: str) -> None:
    assert (await service.pinned(auto(code))).packages == ("emoji==1.0.0",)


@pytest.mark.long
async def test_pins_beside_auto_stay(service: Service) -> None:
    code = "import emoji, schema\n" + EVALUATE.format("[schema.Schema, emoji.emoji_count]")
    assert (await service.pinned(auto(code, packages=("auto", "emoji==1.0.0")))).packages == (
        "emoji==1.0.0",
        "schema==1.0.0",
    )
    assert (await service.pinned(auto(EVALUATE.format("1")))).packages == ()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("imports", "used", "hint"),
    [
        ("import numpyy", "numpyy.score", "numpyy is probably a file of yours"),
        ("from rewards import score", "score", "rewards is probably a file of yours"),
        ("import rewards", "rewards", "no well-known package is called rewards"),
        ("from utils import score", "score", "utils is a file of yours"),
        ("from schema import RewardConfig", "RewardConfig", "the package schema==1.0.0 has no RewardConfig"),
        ("import schema", "schema.RewardConfig", "the package schema==1.0.0 has no RewardConfig"),
        ("from schema import RewardConfig, Schema", "Schema", "the package schema==1.0.0 has no RewardConfig"),
        ("from schema.rewards import Schema", "Schema", "the package schema==1.0.0 has no rewards.Schema"),
        ("import prompt_helpers", "prompt_helpers", "prompt_helpers is probably a file of yours"),
    ],
)
async def test_nothing_of_a_stranger_or_of_the_authors_own_is_installed(
    service: Service, imports: str, used: str, hint: str
) -> None:
    evaluator = auto(f"{imports}\n" + EVALUATE.format(f"1 if {used} else 0"))
    assert (await service.pinned(evaluator)).packages == ()
    result = await service.evaluate(evaluator, Row())
    assert result.error is not None
    assert hint in (result.error.hint or "")
    assert result.environment.packages == ()


async def test_a_module_beside_the_code_is_its_own(service: Service) -> None:
    files = {"schema.py": "RewardConfig = 1\n"}
    evaluator = auto("from schema import RewardConfig\n" + EVALUATE.format("RewardConfig"), files=files)
    result = await service.evaluate(evaluator, Row())
    assert (result.score, result.environment.packages) == (1, ())


OPIK_JUDGE = """from opik.evaluation import models
from opik.evaluation.metrics import base_metric
from opik.evaluation.metrics.score_result import ScoreResult

class Judged(base_metric.BaseMetric):
    def __init__(self, name='judged'):
        super().__init__(name=name)
        self.model = models.LiteLLMChatModel()

    def score(self, output=None, **more):
        return ScoreResult(name=self.name, value=0.5 if output is None else self.model.generate_string(input=output))
"""


async def test_a_row_that_uses_a_judge_of_a_platform_needs_a_model_and_others_do_not(service: Service) -> None:
    assert (await service.evaluate(auto(OPIK_JUDGE), Row())).score == 0.5
    result = await service.evaluate(auto(OPIK_JUDGE), Row({}, "hello"))
    assert result.error is not None
    assert result.environment.packages == ()
    assert "reaches a model only if it is granted one" in (result.error.hint or "")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "code",
    [
        "try:\n    import emoji\nexcept ImportError:\n    emoji = None\n" + EVALUATE.format("0.5"),
        "import openai\nclient = openai.OpenAI()\n" + EVALUATE.format("0.5"),
        "from langchain_openai import ChatOpenAI\nllm = ChatOpenAI(model='m')\n" + EVALUATE.format("0.5"),
        "import schema\nfrom emoji import emoji_count\n" + EVALUATE.format("0.5"),
    ],
)
async def test_packages_that_the_code_can_do_without_are_not_installed(service: Service, code: str) -> None:
    result = await service.evaluate(auto(code), Row())
    assert (result.score, result.environment.packages) == (0.5, ())


@pytest.mark.long
async def test_packages_that_a_script_can_do_without_are_not_installed(service: Service) -> None:
    code = "import { z } from 'zod';\nconst Row = z.object({});\nexport const other = (x) => Row.parse(x);\n"
    evaluate = "export function evaluate(inputs, outputs, trace) { return 0.5 }"
    for packages in (("auto",), ()):
        result = await service.evaluate(auto(code + evaluate, TYPESCRIPT, packages), Row())
        assert (result.score, result.environment.packages, result.not_loaded) == (0.5, (), ("zod",))
    report = await service.check(auto(code + evaluate, TYPESCRIPT, ()))
    assert (report.ok, report.missing_imports, report.not_loaded) == (True, (), ("zod",))


@pytest.mark.long
async def test_code_that_catches_the_import_and_scores_nothing_gets_its_package(service: Service) -> None:
    body = "\n    try:\n        from schema import Schema\n    except ImportError:\n        return 0\n    return 1\n"
    assert (await service.evaluate(auto(EVALUATE.replace("\n    return {}\n", body)), Row())).score == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "imported", ["import { x } from 'src/utils'", "const x = require('reqeust-lib')", "import y from 'prompts'"]
)
async def test_no_unknown_package_of_npm_is_installed(service: Service, imported: str) -> None:
    result = await service.evaluate(auto(f"{imported};\nfunction evaluate() {{ return 1; }}", JAVASCRIPT), Row())
    assert result.environment.packages == ()


async def test_a_host_may_forbid_it(tmp_path: Path, index: Index) -> None:
    async with open_engine(settings(tmp_path, pip_index_url=index.simple, auto_packages=False)) as service:
        with pytest.raises(InvalidRequest, match="does not choose packages: pin them"):
            await service.evaluate(auto("import emoji\n" + EVALUATE.format("1")), Row())


@pytest.mark.long
async def test_an_index_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9/simple"
    async with open_engine(settings(tmp_path, pip_index_url=nowhere, npm_registry=nowhere)) as service:
        for code, language, module in (
            ("import emoji\n" + EVALUATE.format("emoji.emoji_count('')"), PYTHON, "emoji"),
            ("import _ from 'lodash';\nexport default () => _.size([1]);", TYPESCRIPT, "lodash"),
        ):
            with pytest.raises(IndexUnavailable, match=f"no package was chosen for {module}, since the package index"):
                await service.evaluate(auto(code, language), Row())


@pytest.mark.long
async def test_packages_of_npm_are_the_latest(real: Service) -> None:
    code = (
        "import _ from 'lodash';\nexport default function evaluate(inputs, outputs) { return _.isEqual(outputs, 1); }"
    )
    result = await real.evaluate(auto(code, JAVASCRIPT), Row(outputs=1))
    assert (result.score, pins(result)) == (1, {"lodash"})
    assert re.fullmatch(r"lodash@\d+\.\d+\.\d+", (await real.pinned(auto(code, JAVASCRIPT))).packages[0])


@pytest.mark.long
async def test_a_version_in_the_range_of_the_package_file(real: Service) -> None:
    code = (
        "import _ from 'lodash';\nexport default function evaluate(inputs, outputs) { return _.isEqual(outputs, 1); }"
    )
    files = {"package.json": '{"devDependencies": {"lodash": ">=4.17.11 <4.17.16"}}'}
    result = await real.evaluate(auto(code, JAVASCRIPT, files=files), Row(outputs=1))
    assert (result.score, [one.version for one in result.environment.packages if one.requested]) == (1, ["4.17.15"])
    strange = {"package.json": '{"devDependencies": {"lodash": ">=999"}}'}
    newest = (await real.pinned(auto(code, JAVASCRIPT))).packages
    assert (await real.pinned(auto(code, JAVASCRIPT, files=strange))).packages == newest


@pytest.mark.long
async def test_a_hint_names_the_version_and_says_when_there_is_no_wheel(real: Service) -> None:
    result = await real.evaluate(Evaluator("import yaml\n" + EVALUATE.format("yaml.safe_load('1')")), Row())
    assert result.error is not None
    assert re.fullmatch(r"add pyyaml==\d[\d.]+ to `packages`", result.error.hint or "")
    evaluator = Evaluator("import docopt\n" + EVALUATE.format("docopt.docopt('')"))
    result = await real.evaluate(evaluator, Row())
    assert result.error is not None
    assert (result.error.hint or "").startswith("docopt has no wheels at all, only its source: remove")
    (missing,) = (await real.check(evaluator)).missing_imports
    assert (missing.pin, missing.path) == (None, None)
    assert missing.problem == "docopt has no wheels at all, only its source"


@pytest.mark.long("this installs about 100 MB")
@pytest.mark.parametrize(
    ("code", "packages"),
    [
        ("import pandas as pd\nfrom sklearn.metrics import f1_score\n" + EVALUATE.format("f1_score([1, 0], [1, 0]) * pd.Series([1]).sum()"), {"pandas", "scikit-learn"}),
        ("import cv2\nimport numpy as np\n" + EVALUATE.format("float(cv2.mean(np.ones((2, 2)))[0])"), {"opencv-python", "numpy"}),
        ("from rouge_score import rouge_scorer\n" + EVALUATE.format("rouge_scorer.RougeScorer(['rouge1']).score('a', 'a')['rouge1'].fmeasure"), {"rouge-score"}),
    ],
)  # fmt: skip
async def test_real_packages_of_several_megabytes(real: Service, code: str, packages: set[str]) -> None:
    result = await real.evaluate(auto(code, limits=Limits(memory_mb=1024)), Row())
    assert (result.score, result.error) == (1, None)
    assert pins(result) == packages


@pytest.mark.long
@pytest.mark.sampled(2)
@pytest.mark.parametrize("packages", [("auto",), ()])
async def test_a_version_that_a_file_of_the_project_pins(
    service: Service, index: Index, packages: tuple[str, ...]
) -> None:
    index.add("emoji", "def emoji_count(text): return 1\n", version="0.9.0")
    code = "import emoji\ndef evaluate(inputs, outputs, trace):\n    return emoji.emoji_count(outputs)\n"
    evaluator = Evaluator(code, packages=packages, files={"requirements.txt": "emoji==0.9.0\n"})
    result = await service.evaluate(evaluator, Row({}, "x"))
    if packages:
        [note] = [one for one in result.warnings if one.code == "packages_chosen"]
        assert "emoji==0.9.0 (from requirements.txt)" in note.message
    else:
        assert result.error is not None
        assert "add emoji==0.9.0 to `packages`" in str(result.error.hint)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("code", "chosen"),
    [
        ("Levenshtein()(output, expected).score", {"autoevals"}),
        ("Score(name='same', score=0.25)", set()),
    ],
)
async def test_a_version_of_a_platforms_package_counts_if_the_package_is_needed(
    service: Service, index: Index, tmp_path: Path, code: str, chosen: set[str]
) -> None:
    index.add("autoevals", LEVENSHTEIN.replace("return 0.5", "return Score(0.25)").replace("class Score: pass", (
        "class Score:\n    def __init__(self, score): self.score = score"
    )), version="0.9.0")  # fmt: skip
    (tmp_path / "uv.lock").write_text('[[package]]\nname = "autoevals"\nversion = "0.9.0"\n')
    file = tmp_path / "near.py"
    file.write_text(
        f"from autoevals import Levenshtein, Score\n\ndef handler(input, output, expected):\n    return {code}\n"
    )
    given = read_evaluator(file, None, host=settings(tmp_path), packages=["auto"]).evaluator
    result = await service.evaluate(given, Row(variables={"input": "2+2", "output": "5", "expected": "4"}))
    assert (result.score, pins(result)) == (0.25, chosen), result.error
    told = [note.message for note in result.warnings if note.code == "packages_chosen"]
    assert [one.rpartition(": ")[2] for one in told] == ["autoevals==0.9.0 (from uv.lock)"] * len(chosen)
