"""A model server that answers questions, calls tools, and judges texts that begin with `judge:`."""

import json
from typing import Any

from tests.model_server import Fault, ModelServer, Reply, question_of


def model_server() -> ModelServer:
    """Return the model server for the cases.

    The server refuses questions with `boom`, fails once for a question with `twice`, and its answers depend only on the
    question.
    """
    server = Answers(completes=True)

    def fault(question: str, attempt: int) -> Fault:
        if "boom" in question:
            return Reply(
                400, b'{"error": {"message": "no boom here", "type": "x"}}', {"Content-Type": "application/json"}
            )
        return 503 if "twice" in question and attempt % 2 else None

    server.faults = fault
    server.routes = {"/agent": _agent, "/agent/events": _events, "/generate/full": _toolkit}
    return server


def _agent(body: dict[str, Any]) -> Reply:
    if "boom" in str(body):
        return Reply(400, b'{"detail": "no boom here"}')
    steps = [{"tool": "search", "input": body.get("q")}]
    answer = {"result": {"text": f"agent says {body.get('q')}", "parts": [1, {"deep": body}]}, "steps": steps}
    return Reply(200, json.dumps(answer).encode())


def _events(body: dict[str, Any]) -> Reply:
    frames = [{"delta": word} for word in f"agent says {body.get('q')}".split()]
    return _stream([*frames, {"delta": "."} if "empty" not in str(body) else {}], done=True)


def _toolkit(body: dict[str, Any]) -> Reply:
    assert body["?"] == "filter_steps=none"
    if "fails" in str(body):
        return _stream([{"value": "half"}, {"error": {"code": 7, "message": "the tool broke"}}])
    return _stream([{"value": f"{word} "} for word in f"toolkit says {body['input_message']}".split()])


def _stream(frames: list[dict[str, Any]], *, done: bool = False) -> Reply:
    lines = [f"data: {json.dumps(frame)}\n\n" for frame in frames]
    text = 'event: start\nintermediate_data: {"x": 1}\n\n' + "".join(lines) + ("data: [DONE]\n\n" if done else "")
    return Reply(200, text.encode(), {"Content-Type": "text/event-stream"})


class Answers(ModelServer):
    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        made = super().completion(body)
        question = question_of(body)
        (choice,) = made["choices"]
        if "judge" in question:
            good = "good" in question
            said = {"quality": 4 if good else 2, "tone": "kind" if good else "rude"}
            choice["message"]["content"] = "no JSON" if "words" in question else json.dumps(said)
        if "thought" in question:
            choice["message"]["content"] = "<think>so</think>done"
        if "logprobs" in question:
            token = {"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": -1.5}]}
            choice["logprobs"] = {"content": [token]}
        made |= {
            "id": "1",
            "created": 1,
            "trace": {"own": [question]},
        }  # fixed values, so that every caller gets the same answer
        return made
