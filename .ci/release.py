"""Adds the rest of a release to the packages in `dist/`: chart, bills of materials, provenance, checksums, notes.

Usage: python .ci/release.py [--image NAME]

`make release` calls it, after `make dist` has built the packages. `--image` also saves an image of the host, which
`.ci/image` built. The same commit always gives the same files, byte for byte; an image also needs the same base image
for that. This script does not sign anything: sign the files where you publish them.
"""

import argparse
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import uuid
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
_OF_BUILDS = re.compile(r"\.dockerenv|var/log/.+\.log|var/cache/ldconfig/aux-cache|var/cache/apt/.+\.bin")
_CONFIG = ("User", "ExposedPorts", "Env", "Entrypoint", "Cmd", "Healthcheck", "Volumes", "WorkingDir", "Labels")
USES = {
    "evaluator_host-*.whl": "the host; `pip install` it, then `evaluator-host serve`",
    "evaluator_host-*.tar.gz": "its source",
    "evaluator_host_client-*.whl": "the Python client of a host, for `pip install`",
    "evaluator-host-client-*.tgz": "the TypeScript client of a host, for `npm install`",
    "evaluator-host-image-*.tar": "the host as a container image, for `docker load --input`",
    "evaluator-host-chart-*.tgz": "the host in Kubernetes, for `helm install`",
}
LOCKS = ("requirements-build.lock", "requirements.lock", "evaluator_host/web/ui/package-lock.json")


