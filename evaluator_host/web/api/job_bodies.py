"""Bodies of jobs as they come over the wire, and their way into the model."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from evaluator_host.dialects.uipath.eval_set import parse_eval_set
from evaluator_host.dialects.uipath.records import rows_of
from evaluator_host.jobs.spec import JobSpec
from evaluator_host.model.evaluator import Evaluator, Isolation
from evaluator_host.schemas.jobs import JobConfig, Target
from evaluator_host.web.api.bodies import EXACT_MATCH, EvaluatorRef


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class InlineRowsIn(_Wire):
    """Rows that a job brings along."""

    rows: list[dict[str, Any]] = Field(min_length=1, description="As lines of a data set: rows, or flat columns.")


class EvalSetIn(_Wire):
    """An eval set of UiPath that a job brings along, with what the agent did."""

    eval_set: dict[str, Any] = Field(description="In the documented dialect, or that of UiPath's command line.")
    executions: list[dict[str, Any]] | None = Field(
        None, description='Per test case {"id", "output", "spans", "error"}; without them a target makes the outputs.'
    )


class JobConfigIn(_Wire):
    """The pace of a job."""

    parallelism: int | None = Field(None, ge=1, le=1024, description="Sandboxes at once; by default the host's choice.")
    limit_samples: int | None = Field(None, ge=1, description="Rows to take, from the first on; by default all.")
    isolation: Isolation = Field(Isolation.ROW, description="batch: rows may share a process, for speed.")
    max_failures: int | None = Field(None, ge=0, description="The job fails when more rows than this have failed.")


class SecretNameIn(_Wire):
    """A secret, by its name."""

    secret: str = Field(min_length=1, max_length=63, description="Name of a secret of the workspace.")


class TargetIn(_Wire):
    """An OpenAI-compatible endpoint that makes the outputs first."""

    base_url: str = Field(min_length=1, max_length=2000, description="https://host/v1")
    model: str = Field(min_length=1, max_length=200, description="Sent as `model`.")
    api_key: SecretNameIn | None = Field(None, description="Sent as a bearer token; by default none is.")
    prompt_template: str | None = Field(None, description="The user's message: {{ question }} is the row's column.")
    messages: list[dict[str, Any]] | None = Field(
        None, min_length=1, max_length=100, description="Instead: messages {role, content}, their contents templates."
    )
    system: str | None = Field(None, description="The system's message, before them; a template too.")
    inference: dict[str, Any] = Field(default_factory=dict, description="Sent along: temperature, max_tokens, …")
    concurrency: int = Field(8, ge=1, le=256, description="Requests at once.")
    timeout_s: float = Field(60.0, gt=0, le=3600, allow_inf_nan=False, description="For one answer.")
    retries: int = Field(4, ge=0, le=20, description="After the first try.")
    completion: bool = Field(
        default=False, description="The prompt is a text to go on with, where the API has /completions."
    )

    def to_model(self) -> Target:
        """Return the target that a job keeps."""
        given = {**dict(self), "messages": tuple(self.messages or ())}
        return Target(**{**given, "api_key": self.api_key.secret if self.api_key else None})


class JobIn(_Wire):
    """Body of `POST /v1/jobs`: evaluators, and the rows they are to score."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "evaluators": [{"code": EXACT_MATCH}],
                    "dataset": {"rows": [{"question": "Capital of France?", "gold": "Paris", "answer": "Paris"}]},
                    "mapping": {"outputs": "answer", "correct_answer": "gold"},
                    "config": {"parallelism": 2},
                }
            ]
        }
    )

    evaluators: list[EvaluatorRef] = Field(
        default_factory=list,
        max_length=100,
        description="Pasted ones, and names of stored ones: exact-match, exact-match@3. None: those of the eval set.",
    )
    dataset: str | InlineRowsIn | EvalSetIn = Field(
        description="Name of a data set, the rows themselves, or an eval set."
    )
    mapping: dict[str, str] = Field(
        default_factory=dict, description="Row fields by column, dotted path or {{ template }}; see docs/jobs.md."
    )
    target: TargetIn | None = Field(None, description="A model that is asked for the outputs first; see docs/jobs.md.")
    config: JobConfigIn = JobConfigIn()

    def to_spec(self) -> JobSpec:
        """Return the spec of the job that `JobService.create_job` takes.

        Raises:
          InvalidRequest: the eval set cannot be taken.
        """
        evaluators: list[Evaluator | str] = [one if isinstance(one, str) else one.to_model() for one in self.evaluators]
        dataset: str | list[dict[str, Any]]
        match self.dataset:
            case EvalSetIn():
                dataset = rows_of(dict(self.dataset))
                evaluators = evaluators or list(parse_eval_set(self.dataset.eval_set).evaluators)
            case InlineRowsIn():
                dataset = self.dataset.rows
            case _:
                dataset = self.dataset
        return JobSpec(
            evaluators=evaluators,
            dataset=dataset,
            mapping=self.mapping,
            target=self.target.to_model() if self.target else None,
            config=JobConfig(**dict(self.config)),
        )
