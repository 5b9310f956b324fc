"""The routes for evaluations and checks. Every process of a host that answers calls has these routes."""

import asyncio
from typing import Final

from fastapi import APIRouter, Request, Response

from evaluator_host.engine.service import Service, summarise
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.model_grants import ModelTerms
from evaluator_host.engine.system.memory import Reservation
from evaluator_host.platform.datasets.batch_outputs import require_outputs
from evaluator_host.platform.evaluators.bodies import BatchIn, CheckIn, EditorIn, EvaluateIn, EvaluatorIn, case_dicts
from evaluator_host.platform.evaluators.large_rows import RowsRoute
from evaluator_host.platform.evaluators.registry import EvaluatorRegistry, ResolvedEvaluator, check_evaluator
from evaluator_host.platform.http.auth.access import Access, AuditedCall, caller_of
from evaluator_host.platform.http.auth.keyring import KeyHolder
from evaluator_host.platform.http.json_routes import JsonRoute
from evaluator_host.platform.http.middleware import memory_of
from evaluator_host.platform.http.replies import ERRORS, respond
from evaluator_host.types.evaluation import Batch, CheckReport, EditorAnswer
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.outcome import EvaluationResult

_FEW_ROWS: Final = 500


def calls_api(service: Service, access: Access, evaluators: EvaluatorRegistry) -> APIRouter:
    """Return the routes `/v1/evaluate`, `/v1/evaluate/batch`, `/v1/check` and `/v1/editor`."""
    router, of_rows = APIRouter(route_class=JsonRoute), APIRouter(route_class=RowsRoute)

    @of_rows.post("/v1/evaluate", response_model=EvaluationResult, responses=ERRORS, tags=["evaluate"])
    async def evaluate(body: EvaluateIn, request: Request) -> Response:
        """Evaluate one row. A failure of the user's code is also a result (HTTP 200, `status: failed`)."""
        caller = caller_of(request.scope)
        found = await _found(evaluators, caller, body.evaluator)
        calls = Caller(caller.workspace, found.lock, ModelTerms(body.replay))
        work = service.evaluate(found.evaluator, body.given(), caller=calls)
        audited_call = AuditedCall(access, caller, "evaluate", evaluator=found.evaluator, rows=1)
        return await respond(request, work, audited_call, large=found.evaluator.limits.has_large_results)

    @of_rows.post("/v1/evaluate/batch", response_model=Batch, responses=ERRORS, tags=["evaluate"])
    async def evaluate_batch(body: BatchIn, request: Request) -> Response:
        """Evaluate rows. The results are in the order of the rows."""
        caller = caller_of(request.scope)
        found = await _found(evaluators, caller, body.evaluator)
        audited_call = AuditedCall(access, caller, "evaluate_batch", evaluator=found.evaluator, rows=len(body.rows))
        calls = Caller(caller.workspace, found.lock, ModelTerms(body.replay))
        work = _batch(service, body, found.evaluator, calls, memory_of(request.scope))
        return await respond(request, work, audited_call, large=True)

    router.routes.extend(of_rows.routes)

    @router.post("/v1/check", response_model=CheckReport, responses=ERRORS, tags=["evaluate"])
    async def check(body: CheckIn, request: Request) -> Response:
        """Load an evaluator in a sandbox, and run its cases."""
        caller = caller_of(request.scope)
        found = await _found(evaluators, caller, body.evaluator)
        cases = found.cases if body.cases is None else case_dicts(body.cases)
        work = check_evaluator(service, found.evaluator, cases, Caller(caller.workspace, found.lock))
        audited_call = AuditedCall(access, caller, "check", evaluator=found.evaluator, rows=len(cases))
        return await respond(request, work, audited_call)

    @router.post("/v1/editor", response_model=EditorAnswer, responses=ERRORS, tags=["evaluate"])
    async def editor(body: EditorIn, request: Request) -> Response:
        """Answer an editor's question about Python code: completions, documentation, parameters, problems."""
        caller, evaluator = caller_of(request.scope), body.evaluator.to_model()
        question = body.model_dump(exclude={"evaluator"})
        work = service.answer_question(evaluator, question, caller=Caller(caller.workspace))
        return await respond(request, work, AuditedCall(access, caller, "editor", evaluator=evaluator))

    return router


async def _found(evaluators: EvaluatorRegistry, caller: KeyHolder, given: EvaluatorIn | str) -> ResolvedEvaluator:
    """Return the evaluator in the request, or the stored evaluator that the request names."""
    if isinstance(given, str):
        return await evaluators.resolve(caller.workspace, given)
    return ResolvedEvaluator(given.to_model(), None)


async def _batch(service: Service, body: BatchIn, evaluator: Evaluator, caller: Caller, memory: Reservation) -> Batch:
    loop = asyncio.get_running_loop()
    started = loop.time()
    rows = body.given() if len(body.rows) <= _FEW_ROWS else await asyncio.to_thread(body.given)
    if not body.may_lack_outputs:
        await require_outputs(service, evaluator, rows, caller=caller)
    results = await service.evaluate_batch(evaluator, rows, isolation=body.isolation, caller=caller, memory=memory)
    seconds = loop.time() - started
    together = await service.evaluate_together(evaluator, rows, results, caller=caller)
    return Batch(tuple(results), summarise(results, seconds=seconds, together=together), together)
