"""Helpers with which evaluators read traces."""
