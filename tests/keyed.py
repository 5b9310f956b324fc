"""Functions for tests of hosts with keys: they make and use keys, and check the form of refusals."""

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from evaluator_host.platform.store.audit import AuditLine
from evaluator_host.platform.store.store import open_store
from tests import forked

EXACT = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['correct_answer']\n"
BODY: dict[str, Any] = {"evaluator": {"code": EXACT}, "inputs": {"correct_answer": "Paris"}, "outputs": "Paris"}


def command(*arguments: str, url: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a command of the host, with the database at `url`."""
    return forked.run(arguments, env={**os.environ, "EVALUATOR_HOST_DATABASE_URL": url, **environment})


def make_key(name: str, workspace: str, *, url: str, expires_s: float | None = None) -> str:
    """Make a key in another process, and return it."""
    expires_at = datetime.now(UTC) + timedelta(seconds=expires_s) if expires_s is not None else None

    async def make() -> str:
        async with open_store(url, Path()) as store:
            return (await store.keys.create_key(name, workspace, expires_at=expires_at))[1]

    return asyncio.run(make())


def revoke_key(name: str, *, url: str) -> None:
    """Revoke a key in another process."""

    async def revoke() -> None:
        async with open_store(url, Path()) as store:
            await store.keys.revoke(name)

    asyncio.run(revoke())


def audited(url: str) -> list[AuditLine]:
    """Return the newest 100 entries of the audit log, newest first."""

    async def read() -> list[AuditLine]:
        async with open_store(url, Path()) as store:
            return await store.audit.list_entries(limit=100)

    return asyncio.run(read())


def shown(*arguments: str, url: str, **environment: str) -> Any:
    """Run a command with `--json`, and return its decoded output."""
    done = command(*arguments, "--json", url=url, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def eventually(holds: Callable[[], bool], *, within_s: float = 20) -> None:
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until, "the condition did not become true in time"
        time.sleep(0.05)


def is_problem(response: httpx.Response, status: int, code: str) -> bool:
    """Whether a response has the common form of errors, and the headers that every response has."""
    assert response.status_code == status, (response.status_code, response.text[:500])
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    assert response.json()["code"] == code, response.text
    return True
