"""No JavaScript rewrite changes a score silently: a random program returns the same after the rewrite, or is refused."""

import json
import subprocess
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evaluator_host.engine.environments.toolchain import node_path
from evaluator_host.migrate.draft import Wish
from evaluator_host.migrate.syntax import Unreadable
from evaluator_host.migrate.worker import REWRITES
from evaluator_host.types.evaluator import Language
from tests.fuzz.bounds import bounded
from tests.migration.javascript_programs import KEY, programs

VALUES = st.sampled_from(["Paris", " paris", "", None, 3, 0.5, ["Paris", "x"], {"x": 1, "data": "Paris"}, True])
ROWS = st.tuples(VALUES, VALUES, VALUES)
RUN = """
const { Script } = require('node:vm');
const cases = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
const outcome = (code, args) => {
  try {
    globalThis.given = args;
    const value = new Script(`(() => { ${code}; return evaluate(...given); })()`).runInThisContext({ timeout: 300 });
    const number = typeof value === 'string' ? Number(value) : value;
    return JSON.stringify(number) ?? String(number).replace(/\\s+/g, ' ');
  } catch (error) { return null; }
};
console.log(JSON.stringify(cases.map(([old, next, inputs, output, truth]) => [
  outcome(old, [{}, structuredClone(inputs), structuredClone(output), structuredClone(truth)]),
  outcome(next, [structuredClone(inputs), structuredClone(output), null]),
])));
"""


@bounded(6, shrink=False)
# large lists, because each list takes a process of Node
@given(st.lists(st.tuples(programs(), ROWS), min_size=20, max_size=30))
def test_rewritten_code_returns_the_same(drawn: list[tuple[str, tuple[Any, Any, Any]]]) -> None:
    cases = []
    for code, (output, truth, data) in drawn:
        for language in (Language.JAVASCRIPT, Language.TYPESCRIPT):
            try:
                rewritten = REWRITES[language](code, Wish())
            except Unreadable:
                continue
            assert rewritten.code is not None
            cases.append((code, rewritten.code, {"data": data, KEY: truth}, output, truth))
    for case, (old, new) in zip(cases, outcomes(cases), strict=True):
        assert new == old, "\n".join(map(str, case))


def test_a_loop_over_what_its_own_variable_hides_throws_as_it_did() -> None:
    code = (
        "const evaluate = (appParams, i, o, c) => { for (const appParams of [appParams.x || 1]) return 1; return 0; }"
    )
    rewritten = REWRITES[Language.JAVASCRIPT](code, Wish()).code
    assert rewritten is not None
    assert outcomes([(code, rewritten, {KEY: 1}, 1, 1)]) == [[None, None]]


def test_the_comparison_sees_a_difference() -> None:
    code = "const evaluate = (appParams, inputs, output, correctAnswer) => output === correctAnswer"
    wrong = "const evaluate = (inputs, outputs, trace) => outputs === inputs.answer"
    assert outcomes([(code, wrong, {KEY: 1}, 1, 1), (code, "throw 1", {KEY: 1}, 1, 1)]) == [
        ["true", "false"],
        ["true", None],
    ]


def outcomes(cases: list[tuple[Any, ...]]) -> list[list[str | None]]:
    """For each case, return the results of the old and the new program as JSON; None for a program that throws."""
    ran = subprocess.run(
        [node_path(), "-e", RUN], input=json.dumps(cases), capture_output=True, text=True, timeout=60, check=True
    )
    found: list[list[str | None]] = json.loads(ran.stdout)
    return found