def main() -> None:
    """Write all files of a release into the folder of the packages."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--image", metavar="NAME", help="save this image of the host, too")
    image: str | None = parser.parse_args().image
    pack_chart(DIST / f"evaluator-host-chart-{VERSION}.tgz")
    if image is not None:
        save_image(image, DIST / f"evaluator-host-image-{VERSION}.tar")
    artifacts = sorted(path for path in DIST.iterdir() if path.suffix in (".whl", ".gz", ".tgz", ".tar"))
    commit, changed = _run("git", "rev-parse", "HEAD"), bool(_run("git", "status", "--porcelain", "-uno"))
    for path in artifacts:
        _write_json(path.with_name(f"{path.name}.cdx.json"), bill_of(path, image))
        _write_json(path.with_name(f"{path.name}.provenance.json"), provenance_of(path, commit, changed=changed))
    notes = notes_of(VERSION, (ROOT / "CHANGELOG.md").read_text())
    (DIST / "RELEASE_NOTES.md").write_text(notes + list_of(artifacts))
    files = sorted(path for path in DIST.iterdir() if path.name != "SHA256SUMS")
    (DIST / "SHA256SUMS").write_text("".join(f"{_sha256(path)}  {path.name}\n" for path in files))


def pack_chart(target: Path) -> None:
    """Pack `deploy/helm` as `helm package` does, but without the time of packing."""
    packed = io.BytesIO()
    folder = ROOT / "deploy" / "helm"
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(f"evaluator-host/{path.relative_to(folder).as_posix()}")
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as opened:
                archive.addfile(entry, opened)
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def save_image(image: str, target: Path) -> None:
    """Save an image, tagged with this version, as an archive that `docker load` and `podman load` read.

    Its files are in one layer, in order and without times, because an engine would save the times of the build.
    """
    container = _run("docker", "create", image)
    with tempfile.TemporaryDirectory() as folder:
        exported, layer = Path(folder, "exported"), Path(folder, "layer.tar")
        _run("docker", "export", "--output", str(exported), container)
        _run("docker", "rm", "--volumes", container)
        _pack_layer(exported, layer)
        about = json.loads(_run("docker", "image", "inspect", image))[0]
        config = json.dumps(
            {
                "architecture": about["Architecture"],
                "os": about["Os"],
                "config": {key: about["Config"].get(key) for key in _CONFIG},
                "created": "1970-01-01T00:00:00Z",
                "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "make release"}],
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_sha256(layer)}"]},
            }
        )
        name = f"{hashlib.sha256(config.encode()).hexdigest()}.json"
        manifest = [{"Config": name, "RepoTags": [f"evaluator-host:{VERSION}"], "Layers": [layer.name]}]
        Path(folder, name).write_text(config)
        Path(folder, "manifest.json").write_text(json.dumps(manifest))
        with tarfile.open(target, "w") as archive:
            for part in (name, layer.name, "manifest.json"):
                archive.add(Path(folder, part), part, filter=_without_origin)


def _pack_layer(exported: Path, layer: Path) -> None:
    """Write the files of a container as an image layer, without times and caches.

    The files are sorted by name, with hard links at the end.
    """
    with tarfile.open(exported) as source, tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as packed:
        for entry in sorted(source, key=lambda one: (one.islnk(), one.name)):
            if not _OF_BUILDS.fullmatch(entry.name):
                entry.mtime = 0
                entry.pax_headers = {key: value for key, value in entry.pax_headers.items() if "time" not in key}
                packed.addfile(entry, source.extractfile(entry) if entry.isreg() else None)


def _without_origin(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry


def bill_of(artifact: Path, image: str | None) -> dict[str, Any]:
    """Return the bill of materials (CycloneDX 1.6) of an artifact: the packages that it contains or needs.

    `image` is the name of the host's image from which a .tar artifact was saved. If there is no such artifact, `image`
    is None.
    """
    if artifact.name.startswith("evaluator_host-"):
        return _bill_of_wheel()
    components: Iterable[dict[str, str]] = ()
    if artifact.suffix == ".tar" and image is not None:
        components = (*_bill_of_wheel()["components"], *_debian_packages(image))
    elif artifact.suffix == ".whl":
        needed = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]["dependencies"]
        components = (_needed(one) for one in needed)
    main = {"type": "application", "name": artifact.name, "version": VERSION, "bom-ref": artifact.name}
    listed = list(components)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([main, listed]))}",
        "version": 1,
        "metadata": {"component": main},
        "components": listed,
    }


def _bill_of_wheel() -> dict[str, Any]:
    with zipfile.ZipFile(next(DIST.glob(f"evaluator_host-{VERSION}-*.whl"))) as archive:
        (name,) = [name for name in archive.namelist() if "/sboms/" in name]
        bill: dict[str, Any] = json.loads(archive.read(name))
    return bill


def _needed(requirement: str) -> dict[str, str]:
    name = re.split(r"[<>=!~\[; ]", requirement)[0]
    return {"type": "library", "name": name, "version": requirement.removeprefix(name), "purl": f"pkg:pypi/{name}"}


def _debian_packages(image: str) -> list[dict[str, str]]:
    shown = _run("docker", "run", "--rm", "--entrypoint", "dpkg-query", image, "-W", "-f", "${Package} ${Version}\n")
    pairs = (line.split() for line in shown.splitlines())
    return [
        {"type": "library", "name": name, "version": version, "purl": f"pkg:deb/debian/{name}@{version}"}
        for name, version in pairs
    ]


def provenance_of(artifact: Path, commit: str, *, changed: bool) -> dict[str, Any]:
    """Return an in-toto statement with SLSA's predicate: the commit and locks from which an artifact was made.

    `changed` says whether the checkout has changes that the commit does not contain.
    """
    source = {"uri": "git+local", "digest": {"gitCommit": commit}, "annotations": {"changed": changed}}
    locks = [{"uri": f"file:{lock}", "digest": {"sha256": _sha256(ROOT / lock)}} for lock in LOCKS]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": artifact.name, "digest": {"sha256": _sha256(artifact)}}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://packaging.python.org/specifications/pyproject-toml",
                "externalParameters": {"command": "make release"},
                "resolvedDependencies": [source, *locks],
            },
            "runDetails": {"builder": {"id": "make release"}},
        },
    }


def notes_of(version: str, changelog: str) -> str:
    """Return the section of the changelog about a version, as notes for the release, without links to files."""
    found = re.search(rf"^## {re.escape(version)}\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None:
        sys.exit(f"CHANGELOG.md has no section {version}: add a section with this heading")
    text = re.sub(r"\[([^]]+)\]\((?!https?:)([^)]+)\)", _unlinked, found[1].strip())
    return f"# Evaluator Host {version}\n\n{text}\n"


def list_of(artifacts: Iterable[Path]) -> str:
    """Return the part of the notes that says what each file is for."""
    uses = {path.name: use for path in artifacts for pattern, use in USES.items() if path.match(pattern)}
    listed = "".join(f"- `{name}`: {use}\n" for name, use in uses.items())
    told = "`sha256sum --check SHA256SUMS` checks them. The source has the pages of docs/ that these notes name."
    return f"\n**Files**\n\n{listed}\n{told}\n"


def _unlinked(link: re.Match[str]) -> str:
    return link[2] if link[1] == link[2] else f"{link[1]} ({link[2]})"


def _write_json(target: Path, content: dict[str, Any]) -> None:
    target.write_text(json.dumps(content, indent=1) + "\n")


def _run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
