"""Gives advice on imports that fail because no package or file provides them.

The advice depends only on the import, the error and the evaluator's grants.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from evaluator_host.engine.contracts.table import all_dialects
from evaluator_host.engine.packages.providers import named_provider
from evaluator_host.engine.packages.suggest import module_of
from evaluator_host.engine.packages.tools import SOURCE_ONLY
from evaluator_host.engine.service.files import SUFFIXES, module_path
from evaluator_host.types.evaluator import Evaluator, Language
from evaluator_host.types.outcome import EvaluationError, Failed, MissingImport, Note, Outcome

NO_NETWORK: Final = (
    "an evaluator has no network; put what the code needs into the row, or grant it the host (`network`)"
)
NO_MODEL: Final = (
    "an evaluator has no network, and reaches a model only if it is granted one: register it and name it in `models` "
    "(docs/models.md)"
)
OWN_ALIAS: Final = (
    "a file of yours: send it in `files`, with the tsconfig.json (or package.json) that says where such files are"
)
_MODELS: Final = (
    *("openai", "anthropic", "litellm", "cohere", "mistralai", "google.generativeai", "google.genai", "groq", "ollama"),
    *("@ai-sdk", "@anthropic-ai/sdk", "@google/genai", "@google/generative-ai", "@mistralai/mistralai", "ai"),
    *("@langchain/anthropic", "@langchain/openai", "cohere-ai", "groq-sdk", "langchain"),
    *("langchain_anthropic", "langchain_aws", "langchain_cohere", "langchain_deepseek", "langchain_fireworks"),
    *("langchain_google_genai", "langchain_google_vertexai", "langchain_groq", "langchain_mistralai"),
    *("langchain_ollama", "langchain_openai", "langchain_together", "langchain_xai", "pydantic_ai", "together"),
    "vertexai",
)
_FETCHERS: Final = frozenset({"requests", "httpx", "aiohttp", "urllib3", "axios", "node-fetch"})
_SHOWN: Final = 100
_FILES: Final = 10
_AT_ONCE: Final = "; in your project's folder, `evaluator-host run FILE` sends all files that FILE imports"
_NOT_PINNED: Final = ", which is not pinned"
_MESSAGE_CHARS: Final = 2000
_INSTALLS: Final = {
    "python": re.compile(
        r"\b(?:pip3?|uv|conda|poetry)(?: or (?:pip|conda))?(?: to)? (?:pip )?(?:install|add) (?:-[\w-]+ )*"
        r"[`'\"]*(?P<name>[A-Za-z][\w.-]*)(?P<extras>\[[\w., -]+\])?(?![\w+:/])"
    ),
    "javascript": re.compile(
        r"\b(?:npm|yarn|pnpm|bun) (?:install|i|add) (?:-[\w-]+ )*[`'\"]*(?P<name>@?[a-z][\w./-]*)"
    ),
}
_DEPENDS: Final = re.compile(
    r"\b(?:optional dependency|[Pp]lease install|need to install|have to install|must install)(?: the)?"
    r"(?: package)? [`'\"]*(?P<name>[A-Za-z][\w.-]*)(?P<extras>\[[\w., -]+\])?"
)
_ABSENT: Final = re.compile(r"No module named '([\w.]{1,200})'$")
_USED: Final = re.compile(r"`([\w.]{1,200})[^`]{0,200}` needs the (?:package|module) ")
_PIN_NAME: Final = re.compile(r"[\[=<>~! ]")
_WITHOUT: Final = {
    "python": "remove the import, or run the code on another version of Python (`python`)",
    "javascript": "correct the name of the import, or remove it",
}
_WITHOUT_WHEEL: Final = (
    "remove the import, send the package's own code in `files`, or ask the operator to set "
    "EVALUATOR_HOST_ALLOW_SOURCE_BUILDS, and then pin it"
)


def asks_models(module: str) -> bool:
    """Return whether a module, a package with this name, or a part of a platform's package asks models."""
    names = (module, module.replace("-", "_"))
    asking = (*_MODELS, *_judges())
    return any(name == one or name.startswith((f"{one}.", f"{one}/")) for one in asking for name in names)


