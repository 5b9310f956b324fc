"""Scorers, scores and the names of metrics."""

from inspect_ai.scorer.scores import CORRECT as CORRECT
from inspect_ai.scorer.scores import INCORRECT as INCORRECT
from inspect_ai.scorer.scores import NOANSWER as NOANSWER
from inspect_ai.scorer.scores import PARTIAL as PARTIAL
from inspect_ai.scorer.scores import Score as Score
from inspect_ai.scorer.scores import Scorer as Scorer
from inspect_ai.scorer.scores import Target as Target
from inspect_ai.scorer.scores import accuracy as accuracy
from inspect_ai.scorer.scores import mean as mean
from inspect_ai.scorer.scores import scorer as scorer
from inspect_ai.scorer.scores import std as std
from inspect_ai.scorer.scores import stderr as stderr
from inspect_ai.scorer.scores import var as var
