"""Says what to do about an import that nothing provides; pure functions of the import, the error and the grants."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

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
_MODELS: Final = (
    *("openai", "anthropic", "litellm", "cohere", "mistralai", "google.generativeai", "google.genai", "groq", "ollama"),
    *("@anthropic-ai/sdk", "ai", "langchain"),
)
_FETCHERS: Final = frozenset({"requests", "httpx", "aiohttp", "urllib3", "axios", "node-fetch"})
_SHOWN: Final = 100
_NOT_PINNED: Final = ", which is not pinned"
_WITHOUT: Final = {
    "python": "do without the import, or run the code on another version of Python (`python`)",
    "javascript": "correct the name of the import, or do without it",
}


def asks_models(module: str) -> bool:
    """Return whether a module is a client of models."""
    return any(module == one or module.startswith((f"{one}.", f"{one}/")) for one in _MODELS)


def fetches(module: str) -> bool:
    """Return whether a module is a client of HTTP."""
    return module.partition(".")[0] in _FETCHERS


def remedy(one: MissingImport, evaluator: Evaluator) -> str | None:
    """Return what to do about an import that failed; None when nothing is known."""
    module = one.module[:_SHOWN]
    if one.path is not None:
        suffixes = SUFFIXES[evaluator.language]
        source = one.path.removesuffix(".js") if evaluator.language is Language.TYPESCRIPT else one.path
        path = source if source.endswith(suffixes) else source + suffixes[0]
        inner = path.replace("../", "")
        file = f'send it in `files`, by its path: {{"{inner}": "…"}}'
        if inner != path:
            folder = "evals/" * path.count("../")
            file += f", and say in `path` where the code lies beside it: {folder}score{suffixes[0]}"
        if one.path.endswith(".py") and one.path != module_path(module):
            module = one.path[:_SHOWN]
        if one.pin is None:
            why = f" ({one.problem})" if one.problem else ""
            return f"{module} is {'probably ' if why else ''}a file of yours{why}: {file}"
        return f"{module} is probably a file of yours: {file}; for a package of that name, {_adding(one.pin)}"
    if one.pin is None:
        return None if one.problem is None else f"{one.problem}: {_WITHOUT[evaluator.language.runner]}"
    pin = _adding(one.pin)
    if asks_models(one.module) and not evaluator.models:
        return f"{NO_MODEL}; then {pin}"
    if fetches(one.module) and not evaluator.network:
        return f"{NO_NETWORK}. To import {module} nevertheless, {pin}"
    return pin


def hint_on_import(error: EvaluationError, missing: Sequence[MissingImport], evaluator: Evaluator) -> str | None:
    """Return what to do about the import that an error is about; None for any other error."""
    about = next((one for one in missing if _names(error.message, one.module)), None)
    if about is not None and _NOT_PINNED in error.message:
        about = replace(about, path=None)  # the placeholder of a known package is not a file of the author
    return None if about is None else remedy(about, evaluator)


def caught(outcome: Outcome) -> tuple[MissingImport, ...]:
    """Return the failed imports of an outcome, except the one that its error is about."""
    message = outcome.error.message if isinstance(outcome, Failed) else ""
    return tuple(one for one in outcome.imports if not _names(message, one.module))


def notes(missing: Sequence[MissingImport], evaluator: Evaluator) -> Iterator[Note]:
    """Yield a warning for each import that failed, and that the code caught."""
    for one in {one.module: one for one in reversed(missing) if not one.optional}.values():
        where = f"{one.file}, line {one.line}" if one.file is not None else f"line {one.line}"
        message = f"{where}: {one.module[:_SHOWN]} could not be imported, and the code goes on without it"
        yield Note("missing_import", message, remedy(one, evaluator))


def _adding(pin: str) -> str:
    return f"add {pin} to `packages`" if _is_exact(pin) else f"add an exact pin of {pin} to `packages`"


def _is_exact(pin: str) -> bool:
    return "==" in pin or "@" in pin[1:]


def _names(message: str, module: str) -> bool:
    top = module.partition(".")[0]
    if message == f"No module named '{top}'":  # the first part of `azure.identity` that is missing
        return True
    marks = (f"'{module}'", f"'{module}.", f"'{module}/", f"`{module}.", f" package {module},")
    return any(mark in message for mark in marks)
