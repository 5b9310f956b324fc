"""A real model server on loopback with the chat completions protocol, and with faults that a test can choose.

Its answer to a question is `answer to <question>`. The server calls the function `faults` with the question and the
number of the attempt (from 1). The function returns the fault: a status, a `Reply`, `drop` (the connection breaks), or
how many seconds the server waits before it answers.
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
    """An answer as the server sends it."""

    status: int
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0


Fault: TypeAlias = int | float | str | Reply | None


def no_fault(question: str, attempt: int) -> Fault:
    return None


class ModelServer:
    """Listens on a free port. `asked` has the questions in the order in which they came, `bodies` has the whole
    requests.

    Args:
      key: The bearer token that callers must send, or None.
      faults: Function that returns the fault of an attempt; None means that the attempt has no fault.
      completes: Whether the server also has the route that completes prompts.
      plays_all: Whether the server has every route of OpenAI and Anthropic that the gateway passes on, with streams
        too.
    """

    def __init__(
        self,
        *,
        key: str | None = None,
        faults: Callable[[str, int], Fault] = no_fault,
        completes: bool = False,
        plays_all: bool = False,
    ) -> None:
        self.key = key
        self.paths = {"/v1/chat/completions"} | ({"/v1/completions"} if completes else set())
        self.paths |= {f"/v1/{name}" for name in ("responses", "embeddings", "messages")} if plays_all else set()
        self.plays_all = plays_all
        self.routes: dict[str, Callable[[dict[str, Any]], Reply]] = {}  # replies of other services, by path
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
        self._http.connections = set()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})

    def begin(self, body: dict[str, Any], headers: dict[str, str]) -> Fault:
        """Record a request, and return the fault that is due for it."""
        question = question_of(body)
        with self._lock:
            self.asked.append(question)
            self.bodies.append(body)
            self.headers.append(headers)
            self._tries[question] += 1
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
            attempt = self._tries[question]
        return self.faults(question, attempt)

    def end(self) -> None:
        with self._lock:
            self._busy -= 1

    @property
    def connections(self) -> int:
        """Number of connected callers. A killed caller is counted until its request is in `asked`."""
        return len(self._http.connections)

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a valid request, in the protocol of chat completions."""
        question = question_of(body)
        message: dict[str, Any] = {"role": "assistant", "content": f"answer to {question}", "refusal": None}
        finish_reason = "stop"
        if body.get("tools") and "function" in body["tools"][0]:  # a request in OpenAI's form
            call = {"name": body["tools"][0]["function"]["name"], "arguments": json.dumps({"question": question})}
            message |= {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
            finish_reason = "tool_calls"
        elif self.plays_all and body.get("response_format"):
            message["content"] = json.dumps(judged(body["response_format"], question))
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

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the route's answer to a valid request."""
        if path == "/v1/embeddings":
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            data = [{"object": "embedding", "index": i, "embedding": [1.0, 0.5]} for i in range(len(texts))]
            usage = {"prompt_tokens": 5, "total_tokens": 5}
            return {"object": "list", "data": data, "model": body["model"], "usage": usage}
        said = self.completion(body)
        usage = {"input_tokens": said["usage"]["prompt_tokens"], "output_tokens": said["usage"]["completion_tokens"]}
        text = f"answer to {question_of(body)}"
        if path == "/v1/messages":
            content: list[Any] = [{"type": "text", "text": text}]
            if body.get("tools"):
                call = {"type": "tool_use", "id": "toolu_1", "name": body["tools"][0]["name"], "input": {"score": 1}}
                content = [call]
            whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content}
            return {**whole, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
        if path == "/v1/responses":
            part = {"type": "output_text", "text": text, "annotations": []}
            message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}
            whole = {"id": "resp_1", "object": "response", "created_at": 0, "model": body["model"], "output": [message]}
            more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "completed"}
            return {**whole, **more, "usage": {**usage, "total_tokens": sum(usage.values())}}
        return said

    def events(self, path: str, body: dict[str, Any]) -> list[bytes]:
        """Return the route's answer as a stream of server-sent events."""
        if path == "/v1/messages":
            whole = self.answer(path, body)
            text, usage = whole["content"][0]["text"], whole["usage"]
            start = {**whole, "content": [], "usage": {**usage, "output_tokens": 1}}
            sent = [
                {"type": "message_start", "message": start},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
                {"type": "message_stop"},
            ]
            return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in sent]
        whole = self.completion(body)
        head = {name: whole[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        words = whole["choices"][0]["message"]["content"].split(" ")
        deltas = [{"role": "assistant", "content": ""}, *({"content": f"{one} "} for one in words)]
        chunks = [{**head, "choices": [{"index": 0, "delta": one, "finish_reason": None}]} for one in deltas]
        chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks.append({**head, "choices": [], "usage": whole["usage"]})
        return [*(f"data: {json.dumps(one)}\n\n".encode() for one in chunks), b"data: [DONE]\n\n"]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def judged(response_format: dict[str, Any], question: str) -> dict[str, Any]:
    """Return a judge's answer in the requested form, with the label or number from the question's last line."""
    schema = response_format.get("json_schema", {}).get("schema") or {"properties": {"score": {"type": "number"}}}
    last = question.strip().rpartition("\n")[2]
    numbers = [float(word) for word in last.split() if word.replace(".", "", 1).isdigit()]

    def value(kind: dict[str, Any]) -> Any:
        if "enum" in kind:
            return next((one for one in kind["enum"] if one in last), kind["enum"][-1])
        if kind.get("type") in ("integer", "number"):
            return int(numbers[0]) if numbers and kind["type"] == "integer" else numbers[0] if numbers else 1
        if kind.get("type") == "boolean":
            return "not " not in last
        if kind.get("type") == "array":
            return []
        return f"said of {last}"

    return {name: value(kind) for name, kind in schema.get("properties", {}).items()}


def question_of(body: dict[str, Any]) -> str:
    if "prompt" in body or "input" in body:
        given = body.get("prompt", body.get("input"))
        # in the responses API, the messages are a list
        while isinstance(given, list):
            given = given[-1]["content"] if isinstance(given[-1], dict) and "content" in given[-1] else given[-1]
        return str(given["text"] if isinstance(given, dict) else given)
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


def error_body(message: str, kind: str = "invalid_request_error", code: str | None = None) -> bytes:
    """Return an error in the form of OpenAI's protocol."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    connections: set[Any]

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.connections.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a caller that hangs up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_of: ModelServer

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        model = self.server_of
        if (route := model.routes.get(self.path.partition("?")[0])) is not None:
            self._say(route({**json.loads(data), "?": self.path.partition("?")[2]}))
            return
        if self.path not in model.paths:
            self._say(Reply(404, error_body(f"Invalid URL (POST {self.path})")))
            return
        sent = self.headers.get("Authorization")
        if self.path == "/v1/messages" and "x-api-key" in self.headers:
            sent = f"Bearer {self.headers['x-api-key']}"
        if model.key is not None and sent != f"Bearer {model.key}":
            self._say(Reply(401, error_body(f"Incorrect API key provided: {sent}.", code="invalid_api_key")))
            return
        try:
            body = json.loads(data)
            assert isinstance(body["model"], str)
            by_path = {"/v1/completions": "prompt", "/v1/responses": "input", "/v1/embeddings": "input"}
            assert body[by_path.get(self.path, "messages")]
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
            case _ if body.get("stream"):
                self._stream(self.server_of.events(self.path, body))
            case _:
                answer = self.server_of.answer(self.path, body)
                self._say(Reply(200, json.dumps(answer).encode(), wait_s=fault or 0.0))

    def _stream(self, events: list[bytes]) -> None:
        with contextlib.suppress(ConnectionError):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for one in [*events, b""]:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(one), one))
                self.wfile.flush()

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
