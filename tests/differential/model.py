"""A model that answers questions, calls tools, and judges what begins with `judge:`."""

import json
from typing import Any

from tests.model_server import Fault, ModelServer, Reply, question_of


def model_server() -> ModelServer:
    """Return the model of the cases: `boom` in a question is refused, `twice` fails once, answers depend on the question only."""
    server = Answers(completes=True)

    def fault(question: str, attempt: int) -> Fault:
        if "boom" in question:
            return Reply(
                400, b'{"error": {"message": "no boom here", "type": "x"}}', {"Content-Type": "application/json"}
            )
        return 503 if "twice" in question and attempt % 2 else None

    server.faults = fault
    return server


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
        made |= {"id": "1", "created": 1, "trace": {"own": [question]}}  # the same whoever asks first
        return made
