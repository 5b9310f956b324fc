# ruff: noqa: E501 - a table of messages
"""Adds hints to errors of user code that the sandbox could not explain: a table of message patterns and hints.

The first entry whose language, code and message match is used. It replaces a hint of the sandbox only if it says so.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from evaluator_host.model.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.model.outcome import EvaluationError, EvaluationResult, MissingImport, Note
from evaluator_host.packages.suggest import pin_for

_KEYS: Final = 12
_JSX: Final = "JSX is not supported in evaluators; return a number, a boolean or { score: … }"
_READ_CHARS: Final = 20_000  # of the code
_MESSAGE_CHARS: Final = 1000
_PYTHON: Final = re.compile(
    r"^[ \t]*(def \w+\(|from [\w.]+ import |import \w+$|elif |class \w+[\w(),. ]*:$)", re.MULTILINE
)
_TYPED: Final = re.compile(
    r"[\w)\]?] ?: ?(string|number|boolean|any|unknown|object|void|Record|Array)\b"
    r"|^[ \t]*(export )?(interface|enum|type) \w+|\bas (any|const|string|number)\b",
    re.MULTILINE,
)
_NO_NETWORK: Final = "an evaluator has no network; put what it needs into the row, or grant it the host (`network`)"
_NO_MODEL: Final = (
    "an evaluator has no network, and reaches a model only if it is granted one: register it and name it in `models` "
    "(docs/models.md)"
)
_NO_VARIABLES: Final = "evaluators see none of the host's environment variables; put what it needs into the row"
_ROW: Final = (
    "the arguments are inputs, outputs and trace; the expected value is in inputs, as in inputs['correct_answer']"
)
_BY_POSITION: Final = frozenset({Contract.AUTO, Contract.EVALUATE, Contract.EVALUATE_V1})
_MODELS: Final = "openai|anthropic|litellm|cohere|mistralai|google.generativeai|google.genai|groq|ollama"
_CLIENTS: Final = rf"{_MODELS}|@anthropic-ai/sdk|ai|langchain"
_FETCHERS: Final = frozenset({"requests", "httpx", "aiohttp", "urllib3", "axios", "node-fetch"})
_OWN: Final = frozenset({"utils", "util", "helpers", "helper", "common", "config", "src", "app", "lib", "my_utils"})

_Made = str | Callable[["re.Match[str]", str], str | None]


@dataclass(frozen=True, slots=True)
class _Advice:
    """Advice for errors whose message matches. `over`: also in place of a hint of the sandbox."""

    message: str
    hint: _Made
    code: str = ""
    language: Language | None = None
    over: bool = False


def _package(match: "re.Match[str]", _: str) -> str | None:
    module = match[1]
    if (top := module.partition(".")[0]) in _FETCHERS:
        return f"{_NO_NETWORK}. To import {top} nevertheless, pin it in `packages`: {top}==VERSION"
    if top in _OWN:
        return f"{top} is a file of yours: send it in `files`, by its path: " + '{"' + top + '.py": "…"}'
    package = pin_for(module, Language.PYTHON)
    if package is None or package.lower() == top.lower():
        return None
    if package.lower().replace("-", "_") == top.lower():
        return f"a file of yours goes in `files`, by its path; the package {package} in `packages`: {package}==VERSION"
    return f"{top} is in the package {package}: add {package}==VERSION to `packages`"


def _client(match: "re.Match[str]", _: str) -> str:
    pin = f"add {match[2]}{'@' if match[1] else '=='}VERSION to `packages`"
    return f"{_NO_MODEL}; then {pin}" if re.match(rf"({_CLIENTS})\b", match[2]) else pin


def _address(match: "re.Match[str]", _: str) -> str:
    last = re.sub(r"[?#].*", "", match[1]).rstrip("/").rpartition("/")[2].partition("@")[0]
    return f"addresses are not imported; add {last or 'the package'}@VERSION to `packages`, and import it by its name"


def _no_program(_: "re.Match[str]", code: str) -> str | None:
    if code.lstrip().startswith("{") and '"cells"' in code:
        return "this is a notebook (.ipynb), which is JSON: open it, and paste the code of its cells"
    if re.match(r"\s*(diff --git |--- |@@ |[+-] ?(async |export )?(def|function|import|from|class) )", code):
        return "this is a diff: leave out the + or - that begins each line"
    return None


def _looks_like(match: "re.Match[str]", code: str) -> str | None:
    if (other := _no_program(match, code)) is not None:
        return other
    if _PYTHON.search(code):
        return "this looks like Python; set `language` to python"
    if "“" in code or "”" in code or "\u2018" in code or "\u2019" in match.string:
        return "replace typographic quotes by straight ones, \" or '"
    if "</" in code and re.search(r"<[A-Za-z][^<>]{0,200}>", code) and not _TYPED.search(code):
        return _JSX
    if re.match(r'\s*[\[{]\s*["\[{]', code) and not re.search(r"\bfunction\b|=>", code):
        return "this is data, not code; paste a function evaluate that returns a score"
    if _TYPED.search(code):
        return "if this is TypeScript, set `language` to typescript"
    return "close the bracket that is open at this place" if re.match(r'Expected "[)\]}]"', match.string) else None


def _of_class(_: "re.Match[str]", code: str) -> str | None:
    found = re.search(r"class (\w+)", code)
    if found is None or re.search(r"\bfunction\b|=>", code):
        return None
    made = f"const evaluate = (...row) => new {found[1]}().evaluate(...row)"
    return f"it defines only {found[1]}, and a class is not called; add `{made}`"


_TABLE: Final = (
    _Advice(r"", _no_program, code="entry_not_found", over=True),
    _Advice(r"", _no_program, code="syntax_error", language=Language.PYTHON),
    _Advice(r"", _no_program, code="load_error", over=True),
    _Advice(r"needs the (npm )?package (\S+), which is not pinned", _client),
    _Advice(rf"No module named '({_MODELS})", _NO_MODEL, over=True),
    _Advice(r"Cannot find module '(openai|@anthropic-ai/sdk|ai|langchain)'", _NO_MODEL, over=True),
    _Advice(
        r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|fetch failed|Max retries exceeded|Name or service not known"
        r"|name resolution|getaddrinfo|Connection refused|Network is unreachable",
        _NO_NETWORK,
    ),
    _Advice(r"No module named '([\w.]+)'(?!; without the pin)", _package, over=True),
    _Advice(
        r"Cannot find module 'npm:((?:@[\w.-]+/)?[\w.-]+)(?:@([\w.+-]+))?",
        lambda match, _: f"add {match[1]}@{match[2] or 'VERSION'} to `packages`",
        over=True,
    ),
    _Advice(r"Cannot find module '(https?://[^']+)'", _address, over=True),
    _Advice(r"JSX syntax extension", _JSX),
    _Advice(r"Unterminated regular expression", lambda _, code: _JSX if "</" in code else None),
    _Advice(r"\"await\" can only be used", "write `async` before the function", code="syntax_error"),
    _Advice(r"", _looks_like, code="syntax_error", language=Language.JAVASCRIPT, over=True),
    _Advice(r"", lambda it, code: _looks_like(it, _TYPED.sub("", code)), "syntax_error", Language.TYPESCRIPT),
    _Advice(
        r"invalid syntax",
        lambda _, code: (
            "pin packages in `packages`, as in numpy==2.1.0; the code has no shell"
            if re.search(r"^[ \t]*[!%]?(pip|pip3|conda|npm|apt) install", code, re.MULTILINE)
            else None
        ),
        code="syntax_error",
    ),
    _Advice(r"inconsistent use of tabs", "indent with spaces only, or with tabs only", code="syntax_error"),
    _Advice(r"was never closed", "close this bracket; the line that it names is where it opens", code="syntax_error"),
    _Advice(r"expected ':'", "end the line with a colon", code="syntax_error"),
    _Advice(
        r"invalid syntax|expected 'else'|invalid decimal|unterminated",
        lambda _, code: (
            None
            if re.search(r"[=(){}\[\]:]", code)
            else "this is no code; paste a function evaluate that returns a score"
        ),
        code="syntax_error",
    ),
    _Advice(r"no function evaluate or main was found$", _of_class, over=True),
    _Advice(
        r"it defines (Evaluate|EVALUATE|evaluator|Main|eval)\b",
        lambda match, _: f"did you mean `evaluate`? Rename `{match[1]}`, or name it in `settings.entry`",
        over=True,
    ),
    _Advice(r"type (generator|async_generator)\b", "use return, not yield"),
    _Advice(r"type coroutine\b", "await it: `async def evaluate`, and `await` before the call"),
    _Advice(
        r"type (function|method|type|builtin_function_or_method)\b", "call it: is there a pair of parentheses missing?"
    ),
    _Advice(
        r"type (\S+\.)?(Series|DataFrame|ndarray|Tensor|NAType|(float|int|bool)\d+)\b",
        "return a plain number: float(value) or value.item(); for several .tolist() in a dict",
    ),
    _Advice(
        r"type (set|frozenset|dict_keys|dict_values|map|filter|zip|range|bytes)\b", "return its length, or its sum"
    ),
    _Advice(r"maximum recursion depth|Maximum call stack", "a function calls itself without end: return before that"),
    _Advice(r"has no JSON form", "return a number, a bool, or a dict of these: {'score': 0.5, 'reason': 'why'}"),
    _Advice(
        r"returned a list",
        lambda _, code: (
            "of a pair, the score comes first: return 0.5, 'why'"
            if re.search(r"return \(?f?['\"][^'\"\n]*['\"], ?-?[\d.]+\b", code)
            else None
        ),
        over=True,
    ),
    _Advice(
        r"returned nothing",
        lambda _, code: (
            "what is printed goes to the log; return it, and end every branch in a return statement"
            if re.search(r"\b(print|console\.log)\(", code) and not re.search(r"\breturn\b", code)
            else None
        ),
        over=True,
    ),
    _Advice(r"returned a list", "return one number, or a dict: {'score': 0.5, 'precision': 0.7}"),
    _Advice(
        r"'dict' object has no attribute '(\w+)'", lambda match, _: f"a row's values are dicts: write ['{match[1]}']"
    ),
    _Advice(
        r"'NoneType' object is not|of type 'NoneType'|'NoneType' and|and 'NoneType'|'NoneType' object has no attribute",
        "a value is None: outputs and trace are, where the row has none; test for that first",
    ),
    _Advice(
        r"Cannot (read|destructure|convert).*\b(undefined|null)\b|(undefined|null) is not",
        lambda _, code: (
            _NO_VARIABLES
            if "process.env" in code
            else "a value is undefined: does the row have this name? JSON.stringify(inputs) in a throw shows it"
        ),
    ),
    _Advice(
        r"name '(output|input|expected|reference|target|prediction|ground_truth|correct_answer|app_params|metadata|label)'"
        r" is not defined|^(output|input|expected|reference|target|prediction|groundTruth|metadata|label) is not defined",
        _ROW,
    ),
    _Advice(r"is not defined", "is it misspelt, or not imported?"),
    _Advice(
        r"No such file or directory|ENOENT",
        "an evaluator sees only the files that come with it: send them in `files`, or put the data into the row",
    ),
    _Advice(
        r"Expecting value|Unexpected token .* JSON|is not valid JSON", "the text is no JSON; test it, or use a default"
    ),
    _Advice(
        r"^(division by zero|float division by zero)", "test for an empty list, or a length of 0, before you divide"
    ),
    _Advice(r"^AssertionError|assert", "return 0, or False, where a check fails; an assertion makes the row fail"),
    _Advice(
        r"could not convert string to float|invalid literal for int",
        "the value is text that is no number; strip or test it",
    ),
    _Advice(r"positional argument|unexpected keyword argument", "compare the call with the function's parameters"),
    _Advice(
        r"unsupported operand|can only concatenate|not supported between",
        "two values have different types; convert one",
    ),
    _Advice(r"list index out of range|string index out of range", "the list or text is shorter than the code expects"),
    _Advice(r"is not a function", "is the name right? In JavaScript a missing method is undefined"),
    _Advice(
        r"is not iterable|object is not subscriptable|is not callable",
        "the value has another type than the code expects",
    ),
)
_READ: Final = tuple((re.compile(one.message, re.DOTALL), one) for one in _TABLE)


def advised(error: EvaluationError, code: str, language: Language, contract: Contract) -> EvaluationError:
    """Return an error with a hint on what to do, if one is known for its message; otherwise the error as it is."""
    code = code[:_READ_CHARS]
    if error.type == "KeyError":
        return replace(error, hint=_NO_VARIABLES) if _reads_variable(error, code) else error
    text = error.message[:_MESSAGE_CHARS]
    if text.startswith("the value at $ "):
        error = replace(error, message="the returned value " + text.removeprefix("the value at $ "))
    for pattern, one in _READ:
        if (one.code and one.code != error.code) or (one.language and one.language is not language):
            continue
        if (error.hint is None or one.over) and (found := pattern.search(text)) is not None:
            if one.hint is _ROW and contract not in _BY_POSITION:
                continue
            hint = one.hint if isinstance(one.hint, str) else one.hint(found, code)
            if hint is not None or (one.over and error.code == "syntax_error"):
                return replace(error, hint=hint)
    return error


def notes_on_clients(missing: Sequence[MissingImport], evaluator: Evaluator) -> tuple[Note, ...]:
    """Return a note if a missing import is a model or HTTP client, which could not connect without a grant anyway."""
    tops = [one.module for one in missing]
    asks_models = not evaluator.models and any(re.match(rf"({_CLIENTS})\b", top) for top in tops)
    fetches = not evaluator.network and any(top.partition(".")[0] in _FETCHERS for top in tops)
    told = [text for text, needed in ((_NO_MODEL, asks_models), (_NO_NETWORK, fetches)) if needed]
    return tuple(Note("no_network", text) for text in told)


def with_row_keys(result: EvaluationResult, row: object) -> EvaluationResult:
    """Return a result; a KeyError without a hint gets one that lists the keys of the row's inputs or variables."""
    error = result.error
    if error is None or error.hint is not None or error.type != "KeyError" or not isinstance(row, Row):
        return result
    passed = row.variables is not None and all(note.code != "unused_variables" for note in result.warnings)
    name, given = ("variables", row.variables or {}) if passed else ("inputs", row.inputs)
    keys = ", ".join(map(str, list(given)[:_KEYS])) + (", …" if len(given) > _KEYS else "")
    hint = f"this row's {name} have: {keys}" if given else f"this row has no {name}"
    return replace(result, error=replace(error, hint=hint))


def _reads_variable(error: EvaluationError, code: str) -> bool:
    lines = code.split("\n")
    return error.line is not None and 0 < error.line <= len(lines) and "environ" in lines[error.line - 1]
