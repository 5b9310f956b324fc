"""Runs the files in `deploy/` with the real programs: the image and compose.yaml with an engine, the chart with
Helm, and the unit with systemd.
"""

import grp
import json
import os
import re
import shlex
import shutil
import socket as socketlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

import kubernetes_validate
import pytest
import yaml

from evaluator_host.cli import doctor
from tests import forked
from tests.engines import engine_address
from tests.install_page import commands_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
IMAGE = "evaluator-host:latest"
PROJECT = "evaluator-host-test"
DATABASE = "evaluator-host-test/postgres:latest"
HELM = Path(sys.prefix, "bin", "helm")
PYTHON = "def evaluate(inputs, outputs, trace):\n    return outputs == inputs['expected']"
JAVASCRIPT = "export function evaluate(inputs, outputs, trace) { return outputs === inputs.expected }"

# script that starts this machine's PostgreSQL as compose.yaml expects it from PostgreSQL's official image
START_DATABASE = """#!/bin/sh
set -eu
data=/var/lib/postgresql/data/db
if [ ! -s $data/PG_VERSION ]; then
  echo "$POSTGRES_PASSWORD" >/tmp/password
  initdb --pgdata=$data --username="$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256 --no-sync --no-locale --encoding=UTF8
  echo "host all all all scram-sha-256" >>$data/pg_hba.conf
  echo "CREATE DATABASE $POSTGRES_DB" | postgres --single -D $data postgres
fi
exec postgres -D $data -c listen_addresses='*' -c unix_socket_directories=/tmp
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[dict[str, str]]:
    """Environment variables that make Docker's tools use an engine with both images."""
    env = {**os.environ, "DOCKER_HOST": engine_address(), "POSTGRES_IMAGE": DATABASE}
    run(["sh", ".ci/image", IMAGE, "evaluator-host/base:trixie"], env)
    build_database(env)
    yield env
    run(["docker", "rmi", "--force", IMAGE, DATABASE], env)


@pytest.fixture(scope="module")
def services(engine: dict[str, str]) -> Iterator[None]:
    """Start the services in compose.yaml with the options in that file, and wait until they are healthy."""
    try:
        run(["docker", "network", "create", PROJECT], engine)
        start(engine, "database")
        start(engine, "host")
        yield
    finally:
        print(logs(engine, "host"))
        run(["docker", "rm", "--force", "--volumes", "host", "database"], engine, exit_code=None)
        run(["docker", "volume", "rm", "data", "database"], engine, exit_code=None)
        run(["docker", "network", "rm", PROJECT], engine, exit_code=None)


def start(engine: dict[str, str], name: str) -> None:
    """Start a service with `docker run`, since Compose in Debian 12 does not support `systempaths`, and wait until the
    service is healthy.
    """
    image, options = options_of(name, engine)
    run(["docker", "run", "--detach", f"--name={name}", f"--network={PROJECT}", *options, image], engine)
    for _ in range(600):
        state = run(
            ["docker", "inspect", "--format", "{{.State.Health.Status}} {{.State.Running}}", name], engine
        ).split()
        if state[0] == "healthy":
            return
        assert state[1] == "true", logs(engine, name)
        time.sleep(0.2)
    pytest.fail(f"{name} is {state}: {logs(engine, name)}")


def options_of(name: str, engine: dict[str, str]) -> tuple[str, list[str]]:
    """Return the image of a service, and the options with which `docker run` starts the service."""
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"][name]
    options = [f"--{key.replace('_', '-')}" for key in ("init", "read_only") if service.get(key)]
    for key, option in (
        ("volumes", "volume"),
        ("tmpfs", "tmpfs"),
        ("cap_drop", "cap-drop"),
        ("security_opt", "security-opt"),
    ):
        options += [f"--{option}={value}" for value in service.get(key, ())]
    options += [f"--env={key}={by_default(value)}" for key, value in service["environment"].items()]
    if "healthcheck" in service:
        check = service["healthcheck"]
        options += [f"--health-cmd={check['test'][1]}", f"--health-interval={check['interval']}"]
    image = by_default(service["image"], engine)
    known = {"init", "read_only", "volumes", "tmpfs", "cap_drop", "security_opt", "environment", "healthcheck", "image"}
    assert set(service) - known <= {"ports", "depends_on", "restart", "stop_grace_period"}
    return image, options


def logs(engine: dict[str, str], name: str) -> str:
    return run(["sh", "-c", f"docker logs {name} 2>&1"], engine, exit_code=None)


