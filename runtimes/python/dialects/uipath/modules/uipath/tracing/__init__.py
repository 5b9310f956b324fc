"""Provides `traced`, which records calls to a function as spans."""

from ._traced import traced

__all__ = ["traced"]
