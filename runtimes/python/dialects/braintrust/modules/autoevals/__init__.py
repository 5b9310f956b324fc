"""A light module in place of `autoevals`, checked against 0.4.1: results of scorers; its own scorers need the pin."""

from braintrust.score import Score as Score

__pin__ = "autoevals==0.4.1"
__version__ = "0.4.1"
