"""Request bodies that contain evaluators, rows and cases. Converts them to the host's types."""

from functools import cached_property
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

import orjson
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    FailFast,
    Field,
    PrivateAttr,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from evaluator_host.engine.contracts.otlp import with_spans
from evaluator_host.platform.evaluators.cases import MOST_BYTES, MOST_CASES, read_expect
from evaluator_host.platform.evaluators.judges import JudgeIn
from evaluator_host.platform.http.bodies import MOST, Body, Few, example, fields_of, require_small
from evaluator_host.platform.http.pins import AutoPinsIn, LanguageIn, Minor, pin_texts
from evaluator_host.types.errors import InvalidRequest, Problem
from evaluator_host.types.evaluator import (
    Contract,
    EncodedRow,
    Evaluator,
    EvaluatorSettings,
    Isolation,
    Language,
    Limits,
    ModelBudget,
    Policy,
    Replay,
    Row,
)
from evaluator_host.types.json_values import encode_json, memory_bytes

EXACT_MATCH = (
    "def evaluate(inputs, outputs, trace):\n    return 1.0 if outputs == inputs.get('correct_answer') else 0.0\n"
)
_FILES: Final = 500
_DATA_FILES: Final = 2000
_KNOWN: Final = 256  # maximum number of evaluators of earlier requests in the cache
_KNOWN_BYTES: Final = 16 << 10  # maximum size of an evaluator in the cache, as JSON
_KNOWN_MEMORY: Final = 128 << 10  # maximum memory of an evaluator in the cache, once decoded


def _known_expect(given: Any) -> Any:
    read_expect(given)
    return given


@fields_of(Limits)
class LimitsIn(Body):
    """Limits for one row. Each has a default and an upper limit set by the operator (`GET /v1/info`)."""


@fields_of(EvaluatorSettings)
class SettingsIn(Body):
    """Settings for calling the code."""

    config: Annotated[dict[str, Any], BeforeValidator(require_small)] = Field(
        default_factory=dict, description="Arguments of the evaluator's class, or its configuration."
    )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the same object, so that pydantic does not copy this default for each request; nothing changes it."""
        return self


@fields_of(ModelBudget)
class BudgetIn(Body):
    """Limits on the use of granted models. Default: the operator's limits, if there are any."""

    def to_model(self) -> ModelBudget:
        """Return the budget in the type that the service uses."""
        return ModelBudget(**vars(self))


class CodeSecretIn(Body):
    """A reference to a secret of the workspace, by its name."""

    secret: str = Field(min_length=1, max_length=255)


Variable: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
GrantName: TypeAlias = Annotated[str, Field(min_length=1, max_length=300)]


class EvaluatorIn(Body):
    """An evaluator: its code and settings."""

    judge: JudgeIn | None = Field(None, description="A judge without code, in place of `code`; see docs/models.md.")
    code: str = Field(description="Source code as pasted. A code fence, line numbers, CRLF and BOM are removed.")
    language: LanguageIn = Language.PYTHON
    contract: Contract = Field(Contract.AUTO, description="How the code is called. auto: inferred from the code.")
    packages: AutoPinsIn = Field(
        default_factory=list,
        description="Exact pins of pip or npm packages: numpy==2.1.0, lodash@4.17.21; or auto: the host finds the "
        "packages that the code imports.",
    )
    threshold: float | None = Field(None, allow_inf_nan=False, description="A row passes if score >= threshold.")
    settings: SettingsIn = SettingsIn()
    limits: LimitsIn = LimitsIn()
    policy: Policy = Field(
        Policy.NONE, description="restricted: run under RestrictedPython inside the sandbox (Python only)."
    )
    python: Minor | None = None
    files: Annotated[dict[str, str], Few] = Field(
        default_factory=dict,
        max_length=_FILES,
        description="Further files that the code imports or reads, keyed by path: helpers/text.py.",
    )
    path: str | None = Field(
        None, description="Path of the code among its files: evals/score.py. Default: evaluator.py in the root folder."
    )
    data: Annotated[dict[str, str], Few] = Field(
        default_factory=dict,
        max_length=_DATA_FILES,
        description="Data files that the code reads, keyed by path from the code's folder: the digests that POST "
        "/v1/data returned.",
    )
    models: list[GrantName] = Field(
        default_factory=list,
        max_length=32,
        description="Registered models that the code may call: judge-small, or gpt-4o=judge-small if the code names "
        "it gpt-4o.",
    )
    budget: BudgetIn = Field(BudgetIn(), description="Limits for one row's use of these models.")
    network: list[GrantName] = Field(
        default_factory=list,
        max_length=32,
        description="Other hosts that the code may reach, if the operator allows them: api.example.com:443.",
    )
    secrets: Annotated[dict[Variable, CodeSecretIn | str], Few] = Field(
        default_factory=dict,
        max_length=16,
        description="Secrets that the code gets if the operator allows it, keyed by environment variable: "
        '{"TOKEN": {"secret": "crm"}}.',
    )

    @model_validator(mode="before")
    @classmethod
    def _without_code(cls, given: Any) -> Any:
        judged = isinstance(given, dict) and given.get("judge") is not None and "code" not in given
        return {**given, "code": ""} if judged else given

    def to_model(self) -> Evaluator:
        """Return the evaluator in the type that the service uses."""
        return self._made

    @cached_property
    def _made(self) -> Evaluator:
        made = self._to_model()
        if self.judge is not None and self.code:
            problem = Problem("evaluator.judge", "the evaluator has both `code` and `judge`", "give only one of them")
            raise InvalidRequest("the evaluator has both code and a judge; give only one of them", problems=(problem,))
        return made if self.judge is None else self.judge.to_model(made)

    def _to_model(self) -> Evaluator:
        return Evaluator(
            code=self.code,
            language=self.language,
            contract=self.contract,
            packages=pin_texts(self.packages, self.language),
            threshold=self.threshold,
            settings=EvaluatorSettings(**vars(self.settings)),
            limits=Limits(**vars(self.limits)),
            policy=self.policy,
            python=self.python,
            files=self.files,
            path=self.path,
            data=self.data,
            models=tuple(self.models),
            budget=self.budget.to_model(),
            network=tuple(self.network),
            secrets={name: one if isinstance(one, str) else one.secret for name, one in self.secrets.items()},
        )


