"""The result of scorers, under the older name of its package."""

from braintrust.score import Score as Score

__pin__ = "braintrust==0.48.1"
