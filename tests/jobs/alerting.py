"""Alerts over the jobs of a desk, and a webhook that receives their messages."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.system.lookups import Lookups
from evaluator_host.platform.alerts.service import Alerts
from evaluator_host.platform.alerts.webhooks import Webhooks
from evaluator_host.platform.jobs.spec import JobSpec
from evaluator_host.platform.schedules.service import Schedules
from evaluator_host.platform.store.objects import StoredObject
from evaluator_host.platform.traces.table import Traces
from tests.jobs.desk import OK, Desk

ROWS = [{"inputs": {}, "outputs": "1"}]

SPEC = JobSpec([OK], ROWS)

MONDAYS = "0 7 * * 1"


class Receiver:
    """A webhook that records its messages, and that answers first with the given statuses, then always with 200."""

    def __init__(self) -> None:
        self.messages: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.messages.append((dict(self.headers), body))
                self.send_response(receiver.statuses.pop(0) if receiver.statuses else 200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?token=1"
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.messages]


def alerts_of(
    desk: Desk, tmp_path: Path, *hosts: str, names: Lookups | None = None, webhooks: type[Webhooks] = Webhooks
) -> Alerts:
    """Return alerts that read metrics as on a host, and may call these hosts; by default, this machine."""
    settings = Settings(data_dir=tmp_path, webhook_hosts=hosts or ("127.0.0.1",))
    runs, traces = Schedules(desk.store.objects, desk.board), Traces(desk.store.database)
    called = webhooks(settings, desk.store.secrets, names or Lookups())
    return Alerts(desk.store.objects, desk.board, called, live=lambda: traces, schedules=lambda: runs)


async def check(desk: Desk, alerts: Alerts, stored: StoredObject) -> None:
    """Check the metric of an alert, and send the messages that are due."""
    await alerts.look(stored)
    for receiver, some in alerts.due(await desk.store.objects.list_objects("alert")).items():
        await alerts.send(receiver, some)
