"""The application without a host behind it: enough to list and describe its routes."""

from functools import cache

from fastapi import FastAPI

from evaluator_host.engine.config.settings import Settings
from evaluator_host.server.app import describe_app


@cache
def described_app() -> FastAPI:
    """Return that application; its document takes a second to make, once per process."""
    return describe_app(Settings())
