"""Arguments and results of reward functions as verl, TRL and verifiers call them (dialect `rewards`).

The runner sends `{"rewards": [{"name", "weight", "values": one for each row, "nan": number of NaN}], "logged": {name:
number}, "extra": {…}, "wrapped": {name: parameters}}`, or `{"refused": why}`. For rows that are scored together, the
runner adds `rows`, their positions, and `grouped`, the first row whose reward differs when it is scored alone (or
null). Source of the rules: verl 0.9.1 (workers/reward_manager), trl 1.16.0 (trainer/grpo_trainer.py) and verifiers
0.1.14 (rubrics/rubric.py).
"""

from typing import Any, Final

from evaluator_host.engine.contracts.base import PYTHON_ONLY, Dialect, Sdk
from evaluator_host.engine.contracts.binding import DEFAULTS, Binding
from evaluator_host.engine.contracts.conversation import messages_of
from evaluator_host.engine.contracts.interpret import Scored, contradiction
from evaluator_host.engine.contracts.metric_leaves import finite
from evaluator_host.engine.contracts.native import (
    invalid,
    is_number,
    object_sent,
    shown,
    truth_column,
    without_truth,
)
from evaluator_host.engine.contracts.truth import reads_untested
from evaluator_host.types.evaluator import Contract, Evaluator, EvaluatorSettings, Json, Language, Row, StandIn
from evaluator_host.types.numbers import mean_of
from evaluator_host.types.outcome import EvaluationError, Loaded, Note, Returned
from evaluator_host.types.warnings import WarningKind, remedy_of

_NOT_APPLICABLE: Final = Note("skipped", "no reward function applies to this row: all returned None")
_TRUTHS: Final = ("ground_truth", "ground_truths", "answer", "answers", "solution")


def bind(row: Row, settings: EvaluatorSettings) -> Binding | EvaluationError:
    """Return the row in two forms: in the platform's own (`row.variables`, or None), and as the host's fields."""
    return Binding({"args": [row.variables, _fields(row, settings)]})


def bind_one_of_many(row: Row, settings: EvaluatorSettings) -> Binding:
    """Return the arguments for one row of a function that scores many rows in one call."""
    return Binding([row.variables, {**_fields(row, settings), "row": row.index}])


def _fields(row: Row, settings: EvaluatorSettings) -> dict[str, Json]:
    inputs, truth = without_truth(row, settings)
    key = None if inputs is row.inputs else settings.correct_answer_key
    if row.outputs is None and (messages := messages_of(row)) is not None:
        inputs = {**inputs, "messages": messages}
    return {"inputs": inputs, "outputs": row.outputs, "truth": truth, "truth_key": key}


def interpret(
    returned: Returned, language: Language, *, settings: EvaluatorSettings = DEFAULTS
) -> Scored | EvaluationError:
    """Read the rewards of one row or of many rows: the score is a row's weighted sum, or the mean of the rows' sums."""
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
                given = shown(reward.get("score"))
                return invalid(f"verl takes the reward from `score`, which is {given}, not a number")
            if not isinstance(reward, dict | bool | None) and not is_number(reward):
                return invalid(f"the reward of `{one['name']}` is {shown(reward)}, not a number")
    return _scored(rewards, value)


def _is_reward(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("values"), list) and is_number(one.get("weight"))


def _number(reward: Json) -> float | int | None:
    """Return a reward as a number, or None if the reward does not apply to its row."""
    value = reward.get("score") if isinstance(reward, dict) else reward
    return float(value) if isinstance(value, bool) else value


def _scored(rewards: list[dict[str, Any]], value: dict[str, Any]) -> Scored | EvaluationError:
    count = max(len(one["values"]) for one in rewards)
    sums = [_sum(rewards, at) for at in range(count)]
    rows = value.get("rows")
    native = tuple(_native(one, count, rows) for one in rewards)
    more = {key: value[key] for key in ("logged", "extra") if value.get(key)}
    native += (more,) if more else ()
    score, notes = _mean(sums), _notes(rewards, value)
    if score is None:
        return Scored(None, None, {}, native=native, notes=notes or (_NOT_APPLICABLE,), skipped=True)
    metrics = {"score": score}
    for one in rewards:
        if (found := _mean([_number(reward) for reward in one["values"]])) is not None:
            metrics.setdefault(str(one["name"]), found)
        if count == 1 and isinstance(one["values"][0], dict):
            for key, number in one["values"][0].items():
                if is_number(number) or isinstance(number, bool):
                    metrics.setdefault(key, _number(number) or 0.0)
    for key, number in (value.get("logged") or {}).items():
        if is_number(number):
            metrics.setdefault(key, number)
    return Scored(score, None, metrics, native=native, notes=notes)


def _notes(rewards: list[dict[str, Any]], value: dict[str, Any]) -> tuple[Note, ...]:
    notes = [_nan(one) for one in rewards if one.get("nan")]
    if isinstance(wrapped := value.get("wrapped"), dict):
        notes.append(_wrapped(wrapped))
    if isinstance(grouped := value.get("grouped"), dict):
        notes.append(_grouped(grouped))
    return tuple(notes)


