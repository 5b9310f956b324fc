"""Request bodies as they come over the wire, and their way into the model. Unknown fields are refused by name."""

from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, FailFast, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from evaluator_host.model.evaluator import (
    Contract,
    Evaluator,
    EvaluatorSettings,
    Isolation,
    Language,
    Limits,
    Policy,
    Row,
)

EXACT_MATCH = (
    "def evaluate(inputs, outputs, trace):\n    return 1.0 if outputs == inputs.get('correct_answer') else 0.0\n"
)
_MANY: Final = 100  # several times what any object here has
_PINS: Final = 1000
_MOST: Final = 2**53  # the greatest integer that every JSON parser keeps; the operator's ceilings are far below


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, data: Any) -> Any:
        """Refuse a body of a million unknown fields at once: each would have a message of its own."""
        if isinstance(data, dict) and len(data) > _MANY:
            raise PydanticCustomError("too_many_fields", "there are {count} fields", {"count": len(data)})
        return data


class LimitsIn(_Wire):
    """Ceilings of one row; each has a default and a ceiling of the operator's (`GET /v1/info`)."""

    timeout_s: float = Field(10.0, gt=0, allow_inf_nan=False, description="Wall-clock seconds of one row.")
    memory_mb: int = Field(256, ge=32, le=_MOST, description="Memory of the whole sandbox: runner, packages and row.")
    processes: int = Field(32, ge=1, le=_MOST, description="Processes and threads the row may have.")
    disk_mb: int = Field(64, ge=1, le=_MOST, description="Size of /tmp.")
    log_kb: int = Field(64, ge=0, le=_MOST, description="Kept of stdout, and of stderr.")
    result_kb: int = Field(1024, ge=1, le=_MOST, description="Greatest returned value, as JSON.")


class SettingsIn(_Wire):
    """Settings of a contract."""

    correct_answer_key: str = Field("correct_answer", description="evaluate-v1: which input is the fourth argument.")
    entry: str | None = Field(None, description="Name of the function or class, when the code has several.")
    config: dict[str, Any] = Field(default_factory=dict, description="Arguments of a class: nemo, uipath.")
    score_output: str | None = Field(None, description="nemo: which output of several is the score.")


class PinIn(_Wire):
    """One package at one version."""

    name: str = Field(min_length=1)
    version: str = Field(min_length=1)


def pin_texts(packages: list[str | PinIn], language: Language) -> tuple[str, ...]:
    """Return pins as the service takes them; what is wrong with one is for the service to say."""
    between = "==" if language is Language.PYTHON else "@"
    return tuple(pin if isinstance(pin, str) else f"{pin.name}{between}{pin.version}" for pin in packages)


Minor: TypeAlias = Annotated[
    str, Field(pattern=r"^3\.[0-9]{1,2}$", description="Minor version of Python, 3.13; by default the host's own.")
]


class EvaluatorIn(_Wire):
    """An evaluator as pasted."""

    code: str = Field(description="The source, as it was copied: code fence, line numbers, CRLF and BOM are fine.")
    language: Language = Language.PYTHON
    contract: Contract = Field(Contract.AUTO, description="How the code is called; auto infers it from the code.")
    packages: Annotated[list[str | PinIn], FailFast()] = Field(
        default_factory=list, max_length=_PINS, description="Exact pins of pip or npm packages."
    )
    threshold: float | None = Field(None, allow_inf_nan=False, description="passed = score >= threshold.")
    settings: SettingsIn = SettingsIn()
    limits: LimitsIn = LimitsIn()
    policy: Policy = Field(Policy.NONE, description="restricted: RestrictedPython inside the sandbox (Python only).")
    python: Minor | None = None

    def to_model(self) -> Evaluator:
        """Return the evaluator that the service takes."""
        return Evaluator(
            code=self.code,
            language=self.language,
            contract=self.contract,
            packages=pin_texts(self.packages, self.language),
            threshold=self.threshold,
            settings=EvaluatorSettings(**dict(self.settings)),
            limits=Limits(**dict(self.limits)),
            policy=self.policy,
            python=self.python,
        )


def _spelling(value: Any) -> str:
    return "<name>" if isinstance(value, str) else "<object>"


EvaluatorRef: TypeAlias = Annotated[
    Annotated[EvaluatorIn, Tag("<object>")] | Annotated[str, Tag("<name>")], Discriminator(_spelling)
]
"""An evaluator as pasted, or the name of a stored one; a fault is told of the one that was meant."""


class RowIn(_Wire):
    """The arguments of one call."""

    inputs: dict[str, Any] = Field(default_factory=dict, description="Test-case columns or application inputs.")
    outputs: Any = Field(None, description="What the application produced; falsy values are passed on as they are.")
    trace: dict[str, Any] | None = Field(None, description="The documented trace, OTLP/JSON, or a stored trace.")
    variables: dict[str, Any] | None = Field(None, description="main(): arguments; uipath: what else an execution has.")
    criteria: Any = Field(None, description="uipath: evaluation criteria of this test case.")

    def to_row(self) -> Row:
        """Return the row that the service takes."""
        return Row(self.inputs, self.outputs, self.trace, self.variables, self.criteria)


class EvaluateIn(RowIn):
    """Body of `POST /v1/evaluate`: an evaluator and one row."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "evaluator": {"code": EXACT_MATCH},
                    "inputs": {"country": "France", "correct_answer": "Paris"},
                    "outputs": "Paris",
                }
            ]
        }
    )

    evaluator: EvaluatorRef = Field(description="Pasted, or the name of a stored one: exact-match, exact-match@3.")


class BatchIn(_Wire):
    """Body of `POST /v1/evaluate/batch`: an evaluator and its rows."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "evaluator": {"code": EXACT_MATCH, "threshold": 0.5},
                    "rows": [
                        {"inputs": {"correct_answer": "Paris"}, "outputs": "Paris"},
                        {"inputs": {"correct_answer": "Rome"}, "outputs": "Milan"},
                    ],
                }
            ]
        }
    )

    evaluator: EvaluatorRef = Field(description="Pasted, or the name of a stored one: exact-match, exact-match@3.")
    rows: Annotated[list[RowIn], FailFast()]
    isolation: Isolation = Field(Isolation.ROW, description="batch: the rows may share a process, for speed.")


class CheckIn(_Wire):
    """Body of `POST /v1/check`: an evaluator."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"evaluator": {"code": EXACT_MATCH}}]})

    evaluator: EvaluatorRef = Field(description="Pasted, or the name of a stored one: exact-match, exact-match@3.")


class EnvironmentIn(_Wire):
    """Body of `POST /v1/environments`: a package set."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"language": "javascript", "packages": ["nanoid@5.1.5"]}]}
    )

    language: Language = Language.PYTHON
    packages: Annotated[list[str | PinIn], FailFast()] = Field(
        min_length=1, max_length=_PINS, description="Exact pins of pip or npm packages."
    )
    python: Minor | None = None
