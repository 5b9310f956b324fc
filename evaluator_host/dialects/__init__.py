"""Contracts, the host half: how a row becomes a call, and what the value that came back means."""

from typing import Final, Protocol

from evaluator_host.dialects.binding import DEFAULTS, Binding, encode
from evaluator_host.dialects.evaluate import contract as evaluate
from evaluator_host.dialects.evaluate_v1 import contract as evaluate_v1
from evaluator_host.dialects.interpret import Scored
from evaluator_host.dialects.main import contract as main
from evaluator_host.dialects.nemo import contract as nemo
from evaluator_host.dialects.uipath import contract as uipath
from evaluator_host.model.evaluator import Contract, EvaluatorSettings, Language, Row
from evaluator_host.model.outcome import EvaluationError, Returned

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
