"""Light modules that replace `verifiers` (as in release 0.1.14): parsers and rubrics."""

from verifiers.parsers.parser import MaybeThinkParser, Parser, ThinkParser
from verifiers.parsers.xml_parser import XMLParser
from verifiers.rubrics.rubric import Rubric
from verifiers.types import Info, Messages, RewardFunc, State

__pin__ = "verifiers==0.1.14"
__version__ = "0.1.14"
__all__ = [
    "Environment",
    "Info",
    "MaybeThinkParser",
    "Messages",
    "MultiTurnEnv",
    "Parser",
    "RewardFunc",
    "Rubric",
    "SingleTurnEnv",
    "State",
    "ThinkParser",
    "ToolEnv",
    "XMLParser",
]


class Environment:
    """An environment with its rubric, which cannot make rollouts here."""

    def __init__(self, *, rubric=None, **settings):
        self.rubric = rubric
        self.settings = settings


class SingleTurnEnv(Environment):
    """An environment with a single answer."""


class MultiTurnEnv(Environment):
    """An environment with several turns."""


class ToolEnv(MultiTurnEnv):
    """An environment with tools."""
