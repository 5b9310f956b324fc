"""The class of scorers' results, under the older name of the package."""

from braintrust.score import Score as Score

__pin__ = "braintrust==0.48.1"
