# ruff: noqa: E501 - hints of one line
"""Adds hints to errors of user code that the sandbox could not explain.

The first entry of `ADVICE` whose language, error code and message pattern match is used. Its hint replaces a hint from
the sandbox only if the entry sets `over`.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from evaluator_host.engine.contracts.judge.prompt_columns import lacking_column
from evaluator_host.engine.packages.declared import name_of_pin
from evaluator_host.engine.packages.suggest import module_of
from evaluator_host.engine.sandbox.commands import advice_on_command, missing_command
from evaluator_host.engine.service.advice_table import (
    ADVICE,
    IS_NULL,
    IS_UNDEFINED,
    NO_VALUE,
    NO_VARIABLES,
    PYTHON,
    ROW,
    TYPED,
    hint_of,
)
from evaluator_host.engine.service.missing_imports import NO_MODEL, NO_NETWORK, asks_models, fetches, hint_on_import
from evaluator_host.engine.service.misspelt import misspelt_key
from evaluator_host.engine.service.newer_syntax import newer_module, newer_syntax
from evaluator_host.types.evaluator import Contract, Evaluator, Language, Row
from evaluator_host.types.outcome import (
    ErrorCode,
    EvaluationError,
    EvaluationResult,
    Failed,
    Loaded,
    MissingImport,
    Note,
)
from evaluator_host.types.warnings import remedy_of

_KEYS: Final = 12
_KEY_CHARS: Final = 80
_READ_CHARS: Final = 20_000  # how many characters of the code to read
_MESSAGE_CHARS: Final = 1000
_ON_TORCH: Final = frozenset(
    ("torch", "torchvision", "accelerate", "bert-score", "detoxify", "peft", "sentence-transformers", "timm", "trl")
)
_TORCH_MB: Final = 1024  # MB of memory needed to load PyTorch and a package that uses it
_OUT_OF_MEMORY: Final = frozenset((ErrorCode.CRASHED, ErrorCode.MEMORY_LIMIT))
_SCRIPT: Final = re.compile(
    r"^[ \t]*(?:export (?:default|async|const|function)\b|(?:async )?function\b ?\w*\(|(?:const|let|var) [\w{\[]"
    r"|import [^\n]{0,200}\bfrom ['\"]|module\.exports\b|(?:export )?(?:type \w+ ?= ?\{|interface \w+ ?\{))",
    re.MULTILINE,
)
_WRONG_ARGUMENTS: Final = re.compile(r"(\w{1,100})(?:\.__(?:init|new)__)?\(\) (?:missing \d|got an unexpected|takes )")
_BY_POSITION: Final = frozenset({Contract.AUTO, Contract.EVALUATE, Contract.EVALUATE_V1})
_OF_A_KEY: Final = frozenset(("KeyError", "TypeError"))  # errors that a missing key or value may cause
_NOT_CONNECTED: Final = frozenset(
    ("openai.APIConnectionError", "anthropic.APIConnectionError", "groq.APIConnectionError", "APIConnectionError")
)


def advised(
    error: EvaluationError, evaluator: Evaluator, contract: Contract, failed: Failed | None = None
) -> EvaluationError:
    """Return an error with a hint on what to do; without a known hint, return the error as it is.

    `contract` is the contract of the evaluator. `failed` contains what the runner noticed, such as failed imports.
    """
    if (known := _known_cause(error, evaluator, failed)) is not None:
        return replace(error, hint=known)
    code, language = evaluator.code[:_READ_CHARS], evaluator.language
    if error.type == "KeyError":
        return replace(error, hint=NO_VARIABLES) if _reads_variable(error, code) else error
    text = error.message[:_MESSAGE_CHARS]
    if text.startswith("the value at $ "):
        error = replace(error, message="the returned value " + text.removeprefix("the value at $ "))
    for pattern, one in ADVICE:
        if (one.code and one.code != error.code) or (one.language and one.language is not language):
            continue
        if one.row and error.code == "load_error":
            continue
        if (error.hint is None or one.over) and (found := pattern.search(text)) is not None:
            if (one.hint is ROW and contract not in _BY_POSITION) or (one.hint is NO_MODEL and evaluator.models):
                continue
            hint = hint_of(one, found, evaluator, code)
            if hint is not None or (one.over and error.code == "syntax_error"):
                return replace(error, hint=hint)
    return error


def _known_cause(error: EvaluationError, evaluator: Evaluator, failed: Failed | None) -> str | None:
    """Return a hint on the cause if it is known, such as a missing command or import, or code for a newer Python."""
    if (command := missing_command(error.hint or error.message[:_MESSAGE_CHARS])) is not None:
        return advice_on_command(command, evaluator.language)
    if (other := _not_python(error, evaluator)) is not None:
        return other
    if (newer := newer_syntax(error, evaluator) or newer_module(error, evaluator)) is not None:
        return newer
    if (larger := _memory_for_torch(error, evaluator)) is not None:
        return larger
    if (other := _other_version(error, evaluator)) is not None:
        return other
    if failed is None:
        return None
    if failed.unset_params and error.type in _OF_A_KEY:
        return remedy_of("missing_param")
    if error.type in _NOT_CONNECTED and not evaluator.models:
        return NO_MODEL
    return hint_on_import(error, failed.imports, evaluator)


def _not_python(error: EvaluationError, evaluator: Evaluator) -> str | None:
    """Return a hint if code was sent as Python, but is evidently JavaScript or TypeScript; else None."""
    if error.code is not ErrorCode.SYNTAX_ERROR or evaluator.language is not Language.PYTHON:
        return None
    code = evaluator.code[:_READ_CHARS]
    if not _SCRIPT.search(code) or PYTHON.search(code):
        return None
    is_typed = TYPED.search(code) is not None
    return f"this looks like {'TypeScript' if is_typed else 'JavaScript'}: set `language` to {'typescript' if is_typed else 'javascript'}"


def _memory_for_torch(error: EvaluationError, evaluator: Evaluator) -> str | None:
    """Return advice on memory if the evaluator pins PyTorch and its sandbox has too little memory for it; else None."""
    pinned = {name_of_pin(pin) for pin in evaluator.packages} & _ON_TORCH
    if error.code not in _OUT_OF_MEMORY or not pinned or evaluator.limits.memory_mb >= _TORCH_MB:
        return None
    return (
        f"PyTorch does not fit into limits.memory_mb {evaluator.limits.memory_mb}: set it to {_TORCH_MB} or more; "
        "a model that the code would download has to be sent as data files (docs/packages.md)"
    )


def _other_version(error: EvaluationError, evaluator: Evaluator) -> str | None:
    """Return a hint if a call has wrong arguments for a class or function that the code imports from a pinned package."""
    called = _WRONG_ARGUMENTS.match(error.message[:_MESSAGE_CHARS])
    if called is None:
        return None
    name, code = called[1], evaluator.code[:_READ_CHARS]
    names = rf"(?:\([^)]{{0,500}}|[^\n]{{0,300}})\b{name}\b"
    imported = re.search(rf"^from (\w{{1,100}})(?:\.[\w.]{{1,200}})? import {names}", code, re.MULTILINE)
    if imported is None:
        return None
    modules = {pin: module_of(name_of_pin(pin), evaluator.language) or name_of_pin(pin) for pin in evaluator.packages}
    pin = next(
        (pin for pin, module in modules.items() if module.lower().replace("-", "_") == imported[1].lower()), None
    )
    if pin is None:
        return None
    return f"`{name}` of {pin} takes other arguments; if the code is for another version of the package, pin that version in `packages`"


def without_repetition(error: EvaluationError, notes: Sequence[Note]) -> EvaluationError:
    """Remove an error's hint on a missing value if a warning already says that the row has no outputs."""
    said = any(note.code == "missing_outputs" for note in notes)
    is_repeated = error.hint in (NO_VALUE, IS_NULL) or (error.hint or "").startswith(IS_UNDEFINED)
    return replace(error, hint=None) if said and is_repeated else error


