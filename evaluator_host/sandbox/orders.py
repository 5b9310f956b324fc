"""What a sandbox is asked before any row: to import packages ahead, to load an evaluator; as headers of frames."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluator_host.model.evaluator import Contract, Json, Language, Limits, Policy, SandboxSpec


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What to load: the evaluator's code and how its contract is found.

    Attributes:
      bundle: An earlier `Loaded.bundle`.
      config: Arguments of a class.
    """

    code: str
    language: Language
    contract: Contract
    entry: str | None
    policy: Policy
    limits: Limits
    timeout_s: float
    check: bool = False
    bundle: Json = None
    config: dict[str, Json] = field(default_factory=dict)

    def header(self, load_id: str) -> dict[str, Json]:
        """Return the header of its frame."""
        return {
            "type": "load",
            "id": load_id,
            "language": self.language,
            "contract": self.contract,
            "entry": self.entry,
            "policy": self.policy,
            "timeout_s": self.timeout_s,
            "limits": {
                "memory_mb": self.limits.memory_mb,
                "processes": self.limits.processes,
                "disk_mb": self.limits.disk_mb,
                "log_kb": self.limits.log_kb,
                "result_kb": self.limits.result_kb,
            },
            "check": self.check,
        }

    def body(self) -> dict[str, Json]:
        """Return the body of its frame."""
        body: dict[str, Json] = {"code": self.code, "bundle": self.bundle}
        return {**body, "config": self.config} if self.config else body


def prepare_header(prepare_id: str, modules: Sequence[str], *, timeout_s: float, spec: SandboxSpec) -> dict[str, Json]:
    """Return the header of the frame that has modules imported ahead."""
    limits = {"memory_mb": spec.memory_mb, "processes": spec.processes, "disk_mb": spec.disk_mb}
    return {"type": "prepare", "id": prepare_id, "modules": list(modules), "timeout_s": timeout_s, "limits": limits}
