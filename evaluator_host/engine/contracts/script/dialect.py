"""Dialect `script`: a program gives its result by its exit code and its output; exit code 0 passes with score 1."""

from typing import Final

from evaluator_host.engine.contracts.base import Dialect
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.interpret import Scored
from evaluator_host.engine.contracts.native import invalid, unreadable
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row
from evaluator_host.types.json_values import encode_json
from evaluator_host.types.outcome import ErrorCode, EvaluationError, Returned

_KNOWN: Final[dict[str, type]] = {"argv": list, "env": dict, "stdin": str, "code": str}


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return `{"argv"?, "env"?, "stdin"?, "code"?}` from the row's variables.

    Without variables, standard input contains the row as JSON.
    """
    if row.variables is None:
        given: dict[str, Json] = {"inputs": row.inputs, "outputs": row.outputs, "trace": row.trace}
        return Binding({"args": [{"stdin": encode_json(given).decode()}]})
    odd = [name for name, value in row.variables.items() if name not in _KNOWN or not isinstance(value, _KNOWN[name])]
    if not odd and _are_texts(row.variables):
        return Binding({"args": [row.variables]})
    message = (
        f"{odd[0] if odd else 'argv or env'} is not valid: the variables of a script can be argv, env, stdin and code"
    )
    return EvaluationError(
        ErrorCode.BINDING_ERROR,
        message,
        hint="give argv as a list of strings, and env as an object whose values are strings",
    )


def _are_texts(variables: dict[str, Json]) -> bool:
    texts = [*variables.get("argv", ()), *variables.get("env", {}).values()]
    return all(isinstance(one, str) and "\0" not in one for one in texts) and "" not in variables.get("env", {})


def interpret(
    returned: Returned,
    language: Language,
    *,
    settings: EvaluatorSettings = DEFAULTS,
) -> Scored | EvaluationError:
    """Read the exit code: 0 means that the row passes with score 1; any other code means score 0."""
    if (error := unreadable(returned)) is not None:
        return error
    code = returned.value.get("exit_code") if isinstance(returned.value, dict) else None
    if not isinstance(code, int | float):
        return invalid("the sandbox did not report the exit code of the script")
    score = 1.0 if code == 0 else 0.0
    return Scored(score, code == 0, {"score": score, "exit_code": int(code)}, native=({"exit_code": int(code)},))


DIALECT: Final = Dialect(
    contract=Contract.SCRIPT,
    bind=bind,
    interpret=interpret,
    takes=("variables",),
)
