"""Programs and packages that failed in other sandboxes, according to public reports, work here, or the error names a
remedy.

Each is tried with every way to start a sandbox.
"""

from typing import Any

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.types.errors import PackagesFailed
from evaluator_host.types.evaluator import Evaluator, Language, Limits, Row
from evaluator_host.types.outcome import ErrorCode
from tests.starts import service_of_each_start

pytestmark = [
    pytest.mark.long("this takes minutes; test_children.py and test_pinned_most.py have a case of each kind"),
    pytest.mark.timeout(400),
]
LARGE = Limits(memory_mb=1024, processes=128, timeout_s=30)
PYTHON = {
    "a generated program that imports numpy": """
import subprocess, sys
def evaluate(inputs, outputs, trace):
    r = subprocess.run([sys.executable, '-c', outputs], capture_output=True, text=True, timeout=8)
    return {'score': float(r.stdout.strip() == '3'), 'reason': r.stderr[-120:]}
""",
    "joblib": """
from joblib import Parallel, delayed

def square(x):
    return x * x

def evaluate(inputs, outputs, trace):
    return sum(Parallel(n_jobs=2)(delayed(square)(i) for i in [0, 1]))
""",
    "a process by spawn": """
import multiprocessing as mp

def work(q):
    q.put(2)

def evaluate(inputs, outputs, trace):
    c = mp.get_context('spawn')
    q = c.Queue()
    p = c.Process(target=work, args=(q,))
    p.start()
    r = q.get(timeout=5)
    p.join()
    return float(r == 2)
""",
    "python3 by its name": """
import subprocess
def evaluate(inputs, outputs, trace):
    r = subprocess.run(['python3', '-c', outputs], capture_output=True, text=True, timeout=8)
    return r.stdout.strip() == '1'
""",
    "a line of the shell": """
import subprocess
def evaluate(inputs, outputs, trace):
    return subprocess.run('echo hi | wc -c', shell=True, capture_output=True, text=True).stdout.strip() == '3'
""",
}
JAVASCRIPT = {
    "node by its name": """
import { execFileSync } from 'node:child_process';
export function evaluate(inputs, outputs, trace) { return execFileSync('node', ['-e', outputs], { encoding: 'utf8' }).trim() === '3' }
""",
    "jsdom": """
import { JSDOM } from 'jsdom';
export function evaluate(inputs, outputs, trace) { return new JSDOM(outputs).window.document.querySelector('p').textContent === 'hi' }
""",
    "natural": """
import natural from 'natural';
export function evaluate(inputs, outputs, trace) { return natural.JaroWinklerDistance(outputs, 'abc') }
""",
}
SCORED: dict[str, tuple[Any, dict[str, Any]]] = {  # for each program: the outputs, and further fields of the evaluator
    "a generated program that imports numpy": (
        "import numpy as np; print(np.array([1, 2]).sum())",
        {"packages": ("numpy==2.1.3",)},
    ),
    "joblib": (None, {"packages": ("scikit-learn==1.5.2",), "limits": LARGE}),
    "a process by spawn": (None, {}),
    "python3 by its name": ("print(1)", {}),
    "a line of the shell": (None, {}),
    "node by its name": ("console.log(1+2)", {}),
    "jsdom": ("<p>hi</p>", {"packages": ("jsdom@25.0.1",), "limits": LARGE}),
    "natural": ("abc", {"packages": ("natural@8.0.1",), "limits": LARGE}),
}
REFUSED = {  # for each pin: the remedy in the error
    "better-sqlite3@11.5.0": "use node:sqlite, which works here",
    "sqlite3@5.1.7": "use node:sqlite, which works here",
    "textstat==0.7.4": "pin setuptools==",
}
SAID = {  # for each pin: the code, and texts in the error and its hint
    "chalk@5.3.0": (
        "const chalk = require('chalk');\nmodule.exports.evaluate = (inputs, outputs, trace) => chalk.red(outputs).length > 0;",
        "chalk.red is not a function",
        "chalk is an ES module: import it, or use require('chalk').default",
    ),
    "@sindresorhus/slugify@2.2.1": (
        "const slugify = require('@sindresorhus/slugify');\nmodule.exports.evaluate = (inputs, outputs, trace) => slugify(outputs) === 'a-b';",
        "slugify is not a function",
        "@sindresorhus/slugify is an ES module: import it, or use require('@sindresorhus/slugify').default",
    ),
    "nltk==3.9.1": (
        "import nltk\ndef evaluate(inputs, outputs, trace):\n    return len(nltk.word_tokenize(outputs))",
        "Resource punkt_tab not found",
        "send it in `data`",
    ),
}


def language_of(pin: str) -> Language:
    return Language.PYTHON if "==" in pin else Language.JAVASCRIPT


service = service_of_each_start()


@pytest.mark.parametrize("name", SCORED)
async def test_a_program_scores_as_on_a_desk(service: Service, name: str) -> None:
    outputs, has = SCORED[name]
    language = Language.PYTHON if name in PYTHON else Language.JAVASCRIPT
    result = await service.evaluate(Evaluator((PYTHON | JAVASCRIPT)[name], language, **has), Row(outputs=outputs))
    assert (result.score, result.error) == (1, None), result.reason


@pytest.mark.parametrize("name", ["jsdom", "natural"])
async def test_a_package_that_the_usual_memory_does_not_hold_says_which_limit_to_raise(
    service: Service, name: str
) -> None:
    outputs, has = SCORED[name]
    evaluator = Evaluator(JAVASCRIPT[name], Language.JAVASCRIPT, packages=has["packages"])
    result = await service.evaluate(evaluator, Row(outputs=outputs))
    if result.error is None:
        assert result.score == 1
    else:
        assert result.error.code is ErrorCode.MEMORY_LIMIT, result.error
        assert "raise limits.memory_mb" in f"{result.error.message} {result.error.hint}"


@pytest.mark.parametrize("pin", REFUSED)
async def test_a_package_that_cannot_run_is_refused_with_the_way_out(service: Service, pin: str) -> None:
    with pytest.raises(PackagesFailed) as refused:
        await service.evaluate(Evaluator("evaluate = 1", language_of(pin), packages=(pin,)), Row())
    assert REFUSED[pin] in f"{refused.value.detail} {[one.hint for one in refused.value.problems]}"


@pytest.mark.parametrize("pin", SAID)
async def test_an_error_has_the_authors_names_and_a_hint(service: Service, pin: str) -> None:
    code, message, hint = SAID[pin]
    error = (await service.evaluate(Evaluator(code, language_of(pin), packages=(pin,)), Row(outputs="Hello."))).error
    assert error is not None
    assert message in error.message
    assert "\x1b" not in error.message
    assert hint in (error.hint or "")
