"""All routes for NeMo's client."""

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access
from evaluator_host.vendors.nemo.routes.entities import models_api, workspaces_api
from evaluator_host.vendors.nemo.routes.filesets import files_api, filesets_api
from evaluator_host.vendors.nemo.routes.jobs import JOBS, PLATFORM_JOBS, jobs_api
from evaluator_host.vendors.nemo.routes.legacy_routes import OLDER, older_api
from evaluator_host.vendors.nemo.routes.metrics import EVAL_RESULTS, eval_results_api, metrics_api
from evaluator_host.vendors.nemo.routes.secrets import secrets_api
from evaluator_host.vendors.nemo.verbs import nemo_verbs


def nemo_routes(host: Host, access: Access) -> list[BaseRoute]:
    """Return all routes for NeMo's client. OpenAPI omits routes that repeat others under another prefix."""
    nemo = nemo_verbs(host)
    described = [
        *workspaces_api(nemo.namespaces, access).routes,
        *models_api(nemo.models, access).routes,
        *secrets_api(nemo.secrets, access).routes,
        *files_api(nemo.filesets, access).routes,
        *filesets_api(nemo.filesets, access).routes,
        *metrics_api(nemo.metrics, access).routes,
        *jobs_api(nemo.jobs, nemo.results, access, prefix=JOBS).routes,
        *older_api(nemo, access, prefix=OLDER[0]),
        *eval_results_api(nemo.jobs, nemo.results, access, prefix=EVAL_RESULTS).routes,
    ]
    repeats = jobs_api(nemo.jobs, nemo.results, access, prefix=PLATFORM_JOBS).routes
    for prefix in OLDER[1:]:
        repeats += older_api(nemo, access, prefix=prefix)
    for route in repeats:
        if isinstance(route, APIRoute):
            route.include_in_schema = False
    return described + repeats
