"""Settings of a host, and the folders of its own files. No other module reads environment variables."""

import json
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from evaluator_host.engine.config.host_lists import GrantedHost, ListedHost, ListedHostOrAll, Network, OwnName
from evaluator_host.types.evaluator import Limits, ModelBudget, ModelKind
from evaluator_host.types.names import nearest_name

_PACKAGE: Final = Path(__file__).resolve().parents[2]
_BUNDLED: Final = _PACKAGE / "_bundled"  # folder in a wheel for files that are not Python modules
# the folder of these files: in a wheel, or the root of a checkout
_ROOT: Final = _BUNDLED if _BUNDLED.is_dir() else _PACKAGE.parent

RUNTIMES_DIR: Final = _ROOT / "runtimes"
SANDBOX_IMAGES_DIR: Final = _ROOT / "sandbox_images"
UNIT_FILE: Final = _ROOT / "deploy" / "evaluator-host.service"
SETS_FOLDER: Final = "environments"  # name of the folder, in the data directory, for installed package sets


_PORT: Final = 8710
_PREFIX: Final = "EVALUATOR_HOST_"
# names, without `EVALUATOR_HOST_`, of variables that only commands read
_NOT_SETTINGS: Final = ("DEBUG", "PERSON", "URL")
# beginnings, after `EVALUATOR_HOST_`, of the variables that tests, benchmarks or Kubernetes services set
_OF_OTHERS: Final = ("TEST_", "BENCH_", "SERVICE_", "PORT_")
_PLAIN_VARIABLES: Final = {"port": "PORT", "database_url": "DATABASE_URL", "ca_file": "SSL_CERT_FILE"}
_IDLE_HOST_MB: Final = 192
_IDLE_SANDBOX_MB: Final = 8  # measured memory of an idle Python sandbox without packages
FEWEST_SANDBOXES: Final = 16
SANDBOX_DESCRIPTORS: Final = 6
# file descriptors that are reserved for connections and everything else that is not a sandbox
_FEW_DESCRIPTORS: Final = 1024
_SANDBOX_PROCESSES: Final = 8  # processes and threads in an idle sandbox: 5 with Python, 13 with JavaScript
_MOST_DESCRIPTORS: Final = 65_536
# lowest limit on sandboxes that start at once; if it were one, one workspace could make all others wait
_FEWEST_STARTS: Final = 2
_RUNNING_PER_PROCESSOR: Final = 4


class SandboxChoice(StrEnum):
    """The backend to use; `auto` chooses bubblewrap if it works, otherwise Docker."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    NONE = "none"


class SandboxStart(StrEnum):
    """How Python sandboxes start: a new interpreter, or a fork of an interpreter that has imported the runner."""

    FRESH = "fresh"
    TEMPLATE = "template"


def default_data_dir() -> Path:
    """Return `$XDG_DATA_HOME/evaluator-host`, by default under `~/.local/share`."""
    return _data_home() / "evaluator-host"


def home_folder() -> Path:
    """Return the user's home folder, or the root folder if the user has none, which is common in containers."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def _data_home() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or home_folder() / ".local" / "share")


def system_ca_file() -> Path | None:
    """Return the file of certificate authorities that an environment variable names, or None."""
    named = os.environ.get("SSL_CERT_FILE")
    return Path(named) if named else None


def search_path() -> tuple[Path, ...]:
    """Return the absolute folders of PATH; relative folders are left out."""
    return tuple(path for path in map(Path, os.environ.get("PATH", "").split(os.pathsep)) if path.is_absolute())


def python_homes() -> tuple[Path, ...]:
    """Return the folders in which uv and pyenv keep the interpreters that they install."""
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or _data_home() / "uv" / "python")
    return uv, Path(os.environ.get("PYENV_ROOT") or home_folder() / ".pyenv") / "versions"


