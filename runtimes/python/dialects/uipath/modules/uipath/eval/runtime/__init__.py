"""Converts spans to JSON and back."""
