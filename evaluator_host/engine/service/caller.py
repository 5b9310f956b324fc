"""Describes one call of an evaluator: the workspace, the use of models, the package lock, the load time limit."""

from dataclasses import dataclass
from typing import Final

from evaluator_host.engine.service.model_grants import NO_TERMS, ModelTerms

DEFAULT_WORKSPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Caller:
    """The workspace that calls an evaluator, and the settings of its call."""

    workspace: str = DEFAULT_WORKSPACE
    lock: str | None = None  # lock of the evaluator's packages, as JSON; None if this host resolves the pins
    terms: ModelTerms = NO_TERMS  # how the call may use the models that the evaluator was granted
    load_timeout_s: float | None = None  # time limit for loading the evaluator, if shorter than the operator's limit


DEFAULT_CALLER: Final = Caller()