def by_default(value: str, variables: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a value of compose.yaml with each variable replaced by its given value, or by its default."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1], found[2]), value)


SCORE = """
import json, os, sys, urllib.request as r
key = open("/var/lib/evaluator-host/first.key").read().strip()
for language, code in json.load(sys.stdin):
    body = {"evaluator": {"code": code, "language": language}, "inputs": {"expected": "a"}, "outputs": "a"}
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    print(r.urlopen(r.Request("http://127.0.0.1:8710/v1/evaluate", json.dumps(body).encode(), headers)).read().decode())
"""


@pytest.mark.long
def test_the_services_of_compose_score_in_three_languages(engine: dict[str, str], services: None) -> None:
    programs = [("python", PYTHON), ("javascript", JAVASCRIPT), ("typescript", JAVASCRIPT)]
    inside = ["docker", "exec", "--interactive", "host"]
    printed = run([*inside, "python3", "-c", SCORE], engine, stdin=json.dumps(programs))
    results = [json.loads(line) for line in printed.splitlines()]
    assert [result["score"] for result in results] == [1.0, 1.0, 1.0]

    found = json.loads(run([*inside, "evaluator-host", "doctor", "--json"], engine, exit_code=None))
    text = json.dumps(found)
    assert "postgresql" in text
    assert "bwrap 0" in text
    assert run([*inside, "id", "-u"], engine).strip() == "10001"


@pytest.mark.long
def test_the_second_command_of_the_page_scores_in_a_container_of_the_service(
    engine: dict[str, str], services: None
) -> None:
    command = commands_of("As a container, with PostgreSQL")[1]
    code, _, compose = command.partition(" | ")
    written = compose.removeprefix("docker compose --file deploy/compose.yaml run --rm --no-TTY host ")
    assert written != compose
    image, options = options_of("host", engine)
    printed = run(
        ["docker", "run", "--rm", "--interactive", f"--network={PROJECT}", *options, image, *shlex.split(written)],
        engine,
        stdin=shlex.split(code)[1],
    )
    assert re.search(r"score +1\.0", printed), printed


@pytest.mark.long
def test_a_container_that_forbids_user_namespaces_is_told_what_to_allow(engine: dict[str, str]) -> None:
    said = run(["docker", "run", "--rm", IMAGE, "doctor"], engine, exit_code=None)
    assert "--security-opt seccomp=unconfined" in said


def test_the_first_key_is_never_half_written(tmp_path: Path) -> None:
    """The first key is never half written. While the key is made, a program lists the data directory, in which the
    key's file must not exist yet.
    """
    program, data = tmp_path / "evaluator-host", tmp_path / "data"
    data.mkdir()
    program.write_text('#!/bin/sh\n[ "$1 $2" != "keys create" ] || { ls "$EVALUATOR_HOST_DATA_DIR"; echo made; }\n')
    program.chmod(0o755)
    run(
        ["sh", str(DEPLOY / "image" / "start")],
        {"PATH": f"{tmp_path}:{os.environ['PATH']}", "EVALUATOR_HOST_DATA_DIR": str(data)},
    )
    assert (data / "first.key").read_text() == "made\n"


def test_helm_and_the_schemas_of_kubernetes_take_the_chart() -> None:
    chart = str(DEPLOY / "helm")
    run([str(HELM), "lint", "--strict", chart, "--set", "storageUrl=s3://rows"])
    many = ["--set", "storageUrl=s3://rows,autoscaling.enabled=true,runtimeClassName=gvisor"]
    one = ["--set", "replicas=1,storage.className=fast"]
    kinds = [[manifest["kind"] for manifest in manifests(chart, options)] for options in (many, one)]
    assert sorted(kinds[0]) == ["HorizontalPodAutoscaler", "PodDisruptionBudget", "Service", "StatefulSet"]
    assert sorted(kinds[1]) == ["PodDisruptionBudget", "Service", "StatefulSet"]

    refused = subprocess.run([HELM, "template", "host", chart], capture_output=True, text=True, check=False)
    assert "several replicas need storageUrl" in refused.stderr


def test_the_unit_that_is_installed_is_hardened_and_of_this_installation(tmp_path: Path) -> None:
    unit = tmp_path / "evaluator-host.service"
    assert forked.run(["install-service", "--unit", str(unit)]).returncode == 0
    assert f"ExecStart={sys.executable} -m evaluator_host serve" in unit.read_text()
    again = " ".join(forked.run(["install-service", "--unit", str(unit)]).stderr.split())
    assert "replaced" not in again
    unit.write_text("[Unit]")
    assert f"replaced another {unit}" in " ".join(forked.run(["install-service", "--unit", str(unit)]).stderr.split())
    run(["systemd-analyze", "verify", "--man=no", str(unit)])
    run(["systemd-analyze", "security", "--offline=true", "--threshold=40", "--no-pager", str(unit)])


def test_a_folder_that_the_service_cannot_enter_is_found() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        program = Path(folder) / "private" / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.touch(0o755)
        for one in (Path(folder), program.parents[1], program.parent, program):
            one.chmod(0o700)
            assert doctor._closed(program) == one
            one.chmod(0o755)
        assert doctor._closed(program) is None


def test_the_unit_lets_its_user_reach_docker_where_docker_is_the_sandbox(tmp_path: Path) -> None:
    unit, socket = tmp_path / "evaluator-host.service", tmp_path / "docker.sock"
    plain = forked.run(["install-service", "--print", "--sandbox", "bubblewrap"]).stdout
    assert "SupplementaryGroups" not in plain
    install = ["install-service", "--unit", str(unit), "--sandbox", "docker"]
    environment = {**os.environ, "EVALUATOR_HOST_DOCKER_HOST": f"unix://{socket}"}
    done = forked.run(install, env=environment)
    assert (done.returncode, "so it has the rights of root" in " ".join(done.stderr.split())) == (0, True)
    added = [line for line in unit.read_text().splitlines() if line not in plain.splitlines()]
    assert added == ["SupplementaryGroups=docker", "Environment=EVALUATOR_HOST_SANDBOX=docker"]
    run(["systemd-analyze", "verify", "--man=no", str(unit)])
    with closing(listener(socket)):
        os.chown(socket, -1, grp.getgrnam("daemon").gr_gid)
        assert forked.run(install, env=environment).returncode == 0
    assert "SupplementaryGroups=daemon" in unit.read_text()


def listener(path: Path) -> socketlib.socket:
    """Return a Unix socket that listens at a path."""
    made = socketlib.socket(socketlib.AF_UNIX)
    made.bind(str(path))
    return made


def manifests(chart: str, options: list[str]) -> list[Any]:
    """Render the chart's manifests, and check each with the schema for its kind."""
    rendered = list(yaml.safe_load_all(run([str(HELM), "template", "host", chart, *options])))
    for manifest in rendered:
        kubernetes_validate.validate(manifest, "1.33", strict=True)
    return rendered


def build_database(env: dict[str, str]) -> None:
    """Make an image with this machine's PostgreSQL, and with the libraries that it needs besides libc."""
    (home,) = Path("/usr/lib/postgresql").glob("*")
    context = ROOT / "build" / "database"
    shutil.rmtree(context, ignore_errors=True)
    for folder in (home, Path("/usr/share/postgresql", home.name)):
        shutil.copytree(folder, context / folder.relative_to("/"), ignore=shutil.ignore_patterns("bitcode", "llvmjit*"))
    listed = run(["ldd", *(str(home / "bin" / name) for name in ("postgres", "initdb", "pg_isready"))])
    libraries = {line.split()[2] for line in listed.splitlines() if "=> /" in line and "libc.so" not in line}
    (context / "lib").mkdir()
    for library in libraries:
        shutil.copy(library, context / "lib")
    (context / "start").write_text(START_DATABASE)
    (context / "Dockerfile").write_text(
        "FROM evaluator-host/base:trixie\n"
        f"ENV LD_LIBRARY_PATH=/pg/lib PATH={home}/bin:/usr/bin PGHOST=/tmp\n"
        "COPY usr /usr\nCOPY lib /pg/lib\nCOPY start /start\n"
        "RUN mkdir -p /var/lib/postgresql/data && chown 999 /var/lib/postgresql/data && echo postgres:x:999:999::/tmp:/bin/sh >>/etc/passwd\n"
        'USER 999\nENTRYPOINT ["sh", "/start"]\n'
    )
    run(["docker", "build", "--quiet", "--tag", DATABASE, str(context)], env)


def run(command: list[str], env: dict[str, str] | None = None, *, stdin: str = "", exit_code: int | None = 0) -> str:
    """Run a command in the checkout and return its output."""
    done = subprocess.run(
        command, cwd=ROOT, env=env, input=stdin, capture_output=True, text=True, check=False, timeout=280
    )
    assert exit_code in (None, done.returncode), f"{command}: {done.stdout[-1500:]} {done.stderr[-1500:]}"
    return done.stdout
