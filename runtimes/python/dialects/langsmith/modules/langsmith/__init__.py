"""Light modules in place of the package `langsmith`, checked against 0.15.0: what modules with evaluators import.

A client can be made, as evaluators' modules do that beside their functions, but not used.
"""

__pin__ = "langsmith==0.15.0"
__version__ = "0.15.0"


def _refuse(what):
    return ImportError(f"{what} needs the package: pin {__pin__}")


class Client:
    """A client that can only be made."""

    def __init__(self, *args, **kwargs):
        pass

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
    """Raise ImportError: experiments need the package."""
    raise _refuse("langsmith.evaluate")


aevaluate = evaluate
