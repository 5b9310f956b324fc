"""The decorator that turns a function into an evaluator."""

_VARIADIC = 0x0C
_WORDS_OF_A_LABEL = 2  # maximum number of spaces in a label


class Score:
    """One score: name, number, label, explanation."""

    def __init__(
        self,
        name=None,
        score=None,
        label=None,
        explanation=None,
        metadata=None,
        kind=None,
        direction="maximize",
        source=None,
    ):
        self.name = name
        self.score = score
        self.label = label
        self.explanation = explanation
        self.metadata = metadata or {}
        self.kind = kind or source
        self.direction = direction
        self.from_bool = False

    def to_dict(self):
        """Return the fields that are set."""
        return {name: one for name, one in vars(self).items() if one is not None and name != "from_bool"}


class FunctionEvaluator:
    """Passes a function the fields of a row that are named like its parameters, and makes a score from the result."""

    def __init__(self, fn, name, kind, direction):
        self._fn = fn
        self.name = name
        self.kind = kind
        self.direction = direction
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__

    def __call__(self, *args, **kwargs):
        """Call the function itself."""
        return self._fn(*args, **kwargs)

    def evaluate(self, eval_input, input_mapping=None):
        """Return a list of the row's scores."""
        return [self._score(self._fn(**self._arguments(eval_input, input_mapping or {})))]

    async def async_evaluate(self, eval_input, input_mapping=None):
        """Await the function, and return a list of the row's scores."""
        value = self._fn(**self._arguments(eval_input, input_mapping or {}))
        return [self._score(await value if hasattr(value, "__await__") else value)]

    def _arguments(self, row, mapping):
        code = self._fn.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        required = names[: code.co_argcount - len(self._fn.__defaults__ or ())]
        required += tuple(n for n in names[code.co_argcount :] if n not in (self._fn.__kwdefaults__ or {}))
        found = {}
        for name in names:
            at = mapping.get(name, name)
            if callable(at):
                found[name] = at(row)
            elif at in row:
                found[name] = row[at]
            elif name in required:
                raise ValueError(f"Path not found: {at}")
        return found

    def _score(self, value):
        if isinstance(value, Score):
            value.name, value.kind, value.direction = self.name, self.kind, self.direction
            return value
        score = Score(self.name, kind=self.kind, direction=self.direction)
        for one in value if isinstance(value, tuple) else (value,):
            self._read(one, score)
        return score

    def _read(self, value, score):
        if isinstance(value, bool):
            score.score, score.label, score.from_bool = float(value), str(value), True
        elif isinstance(value, int | float):
            score.score = value
        elif isinstance(value, str):
            name = "label" if value.count(" ") <= _WORDS_OF_A_LABEL else "explanation"
            setattr(score, name, value)
        elif isinstance(value, dict):
            for name in ("score", "label", "explanation"):
                if name in value:
                    setattr(score, name, value[name])
        else:
            raise ValueError(
                f"Unsupported return type '{type(value).__name__}' for evaluator '{self.name}'. Supported return types "
                "are: Score, numbers, booleans, strings, dictionaries, and tuples of numbers, booleans, and strings. "
                f"Got: {value}"
            )


def create_evaluator(name=None, source=None, direction="maximize", kind=None, **_settings):
    """Return the decorator, which turns a function into an evaluator with a method `evaluate(row)`."""

    def decorate(fn):
        return FunctionEvaluator(fn, name or fn.__name__, kind or source or "code", direction)

    return decorate
