"""Write a provenance file beside each built package: an in-toto statement with SLSA's predicate, version 1.

Usage: python .ci/provenance.py DIST_FILE…

It says of which commit and which locks the files are made. It is not signed:
who publishes the files signs it.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements-build.lock", "requirements.lock", "evaluator_host/web/ui/package-lock.json")


def main(files: list[Path]) -> None:
    """Write `FILE.provenance.json` for each file."""
    commit = _git("rev-parse", "HEAD")
    changed = bool(_git("status", "--porcelain", "--untracked-files=no"))
    source = {"uri": "git+local", "digest": {"gitCommit": commit}, "annotations": {"changed": changed}}
    locks = [{"uri": f"file:{lock}", "digest": {"sha256": _sha256(ROOT / lock)}} for lock in LOCKS]
    for file in files:
        statement = {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": file.name, "digest": {"sha256": _sha256(file)}}],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {
                    "buildType": "https://packaging.python.org/specifications/pyproject-toml",
                    "externalParameters": {"command": "make dist"},
                    "resolvedDependencies": [source, *locks],
                },
                "runDetails": {"builder": {"id": "make dist"}},
            },
        }
        file.with_name(f"{file.name}.provenance.json").write_text(json.dumps(statement, indent=2) + "\n")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603, S607
    return done.stdout.strip()


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
