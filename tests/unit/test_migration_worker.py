"""The process that parses code for migration answers any code with a rewrite, or with a refusal and a reason."""

from collections.abc import AsyncIterator, Sequence

import pytest

from evaluator_host.engine.system.limited_process import LimitedProcesses
from evaluator_host.migrate.draft import Wish
from evaluator_host.migrate.migrate import MigrationContext, migrate
from evaluator_host.migrate.syntax import Unreadable
from evaluator_host.types.evaluator import Evaluator, Language, Row
from evaluator_host.types.migrations import MigrationStatus
from evaluator_host.types.outcome import EvaluationResult


async def nothing_is_to_run(evaluator: Evaluator, rows: Sequence[Row]) -> list[EvaluationResult]:
    raise AssertionError("no code may run here")


CONTEXT = MigrationContext(nothing_is_to_run, LimitedProcesses())
EVALUATE = "def evaluate(app_params, inputs, output, correct_answer):\n    return {}\n"


@pytest.fixture(scope="module", autouse=True)
async def ended_processes() -> AsyncIterator[None]:
    yield
    await CONTEXT.processes.close()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("[" * 30_000 + "]" * 30_000, "the code is nested more than 1000 levels deep"),
        ("-" * 200_000 + "1", "the code is nested more than 1000 levels deep"),
        ("output" + ".x" * 60_000, "the code is nested more than 1000 levels deep"),
        ("1 " * 200_000, "at most 256 KB can be rewritten"),
        ("(" * 100_000, "the code is not valid Python"),
        ("\0", "the code is not valid Python"),
        ("lambda: (" * 400 + "1" + ")" * 400, None),
        (" + ".join(["output"] * 900), None),
    ],
    ids=["brackets", "signs", "attributes", "large", "open", "null", "lambdas", "sum"],
)
@pytest.mark.slow
async def test_extreme_programs_are_rewritten_or_refused(expression: str, reason: str | None) -> None:
    if reason is None:
        rewritten = await CONTEXT.rewrite(EVALUATE.format(expression), Language.PYTHON, Wish())
        assert rewritten.code is not None
        assert rewritten.code.startswith("def evaluate(inputs, outputs, trace):\n    return ")
        return
    with pytest.raises(Unreadable) as refused:
        await CONTEXT.rewrite(EVALUATE.format(expression), Language.PYTHON, Wish())
    assert reason in refused.value.reason


@pytest.mark.sampled(4)
@pytest.mark.parametrize("language", [Language.JAVASCRIPT, Language.TYPESCRIPT])
@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("[" * 30_000 + "]" * 30_000, "the code is nested more than 1000 levels deep"),
        ("x" + " => x" * 40_000, "the code is nested more than 1000 levels deep"),
        ("`${" * 20_000, "the code is not valid"),
        (" + ".join(["output"] * 900), None),
    ],
    ids=["brackets", "arrows", "templates", "sum"],
)
async def test_extreme_javascript_is_rewritten_or_refused(
    language: Language, expression: str, reason: str | None
) -> None:
    code = f"function evaluate(appParams, inputs, output, correctAnswer) {{\n  return {expression};\n}}\n"
    if reason is None:
        rewritten = await CONTEXT.rewrite(code, language, Wish())
        assert (rewritten.code or "").startswith("function evaluate(inputs, outputs, trace) {\n  return outputs + ")
        return
    with pytest.raises(Unreadable) as refused:
        await CONTEXT.rewrite(code, language, Wish())
    assert reason in refused.value.reason


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("const evaluate = (a, i, o, c) => [1].map((inputs) => c)[0]", "c is used where inputs is another variable"),
        ("const evaluate = (a, i, o, c) => (c = 3)", "c is assigned, so a read of inputs cannot replace it"),
        ("const evaluate = (a, i, o, c) => { a.x = 1; return c; }", None),
        (
            "const evaluate = (a, i, o, c) => (a.x = 1, c)",
            "a is assigned in an arrow function without braces, which cannot contain statements",
        ),
        ("const evaluate = ({x}, i, o, c) => x", "the function destructures its parameters and has no body"),
    ],
)
async def test_an_arrow_function_that_cannot_hold_the_rewrite_is_refused(code: str, reason: str | None) -> None:
    if reason is None:
        assert (await CONTEXT.rewrite(code, Language.JAVASCRIPT, Wish())).code is not None
        return
    with pytest.raises(Unreadable) as refused:
        await CONTEXT.rewrite(code, Language.JAVASCRIPT, Wish())
    assert reason in refused.value.reason


async def test_a_refusal_names_the_line() -> None:
    with pytest.raises(Unreadable) as refused:
        await CONTEXT.rewrite("x = 1\n\n\ndef evaluate(:\n    pass\n", Language.PYTHON, Wish())
    assert refused.value.line == 4


async def test_an_evaluator_of_another_name_and_key() -> None:
    code = "def score(a, b, c, d):\n    return c == d\n"
    rewritten = await CONTEXT.rewrite(code, Language.PYTHON, Wish("score", "it's gold"))
    assert rewritten.code == 'def score(inputs, outputs, trace):\n    return outputs == inputs["it\'s gold"]\n'


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("x = 1\n" * 100_000, "the code is 585 KB long; at most 256 KB can be rewritten"),
        ("x = '\ud800'\n", "the code contains half of a surrogate pair"),
    ],
    ids=["large", "surrogate"],
)
async def test_text_that_is_not_a_program_is_not_even_looked_at(code: str, reason: str) -> None:
    migration = await migrate(Evaluator(code), context=CONTEXT)
    assert (migration.status, migration.code) == (MigrationStatus.REFUSED, code)
    assert migration.unresolved[0].message.startswith(reason)
