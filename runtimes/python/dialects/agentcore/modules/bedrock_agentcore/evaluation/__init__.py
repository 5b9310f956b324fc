"""Evaluation: the light modules have only code-based evaluators."""
