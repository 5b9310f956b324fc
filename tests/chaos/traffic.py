"""The callers in a run make calls, batches, jobs, traces, uploads and builds, watch events, and vanish; each judges its
answers.
"""

import asyncio
import contextlib
import itertools
import json
import random
import socket
import struct
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from tests.chaos.hosts import ChaosHost
from tests.chaos.oracle import NOT_READY, Oracle, code_of
from tests.chaos.plan import Kind
from tests.chaos.programs import COSTLY, PACKAGED, ROWS, STEADY, Program, row

_ANSWERED_S: Final = 180.0
_HEALTHY_S: Final = 30.0
_JOB_ENDS_S: Final = 300.0  # seconds; a job that gets no result for so long after the last fault is a finding
_AGAIN_S: Final = 0.3
_BATCH_ROWS: Final = 2 * ROWS
_JOB_ROWS: Final = (60, 200)
_NAMES: Final = 4
_QUESTIONS: Final = (10, 40)
_TRACES: Final = 4
_SCORED_S: Final = 90.0  # traces must be scored within this many seconds after the last fault
_ONLINE: Final = "def evaluate(inputs, outputs, trace):\n    return outputs == 'answer to ' + inputs['question']\n"
_LIVE: Final = """\
def evaluate(inputs, outputs, trace):
    (root,) = trace["spans"].values()
    return (1 + len(root["children"])) / 10
"""
_RESET: Final = struct.pack("ii", 1, 0)  # value of SO_LINGER with which a connection is reset instead of closed


@dataclass(slots=True)
class _Kept:
    """A stored object with all its possible contents; there are several if the answer to its last change was lost."""

    possible: list[str] = field(default_factory=list)
    certain: bool = False


