"""Light modules that replace `langsmith` (as in release 0.15.0), with only the names that evaluators import.

Code can make a client, because files with evaluators often do. An experiment at the end of such a file does nothing,
and its results cannot be used.
"""

__pin__ = "langsmith==0.15.0"
__version__ = "0.15.0"


def _refuse(what):
    return ImportError(f"{what} needs the package: pin {__pin__}")


class NotRun:
    """Results of an experiment that did not run."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise _refuse("the result of an experiment, which does not run here,")


class Client:
    """A client that does nothing: its methods for experiments and data sets can be called, but have no effect."""

    def __init__(self, *args, **kwargs):
        pass

    def evaluate(self, *_args, **_kwargs):
        """Do nothing, because no experiment runs here."""
        return NotRun()

    aevaluate = create_dataset = create_example = create_examples = evaluate

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise _refuse(f"Client.{name}")


def traceable(*args, **kwargs):
    """Return the function unchanged; nothing is traced here."""
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda function: function


def evaluate(*args, **kwargs):
    """Do nothing, because no experiment runs here."""
    return NotRun()


aevaluate = evaluate
