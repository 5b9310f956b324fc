"""Calls agents over HTTP that produce the outputs of online jobs: builds the requests and reads the answers."""

import asyncio
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import httpx
from pydantic import Field, ValidationError

from evaluator_host.platform.datasets.mapping import is_row, is_template
from evaluator_host.platform.datasets.template import compiled
from evaluator_host.platform.http.bodies import Body, Few
from evaluator_host.platform.models.agent_answers import (
    AgentAnswerError,
    input_message,
    parse_path,
    read_stream,
    read_whole,
)
from evaluator_host.platform.models.endpoint import ANSWER_BYTES, Completion, Endpoint, Fault, ModelAnswer, read_body
from evaluator_host.platform.models.prompts import messages_of
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import Json
from evaluator_host.types.jobs import Target
from evaluator_host.types.json_values import VALUE_DEPTH, InvalidJson, decode_json, nests_within


class AgentIn(Body):
    """How a job calls an agent: the request, and the part of the agent's answer that is the output."""

    body: dict[str, Any] | Literal["request", "input_message"]
    response_path: str = Field(min_length=1, max_length=1000)
    trajectory_path: str | None = Field(None, max_length=1000)
    stream: bool = False
    joined: bool = False
    query: Annotated[dict[str, str], Few] = Field(default_factory=dict, max_length=100)
    field: Literal["response_path", "nat.response_path"] = "response_path"


def require(agent: dict[str, Json]) -> None:
    """Check the settings with which a job calls an agent; `agent` is an `AgentIn` as JSON.

    Raises:
      InvalidRequest: a field or a path is not valid.
    """
    try:
        known = AgentIn.model_validate(agent)
        for path in filter(None, (known.response_path, known.trajectory_path)):
            parse_path(path)
    except ValidationError as error:
        found = [(".".join(map(str, one["loc"])), one["msg"]) for one in error.errors()]
        problems = tuple(Problem(f"target.agent.{where}", message) for where, message in found)
        raise InvalidRequest(f"the target is not valid: {problems[0].message}", problems=problems) from error
    except ValueError as error:
        hint = "write it as $.answer, $.choices[0].text, $['a b'], $..text or $.parts[*]"
        raise InvalidRequest.of("target.agent", str(error), hint, what="target") from error


def payload_of(target: Target, record: dict[str, Any]) -> Json:
    """Return the body of the request to an agent for one record of the data set.

    Raises:
      BadTemplate: the record does not fit a template.
    """
    messages = messages_of(target, record)
    request = {"prompt": messages[0]["content"]} if target.completion else {"messages": messages}
    columns = {**(record.get("inputs") or {}), **record} if is_row(record) else record
    request |= _rendered(target.inference, columns)
    body = (target.agent or {})["body"]
    if isinstance(body, dict):
        return _rendered(body, {**request, "request": request})
    return request if body == "request" else {"input_message": input_message(request)}


def _rendered(value: Json, names: dict[str, Any]) -> Json:
    if isinstance(value, dict):
        return {name: _rendered(one, names) for name, one in value.items()}
    if isinstance(value, list):
        return [_rendered(one, names) for one in value]
    if not isinstance(value, str) or not is_template(value):
        return value
    made = compiled(value).render(names)
    return decode_json(made.encode()) if "tojson" in value and isinstance(made, str) else made


class AgentEndpoint(Endpoint):
    """Calls one agent.

    In a stored answer, `answer` is the JSON that the agent sent, or the last event of its stream, and `agent` in
    `response` has the output.
    """

    def __init__(self, target: Target, key: str | None, client: httpx.AsyncClient) -> None:
        super().__init__(target, key, client)
        self._agent = AgentIn.model_validate(target.agent)
        if self._agent.stream:
            self._headers["Accept"] = "text/event-stream, application/json"

    async def ask(self, messages: Any) -> ModelAnswer:
        """Send a payload from `payload_of` to the agent, and return its answer or the error; never raises."""
        query = f"?{urlencode(self._agent.query)}" if self._agent.query else ""
        return await self._ask(query, messages, self._completion)

    async def _read(self, response: httpx.Response, read: Any) -> Completion:
        if not response.is_success:
            raise await self._refused(response)
        status = response.status_code
        data = await read_body(response, ANSWER_BYTES + 1)
        if len(data) > ANSWER_BYTES:
            raise Fault(f"the answer is longer than {ANSWER_BYTES >> 20} MB", status=status, again=False)
        try:
            found: Completion = await asyncio.to_thread(lambda: self._redact.value(read(data)))
        except (InvalidJson, AgentAnswerError, ValueError, RecursionError) as error:
            raise Fault(f"the agent's answer has no output: {error}", status=status, again=False) from error
        return found

    def _completion(self, data: bytes) -> Completion:
        agent = self._agent
        how: dict[str, Any] = {
            "path": agent.response_path,
            "field": agent.field,
            "trajectory_path": agent.trajectory_path,
        }
        if agent.stream:
            lines = data.decode("utf-8", "replace").splitlines()
            response, answer = read_stream(lines, **how, joined=agent.joined)
        else:
            answer = decode_json(data)
            response = read_whole(answer, **how)
        if not nests_within(answer, VALUE_DEPTH - 2) or not nests_within(response, VALUE_DEPTH - 2):
            raise ValueError(f"it is nested more than {VALUE_DEPTH - 2} levels deep")
        output = response["choices"][0]["message"]["content"]
        return Completion(output, {"answer": answer}, {"agent": response})
