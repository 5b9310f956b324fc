"""Evaluators of kind `judge`. The user gives a form (prompt, model, scale), and the host generates code from it."""

from dataclasses import replace
from typing import Annotated, Any, Final, TypeAlias

from pydantic import ConfigDict, FailFast, Field, model_validator

from evaluator_host.engine.contracts.judge.dialect import judge_code
from evaluator_host.platform.http.bodies import Body
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import Contract, Evaluator, Language
from evaluator_host.types.warnings import threshold_notes

_EXAMPLES: Final = 32
_Number: TypeAlias = float | Annotated[int, Field(ge=-(1 << 53), le=1 << 53)]
_Text = Annotated[str, Field(min_length=1, max_length=65_536)]


class _Part(Body):
    model_config = ConfigDict(frozen=False, allow_inf_nan=False)


class ScaleIn(_Part):
    """The range of numbers that a judge may give as a score."""

    min: _Number
    max: _Number


class JudgeLabelIn(_Part):
    """A label that a judge may give, and the score that it stands for."""

    label: str = Field(min_length=1, max_length=200)
    score: _Number
    description: str | None = Field(None, max_length=4000)


class ExampleIn(_Part):
    """An example for the prompt: a row, and the answer that the judge should give."""

    inputs: dict[str, Any] = Field(default_factory=dict)
    outputs: Any = None
    answer: _Number | str = Field(description="A number of the scale, or a label.")
    reason: str = Field("", max_length=4000)


class JudgeIn(_Part):
    """An evaluator without code: a model that judges rows by a prompt, and answers on a scale or with a label."""

    model: str = Field(min_length=1, max_length=300, description="A registered model.")
    prompt: _Text = Field(
        description="Template of the prompt. It may use {{ inputs.question }}, {{ outputs }} and columns by name."
    )
    system: str | None = Field(
        None, max_length=65_536, description="System message. The host adds the format in which the model must answer."
    )
    name: str = Field("score", pattern=r"^[a-z0-9_]{1,60}$", description="Name of the score.")
    scale: ScaleIn | None = Field(None, description="Range of the score. Default without labels: 0 to 1.")
    labels: Annotated[list[JudgeLabelIn], FailFast()] = Field(
        default_factory=list, max_length=32, description="Labels from which the judge chooses, in place of a scale."
    )
    explains: bool = Field(True, description="The judge gives a reason before its score.")  # noqa: FBT003
    structured: bool = Field(True, description="Request an answer that fits a JSON schema (response_format).")  # noqa: FBT003
    examples: Annotated[list[ExampleIn], FailFast()] = Field(
        default_factory=list, max_length=_EXAMPLES, description="Few-shot rows."
    )
    inference: dict[str, Any] = Field(
        default_factory=lambda: {"temperature": 0}, description="Parameters of the request: temperature, max_tokens."
    )

    @model_validator(mode="after")
    def _fits(self) -> "JudgeIn":
        if self.labels and self.scale is not None:
            raise ValueError("give scale or labels, not both")
        scale = None if self.labels else self.scale or ScaleIn(min=0, max=1)
        if scale is not None and scale.min >= scale.max:
            raise ValueError("scale.min must be less than scale.max")
        names = [one.label for one in self.labels]
        if len(set(names)) != len(names):
            raise ValueError("two labels are equal")
        for example in self.examples:
            fits = example.answer in names if scale is None else _within(example.answer, scale)
            if not fits:
                raise ValueError(
                    f"an example has the answer {example.answer!r}, which is neither in the scale nor a label"
                )
        self.scale = scale
        return self

    def to_model(self, evaluator: Evaluator) -> Evaluator:
        """Return `evaluator` with the code that the host generates from this form.

        Raises:
          InvalidRequest: the threshold is outside the scale.
        """
        form = self.model_dump(mode="json")
        scores = [one.score for one in self.labels]
        scores += [] if self.scale is None else [self.scale.min, self.scale.max]
        if notes := threshold_notes(evaluator.threshold, min(scores), max(scores)):
            problem = Problem("evaluator.threshold", notes[0].message, notes[0].remedy)
            raise InvalidRequest(notes[0].message, problems=(problem,))
        return replace(
            evaluator,
            code=judge_code(form),
            language=Language.PYTHON,
            contract=Contract.JUDGE,
            models=(self.model,),
            judge=form,
        )


def _within(answer: float | str, scale: ScaleIn) -> bool:
    return not isinstance(answer, str) and scale.min <= answer <= scale.max
