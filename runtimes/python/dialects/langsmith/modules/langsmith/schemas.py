"""Types of evaluators' arguments. Their fields can be read as attributes and as keys."""


class _Record(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


class Run(_Record):
    """A run, with `inputs`, `outputs`, `error`, `start_time` and so on."""


class Example(_Record):
    """An example of a data set, with `inputs`, `outputs` and `metadata`."""
