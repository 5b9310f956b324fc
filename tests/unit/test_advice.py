"""Advice in errors uses the names that the evaluator's contract has for arguments and fields of the row."""

import pytest

from evaluator_host.engine.contracts.judge.prompt_columns import meant_by
from evaluator_host.engine.service.advice import advised, with_row_keys
from evaluator_host.platform.datasets.table import name_taken
from evaluator_host.platform.terminal.words import in_options
from evaluator_host.types.evaluator import Contract, Evaluator, Language, Limits, Row
from evaluator_host.types.outcome import (
    ErrorCode,
    EvaluationError,
    Failed,
    FunctionFacts,
    Loaded,
    Note,
    ParameterFacts,
    Status,
)
from tests.unit.normalising import result
from tests.unit.results import result_of


@pytest.mark.parametrize(
    ("contract", "said"), [(Contract.EVALUATE, True), (Contract.AUTO, True), (Contract("promptfoo"), False)]
)
def test_arguments_are_named_where_they_are_the_contracts(contract: Contract, said: bool) -> None:
    error = EvaluationError(ErrorCode.USER_EXCEPTION, "metadata is not defined")
    found = advised(error, Evaluator("metadata.a", language=Language.JAVASCRIPT), contract)
    assert ("inputs, outputs and trace" in (found.hint or "")) is said


@pytest.mark.parametrize(
    ("module", "said"), [("./text.js", True), ("@/lib/text", True), ("#lib/text", True), ("lodash", False)]
)
def test_a_file_of_the_author_that_a_row_comes_to_is_asked_for(module: str, said: bool) -> None:
    error = EvaluationError(ErrorCode.USER_EXCEPTION, f"Cannot find module '{module}'")
    found = advised(error, Evaluator("score()", language=Language.JAVASCRIPT), Contract("function")).hint or ""
    assert ("a file of yours" in found) is said


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("it needs `langchain_openai`, which is missing, but hides the failed import", "grant"),
        ("it needs `own.text`, which is missing, but hides the failed import", "the package of own.text"),
        ("LLM infrastructure error: can't start new thread", "limits.processes"),
        ("OpenAI API key is not configured. Set OPENAI_API_KEY in your environment", "grant"),
        ("expected string or bytes-like object, got 'AttributeDict'", "the value is a dict, not text"),
        ("expected string or bytes-like object, got 'list'", "the value is a list, not text"),
    ],
)
def test_an_error_of_a_row_says_how_to_go_on(message: str, said: str) -> None:
    found = advised(EvaluationError(ErrorCode.USER_EXCEPTION, message), Evaluator("score()"), Contract("function"))
    assert said in (found.hint or "")


@pytest.mark.parametrize(("name", "said"), [("assert", True), ("assertions", False)])
def test_a_column_that_is_called_like_a_statement_is_not_one(name: str, said: bool) -> None:
    error = EvaluationError(ErrorCode.MISSING_INPUT, f"its columns: `{name}`")
    found = advised(error, Evaluator("def a(output):\n    return 1"), Contract("function")).hint or ""
    assert ("if a check fails" in found) is said


@pytest.mark.parametrize("language", list(Language))
@pytest.mark.parametrize(
    ("code", "entity"),
    [
        ("if len(outputs) &gt;= 3:\n    return 1", "&gt;"),
        ("return inputs[&quot;expected&quot;] == outputs", "&quot;"),
        ("return a &amp;&amp; b", "&amp;"),
        ("return it&#39;s", "&#39;"),
        ("return outputs.replace('&gt;', '>'", None),
        ('return html.includes("&amp;") +', None),
    ],
)
def test_code_copied_from_a_web_pages_source_is_named_as_such(
    code: str, entity: str | None, language: Language
) -> None:
    error = EvaluationError(ErrorCode.SYNTAX_ERROR, "invalid syntax")
    hint = advised(error, Evaluator(code, language=language), Contract.AUTO).hint or ""
    assert ("how HTML writes a character" in hint) is (entity is not None)
    assert entity is None or hint.startswith(entity)


@pytest.mark.parametrize(
    ("code", "said"), [("sys.path.append(str(Path(__file__).resolve().parents[2]))", True), ("[][2]", False)]
)
def test_a_file_without_the_folders_above_it_is_told_so(code: str, said: bool) -> None:
    error = EvaluationError(ErrorCode.LOAD_ERROR, "2", type="IndexError")
    found = advised(error, Evaluator(code), Contract.EVALUATE)
    assert ("say in `path` where the code itself is" in (found.hint or "")) is said


