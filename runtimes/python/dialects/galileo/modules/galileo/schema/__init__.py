"""Schemas of the package."""
