"""Defines agents, which make the outputs in online runs: any HTTP service, and agents of NeMo Agent Toolkit."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..enums import AgentFormat
from .common import SecretRef

_STRICT = ConfigDict(defer_build=True, extra="forbid")


class NatAgentConfig(BaseModel):
    """How to call an agent of NeMo Agent Toolkit, and which part of its stream is the answer."""

    model_config = _STRICT

    endpoint: str = "/generate/full"
    request_mode: Literal["input_message", "passthrough"] = "input_message"
    query_params: dict[str, str] = Field(default_factory=lambda: {"filter_steps": "none"})
    response_path: str = "$.value"
    response_aggregation: Literal["last", "concat"] = "concat"


class AgentBase(BaseModel):
    """The fields that all agents have."""

    model_config = _STRICT

    url: str
    name: str
    api_key_secret: SecretRef | None = None


class GenericAgent(AgentBase):
    """A service that accepts a JSON body, and answers with JSON or with a stream of server-sent JSON events."""

    format: Literal[AgentFormat.GENERIC] = AgentFormat.GENERIC
    body: dict[str, Any]
    response_path: str
    trajectory_path: str | None = None
    stream: bool = False
    response_aggregation: Literal["last", "concat"] = "last"


class NemoAgentToolkitAgent(AgentBase):
    """An agent of NeMo Agent Toolkit, which answers with a stream."""

    format: Literal[AgentFormat.NEMO_AGENT_TOOLKIT] = AgentFormat.NEMO_AGENT_TOOLKIT
    nat: NatAgentConfig | None = None


Agent = GenericAgent | NemoAgentToolkitAgent
