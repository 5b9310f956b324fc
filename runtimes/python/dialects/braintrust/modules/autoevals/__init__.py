"""A light module that replaces `autoevals` (compared with 0.4.1): only results; autoevals' own scorers need a pin."""

from braintrust.score import Score as Score

__pin__ = "autoevals==0.4.1"
__version__ = "0.4.1"
