"""Runs NeMo Evaluator metrics (dialect `nemo`): finds the metric, and converts rows to its input and its results back.

This works with the package that the evaluator has imported as `nemo_evaluator_sdk`: the runner's light modules, or the
real package.
"""

from __future__ import annotations

import sys

from evaluator_runner import classes, signature
from evaluator_runner.builtins_copy import BUILTINS as __builtins__  # type: ignore[no-redef]  # noqa: F401, N811
from evaluator_runner.dialects.nemo.model_requests import Asked, Conversation, Resolver, completed
from evaluator_runner.entry import Entry
from evaluator_runner.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTRACT = "nemo"
PREBOUND = True
SDK = "nemo_evaluator_sdk"
_MEMBERS = ("type", "output_spec", "compute_scores")
_NAN, _INFINITY = "NaN", float("inf")
_modules = sys.modules


def applies(namespace: dict[str, Any], name: str | None) -> bool:
    """Return whether the code defines a metric of the SDK (class or instance), and if `name` is set, that metric."""
    if SDK not in _modules:
        return False
    metrics = {**_classes(namespace), **_instances(namespace)}
    return bool(metrics) if name is None else name in metrics


def find(namespace: dict[str, Any], *, name: str | None, config: dict[str, Any]) -> Entry:
    """Return an `Entry` that calls the metric `name`; without `name`, the last metric class or else the last instance.

    Raises:
      Failure: there is no metric, or its class needs arguments that were not given.
    """
    if SDK not in _modules:
        raise Failure("entry_not_found", f"contract nemo is for code that imports {SDK}, and this code does not")
    kinds, instances = _classes(namespace), _instances(namespace)
    if name is not None:
        if name not in kinds and name not in instances:
            raise _not_found(f"`{name}` is not a metric", {**kinds, **instances})
        found = kinds.get(name, instances.get(name))
    elif kinds:
        name, found = _last(kinds, namespace)
    elif instances:
        name, found = list(instances.items())[-1]
    else:
        raise _not_found("the code defines no metric", {})
    metric = Metric(_made(found, name, instances, config) if isinstance(found, type) else found)
    entry = Entry(name, metric.score)
    entry.signature, entry.together = metric.signature, metric.together
    entry.reason = f"metric {metric.key} of {SDK}"
    return entry


def _classes(namespace: dict[str, Any]) -> dict[str, type]:
    return {name: value for name, value in namespace.items() if isinstance(value, type) and _is_own_metric(value)}


def _is_own_metric(kind: type) -> bool:
    """Return whether this class is a metric (not a protocol) that the code itself defines."""
    methods = all(callable(getattr(kind, name, None)) for name in _MEMBERS[1:])
    own = getattr(kind, "__module__", None) == "evaluator" and not kind.__dict__.get("_is_protocol")
    return own and methods


def _instances(namespace: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in namespace.items() if _is_metric(value)}


def _is_metric(value: Any) -> bool:
    kind = type(value)
    if issubclass(kind, type) or kind.__module__ in {"builtins", "typing"}:
        return False
    try:
        return hasattr(value, "type") and all(callable(getattr(value, name, None)) for name in _MEMBERS[1:])
    except Exception:  # noqa: BLE001 - an attribute of a user's object may raise anything
        return False


def _last(found: dict[str, type], namespace: dict[str, Any]) -> tuple[str, type]:
    lines = classes.lines(namespace)
    return max(found.items(), key=lambda item: lines.get(item[0], 0))


def _made(kind: type, name: str, instances: dict[str, Any], config: dict[str, Any]) -> Any:
    """Make an instance of the metric class; if arguments are missing, return an instance that the code has made."""
    if not config:
        made = [value for value in instances.values() if type(value) is kind]
        parameters = signature.read(kind)
        if made and (parameters is None or not parameters.takes(0) or _has_required_fields(kind)):
            return made[-1]
    try:
        return kind(**config)
    except (TypeError, ValueError) as error:  # pydantic's errors are ValueErrors
        given = ", ".join(config) or "no arguments"
        raise Failure(
            "binding_error",
            f"`{name}` cannot be created with {given}: {error}",
            hint="give the arguments of the metric in `settings.config`, or bind one in the code: "
            f"`metric = {name}(…)`",
        ) from None


