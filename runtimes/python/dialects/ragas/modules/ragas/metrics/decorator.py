"""Metrics that are made from functions."""

from ragas.metrics.result import MetricResult

_CHECKED = {"str": str, "list": list, "dict": dict, "bool": bool}
_NUMBERS = {"int": int, "float": float}


class DecoratedMetric:
    """A metric made from a function; `score` accepts the function's parameters by name."""

    def __init__(self, function, name, allowed_values, refusal):
        self.name = name or function.__name__
        self.allowed_values = allowed_values
        self.__wrapped__ = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._refusal = refusal

    def __call__(self, *args, **kwargs):
        """Call the function itself."""
        return self.__wrapped__(*args, **kwargs)

    def score(self, **given):
        """Return a MetricResult; for an async function, return a coroutine that returns a MetricResult.

        Raises:
          TypeError: an argument is missing, or does not have the annotated type.
        """
        arguments = _arguments(self, given)
        try:
            value = self.__wrapped__(**arguments)
        except Exception as error:  # noqa: BLE001 - as in the package
            return self._failed(error)
        return self._awaited(value) if hasattr(value, "__await__") else self._result(value)

    async def ascore(self, **given):
        """Return a MetricResult."""
        found = self.score(**given)
        return await found if hasattr(found, "__await__") else found

    async def _awaited(self, value):
        try:
            return self._result(await value)
        except Exception as error:  # noqa: BLE001 - as in the package
            return self._failed(error)

    def _failed(self, error):
        return MetricResult(value=None, reason=f"Error executing metric {self.name}: {error}")

    def _result(self, value):
        result = value if isinstance(value, MetricResult) else MetricResult(value=value)
        refused = self._refusal(result.value, self.allowed_values)
        if refused is not None:
            return MetricResult(value=None, reason=f"Metric {self.name} returned {result.value!r} but {refused}")
        return result


def _arguments(metric, given):
    function = metric.__wrapped__
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = dict(zip(reversed(code.co_varnames[: code.co_argcount]), reversed(function.__defaults__ or ())))  # noqa: B905
    defaults.update(function.__kwdefaults__ or {})
    notes = function.__annotations__
    found = {}
    for name in names:
        note = getattr(notes.get(name), "__name__", str(notes.get(name, "")))
        optional = "Optional" in str(notes.get(name)) or "None" in str(notes.get(name))
        if name in given:
            found[name] = _checked(metric, name, given[name], note)
        elif name in defaults:
            found[name] = defaults[name]
        elif optional:
            found[name] = None
        else:
            raise TypeError(f"Validation errors for {metric.name}: missing required argument '{name}'")
    return found


def _checked(metric, name, value, note):
    if note in _CHECKED and not isinstance(value, _CHECKED[note]):
        raise TypeError(f"Validation errors for {metric.name}: '{name}' should be a valid {note}, not {value!r}")
    if note in _NUMBERS and not isinstance(value, (int, float)):
        try:
            return _NUMBERS[note](value)
        except (TypeError, ValueError):
            raise TypeError(f"Validation errors for {metric.name}: '{name}' should be a valid {note}") from None
    return value


def _not_discrete(value, allowed):
    return None if value in allowed else f"expected one of {allowed}"


def _not_numeric(value, allowed):
    if isinstance(allowed, range):
        return None if value in allowed else f"expected value in {allowed}"
    low, high = allowed
    if not isinstance(value, (int, float)):
        return f"expected numeric value, got {type(value).__name__}"
    return None if low <= value <= high else f"expected value in range {allowed}"


def _not_ranking(value, allowed):
    if not isinstance(value, list):
        return "expected a list"
    count = allowed if isinstance(allowed, int) else len(allowed)
    return None if len(value) == count else f"expected {count} items"


def discrete_metric(*, name=None, allowed_values=None, **_other):
    """Return a decorator for metrics whose value is one of `allowed_values`, by default pass and fail."""
    allowed = allowed_values if allowed_values is not None else ["pass", "fail"]
    return lambda function: DecoratedMetric(function, name, allowed, _not_discrete)


def numeric_metric(*, name=None, allowed_values=None, **_other):
    """Return a decorator for metrics whose value is a number in the range `allowed_values`, by default 0 to 1."""
    allowed = allowed_values if allowed_values is not None else (0.0, 1.0)
    return lambda function: DecoratedMetric(function, name, allowed, _not_numeric)


def ranking_metric(*, name=None, allowed_values=None, **_other):
    """Return a decorator for metrics whose value is a list of `allowed_values` items, by default 2."""
    allowed = allowed_values if allowed_values is not None else 2
    return lambda function: DecoratedMetric(function, name, allowed, _not_ranking)
