"""Environment variables define settings; an empty variable means the default."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from evaluator_host.engine.config.settings import Settings, python_homes
from evaluator_host.platform.terminal.command import load_settings
from evaluator_host.types.errors import Misconfigured

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


def test_the_port_of_a_hosting_platform_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALUATOR_HOST_PORT", raising=False)
    monkeypatch.setenv("PORT", "")
    assert Settings().port == 8710
    monkeypatch.setenv("PORT", "3000")
    assert Settings().port == 3000
    monkeypatch.setenv("EVALUATOR_HOST_PORT", "9000")
    assert Settings().port == 9000
    assert Settings(port=1).port == 1


def test_a_value_that_is_invalid_is_refused_by_the_variable_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALUATOR_HOST_PORT", raising=False)
    for name in ("PORT", "EVALUATOR_HOST_PORT"):
        monkeypatch.setenv(name, "tcp://10.0.0.1")
        with pytest.raises(Misconfigured) as refused:
            load_settings()
        assert [problem.field for problem in refused.value.problems] == [name]


def test_a_relative_data_directory_is_one_of_the_folder_that_the_command_began_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings(data_dir=Path("data")).data_dir == tmp_path / "data"


def test_a_user_without_a_home_folder_can_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError("Could not determine home directory.")))
    for name in ("XDG_DATA_HOME", "UV_PYTHON_INSTALL_DIR", "PYENV_ROOT"):
        monkeypatch.delenv(name, raising=False)
    assert python_homes() == (Path("/.local/share/uv/python"), Path("/.pyenv/versions"))
