from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import NamedScore, invalid, is_number, scored, unreadable
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Language, Row
from evaluator_host.types.outcome import EvaluationError, Returned


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    return Binding({"args": [row.outputs]})


def interpret(
    returned: Returned, language: Language, *, settings: EvaluatorSettings = DEFAULTS
) -> Scored | EvaluationError:
    if (error := unreadable(returned)) is not None:
        return error
    if not is_number(returned.value) or not 0 <= returned.value <= 5:
        return invalid("Acme takes 0 to 5 stars", "return a number from 0 to 5")
    return scored([NamedScore("stars", returned.value / 5)], [{"stars": returned.value}])


DIALECT = Dialect(contract=Contract("acme-scores"), bind=bind, interpret=interpret)
