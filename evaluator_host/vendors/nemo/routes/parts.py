"""Shared parts of the routes for NeMo's client: pages, response descriptions, the caller's workspace."""

from typing import Annotated, Any, Final, TypeAlias

from fastapi import Depends, Path, Query, Request
from pydantic import ConfigDict, Field

from evaluator_host.platform.http.auth.access import caller_of
from evaluator_host.platform.http.bodies import SmallBody
from evaluator_host.platform.http.error_responses import describe_error
from evaluator_host.vendors.nemo.entities import Order
from evaluator_host.vendors.nemo.filters import Fields, Filter, read_filter

NAME: Final = r"^[A-Za-z0-9_.\-]{1,255}$"

Described: TypeAlias = dict[str, Any]
"""An object whose fields are in NVIDIA's own OpenAPI description."""

Namespace = Annotated[
    str, Path(pattern=NAME, description="NeMo's workspace: a namespace in the workspace of the API key.")
]
Name = Annotated[str, Path(pattern=NAME)]
PageNumber = Annotated[int, Query(alias="page", ge=1, le=1_000_000)]
PageSize = Annotated[int, Query(ge=1, le=1000)]
Sort = Annotated[Order, Query(description="Put `-` in front to reverse the order.")]

REFUSED: Final = describe_error(422, "The request is not valid; every fault is named.")
MISSING: Final = describe_error(404, "There is no such object in that workspace.")
TAKEN: Final = {**MISSING, **describe_error(409, "There is already an object of that name.")}
IN_USE: Final = {**MISSING, **describe_error(409, "The object is in use, or has ended.")}


class BuiltIn(SmallBody):
    """A built-in metric's configuration."""

    model_config = ConfigDict(
        extra="allow", json_schema_extra={"examples": [{"type": "exact-match", "reference": "{{item.expected}}"}]}
    )

    type: str = Field(min_length=1, max_length=100)


def workspace_of(request: Request) -> str:
    """Return the workspace of the caller's key, which holds all of the caller's namespaces."""
    return caller_of(request.scope).workspace


def filter_by(known: Fields) -> Any:
    """Return the FastAPI dependency that reads a list's filter, in every form that NeMo's client sends."""

    def read(request: Request) -> Filter | None:
        return read_filter(request.query_params.multi_items(), known)

    return Depends(read)
