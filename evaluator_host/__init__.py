"""Evaluator Host: runs evaluator code in a sandbox and returns one normalised score."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from evaluator_host.client import AsyncClient, Client
    from evaluator_host.engine.opening import open_engine
    from evaluator_host.scale.sandbox_pool import AsyncSandboxPool, SandboxPool
    from evaluator_host.types.evaluator import Evaluator, Isolation, Language, Limits, Row
    from evaluator_host.types.outcome import EvaluationResult

    __version__: str

__all__ = [
    "AsyncClient",
    "AsyncSandboxPool",
    "Client",
    "EvaluationResult",
    "Evaluator",
    "Isolation",
    "Language",
    "Limits",
    "Row",
    "SandboxPool",
    "__version__",
    "open_engine",
]

_HOMES: Final = {
    "AsyncClient": "evaluator_host.client",
    "AsyncSandboxPool": "evaluator_host.scale.sandbox_pool",
    "Client": "evaluator_host.client",
    "EvaluationResult": "evaluator_host.types.outcome",
    "Evaluator": "evaluator_host.types.evaluator",
    "Isolation": "evaluator_host.types.evaluator",
    "Language": "evaluator_host.types.evaluator",
    "Limits": "evaluator_host.types.evaluator",
    "Row": "evaluator_host.types.evaluator",
    "SandboxPool": "evaluator_host.scale.sandbox_pool",
    "open_engine": "evaluator_host.engine.opening",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that importing the package stays cheap."""
    if name == "__version__":
        return import_module("importlib.metadata").version("evaluator-host")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
