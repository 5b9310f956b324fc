"""Code imports a well-known package that is not pinned: even in whole files, only code that uses the package fails, and
no score is wrong.
"""

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.evaluator import Evaluator, EvaluatorSettings, Json, Language, Row
from tests.conftest import ON_BUBBLEWRAP

ROW = Row({}, "x")
SCORE = "def evaluate(inputs, outputs, trace):\n    return {}\n"
ONE = SCORE.format(1.0)
TRAINING = """import torch
from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer

rows = load_dataset("some/rows")["train"].map(lambda row: {"answer": row["text"]})
device = "cuda" if torch.cuda.is_available() else "cpu"
print(f"{device}: {len(rows)} rows")


def right(completions, answer, **more):
    return [float(one == wanted) for one, wanted in zip(completions, answer)]


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()


model = Model().to(device)
trainer = GRPOTrainer(model=model, reward_funcs=[right], args=GRPOConfig(lr=1e-5))
for step in trainer.train():
    print(step)
"""

pytestmark = ON_BUBBLEWRAP


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("code", "score", "not_loaded"),
    [
        ("import torch\nimport numpy as np, json\n" + ONE, 1.0, ("torch", "numpy")),
        ("from sklearn.metrics import f1_score\ndef other():\n    return f1_score([1], [1])\n" + ONE, 1.0, ("sklearn.metrics",)),
        ("import pandas as pd\nfrom typing import Optional\ndef other(table: Optional[pd.DataFrame]) -> pd.DataFrame | None: ...\n" + ONE, 1.0, ("pandas",)),
        ("import torch\nGPU = 1 if torch.cuda.is_available() else 0\n" + ONE, 1.0, ("torch",)),
        ("import torch\ndef other(model):\n    return torch.ones(1)\ndef evaluate(inputs, outputs, trace):\n    model = 1.0\n    return model\nmodel = other(torch)\n", 1.0, ("torch",)),
        ("import openai\nclient = openai.OpenAI()\n" + ONE, 1.0, ("openai",)),
        ("from pydantic_ai import Agent\nasync def other(output):\n    judge: Agent[None, bool] = Agent('m', output_type=bool)\n    return (await judge.run(output)).output\nasync def evaluate(inputs, outputs, trace):\n    return await other(outputs) if inputs.get('judged') else 1.0\n", 1.0, ("pydantic_ai",)),
        ("try:\n    import numpy\n    fast = True\nexcept ImportError:\n    fast = False\n" + SCORE.format("0.0 if fast else 0.75"), 0.75, ()),
        ("from contextlib import suppress\nfast = False\nwith suppress(ImportError):\n    import openai\n    fast = True\n" + SCORE.format("0.0 if fast else 0.75"), 0.75, ()),
        ("import importlib.util\nfast = importlib.util.find_spec('openai')\n" + SCORE.format("0.0 if fast else 0.75"), 0.75, ()),
    ],
)  # fmt: skip
async def test_packages_that_the_evaluator_does_not_need_are_left_out(
    service: Service, code: str, score: float, not_loaded: tuple[str, ...]
) -> None:
    result = await service.evaluate(Evaluator(code), ROW)
    assert (result.score, result.not_loaded, result.error) == (score, not_loaded, None)


async def test_a_training_script_scores_by_its_reward(service: Service) -> None:
    row = Row({"answer": "x"}, "x")
    result = await service.evaluate(Evaluator(TRAINING), row)
    assert (result.score, result.error, result.warnings) == (1.0, None, ())
    assert result.not_loaded == ("torch", "datasets", "trl")


