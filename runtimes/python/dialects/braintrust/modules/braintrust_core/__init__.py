"""Makes the class of scorers' results importable under the package's older name."""

from braintrust.score import Score as Score

__pin__ = "braintrust==0.48.1"
