"""Frozen types that every package shares: evaluator, row, limits, sandbox.

This module does no I/O and decides nothing.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from .doc import Doc
from .json_texts import Octets
from .plugin_folders import IS_CLIENT, contracts_of_plugins

Json: TypeAlias = Any
"""A decoded JSON value: None, bool, int, float, str, list of Json, dict of str to Json."""


AUTO_PACKAGES: Final = "auto"
"""In place of a pin: the host then chooses packages for the imports that no pin provides."""


class Language(StrEnum):
    """The programming language of an evaluator."""

    PYTHON = "python"
    JAVASCRIPT = "javascript"
    TYPESCRIPT = "typescript"

    @property
    def runner(self) -> str:
        """Return the folder in `runtimes/` of the program that runs this language; TypeScript uses JavaScript's."""
        return "python" if self is Language.PYTHON else "javascript"


class Contract(StrEnum):
    """The interface of an evaluator: how it is called and what it may return.

    Each member except `auto` is the name of a dialect: one way to write evaluators.

    The host's own contracts are listed here; plugins add members, such as `Contract("acme")` for a folder `acme`.
    """

    AUTO = "auto"  # for an evaluator whose contract the sandbox infers from the code
    EVALUATE = "evaluate"
    EVALUATE_V1 = "evaluate-v1"
    MAIN = "main"
    FUNCTION = "function"
    SCRIPT = "script"
    JUDGE = "judge"  # for code that is generated from a form
    vars().update((name.upper().replace("-", "_"), name) for name in contracts_of_plugins())

    @classmethod
    def _missing_(cls, value: object) -> "Contract | None":
        """In the client, create a member for a contract of a plugin that only the host has; in a host, return None."""
        if not (IS_CLIENT and isinstance(value, str)):
            return None
        member = str.__new__(cls, value)
        member._name_, member._value_ = value.upper().replace("-", "_"), value
        return member


@dataclass(frozen=True, slots=True)
class StandIn:
    """The host's own small modules ("light modules"), which replace a third-party package inside sandboxes.

    Attributes:
      folder: The folder of the modules, below the folder of the Python runner.
      preimport: The module that a waiting sandbox imports before it gets an evaluator.
    """

    folder: str
    preimport: str


class Policy(StrEnum):
    """Restrictions of the language inside the sandbox; never a security boundary."""

    NONE = "none"
    RESTRICTED = "restricted"


class Isolation(StrEnum):
    """Whether each row gets its own process (Python) or V8 context (JavaScript), or all rows of a batch share one."""

    ROW = "row"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one row."""

    timeout_s: Annotated[float, Doc("Seconds for one row, without waits for a processor.", gt=0)] = 10.0
    memory_mb: Annotated[int, Doc("Memory of the whole sandbox: runner, packages and row, in MB.", ge=32)] = 256
    processes: Annotated[int, Doc("Maximum number of processes and threads of a row.", ge=1)] = 32
    disk_mb: Annotated[int, Doc("Size of /tmp in MB.", ge=1)] = 64
    log_kb: Annotated[int, Doc("How many KB of stdout, and of stderr, to keep.", ge=0)] = 64
    result_kb: Annotated[int, Doc("Maximum size of the returned value as JSON, in KB.", ge=1)] = 1024

    @property
    def has_large_results(self) -> bool:
        """Return whether a result may be so large that encoding it would keep the event loop busy."""
        return self.result_kb > 1024


@dataclass(frozen=True, slots=True)
class EvaluatorSettings:
    """The evaluator settings that the contract reads."""

    correct_answer_key: Annotated[
        str, Doc("evaluate-v1: the input that is passed as correct_answer, the fourth argument.")
    ] = "correct_answer"
    entry: Annotated[
        str | None, Doc("Name of the function or class to call, if the code has several; `*` for all of them.")
    ] = None
    config: Annotated[dict[str, Json], Doc("Arguments of the evaluator's class, or its configuration.")] = field(
        default_factory=dict
    )
    score_output: Annotated[
        str | None,
        Doc(
            "Name of the output to use as the score, if there are several; with `entry` `*`, the evaluator whose "
            "score counts."
        ),
    ] = None
    repair: Annotated[bool, Doc("Run code that lost its indentation, if only one indentation fits.")] = False
    integers: Annotated[
        Literal["bigint", "text"] | None,
        Doc("JavaScript, TypeScript: how to pass integers beyond 2^53 - 1, which numbers round."),
    ] = None


class ModelKind(StrEnum):
    """The API of a model's provider: `openai` for every provider that is compatible with OpenAI's API."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class Replay(StrEnum):
    """Whether models' answers are recorded and reused.

    `off`: neither. `prefer`: a recorded answer is used if there is one; otherwise the model is called and its answer is
    recorded. `require`: only recorded answers are used, and no model is called.
    """

    OFF = "off"
    PREFER = "prefer"
    REQUIRE = "require"