@pytest.mark.sampled(18)
@pytest.mark.parametrize(
    ("code", "package", "line"),
    [
        ("import numpy as np\n" + SCORE.format("np.mean([1])"), "numpy", 1),
        ("import json\nfrom numpy import mean\ndef of(values):\n    return mean(values)\n" + SCORE.format("of([1])"), "numpy", 2),
        ("import torch\nweight = 1.0 if torch.cuda.is_available() else 0.5\n" + SCORE.format("weight"), "torch", 1),
        ("import numpy as np\nweights = {'a': 0}\nweights['a'] = np.ones(1)[0]\n" + SCORE.format("weights['a']"), "numpy", 1),
        ("import numpy as np\nweights = {'a': 0}\ndef fill():\n    weights.update(a=np.ones(1)[0])\nfill()\n" + SCORE.format("weights['a']"), "numpy", 1),
        ("import numpy as np\nfound = 0.5\ndef fill():\n    global found\n    found = np.ones(1)[0]\nfill()\n" + SCORE.format("found"), "numpy", 1),
        ("import numpy as np\n" + SCORE.format("evaluate.weight") + "evaluate.weight = np.ones(1)[0]\n", "numpy", 1),
        ("import random, torch\nrandom.seed(torch.initial_seed())\n" + SCORE.format("random.random()"), "torch", 1),
        ("import numba\n@numba.njit\n" + ONE, "numba", 1),
        ("import pydantic\nclass Kept(pydantic.BaseModel):\n    score: float\n" + SCORE.format("Kept(score=1).score"), "pydantic", 1),
        ("import numpy as np\n" + SCORE.format("eval('np.mean([1])')"), "numpy", 1),
        ("import os, torch\nfrom os import environ\nos.environ['T'] = str(torch.ones(1))\n" + SCORE.format("float(environ.get('T', 0.1))"), "torch", 1),
        ("import decimal, torch\nfrom decimal import Decimal\ndecimal.getcontext().prec = int(torch.ones(1))\n" + SCORE.format("float(Decimal(1) / 3)"), "torch", 1),
        ("import sys, torch\nif torch.cuda.is_available():\n    weight = 1.0\n" + SCORE.format("getattr(sys.modules['evaluator'], 'weight', 0.1)"), "torch", 1),
        ("import torch\nif torch.cuda.is_available():\n    weight = 1.0\n" + SCORE.format("evaluate.__globals__.get('weight', 0.1)"), "torch", 1),
        ("from numpy import *\n" + ONE, "numpy", 1),
        ("if True:\n    import numpy\n" + ONE, "numpy", 2),
    ],
)  # fmt: skip
async def test_a_missing_package_that_the_evaluator_needs_stops_the_load(
    service: Service, code: str, package: str, line: int
) -> None:
    result = await service.evaluate(Evaluator(code), ROW)
    error = result.error
    assert error is not None
    assert (error.code, error.message, error.line) == ("load_error", f"No module named '{package}'", line)
    assert (error.hint or "").startswith(f"add {package}")
    report = await service.check(Evaluator(code))
    assert [one.module for one in report.missing_imports] == [package]
    assert not report.ok


@pytest.mark.sampled(18)
@pytest.mark.parametrize(
    "use",
    [
        "bool(client)",
        "client == 1",
        "client.a",
        "client < 1",
        "len(client)",
        "1 in client",
        "str(client)",
        "isinstance(1, client)",
        "client + 1",
        "client in {1, 2}",
        "{1: True}.get(client)",
        "'yes' in str([client])",
        "'yes' in f'{client!r}'",
        "isinstance(client, str)",
        "'ask' in dir(client)",
        "hasattr(client, 'ask')",
        "getattr(client, 'ask', False)",
        "[1 for one in client]",
    ],
)
async def test_a_placeholder_has_no_value(service: Service, use: str) -> None:
    code = "import openai\nclient = openai.OpenAI()\n" + SCORE.format(f"1.0 if {use} else 0.0")
    error = (await service.evaluate(Evaluator(code), ROW)).error
    assert error is not None
    assert (error.code, error.type) == ("user_exception", "ImportError")
    assert "register it and name it in `models`" in (error.hint or "")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("top", ["import rewards_of_mine\n", "from rewards import Rubric\n"])
async def test_a_module_that_is_not_well_known_stops_what_uses_it_and_is_never_installed(
    service: Service, top: str
) -> None:
    unused = await service.evaluate(Evaluator(top + ONE, packages=("auto",)), ROW)
    assert (unused.score, unused.error, unused.environment.packages) == (1.0, None, ())
    assert unused.not_loaded in (("rewards_of_mine",), ("rewards.Rubric",), ("rewards",))
    name = top.rsplit(maxsplit=1)[-1]
    error = (await service.evaluate(Evaluator(top + ONE.replace("1.0", f"{name}.x"), packages=("auto",)), ROW)).error
    assert error is not None
    assert error.code == "load_error"


