"""Reads eval sets in both formats: the documented one, and the one that UiPath's command line reads.

A test case from before version 1.0 has `expectedOutput` in place of criteria. Such a test case is converted as UiPath's
command line does: every evaluator of the set gets criteria.

Every fault is reported with its JSON path. Notes report the parts of an eval set that this host ignores.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import Json
from evaluator_host.types.json_values import type_name
from evaluator_host.types.names import nearest_name

_ITEM_LISTS: Final = ("evaluations", "evaluationItems", "evaluation_items")
_INPUTS: Final = ("inputs", "agentInput", "agent_input")
_CRITERIAS: Final = ("evaluationCriterias", "evaluation_criterias")
_PROBLEMS_SHOWN: Final = 20
_GREATEST_WEIGHT: Final = 1e9
_SHOWN: Final = 40
_SIMULATED: Final = ("mockingStrategy", "mocking_strategy")
_UNSIMULATED: Final = (*_SIMULATED, "inputMockingStrategy", "simulateTools", "simulateInput")
_EXPECTED: Final = ("expectedOutput", "expected_output")


@dataclass(frozen=True, slots=True)
class EvalItem:
    """One test case of an eval set.

    Attributes:
      id: Id, unique in the eval set.
      name: Name to show; the id for a test case without name.
      inputs: Inputs of the agent.
      criteria: Criteria by evaluator id; None means the evaluator's default criteria. Evaluators without an entry are
        not run.
      expected_agent_behavior: Text that evaluators can read.
      simulation_instructions: Text that evaluators can read.
      mocks: What the agent's simulated functions return: `{"function", "arguments"?, "then": [{"type", "value"}]}`.
      unsimulated: Reason why the agent cannot run here, if the test case needs a model that simulates functions;
        otherwise empty.
    """

    id: str
    name: str
    inputs: dict[str, Json]
    criteria: dict[str, Json]
    expected_agent_behavior: str = ""
    simulation_instructions: str = ""
    mocks: tuple[Json, ...] = ()
    unsimulated: str = ""


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Test cases and the evaluators that score them.

    Attributes:
      evaluators: Ids of the evaluators, in the order of the set.
      weights: Weights of evaluators that have one, by evaluator id.
      notes: Messages about parts of the set that this host ignores.
    """

    id: str
    name: str
    items: tuple[EvalItem, ...]
    evaluators: tuple[str, ...]
    weights: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def is_eval_set(value: Json) -> bool:
    """Whether a decoded JSON value looks like an eval set."""
    return isinstance(value, dict) and any(isinstance(value.get(name), list) for name in _ITEM_LISTS)


def items_of(value: dict[str, Json]) -> list[Json]:
    """Return the test cases of an eval set in either format, unparsed, or `[]` if there is no list of test cases."""
    return next((value[name] for name in _ITEM_LISTS if isinstance(value.get(name), list)), [])


def parse_eval_set(value: Json, *, named: str = "the eval set") -> EvalSet:
    """Parse a decoded JSON file as an eval set.

    Raises:
      InvalidRequest: the value is not a valid eval set; each fault is reported with its JSON path.
    """
    reading = _Reading(named)
    found = reading.eval_set(value)
    if reading.problems or found is None:
        shown = reading.problems[:_PROBLEMS_SHOWN]
        more = len(reading.problems) - len(shown)
        raise InvalidRequest(
            f"{named} is not valid" + (f"; {more} more faults are not shown" if more else ""), problems=tuple(shown)
        )
    return found


