"""A real server that speaks the chat completions protocol, on loopback, with a word for what is to go wrong.

Its answer to a question is `answer to <question>`. What goes wrong is said by `faults`, asked with the question and the
number of the try (from 1): a status, a `Reply`, `drop` (the connection breaks), or a number of seconds to wait first.
"""

import contextlib
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias

DROP = "drop"


@dataclass(frozen=True)
class Reply:
    """An answer as it goes over the wire."""

    status: int
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0


Fault: TypeAlias = int | float | str | Reply | None


def no_fault(question: str, attempt: int) -> Fault:
    return None


class ModelServer:
    """Listens on a free port. `asked` are the questions as they came, `bodies` the whole requests.

    Args:
      key: The bearer token that callers must send; None for none.
      faults: What is to go wrong.
      completes: It goes on with prompts too.
    """

    def __init__(
        self, *, key: str | None = None, faults: Callable[[str, int], Fault] = no_fault, completes: bool = False
    ) -> None:
        self.key = key
        self.paths = {"/v1/chat/completions"} | ({"/v1/completions"} if completes else set())
        self.faults = faults
        self.asked: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.busiest = 0
        self._busy = 0
        self._tries: Counter[str] = Counter()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        model = self

        class Handler(_Handler):
            server_of = model

        self._http = _Http(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})

    def begin(self, body: dict[str, Any], headers: dict[str, str]) -> Fault:
        """Note a request and say what is to go wrong with it."""
        question = question_of(body)
        with self._lock:
            self.asked.append(question)
            self.bodies.append(body)
            self.headers.append(headers)
            self._tries[question] += 1
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
            return self.faults(question, self._tries[question])

    def end(self) -> None:
        with self._lock:
            self._busy -= 1

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """What the protocol answers to a request that is in order."""
        question = question_of(body)
        message: dict[str, Any] = {"role": "assistant", "content": f"answer to {question}", "refusal": None}
        finish_reason = "stop"
        if body.get("tools"):
            call = {"name": body["tools"][0]["function"]["name"], "arguments": json.dumps({"question": question})}
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
            finish_reason = "tool_calls"
        with self._lock:
            number = next(self._numbers)
        tokens = len(json.dumps(body.get("messages", body.get("prompt"))).split()), len(question.split()) + 2
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body["model"],
            "choices": [
                {"index": 0, "finish_reason": finish_reason, "logprobs": None}
                | ({"text": message["content"]} if "prompt" in body else {"message": message})
            ],
            "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def question_of(body: dict[str, Any]) -> str:
    if "prompt" in body:
        return str(body["prompt"])
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def error_body(message: str, kind: str = "invalid_request_error", code: str | None = None) -> bytes:
    """An error as the protocol has it."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hangs up is not this server's concern."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_of: ModelServer

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        model = self.server_of
        if self.path not in model.paths:
            self._say(Reply(404, error_body(f"Invalid URL (POST {self.path})")))
            return
        sent = self.headers.get("Authorization")
        if model.key is not None and sent != f"Bearer {model.key}":
            self._say(Reply(401, error_body(f"Incorrect API key provided: {sent}.", code="invalid_api_key")))
            return
        try:
            body = json.loads(data)
            assert isinstance(body["model"], str)
            assert body["prompt" if self.path == "/v1/completions" else "messages"]
        except (ValueError, KeyError, AssertionError):
            self._say(Reply(400, error_body("we could not parse the JSON body of your request")))
            return
        fault = model.begin(body, dict(self.headers))
        try:
            self._answer(fault, body)
        finally:
            model.end()

    def _answer(self, fault: Fault, body: dict[str, Any]) -> None:
        match fault:
            case str():
                self.close_connection = True
                self.connection.close()
            case Reply():
                self._say(fault)
            case int():
                self._say(Reply(fault, error_body(f"injected {fault}", "server_error")))
            case _:
                self._say(Reply(200, json.dumps(self.server_of.completion(body)).encode(), wait_s=fault or 0.0))

    def _say(self, reply: Reply) -> None:
        time.sleep(reply.wait_s)
        with contextlib.suppress(ConnectionError):
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

    def log_message(self, *_: object) -> None:
        pass
