"""Calling LLMs: for online jobs, and for evaluators that ask judges."""
