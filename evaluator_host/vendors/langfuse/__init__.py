"""Langfuse's code evaluators (dialect `langfuse`)."""
