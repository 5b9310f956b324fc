"""Exceptions of the package."""


class MlflowException(Exception):
    """Base of the package's exceptions."""