class Traffic:
    """Calls one host until it is told to stop, and follows every job to its end.

    Args:
      host: The host to call.
      oracle: Judges the answers.
      seed: Seed for all that is random.
      packages: Number of programs with packages to use.
      model_url: URL of a model that online jobs call.
    """

    def __init__(self, host: ChaosHost, oracle: Oracle, *, seed: int, packages: int, model_url: str) -> None:
        self._model_url = model_url
        self._host, self._oracle, self._seed = host, oracle, seed
        self._packaged = PACKAGED[:packages]
        self._http = httpx.AsyncClient(
            base_url=host.url,
            timeout=_ANSWERED_S,
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=False,
        )
        self._jobs: dict[str, int] = {}  # jobs that have not ended, with the highest number of results seen
        self._kept: dict[str, _Kept] = {}
        self._traces: dict[str, tuple[int, int]] = {}  # accepted traces: their spans, and the number of the host
        self._stop = asyncio.Event()
        self._numbers = itertools.count()

    async def run(self, over: asyncio.Event) -> None:
        """Make calls until `over` is set; return once every call has its answer and every job has ended."""
        callers = [
            *(self._evaluate(f"caller {number}", STEADY) for number in range(2)),
            self._evaluate("costly caller", COSTLY),
            self._evaluate("new evaluators", STEADY, fresh=True),
            self._evaluate_batches(),
            self._build(),
            self._run_jobs("python jobs", [one for one in STEADY + COSTLY if one.language == "python"]),
            self._run_jobs("other jobs", [one for one in STEADY if one.language != "python"]),
            self._run_online_jobs(),
            self._send_traces(),
            *(self._watch(number) for number in range(3)),
            *(self._hang_up(number) for number in range(2)),
            self._upload(),
            self._store_evaluators(),
            self._ask_health(),
        ]
        tasks = [asyncio.create_task(caller) for caller in callers]
        await over.wait()
        self._stop.set()
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def judge_stored(self) -> None:
        """Judge what is stored at the end: each object was sent by a caller, and no accepted object is missing."""
        for path, kept in self._kept.items():
            found = await self._until_answered("GET", path)
            if found is None and not kept.certain:
                continue
            text = "" if found is None else _stored_text(found)
            if text not in kept.possible:
                self._oracle.find(f"{path} has {text[:200]!r}, which was not the last that was sent: {kept.possible}")
            self._oracle.counts["stored objects"] += 1

    async def close(self) -> None:
        await self._http.aclose()

    # Callers that make direct calls

    async def _evaluate(self, name: str, programs: Sequence[Program], *, fresh: bool = False) -> None:
        async for chance in self._turns(name, pause_s=0.1):
            program, number = chance.choice(programs), chance.randrange(ROWS)
            variant = str(next(self._numbers)) if fresh else ""
            await self._call(program, number, variant=variant)

    async def _call(self, program: Program, number: int, *, variant: str = "") -> None:
        body = {"evaluator": program.evaluator(variant), **row(number)}
        began = time.monotonic()
        answer = await self._send("POST", "/v1/evaluate", json=body)
        if answer is not None:
            self._oracle.judge_call(program, number, answer.status_code, answer.headers, answer.json(), began)

    async def _evaluate_batches(self) -> None:
        async for chance in self._turns("batches", pause_s=0.5):
            program = chance.choice(STEADY)
            body = {
                "evaluator": program.evaluator(),
                "rows": [row(number) for number in range(_BATCH_ROWS)],
                "isolation": chance.choice(["row", "batch"]),
            }
            began = time.monotonic()
            answer = await self._send("POST", "/v1/evaluate/batch", json=body)
            if answer is None or answer.status_code != 200:
                self._refused("batch", answer, began)
                continue
            results = answer.json()["results"]
            if len(results) != _BATCH_ROWS:
                self._oracle.find(f"batch: {len(results)} results for {_BATCH_ROWS} rows")
            for number, result in enumerate(results):
                self._oracle.judge_call(program, number, 200, answer.headers, result, began)

    async def _build(self) -> None:
        """Call programs with packages, and sometimes remove their package sets, so that the host builds the sets again."""
        async for chance in self._turns("builds", pause_s=0.3):
            program = chance.choice(self._packaged)
            await self._call(program, chance.randrange(ROWS))
            if chance.random() < 0.4:
                await self._forget_packages(chance)

    async def _forget_packages(self, chance: random.Random) -> None:
        began = time.monotonic()
        answer = await self._send("GET", "/v1/environments")
        if answer is None or answer.status_code != 200:
            self._refused("environments", answer, began)
            return
        if found := answer.json():
            began = time.monotonic()
            removed = await self._send("DELETE", f"/v1/environments/{chance.choice(found)['digest']}")
            if removed is not None and removed.status_code not in (204, 404, 409):
                self._refused("remove environment", removed, began)

    # Callers that create jobs

    async def _run_jobs(self, name: str, programs: Sequence[Program]) -> None:
        async for chance in self._turns(name, pause_s=0.1):
            chosen, rows = chance.sample(list(programs), 2), chance.randint(*_JOB_ROWS)
            body = {
                "evaluators": [program.evaluator() for program in chosen],
                "dataset": {"rows": [row(number) for number in range(rows)]},
                "config": {"parallelism": 4, "isolation": chance.choice(["row", "row", "batch"])},
            }
            key = f"{name} {next(self._numbers)}"
            job = await self._until_answered("POST", "/v1/jobs", json=body, headers={"Idempotency-Key": key})
            if job is None:
                continue
            self._jobs[job["id"]] = 0
            ended = await self._until_ended(job["id"], chance)
            del self._jobs[job["id"]]
            if ended is None:
                continue
            lines = await self._download(job["id"])
            self._oracle.judge_job(ended, chosen, rows, lines)

    async def _run_online_jobs(self) -> None:
        """Run jobs that call a model, and judge whether each row has its own answer."""
        async for chance in self._turns("online jobs", pause_s=0.5):
            rows = chance.randint(*_QUESTIONS)
            body = {
                "evaluators": [{"code": _ONLINE}],
                "dataset": {"rows": [{"inputs": {"question": f"question {number}"}} for number in range(rows)]},
                "target": {
                    "base_url": self._model_url,
                    "model": "chaos",
                    "prompt_template": "{{ question }}",
                    "concurrency": 4,
                },
            }
            key = f"online {next(self._numbers)}"
            job = await self._until_answered("POST", "/v1/jobs", json=body, headers={"Idempotency-Key": key})
            ended = None if job is None else await self._until_ended(job["id"], chance)
            if ended is not None:
                self._oracle.judge_online(ended, rows, await self._download(ended["id"]))

    # Callers that send live traffic

    async def _send_traces(self) -> None:
        """Send whole traces, and remember those that the host accepted."""
        evaluator = {"name": "live", "code": _LIVE}
        # 409: the evaluator already exists
        await self._until_answered("POST", "/v1/evaluators?force=true", refused=409, json=evaluator)
        async for chance in self._turns("traces", pause_s=1.0):
            sizes = {f"{chance.getrandbits(128):032x}": chance.randint(1, 3) for _ in range(_TRACES)}
            spans = [span for trace_id, size in sizes.items() for span in _spans(trace_id, size)]
            body = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
            began, host = time.monotonic(), len(self._host.pids)
            answer = await self._send("POST", "/v1/evaluators/live/traces", json=body)
            if answer is None or answer.status_code != 200:
                self._refused("traces", answer, began)
            elif host == len(self._host.pids):
                self._traces |= {trace_id: (size, host) for trace_id, size in sizes.items()}
                self._oracle.counts["traces taken"] += _TRACES

    async def judge_traces(self) -> None:
        """Judge whether each trace was scored at most once, and whether the last host process scored all traces that it
        accepted.

        Traces wait in memory, so traces that an earlier host process accepted may be missing.
        """
        until, last = time.monotonic() + _SCORED_S, len(self._host.pids)
        wanted = {trace_id for trace_id, (_, host) in self._traces.items() if host == last}
        while (missing := wanted - (found := await self._scored_traces()).keys()) and time.monotonic() < until:
            await asyncio.sleep(1)
        if missing:
            self._oracle.find(
                f"{len(missing)} of {len(wanted)} traces that were taken are not scored: {sorted(missing)[:3]}"
            )
        for trace_id, results in found.items():
            size = self._traces.get(trace_id, (0, 0))[0]
            if len(results) == 1 and code_of(results[0]) == "crashed":
                self._oracle.crashed += 1  # the end of the run decides whether too many rows crashed
            elif len(results) > 1 or (size and results[0]["score"] != size / 10):
                self._oracle.find(f"trace {trace_id} of {size} spans: {len(results)} results: {results[0]}")
            self._oracle.counts["traces right"] += 1

    async def _scored_traces(self) -> dict[str, list[dict[str, Any]]]:
        """Return the results of each trace that is stored."""
        found: dict[str, list[dict[str, Any]]] = {}
        before = ""
        path = "/v1/evaluators/live/traces?limit=1000"
        while page := await self._until_answered("GET", f"{path}{before}"):
            for one in page:
                found.setdefault(one["trace_id"], []).append(one["result"])
            before = f"&before={page[-1]['number']}"
        return found

    # Following a job to its end

    async def _until_ended(self, job_id: str, chance: random.Random) -> dict[str, Any] | None:
        """Follow a job to its end, and resume it if it is paused. Return the job, or None if it is lost or does not
        end.
        """
        path, pauses = f"/v1/jobs/{job_id}", chance.random() < 0.3
        until: float | None = None
        most = 0
        while True:
            job = await self._until_answered("GET", path)
            if job is None:
                return None
            self._note_progress(job)
            if job["status"] in ("completed", "failed", "cancelled"):
                return job
            if job["status"] == "paused":
                self._judge_pause(job)
                # 409: the answer to the first attempt was lost, and the job has since ended
                await self._until_answered("POST", f"{path}/resume", refused=409)
            elif pauses and job["progress"]["done"]:
                pauses = False
                self._oracle.counts["pauses"] += 1
                await self._until_answered("POST", f"{path}/pause", refused=409)
            if self._stop.is_set():
                if until is None or job["progress"]["done"] > most:  # a job that is only slow still makes progress
                    until, most = time.monotonic() + _JOB_ENDS_S, job["progress"]["done"]
                if time.monotonic() > until:
                    self._oracle.find(f"job {job_id} got no result in {_JOB_ENDS_S:g} s after the last fault: {job}")
                    return None
            await asyncio.sleep(0.5)

    def _judge_pause(self, job: dict[str, Any]) -> None:
        error = job["error"]
        if error is None:
            return  # the client that created the job paused it
        self._oracle.counts[f"jobs paused: {error['code']}"] += 1
        if error["code"] != "machine_exhausted" or not self._oracle.timeline.happened(Kind.FULL_DISK):
            self._oracle.find(f"job {job['id']} is paused, and no fault explains it: {error}")

    def _note_progress(self, job: dict[str, Any]) -> None:
        """Judge whether a stored result has disappeared."""
        before, done = self._jobs.get(job["id"], 0), job["progress"]["done"]
        if job["id"] in self._jobs:
            self._jobs[job["id"]] = max(before, done)

    async def _download(self, job_id: str) -> list[dict[str, Any]]:
        while True:
            began, path = time.monotonic(), f"/v1/jobs/{job_id}/rows.jsonl"
            try:
                answer = await self._http.get(path)
            except httpx.TransportError as error:
                if not self._oracle.timeline.excused("store_unavailable", began, time.monotonic()):
                    self._oracle.judge_no_answer(f"GET {path}", error, began)
            else:
                if answer.status_code == 200:
                    return [json.loads(line) for line in answer.text.splitlines()]
                self._refused(path, answer, began)
            await asyncio.sleep(_AGAIN_S)

    async def _watch(self, number: int) -> None:
        """Watch the events of a job for a while, then close the connection in the middle."""
        async for chance in self._turns(f"watcher {number}", pause_s=0.3):
            if not self._jobs:
                continue
            job_id, seconds = chance.choice(sorted(self._jobs)), chance.uniform(0, 6)
            began, most = time.monotonic(), self._jobs.get(job_id, 0)
            try:
                async with (
                    asyncio.timeout(seconds),
                    self._http.stream("GET", f"/v1/jobs/{job_id}/events") as answer,
                ):
                    if answer.status_code != 200:
                        await answer.aread()
                        self._refused("events", answer, began)
                        continue
                    async for line in answer.aiter_lines():
                        if line.startswith("data:"):
                            done = json.loads(line[5:])["progress"]["done"]
                            if done < most:
                                self._oracle.find(f"job {job_id} had {most} results, and has {done}")
                            most = max(most, done)
                            self._oracle.counts["events"] += 1
            except TimeoutError:
                self._oracle.counts["watchers that vanished"] += 1
            except httpx.TransportError as error:
                if not self._oracle.timeline.excused("store_unavailable", began, time.monotonic()):
                    self._oracle.judge_no_answer("events", error, began)

    # Clients that vanish

    async def _hang_up(self, number: int) -> None:
        async for chance in self._turns(f"vanishing {number}", pause_s=0.2):
            body = json.dumps({"evaluator": STEADY[2].evaluator(), **row(chance.randrange(ROWS))}).encode()
            path, kind = chance.choice(
                [("/v1/evaluate", "application/json"), ("/v1/datasets?name=half&replace=true", "application/x-ndjson")]
            )
            head = (
                f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._host.port}\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            ).encode()
            sent = (head + body)[: chance.randrange(1, len(head) + len(body) + 1)]
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._host.port)
                writer.write(sent)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(reader.read(1), chance.uniform(0, 1.5))
                if chance.random() < 0.5:
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.close()
                await writer.wait_closed()
                self._oracle.counts["clients that vanished"] += 1

    # Callers that change stored objects

    async def _upload(self) -> None:
        async for chance in self._turns("uploads", pause_s=1.0):
            name, salt = f"kept-{chance.randrange(_NAMES)}", next(self._numbers)
            text = "".join(f'{{"n":{n},"salt":{salt}}}\n' for n in range(chance.randint(1, 300)))
            headers = {"Content-Type": "application/x-ndjson"}
            path = f"/v1/datasets?name={name}&replace=true"
            await self._change(f"/v1/datasets/{name}/file", text, "POST", path, content=text, headers=headers)

    async def _store_evaluators(self) -> None:
        async for chance in self._turns("evaluators", pause_s=1.5):
            name, program = f"kept-{chance.randrange(_NAMES)}", chance.choice(STEADY)
            evaluator = {**program.evaluator(str(next(self._numbers))), "packages": []}
            path, known = f"/v1/evaluators/{name}", f"/v1/evaluators/{name}"
            body: dict[str, Any] = {**evaluator}
            if known not in self._kept or not self._kept[known].certain:
                await self._change(known, evaluator["code"], "POST", "/v1/evaluators", json={**body, "name": name})
            else:
                await self._change(known, evaluator["code"], "PUT", path, json=body)

    async def _change(self, stored: str, text: str, method: str, path: str, **options: Any) -> None:
        """Change a stored object, and remember all the contents that it may have afterwards."""
        kept, began = self._kept.setdefault(stored, _Kept()), time.monotonic()
        answer = await self._send(method, path, **options)
        if answer is not None and answer.is_success:
            kept.possible, kept.certain = [text], True
            self._oracle.counts["stored"] += 1
            return
        # the answer to an earlier attempt was lost, and the object exists
        if answer is not None and answer.status_code == 409:
            kept.certain = True
            return
        kept.possible.append(text)
        self._refused(f"{method} {path}", answer, began)

    # Calls to the health routes

    async def _ask_health(self) -> None:
        async for _ in self._turns("health", pause_s=0.5):
            began = time.monotonic()
            answer = await self._send("GET", "/healthz", timeout=_HEALTHY_S)
            if answer is not None and answer.status_code != 200:
                self._oracle.find(f"/healthz: {answer.status_code} {answer.text}")
            began = time.monotonic()
            ready = await self._send("GET", "/readyz")
            if ready is not None and ready.status_code != 200:
                self._oracle.counts[f"not ready: {ready.json()['code']}"] += 1
                if ready.status_code != 503 or not self._oracle.timeline.excused(NOT_READY, began, time.monotonic()):
                    self._oracle.find(f"/readyz: {ready.status_code} that no fault explains: {ready.text[:400]}")

    # Parts that all callers share

    async def _turns(self, name: str, *, pause_s: float) -> AsyncIterator[random.Random]:
        """Yield the caller's random number generator once for each of its turns, with a pause between turns, until the
        run is over.
        """
        chance = random.Random(f"{self._seed} {name}")
        while not self._stop.is_set():
            yield chance
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause_s * chance.uniform(0.5, 1.5))

    async def _send(self, method: str, path: str, **options: Any) -> httpx.Response | None:
        """Send a request and return the answer; if there is no answer, judge that and return None."""
        began = time.monotonic()
        try:
            return await self._http.request(method, path, **options)
        except httpx.TransportError as error:
            self._oracle.judge_no_answer(f"{method} {path}", error, began)
            await asyncio.sleep(_AGAIN_S)
            return None

    def _refused(self, where: str, answer: httpx.Response | None, began: float) -> None:
        if answer is not None:
            self._oracle.judge_refusal(where, answer.status_code, answer.headers, _body(answer), began)

    async def _until_answered(self, method: str, path: str, *, refused: int = 0, **options: Any) -> Any:
        """Repeat a request until it succeeds, and judge each refusal; return None for 404, or for the status `refused`."""
        while True:
            began = time.monotonic()
            answer = await self._send(method, path, **options)
            if answer is not None and answer.is_success:
                return _body(answer)
            if answer is not None and answer.status_code in (404, refused):
                return None
            self._refused(f"{method} {path}", answer, began)
            await asyncio.sleep(_AGAIN_S)


def _spans(trace_id: str, count: int) -> list[dict[str, Any]]:
    """Return the spans of a trace: the children of its root, then the root."""
    ids = [f"{number:016x}" for number in range(1, count + 1)]
    parents = [{"parentSpanId": ids[0]}] * (count - 1)
    times = {"startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000"}
    spans = [{"traceId": trace_id, "spanId": own, "name": "work", **times} for own in ids]
    return [
        *({**span, **parent} for span, parent in zip(spans[1:], parents, strict=True)),
        spans[0],
    ]


def _body(answer: httpx.Response) -> Any:
    if answer.headers.get("content-type") == "application/x-ndjson":  # a body of one line would also be valid JSON
        return answer.text
    with contextlib.suppress(ValueError):
        return answer.json()
    return answer.text


def _stored_text(found: Any) -> str:
    return str(found["evaluator"]["code"]) if isinstance(found, dict) and "evaluator" in found else str(found)