@pytest.mark.parametrize(("where", "said"), [("typing.py", True), ("site-packages/mine.py", False)])
def test_a_name_that_this_python_lacks_asks_for_a_newer_one(where: str, said: bool) -> None:
    message = f"cannot import name 'override' from 'typing' (/opt/python/lib/python3.11/{where})"
    error = EvaluationError(ErrorCode.LOAD_ERROR, message, type="ImportError")
    found = advised(error, Evaluator("from typing import override"), Contract.EVALUATE)
    assert ("typing of Python 3.11 has no override: run the code on a newer" in (found.hint or "")) is said


@pytest.mark.parametrize(
    ("row", "hint"),
    [
        (
            Row({"city": "Oslo"}, "a"),
            "this row's inputs have: city; read one of these, or use .get('b') if rows may lack it",
        ),
        (
            Row(variables={"output": "a", "context": {}}),
            "this row's variables have: output, context; read one of these, or use .get('b') if rows may lack it",
        ),
    ],
)
def test_a_missing_key_names_those_of_the_row(row: Row, hint: str) -> None:
    error = EvaluationError(ErrorCode.USER_EXCEPTION, "'b'", type="KeyError")
    found = with_row_keys(result_of(status=Status.FAILED, score=None, error=error), row, Evaluator(""), None)
    assert found.error is not None
    assert found.error.hint == hint


@pytest.mark.parametrize(
    ("message", "kind", "language"),
    [
        ("'NoneType' object has no attribute 'array'", "AttributeError", Language.PYTHON),
        ("Cannot read properties of undefined (reading 'length')", "TypeError", Language.JAVASCRIPT),
        ("undefined is not iterable", "TypeError", Language.TYPESCRIPT),
        ("'NoneType' object is not subscriptable", "TypeError", Language.PYTHON),
    ],
)
def test_an_error_of_loading_has_no_hint_about_a_row(message: str, kind: str, language: Language) -> None:
    evaluator = Evaluator("x", language=language)
    at_load = advised(EvaluationError(ErrorCode.LOAD_ERROR, message, type=kind), evaluator, Contract.EVALUATE)
    assert not any(word in str(at_load.hint) for word in ("row", "inputs", "outputs", "trace"))
    in_a_row = advised(EvaluationError(ErrorCode.USER_EXCEPTION, message, type=kind), evaluator, Contract.EVALUATE)
    assert in_a_row.hint


@pytest.mark.parametrize("kind", ["openai.APIConnectionError", "anthropic.APIConnectionError"])
def test_a_client_of_models_that_does_not_connect_is_told_of_grants(kind: str) -> None:
    error = EvaluationError(ErrorCode.USER_EXCEPTION, "Connection error.", type=kind)
    assert "name it in `models`" in str(advised(error, Evaluator("x"), Contract.EVALUATE, Failed(error)).hint)
    granted = advised(error, Evaluator("x", models=("judge",)), Contract.EVALUATE, Failed(error))
    assert granted.hint is None


def test_a_warning_of_missing_outputs_needs_no_other_hint_beside_it() -> None:
    message = "'NoneType' object has no attribute 'strip'"
    failed = Failed(EvaluationError(ErrorCode.USER_EXCEPTION, message, type="AttributeError"))
    for codes, hint in ((("missing_outputs",), False), (("missing_column",), True), ((), True)):
        found = result(failed, notes=tuple(Note(code, "") for code in codes))
        assert found.error is not None
        assert (found.error.hint is not None) is hint


READS = Loaded(
    Contract.EVALUATE,
    "inferred",
    "",
    "evaluate",
    facts=(
        FunctionFacts(
            "evaluate",
            parameters=(ParameterFacts("row", keys=("question", "lenght")), ParameterFacts("said", keys=("anser",))),
        ),
    ),
)
UNDEFINED = "Cannot read properties of undefined (reading 'trim')"


