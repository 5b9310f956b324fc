"""If a caller stores only new code for an evaluator, the new version keeps the previous version's settings."""

from dataclasses import replace

from evaluator_host.platform.evaluators.evaluator_files import kept_from
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Language, Limits

BEFORE = Evaluator(
    "old",
    contract=Contract.EVALUATE,
    packages=("rapidfuzz==3.13.0",),
    threshold=0.5,
    settings=EvaluatorSettings(config={"a": 1}),
    limits=Limits(timeout_s=2, memory_mb=512),
    network=("api.example.com:443",),
    secrets={"TOKEN": "crm"},
    files={"old.py": ""},
    name="fuzzy",
    version=3,
)


def test_all_but_code_and_files_is_kept_and_named() -> None:
    made, kept = kept_from(BEFORE, Evaluator("new", files={"new.py": ""}))
    assert made == replace(BEFORE, code="new", files={"new.py": ""}, name=None, version=None)
    assert kept == [
        *("contract evaluate", "packages rapidfuzz==3.13.0", "threshold 0.5", 'config {"a":1}', "timeout_s 2"),
        *("memory_mb 512", "network api.example.com:443", 'secrets {"TOKEN":"crm"}'),
    ]


def test_settings_in_the_request_replace_earlier_settings() -> None:
    given = Evaluator("new", packages=("rapidfuzz==3.14.0",), limits=Limits(memory_mb=1024), threshold=0.5)
    made, kept = kept_from(BEFORE, given)
    assert (made.packages, made.limits) == (("rapidfuzz==3.14.0",), Limits(timeout_s=2, memory_mb=1024))
    assert not any(one.startswith(("packages", "memory_mb", "threshold")) for one in kept)


def test_nothing_is_kept_for_another_language_or_of_a_judge() -> None:
    for before, given in (
        (BEFORE, Evaluator("new", language=Language.JAVASCRIPT)),
        (replace(BEFORE, judge={"model": "m"}), Evaluator("new")),
        (BEFORE, Evaluator("", judge={"model": "m"})),
    ):
        assert kept_from(before, given) == (given, [])
