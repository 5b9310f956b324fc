"""Installs package sets without a host, and inspects their images on an engine."""

import contextlib
import platform
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import docker.errors

from evaluator_host.engine.config.settings import Settings
from evaluator_host.engine.environments.record import Record, now, set_key, target_for
from evaluator_host.engine.packages.lock import Lock, LockedPackage, LockTarget, Pin
from evaluator_host.engine.packages.tools import installed_tools
from evaluator_host.engine.pool.prewarmed import start_sandbox
from evaluator_host.engine.sandbox.docker.backend import DockerBackend
from evaluator_host.engine.sandbox.docker.environment_images import LABEL_ENVIRONMENT, LABEL_OWNER, layer_tag
from evaluator_host.engine.sandbox.docker.image.recipe import image_platform
from evaluator_host.engine.sandbox.linux.instance import this_instance
from evaluator_host.engine.sandbox.messages import LoadRequest
from evaluator_host.types.evaluator import Contract, Environment, Language, Limits, Package, Policy, SandboxSpec
from evaluator_host.types.outcome import Failed, Returned

RUNTIME_IMAGE = Settings().docker_image
Set = tuple[Environment, Record]

NATIVE = """
import six
from rapidfuzz import fuzz, fuzz_cpp as native
def main():
    return [six.__version__, fuzz.ratio("abcd", "abcx"), native.__file__.startswith("/opt/packages/")]
"""


def owner_name() -> str:
    """Return a name that marks images as this process's, because other processes and runs use the same engine."""
    return f"tests-{this_instance()}"


def python_set(folder: Path) -> Set:
    """Install `six` and `rapidfuzz` (which has a native module) for the image's Python; return the package set."""
    command = [str(installed_tools().uv), "pip", "install", "--quiet", "--no-config", "--target", str(folder)]
    command += ["--python-version", "3.13", "--python-platform", f"{platform.machine()}-manylinux_2_28"]
    subprocess.run([*command, "--only-binary", ":all:", "six==1.17.0", "rapidfuzz==3.14.3"], check=True)
    return described(folder, Language.PYTHON, six="1.17.0", rapidfuzz="3.14.3")


def javascript_set(folder: Path) -> Set:
    """Install lodash, and return the package set."""
    folder.mkdir()
    command = [
        *installed_tools().npm_command,
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]
    subprocess.run([*command, "--prefix", str(folder), "lodash@4.17.21"], check=True)
    return described(folder, Language.JAVASCRIPT, lodash="4.17.21")


def tiny_set(folder: Path) -> Set:
    """Return a new package set with one module, made without an index. No two of these sets are the same."""
    folder.mkdir()
    (folder / "tiny.py").write_text("answer = 7\n")
    return described(folder, Language.PYTHON, tiny=f"1.{secrets.randbits(60)}")


def described(folder: Path, language: Language, target: LockTarget | None = None, /, **packages: str) -> Set:
    """Return the package set in a folder, with the record of its packages, as pushed to a registry. By default, the
    packages are for the runtime image.
    """
    target = target or target_for(image_platform(platform.machine()), language)
    pins = tuple(sorted(Pin(name, version, (), language) for name, version in packages.items()))
    locked = tuple(LockedPackage(pin.name, pin.version, requested=True) for pin in pins)
    lock = Lock(language, target, pins, locked, "\n".join(pin.text for pin in pins))
    listed = tuple(Package(pin.name, pin.version) for pin in pins)
    environment = Environment(lock.digest, language, target.runtime, listed, folder)
    key = set_key(pins, language, target)
    return environment, Record(key, lock.digest, language, target.runtime, listed, lock.to_json(), 1, now(), 1.0)


def backend_at(
    address: str, image: str = RUNTIME_IMAGE, *, owner: str = "", data_bytes: int = 1 << 30
) -> DockerBackend:
    """Return a backend whose images of package sets belong to this session."""
    return DockerBackend(
        docker_host=address, runtime=None, image=image, instance=this_instance(), owner=owner or owner_name(),
        data_bytes=data_bytes,
    )  # fmt: skip


@contextmanager
def client_at(address: str) -> Iterator[docker.APIClient]:
    """Yield a client of the engine; afterwards, remove this session's images from the engine."""
    with contextlib.closing(docker.APIClient(base_url=address)) as opened:
        yield opened
        for image in layers_of(opened):
            opened.remove_image(image, force=True)


def layers_of(client: docker.APIClient, owner: str = "") -> set[str]:
    """Return the ids of an owner's images of package sets, including images without names. The default owner is this
    process.
    """
    found = client.images(filters={"label": [LABEL_ENVIRONMENT]})
    return {image["Id"] for image in found if image["Labels"].get(LABEL_OWNER) == (owner or owner_name())}


def labels_of(client: docker.APIClient, environment: Environment) -> dict[str, str]:
    labels: dict[str, str] = client.inspect_image(layer_tag(environment.digest))["Config"]["Labels"]
    return labels


async def answer(backend: DockerBackend, environment: Environment, code: str) -> Any:
    """Run an evaluator in an environment, and return its value or its error."""
    sandbox = await start_sandbox(backend, SandboxSpec(environment.language, environment), grace_s=2.0)
    try:
        order = LoadRequest(code, environment.language, Contract.MAIN, None, Policy.NONE, Limits(), 20.0)
        loaded = await sandbox.load(order)
        assert not isinstance(loaded, Failed), loaded
        outcome = await sandbox.call(b'{"named": {}, "exact": false}', timeout_s=20.0)
        return outcome.value if isinstance(outcome, Returned) else outcome
    finally:
        await sandbox.destroy()