@pytest.mark.parametrize(
    ("row", "code", "kind", "message", "hint"),
    [
        (Row({}, {"answer": 1}), "user_exception", "TypeError", UNDEFINED, "`said` has no `anser`: did you mean `answer`?"),
        (Row({"length": 1}), "user_exception", "TypeError", UNDEFINED, "`row` has no `lenght`: did you mean `length`?"),
        (Row({"length": 1}), "non_finite", None, "the returned value is NaN", "`row` has no `lenght`: did you mean `length`?"),
        (Row({"length": 1}), "invalid_result", None, "the evaluator returned nothing (undefined)", "`row` has no `lenght`: did you mean `length`?"),
        (Row({}, {"answer": 1}), "user_exception", "KeyError", "'anser'", "`said` has no `anser`: did you mean `answer`?"),
        (Row({}, {"answer": 1}), "user_exception", "AttributeError", "'NoneType' object has no attribute 'lower'", "`said` has no `anser`: did you mean `answer`?"),
        (Row({"meta": {"language": "en"}}), "user_exception", "KeyError", "'lang'", "`inputs['meta']` has no `lang`: did you mean `language`?"),
        (Row({}, {"calls": [{"name": "f"}]}), "user_exception", "KeyError", "'nam'", "`outputs['calls'][0]` has no `nam`: did you mean `name`?"),
        (Row({"length": 1, "id": 2}), "user_exception", "TypeError", UNDEFINED, "`row` has no `lenght`: did you mean `length`? It also has id"),
        (Row({"lenght": 1}, {"anser": 1}), "user_exception", "TypeError", UNDEFINED, None),
        (Row({"width": 1}, {"text": 1}), "user_exception", "TypeError", UNDEFINED, None),
        (Row({"length": 1}, {"answer": 1}), "user_exception", "ZeroDivisionError", "division by zero", None),
    ],
)  # fmt: skip
def test_a_misspelt_key_names_the_nearest(
    row: Row, code: str, kind: str | None, message: str, hint: str | None
) -> None:
    error = EvaluationError(ErrorCode(code), message, type=kind)
    failed = result_of(status=Status.FAILED, score=None, error=error)
    found = with_row_keys(failed, row, Evaluator("", language=Language.JAVASCRIPT), READS).error
    assert found is not None
    assert found.hint == hint


@pytest.mark.parametrize(
    ("language", "message", "read", "meant"),
    [
        (Language.PYTHON, "'str' object has no attribute 'lowr'", "lowr", "lower"),
        (Language.JAVASCRIPT, "outputs.toLowercase is not a function", "toLowercase", "toLowerCase"),
        (Language.TYPESCRIPT, "outputs.lenght is not a function", "lenght", "length"),
    ],
)
def test_a_misspelt_method_of_a_text_names_the_nearest(language: Language, message: str, read: str, meant: str) -> None:
    parameters = (ParameterFacts("inputs"), ParameterFacts("outputs", keys=(read,)))
    loaded = Loaded(
        Contract.EVALUATE, "inferred", "", "evaluate", facts=(FunctionFacts("evaluate", parameters=parameters),)
    )
    error = EvaluationError(ErrorCode.USER_EXCEPTION, message)
    failed = result_of(status=Status.FAILED, score=None, error=error)
    found = with_row_keys(failed, Row({}, "Paris"), Evaluator("", language=language), loaded).error
    assert found is not None
    assert found.hint == f"`outputs` has no `{read}`: did you mean `{meant}`?"


@pytest.mark.parametrize(
    ("code", "message", "said"),
    [
        (
            ErrorCode.SYNTAX_ERROR,
            "trailing comma not allowed without surrounding parentheses",
            "this line is not valid Python",
        ),
        (ErrorCode.LOAD_ERROR, "Set JUDGE_API_KEY environment variable.", "`secrets`"),
        (ErrorCode.INVALID_RESULT, "`reward` returned numpy.ndarray, which is not a number", ".tolist()"),
        (ErrorCode.USER_EXCEPTION, "expected string or bytes-like object, got 'list'", "value[0]['content']"),
        (ErrorCode.USER_EXCEPTION, "`openai.OpenAI` needs the package openai, which is not pinned", "`models`"),
        (ErrorCode.LOAD_ERROR, "Missing credentials. Please pass an `apiKey`, or set OPENAI_API_KEY.", "`models`"),
        (ErrorCode.USER_EXCEPTION, "ANTHROPIC_API_KEY not set: cannot run the judge", "`models`"),
        (ErrorCode.USER_EXCEPTION, "the judge needs OPENROUTER_API_KEY", "`secrets`"),
        (ErrorCode.LOAD_ERROR, "DATABASE_URL is not set: see the README", "`secrets`"),
        (ErrorCode.USER_EXCEPTION, "Missing configuration for MAIN_LLM", "`secrets`"),
    ],
)
def test_an_error_that_says_little_gets_a_next_step(code: ErrorCode, message: str, said: str) -> None:
    found = advised(EvaluationError(code, message), Evaluator("def reward(completions): ..."), Contract("rewards"))
    assert said in (found.hint or "")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("from made_of.parts import Other, Dataset\nData = Dataset()", True),
        ("from made_of import Dataset\nData = Dataset()", True),
        ("from made_of import (\n    Other,\n    Dataset,\n)\nData = Dataset()", True),
        ("from elsewhere import Dataset\nData = Dataset()", False),
        ("from " + "a" * 19_000 + "\nfrom made_of import Dataset", True),
        ("class Dataset:\n    def __init__(self, *, name):\n        pass\nData = Dataset()", False),
    ],
)
def test_wrong_arguments_for_a_pinned_package_say_that_its_version_may_be_another(code: str, said: bool) -> None:
    message = "Dataset.__init__() missing 1 required keyword-only argument: 'name'"
    error = EvaluationError(ErrorCode.LOAD_ERROR, message)
    found = advised(error, Evaluator(code, packages=("made-of==2.0.0",)), Contract("function")).hint or ""
    assert ("`Dataset` of made-of==2.0.0 takes other arguments" in found) is said


