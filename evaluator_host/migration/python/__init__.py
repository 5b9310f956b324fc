"""Migration of Python evaluators."""
