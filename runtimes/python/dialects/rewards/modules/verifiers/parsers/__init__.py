"""Parsers of completions."""