def _grouped(found: dict[str, Any]) -> Note:
    row, alone, among = (shown(found.get(key)) for key in ("row", "alone", "among"))
    message = (
        f"`{str(found.get('name'))[:80]}` gave row {row} the reward {alone} when it was scored alone, and "
        f"{among} when all rows were scored together; the first counts as the row's score"
    )
    return Note("rewards_of_group", message, DIALECT.warnings["rewards_of_group"].remedy)


def _wrapped(found: dict[str, Any]) -> Note:
    names = [f"`{str(key)[:80]}`" for keys in found.values() if isinstance(keys, list) for key in keys[:5]]
    message = (
        f"the annotation of {', '.join(dict.fromkeys(names))} says that it is a list of plain values, but each "
        "completion's value is a list, so the code gets a list of lists"
    )
    return Note("list_of_lists", message, DIALECT.warnings["list_of_lists"].remedy)


def _nan(one: dict[str, Any]) -> Note:
    message = f"`{one['name']}` returned NaN, which TRL treats as None, so this reward is left out"
    return Note("non_finite", message, remedy_of("non_finite"))


def _sum(rewards: list[dict[str, Any]], at: int) -> float | int | None:
    """Return the weighted sum of the rewards for row `at` that are not None, or None if all are None."""
    found = [(one["weight"], _number(one["values"][at])) for one in rewards]
    known = [(weight, number) for weight, number in found if number is not None]
    if len(known) == 1 and known[0][0] == 1:
        return known[0][1]
    return finite(sum(weight * number for weight, number in known)) if known else None


def _mean(numbers: list[float | int | None]) -> float | int | None:
    known = [one for one in numbers if one is not None]
    if len(known) == 1:
        return known[0]
    return mean_of(known) if known else None


def _native(one: dict[str, Any], count: int, rows: Json) -> dict[str, Json]:
    """Return what one function returned: a row's reward, or many rows' rewards with the rows' positions."""
    weight = {} if one["weight"] == 1 else {"weight": one["weight"]}
    if count > 1 or rows is not None:
        numbered = {"rows": rows} if isinstance(rows, list) and len(rows) == len(one["values"]) else {}
        return {"name": one["name"], "rewards": one["values"], **numbered, **weight}
    reward = one["values"][0]
    return dict(reward) if isinstance(reward, dict) else {"name": one["name"], "reward": reward, **weight}


def row_notes(evaluator: Evaluator, loaded: Loaded, row: Row) -> tuple[Note, ...]:
    """Warn about values that the code reads and the platforms always provide, but the row lacks."""
    notes = []
    if row.variables is None and "data_source" not in row.inputs and reads_untested(loaded, "data_source"):
        kind = DIALECT.warnings["no_data_source"]
        notes.append(Note("no_data_source", f"{kind.meaning}: the code gets an empty string", kind.remedy))
    given = row.inputs if row.variables is None else row.variables
    known = row.variables is None and truth_column(row.inputs, evaluator.settings) is not None
    read = [name for name in _TRUTHS if reads_untested(loaded, name)]
    if row.variables is None and isinstance(model := row.inputs.get("reward_model"), dict):
        given = {**given, "ground_truth": model.get("ground_truth")}
    if read and not known and all(_is_absent(given.get(name), row) for name in read):
        names = ", ".join(f"`{name}`" for name in read)
        message = f"the code reads {names}, but the row does not have this value, or it is empty"
        notes.append(Note("empty_expected", message, "add the column, map one to it, or leave the row out"))
    return tuple(notes)


def _is_absent(value: Json, row: Row) -> bool:
    """Return whether a ground truth is missing or empty; for a group, whether any row's ground truth is."""
    if isinstance(value, list) and row.variables is not None:
        return any(one is None or (isinstance(one, str) and not one.strip()) for one in value)
    return value is None or (isinstance(value, str) and not value.strip())


DIALECT: Final = Dialect(
    contract=Contract("rewards"),
    bind=bind,
    interpret=interpret,
    bind_one_of_many=bind_one_of_many,
    languages=PYTHON_ONLY,
    native_row={"data_source": "capitals", "solution_str": "It is Paris", "ground_truth": "Paris", "extra_info": {}},
    takes=("config", "correct_answer_key", "messages", "variables"),
    truth_or_column=_TRUTHS,
    row_notes=row_notes,
    warnings={
        "rewards_of_group": WarningKind(
            "a row gets a different reward when it is scored alone than when all rows are scored together",
            remedy="use the rewards in `together`, or send each group as a single row, in its `variables`",
        ),
        "list_of_lists": WarningKind(
            "a column with lists reaches the code as a list of lists",
            remedy="annotate it as `list[list[str]]`, and read one list per completion, as in `zip(completions, tags)`",
        ),
        "no_data_source": WarningKind(
            "the code reads `data_source`, but the row does not have it",
            remedy="add the column `data_source`, or map one to it",
        ),
    },
    sdk=Sdk(
        module="verifiers",
        stand_in=StandIn("dialects/rewards/modules", preimport="verifiers"),
        real=frozenset({"verifiers"}),
    ),
)