async def test_an_import_of_a_package_itself_fails_as_anywhere(service: Service) -> None:
    files = {
        "lib/__init__.py": "try:\n    import openai\n    import numpy\n    rich = True\nexcept ImportError:\n    rich = False\n"
    }
    code = "import lib, openai, numpy\n" + SCORE.format("0.0 if lib.rich else 0.75")
    result = await service.evaluate(Evaluator(code, files=files), ROW)
    assert (result.score, result.not_loaded) == (0.75, ("openai", "numpy"))


async def test_check_lists_only_what_is_needed(service: Service) -> None:
    code = "import torch\ndef judge():\n    import pandas\n    return pandas, torch\n" + ONE
    report = await service.check(Evaluator(code))
    assert (report.ok, report.missing_imports, report.not_loaded) == (True, (), ("torch",))


TS_ENTRY = "export function evaluate(inputs: any, outputs: any, trace: any) {{ return {}; }}\n"
OWN_FILES = {
    Language.TYPESCRIPT: (
        "import { normalize } from './util';\nfunction clean(text: string) { return normalize(text); }\n",
        TS_ENTRY.format("clean(outputs) ? 1 : 0"),
        TS_ENTRY.format("1"),
    ),
    Language.PYTHON: (
        "from .util import normalize\ndef clean(text):\n    return normalize(text)\n",
        SCORE.format("float(clean(outputs))"),
        ONE,
    ),
}


@pytest.mark.parametrize("language", OWN_FILES)
async def test_a_check_fails_if_the_evaluator_uses_a_file_that_was_not_sent(
    service: Service, language: Language
) -> None:
    top, uses, does_without = OWN_FILES[language]
    path = "lib/score.py" if language is Language.PYTHON else None
    report = await service.check(Evaluator(top + uses, language=language, path=path))
    assert not report.ok
    assert "`files`" in str(report.problems[0].hint)
    assert "util" in str(report.problems[0].hint)
    unused = await service.check(Evaluator(top + does_without, language=language, path=path))
    assert (unused.ok, len(unused.not_loaded)) == (True, 1), unused
    assert not unused.missing_imports


@pytest.mark.long
async def test_a_check_says_which_scorers_use_a_file_that_was_not_sent(service: Service) -> None:
    code = (
        "import { normalize } from './util';\nimport { Eval } from 'braintrust';\n"
        "function good({ output }: any) { return 1; }\nfunction bad({ output }: any) { return normalize(output); }\n"
        "Eval('x', { data: () => [], task: async (input: string) => input, scores: [good, bad] });\n"
    )
    report = await service.check(Evaluator(code, language=Language.TYPESCRIPT))
    assert not report.ok
    assert [one.message for one in report.notes if one.code == "entry_left_out"] == [
        "bad is not called: Cannot find module './util'"
    ]


async def test_a_failed_import_has_the_line_of_the_import(service: Service) -> None:
    top, uses, _ = OWN_FILES[Language.TYPESCRIPT]
    code = top + uses.replace("return", "try { return").replace("; }", "; } catch { return 0; } }")
    result = await service.evaluate(Evaluator(code, language=Language.TYPESCRIPT), ROW)
    assert [one.message for one in result.warnings if one.code == "missing_import"] == [
        "line 1: ./util could not be imported, and the code goes on without it"
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("code", "config", "unread"),
    [
        (ONE, {"threshold": 2}, "threshold"),
        ("def evaluate(app_params, inputs, output, correct_answer):\n    return 1.0\n", {"threshold": 2}, None),
        (
            "from phoenix.evals import create_evaluator\n@create_evaluator(name='a')\ndef a(output):\n    return 1.0\n",
            {"output_config": "continuous", "outputs_config": 1},
            "outputs_config",
        ),
    ],
)
async def test_keys_of_a_configuration_that_nothing_reads_are_named(
    service: Service, code: str, config: dict[str, Json], unread: str | None
) -> None:
    result = await service.evaluate(
        Evaluator(code, settings=EvaluatorSettings(config=config)), Row({"correct_answer": ""}, "x")
    )
    told = [note.message.rpartition(": ")[2] for note in result.warnings if note.code == "unused_config"]
    assert (result.score, told) == (1.0, [] if unread is None else [unread])
