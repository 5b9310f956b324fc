"""Which variables set what, and what an empty one means."""

import pytest

from evaluator_host.config.settings import Settings

NAMES = ("CA_FILE", "PORT", "ALLOWED_HOSTS", "KEY", "SANDBOX", "DATA_DIR", "DATABASE_URL")


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(f"EVALUATOR_HOST_{name}", raising=False)
    unset = Settings()
    for name in NAMES:
        monkeypatch.setenv(f"EVALUATOR_HOST_{name}", "")
    assert Settings() == unset


def test_a_variable_wins_over_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALUATOR_HOST_PORT", "9000")
    assert Settings().port == 9000
    assert Settings(port=1).port == 1
