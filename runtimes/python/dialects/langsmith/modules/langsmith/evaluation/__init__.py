"""Results of evaluators; and functions for experiments, which do nothing here."""

from langsmith import aevaluate as aevaluate
from langsmith import evaluate as evaluate
from langsmith.evaluation.evaluator import (
    EvaluationResult as EvaluationResult,
)
from langsmith.evaluation.evaluator import (
    EvaluationResults as EvaluationResults,
)
from langsmith.evaluation.evaluator import (
    run_evaluator as run_evaluator,
)
