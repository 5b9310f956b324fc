"""Calls reward functions as their platforms do. Rows may have the platform's form or this host's form."""

from __future__ import annotations

import os
import sys

from evaluator_runner import binding, entry
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.coerce import type_name
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

VERL = {"solution_str", "solution_strs", "reward_input", "reward_inputs"}
ROLLOUT = {"prompt", "completion", "answer", "state", "task", "info", "parser"}
GROUP = {"prompts", "completions", "answers", "states", "tasks", "infos"}
_TRUTHS = (
    "answer",
    "answers",
    "solution",
    "solutions",
    "ground_truth",
    "ground_truths",
    "target",
    "label",
    "reference",
    "reference_answer",
    "expected",
    "expected_output",
    "expected_answer",
    "gold",
    "gold_answer",
    "gt",
)
_CONVERSATION = {"content", "role"}
_NO_COLUMNS = {"trainer_state", "log_extra", "log_metric"}
_LIGHT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "modules")
_VERL, _VERL_BATCH, _TRL, _VERIFIERS = "verl", "verl batch", "trl", "verifiers"
_EASY, _EASY_BATCH, _EASY_PAIR, _EASY_PAIRS = "EasyR1", "EasyR1 batch", "EasyR1 pair", "EasyR1 pairs"
BATCHED = {_VERL_BATCH, _TRL, _EASY_BATCH, _EASY_PAIRS}
_BATCH_OF_VERL = {
    "data_sources": "data_source",
    "solution_strs": "solution_str",
    "ground_truths": "ground_truth",
    "extra_infos": "extra_info",
}
_BATCH_OF_PAIRS = {"predicts": "predict", "ground_truths": "ground_truth"}


class Refused(Exception):
    """A reward function returned a value that its platform would not accept. The message says why."""


def is_verl(name: str, names: list[str]) -> bool:
    """Return whether a function with these parameters is for verl or EasyR1, which call only one function."""
    return bool(VERL & set(names)) or style_of(name, names) in {_EASY_PAIR, _EASY_PAIRS}


def style_of(name: str, names: list[str]) -> str | None:
    """Return how to call a reward function with these parameters, or None if they are not a reward function's."""
    found = set(names)
    if name == "compute_score" and found >= {"predicts", "ground_truths"}:
        return _EASY_PAIRS
    if name == "compute_score" and found >= {"predict", "ground_truth"}:
        return _EASY_PAIR
    if found & {"reward_input", "reward_inputs"}:
        return _EASY if "reward_input" in found else _EASY_BATCH
    if "solution_strs" in found:
        return _VERL_BATCH
    if "solution_str" in found:
        return _VERL
    if "completions" in found:
        return _TRL
    return _VERIFIERS if "completion" in found else None


