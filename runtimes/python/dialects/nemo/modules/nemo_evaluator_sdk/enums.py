"""Names the built-in metrics and the model interfaces."""

from __future__ import annotations

from enum import Enum


class MetricType(str, Enum):
    """Built-in metrics that come with these modules."""

    BLEU = "bleu"
    ROUGE = "rouge"
    F1 = "f1"
    EXACT_MATCH = "exact-match"
    STRING_CHECK = "string-check"
    NUMBER_CHECK = "number-check"
    TOOL_CALLING = "tool-calling"
    LLM_JUDGE = "llm-judge"


class AgentFormat(str, Enum):
    """The API by which an agent is called."""

    GENERIC = "generic"
    NEMO_AGENT_TOOLKIT = "nemo_agent_toolkit"


class ModelFormat(str, Enum):
    """The API by which a model is called."""

    NVIDIA_NIM = "nim"
    OPEN_AI = "openai"
    LLAMA_STACK = "llama_stack"
