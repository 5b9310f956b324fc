"""Owns `traced`: functions whose calls are spans."""

from ._traced import traced

__all__ = ["traced"]