_known: Final[dict[bytes, EvaluatorIn]] = {}  # evaluators of earlier requests, keyed by their JSON


def _validated_once(given: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Return the evaluator of an earlier request with the same JSON. If there is none, validate the JSON."""
    try:
        text = orjson.dumps(given)
    except TypeError:  # raised for an integer beyond 64 bits, or for very deep nesting
        return validate(given)
    found = _known.get(text)
    if found is None:
        found = validate(given)
        # the memory budget of requests does not cover the cache, and a short text may contain thousands of objects
        if len(text) <= _KNOWN_BYTES and memory_bytes(text) <= _KNOWN_MEMORY:
            if len(_known) >= _KNOWN:
                _known.clear()
            _known[text] = found
    return found


EvaluatorRef: TypeAlias = Annotated[
    Annotated[EvaluatorIn, WrapValidator(_validated_once), Tag("<object>")] | Annotated[str, Tag("<name>")],
    Discriminator(lambda value: "<name>" if isinstance(value, str) else "<object>"),
]
"""An evaluator, or the name of a stored one. An error in an object names the faulty fields of that object."""

_EvaluatorField: TypeAlias = Annotated[
    EvaluatorRef, Field(description="An evaluator, or the name of a stored one: exact-match, exact-match@3.")
]


class RowIn(Body):
    """One row: the arguments with which an evaluator is called."""

    inputs: dict[str, Any] = Field(
        default_factory=dict, description="Columns of the test case, or inputs of the application."
    )
    outputs: Any = Field(None, description="Output of the application. Falsy values are passed on unchanged.")
    trace: Annotated[dict[str, Any] | None, BeforeValidator(with_spans)] = Field(
        None,
        description="Trace of the application: spans by id (docs/contracts.md), OTLP/JSON, a list of spans, or a "
        "stored trace.",
    )
    variables: dict[str, Any] | None = Field(
        None, description="Arguments of main(), or further fields that the evaluator's platform passes."
    )
    criteria: Any = Field(
        None, description="Evaluation criteria of this test case, for evaluators of platforms that have criteria."
    )
    messages: Annotated[list[dict[str, Any]], Field(fail_fast=True)] | None = Field(
        None,
        description="A conversation of {role, content, tool_calls}. Also passed as `inputs.messages`; its last "
        "answer is `outputs`.",
    )

    @property
    def gives_outputs(self) -> bool:
        """Whether the request has outputs for this row, even if they are null."""
        return "outputs" in self.model_fields_set

    def to_row(self) -> Row:
        """Return the row with the decoded fields of this body."""
        return Row(self.inputs, self.outputs, self.trace, self.variables, self.criteria, messages=self.messages)

    def given(self) -> Row | EncodedRow:
        """Return the row as the service gets it: decoded, or as JSON for an `EncodedRowIn`."""
        return self.to_row()


class EncodedRowIn(RowIn):
    """One row that stays JSON. The fields of this object contain short placeholders instead of the row's values.

    The placeholders have the same types as the values. There is a separate class for such rows, because pydantic's
    private attributes would slow down every other row.
    """

    _encoded: EncodedRow = PrivateAttr()

    def keep_encoded(self, row: EncodedRow) -> Self:
        """Store the row as encoded JSON, and return this body itself."""
        self._encoded = row
        return self

    @property
    def gives_outputs(self) -> bool:
        """Whether the request has outputs for this row, even if they are null."""
        return "outputs" in self._encoded.fields

    def given(self) -> EncodedRow:
        """Return the row that `keep_encoded` stored."""
        return self._encoded


ReplayField: TypeAlias = Annotated[
    Replay,
    Field(
        description="How to use recorded answers of granted models. prefer: use them, and record new ones. "
        "require: use only recorded answers."
    ),
]


class EvaluateIn(RowIn):
    """Body of `POST /v1/evaluate`: an evaluator and one row."""

    model_config = example(
        evaluator={"code": EXACT_MATCH}, inputs={"country": "France", "correct_answer": "Paris"}, outputs="Paris"
    )

    evaluator: _EvaluatorField
    replay: ReplayField = Replay.OFF


class EncodedEvaluateIn(EncodedRowIn, EvaluateIn):
    """Body of `POST /v1/evaluate` with a row that stays JSON."""


class BatchIn(Body):
    """Body of `POST /v1/evaluate/batch`: an evaluator and its rows."""

    model_config = example(
        evaluator={"code": EXACT_MATCH, "threshold": 0.5},
        rows=[
            {"inputs": {"correct_answer": "Paris"}, "outputs": "Paris"},
            {"inputs": {"correct_answer": "Rome"}, "outputs": "Milan"},
        ],
    )

    evaluator: _EvaluatorField
    rows: Annotated[list[RowIn], FailFast()]
    isolation: Isolation = Field(
        Isolation.ROW,
        description="row: a process for each row. batch: rows may share one (faster; state can leak between them).",
    )
    outputs: Literal["none"] | None = Field(
        None,
        description="none: the rows need no outputs. Otherwise code that reads outputs is refused if no row has any.",
    )
    replay: ReplayField = Replay.OFF

    @property
    def may_lack_outputs(self) -> bool:
        """Whether rows may lack outputs: the field `outputs` says so, or a row gives outputs, even if they are null."""
        return self.outputs is not None or any(row.gives_outputs for row in self.rows)

    def given(self) -> list[Row | EncodedRow]:
        """Return the rows for the service, each from `RowIn.given`. For 10,000 rows this takes 50 ms."""
        return [row.given() for row in self.rows]


class CaseIn(RowIn):
    """A test case: a row and the result that is expected for it."""

    case: str | None = Field(None, max_length=200, description="Name of the case.")
    expect: Annotated[dict[str, Any] | str | float, AfterValidator(_known_expect)] = Field(
        description='{"score": 1, "tolerance": 0.05}, "1 ± 0.05", ">= 0.5", "passed", "fails"; see docs/jobs.md.'
    )

    def to_case(self) -> dict[str, Any]:
        """Convert the case to a dict that contains only the fields that are set in the request."""
        return {name: value for name, value in dict(self).items() if name in self.model_fields_set}


def case_dicts(cases: list[CaseIn]) -> list[dict[str, Any]]:
    """Convert test cases to the dicts in which they are stored.

    Raises:
      InvalidRequest: the cases take more than 1 MB together.
    """
    found = [one.to_case() for one in cases]
    if len(encode_json(found)) > MOST_BYTES:
        raise InvalidRequest(
            f"the cases of an evaluator may take at most {MOST_BYTES >> 20} MB; put further rows into a data set"
        )
    return found


CasesIn: TypeAlias = Annotated[
    Annotated[list[CaseIn], Field(fail_fast=True)] | None,
    Field(max_length=MOST_CASES, description="Test cases: rows, each with the result that is expected."),
]


class CheckIn(Body):
    """Body of `POST /v1/check`: an evaluator, and its cases."""

    model_config = example(evaluator={"code": EXACT_MATCH})

    evaluator: _EvaluatorField
    cases: CasesIn = Field(None, description="Test cases to run. Default: the cases of the stored evaluator.")


class EditorIn(Body):
    """Body of `POST /v1/editor`: code, and a question about a position in it."""

    model_config = example(evaluator={"code": "import json\njson."}, what="completions", line=2, column=6)

    evaluator: EvaluatorIn = Field(description="Python code, its packages and its files.")
    what: Literal["completions", "hover", "signature", "problems"] = Field(description="The question.")
    line: int = Field(1, ge=1, le=MOST, description="Line of the cursor, from 1.")
    column: int = Field(1, ge=1, le=MOST, description="Column of the cursor, from 1: `json.|` is column 6.")
    given: dict[str, Any] = Field(
        default_factory=dict,
        description="Values of the function's parameters, keyed by name; the editor derives types from them.",
    )
