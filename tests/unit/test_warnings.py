"""The host counts the warnings about many rows, and reports when scores are not reliable."""

from dataclasses import replace

import pytest

from evaluator_host.engine.service.summaries import summarise
from evaluator_host.platform.terminal.summary import Summary
from evaluator_host.types.evaluator import Language
from evaluator_host.types.outcome import (
    EnvironmentInfo,
    ErrorCode,
    EvaluationError,
    EvaluationResult,
    EvaluatorInfo,
    Logs,
    Note,
    SandboxInfo,
    Status,
    Timing,
)
from evaluator_host.types.warnings import MOST_CODES, Mend, RowWarnings, WarningTally, doubt

MISSING = Note("missing_outputs", "the row has no outputs", "give `outputs`")
COERCED = Note("coerced", "the text '1' was taken as a number")
SCORED = EvaluationResult(
    Status.SCORED, 1.0, None, None, None, {"score": 1.0}, None, (), None, Logs(), Timing(),
    EvaluatorInfo(None, None, "sha256:0", Language.PYTHON, None, None), EnvironmentInfo("sha256:0", "python 3", ()),
    SandboxInfo("bubblewrap", warm=True),
)  # fmt: skip
FAILED = replace(
    SCORED, status=Status.FAILED, score=None, metrics={}, error=EvaluationError(ErrorCode.USER_EXCEPTION, "boom")
)
LABELLED = replace(SCORED, score=None, metrics={}, label="good")


def with_notes(*notes: Note) -> EvaluationResult:
    return replace(SCORED, warnings=notes)


def test_a_code_is_counted_once_a_row_and_its_first_rows_are_named() -> None:
    tally = WarningTally()
    for row in (9, 3, 7, 1, 8, 2, 5):
        tally.add(row, [COERCED, replace(COERCED, message="another"), *([MISSING] if row == 7 else [])])
    missing, coerced = tally.counts()
    assert (missing.code, missing.count, missing.rows, missing.doubtful) == ("missing_outputs", 1, (7,), True)
    assert (missing.remedy, missing.mend) == ("give `outputs`", Mend.MAPPING)
    assert (coerced.count, coerced.rows) == (7, (1, 2, 3, 5, 7))
    assert coerced.message == f"{COERCED.message}; another"
    assert missing.text == "missing_outputs (1 row): the row has no outputs; give `outputs`"


