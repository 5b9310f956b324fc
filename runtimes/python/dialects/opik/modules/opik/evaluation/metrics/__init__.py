"""Base classes of custom metrics, and the type of their results."""

from opik.evaluation.metrics import base_metric as base_metric
from opik.evaluation.metrics import score_result as score_result
from opik.evaluation.metrics.base_metric import BaseMetric as BaseMetric
from opik.evaluation.metrics.conversation import conversation_thread_metric
from opik.exceptions import MetricComputationError as MetricComputationError

ConversationThreadMetric = conversation_thread_metric.ConversationThreadMetric
