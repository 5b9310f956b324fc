"""Dialect `rewards`: reward functions of reinforcement learning, as verl, TRL and verifiers call them.

The runner sends `{"rewards": [{"name", "weight", "values": one for each row}], "logged": {name: number},
"extra": {…}}`, or `{"refused": why}`. Source of the rules: verl 0.9.1 (workers/reward_manager), trl 1.16.0
(trainer/grpo_trainer.py) and verifiers 0.1.14 (rubrics/rubric.py).
"""

from typing import Any, Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.conversation import messages_of
from evaluator_host.engine.contracts.interpret import Scored, contradiction
from evaluator_host.engine.contracts.metric_leaves import finite
from evaluator_host.engine.contracts.native import invalid, is_number, object_sent, shown, without_truth
from evaluator_host.types.evaluator import Contract, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.outcome import EvaluationError, Note, Returned

_NOT_APPLICABLE: Final = Note("skipped", "no reward function applies to this row: all returned None")


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return both forms of the row: `row.variables` as the platform gives it (or None), and the host's fields."""
    return Binding({"args": [row.variables, _fields(row, settings)]})


def bind_one_of_many(row: Row, settings: EvaluatorSettings) -> Binding:
    """Return the arguments of one row, for a function that scores many rows in one call."""
    return Binding([row.variables, _fields(row, settings)])


def _fields(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    key = None if inputs is row.inputs else settings.correct_answer_key
    if row.outputs is None and (messages := messages_of(row)) is not None:
        inputs = {**inputs, "messages": messages}
    return {"inputs": inputs, "outputs": row.outputs, "truth": truth, "truth_key": key}


def interpret(
    returned: Returned, language: Language, *, settings: EvaluatorSettings = DEFAULTS
) -> Scored | EvaluationError:
    """Read the rewards of one row, or of many: the score is their weighted sum, or the mean of these sums."""
    value = object_sent(returned)
    if isinstance(value, EvaluationError):
        return value
    if "refused" in value:
        return invalid(str(value["refused"])[:500])
    rewards = value.get("rewards")
    if not isinstance(rewards, list) or not rewards or not all(map(_is_reward, rewards)):
        return contradiction()
    for one in rewards:
        for reward in one["values"]:
            if isinstance(reward, dict) and not (
                is_number(reward.get("score")) or isinstance(reward.get("score"), bool)
            ):
                return invalid(f"verl takes the reward from `score`, which is {shown(reward.get('score'))} here")
            if not isinstance(reward, dict | bool | None) and not is_number(reward):
                return invalid(f"the reward of `{one['name']}` is {shown(reward)}, not a number")
    return _scored(rewards, value)


def _is_reward(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("values"), list) and is_number(one.get("weight"))


def _number(reward: Json) -> float | int | None:
    """Return a reward as a number; None when it does not apply."""
    value = reward.get("score") if isinstance(reward, dict) else reward
    return float(value) if isinstance(value, bool) else value


def _scored(rewards: list[dict[str, Any]], value: dict[str, Any]) -> Scored | EvaluationError:
    count = max(len(one["values"]) for one in rewards)
    sums = [_sum(rewards, at) for at in range(count)]
    native = tuple(_native(one, count) for one in rewards)
    more = {key: value[key] for key in ("logged", "extra") if value.get(key)}
    native += (more,) if more else ()
    score = _mean(sums)
    if score is None:
        return Scored(None, None, {}, native=native, notes=(_NOT_APPLICABLE,), skipped=True)
    metrics = {"score": score}
    for one in rewards:
        if (mean := _mean([_number(reward) for reward in one["values"]])) is not None:
            metrics.setdefault(str(one["name"]), mean)
        if count == 1 and isinstance(one["values"][0], dict):
            for key, number in one["values"][0].items():
                if is_number(number) or isinstance(number, bool):
                    metrics.setdefault(key, _number(number) or 0.0)
    for key, number in (value.get("logged") or {}).items():
        if is_number(number):
            metrics.setdefault(key, number)
    return Scored(score, None, metrics, native=native)


def _sum(rewards: list[dict[str, Any]], at: int) -> float | int | None:
    """Return the weighted sum of a row's rewards; rewards of None are left out, and the sum of no reward is None."""
    found = [(one["weight"], _number(one["values"][at])) for one in rewards]
    known = [(weight, number) for weight, number in found if number is not None]
    if len(known) == 1 and known[0][0] == 1:
        return known[0][1]
    return finite(sum(weight * number for weight, number in known)) if known else None


def _mean(numbers: list[float | int | None]) -> float | int | None:
    known = [one for one in numbers if one is not None]
    if len(known) == 1:
        return known[0]
    return sum(known) / len(known) if known else None


def _native(one: dict[str, Any], count: int) -> dict[str, Json]:
    """Return a function's reward as it returned it; a list of them for several rows."""
    weight = {} if one["weight"] == 1 else {"weight": one["weight"]}
    if count > 1:
        return {"name": one["name"], "rewards": one["values"], **weight}
    reward = one["values"][0]
    return dict(reward) if isinstance(reward, dict) else {"name": one["name"], "reward": reward, **weight}


DIALECT: Final = Dialect(
    contract=Contract("rewards"),
    bind=bind,
    interpret=interpret,
    bind_one_of_many=bind_one_of_many,
    languages=PYTHON_ONLY,
    native_row={"data_source": "capitals", "solution_str": "It is Paris", "ground_truth": "Paris", "extra_info": {}},
    takes=("config", "correct_answer_key", "messages", "variables"),
    truth_or_column=("ground_truth", "ground_truths", "answer", "answers", "solution"),
    sdk=Sdk(
        module="verifiers",
        stand_in=StandIn("dialects/rewards/modules", preimport="verifiers"),
        real=frozenset({"verifiers"}),
    ),
)
