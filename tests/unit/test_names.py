"""The host suggests what was meant by misspelt names, misspelt addresses of hosts, and words that are not commands."""

from itertools import islice, permutations
from typing import Any

import pytest
import typer

from evaluator_host.cli.main import command_line
from evaluator_host.client.calls import host_url
from evaluator_host.platform.terminal.command import cli_state, run_command
from evaluator_host.types import names
from evaluator_host.types.errors import InvalidRequest
from evaluator_host.types.names import nearest_name, usable_name


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("suport", "support"),
        ("Support", "support"),
        ("supports", "support"),
        ("exat", "exact"),
        ("zzz", None),
        ("", None),
        ("\x00", None),
        ("s" * 100_000, None),
    ],
)
def test_the_nearest_name_is_found_in_any_case(given: str, meant: str | None) -> None:
    assert nearest_name(given, ["support", "exact", "long-text"]) == meant


def test_the_longer_name_is_found_among_many_of_the_same_letters() -> None:
    others = [f"host_{''.join(letters)}_rate" for letters in islice(permutations("limtab"), 500)]
    assert nearest_name("host_rate_limit", [*others, "host_rate_limit_per_s"]) == "host_rate_limit_per_s"


def test_few_of_many_similar_names_are_compared_letter_by_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    class Counting(names.SequenceMatcher[str]):
        def ratio(self) -> float:
            compared.append(self.a)
            return super().ratio()

    monkeypatch.setattr(names, "SequenceMatcher", Counting)
    similar = [f"{number:010b}".replace("0", "a").replace("1", "b") * 6 for number in range(1000)]
    assert nearest_name(similar[700][:-1], similar) in similar
    assert len(compared) <= 20


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("support", "support"),
        ("my data (v1)", "my-data-v1"),
        ("_hidden", "hidden"),
        ("données été", "donn-es-t"),
        ("日本", "data"),
        ("x" * 90, "x" * 63),
    ],
)
def test_a_file_gets_a_name_that_a_data_set_may_have(given: str, name: str) -> None:
    assert usable_name(given) == name


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("127.0.0.1:8751", "http://127.0.0.1:8751"),
        ("localhost:8710/", "http://localhost:8710"),
        ("evaluators.example", "http://evaluators.example"),
        ("[::1]:8710", "http://[::1]:8710"),
        ("https://one.example/eh/", "https://one.example/eh"),
    ],
)
def test_an_address_without_a_scheme_is_http(given: str, url: str) -> None:
    assert host_url(given) == url


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("http://127.0.0.1:8710/v1", "leave out /v1: http://127.0.0.1:8710"),
        ("127.0.0.1:8710/v1/", "leave out /v1"),
        ("https://one.example/eh/v1", "leave out /v1: https://one.example/eh"),
        ("ftp://one.example", "is not the address of a host"),
        ("http://", "is not the address of a host"),
        ("http://[::1", "is not the address of a host"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused(given: str, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told.replace("[", r"\[")):
        host_url(given)


def call(*words: str) -> Any:
    return typer.main.get_command(command_line()).main(list(words), "evaluator-host", standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("foo", None),
        ("job list", "jobs"),
        ("runn exact.py", "run"),
        ("evaluatr --help", "evaluators"),
        ("evalute x.py", "evaluate"),
        ("evaluatorss", "evaluators"),
        ("", None),
        ("schedules creat", "create"),
        ("models remov x", "remove"),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest_command(words: str, meant: str | None) -> None:
    with pytest.raises(Exception, match="No such command") as found:
        call(*words.split() or [""])
    assert getattr(found.value, "exit_code", None) == 2
    assert str(found.value).endswith("." if meant is None else f"Did you mean {meant!r}?")


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        ("evaluate", "run"),
        ("eval", "run"),
        ("environments list", "packages list"),
        ("schedules remove", "schedules delete"),
        ("alerts remove", "alerts delete"),
        ("models remove", "models delete"),
        ("packages remove", "packages delete"),
        ("jobs schedule", "schedules create"),
        ("jobs remove", "jobs delete"),
        ("datasets remove", "datasets delete"),
        ("models add", "models create"),
        ("models set", "models update"),
        ("schedules add", "schedules create"),
        ("datasets add", "datasets upload"),
        ("packages create", "packages build"),
        ("secrets add", "secrets set"),
        ("keys delete", "keys revoke"),
        ("evaluators get", "evaluators show"),
        ("evaluators change", "evaluators update"),
        ("jobs run", "jobs create"),
        ("jobs stop", "jobs cancel"),
        ("jobs export", "jobs download"),
    ],
)
def test_words_that_people_type_lead_to_the_command(
    typed: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for words in (typed, command):
        call(*words.split(), "--help")
        texts.append(capsys.readouterr().out.partition("\n\n")[2].partition("\n\n")[2])
    assert texts[0] == texts[1] != ""


@pytest.mark.parametrize(
    ("words", "variable", "wanted"),
    [
        (["--debug", "jobs"], "", True),
        (["jobs"], "1", True),
        (["jobs"], "TRUE", True),
        (["jobs", "--debug"], "", False),
        (["jobs"], "0", False),
    ],
)
def test_debug_holds_before_the_words_are_parsed(
    words: list[str], variable: str, *, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["evaluator-host", *words])
    monkeypatch.setenv("EVALUATOR_HOST_DEBUG", variable)

    def fail() -> None:
        raise ZeroDivisionError

    try:
        with pytest.raises(ZeroDivisionError if wanted else SystemExit):
            run_command(fail)
    finally:
        cli_state.debug = False
