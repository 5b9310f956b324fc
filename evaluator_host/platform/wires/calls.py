"""Evaluates rows for other platforms (wires): reads bodies, limits time, audits, chooses workspace and packages."""

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request

from evaluator_host.engine.config.settings import WireOptions
from evaluator_host.engine.service.caller import Caller
from evaluator_host.platform.host import Host
from evaluator_host.platform.http.auth.access import Access, AuditedCall, caller_of, set_caller
from evaluator_host.platform.http.auth.keyring import KeyHolder
from evaluator_host.platform.http.json_routes import JsonRequest
from evaluator_host.platform.store.workspaces import Workspaces
from evaluator_host.platform.wires.wire import Wire, wire_request
from evaluator_host.types.errors import Busy, HostBusy, InvalidRequest, Refused
from evaluator_host.types.evaluation import CheckReport
from evaluator_host.types.evaluator import Evaluator, Language, Row
from evaluator_host.types.outcome import ErrorCode, EvaluationError, EvaluationResult

_ANY: Final = "*"
_PATIENCE_S: Final = 4.0  # seconds that a platform waits beyond the time limit in its request


@dataclass(frozen=True, slots=True)
class WireCalls:
    """The operations that one wire uses on this host: read a request, evaluate, check, audit."""

    wire: Wire
    options: WireOptions
    host: Host
    access: Access
    _known: dict[str, str] = field(default_factory=dict)

    async def workspace_id(self, name: str) -> str:
        """Return the id of a workspace that the operator named. Create the workspace if it does not exist."""
        if name not in self._known:
            self._known[name] = (await Workspaces(self.host.store.database).ensure_workspace(name)).id
        return self._known[name]

    async def read(self, request: Request) -> dict[str, Any]:
        """Return the JSON object in the body of a request.

        Raises:
          InvalidRequest: the body is not a JSON object.
        """
        asked = JsonRequest(request.scope, request.receive)
        body = await asked.body()
        try:
            value = await asked.decoded(body)
        except json.JSONDecodeError as error:
            raise InvalidRequest(f"the body is not JSON: {error.msg[:200]}") from error
        if not isinstance(value, dict):
            raise InvalidRequest("the body is not a JSON object")
        return value

    async def enter_tenant(self, request: Request, tenant: str) -> None:
        """Set the workspace of a request according to the platform's tenant, such as `org/project`.

        The operator's wire option `tenants` maps tenants to workspaces. A request with a workspace's own key stays in
        that workspace.

        Raises:
          Refused: `tenants` is set, and has no workspace for this tenant.
        """
        tenants = self.options.tenants
        if not tenants or not wire_request(request.scope).has_secret:
            return
        group = tenant.partition("/")[0]
        name = tenants.get(tenant) or tenants.get(f"{group}/{_ANY}") or tenants.get(_ANY)
        if name is None:
            raise Refused(f"the tenant {tenant[:200]!r} has no workspace; the operator can add it to `tenants`")
        set_caller(request.scope, replace(caller_of(request.scope), workspace=await self.workspace_id(name)))

    async def evaluate(
        self,
        request: Request,
        evaluator: Evaluator,
        row: Row,
        *,
        lock: str | None = None,
        timeout_s: float | None = None,
    ) -> EvaluationResult | EvaluationError:
        """Evaluate one row, and return its result before the platform stops waiting.

        If the code has not loaded by that time, return an error.

        Args:
          request: The platform's request.
          evaluator: Pasted code, which gets the packages and limits of the wire, or a stored evaluator.
          row: The row to score.
          lock: Lock of a stored evaluator's packages, as JSON, or None.
          timeout_s: Time limit in the request, in seconds; the wire's limit may be shorter.

        Raises:
          HostBusy: the row waited too long for a sandbox or its packages.
          ClientDisconnect: the caller hung up.
          HostError: the host cannot evaluate the row, see `Service.evaluate`.
        """
        if evaluator.name is None:
            evaluator = self._fitted(evaluator, timeout_s)
        else:
            own_s = self.host.settings.fitted(evaluator.limits).timeout_s
            limit_s = min(own_s, self.wire.limit_s(self.options))
            evaluator = replace(evaluator, limits=replace(evaluator.limits, timeout_s=limit_s))
        caller = caller_of(request.scope)
        calls = Caller(caller.workspace, lock, load_timeout_s=evaluator.limits.timeout_s)
        work = self.host.service.evaluate(evaluator, row, caller=calls)
        audited = AuditedCall(self.access, caller, f"wires.{self.wire.name}", evaluator=evaluator, rows=1)
        return await self._on_time(request, work, audited, timeout_s)

    async def check(self, request: Request, evaluator: Evaluator) -> CheckReport:
        """Load an evaluator with the packages and limits of the wire, without running a row, and return the report.

        Raises:
          HostError: the host cannot check the evaluator, see `Service.check`.
        """
        return await self.host.service.check(
            self._fitted(evaluator, None), caller=Caller(caller_of(request.scope).workspace)
        )

    def audited(self, request: Request, verb: str) -> AuditedCall:
        """Return a context manager that writes the audit entry of a call. Use it for calls that evaluate no row."""
        return AuditedCall(self.access, caller_of(request.scope), f"wires.{self.wire.name}.{verb}")

    def caller(self, request: Request) -> KeyHolder:
        """Return the workspace and the key of a request's caller."""
        return caller_of(request.scope)

    def _fitted(self, evaluator: Evaluator, timeout_s: float | None) -> Evaluator:
        """Return a pasted evaluator with the packages and limits that the wire sets."""
        language = Language.PYTHON if evaluator.language is Language.PYTHON else Language.JAVASCRIPT
        packages = evaluator.packages or tuple(self.options.packages.get(language.value, ()))
        limit_s = min(self.wire.limit_s(self.options), self.host.settings.max_timeout_s)
        limit_s = limit_s if timeout_s is None else min(limit_s, timeout_s)
        memory_mb = self.options.memory_mb or min(evaluator.limits.memory_mb, self.host.settings.max_memory_mb)
        limits = replace(evaluator.limits, timeout_s=limit_s, memory_mb=memory_mb)
        return replace(evaluator, packages=packages, limits=limits)

    async def _on_time(
        self,
        request: Request,
        work: Coroutine[Any, Any, EvaluationResult],
        audited: AuditedCall,
        timeout_s: float | None,
    ) -> EvaluationResult | EvaluationError:
        task, hung_up = asyncio.create_task(work), asyncio.create_task(_hung_up(request))
        wait_s = max(0.0, wire_request(request.scope).ends_at - asyncio.get_running_loop().time())
        wait_s = wait_s if timeout_s is None else min(wait_s, timeout_s + _PATIENCE_S)
        try:
            await asyncio.wait({task, hung_up}, return_when=asyncio.FIRST_COMPLETED, timeout=wait_s)
            if hung_up.done() and not task.done():
                raise ClientDisconnect
            found = task.result() if task.done() else self._late()
        except (asyncio.CancelledError, ClientDisconnect):
            audited.abandoned()
            raise
        except Exception as error:
            audited.failed(error)
            raise
        finally:
            for left in (task, hung_up):
                left.cancel()
            await asyncio.wait({task, hung_up})
        if isinstance(found, Busy):
            audited.failed(found)
            raise found
        if isinstance(found, EvaluationError):
            audited.failed(found)
        else:
            audited.answered(found)
        return found

    def _late(self) -> Busy | EvaluationError:
        """Return why the caller got no result in time: no sandbox was free, or the code did not load in time."""
        within = f"within the {self.wire.clock_s:g} s that the caller waits"
        if self.host.service.pool.waiting:
            return HostBusy(f"no sandbox was free {within}; try again", retry_after_s=1.0)
        message = f"the evaluator did not load and run {within}; its packages may still be installing"
        return EvaluationError(ErrorCode.TIMEOUT, message, hint="try again, or let the code do less while it loads")


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