@cache
def _judges() -> tuple[str, ...]:
    return tuple(one for dialect in all_dialects() if dialect.sdk is not None for one in dialect.sdk.judges)


def fetches(module: str) -> bool:
    """Return whether a module is an HTTP client."""
    return module.partition(".")[0] in _FETCHERS


def remedy(one: MissingImport, evaluator: Evaluator, others: Sequence[str] = ()) -> str | None:
    """Return advice on an import that failed, or None. `others` are the paths of other files that are missing too."""
    module = one.module[:_SHOWN]
    if evaluator.language is not Language.PYTHON and module.startswith(("@/", "~/", "#")):
        return f"{module} is {OWN_ALIAS}"
    if one.path is not None:
        inner = one.path.replace("../", "")
        paths = ", ".join(f'"{one}": "…"' for one in (inner, *others))
        what = "it and the other missing files in `files`, by their paths" if others else "it in `files`, by its path"
        file = f"send {what}: {{{paths}}}"
        if inner != one.path:
            folder = "evals/" * one.path.count("../")
            file += f", and say in `path` where the code is, such as {folder}score{SUFFIXES[evaluator.language][0]}"
        if one.path.endswith(".py") and one.path != module_path(module):
            module = one.path[:_SHOWN]
        whole = "" if evaluator.files else _AT_ONCE
        if one.pin is None:
            why = f" ({one.problem})" if one.problem else ""
            return f"{module} is {'probably ' if why else ''}a file of yours{why}: {file}{whole}"
        return f"{module} is probably a file of yours: {file}; if you mean the package of that name, {_adding(one.pin)}"
    if one.pin is None:
        if one.problem is None:
            return None
        is_source = one.problem.endswith(SOURCE_ONLY)
        return f"{one.problem}: {_WITHOUT_WHEEL if is_source else _WITHOUT[evaluator.language.runner]}"
    pin = _adding(one.pin)
    if asks_models(one.module) and not evaluator.models:
        return f"{NO_MODEL}; then {pin}"
    if fetches(one.module) and not evaluator.network:
        return f"{NO_NETWORK}. To import {module} nevertheless, {pin}"
    return pin


@dataclass(frozen=True, slots=True)
class _Asked:
    """A well-known package that a library's error message tells people to install: `pip install name[extras]`."""

    name: str
    extras: str
    module: str


def missing_of(failed: Failed, evaluator: Evaluator) -> tuple[MissingImport, ...]:
    """Return the failed imports of an outcome, and the package that the error message says to install.

    This package is marked as `optional`: because the code does not import the package, the host does not choose it by
    itself.
    """
    asked = _asked_for(failed.error, evaluator)
    if asked is None or any(one.module == asked.module for one in failed.imports):
        return failed.imports
    return (*failed.imports, MissingImport(asked.module, failed.error.line or 1, optional=True))


def _asked_for(error: EvaluationError, evaluator: Evaluator) -> _Asked | None:
    language, message = evaluator.language, error.message[:_MESSAGE_CHARS]
    found = _INSTALLS[language.runner].search(message)
    if found is None and _is_of_import(error):
        found = _DEPENDS.search(message)
    if found is None:
        return None
    name, extras = found["name"].rstrip("."), found.groupdict().get("extras") or ""
    module = module_of(name, language)
    return None if module is None else _Asked(name, extras.replace(" ", ""), module)


def _is_of_import(error: EvaluationError) -> bool:
    return (error.type or "").rpartition(".")[2] in ("ImportError", "ModuleNotFoundError")


