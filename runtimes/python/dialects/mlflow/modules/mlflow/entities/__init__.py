"""The results of scorers."""

from mlflow.entities.assessment import AssessmentError as AssessmentError
from mlflow.entities.assessment import AssessmentSource as AssessmentSource
from mlflow.entities.assessment import AssessmentSourceType as AssessmentSourceType
from mlflow.entities.assessment import Feedback as Feedback
from mlflow.entities.trace import Trace as Trace
