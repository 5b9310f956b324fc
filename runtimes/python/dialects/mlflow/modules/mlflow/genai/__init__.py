"""The subpackage for scorers."""

from mlflow.genai import scorers as scorers
from mlflow.genai.scorers import Scorer as Scorer
from mlflow.genai.scorers import scorer as scorer
