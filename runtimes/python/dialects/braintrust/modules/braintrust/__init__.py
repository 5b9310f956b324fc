"""Light modules that replace `braintrust` (as in release 0.48.1). Only scorers work, and nothing is traced."""

from braintrust.score import Score as Score

__pin__ = "braintrust==0.48.1"
__version__ = "0.48.1"


def Eval(*args, **kwargs):  # noqa: N802 - the name in the real package
    """Do nothing: no experiment runs here."""


EvalAsync = init = init_logger = init_dataset = login = auto_instrument = Eval


def traced(*args, **kwargs):
    """Return the function unchanged; nothing is traced here."""
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda function: function


def wrap_openai(client, *args, **kwargs):
    """Return the client unchanged."""
    return client


wrap_anthropic = wrap_openai
