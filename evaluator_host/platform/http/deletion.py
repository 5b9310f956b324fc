"""Code that the routes for deleting objects share."""

from typing import Annotated, Final

from fastapi import Query

from evaluator_host.platform.http.error_responses import describe_error

ForceDelete = Annotated[bool, Query(description="Delete the object even if something uses it.")]
USED: Final = describe_error(409, "The object is in use; `detail` names what uses it.")
