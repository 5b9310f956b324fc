"""Makes the result class, `Score`, importable from the package's older name."""

from braintrust.score import Score as Score

__pin__ = "braintrust==0.48.1"
