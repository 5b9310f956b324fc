"""The corpus of whole files is valid, and every score is judged as right or wrong."""

import pytest

from evaluator_host.types.outcome import ErrorCode, EvaluationError, Status
from tests.unit.results import result_of
from tests.whole_files.__main__ import WholeFile, corpus

ADDRESS = f"github:a/b@{'0' * 40}:x.py"


def test_each_file_has_an_address_a_digest_and_one_right_end() -> None:
    files = corpus()
    assert len({one.sha256 for one in files}) == len({one.address for one in files}) == len(files) >= 60
    for one in files:
        assert one.parts["suffix"] in {"py", "js", "cjs", "mjs", "ts"}
        assert len(bytes.fromhex(one.sha256)) == 32
        for each in (one, one.lying()):
            assert [each.score, each.passed, each.stops].count(None) == 2, one.address


@pytest.mark.parametrize(
    ("score", "passed", "judged"), [(0.5, None, "right"), (0.25, None, "wrong"), (None, True, "wrong")]
)
def test_another_score_is_wrong(score: float | None, passed: bool | None, judged: str) -> None:
    result = result_of(status=Status.SCORED, score=score, passed=passed)
    assert WholeFile(address=ADDRESS, sha256="", score=0.5).judged(result) == judged
    assert WholeFile(address=ADDRESS, sha256="", stops=("load_error", "x")).judged(result) == "wrong"


@pytest.mark.parametrize(
    ("code", "message", "judged"),
    [
        (ErrorCode.LOAD_ERROR, "No module named 'own'", "as it should"),
        (ErrorCode.LOAD_ERROR, "another", "stopped"),
        (ErrorCode.USER_EXCEPTION, "own", "stopped"),
    ],
)
def test_an_error_is_the_expected_one_or_a_stop(code: ErrorCode, message: str, judged: str) -> None:
    result = result_of(status=Status.FAILED, score=None, error=EvaluationError(code, message))
    assert WholeFile(address=ADDRESS, sha256="", stops=("load_error", "own")).judged(result) == judged
    assert WholeFile(address=ADDRESS, sha256="", score=1.0).judged(result) == "stopped"


def test_a_file_in_its_checkout_has_an_end_of_its_own() -> None:
    one = WholeFile(address=ADDRESS, sha256="", stops=("load_error", "own"), in_checkout={"score": 1})
    assert (one.lying().score, one.lying().stops) == (1, None)
    plain = WholeFile(address=ADDRESS, sha256="", score=1)
    assert plain.lying() is plain
