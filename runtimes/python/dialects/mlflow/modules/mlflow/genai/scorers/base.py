"""The base class of scorers, and the decorator that turns a function into a scorer."""

from mlflow.exceptions import MlflowException

_FIELDS = ("inputs", "outputs", "expectations", "trace", "session")


def _taken(function):
    """Return the names of a function's parameters, or None if the function accepts keyword arguments with any name."""
    code = function.__code__
    if code.co_flags & 8:
        return None
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


class Scorer:
    """A scorer; subclasses define `__call__` with keyword-only parameters, and fields as annotated class attributes."""

    name: str = None
    description: str = None
    aggregations: list = None

    def __init__(self, **fields):
        known = {name for kind in type(self).__mro__ for name in getattr(kind, "__annotations__", ())}
        for name in known:
            if name not in fields and not hasattr(type(self), name):
                raise ValueError(f"1 validation error for {type(self).__name__}\n{name}\n  Field required")
        for name, value in fields.items():
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no field {name!r}")
            setattr(self, name, value)
        if self.name is None:
            raise ValueError(f"1 validation error for {type(self).__name__}\nname\n  Field required")

    def __call__(self, **_fields):
        """Return the value, or feedback."""
        raise NotImplementedError("Implementation of __call__ is required for Scorer class")

    def run(self, *, inputs=None, outputs=None, expectations=None, trace=None, session=None):
        """Call the scorer with the fields that it accepts.

        Raises:
          MlflowException: the scorer returned something other than a value, feedback or a list of feedback.
        """
        given = dict(zip(_FIELDS, (inputs, outputs, expectations, trace, session)))  # noqa: B905
        function = getattr(self, "_function", None) or type(self).__call__
        names = _taken(function)
        return self(**{name: value for name, value in given.items() if names is None or name in names})


class _FunctionScorer(Scorer):
    def __init__(self, function, name, description, aggregations):
        self._function = function
        self.__wrapped__ = function
        self.name = name or function.__name__
        self.description = description
        self.aggregations = aggregations

    def __call__(self, *args, **fields):
        return self._function(*args, **fields)


def scorer(func=None, *, name=None, description=None, aggregations=None, pass_if=None, timeout=None):
    """Turn a function into a scorer. The decorator can be used with or without arguments."""
    if func is None:
        return lambda function: _FunctionScorer(function, name, description, aggregations)
    if not callable(func):
        raise MlflowException("scorer decorates a function")
    return _FunctionScorer(func, name, description, aggregations)
