"""Runs reward functions (dialect `rewards`). The names of their parameters show their platform.

`solution_str` belongs to verl (`solution_strs` to verl's batches), `completions` to TRL and to verifiers' group
rewards, `completion` to verifiers. If a program has several reward functions, all are called, and their weighted sum is
the reward.
"""

from __future__ import annotations

from contextlib import suppress

from evaluator_runner import candidates, dialects, entry, jsontext
from evaluator_runner.binding import AttributeDict
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.dialects.rewards.calls import BATCHED, ROLLOUT, Refused, Reward, is_verl
from evaluator_runner.dialects.rewards.loader import rubric_of_loader
from evaluator_runner.failures import Failure
from evaluator_runner.outline import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from evaluator_runner.outline import Function, Outline

CONTRACT = "rewards"
WORDS = ("solution_str", "completion", "verifiers", "reward_input", "predict")
PREBOUND = False
_OWN = ("evaluate", "main")
_VERL = "compute_score"
_COMPARED = 8  # maximum number of rows that are also scored one by one, to compare the rewards with those of the batch
_decode = jsontext.decoder(AttributeDict)


def sign(outline: Outline, name: str | None) -> tuple[int, str] | None:
    """Recognise a function with the parameters of a reward function of verl, TRL or verifiers.

    Return a rank (1 is the most certain) and a reason, or None if the code is not recognised.
    """
    if name is None and outline.has_own_entry:
        return None
    found = [one for one in outline.functions.values() if one.name not in _OWN and name in {None, one.name}]
    others = candidates.public(outline) if name is None else []
    for one in found:
        if is_verl(one.name, one.parameters) and not (one.gives_tuple and set(others) - {one.name, _VERL}):
            step = dialects.NAMED if one.name == _VERL else dialects.PARAMETERS
            return step, f"`{one.name}` has the parameters of verl: {', '.join(one.parameters)}"
    for one in found:
        if "completions" in one.parameters:
            return dialects.PARAMETERS, f"`{one.name}` takes completions, as reward functions of TRL do"
    helpers = candidates.helpers(outline) if name is None else set()
    for one in found:
        if one.name not in helpers and _takes_rollout(one, imported=outline.imports("verifiers")):
            return dialects.ANY_NAME, f"`{one.name}` takes {', '.join(one.parameters)} of a rollout, as in verifiers"
    return None


def _takes_rollout(function: Function, *, imported: bool) -> bool:
    names = set(function.parameters)
    return set(function.required) <= ROLLOUT and ("completion" in names or (imported and bool(names & ROLLOUT)))


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> entry.Entry:
    """Return an `Entry` that calls the reward function `name`, or by default all functions of the only rubric.

    If there is no rubric either, the entry calls all reward functions of the code.

    Raises:
      Failure: there is no reward function, or there are several for verl.
    """
    rewards, loader = _rewards(namespace, name)
    if not rewards:
        raise entry.does_not_fit(namespace, name or _VERL)
    given = config.get("reward_weights")
    if isinstance(given, dict | list):
        weights = given if isinstance(given, dict) else dict(zip([one.name for one in rewards], given, strict=False))
        for one in rewards:
            one.weight = weights.get(one.name, one.weight)
    kwargs = {key: value for key, value in config.items() if key != "reward_weights"}
    first = rewards[0]
    found = entry.Entry(first.name, first.call)
    found.decode = _decode
    found.together = any(one.style in BATCHED for one in rewards)
    found.call = _Caller(rewards, namespace, kwargs).call
    found.uses = [one.name for one in rewards]
    if loader is not None:
        message = f"the rubric comes from `{loader}`, whose data set and environment are not loaded"
        found.notes.append({"code": "entry_found_inside", "message": message})
    if len(rewards) > 1:
        names = ", ".join(one.name for one in rewards[:10])
        found.notes.append(
            {
                "code": "several_entries",
                "message": f"the score is the sum of {names}; to use one of them, name it in `settings.entry`",
            }
        )
        if loader is None and not _rubrics(namespace):
            found.notes += _left_out(candidates.outline_of(namespace), found.uses)
    return found


def _left_out(outline: Outline, called: list[str]) -> list[dict[str, str]]:
    """Return a warning for each function that adds up rewards in its own way, but has no parameter for completions.

    There is no warning if the code has a list of the rewards, because their platform then adds them up.
    """
    if candidates.listed(outline, called):
        return []
    adding = [
        one.name
        for one in outline.functions.values()
        if one.name not in called and entry.SCORING.intersection(one.name.lower().split("_"))
        if one.parameters and not one.name.startswith("test") and not one.gives_summary
        if len(_added_by(one).intersection(called)) > 1
    ]
    why = "calls several of these rewards, but is not called, because it does not take completions"
    return [{"code": "entry_left_out", "message": f"`{name}` {why}"} for name in adding]


def _added_by(function: Function) -> set[str]:
    """Return the functions that a function calls outside of inner functions, if it adds or multiplies and returns."""
    body = function.node.body if isinstance(function.node.body, list) else [function.node.body]
    parts = [part for one in body if not hasattr(one, "decorator_list") for part in walk(one)]
    gives = body is not function.node.body or any(type(one).__name__ == "Return" and one.value for one in parts)
    adds = any(type(getattr(one, "op", None)).__name__ in {"Add", "Mult"} for one in parts)
    return {getattr(one.func, "id", "") for one in parts if type(one).__name__ == "Call"} if gives and adds else set()