def _has_required_fields(kind: type) -> bool:
    fields = getattr(kind, "model_fields", None) or {}
    return any(field.is_required() for field in fields.values())


def _not_found(what: str, metrics: dict[str, Any]) -> Failure:
    known = f"; it defines {', '.join(list(metrics)[:10])}" if metrics else ""
    return Failure(
        "entry_not_found",
        what + known,
        hint="a metric is a class, or an instance of one, with `type`, `output_spec()` and `compute_scores()`",
    )


class Metric:
    """A copy of the author's metric, so that all rows start from the same state.

    Attributes:
      key: Name of the metric in results.
    """

    def __init__(self, metric: Any) -> None:
        self._sdk = _modules[SDK]
        self._metric = _copy(metric)
        self.key = _key(self._metric)
        self._rubrics = _rubrics(self._metric)
        self._models = Conversation()
        asks = self._models.lead(self._metric)
        _make_ready(self._metric, self._sdk, Resolver(self._sdk) if asks else None)

    @property
    def signature(self) -> signature.Signature | None:
        """Return the parameters of the method that the author has written."""
        return signature.read(self._metric.compute_scores)

    @property
    def together(self) -> bool:
        """Return whether the metric also scores many rows in one call."""
        return callable(getattr(self._metric, "compute_corpus_scores", None))

    async def score(
        self, *row: Any, together: list[list[Any]] | None = None, answers: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Score one row, or with `together` many rows. `answers` has the models' answers so far.

        Raises:
          Failure: the result does not match the metric's declared outputs.
        """
        self._models.begin(answers or {})
        try:
            return await (self._score(*row) if together is None else self._score_together(together))
        except Asked:
            return {"asks": self._models.open}

    async def _score(self, *row: Any) -> dict[str, Any]:
        index: int = row[3]
        pending = self._metric.compute_scores(self._input(*row))
        if not hasattr(type(pending), "__await__"):
            problem = f"object {type(pending).__name__} can't be used in 'await' expression"
            raise self._invalid(index, problem, hint="write `async def compute_scores(self, metric_input):`")
        result = await pending
        try:
            declared = self._metric.output_spec()
            self._sdk.validate_metric_result(result, declared)
            return self._plain(result, {spec.name: spec for spec in declared})
        except Exception as error:  # noqa: BLE001 - pydantic's errors, or an attribute that a wrong type lacks
            raise self._invalid(index, str(error), hint=_advice(result)) from None

    async def _score_together(self, rows: list[list[Any]]) -> dict[str, Any]:
        result = await self._metric.compute_corpus_scores([self._input(*row) for row in rows])
        declared = getattr(self._metric, "corpus_output_spec", self._metric.output_spec)()
        specs = {spec.name: spec for spec in declared}
        outputs = [] if result is None else [output for output in result.outputs if output.name in specs]
        return self._plain(self._sdk.MetricResult(outputs=outputs), specs)

    def _invalid(self, index: int, problem: str, *, hint: str | None) -> Failure:
        where = f"metric {self.key!r} on row {index}"
        return Failure("invalid_result", f"Evaluation failed during metric scoring for {where}: {problem}", hint=hint)

    def _input(self, data: dict[str, Any], outputs: Any, trace: Any, index: int, response: Any = None) -> Any:
        """Make the metric's input. If the row has no column `output`, the outputs to score are added as that column.

        With a model's whole `response`, row and candidate are as in NeMo's online runs: no column is added, and the
        trajectory comes from the response.
        """
        if response is not None:
            whole = response["agent"] if set(response) == {"agent"} else completed(response)
            text, outputs, trace = outputs or None, whole, whole.get("trajectory")
        elif outputs is not None:
            text, data = outputs, {**data, "output": data.get("output", outputs)}
        else:
            text = data.get("output")
        text = text if isinstance(text, str) else None
        sdk = self._sdk
        return sdk.MetricInput(
            row=sdk.DatasetRow(row_index=index, data=data),
            candidate=sdk.CandidateOutput(
                output_text=text, response=outputs if isinstance(outputs, dict) else None, trajectory=trace
            ),
        )

    def _plain(self, result: Any, specs: dict[str, Any]) -> dict[str, Any]:
        """Convert a result for the host, which gets each value as it was returned and also as its declared type."""
        sdk = self._sdk
        numeric = (sdk.ContinuousScore, sdk.DiscreteScore, sdk.BooleanValue)
        outputs, scores, labels = [], {}, {}
        for output in result.outputs:
            schema = specs[output.name].value_schema
            outputs.append({"name": output.name, "value": _finite(output.value)})
            if issubclass(schema, numeric):
                scores[output.name] = _finite(specs[output.name].coerce_output(output).root)
            elif issubclass(schema, sdk.Label):
                labels[output.name] = specs[output.name].coerce_output(output).root
        diagnostics = [{"message": one.message, "details": one.details} for one in result.diagnostics]
        plain = {"type": self.key, "outputs": outputs, "scores": scores, "labels": labels, "diagnostics": diagnostics}
        return {**plain, "rubrics": self._rubrics} if self._rubrics else plain


def _rubrics(metric: Any) -> dict[str, list[str]]:
    """Return the labels that each of a judge's rubric scores can have, by the score's name."""
    scores = getattr(metric, "scores", None)
    levels = {score.name: score.rubric for score in scores if hasattr(score, "rubric")} if type(scores) is list else {}
    return {name: [level.label for level in rubric] for name, rubric in levels.items()}


def _finite(value: Any) -> Any:
    """Convert a value for JSON as NeMo does: NaN becomes the string "NaN", and infinity becomes null."""
    if type(value) is not float and not isinstance(value, float):
        return value
    if value != value:
        return _NAN
    return None if value in {_INFINITY, -_INFINITY} else value


def _copy(metric: Any) -> Any:
    if callable(getattr(metric, "model_copy", None)):
        return metric.model_copy(deep=True)
    import copy

    try:
        return copy.deepcopy(metric)
    except Exception as error:
        raise TypeError(
            f"Cannot copy metric {type(metric).__name__}; use a Pydantic model or ensure the metric "
            "supports copy.deepcopy() (for example, by implementing __deepcopy__)."
        ) from error


def _key(metric: Any) -> str:
    name = getattr(metric, "type", None)
    plain = getattr(name, "value", name)
    return str.__str__(plain) if isinstance(plain, str) else type(metric).__name__


def _make_ready(metric: Any, sdk: Any, resolver: Resolver | None) -> None:
    """Resolve a metric's models and secrets and call its method `preflight`, all before the first row."""
    steps: list[Any] = []
    if all(callable(getattr(metric, name, None)) for name in ("model_refs", "resolve_models")):
        steps.append(lambda: metric.resolve_models(resolver or sdk.LocalModelResolver()))
    if all(callable(getattr(metric, name, None)) for name in ("secrets", "resolve_secrets")):
        steps.append(lambda: metric.resolve_secrets(resolver or sdk.LocalSecretResolver()))
    if callable(getattr(metric, "preflight", None)):
        steps.append(metric.preflight)
    if callable(getattr(metric, "apply_evaluation_job_params", None)):
        metric.apply_evaluation_job_params(sdk.RunConfig())
    if steps:
        import asyncio

        async def take() -> None:
            for step in steps:
                await step()

        asyncio.run(take())


def _advice(result: Any) -> str | None:
    if not hasattr(result, "outputs"):
        return "return a MetricResult(outputs=[MetricOutput(name=…, value=…)])"
    return None
