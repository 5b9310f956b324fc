"""Exceptions that metrics raise."""


class OpikException(Exception):
    """Base of the package's exceptions."""


class MetricComputationError(OpikException):
    """The metric cannot be computed."""
