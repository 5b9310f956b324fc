"""Implements two rules that many metrics share: the name of a metric, and how texts are normalized for comparison."""

from __future__ import annotations

import re
import string
from enum import Enum

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_text(s: str) -> str:
    """Normalise a text: lower case, no punctuation, no articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", s.lower().translate(_NO_PUNCTUATION)).split()) if s else ""


def metric_type_name(metric: object) -> str:
    """Return a metric's name: its `type`, or the name of its class if `type` is not a string."""
    name = getattr(metric, "type", None)
    if isinstance(name, str) and isinstance(name, Enum):
        return str(name.value) if type(name).__name__ == "MetricType" else name
    return name if isinstance(name, str) else type(metric).__name__