def _rewards(namespace: dict[str, Any], name: str | None) -> tuple[list[Reward], str | None]:
    """Return the reward functions, and the name of the function that makes their rubric, if there is one."""
    rubrics = _rubrics(namespace)
    if name is None and len(rubrics) == 1:
        return _of_rubric(rubrics[0], namespace), None
    if name is None and not rubrics and "verifiers" in namespace["__loader__"].get_source("evaluator"):
        made = rubric_of_loader(namespace, candidates.outline_of(namespace))
        if made is not None and getattr(made[1], "funcs", None):
            return _of_rubric(made[1], namespace), made[0]
    return _functions(namespace, name), None


def _rubrics(namespace: dict[str, Any]) -> list[Any]:
    return [one for one in namespace.values() if type(one).__name__ == "Rubric" and getattr(one, "funcs", None)]


def _of_rubric(rubric: Any, namespace: dict[str, Any]) -> list[Reward]:
    objects = dict(getattr(rubric, "class_objects", {}))
    pairs = zip(rubric.funcs, rubric.weights, strict=False)
    named = [(getattr(one, "__name__", "reward"), one, weight) for one, weight in pairs]
    outline = candidates.outline_of(namespace)
    return [Reward(name, one, _unread(outline, name), weight, objects) for name, one, weight in named]


def _unread(outline: Outline, name: str) -> set[str]:
    function = outline.functions.get(name)
    return set() if function is None else function.unread


def _functions(namespace: dict[str, Any], name: str | None) -> list[Reward]:
    if name is not None:
        unread = _unread(candidates.outline_of(namespace), name)
        return [Reward(name, entry.find_function(namespace, name).call, unread)]
    own = {key: one for key, one in namespace.items() if entry.is_function(one) and _is_own(one) and key not in _OWN}
    outline = candidates.outline_of(namespace)
    found = [made for key, one in own.items() if (made := Reward(key, one)).style is not None and made.is_complete]
    found = _without_summaries(found, outline)
    names = candidates.meant_in(namespace, [one.name for one in found])
    chosen = _of_one_platform([one for one in found if one.name in names])
    chosen = [Reward(one.name, one.call, _unread(outline, one.name)) for one in chosen]
    verl = [one for one in chosen if is_verl(one.name, one.names)]
    if not verl or len(chosen) == 1:
        return chosen
    names = [one.name for one in verl]
    only = _VERL if _VERL in names else _only(namespace, names)
    return [one for one in verl if one.name == only]


def _only(namespace: dict[str, Any], names: list[str]) -> str:
    """Return the only name in the list of reward functions.

    Raises:
      Failure: there are several names. verl calls only one reward function, which a setting of verl names.
    """
    try:
        return candidates.the_only(namespace, names, "reward functions, of which verl calls one")
    except Failure as failure:
        failure.equal = ()
        raise


def _of_one_platform(found: list[Reward]) -> list[Reward]:
    """If there are functions for TRL, leave out functions for other platforms, unless the code seems to be for verl."""
    trl = [one for one in found if "completions" in one.names]
    verl = [one for one in found if is_verl(one.name, one.names)]
    if any(one.name == _VERL for one in verl) or len(verl) > len(trl):
        return found
    return trl or found


def _without_summaries(found: list[Reward], outline: Outline) -> list[Reward]:
    """If some functions return rewards, leave out those that summarize many completions in a dict or tuple."""
    summaries = {
        one.name for one in outline.functions.values() if one.gives_summary and "completions" in one.parameters
    }
    return [one for one in found if one.name not in summaries] or found


def _is_own(value: Any) -> bool:
    return getattr(value, "__module__", None) == "evaluator"


class _Caller:
    """Calls reward functions with one row or many rows, and converts the returned rewards to plain values."""

    def __init__(self, rewards: list[Reward], namespace: dict[str, Any], config: dict[str, Any]) -> None:
        self._rewards = rewards
        self._namespace = namespace
        self._config = config

    async def call(
        self, native: Any = None, fields: dict[str, Any] | None = None, *, together: list[list[Any]] | None = None
    ) -> dict[str, Any]:
        """Return the rewards of one row or of many rows.

        Raises:
          Failure: a row has no value for a parameter.
        """
        rows = [[native, fields]] if together is None else together
        found: list[dict[str, Any]] = []
        logged: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        try:
            for one in self._rewards:
                values = await one.values(rows, self._namespace, self._config, logged=logged, extra=extra)
                found.append({"name": one.name, "weight": one.weight, "values": values, "nan": one.nan})
        except Refused as refused:
            return {"refused": str(refused)}
        made = {"rewards": found, "logged": logged, "extra": extra}
        if wrapped := {one.name: one.wrapped for one in self._rewards if one.wrapped}:
            made["wrapped"] = wrapped
        if together is None:
            return made
        return {**made, "rows": [given["row"] for _, given in together], "grouped": await self._grouped(rows, found)}

    async def _grouped(self, rows: list[list[Any]], found: list[dict[str, Any]]) -> dict[str, Any] | None:
        """Also score the first rows one by one; return a description of the first row whose reward then differs.

        Return None if no reward differs.
        """
        for one, known in zip(self._rewards, found, strict=True):
            if one.style not in BATCHED or not 1 < len(rows) == len(known["values"]):
                continue
            for row, value in list(zip(rows, known["values"], strict=True))[:_COMPARED]:
                alone = value
                with suppress(Exception):  # user code may raise anything; a row that fails alone is not compared
                    [alone] = await one.values([row], self._namespace, self._config, logged={}, extra={})
                if alone != value:
                    return {"name": one.name, "row": row[1]["row"], "alone": alone, "among": value}
        return None
