"""Two hundred legacy evaluators, of kinds that the corpus does not have: each is rewritten or adapted, with a proof."""

import asyncio
import re

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.migrate.draft import Wish
from evaluator_host.migrate.migrate import migrate, migration_context
from evaluator_host.migrate.worker import adapt_program, rewrite_program
from evaluator_host.types.evaluator import Evaluator, Language, Row
from evaluator_host.types.migrations import MigrationStatus
from evaluator_host.types.proof import ProofVerdict
from tests.migration.corpus import FOLDER

AT_ONCE = 3
SHARE = 24  # `make test` proves one program in this many, `make test-all` all


def kinds() -> list[tuple[Language, str, str]]:
    """Return the evaluators as language, name and code."""
    found = []
    for language in Language:
        text = (FOLDER / "kinds" / f"{language.value}.txt").read_text("utf-8")
        parts = re.split(r"^=== (.*)\n", text, flags=re.MULTILINE)[1:]
        found += [(language, name, code) for name, code in zip(parts[::2], parts[1::2], strict=True)]
    return found


ALL = kinds()
SAMPLE = ALL[::SHARE]


def test_there_are_as_many_as_promised() -> None:
    assert len({(language, name) for language, name, _ in ALL}) == len(ALL) >= 200


@pytest.mark.parametrize("language", Language)
def test_each_can_be_rewritten_or_adapted(language: Language) -> None:
    for _, name, code in (one for one in ALL if one[0] is language):
        rewritten = rewrite_program(code, language, Wish())
        adapted = adapt_program(code, language, Wish())
        assert adapted, name
        assert "refused" not in rewritten or rewritten["refused"]["message"], name
        for one in adapted:
            assert "current" in rewrite_program(one["code"], language, Wish()) or name in _LOOSE, name


_LOOSE = frozenset(("exec of the definition",))


@pytest.mark.long
@pytest.mark.engine
async def test_a_sample_of_them_is_proven(host: Service) -> None:
    assert await not_proven(host, SAMPLE) == []


@pytest.mark.engine
@pytest.mark.differential
@pytest.mark.timeout(900)
async def test_every_other_one_is_proven_too(host: Service) -> None:
    assert await not_proven(host, [one for one in ALL if one not in SAMPLE]) == []


async def not_proven(host: Service, chosen: list[tuple[Language, str, str]]) -> list[str]:
    """Rewrite or adapt evaluators, a few at a time; return a message for each that has no proof."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(language: Language, name: str, code: str) -> str | None:
        async with turns:
            migration = await migrate(Evaluator(code, language), context=migration_context(host, "default"), adapt=True)
        proven = migration.has_new_code and migration.is_proven
        return None if proven else f"{language} {name}: {migration.status} {migration.proof and migration.proof.text}"

    told = await asyncio.gather(*(one(*kind) for kind in chosen))
    return [line for line in told if line is not None]


FACTORY = 'def make():\n    return lambda a, inputs, output, correct_answer: "1" if output == correct_answer else 0\n\n\nevaluate = make()\n'
ADAPTED = """

legacy_evaluate = evaluate


def evaluate(inputs, outputs, trace):
    score = legacy_evaluate({}, inputs, outputs, inputs["correct_answer"])
    return float(score) if isinstance(score, str) else score
"""


@pytest.mark.engine
async def test_the_old_code_stays_byte_for_byte(host: Service) -> None:
    context = migration_context(host, "default")
    refused = await migrate(Evaluator(FACTORY), context=context)
    assert (refused.status, refused.code, refused.proof) == (MigrationStatus.REFUSED, FACTORY, None)
    adapted = await migrate(Evaluator(FACTORY), context=context, adapt=True)
    assert (adapted.status, adapted.code) == (MigrationStatus.ADAPTED, FACTORY + ADAPTED)
    assert adapted.is_proven
    assert adapted.unresolved == ()
    assert adapted.changes[0].message.startswith("not rewritten: evaluate is created by other code")


@pytest.mark.engine
async def test_code_that_can_be_rewritten_is_not_adapted(host: Service) -> None:
    code = "def evaluate(app_params, inputs, output, correct_answer):\n    return float(output == correct_answer)\n"
    context = migration_context(host, "default")
    assert (await migrate(Evaluator(code), context=context, adapt=True)).status is MigrationStatus.MIGRATED
    none = await migrate(Evaluator("X = 'evaluate'\n"), context=context, adapt=True)
    assert none.status is MigrationStatus.NO_EVALUATOR
    broken = await migrate(Evaluator("def evaluate(a, b, c, d:\n"), context=context, adapt=True)
    assert broken.status is MigrationStatus.REFUSED


@pytest.mark.long
@pytest.mark.engine
async def test_chance_is_adapted_without_a_proof(host: Service) -> None:
    code = "import random\n\nevaluate = (lambda: lambda a, i, o, c: random.random())()\n"
    migration = await migrate(Evaluator(code), context=migration_context(host, "default"), adapt=True)
    assert migration.status is MigrationStatus.ADAPTED
    assert migration.proof is not None
    assert migration.proof.verdict is ProofVerdict.NOT_COMPARABLE
    assert "chance" in (migration.proof.why or "")


MAIN = "def main(completion, **rest):\n    return {'score': float(completion == rest['target'])}\n"


@pytest.mark.engine
async def test_main_is_adapted_too(host: Service) -> None:
    rows = [Row({"target": "a"}, "a"), Row({"target": "a"}, "b")]
    context = migration_context(host, "default")
    assert (await migrate(Evaluator(MAIN), rows, context=context)).status is MigrationStatus.REFUSED
    adapted = await migrate(Evaluator(MAIN), rows, context=context, adapt=True)
    assert (adapted.status, adapted.is_proven) == (MigrationStatus.ADAPTED, True), adapted.proof
    script = "const main = ({ completion, target }) => ({ score: completion === target ? 1 : 0 });\n"
    other = await migrate(Evaluator(script, Language.JAVASCRIPT), rows, context=context, adapt=True)
    assert (other.status, other.is_proven) == (MigrationStatus.ADAPTED, True), other.proof


DATAPOINT = 'def evaluate(app_params, inputs, output, datapoint):\n    return float(output == datapoint["city"])\n'


@pytest.mark.engine
async def test_a_row_that_the_contract_never_passes_proves_nothing(host: Service) -> None:
    context = migration_context(host, "default")
    flat = [Row({"city": "Paris", "correct_answer": "Paris"}, "Paris")] * 20
    migration = await migrate(Evaluator(DATAPOINT), flat, context=context)
    assert migration.proof is not None
    assert migration.proof.verdict is ProofVerdict.NOT_COMPARABLE
    assert "agree on 20 of 20 rows" in (migration.proof.why or "")
    assert 'inputs["city"]' in migration.code
    nested = [Row({"correct_answer": {"city": "Paris"}}, "Paris")]
    other = await migrate(Evaluator(DATAPOINT), nested, context=context)
    assert other.is_proven
    assert 'inputs["correct_answer"]["city"]' in other.code
