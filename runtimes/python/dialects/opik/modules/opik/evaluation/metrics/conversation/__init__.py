"""Metrics over whole conversations."""
