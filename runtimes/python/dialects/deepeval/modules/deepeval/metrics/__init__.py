"""Base classes of custom metrics."""

from deepeval.metrics.base_metric import BaseConversationalMetric as BaseConversationalMetric
from deepeval.metrics.base_metric import BaseMetric as BaseMetric
