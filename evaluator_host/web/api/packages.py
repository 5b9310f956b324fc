"""Route of packages: the versions that can be pinned."""

from fastapi import APIRouter, Response

from evaluator_host.model.evaluator import Language
from evaluator_host.packages.versions import PackageVersions
from evaluator_host.service import Service
from evaluator_host.web.http.error_responses import describe_error
from evaluator_host.web.http.responses import json_response

_MISSING = describe_error(404, "The index has no such package for this host.")
_SILENT = describe_error(503, "The package index does not answer.")
_REFUSED = describe_error(422, "This is not a valid package name.")


def packages_api(service: Service) -> APIRouter:
    """Return the routes of the package indexes."""
    router = APIRouter(prefix="/v1/packages", tags=["environments"])

    @router.get(
        "/{language}/{name:path}/versions",
        response_model=PackageVersions,
        responses={**_MISSING, **_REFUSED, **_SILENT},
    )
    async def versions(language: Language, name: str) -> Response:
        """List the versions of a package that this host can install, newest first."""
        return json_response(await service.environments.queries.versions(name, language))

    return router
