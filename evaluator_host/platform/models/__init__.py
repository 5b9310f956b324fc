"""Calls LLMs for online jobs, and for evaluators that use a judge."""
