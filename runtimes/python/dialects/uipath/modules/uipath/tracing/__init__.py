"""Provides `traced`, which records calls of a function as spans."""

from ._traced import traced

__all__ = ["traced"]
