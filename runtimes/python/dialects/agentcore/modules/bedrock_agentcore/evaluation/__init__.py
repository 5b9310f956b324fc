"""Evaluation: code-based evaluators only."""
