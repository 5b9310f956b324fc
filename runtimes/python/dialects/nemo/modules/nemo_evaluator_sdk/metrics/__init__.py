"""Owns the protocol of metrics, and the built-in ones."""
