"""Inspect AI's scorers (dialect `inspect`)."""
