"""Owns what a metric is, and the built-in ones."""
