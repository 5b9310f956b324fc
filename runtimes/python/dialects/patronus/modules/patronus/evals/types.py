"""The result of an evaluator."""


class EvaluationResult:
    """Score, verdict, text, explanation and metadata; each may be None."""

    def __init__(
        self,
        *,
        score=None,
        pass_=None,
        text_output=None,
        metadata=None,
        explanation=None,
        tags=None,
        dataset_id=None,
        dataset_sample_id=None,
        evaluation_duration=None,
        explanation_duration=None,
    ):
        self.score = None if score is None else float(score)
        self.pass_ = None if pass_ is None else bool(pass_)
        self.text_output = text_output
        self.metadata = metadata
        self.explanation = explanation
        self.tags = tags
        self.dataset_id = dataset_id
        self.dataset_sample_id = dataset_sample_id
        self.evaluation_duration = evaluation_duration
        self.explanation_duration = explanation_duration

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"EvaluationResult({given})"
