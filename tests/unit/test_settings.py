"""Environment variables define settings; an empty variable means the default."""

import json
import traceback
from pathlib import Path
from unittest.mock import Mock

import pytest

from evaluator_host.engine.config.settings import Settings, python_homes, unknown_variables
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


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MODELS", '{"m": {"base_url": "https://a.test", "workspace": "search"}}', "m.workspace: this field is unknown; did you mean workspaces? The fields are base_url, model, "),
        ("MODEL_DAY", '{"request": 5}', "request: this field is unknown; did you mean requests? The fields are requests, tokens, cost"),
        ("WORKSPACE_LIMITS", '{"a": {"model_day": {"token": 3}}}', "a.model_day.token: this field is unknown; did you mean tokens?"),
        ("WIRE_OPTIONS", '{"openai": {"timeout": 3}}', "openai.timeout: this field is unknown; did you mean timeout_s?"),
        ("WIRE_OPTIONS", '{"openai": {"timeout_s": -1}}', "openai.timeout_s: Input should be greater than 0, not -1"),
        ("MODELS", '{"m": {"key": "hidden"}}', "m.base_url: this field is required"),
        ("MODELS", '{"m": {"base_url": "https://a.test", "key": ["hidden"]}}', "m.key: Input should be a valid string"),
        ("MODELS", '{"m": {"key": "hidden"', "Expecting"),
        ("MODELS", '{"m": "hidden"}', "m: Input should be"),
        ("WIRE_OPTIONS", '{"openai": {"secret": "hidden"}}', "openai.secret: must have at least 16 characters"),
        ("JUDGE_HOSTS", "api.test, b.test", 'this is not JSON; did you mean ["api.test", "b.test"]?'),
        ("WIRE_OPTIONS", '{"openai": {"secret": "hidden"', "this is not JSON; write an object: {…}"),
        ("JUDGE_HOSTS", "[3]", "0: Input should be a valid string, not 3"),
        ("JUDGE_HOSTS", '["*"]', "0: '*' is not allowed here; write each host as api.example.com or api.example.com:443"),
        ("JUDGE_HOSTS", '["a.test", "*.b.test"]', "1: '*.b.test' is not allowed here"),
        ("TARGET_HOSTS", '["https://a.test/v1"]', "0: 'https://a.test/v1' is not allowed here"),
        ("WEBHOOK_HOSTS", '["10.0.0.0/8"]', "0: '10.0.0.0/8' is not allowed here"),
        ("NETWORK_HOSTS", '["https://a.test"]', "0: 'https://a.test' is not allowed here"),
        ("NETWORK_PRIVATE", '["10.1.2.3/16"]', "0: 10.1.2.3/16 has host bits set; write a network such as 10.1.0.0/16"),
        ("ALLOWED_HOSTS", '["a.test:8710"]', "0: 'a.test:8710' is not allowed here; write each name"),
        ("ALLOWED_HOSTS", '["*"]', "0: '*' is not allowed here"),
    ],
)  # fmt: skip
def test_a_fault_inside_a_setting_is_named_by_its_path_and_shows_no_secret(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(f"EVALUATOR_HOST_{name}", value)
    with pytest.raises(Misconfigured) as refused:
        load_settings()
    [problem] = refused.value.problems
    assert problem.field == f"EVALUATOR_HOST_{name}"
    assert said in problem.message
    assert "hidden" not in f"{refused.value.detail} {problem}"


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("JUDGE_HOSTS", ["localhost", "API.example.com:443", "10.0.0.1:80", "::1", "[::1]:8000", "my_host"]),
        ("TARGET_HOSTS", ["*", "[::1]"]),
        ("WEBHOOK_HOSTS", ["public", "hooks.example.com"]),
        ("NETWORK_HOSTS", ["*", "*:443", "*.a.test", "team-a/*.a.test:443", "[::1]:80", "localhost"]),
        ("NETWORK_PRIVATE", ["10.1.0.0/16", "fd00::/8", "127.0.0.1"]),
        ("ALLOWED_HOSTS", ["evals.example.com", "10.0.0.1", "::1", "host_name"]),
    ],
)
def test_entries_of_a_list_of_hosts_that_can_match_are_taken(
    monkeypatch: pytest.MonkeyPatch, name: str, entries: list[str]
) -> None:
    monkeypatch.setenv(f"EVALUATOR_HOST_{name}", json.dumps(entries))
    assert list(getattr(load_settings(), name.lower())) == entries


def test_the_traceback_of_an_invalid_setting_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALUATOR_HOST_MODELS", '{"judge": {"url": "http://127.0.0.1", "key": "a-secret-key"}}')
    with pytest.raises(Misconfigured) as refused:
        load_settings()
    assert "a-secret-key" not in "".join(traceback.format_exception(refused.value))


def test_variables_that_set_nothing_are_named_with_what_was_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unknown_variables() == []
    for name in ("TEST_ANY", "BENCH_ANY", "DEBUG", "PERSON", "URL", "SERVICE_HOST", "PORT_8710_TCP_ADDR", "PORT"):
        monkeypatch.setenv(f"EVALUATOR_HOST_{name}", "1")
    assert unknown_variables() == []
    for name in ("RATE_LIMIT", "XYZ", "MODEL"):
        monkeypatch.setenv(f"EVALUATOR_HOST_{name}", "1")
    assert unknown_variables() == [
        "EVALUATOR_HOST_MODEL is not a setting, so it has no effect; did you mean EVALUATOR_HOST_MODELS?",
        "EVALUATOR_HOST_RATE_LIMIT is not a setting, so it has no effect; did you mean EVALUATOR_HOST_RATE_LIMIT_PER_S?",
        "EVALUATOR_HOST_XYZ is not a setting, so it has no effect; docs/settings.md lists all settings",
    ]
