"""A model server whose models give fixed answers, for evaluators that ask a model."""

import json
from collections.abc import Mapping
from typing import Any

from tests.model_server import ModelServer


class ScriptedModels(ModelServer):
    """Gives each model's answer, keyed by the model's name, to every request: as text, or as arguments of a tool."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        super().__init__(plays_all=True)
        self._answers = answers

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        said, text = super().completion(body), self._answers[body["model"]]
        message = said["choices"][0]["message"]
        if "tool_calls" in message:
            message["tool_calls"][0]["function"]["arguments"] = text
        else:
            message["content"] = text
        return said

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        said, text = super().answer(path, body), self._answers[body["model"]]
        for part in said.get("output", ()):
            part["content"][0]["text"] = text
        for part in said.get("content", ()):
            part.update({"input": json.loads(text)} if part["type"] == "tool_use" else {"text": text})
        return said