def _hint_on_package(asked: _Asked, about: MissingImport, evaluator: Evaluator) -> str | None:
    """Return how to pin a package that an error message says to install, or None if it is pinned already."""
    pinned = next((pin for pin in evaluator.packages if _PIN_NAME.split(pin)[0].lower() == asked.name.lower()), None)
    if pinned is not None:
        return f"write {_with_extras(pinned, asked)} in place of {pinned} in `packages`" if asked.extras else None
    pin = None if about.pin is None else _with_extras(about.pin, asked)
    return remedy(replace(about, pin=pin, path=None), evaluator)


def _with_extras(pin: str, asked: _Asked) -> str:
    name = _PIN_NAME.split(pin)[0]
    return f"{name}{asked.extras}{pin[len(name) :]}"


def hint_on_import(error: EvaluationError, missing: Sequence[MissingImport], evaluator: Evaluator) -> str | None:
    """Return advice on the import that caused an error, or None for any other error."""
    asked = _asked_for(error, evaluator)
    if asked is not None and (of := next((one for one in missing if one.module == asked.module), None)) is not None:
        return _hint_on_package(asked, of, evaluator)
    about = next((one for one in missing if _names(error.message, one.module)), None)
    if about is None and evaluator.language is Language.PYTHON and (absent := _ABSENT.match(error.message)):
        module = absent[1]
        known = named_provider(module, evaluator.language)
        if known.is_own or known.pin is None:
            about = MissingImport(module, error.line or 1, path=module_path(module))
    used = _USED.match(error.message) if missing or _is_of_import(error) else None
    if about is None and used is not None and asks_models(used[1]) and not evaluator.models:
        return f"{NO_MODEL}; then {error.hint}" if error.hint else NO_MODEL
    if about is not None and _NOT_PINNED in error.message:
        about = replace(about, path=None)  # the runner knows this package, so it is not a file of the author
    if about is None:
        return None
    return remedy(about, evaluator, _other_files(about, missing))


def with_hints(missing: Sequence[MissingImport], evaluator: Evaluator) -> tuple[MissingImport, ...]:
    """Return the imports, each with advice on what to do."""
    return tuple(replace(one, hint=remedy(one, evaluator, _other_files(one, missing))) for one in missing)


def _other_files(one: MissingImport, missing: Sequence[MissingImport]) -> list[str]:
    """Return the paths of the other missing files of the author, if an import is such a file."""
    own = {other.path for other in missing if other.path is not None and other.pin is None}
    return sorted(own - {one.path})[:_FILES] if one.path is not None else []


def caught(outcome: Outcome) -> tuple[MissingImport, ...]:
    """Return the failed imports in an outcome, except the import that caused its error."""
    message = outcome.error.message if isinstance(outcome, Failed) else ""
    return tuple(one for one in outcome.imports if not _names(message, one.module))


def notes(missing: Sequence[MissingImport], evaluator: Evaluator) -> Iterator[Note]:
    """Yield a warning for each failed import that did not stop the code."""
    for one in {one.module: one for one in reversed(missing) if not one.optional}.values():
        where = f"{one.file}, line {one.line}" if one.file is not None else f"line {one.line}"
        message = f"{where}: {one.module[:_SHOWN]} could not be imported, and the code goes on without it"
        if asks_models(one.module) and not evaluator.models:
            message += ", so no model has answered, and the score is what the code returns without an answer"
        yield Note("missing_import", message, remedy(one, evaluator))


def _adding(pin: str) -> str:
    return f"add {pin} to `packages`" if _is_exact(pin) else f"add an exact pin of {pin} to `packages`"


def _is_exact(pin: str) -> bool:
    return "==" in pin or "@" in pin[1:]


def _names(message: str, module: str) -> bool:
    top = module.partition(".")[0]
    # if the whole namespace is missing, such as `azure`, the error names only the namespace
    if message == f"No module named '{top}'":
        return True
    marks = (f"'{module}'", f"'{module}.", f"'{module}/", f"`{module}.", f" package {module},")
    return any(mark in message for mark in marks)
