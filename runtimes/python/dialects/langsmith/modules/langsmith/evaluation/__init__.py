"""Results of evaluators."""

from langsmith.evaluation.evaluator import (
    EvaluationResult as EvaluationResult,
)
from langsmith.evaluation.evaluator import (
    EvaluationResults as EvaluationResults,
)
from langsmith.evaluation.evaluator import (
    run_evaluator as run_evaluator,
)
