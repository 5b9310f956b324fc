"""Maxim's programmatic evaluators (dialect `maxim`)."""
