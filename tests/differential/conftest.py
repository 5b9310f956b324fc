"""The fixture `service` is the same as in the tests of dialects."""

from tests.dialects.conftest import service

__all__ = ["service"]