def test_rows_that_end_in_any_order_give_the_words_of_the_first() -> None:
    notes = [replace(COERCED, message=f"of row {row}") for row in range(6)]
    for order in ((0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (3, 5, 0, 4, 1, 2)):
        tally = WarningTally()
        for row in order:
            tally.add(row, [notes[row]])
        [told] = tally.counts()
        assert (told.message, told.count, told.rows) == ("of row 0", 6, (0, 1, 2, 3, 4))
        assert told.text == "coerced (6 rows): for example row 0: of row 0"


def test_a_tally_that_continues_another_is_that_of_all_rows() -> None:
    first, whole = WarningTally(), WarningTally()
    for row in range(4):
        first.add(row, [MISSING])
    later = WarningTally(first.counts())
    for row in range(4, 9):
        later.add(row, [MISSING, COERCED])
    for row in range(9):
        whole.add(row, [MISSING] if row < 4 else [MISSING, COERCED])
    assert later.counts() == whole.counts()


def test_several_warnings_of_a_row_with_one_code_are_all_told() -> None:
    tally = WarningTally()
    imports = [Note("missing_import", f"no {name} here", f"pin {name}==1") for name in ("ragas", "spacy", "ragas")]
    tally.add(0, imports)
    tally.add(1, imports)
    [told] = tally.counts()
    both = "no ragas here; no spacy here; pin ragas==1; pin spacy==1"
    assert (told.text, told.varies) == (f"missing_import (2 rows): {both}", False)
    tally.add(2, [Note("coerced", f"{number} {'y' * 700}", "z" * 700) for number in range(9)])
    [many] = [one for one in tally.counts() if one.code == "coerced"]
    assert [f"{number} y" in many.message for number in range(9)] == [True] * 5 + [False] * 4
    assert many.message.endswith("yy; and 4 more")
    assert len(many.text) < 1500


def test_codes_and_texts_that_a_sandbox_makes_up_are_bounded() -> None:
    tally = WarningTally()
    for row in range(1000):
        tally.add(row, [Note(f"{row}-{'x' * 5000}", "y" * 5000, "z" * 5000)])
    counts = tally.counts()
    assert len(counts) == MOST_CODES
    assert all(len(one.code) <= 100 and len(one.text) < 1500 for one in counts)


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ([], None),
        ([SCORED], None),
        ([SCORED, FAILED], None),
        ([FAILED, FAILED], "2 of 2 rows failed"),
        ([LABELLED, LABELLED], "0 of 2 rows have a score"),
        ([LABELLED, FAILED], "0 of 2 rows have a score"),
        ([replace(LABELLED, metrics={"precision": 0.5})], None),
        ([with_notes(MISSING), with_notes(MISSING)], "2 of 2 scores are doubtful: the row has no outputs"),
        ([with_notes(MISSING), FAILED], "1 of 1 scores are doubtful: the row has no outputs"),
        ([with_notes(MISSING), SCORED], None),
        ([with_notes(COERCED)], None),
        ([with_notes(COERCED, MISSING)], "1 of 1 scores are doubtful: the row has no outputs"),
        ([with_notes(MISSING), replace(LABELLED, warnings=(MISSING,))], "1 of 1 scores are doubtful: the row has no outputs"),
        ([with_notes(Note("entry_failed", "exact: no")), SCORED], "1 of 2 scores leave out an evaluator that failed: exact: no"),
        ([with_notes(Note("made_up", "a code that the host does not know"))], None),
    ],
)  # fmt: skip
def test_it_is_said_why_no_score_of_some_rows_can_be_relied_on(
    results: list[EvaluationResult], why: str | None
) -> None:
    assert RowWarnings.of(results).doubt() == why
    summary = Summary()
    for row, result in enumerate(results):
        summary.add(result, row=row, line=row + 1)
    assert summary.doubt == why
    failed = any(one.error for one in results)
    assert summary.exit_code(bad_lines=0, fail_under=None, strict=False) == int(failed or why is not None)
    shown = summary.to_table(bad_lines=0, seconds=1.0).plain
    assert (why or "doubtful ") in shown or (why is None and "doubtful" not in shown)


def test_rows_that_failed_are_reported_as_the_reason_of_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    summary = Summary()
    for row, result in enumerate((SCORED, FAILED, FAILED)):
        summary.add(result, row=row, line=row + 1)
    assert summary.exit_code(bad_lines=0, fail_under=0.0, strict=False) == 1
    assert capsys.readouterr().err == "2 rows failed, so the exit code is 1\n"


def test_scores_over_all_rows_make_up_for_rows_without_any() -> None:
    summary = Summary()
    summary.add(LABELLED, row=0, line=1)
    assert summary.doubt == "0 of 1 rows have a score"
    summary.together = SCORED
    assert summary.doubt is None
    summary.together = FAILED
    assert summary.doubt == "0 of 1 rows have a score"


def test_a_score_over_all_rows_that_failed_is_a_doubt() -> None:
    summary = Summary()
    summary.add(SCORED, row=0, line=1)
    assert summary.exit_code(bad_lines=0, fail_under=None, strict=False) == 0
    summary.together = FAILED
    assert FAILED.error is not None
    why = f"the score over all rows together failed: {FAILED.error.code}: {FAILED.error.message}"
    assert summary.doubt == summarise([SCORED], seconds=1, together=FAILED).doubt == why
    assert summary.exit_code(bad_lines=0, fail_under=None, strict=False) == 1


def test_a_doubt_without_a_known_warning_still_says_so() -> None:
    assert doubt(rows=2, failed=0, numbers=2, doubted=2) == "2 of 2 scores are doubtful: see the warnings"
