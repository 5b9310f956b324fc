"""Makes the application without a running host, to list and describe its routes."""

from functools import cache

from fastapi import FastAPI

from evaluator_host.engine.config.settings import Settings
from evaluator_host.server.app import describe_app


@cache
def described_app() -> FastAPI:
    """Return the application without a host. Each process makes its OpenAPI document only once, because that takes a
    second.
    """
    return describe_app(Settings())
