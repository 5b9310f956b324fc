"""Light modules in place of the package `braintrust`, checked against 0.48.1: the result of scorers."""

from braintrust.score import Score as Score

__pin__ = "braintrust==0.48.1"
__version__ = "0.48.1"
