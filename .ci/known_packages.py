"""Writes `known_packages.json`: the packages that the host may choose for an import, and the modules of each.

These are packages that many people install, and the packages in `known_names.json`. The host never chooses any other
package. Otherwise, if an evaluator imports a file of its author, a stranger could publish a package with the name of
that file, and the host would install it. Run this with lists of the most used packages, one name per line (anything
after a tab is ignored), the most used first:

    uv run --with pipreqs --with autopep723 .ci/known_packages.py --python pypi.txt --javascript npm.txt

uv uses the index that it is configured for; the tables of pipreqs and autopep723 say which modules a package has.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "evaluator_host" / "engine" / "packages"
MOST = 5000  # number of packages to list for each language
# packages that contain only types, so no code imports them
STUBS = re.compile(r"types-.*|.*-stubs|@types/.*|mypy-boto3-.*|pyobjc-.*")


def main() -> None:
    """Write `known_packages.json` beside `known_names.json`."""
    given = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    given.add_argument("--python", type=Path, required=True, help="most used packages of the Python index")
    given.add_argument("--javascript", type=Path, required=True, help="most used packages of npm")
    lists = given.parse_args()
    kept = json.loads((FOLDER / "known_names.json").read_text("utf-8"))
    python = {canonical(name) for name in (*most_used(lists.python), *kept["python_packages"])}
    python |= {canonical(package) for package in kept["package_of_module"].values()}
    apart = set(kept["namespaces"])
    modules = {module: package for module, package in modules_of_tables() if package in python and module not in apart}
    modules |= {module: package for package in sorted(python) for module in below(package, apart)}
    modules |= {module: package for package in sorted(python) for module in shorter(package, python) if module}
    modules |= {module: canonical(package) for module, package in kept["package_of_module"].items()}
    found = {
        "made": datetime.now(UTC).date().isoformat(),
        "python": sorted(python),
        "javascript": sorted({*most_used(lists.javascript), *kept["npm_packages"]}),
        "modules": {module: modules[module] for module in sorted(modules)},
    }
    (FOLDER / "known_packages.json").write_text(json.dumps(found, indent=0) + "\n", "utf-8")
    sys.stdout.write(", ".join(f"{len(table)} {name}" for name, table in found.items() if name != "made") + "\n")


def most_used(file: Path) -> list[str]:
    """Return the first `MOST` names in a list file, without packages that contain only type stubs."""
    names = (line.partition("\t")[0].strip() for line in file.read_text("utf-8").splitlines())
    return [name for name in names if name and not STUBS.fullmatch(name)][:MOST]


def modules_of_tables() -> Iterator[tuple[str, str]]:
    """Yield `(module, package)` from the tables of pipreqs and autopep723, without the standard library."""
    lines = files("pipreqs").joinpath("mapping").read_text("utf-8").split()
    table: dict[str, Any] = import_module("autopep723").IMPORT_TO_PACKAGE_MAP
    for module, package in (*(line.split(":") for line in lines), *table.items()):
        if module.partition(".")[0] not in sys.stdlib_module_names:
            yield module, canonical(package)


def shorter(package: str, known: set[str]) -> Iterator[str]:
    """Yield the module `name` for a package `python-name` or `name-python`, unless a package `name` exists."""
    for found in (re.fullmatch(r"(?:python|py)-(.+)", package), re.fullmatch(r"(.+)-(?:python|py)", package)):
        if found and found[1] not in known and found[1] not in sys.stdlib_module_names:
            yield found[1].replace("-", "_")


def below(package: str, namespaces: set[str]) -> Iterator[str]:
    """Yield modules that a package may have in a namespace: azure-ai-inference may have `azure.ai.inference`."""
    for namespace in namespaces:
        start = canonical(namespace) + "-"
        if package.startswith(start):
            rest = package.removeprefix(start)
            yield from (f"{namespace}.{rest.replace('-', between)}" for between in (".", "_", ""))


def canonical(name: str) -> str:
    """Return a package's name in its canonical spelling."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
