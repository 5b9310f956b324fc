"""Defines the names of the built-in metrics, and of the APIs for models and agents."""

from __future__ import annotations

from enum import Enum


class MetricType(str, Enum):
    """The built-in metrics that these modules contain."""

    BLEU = "bleu"
    ROUGE = "rouge"
    F1 = "f1"
    EXACT_MATCH = "exact-match"
    STRING_CHECK = "string-check"
    NUMBER_CHECK = "number-check"
    TOOL_CALLING = "tool-calling"
    LLM_JUDGE = "llm-judge"


class AgentFormat(str, Enum):
    """The API that an agent offers."""

    GENERIC = "generic"
    NEMO_AGENT_TOOLKIT = "nemo_agent_toolkit"


class ModelFormat(str, Enum):
    """The API that a model offers."""

    NVIDIA_NIM = "nim"
    OPEN_AI = "openai"
    LLAMA_STACK = "llama_stack"
