"""In real sandboxes, every legacy evaluator of the corpus migrates with a proof, or a reason why there is none."""

import asyncio
import difflib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evaluator_host.engine.service import Service
from evaluator_host.migrate.draft import Wish
from evaluator_host.migrate.migrate import migrate, migration_context
from evaluator_host.migrate.worker import REWRITES
from evaluator_host.types.evaluator import Evaluator, Language, Row
from evaluator_host.types.migrations import Migration, MigrationStatus
from evaluator_host.types.outcome import Status
from evaluator_host.types.proof import ProofVerdict
from tests.migration.corpus import ALL, Case, cases

AT_ONCE = 4
# `make test` proves one program in this many, since a proof starts two sandboxes; `make test-all` proves all
SHARE = 15
_PROVEN = [one for one in ALL if one.outcome == "proven"]
_FILES = [one for one in _PROVEN if "\r" in one.before]  # programs with Windows line ends
IN_SANDBOXES = [one for one in ALL if one.outcome != "proven" or one in (*_PROVEN[::SHARE], *_FILES)]
_OTHERS = [one for one in ALL if one not in IN_SANDBOXES]


async def migrate_all(host: Service, chosen: list[Case]) -> dict[tuple[Language, str], Migration]:
    """Migrate programs of the corpus, a few at a time."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> Migration:
        async with turns:
            return await migrate(
                Evaluator(case.before, case.language), context=migration_context(host, "default"), name=case.name
            )

    found = await asyncio.gather(*map(one, chosen))
    return {(case.language, case.name): migration for case, migration in zip(chosen, found, strict=True)}


@pytest.fixture(scope="module")
async def migrated(host: Service) -> dict[tuple[Language, str], Migration]:
    """The migrations of the programs that every test run proves."""
    return await migrate_all(host, IN_SANDBOXES)


@pytest.mark.parametrize("language", Language)
def test_an_evaluator_is_rewritten_as_a_person_would(language: Language) -> None:
    for case in (one for one in _OTHERS if one.language is language):
        rewritten = REWRITES[case.language](case.before, Wish())
        assert rewritten.code == case.after, case.name
        assert tuple((one.line, one.message) for one in rewritten.unresolved) == case.unresolved, case.name


@pytest.mark.parametrize("case", IN_SANDBOXES, ids=lambda case: case.name)
@pytest.mark.engine
def test_an_evaluator_becomes_what_a_person_would_write(
    case: Case, migrated: dict[tuple[Language, str], Migration]
) -> None:
    judge(case, migrated[case.language, case.name])


@pytest.mark.engine
@pytest.mark.differential
async def test_every_other_one_is_proven_too(host: Service) -> None:
    found = await migrate_all(host, _OTHERS)
    for case in _OTHERS:
        judge(case, found[case.language, case.name])


def judge(case: Case, migration: Migration) -> None:
    """Check that a migrated program looks as a person would write it, and has the expected proof."""
    assert tuple((one.line, one.message) for one in migration.unresolved) == case.unresolved
    if case.after is None:
        assert (migration.status.value, migration.code, migration.proof) == (case.outcome, case.before, None)
        return
    assert migration.status is MigrationStatus.MIGRATED
    assert "".join(difflib.unified_diff(case.after.splitlines(True), migration.code.splitlines(True))) == ""
    assert migration.proof is not None
    assert migration.proof.verdict.value == case.outcome, migration.proof.text
    if migration.proof.verdict is ProofVerdict.PROVEN:
        assert migration.proof.scored > migration.proof.rows / 3  # a proof in which most rows fail would show little
        assert migration.proof.generated


def test_migrated_code_is_current() -> None:
    for case in (one for one in ALL if one.outcome == "proven"):
        assert case.after is not None, case.name
        assert REWRITES[case.language](case.after.removeprefix("\ufeff"), Wish()).current, case.name


def test_the_corpus_is_as_large_as_it_has_to_be() -> None:
    assert len(cases(Language.PYTHON)) >= 30
    assert len(cases(Language.JAVASCRIPT)) >= 15
    assert len(cases(Language.TYPESCRIPT)) >= 15


def test_formatted_code_stays_formatted(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    python = [case for case in cases(Language.PYTHON) if case.after is not None]
    for folder in (before, after):
        folder.mkdir()
    for case in python:
        (before / case.name).write_bytes(case.before.encode())
        (after / case.name).write_bytes((case.after or "").encode())
    assert len(python) - len(unformatted(before)) > 30
    # only in these programs, the migration made lines longer than the formatter's limit
    assert unformatted(after) - unformatted(before) == {"long_lines.py", "recursive.py"}


def unformatted(folder: Path) -> set[str]:
    """Return the names of files that the formatter would change with its standard settings."""
    ran = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--check", "--isolated", folder], capture_output=True, text=True
    )
    return set(re.findall(r"(\w+\.py)\b", ran.stdout.replace(str(folder), "")))


@pytest.mark.engine
async def test_rows_that_are_given_are_the_ones_that_count(host: Service) -> None:
    code = "def evaluate(app_params, inputs, output, correct_answer):\n    return str(len(output))\n"
    rows = [Row({"correct_answer": "a"}, "abc"), Row({"question": "?"}, "abc")]
    migration = await migrate(Evaluator(code), rows, context=migration_context(host, "default"))
    assert migration.proof is not None
    assert (migration.proof.text, migration.proof.generated) == ("proven on 1 row; 1 row left out", False)
    assert (migration.proof.rows, migration.proof.left_out, migration.proof.scored) == (1, 1, 1)
    parts = [Row({"correct_answer": "a"}, "abc"), Row({"correct_answer": "a"}, "")]
    partial = await migrate(Evaluator(code.replace("str(", "1 / (")), parts, context=migration_context(host, "default"))
    assert partial.proof is not None
    assert partial.proof.text == "proven on 2 rows, of which the old code scored 1"
    none = await migrate(Evaluator(code), rows[1:], context=migration_context(host, "default"))
    assert none.proof is not None
    assert none.proof.text.startswith("not comparable: no row has the inputs that the legacy call needs: inputs has no")


@pytest.mark.engine
async def test_a_difference_is_reported_with_both_results(host: Service) -> None:
    code = "def evaluate(app_params, inputs, output, correct_answer):\n    x = output\n    return x\n"
    rows = [Row({"correct_answer": 1}, 0.5), Row({"correct_answer": 1}, "0.25")]
    migration = await migrate(Evaluator(code), rows, context=migration_context(host, "default"))
    proof = migration.proof
    assert proof is not None
    assert proof.verdict is ProofVerdict.DIFFERS
    assert proof.text.startswith("differs at row 1: old score 0.25, new failed (invalid_result: ")
    (difference,) = proof.differences
    assert (difference.row, difference.given) == (1, rows[1])
    assert (difference.old.score, difference.new.status) == (0.25, Status.FAILED)
