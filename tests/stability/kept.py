"""Makes backups of a host's stored data, one for each kind of database: `python -m tests.stability.kept`.

Each release adds its own backups and keeps the backups of earlier releases; `test_upgrades.py` restores all of them
with the present version.
"""

import contextlib
import json
import lzma
import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import httpx

from evaluator_host import __version__
from evaluator_host.client import Client
from tests import forked
from tests.databases import ENGINES, Databases
from tests.keyed import bearer
from tests.server import Server, new_home

FOLDER: Final = Path(__file__).parent
SECRET: Final = "a-secret-value"
CODE: Final = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['gold']\n"
SLOW: Final = f"import time\n{CODE.replace('return', 'time.sleep(0.05)' + chr(10) + '    return')}"
WITH_SECRET: Final = "import os\n\n\ndef evaluate(inputs, outputs, trace):\n    return len(os.environ['TOKEN'])\n"
ROWS: Final = "".join(json.dumps({"gold": n % 2, "answer": 0}) + "\n" for n in range(200))
JOB: Final = {"evaluators": ["exact"], "dataset": "rows", "mapping": {"outputs": "answer"}}
SETTINGS: Final = {"EVALUATOR_HOST_CODE_SECRETS": '["*"]'}


def command(*arguments: str, **environment: str) -> str:
    """Run a command of the host, and return its output."""
    ran = forked.run(arguments, cwd=Path("/"), env={**os.environ, **environment}, timeout=100)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def place(folder: Path, url: str) -> dict[str, str]:
    """Return environment variables for a host whose data is below a new folder."""
    folder.mkdir()
    return {
        "EVALUATOR_HOST_DATA_DIR": str(new_home(folder)),
        "EVALUATOR_HOST_DATABASE_URL": "" if url.startswith("sqlite") else url,
        **SETTINGS,
    }


def serve(where: dict[str, str], folder: Path) -> Server:
    """Return a host with these environment variables; a `with` statement starts it."""
    return Server(log=folder / "log", environment=where, data_dir=Path(where["EVALUATOR_HOST_DATA_DIR"]))


def furnish(server: Server, key: str) -> dict[str, Any]:
    """Store an object of each kind, and return answers that later versions must also give."""
    with httpx.Client(base_url=server.url, headers=bearer(key), timeout=60) as client:
        return _furnish(client, key)


def _furnish(client: httpx.Client, key: str) -> dict[str, Any]:
    def send(method: str, path: str, **more: Any) -> Any:
        answer = client.request(method, path, **more)
        assert answer.is_success, (path, answer.text)
        return answer.json() if answer.content else None

    rows = {"params": {"name": "rows"}, "headers": {"Content-Type": "application/jsonl"}}
    send("POST", "/v1/datasets", content=ROWS, **rows)
    for name, code, more in (
        ("exact", "def evaluate(inputs, outputs, trace):\n    return 0\n", {}),
        ("slow", SLOW, {}),
        ("secret", WITH_SECRET, {"secrets": {"TOKEN": "token"}}),
    ):
        if more:
            send("PUT", "/v1/secrets/token", json={"value": SECRET})
        send("POST", "/v1/evaluators", json={"name": name, "code": code, **more})
    send("PUT", "/v1/evaluators/exact", json={"code": CODE})
    done = send("POST", "/v1/jobs", json=JOB)["id"]
    ended(client, done)
    under_way = send("POST", "/v1/jobs", json={**JOB, "evaluators": ["slow"]})["id"]
    while not send("GET", f"/v1/jobs/{under_way}")["progress"]["done"]:
        time.sleep(0.02)
    send("POST", f"/v1/jobs/{under_way}/pause")
    ended(client, under_way, "paused")
    send("POST", "/v1/schedules", json={"name": "yearly", "cron": "0 3 1 1 *", "job": JOB})
    send("POST", "/v1/alerts", json={"name": "low", "metric": "mean", "below": 0.5, "schedule": "yearly"})
    send("POST", "/v1/label-queues", json={"name": "queue", "dataset": "rows"})
    return {"key": key, "job": done, "under_way": under_way, "results": send("GET", f"/v1/jobs/{done}/results")}


def read_all(client: Client, job: str) -> list[object]:
    """Read objects of each kind with a client, and return them.

    The backup's description has the host's answers, with which later releases test their clients.
    """
    names = (client.evaluators, client.datasets, client.jobs, client.schedules, client.alerts, client.labels)
    return [
        *(client.info(), client.usage(), *(one.all() for one in (*names, client.secrets, client.models))),
        *(client.evaluators.get("exact"), client.evaluators.versions("exact"), client.evaluators.scores("exact")),
        *(client.datasets.versions("rows"), client.datasets.columns("rows"), client.datasets.scores("rows")),
        *(client.jobs.get(job), client.jobs.results(job), client.jobs.first_rows(job, 5), client.jobs.row(job, 7)),
        *(client.jobs.failures(job), client.jobs.evaluators(job), client.labels.rows("queue")),
    ]


def answers_to(client: Client, job: str) -> dict[str, Any]:
    """Return a host's answers to the requests of `read_all`, by path."""
    answers = {}

    def note(response: httpx.Response) -> None:
        response.read()
        answers[response.request.url.raw_path.decode()] = response.json()

    client._transport.http.event_hooks["response"].append(note)
    read_all(client, job)
    return answers


def ended(client: httpx.Client, job: str, status: str = "completed") -> None:
    """Wait until a job has this status."""
    until = time.monotonic() + 100
    while (found := client.get(f"/v1/jobs/{job}").json())["status"] != status:
        assert time.monotonic() < until, found
        assert found["status"] in ("queued", "running", "paused"), found
        time.sleep(0.05)


def make(engine: str, databases: Databases, folder: Path) -> None:
    """Write the backup of a host with one kind of database, and a file that describes the backup's content."""
    where = place(folder / engine, databases.make_empty(engine))
    key = command("keys", "create", "kept", "--json", **where)
    with serve(where, folder) as server:
        kept = furnish(server, json.loads(key)["key"])
        with Client(server.url, key=kept["key"]) as client:
            kept["answers"] = answers_to(client, kept["job"])
    command("backup", str(folder / f"{engine}.tar"), **where)
    name = FOLDER / f"{__version__}-{engine}"
    name.with_name(f"{name.name}.tar.xz").write_bytes(lzma.compress((folder / f"{engine}.tar").read_bytes()))
    name.with_name(f"{name.name}.json").write_text(json.dumps(kept) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, contextlib.closing(Databases(Path(made))) as everything:
        for one in ENGINES:
            make(one, everything, Path(made))