def test_a_scorer_without_a_model_is_told_of_grants() -> None:
    error = EvaluationError(ErrorCode.USER_EXCEPTION, "No model specified (and no model environment variable defined)")
    assert "name it in `models`" in (advised(error, Evaluator("x"), Contract("inspect")).hint or "")


def test_code_with_a_granted_model_is_told_its_address() -> None:
    error = EvaluationError(ErrorCode.USER_EXCEPTION, "fetch failed", type="TypeError")
    judge = Evaluator("x", Language.JAVASCRIPT, models=("judge",))
    assert "write `process.env.OPENAI_BASE_URL`" in (advised(error, judge, Contract("function")).hint or "")


@pytest.mark.parametrize("code", [ErrorCode.CRASHED, ErrorCode.MEMORY_LIMIT])
@pytest.mark.parametrize(
    ("pins", "memory_mb", "said"),
    [
        (("sentence-transformers==6.2.0", "numpy==2.4.6"), 256, True),
        (("torch==2.15.0",), 512, True),
        (("torch==2.15.0",), 1024, False),
        (("numpy==2.4.6",), 256, False),
    ],
)
def test_a_crash_of_pytorch_says_how_much_memory_it_needs(
    code: ErrorCode, pins: tuple[str, ...], memory_mb: int, said: bool
) -> None:
    evaluator = Evaluator("import torch", packages=pins, limits=Limits(memory_mb=memory_mb))
    error = EvaluationError(code, "killed by SIGSEGV while loading", hint="raise limits.memory_mb")
    found = advised(error, evaluator, Contract.EVALUATE)
    assert ("set it to 1024 or more" in str(found.hint)) is said


def test_an_evaluator_of_several_that_asks_a_client_of_langchain_is_told_of_grants() -> None:
    message = "`langchain_openai.ChatOpenAI` needs the package langchain-openai, which is not pinned"
    error = EvaluationError(ErrorCode.USER_EXCEPTION, message, type="ImportError")
    assert "name it in `models`" in str(advised(error, Evaluator("x"), Contract.EVALUATE).hint)


@pytest.mark.parametrize(("exports", "hint"), [(1, ""), (2, "if another function is the evaluator, name it in `sett")])
def test_a_missing_value_may_be_one_of_another_function(exports: int, hint: str) -> None:
    said = "the evaluator needs summaries, which the row does not have: add it, or give it a default"
    code = "export const score = (summaries) => 1\n" * exports
    error = EvaluationError(ErrorCode.USER_EXCEPTION, said)
    found = advised(error, Evaluator(code, language=Language.JAVASCRIPT), Contract("function")).hint or ""
    assert found[: len(hint)] == hint
    assert bool(found) == bool(hint)


def test_the_column_that_a_prompt_means_is_found_among_very_many() -> None:
    needed = [f"needed {number}" for number in range(20_000)]
    # comparing each column with each needed one would take minutes
    assert meant_by("answr", ["answer", *needed, *map(str, range(300_000))], needed) == "answer"


def test_the_terminal_shows_the_grant_of_another_name_as_an_option() -> None:
    said = in_options('Grant the model as "models": ["gpt-5-mini=NAME"], where NAME is a registered model')
    assert said == "Grant the model with --model 'gpt-5-mini=NAME', where NAME is a registered model"


def test_the_terminal_shows_the_option_that_replaces_a_data_set() -> None:
    said = in_options(name_taken("qa").detail)
    assert said == "there is a data set named qa; choose another name, or replace its rows (--replace)"