@dataclass(frozen=True, slots=True)
class ModelBudget:
    """Limits on the use of models by a row, by a job, or by a workspace in a day; None for no limit."""

    requests: Annotated[int | None, Doc("Number of requests to models; recorded answers do not count.", ge=0)] = None
    tokens: Annotated[int | None, Doc("Number of tokens of requests and answers together.", ge=0)] = None
    cost: Annotated[float | None, Doc("Cost in the currency of the models' prices.", ge=0)] = None


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The user's code and how to run it. `packages` are sorted exact pins (`numpy==2.1.0`), and perhaps `auto`.

    Attributes:
      models: Names of the registered models that the code may call, or `name-in-the-code=registered-name`.
      budget: Limits on one row's use of these models.
      network: Other hosts that the code may reach, `api.example.com:443` or `*.example.com:443`.
      secrets: Names of workspace secrets, keyed by the environment variable in which the code gets the value.
      judge: The definition of a judge from which the code was generated (`evaluators.judges`); None for other code.
      python: Minor version of Python to run on, `3.13`; None for the host's version.
      files: Contents of further files that the code imports or reads, by path from their common root:
        `helpers/text.py`.
      path: Path of the code itself among these files; None for `evaluator.py` (`.js`, `.ts`) in their root.
      data: Digests of stored data files that the code reads, by path from the folder that it runs in.
    """

    code: str
    language: Language = Language.PYTHON
    contract: Contract = Contract.AUTO
    packages: tuple[str, ...] = ()
    threshold: float | None = None
    settings: EvaluatorSettings = EvaluatorSettings()
    limits: Limits = Limits()
    policy: Policy = Policy.NONE
    name: str | None = None
    version: int | None = None
    python: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    path: str | None = None
    models: tuple[str, ...] = ()
    budget: ModelBudget = ModelBudget()
    network: tuple[str, ...] = ()
    secrets: dict[str, str] = field(default_factory=dict)
    judge: dict[str, Json] | None = None
    data: dict[str, str] = field(default_factory=dict)

    @property
    def connects(self) -> bool:
        """Return whether the code may call models, or connect to hosts on the network."""
        return bool(self.models or self.network)

    @property
    def grants(self) -> tuple[str, ...]:
        """Return what the code may use, as listed in results.

        Examples: `model:judge-small`, `network:HOST:443`, `secret:VARIABLE=NAME`.
        """
        if not (self.connects or self.secrets):
            return ()
        models = (f"model:{one}" for one in self.models)
        hosts = (f"network:{one}" for one in self.network)
        return (*models, *hosts, *(f"secret:{variable}={name}" for variable, name in self.secrets.items()))

    @property
    def passing_score(self) -> float:
        """Return the lowest score that counts as passed: the threshold, or else the middle of the scale.

        The form of a judge gives its scale. The scale of code is 0 to 1.
        """
        if self.threshold is not None:
            return self.threshold
        form: dict[str, Any] = self.judge or {}
        scale: dict[str, float] = form.get("scale") or {"min": 0, "max": 1}
        scores = [float(one["score"]) for one in form.get("labels") or ()] or [*map(float, scale.values())]
        return min(scores) / 2 + max(scores) / 2

    @property
    def characters(self) -> int:
        """Return the length of the code and its files together."""
        return len(self.code) + sum(map(len, self.files.values()))


ROW_FIELDS: Final = ("inputs", "outputs", "trace", "variables", "criteria", "messages")
"""Fields of a row that callers may set."""


@dataclass(frozen=True, slots=True)
class Row:
    """The data of one call, before a contract turns it into arguments. `variables` is None when the caller gave none.

    Attributes:
      index: Position in a data set; None to use the position among the rows of the call.
      response: The whole response of the job's model that wrote `outputs`; None if no model wrote them.
      answers: Answers of models to the requests that the evaluator made for this row, keyed by the request's name.
      requests: The requests to models with their responses, `{"request": {…}, "response": {…}}`, in the order of
        `answers`.
      messages: A conversation of messages `{"role", "content", "tool_calls"?}`. The messages are also
        `inputs["messages"]`, and if the row has no outputs, `outputs` is the text of the assistant's last message.
    """

    inputs: dict[str, Json] = field(default_factory=dict)
    outputs: Json = None
    trace: dict[str, Json] | None = None
    variables: dict[str, Json] | None = None
    criteria: Json = None
    response: dict[str, Json] | None = None
    index: int | None = None
    answers: dict[str, Json] = field(default_factory=dict)
    requests: tuple[Json, ...] = ()
    messages: list[Json] | None = None

    @property
    def fields(self) -> dict[str, Json]:
        """Return all fields except the position, the models' answers and the requests to models."""
        return {name: getattr(self, name) for name in (*ROW_FIELDS, "response")}

    @property
    def has_output(self) -> bool:
        """Return whether the row has outputs, or a conversation that may contain outputs."""
        return self.outputs is not None or self.messages is not None

    def __post_init__(self) -> None:
        if self.messages is None:
            return
        object.__setattr__(self, "inputs", {**self.inputs, "messages": self.messages})
        if self.outputs is None:
            object.__setattr__(self, "outputs", last_answer(self.messages))


