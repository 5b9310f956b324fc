"""A request for each operation of a host, with placeholders for the names of stored objects."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

CODE = "def evaluate(inputs, outputs, trace):\n    return 1.0\n"

ROW = {"inputs": {"q": "x"}, "outputs": "y"}

METRIC = {"type": "exact-match", "reference": "{{item.a}}", "candidate": "{{item.b}}"}

BUNDLE = {
    "metric_type": "exact-match",
    "outputs": [{"name": "exact-match", "value_json_schema": {"type": "number"}}],
    "payload": {"kind": "inline", "metric": METRIC},
}

OTLP: dict[str, Any] = {"resourceSpans": []}

Names: TypeAlias = dict[str, str]


@dataclass(frozen=True)
class Ask:
    """The body, query and headers of a request, as templates into which names are filled."""

    body: Any = None
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    # whether the answer is the same for all names: the names are new, or the host looks them up only later
    free: bool = False

    def filled(self, names: Names) -> dict[str, Any]:
        body = _filled(self.body, names)
        more = {"params": _filled(self.query, names), "headers": _filled(self.headers, names)}
        if isinstance(body, str):
            return {**more, "content": body.encode()}
        return more if body is None else {**more, "json": body}


def _filled(value: Any, names: Names) -> Any:
    if isinstance(value, str):
        return re.sub(r"<(\w+)>", lambda found: names[found[1]], value)
    if isinstance(value, list):
        return [_filled(one, names) for one in value]
    if isinstance(value, dict):
        return {_filled(name, names): _filled(one, names) for name, one in value.items()}
    return value


def code(**more: Any) -> dict[str, Any]:
    return {"code": CODE, **more}


LIKE = [
    Ask(code(models=["<model>"])),
    Ask(code(secrets={"TOKEN": {"secret": "<secret>"}})),
    Ask(code(data={"x.bin": "<data_file>"})),
]


def with_evaluators(**more: Any) -> list[Ask]:
    """Return bodies that name an evaluator, or that contain code with names of models, secrets and data files."""
    named = ["<evaluator>", *(one.body for one in LIKE)]
    judge = {"judge": {"model": "<model>", "prompt": "{{ outputs }}", "scale": {"min": 0, "max": 1}}}
    return [Ask({"evaluator": one, **more}) for one in (*named, judge)]


def of_job(evaluators: Any = None, dataset: Any = None, **more: Any) -> dict[str, Any]:
    return {"evaluators": evaluators or [code()], "dataset": dataset or {"rows": [ROW]}, **more}


TARGET = {"base_url": "<url>", "model": "m", "prompt_template": "{{ inputs }}", "api_key": {"secret": "<secret>"}}

JOBS = [
    Ask(of_job(["<evaluator>"])),
    *(Ask(of_job([one.body])) for one in LIKE),
    Ask(of_job(dataset="<dataset>")),
    Ask(of_job(target=TARGET)),
]

LATE = [one if one in (JOBS[0], JOBS[4]) else replace(one, free=True) for one in JOBS]
"""Requests for jobs; a name in pasted code is looked up only when the job runs."""

SPEC = {"metrics": [BUNDLE], "dataset": [{"a": "x", "b": "x"}]}

NAMED_SPECS = [
    {**SPEC, "metrics": ["<space>/<bundle>"]},
    {**SPEC, "dataset": "<space>/<fileset>#rows.jsonl"},
    {
        **SPEC,
        "target": {"url": "<url>", "name": "m", "api_key_secret": "<space>/<place_secret>"},
        "prompt_template": "x",
    },
    {**SPEC, "target": "<space>/<place_model>", "prompt_template": "x"},
]

OLDER_SPEC = {"metric": METRIC, "dataset": {"rows": [{"a": "x", "b": "x"}]}}

OLDER = [
    Ask({"name": "<older_job>", "spec": OLDER_SPEC}, free=True),
    Ask({"spec": {**OLDER_SPEC, "metric": "<space>/<metric>"}}),
    Ask({"spec": {**OLDER_SPEC, "dataset": "<space>/<fileset>#rows.jsonl"}}),
    Ask({"spec": {**OLDER_SPEC, "model": "<space>/<place_model>", "prompt_template": "x"}}),
]

ASKS: dict[str, list[Ask]] = {
    "POST /v1/evaluate": with_evaluators(**ROW),
    "POST /v1/evaluate/batch": with_evaluators(rows=[ROW]),
    "POST /v1/check": with_evaluators(),
    "POST /v1/editor": [
        Ask({"evaluator": code(models=["<model>"]), "what": "completions", "line": 1, "column": 2}, free=True)
    ],
    "POST /v1/run": [Ask({"code": "print(1)"}, free=True)],
    "POST /v1/environments": [Ask({"packages": ["six==1.17.0"]}, free=True)],
    "POST /v1/data": [Ask("of-alpha", headers={"Content-Type": "application/octet-stream"}, free=True)],
    "POST /v1/datasets": [
        Ask('{"outputs": 1}\n', {"name": "<dataset>"}, {"Content-Type": "application/x-ndjson"}, free=True)
    ],
    "PATCH /v1/datasets/{name}": [
        Ask({"add": [{"outputs": 2}]}),
        Ask({"add_from": {"job": "<job>", "rows": [0]}, "create": True}),
        Ask({"add_from": {"evaluator": "<evaluator>", "traces": [1]}, "create": True}),
    ],
    "GET /v1/datasets/{name}/scores": [Ask()],
    "GET /v1/datasets/{name}/changes": [Ask(query={"to": "<dataset>"})],
    "POST /v1/evaluators": [Ask({**one.body, "name": "<evaluator>"}, free=True) for one in (Ask(code()), *LIKE)],
    "PUT /v1/evaluators/{name}": [Ask(code()), *LIKE],
    "PATCH /v1/evaluators/{name}": [Ask({"description": "other"})],
    "POST /v1/evaluators/{name}/traces": [Ask(OTLP)],
    "POST /v1/evaluators/migrate": [
        Ask({"names": ["<evaluator>"]}),
        Ask({"dataset": "<dataset>"}),
        Ask({"job": "<job>"}),
    ],
    "GET /v1/evaluators/{name}/scores": [Ask(query={"dataset": "<dataset>"})],
    "POST /v1/migrate": [Ask(code(dataset="<dataset>")), Ask(code(job="<job>")), *LIKE],
    "POST /v1/import": [
        Ask({"files": {"s.py": CODE}, "path": "s.py", "name": "<evaluator>", "models": ["<model>"]}, free=True)
    ],
    "POST /v1/jobs": [*JOBS, Ask(of_job(), headers={"Idempotency-Key": "<idempotency>"}, free=True)],
    "POST /v1/jobs/estimate": LATE,
    "POST /v1/jobs/mapping": LATE,
    "GET /v1/jobs": [Ask(query={"schedule": "<schedule>"})],
    "PATCH /v1/jobs/{job_id}": [Ask({"name": "other"})],
    "GET /v1/jobs/{job_id}/groups": [Ask(query={"by": "q"})],
    "GET /v1/jobs/{job_id}/agreement": [Ask(query={"queue": "<queue>"}), Ask(query={"label": "outputs"})],
    "POST /v1/label-queues": [
        Ask({"name": "<queue>", "dataset": "rows"}, free=True),
        Ask({"name": "new-one", "dataset": "<dataset>"}),
        Ask({"name": "new-one", "job": "<job>"}),
        Ask({"name": "new-one", "job": "<job>", "evaluator": "<evaluator>"}),
    ],
    "GET /v1/label-queues": [Ask(query={"job": "<job>"})],
    "POST /v1/label-queues/{name}/next": [Ask({"by": "ann"})],
    "PUT /v1/label-queues/{name}/rows/{index}": [Ask({"by": "ann", "label": True})],
    "POST /v1/schedules": [
        Ask({"name": "new-one", "cron": "0 3 * * *", "job": of_job(["<evaluator>"], "<dataset>")}),
        *(Ask({"name": "new-one", "cron": "0 3 * * *", "job": one.body}, free=one.free) for one in LATE[:5]),
    ],
    "PATCH /v1/schedules/{name}": [Ask({"paused": True})],
    "POST /v1/alerts": [
        Ask({"name": "new-one", "metric": "mean", "below": 0.5, "job": "<job>"}),
        Ask({"name": "new-one", "metric": "mean", "below": 0.5, "schedule": "<schedule>"}),
        Ask({"name": "new-one", "metric": "mean", "below": 0.5, "live": "<evaluator>"}),
        Ask({"name": "new-one", "metric": "mean", "below": 0.5, "schedule": "<schedule>", "evaluator": "<evaluator>"}),
        Ask({"name": "new-one", "metric": "mean", "below": 0.5, "job": "<job>", "url": "<url>", "secret": "<secret>"}),
    ],
    "PATCH /v1/alerts/{name}": [Ask({"paused": True})],
    "PUT /v1/secrets/{name}": [Ask({"value": "of-alpha-123456"}, free=True)],
    "POST /v1/models": [Ask({"name": "new-one", "url": "<url>", "model": "m", "secret": "<secret>"})],
    "PATCH /v1/models/{name}": [Ask({"timeout_s": 5}), Ask({"secret": "<secret>"})],
    "DELETE /v1/model-answers": [Ask(query={"model": "<model>"}, free=True)],
    "POST /v1/model-answers/import": [Ask("", headers={"Content-Type": "application/x-ndjson"}, free=True)],
    "POST /apis/entities/v2/workspaces": [Ask({"name": "<space>"}, free=True)],
    "POST /apis/files/v2/workspaces/{workspace}/filesets": [Ask({"name": "<fileset>"})],
    "PATCH /apis/files/v2/workspaces/{workspace}/filesets/{name}": [Ask({"description": "other"})],
    "PUT /apis/files/v2/workspaces/{workspace}/filesets/{name}/-/{path}": [
        Ask('{"a": "y"}\n', headers={"Content-Type": "application/octet-stream"})
    ],
    "POST /apis/secrets/v2/workspaces/{workspace}/secrets": [
        Ask({"name": "<place_secret>", "value": "of-alpha-123456"})
    ],
    "PATCH /apis/secrets/v2/workspaces/{workspace}/secrets/{name}": [Ask({"description": "other"})],
    "POST /apis/models/v2/workspaces/{workspace}/providers": [
        Ask({"name": "new-one", "host_url": "<url>", "api_key_secret_name": "<space>/<place_secret>"})
    ],
    "PUT /apis/models/v2/workspaces/{workspace}/providers/{name}": [Ask({})],
    "POST /apis/models/v2/workspaces/{workspace}/models": [
        Ask({"name": "new-one", "model_providers": ["<space>/<provider>"]})
    ],
    "PATCH /apis/models/v2/workspaces/{workspace}/models/{name}": [Ask({})],
    "POST /apis/evaluator/v2/workspaces/{workspace}/metrics/{name}": [Ask(BUNDLE)],
    "POST /evaluate/jobs": [
        Ask({"name": "<place_job>", "spec": SPEC}),
        *(Ask({"spec": one}) for one in NAMED_SPECS),
    ],
    "POST /jobs": [Ask({"spec": one}) for one in (SPEC, *NAMED_SPECS)],
    "POST /metric-evaluate": [
        Ask({"metric": METRIC, "dataset": {"rows": [{"a": "x", "b": "x"}]}}, free=True),
        Ask({"metric": "<space>/<metric>", "dataset": {"rows": [{"a": "x", "b": "x"}]}}),
    ],
    "POST /metric-jobs": OLDER,
    "POST /metrics/{name}": [Ask(METRIC)],
    "POST /{evaluator}": [Ask({"outputs": "x"})],
    "POST /api/sandbox": [Ask({"labels": {"a": "b"}}, free=True)],
    "POST /process/code-run": [Ask({"code": "print(1)"})],
}
"""Requests by operation, or by the end of a path, because routes with other prefixes take the same requests."""

FIXED = {
    "version": "1",
    "host": "api.example.com:443",
    "index": "0",
    "file_format": "jsonl",
    "language": "python",
    "path": "rows.jsonl",
    "verb": "start",
}

BY_PARAMETER = {
    "workspace": "space",
    "job_id": "job",
    "other_id": "other_job",
    "digest": "set",
    "evaluator": "evaluator",
    "id": "sandbox",
    "result": "result",
}

BY_COLLECTION = {
    "alerts": "alert",
    "data": "data_file",
    "datasets": "dataset",
    "evaluators": "evaluator",
    "label-queues": "queue",
    "models": "model",
    "schedules": "schedule",
    "secrets": "secret",
    "workspaces": "space",
}

IN_A_PLACE = {
    "filesets": "fileset",
    "secrets": "place_secret",
    "models": "place_model",
    "providers": "provider",
    "metrics": "metric",
    "evaluate/jobs": "place_job",
    "jobs": "place_job",
    "metric-jobs": "older_job",
    "metric-job-results": "older_result",
    "eval-results": "place_result",
}

OF_NOBODY = {
    "/v1/packages/{language}/{name}/versions": "six",
    "/wires/daytona/api/snapshots/{name}": "small",
    "/wires/langfuse/2015-03-31/functions/{function}/invocations": "any",
    "/wires/opik/{rest}": "any",
}
"""Paths with names that do not belong to stored objects, each with an example of a name."""

OF_THE_HOST = ("/metrics", "/openapi.json", "/v1/info")
"""Paths whose answers do not depend on the caller, but differ from time to time."""

REFERENCES = {
    *("data", "dataset", "evaluator", "evaluators", "job", "live", "model", "models", "names", "queue", "schedule"),
    *(
        "idempotency-key",
        "secret",
        "secrets",
        "add_from",
        "api_key",
        "api_key_secret_name",
        "target",
        "metric",
        "metrics",
        "model_providers",
    ),
}
"""Fields of bodies and queries that name stored objects."""

PLAIN = ("ModelIn.model", "ModelChangeIn.model", "AlertIn.metric", "BundleIn.secrets")
"""Fields that have the name of a reference, but do not name a stored object."""
