"""Decorators of metrics."""

from ragas.metrics.decorator import discrete_metric as discrete_metric
from ragas.metrics.decorator import numeric_metric as numeric_metric
from ragas.metrics.decorator import ranking_metric as ranking_metric
from ragas.metrics.result import MetricResult as MetricResult
