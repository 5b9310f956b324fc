"""Defines the protocol of metrics, and the built-in metrics."""