def usable_memory_mb(proc: Path = Path("/proc/self"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many MB of memory this process may use: the machine's memory, or its own limit if that is lower."""
    known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    soft = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    known += [limit for limit in soft if limit != resource.RLIM_INFINITY]
    with suppress(OSError):
        for folder in _own_cgroups("memory", proc, cgroups):
            known += _memory_limits(folder)
    return min(known) >> 20


def _own_cgroups(
    controller: str, proc: Path = Path("/proc/self"), cgroups: Path = Path("/sys/fs/cgroup")
) -> Iterator[Path]:
    """Yield the cgroup folders in which `controller` limits this process: its own folder, then each folder above it."""
    for line in (proc / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" or controller in controllers.split(","):
            mount = cgroups / controllers
            group = mount / path.lstrip("/")
            yield from (group, *group.parents)[: len(Path(path).parts)]
            # in a container, `path` may be a path outside the container, whose folders may not exist inside
            yield mount


def _memory_limits(group: Path) -> Iterator[int]:
    for name in ("memory.max", "memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # the file does not exist, or contains "max"
            yield int((group / name).read_text())


def half_of_memory_mb() -> int:
    """Return half of the memory that this process may use, in MB, but at least 512."""
    return max(512, usable_memory_mb() // 2)


def sandboxes_of_machine() -> int:
    """Return how many sandboxes the memory, file descriptors and processes of this machine allow; at least 16."""
    room = (
        half_of_memory_mb() // _IDLE_SANDBOX_MB,
        (most_descriptors() - _FEW_DESCRIPTORS) // 2 // SANDBOX_DESCRIPTORS,
        _processes() // 2 // _SANDBOX_PROCESSES,
    )
    return max(FEWEST_SANDBOXES, min(room))


def most_descriptors() -> int:
    """Return how many file descriptors a host may open: its hard limit, at most 65,536."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)


def _processes(proc: Path = Path("/proc")) -> int:
    known = [resource.getrlimit(resource.RLIMIT_NPROC)[0]] if os.geteuid() else []
    known = [limit for limit in known if limit != resource.RLIM_INFINITY]
    for name in ("pid_max", "threads-max"):
        with suppress(OSError, ValueError):
            known.append(int((proc / "sys/kernel" / name).read_text()))
    with suppress(OSError):
        for folder in _own_cgroups("pids"):
            with suppress(OSError, ValueError):  # the file does not exist, or contains "max"
                known.append(int((folder / "pids.max").read_text()))
    return min(known, default=_MOST_DESCRIPTORS)


def memory_for_requests_mb() -> int:
    """Return how many MB requests may use together: half of the memory that an idle host leaves free, at least 96."""
    return max(96, (usable_memory_mb() - _IDLE_HOST_MB) // 2)


def plain_database_url() -> SecretStr | None:
    """Return the value of `DATABASE_URL`, a variable that hosting platforms set, or None."""
    named = os.environ.get("DATABASE_URL")
    return SecretStr(named) if named else None


def plain_port() -> Any:
    """Return the value of `PORT`, a variable that hosting platforms set, or 8710; the caller validates the value."""
    return os.environ.get("PORT") or _PORT


def variable_of(field: str) -> str:
    """Return the name of the environment variable for a setting."""
    own, plain = f"{_PREFIX}{field.upper()}", _PLAIN_VARIABLES.get(field)
    return plain if plain is not None and os.environ.get(plain) and not os.environ.get(own) else own


def value_of(field: str) -> str:
    """Return the value of the environment variable for a setting; an empty string if it is not set."""
    return os.environ.get(variable_of(field), "")


def otel_variable(name: str, default: str) -> str:
    """Return the value of an OpenTelemetry variable, such as `OTEL_TRACES_EXPORTER`; `default` if it is not set."""
    return os.environ.get(name) or default


class ModelEndpoint(BaseModel):
    """The address, key and prices of a model, which callers refer to by its name in the settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: str  # such as `https://host/v1`
    model: str | None = None  # the model's name at the provider; None if callers use that name
    secret: str | None = None  # name of a secret in the caller's workspace; its value is the model's key
    key: SecretStr | None = None  # the model's key, if the operator pays for the model
    kind: ModelKind = ModelKind.OPENAI  # the API of the provider
    input_price: float | None = Field(None, ge=0)  # price of a million tokens in requests
    output_price: float | None = Field(None, ge=0)  # price of a million tokens in answers
    cached_price: float | None = Field(None, ge=0)  # price of a million tokens read from the provider's cache
    timeout_s: float = Field(60.0, gt=0, le=3600)  # longest time to wait for one answer, in seconds
    retries: int = Field(2, ge=0, le=10)  # maximum number of retries
    workspaces: tuple[str, ...] = ()  # names or ids of the workspaces that may use the model; empty for all


class WireOptions(BaseModel):
    """Settings of a wire.

    A wire is a set of routes by which another platform calls this host, as if the host were one of the platform's own
    evaluators.

    Attributes:
      secret: Key that the platform sends, or uses to sign bodies; without a secret, callers need a key of this host.
      signature_header: Name of the header that contains the signature, if it is not the name that the wire expects.
      workspace: Workspace to which calls with the secret belong.
      tenants: Which workspace each tenant of the platform uses:
        `{"org/project": "team-a", "org/*": "team-b", "*": "default"}`.
      packages: Pinned packages for code that pins none, under the key `python` or `javascript`.
      timeout_s: Time limit of a row. The host shortens it where needed, to answer before the platform gives up.
      memory_mb: Memory limit of the sandboxes.
      body_kb: Size limit of a body.
      upstream: URL to which the host forwards requests of the platform that the wire does not answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    secret: SecretStr | None = Field(None, min_length=16)
    signature_header: str = ""
    workspace: str = "default"
    tenants: dict[str, str] = Field(default_factory=dict)
    packages: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    timeout_s: float | None = Field(None, gt=0)
    memory_mb: int | None = Field(None, ge=32)
    body_kb: int | None = Field(None, ge=1)
    upstream: str | None = None


class WorkspaceLimits(BaseModel):
    """One workspace's own limits; None where the host's limit applies."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate_limit_per_s: float | None = Field(None, gt=0)
    rate_limit_burst: int | None = Field(None, ge=1)
    workspace_mb: int | None = Field(None, ge=0)
    model_day: ModelBudget | None = None


class Settings(BaseSettings):
    """Everything an operator can set; each field is the environment variable `EVALUATOR_HOST_<FIELD>`."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        # commands with `--debug` print this error; it must not contain the value, which may include a model's key
        hide_input_in_errors=True,
    )

    host: str = Field(
        "127.0.0.1", description="Address to listen on. Until a key exists, only a loopback address is allowed."
    )
    port: int = Field(
        default_factory=plain_port,
        ge=0,
        le=65535,
        validate_default=True,
        description="Port that the host listens on. 0 chooses a free one.",
    )
    workers: int = Field(
        1, ge=1, le=64, description="Number of processes that answer calls, with shared limits and sandboxes."
    )
    data_dir: Annotated[Path, AfterValidator(Path.absolute)] = Field(
        default_factory=default_data_dir, description="Folder for installed environments, rows and files."
    )
    storage_url: str | None = Field(
        None,
        description="S3-compatible storage for rows and files: s3://bucket/prefix. Default: the data directory.",
    )
    sandbox: SandboxChoice = Field(SandboxChoice.AUTO, description="Sandbox backend: auto, bubblewrap, docker or none.")
    sandbox_start: SandboxStart = Field(
        SandboxStart.FRESH,
        description="How Python sandboxes start: fresh, or template (forked; bubblewrap only).",
    )
    allowed_hosts: tuple[OwnName, ...] = Field(
        (), description="More host names to accept in the Host header, besides loopback."
    )
    database_url: SecretStr | None = Field(
        default_factory=plain_database_url,
        description="PostgreSQL database for keys and records.",
    )
    key: SecretStr | None = Field(None, description="Key that commands with --url send to the host.")
    replicas: int = Field(
        1,
        ge=1,
        description="Number of hosts behind one load balancer; each gets an equal part of rates and event streams.",
    )
    rate_limit_per_s: float | None = Field(
        None, gt=0, description="Requests per second for each key, once its burst is used up. Further requests get 429."
    )
    rate_limit_burst: int = Field(
        100, ge=1, description="Requests that each key may make at once (its burst) after a pause."
    )
    open_metrics: bool = Field(default=False, description="Serve /metrics without a key.")
    otel: bool = Field(
        default=False,
        description="Export traces and metrics by OTLP, as set in the variables OTEL_*; needs the extra [otel].",
    )
    audit_days: int = Field(90, ge=0, description="Days to keep the audit log. 0 keeps it forever.")

    secrets_key: SecretStr | None = Field(
        None,
        description="Keys that encrypt the secrets, newest first, each 32 bytes in base64; default: the file "
        "secrets.key.",
    )
    judge_hosts: tuple[ListedHost, ...] | None = Field(
        None,
        description="Hosts whose models evaluators may call: name or name:port. [] allows none. "
        "Default: those that you allow in the workbench, as long as no key exists.",
    )
    target_hosts: tuple[ListedHostOrAll, ...] = Field(
        (),
        description="Hosts whose models jobs may call: name, name:port or *. Default: *, or none once a key exists.",
    )
    webhook_hosts: tuple[ListedHostOrAll, ...] = Field(
        ("public",),
        description="Hosts that alerts may call: name, name:port, public (all with public addresses) or *.",
    )
    models: Annotated[dict[str, ModelEndpoint], NoDecode] = Field(
        default_factory=dict,
        description='Models that evaluators may be granted: JSON {"name": {"base_url", …}}, or a file that contains '
        "it.",
    )
    max_model_requests: int = Field(
        64, ge=0, description="Largest budget.requests that an evaluator may set, and the default."
    )
    model_wait_s: float = Field(120.0, gt=0, description="How long one row may wait for granted models in total.")
    model_day: ModelBudget | None = Field(
        None,
        description='How much a workspace may use models per day, on all hosts together: JSON {"requests", "tokens", '
        '"cost"}.',
    )
    model_answers_mb: int = Field(256, ge=1, description="Space for the recorded answers of models in a workspace.")
    network_hosts: tuple[GrantedHost, ...] = Field(
        (),
        description="Hosts that evaluators may be granted: [WORKSPACE/]api.example.com:443, *.example.com.",
    )
    network_private: tuple[Network, ...] = Field(
        (), description="Private networks in which granted hosts may be, such as 10.1.0.0/16. Default: none."
    )
    network_mb: int = Field(64, ge=1, description="How much data one row may exchange with other hosts.")
    code_secrets: tuple[str, ...] = Field(
        (), description="Secrets that evaluators' code may be granted: [WORKSPACE/]NAME or *; default none."
    )
    wires: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Wires to turn on, comma-separated; each runs the evaluators of another platform."
    )
    wire_options: dict[str, WireOptions] = Field(
        default_factory=dict,
        description="Secrets, tenants, packages and limits of wires, as JSON keyed by the name of the wire.",
    )
    event_streams: int = Field(
        16, ge=1, description="How many event streams (of jobs and builds) one key may have open."
    )
    jobs_at_once: int = Field(4, ge=1, description="How many jobs this host runs in parallel. Further jobs wait.")
    ray_address: str | None = Field(None, description="Ray cluster for jobs with executor ray: 10.0.0.1:6379, or auto.")
    jobs_days: int = Field(0, ge=0, description="Days to keep ended jobs and their results. 0 keeps them forever.")
    traces_mb: int = Field(
        4, ge=1, description="Largest export of spans, once decompressed; exporters send 512 spans at a time."
    )
    traces_days: int = Field(30, ge=0, description="Days to keep traces of live traffic. 0 keeps them forever.")
    workspace_limits: Annotated[dict[str, WorkspaceLimits], NoDecode] = Field(
        default_factory=dict,
        description='Other limits for some workspaces: JSON {"name": {"rate_limit_per_s", "rate_limit_burst", '
        '"workspace_mb", "model_day"}}, or a file that contains it.',
    )
    workspace_mb: int = Field(
        20_480, ge=0, description="Storage of a workspace: data sets, files, evaluators, jobs, traces; 0 sets no limit."
    )
    free_disk_mb: int = Field(256, ge=0, description="Disk that has to stay free in the data directory.")
    datasets_mb: int = Field(4096, ge=1, description="Maximum size of a data set and of an upload.")
    data_mb: int = Field(1024, ge=1, description="Total size of the data files for the evaluators of a workspace.")

    packages_from: str | None = Field(
        None,
        description="Repository of a container registry in which the host looks for package sets before it asks the "
        "index.",
    )
    pythons: tuple[Path, ...] = Field(
        (),
        description="More Python interpreters, or folders with bin/python3.13, for evaluators that choose a version.",
    )

    python_with_node: bool = Field(
        default=False,
        description="Give Python evaluators the command node too, in case they run JavaScript.",
    )

    docker_host: str | None = Field(
        None, description="Address of the Docker engine. Default: DOCKER_HOST, otherwise the local socket."
    )
    docker_runtime: str | None = Field(None, description="OCI runtime of the containers: runc, runsc, kata, …")
    docker_image: str = Field("evaluator-host/runtime:1", description="Runtime image, built by `images build`.")

    max_sandboxes: int = Field(
        default_factory=sandboxes_of_machine, ge=1, description="Maximum number of sandboxes, busy or idle."
    )
    max_running_sandboxes: int | None = Field(
        None, ge=1, description="Maximum number of sandboxes that start or run at the same time."
    )
    max_sandboxes_per_evaluator: int = Field(
        default_factory=lambda: max(2, os.cpu_count() or 1),
        ge=1,
        description="Maximum number of sandboxes for one evaluator.",
    )
    waiting_rows: int = Field(
        200, ge=1, description="Maximum number of rows of one evaluator that wait for models or hosts at once."
    )
    sandbox_memory_mb: int = Field(
        default_factory=half_of_memory_mb,
        ge=64,
        description="Memory for all sandboxes: the limits of busy ones plus the memory that others use.",
    )
    idle_sandboxes: int = Field(
        1, ge=0, description="How many sandboxes start in advance for each recently used environment."
    )
    idle_ttl_s: float = Field(300.0, gt=0, description="How long an unused evaluator keeps its sandbox.")
    sandbox_max_rows: int = Field(100_000, ge=1, description="Number of rows after which a sandbox is replaced.")
    sandbox_max_age_s: float = Field(3600.0, gt=0, description="Age after which a sandbox is replaced.")
    queue_limit: int = Field(1000, ge=1, description="How many calls may wait for a sandbox. Further calls get 429.")
    grace_s: float = Field(
        1.0, gt=0, description="How long a runner may take, after a row's time limit, to report the time-out."
    )
    stop_grace_s: float = Field(10.0, ge=0, description="How long running calls may continue after a SIGTERM.")
    load_timeout_s: float = Field(
        30.0, gt=0, description="Time limit for loading an evaluator: its imports and module-level code."
    )

    body_mb: int = Field(32, ge=1, description="Maximum size of a request body.")
    memory_mb: int = Field(
        default_factory=memory_for_requests_mb,
        ge=64,
        description="Memory for the bodies and results of all requests under way; further requests get 429.",
    )
    body_timeout_s: float = Field(30.0, gt=0, description="Time limit for a request body to arrive.")
    code_kb: int = Field(
        1024, ge=1, description="Maximum size of an evaluator's code and files, and of the text in settings.config."
    )
    max_rows_per_batch: int = Field(
        10_000, ge=1, description="How many rows a batch request, or a request that creates a job, may contain."
    )
    max_timeout_s: float = Field(120.0, gt=0, description="Maximum of limits.timeout_s.")
    max_memory_mb: int = Field(2048, ge=64, description="Maximum of limits.memory_mb.")
    max_processes: int = Field(256, ge=1, description="Maximum of limits.processes.")
    max_disk_mb: int = Field(1024, ge=1, description="Maximum of limits.disk_mb.")
    max_log_kb: int = Field(256, ge=1, le=256, description="Maximum of limits.log_kb.")
    max_result_kb: int = Field(16_384, ge=1, le=32_768, description="Maximum of limits.result_kb.")

    pip_index_url: SecretStr | None = Field(
        None, description="PEP 503 index of Python packages; may contain user:password."
    )
    npm_registry: SecretStr | None = Field(None, description="Registry of npm packages; may contain user:password.")
    npm_token: SecretStr | None = Field(None, description="Bearer token for the npm registry.")
    ca_file: Path | None = Field(
        default_factory=system_ca_file,
        description="PEM file of additional certificate authorities for indexes.",
    )
    proxy: SecretStr | None = Field(None, description="Proxy for indexes and models; may contain user:password.")
    no_proxy: str = Field("", description="Hosts to reach without the proxy, comma-separated.")
    index_timeout_s: float = Field(
        300.0, gt=0, description="Time limit for resolving a package set, and for installing one."
    )
    auto_packages: bool = Field(
        default=True, description='Choose packages for imports if an evaluator has `packages: "auto"`.'
    )
    allow_source_builds: bool = Field(default=False, description="Build packages that have no wheel, inside a sandbox.")
    build_memory_mb: int = Field(4096, ge=256, description="Memory limit for installing one package set.")
    environments_mb: int = Field(
        20_480, ge=1, description="Disk for installed package sets. The host removes the least recently used first."
    )

    @field_validator("models", "workspace_limits", mode="before")
    @classmethod
    def _from_file(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.lstrip().startswith("{"):
            return json.loads(value)
        try:
            return json.loads(Path(value).read_text("utf-8"))
        except OSError as error:
            raise ValueError(f"the value is neither JSON nor the path of a readable file: {error.strerror}") from error

    @field_validator("wires", mode="before")
    @classmethod
    def _names(cls, names: object) -> object:
        return [name.strip() for name in names.split(",") if name.strip()] if isinstance(names, str) else names

    @field_validator("models")
    @classmethod
    def _references(cls, models: dict[str, ModelEndpoint]) -> dict[str, ModelEndpoint]:
        if odd := [name for name in models if name.count("/") > 1 or "=" in name or not all(name.split("/"))]:
            raise ValueError(f"{odd[0]!r} cannot be the name of a model; write NAME or WORKSPACE/NAME")
        return models

    @property
    def running_sandboxes(self) -> int:
        """Maximum number of sandboxes that start or run at the same time.

        Without a setting, it depends on the number of processors.
        """
        if self.max_running_sandboxes is not None or "max_sandboxes" in self.model_fields_set:
            return self.max_running_sandboxes or self.max_sandboxes
        return max(FEWEST_SANDBOXES, _RUNNING_PER_PROCESSOR * (os.cpu_count() or 1))

    @property
    def starting_sandboxes(self) -> int:
        """Maximum number of sandboxes that start at the same time: one per processor, at least two."""
        return max(_FEWEST_STARTS, os.cpu_count() or 1)

    @property
    def limit_ceilings(self) -> Limits:
        """The highest limits that an evaluator may request."""
        return Limits(
            timeout_s=self.max_timeout_s,
            memory_mb=self.max_memory_mb,
            processes=self.max_processes,
            disk_mb=self.max_disk_mb,
            log_kb=self.max_log_kb,
            result_kb=self.max_result_kb,
        )

    @property
    def default_limits(self) -> Limits:
        """The limits of an evaluator that does not set any limits."""
        return self.fitted(Limits())

    def fitted(self, limits: Limits) -> Limits:
        """Lower an evaluator's default limits to this host's ceilings, and return its limits.

        A limit that the evaluator itself sets above the ceiling stays as it is, so that the caller gets an error.
        """
        defaults, ceilings = asdict(Limits()), asdict(self.limit_ceilings)
        lower = {
            name: ceilings[name] for name, asked in asdict(limits).items() if asked == defaults[name] > ceilings[name]
        }
        return replace(limits, **lower)

    @property
    def engine_address(self) -> str | None:
        """The Docker engine's address, or None for docker-py's own default."""
        return self.docker_host or os.environ.get("DOCKER_HOST")


def unknown_variables() -> list[str]:
    """Return a message for each environment variable that begins with `EVALUATOR_HOST_`, but is not a setting."""
    known = {name.upper() for name in Settings.model_fields}
    given = (name.removeprefix(_PREFIX) for name in sorted(os.environ) if name.startswith(_PREFIX))
    unknown = (name for name in given if name not in {*known, *_NOT_SETTINGS} and not name.startswith(_OF_OTHERS))
    meant = {name: nearest_name(name, known) for name in unknown}
    return [
        f"{_PREFIX}{name} is not a setting, so it has no effect; "
        + (f"did you mean {_PREFIX}{near}?" if near else "docs/settings.md lists all settings")
        for name, near in meant.items()
    ]


def revealed(secret: SecretStr | None) -> str | None:
    """Return a secret setting as a plain string, or None if it is not set."""
    return secret.get_secret_value() if secret is not None else None
