"""Light modules in place of `arize-phoenix-evals`, checked against 3.9.4: evaluators that are code."""

__pin__ = "arize-phoenix-evals==3.9.4"
