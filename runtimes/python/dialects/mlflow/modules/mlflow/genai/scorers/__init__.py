"""Scorers: the base class, and the decorator for functions."""

from mlflow.genai.scorers.base import Scorer as Scorer
from mlflow.genai.scorers.base import scorer as scorer
