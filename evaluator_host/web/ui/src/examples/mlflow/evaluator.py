from mlflow.entities import Feedback
from mlflow.genai.scorers import scorer


@scorer
def exact(outputs, expectations) -> Feedback:
    right = outputs == expectations["expected_response"]
    return Feedback(value=right, rationale="compared as text")
