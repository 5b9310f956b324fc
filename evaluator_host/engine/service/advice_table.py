# ruff: noqa: E501 - a table of messages
"""Hints for errors of user code, by the language, the error code and a pattern of the message."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evaluator_host.engine.sandbox.commands import commands_of
from evaluator_host.engine.service.missing_imports import NO_MODEL, NO_NETWORK, OWN_ALIAS, asks_models
from evaluator_host.types.evaluator import Evaluator, Language

_JSX: Final = "JSX is not supported in evaluators; return a number, a boolean or { score: … }"
PYTHON: Final = re.compile(
    r"^[ \t]*(def \w+\(|from [\w.]+ import |import \w+$|elif |class \w[\w(),. ]*:$)", re.MULTILINE
)
TYPED: Final = re.compile(
    r"[\w)\]?] ?: ?(string|number|boolean|any|unknown|object|void|Record|Array)\b"
    r"|^[ \t]*(export )?(interface|enum|type) \w+|\bas (any|const|string|number)\b",
    re.MULTILINE,
)
NO_VARIABLES: Final = "an evaluator does not see the host's environment variables; put what the code needs into the row"
_OWN_ADDRESS: Final = {
    one: f"an evaluator has no network: to ask the granted model, write `{environment.format('OPENAI_BASE_URL')}` (for Anthropic's API, `{environment.format('ANTHROPIC_BASE_URL')}`) in place of the provider's address"
    for one, environment in (
        (Language.PYTHON, "os.environ['{}']"),
        (Language.JAVASCRIPT, "process.env.{}"),
        (Language.TYPESCRIPT, "process.env.{}"),
    )
}
_NOT_SET: Final = 'an evaluator does not see the host\'s environment variables: write the value into the code, or grant it a secret (`secrets`: {"VARIABLE": "name of the secret"})'
_NO_COMMAND_LINE: Final = "an evaluator gets no command-line arguments: write `function evaluate(inputs, outputs, trace)`, whose arguments are the row"
_NO_KEYBOARD: Final = "the code waits for input from a keyboard: write the value into the code, or put it into the row"
_CLIENTS: Final = re.compile(r"(?i)\w*(?:agent|client|judge|llm|model|openai|provider)")
ROW: Final = (
    "the arguments are inputs, outputs and trace; the expected value is in inputs, as in inputs['correct_answer']"
)
IS_UNDEFINED: Final = "a value is undefined: does the row have a field with this name?"
IS_NULL: Final = "a value is null (a field of a row may be null): test for null first, for example with `value?.name` or `value ?? ''`"
_Made = str | Callable[["re.Match[str]", str], str | None]


@dataclass(frozen=True, slots=True)
class _Advice:
    """Advice for errors with a message that matches the pattern `message`.

    `over` says whether the advice replaces a hint from the sandbox. `row` says whether the advice is only for errors of
    rows, not for errors while code is loaded.
    """

    message: str
    hint: _Made
    code: str = ""
    language: Language | None = None
    over: bool = False
    row: bool = False


def _address(match: "re.Match[str]", _: str) -> str:
    last = re.sub(r"[?#].*", "", match[1]).rstrip("/").rpartition("/")[2].partition("@")[0]
    return f"code cannot be imported from a URL; add {last or 'the package'}@VERSION to `packages`, and import it by its name"


def _no_program(_: "re.Match[str]", code: str) -> str | None:
    if code.lstrip().startswith("{") and '"cells"' in code:
        return "this is a notebook (.ipynb), which is JSON: open it, and paste the code of its cells"
    if re.match(r"\s*(diff --git |--- |@@ |[+-] ?(async |export )?(def|function|import|from|class) )", code):
        return "this is a diff: leave out the + or - that begins each line"
    return None


def _looks_like(match: "re.Match[str]", code: str) -> str | None:
    if (other := _no_program(match, code)) is not None:
        return other
    if PYTHON.search(code):
        return "this looks like Python; set `language` to python"
    if "“" in code or "”" in code or "\u2018" in code or "\u2019" in match.string:
        return "replace typographic quotes with straight ones, \" or '"
    if "</" in code and re.search(r"<[A-Za-z][^<>]{0,200}>", code) and not TYPED.search(code):
        return _JSX
    if re.match(r'\s*[\[{]\s*["\[{]', code) and not re.search(r"\bfunction\b|=>", code):
        return "this is data, not code; paste a function evaluate that returns a score"
    if TYPED.search(code):
        return "if this is TypeScript, set `language` to typescript"
    return "close the bracket that is still open here" if re.match(r'Expected "[)\]}]"', match.string) else None


_OF_PARTS: Final = {  # advice on values in a result that have no JSON form, by the name of their type
    **dict.fromkeys(("map", "filter", "zip", "range", "generator"), "write list(…)"),
    **dict.fromkeys(
        ("bytes", "bytearray"), "these bytes are not UTF-8: return .hex(), or base64.b64encode(…).decode()"
    ),
    "re.Match": "return bool(match), or the matched text, match.group()",
    "datetime.timedelta": "write .total_seconds()",
    "Map": "write Object.fromEntries(…)",
    "Set": "write [...values]",
}
_CALLABLE: Final = frozenset(("function", "method", "type", "builtin_function_or_method", "Function", "AsyncFunction"))
_AWAITABLE: Final = frozenset(("coroutine", "Promise", "asyncio.Task", "_asyncio.Task", "_asyncio.Future"))
_NUMERIC: Final = re.compile(r"(\S+\.)?(Series|DataFrame|ndarray|Tensor|NAType|(float|int|bool)\d+)")
_COUNTED: Final = frozenset(("set", "frozenset", "dict_keys", "dict_values", "map", "filter", "zip", "range", "bytes"))
_TEXT_METHODS: Final = frozenset(name for name in dir(str) if not name.startswith("_"))
_PYTHON_WORDS: Final = {"true": "True", "false": "False"}


def _no_form(match: "re.Match[str]", _: str) -> str:
    """Return advice on what to return in place of a value that is not JSON; the error message contains its type."""
    whole, kind = match[1] == "returned", match[2]
    if whole and kind in ("generator", "async_generator"):
        return "use return, not yield"
    if kind in _AWAITABLE:
        return "the call is not finished: write `await` before it, in an async function"
    if kind in _CALLABLE:
        return "call the function: is a pair of parentheses missing?"
    if _NUMERIC.fullmatch(kind):
        return (
            "return a plain number: float(value) or value.item(); for several numbers, put value.tolist() into a dict"
        )
    if whole and kind in _COUNTED:
        return "return its length, or its sum"
    if not whole:
        return _OF_PARTS.get(kind, "return its text, or leave it out")
    return "return a number, a bool, or a dict of these: {'score': 0.5, 'reason': 'why'}"


def _attribute(match: "re.Match[str]", _: str) -> str | None:
    kind, name = match[1], match[2]
    if kind == "dict":
        return (
            f"the value is an object here, not text: take one of its fields before .{name}()"
            if name in _TEXT_METHODS
            else f"an object's fields are read by key: write ['{name}']"
        )
    if kind == "list":
        is_one = name in _TEXT_METHODS or name in ("get", "keys", "items", "values")
        return f"the value is a list: take one of its items before .{name}" if is_one else None
    return (
        "the value is text: json.loads(…) reads it, if it is JSON"
        if name in ("get", "keys", "items", "values")
        else None
    )


def _python_word(match: "re.Match[str]", _: str) -> str:
    return f"in Python, write {_PYTHON_WORDS.get(match[1], 'None')}"


def _entity(_: "re.Match[str]", code: str) -> str | None:
    found = _ENTITY.search(_TEXTS.sub("", code))
    if found is None:
        return None
    entity = found[0]
    return f"{entity} is how HTML writes a character: the code was copied from the source of a web page; copy it again as plain text"


def _of_notebook(match: "re.Match[str]", code: str) -> str | None:
    """Return advice on a name that is only defined in notebooks: by Databricks, or by another notebook."""
    name = match[1]
    if name in _OF_DATABRICKS:
        return f"only a notebook of Databricks has `{name}`: leave out the lines that use it"
    runs = _RUNS.search(code)
    if runs is None:
        return None
    return f"the notebook runs another notebook, `{runs[1]}`, which the host does not run: paste the part of that notebook that defines `{name}`"


_OF_DATABRICKS: Final = ("dbutils", "spark", "sc", "display", "displayHTML")
_RUNS: Final = re.compile(r"^(?:# MAGIC )?(%run[ \t]+\S{1,100})", re.MULTILINE)
NO_VALUE: Final = "a value is None (outputs and trace are None if the row has none); test for None first"
_OF_ROW: Final = re.compile(r"[({,]\s*(inputs?|row|variables|args|run|example)\b")


def _no_value(match: "re.Match[str]", code: str) -> str:
    """Return advice on a missing value in JavaScript, if possible with a line of code that shows the row."""
    if "undefined" not in match[0]:
        return IS_NULL
    found = _OF_ROW.search(code)
    shown = "" if found is None else f" You can see the row with `throw new Error(JSON.stringify({found[1]}))`"
    return IS_UNDEFINED + shown


def _lacking(match: "re.Match[str]", code: str) -> str | None:
    """Return advice on a property that JavaScript code needs, but that the row lacks."""
    name = match[1]
    if _CLIENTS.fullmatch(name) and re.search(rf"\b{re.escape(name)}\??\.[\w.?$]{{1,80}}\(", code):
        return f"`{name}` is an object whose methods the code calls, so a row cannot have it: make it in the code; {NO_MODEL}"
    return "if another function is the evaluator, name it in `settings.entry`" if code.count("export ") > 1 else None


_ENTITY: Final = re.compile(r"&(?:gt|lt|amp|quot|apos|nbsp|#\d{1,4}|#x[0-9a-f]{1,4});", re.IGNORECASE)
_TEXTS: Final = re.compile(r"\"[^\"\n]{0,500}\"|'[^'\n]{0,500}'")
_TABLE: Final = (
    _Advice(r"", _no_program, code="entry_not_found", over=True),
    _Advice(r"", _entity, code="syntax_error"),
    _Advice(r"", _no_program, code="syntax_error", language=Language.PYTHON),
    _Advice(r"", _no_program, code="load_error", over=True),
    _Advice(
        r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|fetch failed|Max retries exceeded|Name or service not known"
        r"|name resolution|getaddrinfo|Connection refused|Network is unreachable",
        NO_NETWORK,
    ),
    _Advice(r"Cannot find module '(https?://[^']+)'", _address, over=True),
    _Advice(r"JSX syntax extension", _JSX),
    _Advice(r"Unterminated regular expression", lambda _, code: _JSX if "</" in code else None),
    _Advice(r"\"await\" can only be used", "write `async` before the function", code="syntax_error"),
    _Advice(r"", _looks_like, code="syntax_error", language=Language.JAVASCRIPT, over=True),
    _Advice(r"", lambda it, code: _looks_like(it, TYPED.sub("", code)), "syntax_error", Language.TYPESCRIPT),
    _Advice(
        r"invalid syntax",
        lambda _, code: (
            "pin packages in `packages`, such as numpy==2.1.0; the code cannot run shell commands"
            if re.search(r"^[ \t]*[!%]?(pip|pip3|conda|npm|apt) install", code, re.MULTILINE)
            else None
        ),
        code="syntax_error",
    ),
    _Advice(r"inconsistent use of tabs", "indent with spaces only, or with tabs only", code="syntax_error"),
    _Advice(
        r"was never closed", "close this bracket; the message names the line in which it opens", code="syntax_error"
    ),
    _Advice(r"expected ':'", "end the line with a colon", code="syntax_error"),
    _Advice(
        r"invalid syntax|expected 'else'|invalid decimal|unterminated",
        lambda _, code: (
            None
            if re.search(r"[=(){}\[\]:]", code)
            else "this is not code; paste a function evaluate that returns a score"
        ),
        code="syntax_error",
    ),
    _Advice(r"^EOFError$|^EOF when reading a line$", _NO_KEYBOARD, language=Language.PYTHON),
    _Advice(r"^(?:the evaluator|[\w$.]{1,200}) needs ([\w$]+), which the row does not have", _lacking),
    _Advice(
        r"it defines (Evaluate|EVALUATE|evaluator|Main|eval)\b",
        lambda match, _: f"did you mean `evaluate`? Rename `{match[1]}`, or name it in `settings.entry`",
        over=True,
    ),
    _Advice(
        r"^\d+$",
        lambda _, code: (
            "the sandbox does not have the folders above the code: if the code reads files there, send them in "
            "`files`, and say in `path` where the code itself is"
            if re.search(r"__file__.{0,80}\.parents\[", code)
            else None
        ),
        code="load_error",
        language=Language.PYTHON,
    ),
    _Advice(
        r"Missing credentials\. Please pass an `apiKey`|_API_KEY environment variable is missing or empty"
        r"|\b(?:ANTHROPIC|AZURE_OPENAI|GROQ|OPENAI)_API_KEY\b"  # a grant of a model sets these variables
        r"|Could not resolve authentication method|^No model specified \(|\bAPI key is not configured\. Set [A-Z]",
        NO_MODEL,
        over=True,
    ),
    _Advice(
        r"(?i:environment variable)|\b[A-Z][A-Z0-9_]*_(?:API_)?(?:KEY|TOKEN|SECRET)\b"
        r"|\b[A-Z]+(?:_[A-Z0-9]+)+\b.{0,20}\b(?:missing|required|not (?:set|defined|configured))\b"
        r"|\b[Mm]issing\b.{0,40}\b[A-Z]+(?:_[A-Z0-9]+)+\b",
        _NOT_SET,
        over=True,
    ),
    _Advice(
        r"SDK is not correctly initialized",
        "the platform's client has no keys here, and cannot reach its server: put what it would fetch, such as a "
        "prompt, into the code",
        language=Language.PYTHON,
    ),
    _Advice(
        r"^it needs `([\w.]+)`, which is missing, but hides",
        lambda match, _: (
            NO_MODEL
            if asks_models(match[1])
            else f"add an exact pin of the package of {match[1]} to `packages`, or send it in `files` if it is a file of yours"
        ),
    ),
    _Advice(
        r"needs the package ([\w.-]+), which is not pinned",
        lambda match, _: NO_MODEL if asks_models(match[1]) else f"add an exact pin of {match[1]} to `packages`",
    ),
    _Advice(
        r"returned (?:numpy\.ndarray|torch\.Tensor|list|tuple), which is not a number",
        "return one plain number for each completion: .tolist() turns a vector into a list, .mean().item() into "
        "one number",
    ),
    _Advice(
        r"expected string or bytes-like object, got '(?:Attribute)?([Dd]ict|list|tuple)'",
        lambda match, _: (
            f"the value is a {match[1].lower()}, not text: take the text from it, such as value[0]['content'] for "
            "chat messages, or send text in the row"
        ),
    ),
    _Advice(r"(returned|is) a value of type (\S+), which cannot be written as JSON", _no_form),
    _Advice(
        r"recursion depth exceeded (while (decoding|encoding|pickling|getting)|in comparison)",
        "the value is nested too deeply for Python: use `except RecursionError`, and return a score for such a row",
    ),
    _Advice(
        r"maximum recursion depth|Maximum call stack",
        "a function calls itself endlessly: add a condition under which it returns",
    ),
    _Advice(r"can't start new thread", "limits.processes also limits threads: raise it"),
    _Advice(
        r"NLTK Downloader|Can't find model '|couldn't connect to 'https://huggingface|LocalEntryNotFoundError",
        "an evaluator has no network, so a package cannot download data: send it in `data`, or use a package "
        "that includes it",
    ),
    _Advice(
        r"^cannot import name '(\w+)' from '([\w.]+)' \(/opt/python/lib/python([\d.]+)/(?!site-packages)",
        lambda match, _: (
            f"{match[2]} of Python {match[3]} has no {match[1]}: run the code on a newer version of Python "
            "(`python`), or import it from a package that has it, such as typing_extensions"
        ),
        language=Language.PYTHON,
    ),
    _Advice(
        r"^unsupported locale setting",
        "a sandbox has only the locale C.UTF-8: format numbers yourself, or pin babel",
    ),
    _Advice(
        r"cannot be called from a running event loop|event loop is already running|while another loop is running",
        "an event loop is already running: write `await` in place of asyncio.run(…), or make the evaluator a "
        "plain `def`",
    ),
    _Advice(
        r"^unhashable type: '(\w+)'$",
        lambda match, _: (
            f"a {match[1]} cannot be a key of a dict, an element of a set or an argument of a cached function: "
            "use its text, json.dumps(…, sort_keys=True)"
        ),
    ),
    _Advice(
        r"unexpected keyword argument 'proxies'",
        "openai before 1.55.3 does not work with httpx 0.28: pin a later openai",
    ),
    _Advice(
        r"returned a list",
        lambda _, code: (
            "in a pair, the score comes first: return 0.5, 'why'"
            if re.search(r"return \(?f?['\"][^'\"\n]*['\"], ?-?[\d.]+\b", code)
            else None
        ),
        over=True,
    ),
    _Advice(
        r"returned nothing",
        lambda _, code: (
            "printed text goes to the log, and is not a result; return the score, in every branch"
            if re.search(r"\b(print|console\.log)\(", code) and not re.search(r"\breturn\b", code)
            else None
        ),
        over=True,
    ),
    _Advice(
        r"returned an array",
        "return one number, or an object: { score: 0.5, precision: 0.7 }; for a match, return Boolean(…)",
    ),
    _Advice(r"returned a list", "return one number, or a dict: {'score': 0.5, 'precision': 0.7}"),
    _Advice(r"'(dict|list|str)' object has no attribute '(\w+)'", _attribute),
    _Advice(
        r"'NoneType' object is not|of type 'NoneType'|'NoneType' and|and 'NoneType'|'NoneType' object has no attribute",
        NO_VALUE,
        row=True,
    ),
    _Advice(
        r"Cannot (read|destructure|convert).*\b(undefined|null)\b|(undefined|null) is not",
        lambda _, code: NO_VARIABLES if "process.env" in code else _NO_COMMAND_LINE if "process.argv" in code else None,
    ),
    _Advice(r"Cannot (read|destructure|convert).*\b(undefined|null)\b|(undefined|null) is not", _no_value, row=True),
    _Advice(
        r"name "
        r"'(output|input|expected|reference|target|prediction|ground_truth|correct_answer|app_params|metadata|label)'"
        r" is not defined|^(output|input|expected|reference|target|prediction|groundTruth|metadata|label) is not "
        r"defined",
        ROW,
    ),
    _Advice(r"name '(true|false|null|undefined|nil)' is not defined", _python_word),
    _Advice(r"\b(gt|lt|amp|quot|nbsp)\b'? is not defined", _entity),
    _Advice(r"name '(\w+)' is not defined", _of_notebook, language=Language.PYTHON),
    _Advice(r"is not defined", "is the name misspelt, or not imported?"),
    _Advice(
        r"returned non-zero exit status 127\b",
        lambda *_: f"exit status 127 means that the shell did not find the command; {commands_of(Language.PYTHON)}",
    ),
    _Advice(
        r"No such file or directory|ENOENT",
        "an evaluator sees only the files that come with it: send them in `files` (texts) or `data`, or put the data "
        "into the row",
    ),
    _Advice(
        r"Expecting value|Unexpected token .* JSON|is not valid JSON",
        "the text is not JSON; test it before you parse it, or use a default",
    ),
    _Advice(
        r"^(division by zero|float division by zero)", "test for an empty list, or a length of 0, before you divide"
    ),
    _Advice(
        r"^Cannot find module '(?:[@~]/|#)",
        f"it is {OWN_ALIAS}",
    ),
    _Advice(
        r"^Cannot find module '[./]",
        "it is a file of yours: send it in `files`, with its path relative to this file",
    ),
    _Advice(r"^AssertionError|\bassert\b", "return 0 or False if a check fails; a failed assertion makes the row fail"),
    _Advice(
        r"could not convert string to float|invalid literal for int",
        "the value is text that is not a number; strip it, or test it first",
    ),
    _Advice(r"positional argument|unexpected keyword argument", "compare the call with the function's parameters"),
    _Advice(
        r"unsupported operand|can only concatenate|not supported between",
        "the two values have different types; convert one of them",
    ),
    _Advice(r"list index out of range|string index out of range", "the list or text is shorter than the code expects"),
    _Advice(
        r"is not a function",
        "is the name right? In JavaScript a missing method is undefined, and a row cannot contain functions, "
        "Maps or Sets",
    ),
    _Advice(
        r"is not iterable|object is not subscriptable|is not callable",
        "the value does not have the type that the code expects",
    ),
    _Advice(
        r"",
        "this line is not valid Python: correct it, and check that the whole file was pasted",
        code="syntax_error",
        language=Language.PYTHON,
    ),
)
ADVICE: Final = tuple((re.compile(one.message, re.DOTALL), one) for one in _TABLE)


def hint_of(one: _Advice, found: "re.Match[str]", evaluator: Evaluator, code: str) -> str | None:
    """Return the hint of a matching entry for this evaluator; `code` is the part of its code that is read."""
    if one.hint is NO_NETWORK and evaluator.models and not evaluator.network:
        return _OWN_ADDRESS[evaluator.language]
    return one.hint if isinstance(one.hint, str) else one.hint(found, code)
