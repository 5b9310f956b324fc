"""A model server for tests of judges: the words in a question determine the score and label in the answer."""

import json

from tests.model_server import Fault, ModelServer, Reply

_NO_LIMIT = "'max_tokens' is not supported with this model"


def judge_server(key: str | None = None) -> ModelServer:
    """Return a server that answers with judgements.

    The server refuses questions that contain `boom`, and fails once for a question that contains `twice`.
    """
    server = ModelServer(key=key)

    def said(question: str, attempt: int) -> Fault:
        if "boom" in question:
            return 400
        if "twice" in question and attempt == 1:
            return 503
        if "limits" in question and "max_tokens" in server.bodies[-1]:
            return Reply(400, json.dumps({"error": {"message": _NO_LIMIT}}).encode())
        good = "good" in question
        text = json.dumps({"quality": 4 if good else 2, "tone": "kind" if good else "rude"})
        if "words" in question:
            text = "no JSON at all"
        if "thought" in question:
            text = f"<think>{{}}</think>{text}"
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": "x", "object": "chat.completion", "created": 1, "model": "judge", "choices": [choice]}
        return Reply(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    server.faults = said
    return server
