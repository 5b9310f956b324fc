"""Runs metrics over rows."""
