"""Checks a Docker engine for `doctor`, and gives advice on each problem."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from evaluator_host.engine.sandbox.base import Finding, Link
from evaluator_host.engine.sandbox.docker.engine import ENGINE_ERRORS, Engine, image_labels, unavailable
from evaluator_host.engine.sandbox.docker.image.recipe import LABEL_RECIPE, recipe_digest
from evaluator_host.engine.sandbox.docker.policy import EngineFacts
from evaluator_host.engine.sandbox.isolation_notes import isolation_finding
from evaluator_host.engine.sandbox.linux.rlimits import is_gvisor
from evaluator_host.engine.sandbox.trial_start import RUNNERS, try_sandbox
from evaluator_host.types.evaluator import SandboxSpec

_BUILD: Final = "run `evaluator-host images build`"


PODMAN_RUNTIME: Final = (
    "Podman's service does not accept a runtime per container through Docker's API, and would silently use its own; "
    "make the runtime its default (`runtime` in containers.conf) and unset EVALUATOR_HOST_DOCKER_RUNTIME"
)


def ignores_runtime(facts: EngineFacts, runtime: str | None) -> bool:
    """Return whether the engine silently ignores the OCI runtime in the settings."""
    return facts.podman and runtime is not None and runtime != facts.default_runtime


def refusal(facts: EngineFacts, runtime: str | None) -> str | None:
    """Return why containers must not be started with this OCI runtime, or None if it can be used."""
    if ignores_runtime(facts, runtime):
        return PODMAN_RUNTIME
    chosen = runtime or facts.default_runtime
    if chosen in facts.unlimited_runtimes:
        return (
            f"the engine runs {chosen} with --ignore-cgroups, so no limit on memory or processes would hold: "
            "remove this option from the runtime's runtimeArgs"
        )
    return None


async def check_engine(
    engine: Engine, *, image: str, runtime: str | None, start: Callable[[SandboxSpec], Awaitable[Link]]
) -> list[Finding]:
    """Return all findings about the engine, or just one if the engine does not answer.

    `start` is `DockerBackend.start`; it starts a sandbox for each language as a test.
    """
    try:
        facts = await engine.facts(fresh=True)
        labels = await engine.run(image_labels, image)
        expected = await asyncio.to_thread(recipe_digest)
    except ENGINE_ERRORS as error:
        return [Finding("engine", ok=False, detail=unavailable(error, address=engine.address, image=image).detail)]
    found = [
        _engine(facts),
        _image(image, labels, expected=expected),
        _runtime(facts, runtime),
        isolation_finding(runtime or facts.default_runtime),
        *_limits(facts),
        _seccomp(facts, runtime),
    ]
    if labels is not None:
        found += [await try_sandbox(start, one, backend="docker", fix=lambda _: _BUILD) for one in RUNNERS]
    return found


def _engine(facts: EngineFacts) -> Finding:
    kind = "Podman" if facts.podman else "Docker"
    manner = "rootless" if facts.rootless else "rootful"
    return Finding("engine", ok=True, detail=f"{kind} {facts.version} at {facts.address}, {manner}, {facts.arch}")


def _image(image: str, labels: dict[str, str] | None, *, expected: str) -> Finding:
    if labels is None:
        return Finding("image", ok=False, detail=f"the engine has no image {image}", fix=_BUILD)
    if labels.get(LABEL_RECIPE) != expected:
        return Finding(
            "image",
            ok=False,
            detail=f"{image} is out of date: its files differ from those of this host",
            fix=_BUILD,
        )
    return Finding("image", ok=True, detail=f"{image} is up to date: it was built from the files of this host")


def _runtime(facts: EngineFacts, runtime: str | None) -> Finding:
    offered = ", ".join(facts.runtimes) or "the engine lists none"
    chosen = runtime or facts.default_runtime or "the engine's default"
    if (reason := refusal(facts, runtime)) is not None:
        return Finding("runtime", ok=False, detail=f"{chosen} cannot be used", fix=reason)
    if runtime and facts.runtimes and runtime not in facts.runtimes:
        fix = f"add {runtime} to the engine's configuration, or unset EVALUATOR_HOST_DOCKER_RUNTIME"
        return Finding("runtime", ok=False, detail=f"{runtime} is not offered (offered: {offered})", fix=fix)
    return Finding("runtime", ok=True, detail=f"{chosen} (offered: {offered})")


def _limits(facts: EngineFacts) -> Iterator[Finding]:
    fix = "give the engine this cgroup controller (rootless: use cgroup v2, and delegate it to the user's slice)"
    where = f"cgroup v{facts.cgroup_version or '?'}"
    for name, held in (
        ("memory limit", facts.memory_limit),
        ("process limit", facts.pids_limit),
        ("cpu limit", facts.cpu_quota),
    ):
        detail = f"{where}: {'enforced by the kernel' if held else 'the engine cannot enforce it'}"
        yield Finding(name, ok=held, detail=detail, fix=None if held else fix)
    if facts.memory_limit and not facts.swap_limit:
        yield Finding(
            "swap limit",
            ok=False,
            detail="in addition to its memory, a sandbox may use the same amount of swap",
            fix="boot with swapaccount=1, or turn swap off",
        )


def _seccomp(facts: EngineFacts, runtime: str | None) -> Finding:
    if is_gvisor(runtime or facts.default_runtime):
        detail = (
            "gVisor answers system calls itself and ignores our profile, so a row can reach later rows of the same "
            "evaluator"
        )
        return Finding("seccomp", ok=True, detail=detail)
    if not facts.seccomp:
        return Finding(
            "seccomp", ok=False, detail="the engine was built without seccomp", fix="use an engine with seccomp"
        )
    if facts.podman and not facts.local:
        detail = "Podman uses its own profile, because it reads the host's profile only from a file on its own machine"
        return Finding("seccomp", ok=False, detail=detail, fix="run the host on the machine of the Podman service")
    return Finding("seccomp", ok=True, detail="our profile")