def notes_on_clients(missing: Sequence[MissingImport], evaluator: Evaluator) -> tuple[Note, ...]:
    """Return a note if a missing import is a client of models or HTTP, but the evaluator has no grant to connect."""
    clients = not evaluator.models and any(asks_models(one.module) for one in missing)
    fetchers = not evaluator.network and any(fetches(one.module) for one in missing)
    told = [text for text, needed in ((NO_MODEL, clients), (NO_NETWORK, fetchers)) if needed]
    return tuple(Note("no_network", text) for text in told)


def with_row_keys(
    result: EvaluationResult, row: object, evaluator: Evaluator, loaded: Loaded | None
) -> EvaluationResult:
    """Return a result; if its error is about a missing key, add a hint with the nearest key or with all existing keys.

    The existing keys are the keys of the row's variables if the code gets variables, else the keys of the inputs.
    """
    error = result.error
    if error is None or not isinstance(row, Row):
        return result
    if loaded is not None and (lacking := lacking_column(error, row, loaded)) is not None:
        return replace(result, error=replace(error, hint=lacking))
    if loaded is not None and (meant := misspelt_key(error, row, loaded, evaluator.language)) is not None:
        return replace(result, error=replace(error, hint=meant))
    if error.hint is not None or error.type != "KeyError":
        return result
    passed = row.variables is not None and all(note.code != "unused_variables" for note in result.warnings)
    name, given = ("variables", row.variables or {}) if passed else ("inputs", row.inputs)
    keys = ", ".join(map(str, list(given)[:_KEYS])) + (", …" if len(given) > _KEYS else "")
    hint = f"this row's {name} have: {keys}" if given else f"this row has no {name}"
    hint += f"; read one of these, or use .get({error.message[:_KEY_CHARS]}) if rows may lack it" if given else ""
    return replace(result, error=replace(error, hint=hint))


def _reads_variable(error: EvaluationError, code: str) -> bool:
    lines = code.split("\n")
    return error.line is not None and 0 < error.line <= len(lines) and "environ" in lines[error.line - 1]