class _Reading:
    """Reads a whole eval set, and collects all its faults instead of stopping at the first."""

    def __init__(self, named: str) -> None:
        self._named = named
        self.problems: list[Problem] = []
        self._notes: list[str] = []
        self._older = False  # whether the set may be from before version 1.0

    def eval_set(self, value: Json) -> EvalSet | None:
        if not isinstance(value, dict):
            self._fault("$", f"an eval set must be an object, not {type_name(value)}")
            return None
        lists = [name for name in _ITEM_LISTS if name in value]
        if len(lists) != 1:
            what = f"both {' and '.join(lists)}" if lists else "no test cases"
            self._fault("$", f"there are {what}; give them in evaluations, or in evaluationItems")
            return None
        version = value.get("version", "1.0")
        if version not in ("1.0", 1.0, 1):
            self._fault("$.version", f'version {str(version)[:_SHOWN]!r} is not supported; write "1.0"')
        refs, weights = self._refs(value)
        self._older = "version" not in value
        items = self._items(value[lists[0]], f"$.{lists[0]}", refs)
        evaluators = refs or tuple(dict.fromkeys(name for item in items for name in item.criteria))
        if refs:
            self._require_known(items, refs)
        set_id = self._text(value, "id", "$", default="eval-set")
        return EvalSet(
            id=set_id,
            name=self._text(value, "name", "$", default=set_id),
            items=items,
            evaluators=evaluators,
            weights=weights,
            notes=tuple(self._notes),
        )

    def _refs(self, value: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, float]]:
        """Return the ids of the evaluators and their weights; `evaluatorConfigs` takes precedence, as in UiPath."""
        for name in ("evaluatorConfigs", "evaluator_configs", "evaluatorRefs", "evaluator_refs"):
            if value.get(name):
                entries = self._list(value[name], f"$.{name}")
                found = [self._ref(entry, f"$.{name}[{at}]") for at, entry in enumerate(entries)]
                weights = {ref: weight for ref, weight in found if weight is not None}
                return tuple(dict.fromkeys(ref for ref, _ in found if ref)), weights
        return (), {}

    def _ref(self, entry: Json, path: str) -> tuple[str, float | None]:
        if isinstance(entry, str) and entry:
            return entry, None
        if not isinstance(entry, dict) or not isinstance(entry.get("ref"), str) or not entry["ref"]:
            self._fault(path, 'an evaluator must be an id, or {"ref": id, "weight": number}')
            return "", None
        weight = entry.get("weight", 1.0)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= _GREATEST_WEIGHT:
            self._fault(f"{path}.weight", f"a weight must be a number of 0 or more, not {str(weight)[:_SHOWN]}")
            return entry["ref"], None
        return entry["ref"], float(weight)

    def _items(self, value: Json, path: str, refs: tuple[str, ...]) -> tuple[EvalItem, ...]:
        items: list[EvalItem] = []
        seen: dict[str, int] = {}
        for at, entry in enumerate(self._list(value, path)):
            item = self._item(entry, f"{path}[{at}]", refs)
            if item is None:
                continue
            if item.id and item.id in seen:
                self._fault(f"{path}[{at}].id", f"{path}[{seen[item.id]}] already has the id {item.id!r}")
            seen.setdefault(item.id, at)
            items.append(item)
        if not items and not self.problems:
            self._fault(path, "the eval set has no test case; add one")
        return tuple(items)

    def _item(self, entry: Json, path: str, refs: tuple[str, ...]) -> EvalItem | None:
        if not isinstance(entry, dict):
            self._fault(path, f"a test case must be an object, not {type_name(entry)}")
            return None
        item_id = self._text(entry, "id", path, default="")
        if entry.get("id") in (None, ""):
            self._fault(f"{path}.id", "a test case needs an id")
        mocks = self._mocks(entry, path)
        asked = [name for name in _UNSIMULATED if entry.get(name) and not (mocks and name in _SIMULATED)]
        unsimulated = ""
        if asked:
            unsimulated = (
                f"{path}.{asked[0]} asks a model to simulate tools or users; this host simulates only with `mockito`"
            )
            self._notes.append(
                f"{unsimulated}: run the agent elsewhere, and give the recorded execution (--executions)"
            )
        return EvalItem(
            id=item_id,
            name=self._text(entry, "name", path, default=item_id),
            inputs=self._inputs(entry, path),
            criteria=self._criteria(entry, path, refs),
            expected_agent_behavior=self._text(entry, "expectedAgentBehavior", path, default=""),
            simulation_instructions=self._text(entry, "simulationInstructions", path, default=""),
            mocks=mocks,
            unsimulated=unsimulated,
        )

    def _mocks(self, entry: dict[str, Any], path: str) -> tuple[Json, ...]:
        """Read the behaviors of a mocking strategy of type mockito; strategies of other types have no behaviors."""
        name = next((name for name in _SIMULATED if isinstance(entry.get(name), dict)), "")
        strategy = entry[name] if name else {}
        if strategy.get("type") != "mockito":
            return ()
        where = f"{path}.{name}.config"
        behaviors = strategy.get("config", strategy.get("behaviors"))
        found = self._list(behaviors, where)
        for at, one in enumerate(found):
            if not isinstance(one, dict) or not isinstance(one.get("function"), str):
                self._fault(f"{where}[{at}]", "a behavior must name its function")
            elif not isinstance(one.get("then"), list) or not one["then"] or not all(map(_is_answer, one["then"])):
                self._fault(f"{where}[{at}].then", 'must be a list of {"type": "return" or "raise", "value": …}')
        return tuple(found)

    def _inputs(self, entry: dict[str, Any], path: str) -> dict[str, Json]:
        name = next((one for one in _INPUTS if one in entry), None)
        if name is None:
            self._fault(path, "the agent's input is missing; give inputs, or agentInput")
            return {}
        if not isinstance(entry[name], dict):
            self._fault(f"{path}.{name}", f"the agent's input must be an object, not {type_name(entry[name])}")
            return {}
        return dict(entry[name])

    def _criteria(self, entry: dict[str, Any], path: str, refs: tuple[str, ...]) -> dict[str, Json]:
        name = next((one for one in _CRITERIAS if one in entry), None)
        if name is not None:
            return self._by_evaluator(entry[name], f"{path}.{name}")
        if "evaluations" in entry:
            return self._listed(entry["evaluations"], f"{path}.evaluations")
        expected = next((one for one in _EXPECTED if one in entry), None)
        if expected is not None and self._older:
            return self._of_expected(entry, expected, path, refs)
        hint = None
        if expected is not None:
            hint = f"{expected} belongs to versions before 1.0; give evaluationCriterias, or leave out the version"
        self._fault(path, "the criteria are missing; give evaluationCriterias, or evaluations", hint)
        return {}

    def _of_expected(self, entry: dict[str, Any], name: str, path: str, refs: tuple[str, ...]) -> dict[str, Json]:
        """Return the criteria of a test case from before version 1.0: the same for every evaluator of the set."""
        if not isinstance(entry[name], dict):
            self._fault(f"{path}.{name}", f"the expected output must be an object, not {type_name(entry[name])}")
        if not refs:
            self._fault(
                path, f"{name} applies to the set's evaluators, but the set names none", "name them in evaluatorRefs"
            )
        behavior = self._text(entry, "expectedAgentBehavior", path, default="")
        return {ref: {"expectedOutput": entry[name], "expectedAgentBehavior": behavior} for ref in refs}

    def _by_evaluator(self, value: Json, path: str) -> dict[str, Json]:
        if not isinstance(value, dict):
            self._fault(path, f"criteria must be an object with ids of evaluators as keys, not {type_name(value)}")
            return {}
        for name, criteria in value.items():
            self._require_criteria(criteria, f"{path}.{name}")
        return dict(value)

    def _listed(self, value: Json, path: str) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for at, entry in enumerate(self._list(value, path)):
            here = f"{path}[{at}]"
            name = entry.get("evaluatorId", entry.get("evaluator_id")) if isinstance(entry, dict) else None
            if not isinstance(name, str) or not name:
                self._fault(here, 'must be {"evaluatorId": id, "evaluationCriteria": {…}}')
                continue
            if name in found:
                self._fault(f"{here}.evaluatorId", f"this test case already has criteria for {name!r}")
            found[name] = entry.get("evaluationCriteria", entry.get("evaluation_criteria"))
            self._require_criteria(found[name], f"{here}.evaluationCriteria")
        return found

    def _require_criteria(self, criteria: Json, path: str) -> None:
        if criteria is not None and not isinstance(criteria, dict):
            self._fault(
                path, f"criteria must be an object, or null for the evaluator's default, not {type_name(criteria)}"
            )

    def _require_known(self, items: tuple[EvalItem, ...], refs: tuple[str, ...]) -> None:
        """Add a note about each criterion that no evaluator reads; UiPath ignores such criteria silently."""
        for name in dict.fromkeys(name for item in items for name in item.criteria):
            if name not in refs:
                meant = nearest_name(name, list(refs))
                hint = f"; did you mean {meant}?" if meant else ""
                self._notes.append(f"criteria for {name} are not used: the set has no evaluator with this id{hint}")
        for ref in refs:
            if not any(ref in item.criteria for item in items):
                self._notes.append(f"the evaluator {ref} scores nothing: no test case has criteria for it")

    def _text(self, entry: dict[str, Any], name: str, path: str, *, default: str) -> str:
        value = entry.get(name, entry.get(_snake(name)))
        if value is None:
            return default
        if not isinstance(value, str):
            self._fault(f"{path}.{name}", f"must be a string, not {type_name(value)}")
            return default
        return value

    def _list(self, value: Json, path: str) -> list[Any]:
        if isinstance(value, list):
            return value
        self._fault(path, f"must be a list, not {type_name(value)}")
        return []

    def _fault(self, path: str, message: str, hint: str | None = None) -> None:
        self.problems.append(Problem(path, message, hint))


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _is_answer(value: Json) -> bool:
    return isinstance(value, dict) and value.get("type") in ("return", "raise") and "value" in value
