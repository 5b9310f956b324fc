"""Contracts, the host half: how a row becomes a call, and what the value that came back means."""

from typing import Final, Protocol

from evaluator_host.contracts import evaluate, evaluate_v1, main, nemo, uipath
from evaluator_host.contracts.binding import DEFAULTS, Binding, encode
from evaluator_host.contracts.reading import Scored
from evaluator_host.model import Contract, EvaluatorSettings, Language, Row
from evaluator_host.outcome import EvaluationError, Returned

__all__ = ["CONTRACTS", "Binding", "ContractModule", "Scored", "encode"]


class ContractModule(Protocol):
    """What every module here provides. Both functions are pure; what the row or the guest got wrong is a value."""

    def bind(self, row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
        """Return the body of the `call`, or why no code needs to run."""
        ...

    def interpret(
        self, returned: Returned, language: Language, *, settings: EvaluatorSettings = DEFAULTS
    ) -> Scored | EvaluationError:
        """Return what the value means, before threshold and range are looked at, or why it means nothing."""
        ...


CONTRACTS: Final[dict[Contract, ContractModule]] = {
    Contract.EVALUATE: evaluate,
    Contract.EVALUATE_V1: evaluate_v1,
    Contract.MAIN: main,
    Contract.NEMO: nemo,
    Contract.UIPATH: uipath,
}