class Reward:
    """One reward function.

    Attributes:
      names: Names of the function's parameters.
      style: How the platform calls the function, see `style_of`.
      weight: Factor by which each reward of the function is multiplied before the rewards are added up.
      nan: How many rewards of the last call were NaN.
      wrapped: Parameters that are annotated as lists of plain values, but got lists of lists in the last call.
      unread: Parameters that the function never reads, so that they need no values.
    """

    def __init__(
        self,
        name: str,
        call: Callable[..., Any],
        unread: Iterable[str] = (),
        weight: float = 1,
        objects: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.call = call
        self.weight = weight
        self.nan = 0
        self.wrapped: list[str] = []
        self.unread = set(unread)
        self._objects = objects or {}
        self._entry = entry.Entry(name, call)
        known = self._entry.signature
        self.names = [] if known is None else [*known.positional, *known.keyword_only]
        self.style = style_of(name, self.names)
        if self.style is None and set(self.names) & GROUP:
            self.style = _TRL
        annotations = getattr(call, "__annotations__", None) or {} if self.style in BATCHED else {}
        self._flat = [key for key, one in annotations.items() if key in self.names and _is_flat(one)]

    @property
    def is_complete(self) -> bool:
        """Whether the platform has a value for each parameter without a default; TRL may have columns with any name."""
        known = self._entry.signature
        return self.style != _VERIFIERS or known is None or ROLLOUT.union(self._objects).issuperset(known.needed())

    async def values(
        self, rows: list[list[Any]], namespace: dict[str, Any], config: dict[str, Any], *, logged: Any, extra: Any
    ) -> list[Any]:
        """Call the function, and return each row's reward as a plain value.

        What a function logs, as TRL allows, is added to `logged` and `extra`.

        Raises:
          Refused: the platform does not accept the returned value.
          Failure: a row has no value for a parameter.
        """
        parts = [_Parts(native, fields, self, namespace) for native, fields in rows]
        if self.style == _VERL_BATCH:
            examples = [made for one in parts for made in one.batch(_BATCH_OF_VERL, one.verl)]
            named = {**_plural(examples, _BATCH_OF_VERL), **config}
            return _listed(self.name, await self._called(named), len(examples), _verl)
        if self.style == _EASY_BATCH:
            inputs = [made for one in parts for made in one.reward_inputs()]
            return _listed(self.name, await self._called({"reward_inputs": inputs, **config}), len(inputs), _easy)
        if self.style == _EASY_PAIRS:
            examples = [made for one in parts for made in one.batch(_BATCH_OF_PAIRS, one.pair)]
            more = parts[0].beside(_BATCH_OF_PAIRS) if len(parts) == 1 else {}
            named = {**more, **_plural(examples, _BATCH_OF_PAIRS), **config}
            return _listed(self.name, await self._called(named), len(examples), _easy)
        if self.style == _TRL:
            single = parts[0].group() if len(parts) == 1 else None
            named = single or _group([example for one in parts for example in one.examples()])
            named = {**named, "trainer_state": None, "log_extra": _keeper(extra), "log_metric": _keeper(logged)}
            count = len(named["completions"])
            listed = _listed(self.name, await self._called({**named, **self._objects}), count, _trl)
            self.nan = sum(one != one for one in listed)
            return [None if one != one else one for one in listed]
        values = []
        for one in parts:
            if self.style == _EASY:
                values.append(_easy(self.name, await self._called({"reward_input": one.easy(), **config})))
            elif self.style == _EASY_PAIR:
                values.append(_easy(self.name, await self._called({**one.pair(), **config})))
            elif self.style == _VERL:
                values.append(_verl(self.name, await self._called({**one.verl(), **config})))
            else:
                values.append(_float(self.name, await self._called({**one.rollout(self._objects), **self._objects})))
        return values

    async def _called(self, named: dict[str, Any]) -> Any:
        self.wrapped = [key for key in self._flat if _has_lists(named.get(key))]
        args, kwargs = binding.bind(self._entry, {**dict.fromkeys(self.unread), **named})
        value = binding.called(self.call, args, kwargs)
        return await value if hasattr(type(value), "__await__") else value

    def reads_messages(self, namespace: dict[str, Any]) -> bool:
        """Return whether the function, or a function of the code that it uses, contains the key `content` or `role`."""
        codes = [getattr(self.call, "__code__", None)]
        seen = set()
        while codes:
            code = codes.pop()
            if code is None or code in seen:
                continue
            seen.add(code)
            if _CONVERSATION & {one for one in code.co_consts if isinstance(one, str)}:
                return True
            codes.extend(one for one in code.co_consts if hasattr(one, "co_names"))
            codes.extend(getattr(namespace.get(name), "__code__", None) for name in code.co_names)
        return False

    def takes_text(self, parameter: str) -> bool:
        """Return whether a parameter is annotated as text."""
        annotation = (getattr(self.call, "__annotations__", None) or {}).get(parameter)
        return annotation is str or annotation == "str"


class _Parts:
    """One row in a platform's form: the row has this form already, or is converted from the host's fields."""

    def __init__(self, native: Any, fields: Any, reward: Reward, namespace: dict[str, Any]) -> None:
        self._native = native
        self._inputs = dict(fields["inputs"])
        self._outputs = self._inputs.get("completion") if fields["outputs"] is None else fields["outputs"]
        self._truth = fields["truth"]
        self._truth_key = fields["truth_key"]
        self._reward = reward
        self._namespace = namespace

    def verl(self) -> dict[str, Any]:
        """Return the arguments that verl passes."""
        if self._native is not None:
            return {"extra_info": {}, **self._native}
        model = self._inputs.pop("reward_model", None)
        truth = model.get("ground_truth") if isinstance(model, dict) else self._inputs.pop("ground_truth", None)
        extra = self._inputs.pop("extra_info", None)
        source = self._inputs.pop("data_source", "")
        info = {**self._inputs, **(extra if isinstance(extra, dict) else {})}
        return {
            "data_source": source,
            "solution_str": _text(self._outputs),
            "ground_truth": truth if self._truth_key is None else self._truth,
            "extra_info": {"num_turns": None, "rollout_reward_scores": {}, **info},
        }

    def easy(self) -> dict[str, Any]:
        """Return the object that EasyR1 passes as the only argument."""
        if self._native is not None:
            return dict(self._native)
        made = self.verl()
        text = made["solution_str"]
        return {"response": text, "response_length": len(text.split()), "ground_truth": made["ground_truth"]}

    def pair(self) -> dict[str, Any]:
        """Return the arguments that older releases of EasyR1 pass by name: the text and the ground truth."""
        if self._native is not None:
            return dict(self._native)
        made = self.easy()
        return {"predict": made["response"], "ground_truth": made["ground_truth"]}

    def batch(self, names: dict[str, str], one: Callable[[], dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the examples of a row that has lists under these `names`. Any other row is one example: `one()`."""
        if self._native is None or names.keys().isdisjoint(self._native):
            return [one()]
        lists = {key: self._native[key] for key in names if key in self._native}
        return _examples(lists, names, next(key for key in ("solution_strs", "predicts", *lists) if key in lists))

    def beside(self, names: dict[str, str]) -> dict[str, Any]:
        """Return the fields of a row in the platform's form, except those with these names, singular or plural."""
        return {key: one for key, one in (self._native or {}).items() if key not in {*names, *names.values()}}

    def reward_inputs(self) -> list[dict[str, Any]]:
        """Return the objects that EasyR1 passes for a batch."""
        given = (self._native or {}).get("reward_inputs")
        return [dict(one) for one in given] if isinstance(given, list) else [self.easy()]

    def group(self) -> dict[str, Any] | None:
        """Return a platform's own row if the row is a group with lists of prompts, completions and columns; else None.

        Raises:
          Failure: a value is not a list, or the lists have different lengths.
        """
        if self._native is None or not ({"prompts", "completions"} & self._native.keys()):
            return None
        group = dict(self._native)
        _examples({key: one for key, one in group.items() if key not in _NO_COLUMNS}, {}, "completions")
        return group

    def examples(self) -> list[dict[str, Any]]:
        """Return the examples of the row: all examples of a group, or a single example."""
        group = self.group()
        if group is None:
            return [self._example()]
        lists = {key: one for key, one in group.items() if key not in _NO_COLUMNS}
        found = _examples(lists, {"prompts": "prompt", "completions": "completion"}, "completions")
        return [{"prompt": "", **one} for one in found]

    def _example(self) -> dict[str, Any]:
        """Return the row's prompt, completion and columns.

        Raises:
          Failure: the platform's own row has no completion.
        """
        if self._native is not None:
            completion = self._native.get("completion")
            if not isinstance(completion, str) and not _is_chat(completion):
                raise _no_completion(self._native)
            return {"prompt": "", **self._native}
        prompt, completion = self._turns(chat=self._reward.reads_messages(self._namespace))
        columns = {key: one for key, one in self._inputs.items() if key not in {"prompt", "messages"}}
        return {**self._truths(), **columns, "prompt": prompt, "completion": completion}

    def rollout(self, objects: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that verifiers passes. The rubric's own `objects` are not among them."""
        made: dict[str, Any] = {"answer": "", "info": {}, "task": "default"}
        if self._native is not None:
            made.update(self._native)
        else:
            prompt, completion = self._turns(chat=not self._reward.takes_text("completion"))
            made.update({"answer": "" if self._truth is None else self._truth, **self._inputs})
            made.update({"prompt": prompt, "completion": completion})
        basic = {key: made.get(key) for key in ("prompt", "completion", "answer", "info", "task")}
        rest = {"trajectory": [], "responses": [], "turn": 1, "timing": {}, "metrics": {}, "is_completed": True}
        turns = {} if self._native is not None else {"prompt": prompt, "completion": completion}
        made["state"] = binding.AttributeDict({**rest, **basic, **(made.get("state") or {}), **turns})
        if "parser" in self._reward.names and "parser" not in {**made, **objects}:
            made["parser"] = self._namespace.get("parser") or _parser()
        return made

    def _turns(self, *, chat: bool) -> tuple[Any, Any]:
        """Return the prompt and the completion: as messages if `chat` or if the row has messages, else as strings."""
        messages, completion = self._inputs.get("messages"), self._outputs
        prompt = self._inputs.get("prompt")
        if prompt is None and _is_chat(messages):
            prompt, said = split(messages)
            completion = said if said and not _is_chat(completion) else completion
        if prompt is None:
            prompt = _question(self._inputs)
        if not (chat or _is_chat(prompt) or _is_chat(completion)):
            return _text(prompt), _text(completion)
        said = completion if _is_chat(completion) else [_message("assistant", completion)]
        return prompt if _is_chat(prompt) else [_message("user", prompt)], said

    def _truths(self) -> dict[str, Any]:
        if self._truth_key is None:
            return {}
        wanted = [name for name in _TRUTHS if name in self._reward.names and name not in self._inputs]
        return {**dict.fromkeys(wanted, self._truth), self._truth_key: self._truth}


def split(messages: list[Any]) -> tuple[list[Any], list[Any]]:
    """Split messages after the user's last message, and return both parts."""
    last = max((at for at, one in enumerate(messages) if one.get("role") == "user"), default=-1) + 1
    return messages[:last], messages[last:]


def _is_chat(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "role" in one for one in value)


def _message(role: str, value: Any) -> Any:
    return binding.AttributeDict({"role": role, "content": _text(value)})


def _question(inputs: dict[str, Any]) -> Any:
    rest = {key: one for key, one in inputs.items() if key not in {"info", "task"}}
    usual = next((rest[name] for name in ("question", "input", "query", "user_input") if name in rest), None)
    return usual if usual is not None else next(iter(rest.values())) if len(rest) == 1 else rest or ""


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value, ensure_ascii=False)


def _parser() -> Any:
    """Return the parser that verifiers passes by default."""
    name = "verifiers.parsers.parser"
    if name not in sys.modules:
        sys.path.insert(0, _LIGHT)
        try:
            __import__(name)
        finally:
            sys.path.remove(_LIGHT)
    return sys.modules[name].Parser()


def _plural(rows: list[dict[str, Any]], names: dict[str, str]) -> dict[str, Any]:
    """Return the arguments for a batch: lists under plural names. Leave out arguments that no row has."""
    return {many: [row.get(one) for row in rows] for many, one in names.items() if any(one in row for row in rows)}


def _examples(lists: dict[str, Any], singular: dict[str, str], first: str) -> list[dict[str, Any]]:
    """Return the examples of a batch, in which each list has one element for each example.

    `singular` maps the name of a list to the name that the list's elements get in the examples.

    Raises:
      Failure: a value is not a list, or its length differs from that of the list `first`.
    """
    if first not in lists:
        raise _no_completion(lists)
    count = len(lists[first]) if isinstance(lists[first], list) else None
    for key, one in lists.items():
        if not isinstance(one, list):
            raise Failure(
                "binding_error",
                f"`{key}` of `variables` is {type_name(type(one))}, not a list with an element for each completion",
                hint="give a list for each variable, or a single example: `prompt`, `completion` and other columns",
            )
        if count is not None and len(one) != count:
            raise Failure(
                "binding_error",
                f"`{key}` of `variables` has {len(one)} elements, but `{first}` has {count}",
                hint="give each list an element for each completion",
            )
    return [{singular.get(key, key): one[at] for key, one in lists.items()} for at in range(count or 0)]


def _no_completion(given: dict[str, Any]) -> Failure:
    names = ", ".join(f"`{key}`" for key in list(given)[:20]) or "nothing"
    return Failure(
        "missing_input",
        f"`variables` have no completion (a string or messages); they have {names}",
        hint="give lists under `completions` and the columns, or one example under `completion`, or `inputs` and "
        "`outputs` instead of `variables`",
    )


def _group(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return lists of prompts, completions and columns, also under the names that verifiers uses for groups."""
    columns = {key: [row.get(key) for row in rows] for row in rows for key in row}
    prompts, completions = columns.pop("prompt"), columns.pop("completion")
    groups = {
        many: columns[one]
        for one, many in (("answer", "answers"), ("info", "infos"), ("task", "tasks"))
        if one in columns
    }
    return {**groups, **columns, "prompts": prompts, "completions": completions}


def _has_lists(values: Any) -> bool:
    return isinstance(values, list) and any(isinstance(one, list) for one in values)


def _is_flat(annotation: Any) -> bool:
    """Return whether an annotation stands for a list of plain values, such as `list[str]`."""
    text = annotation if isinstance(annotation, str) else repr(annotation)
    for part in ("typing.", "collections.abc.", "Optional[", " "):
        text = text.replace(part, "")
    kind, _, inner = text.removesuffix("|None").partition("[")
    return kind.lower() in {"list", "sequence", "iterable"} and inner.rstrip("]") in {"str", "int", "float", "bool"}


def _keeper(kept: dict[str, Any]) -> Callable[..., None]:
    def keep(name: str, value: Any) -> None:
        kept[str(name)] = value

    return keep


def _listed(name: str, value: Any, count: int, read: Callable[[str, Any], Any]) -> list[Any]:
    try:
        if isinstance(value, str | dict):
            raise TypeError
        values = list(value)
    except TypeError:
        raise Refused(
            f"`{name}` returned {type_name(type(value))}; it must return a list with a reward for each completion"
        ) from None
    if len(values) != count:
        raise Refused(f"`{name}` returned {len(values)} rewards, but {count} were expected, one for each completion")
    return [read(name, one) for one in values]


def _trl(name: str, value: Any) -> Any:
    """Convert a value to a TRL reward. None and NaN mean that the reward does not apply."""
    if isinstance(value, str):
        raise Refused(f"`{name}` returned a string as a reward")
    return None if value is None else _float(name, value)


def _verl(name: str, value: Any) -> Any:
    """Convert a number, or a dict with `score`, to a verl reward."""
    if isinstance(value, dict):
        return {**value, "score": _verl(name, value["score"])} if "score" in value else value
    if value is None or isinstance(value, str | list | tuple):
        raise Refused(f"`{name}` returned {type_name(type(value))}; verl accepts a number, or a dict with `score`")
    return _float(name, value)


def _easy(name: str, value: Any) -> Any:
    """Convert a dict with `overall` to an EasyR1 reward."""
    if not isinstance(value, dict) or "overall" not in value:
        raise Refused(f"`{name}` returned {type_name(type(value))}; EasyR1 accepts a dict with `overall`")
    return {**value, "score": _float(name, value["overall"])}


def _float(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        raise Refused(f"`{name}` returned {type_name(type(value))}, which is not a number") from None