def last_answer(messages: list[Json]) -> str | None:
    """Return the text of a conversation's last message, or None if the assistant did not write that message."""
    last = messages[-1] if messages else None
    if not isinstance(last, dict) or last.get("role") not in ("assistant", "ai", "model"):
        return None
    content = last.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts) if texts else None


@dataclass(frozen=True, slots=True)
class EncodedRow:
    """A large row, kept as JSON.

    The host does not decode it. A child process does, for calls that need the row's values.

    Attributes:
      fields: Fields of `Row` as JSON, keyed by name; fields that are left out have their defaults.
      index: Position in a data set; None to use the position among the rows of the call.
      answers: Answers of models to the evaluator's requests for this row, keyed by name, as in `Row`.
      requests: The requests to models with their responses, as in `Row`.
    """

    fields: dict[str, Octets]
    index: int | None = None
    answers: dict[str, Json] = field(default_factory=dict)
    requests: tuple[Json, ...] = ()

    @property
    def body(self) -> bytes:
        """Return the fields as one JSON object."""
        return b"{%b}" % b",".join(b"".join((f'"{name}":'.encode(), text)) for name, text in self.fields.items())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields as bytes, because they may be views into a longer text."""
        texts = {name: bytes(text) for name, text in self.fields.items()}
        return EncodedRow, (texts, self.index, self.answers, self.requests)


@dataclass(frozen=True, slots=True)
class Package:
    """One installed package; `requested` is false for a dependency of another package."""

    name: str
    version: str
    requested: bool = True


@dataclass(frozen=True, slots=True)
class Environment:
    """A package set installed for one runtime. `path` is None if the set has no packages.

    Attributes:
      import_ms: Milliseconds that the import of each module took when the set was checked, by module name.
      runtime: `python` or `node`, with the version that the packages were installed for: `python 3.13`.
    """

    digest: str
    language: Language
    runtime: str
    packages: tuple[Package, ...] = ()
    path: Path | None = None
    import_ms: tuple[tuple[str, float], ...] = field(default=(), compare=False)

    @property
    def python(self) -> str | None:
        """Return the minor version of Python for which the environment was built, `3.13`; None if any version works."""
        name, _, version = self.runtime.partition(" ")
        return ".".join(version.split(".")[:2]) if name == "python" and version else None


@dataclass(frozen=True, slots=True)
class DataFolder:
    """A folder of data files that a sandbox can only read; folders with equal digests have equal files.

    Attributes:
      workspace: Digest that stands for the workspace that the folder belongs to.
    """

    digest: str
    path: Path
    workspace: str


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """Everything that is fixed when a sandbox starts.

    Sandboxes with equal specs are interchangeable until they load code.

    Attributes:
      data: Data files of the evaluator; its code finds them in the folder that it runs in.
      stand_in: The host's small modules that replace a package; modules of the environment come first.
      network: Whether the sandbox has this machine's network. Only a command that runs the user's own agent requests
        this.
    """

    language: Language
    environment: Environment
    memory_mb: int = 256
    processes: int = 32
    disk_mb: int = 64
    stand_in: StandIn | None = None
    network: bool = False
    data: DataFolder | None = None
