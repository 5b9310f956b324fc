"""The files that `make release` makes are complete, have correct checksums and the same bytes each time, and work on a
new machine.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.engines import engine_address
from tests.install_page import commands_of

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PACKAGES = {
    f"evaluator_host-{VERSION}.tar.gz",
    f"evaluator_host-{VERSION}-py3-none-any.whl",
    f"evaluator_host_client-{VERSION}-py3-none-any.whl",
    f"evaluator-host-client-{VERSION}.tgz",
    f"evaluator-host-chart-{VERSION}.tgz",
}
IMAGE = f"evaluator-host-image-{VERSION}.tar"
SCORE = "function evaluate(inputs, outputs, trace) { return outputs === 'a' }"
pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


def make_release(target: Path, *, tree: Path = ROOT, image: str = "", **environment: str) -> Path:
    """Run `make release`, copy its `dist` to `target`, and return `target`."""
    done = subprocess.run(
        [
            "make",
            "--no-print-directory",
            "--old-file=.venv/.run",
            "release",
            f"IMAGE={image}",
            "BASE=evaluator-host/base:trixie",
        ],
        cwd=tree,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=550,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree(tree / "dist", target)
    return target


def copy_tree(target: Path) -> dict[str, str]:
    """Copy the present content of the files that git lists, with a link to this .venv; return variables that make git
    use the copy.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)  # the copies get the present time as their modification time
    (target / ".venv").symlink_to(ROOT / ".venv")
    about = ["git", "rev-parse", "--absolute-git-dir"]
    folder = subprocess.run(about, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return {"GIT_DIR": folder, "GIT_WORK_TREE": str(target), "GIT_OPTIONAL_LOCKS": "0"}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(tmp_path_factory.mktemp("release") / "dist")


@pytest.mark.long
def test_each_file_has_its_bill_and_its_provenance_and_the_sums_hold(release: Path) -> None:
    assert {path.name for path in release.iterdir()} == {
        "RELEASE_NOTES.md",
        "SHA256SUMS",
        *(f"{name}{more}" for name in PACKAGES for more in ("", ".cdx.json", ".provenance.json")),
    }
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=release, check=True)
    assert len((release / "SHA256SUMS").read_text().splitlines()) == 3 * len(PACKAGES) + 1
    for name in PACKAGES:
        (subject,) = json.loads((release / f"{name}.provenance.json").read_text())["subject"]
        digest = hashlib.sha256((release / name).read_bytes()).hexdigest()
        assert subject == {"name": name, "digest": {"sha256": digest}}
        assert json.loads((release / f"{name}.cdx.json").read_text())["bomFormat"] == "CycloneDX"
    notes = (release / "RELEASE_NOTES.md").read_text()
    assert {name for name in PACKAGES if f"- `{name}`: " in notes} == PACKAGES
    with tarfile.open(release / f"evaluator-host-client-{VERSION}.tgz") as packed:
        assert "package/LICENSE" in packed.getnames()
    with zipfile.ZipFile(release / f"evaluator_host_client-{VERSION}-py3-none-any.whl") as wheel:
        assert f"evaluator_host_client-{VERSION}.dist-info/licenses/LICENSE" in wheel.namelist()
    needed = json.loads((release / f"evaluator_host_client-{VERSION}-py3-none-any.whl.cdx.json").read_text())
    assert "httpx" in {one["name"] for one in needed["components"]}


@pytest.mark.long
def test_the_same_commit_gives_the_same_bytes(release: Path, tmp_path: Path) -> None:
    again = make_release(tmp_path / "again")
    assert (again / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()


@pytest.mark.long
def test_helm_installs_the_packed_chart(release: Path) -> None:
    chart = str(release / f"evaluator-host-chart-{VERSION}.tgz")
    helm = Path(sys.prefix, "bin", "helm")
    command = [helm, "template", "host", chart, "--set", "storageUrl=s3://rows"]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert {one["kind"] for one in yaml.safe_load_all(rendered)} >= {"Service", "StatefulSet"}


def test_every_part_has_the_same_version() -> None:
    chart = yaml.safe_load((ROOT / "deploy/helm/Chart.yaml").read_text())
    client = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]
    package = json.loads((ROOT / "clients/typescript/package.json").read_text())
    assert {chart["version"], chart["appVersion"], client["version"], package["version"]} == {VERSION}
    pages = "".join(path.read_text() for path in (*ROOT.glob("docs/**/*.md"), *ROOT.glob("clients/*/README.md")))
    assert set(re.findall(r"evaluator[-_]host(?:[-_](?:client|chart|image))?[-:](\d+\.\d+\.\d+)", pages)) == {VERSION}


@pytest.mark.long
@pytest.mark.timeout(1200)  # the test makes two releases
def test_the_saved_image_is_the_same_again_and_scores_on_an_engine_that_loads_it(tmp_path: Path) -> None:
    engine = {"DOCKER_HOST": engine_address()}
    image = "evaluator-host/release:test"

    def docker(*arguments: str, stdin: str = "") -> str:
        command = ["docker", *arguments]
        done = subprocess.run(command, input=stdin, env={**os.environ, **engine}, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    dist = make_release(tmp_path / "dist", image=image, **engine)
    docker("rmi", "--force", image)  # this removes the image and the engine's cached layers
    elsewhere = copy_tree(tmp_path / "elsewhere")
    again = make_release(tmp_path / "again", tree=tmp_path / "elsewhere", image=image, **engine, **elsewhere)
    assert (again / "SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()
    docker("rmi", "--force", image)
    with tarfile.open(dist / IMAGE) as archive:
        assert "manifest.json" in archive.getnames()
    try:
        for command in commands_of("As a container"):
            shell = ["sh", "-ec", command]
            done = subprocess.run(shell, cwd=dist, env={**os.environ, **engine}, capture_output=True, text=True)
        assert re.search(r"score +1\.0", done.stdout), done.stdout + done.stderr
        options = ["seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"]
        allowed = [f"--security-opt={one}" for one in options]
        empty = ["--read-only", "--network=none", "--tmpfs=/tmp", "--tmpfs=/var/lib/evaluator-host:exec,uid=10001"]
        run = ["run", "--rm", "--interactive", *allowed, *empty, f"evaluator-host:{VERSION}"]
        evaluator = ["run", "/dev/stdin", "--language", "javascript", "--outputs", "a"]
        printed = docker(*run, *evaluator, stdin=SCORE)
        assert re.search(r"score +1\.0", printed), printed
    finally:
        docker("rmi", "--force", f"evaluator-host:{VERSION}")
    names = {one["name"] for one in json.loads((dist / f"{IMAGE}.cdx.json").read_text())["components"]}
    assert {"bubblewrap", "httpx", "obstore"} <= names  # obstore is needed, because the chart stores rows in S3
