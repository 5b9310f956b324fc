"""Langfuse's requests to the executor of its code evaluators."""
