"""Pastes whole evaluator files from public repositories, and counts how many score correctly without changes.

The files themselves are not stored here. `corpus.json` has the address and digest of each file, a row, and the right
value, or the expected error for a file that cannot score alone. `python -m tests.whole_files run CHECKOUTS` reads the
files from git repositories below a folder (`owner+name`, or `owner+name/repo`), and other files from the network. With
`--in-checkout`, each file runs inside its checkout, as with the command line, which also sends the modules that the
file imports. There, a file that asks a model gets the answer in `corpus.json`. `python -m tests.whole_files draw
CHECKOUTS` lists files that look like evaluators and are not in the corpus.
"""

import argparse
import asyncio
import hashlib
import io
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx

from evaluator_host import Evaluator, Language, Row
from evaluator_host.engine.config.settings import Settings
from evaluator_host.platform.evaluators.evaluation_service import EvaluationService, open_evaluation_service
from evaluator_host.platform.evaluators.evaluator_files import read_evaluator
from evaluator_host.types.errors import HostError
from evaluator_host.types.outcome import EvaluationResult
from tests.whole_files.scripted import ScriptedModels

_CORPUS: Final = Path(__file__).with_name("corpus.json")
_RAW: Final = "https://raw.githubusercontent.com/{owner}/{name}/{commit}/{path}"
_ADDRESS: Final = re.compile(
    r"github:(?P<owner>[^/]+)/(?P<name>[^@]+)@(?P<commit>[0-9a-f]{40}):(?P<path>.+\.(?P<suffix>\w+))"
)
_LANGUAGES: Final = {
    "py": Language.PYTHON,
    "js": Language.JAVASCRIPT,
    "cjs": Language.JAVASCRIPT,
    "mjs": Language.JAVASCRIPT,
    "ts": Language.TYPESCRIPT,
}
_SIGNATURES: Final = {
    Language.PYTHON: r"^class \w+\(.*(?:BaseMetric|Scorer)\)|^@(?:scorer|create_evaluator|weave\.op|\w+_metric)\b"
    r"|^(?:async )?def \w+\([^)]*\b(?:outputs?|completions?|response|prediction|run|solution_str)\b|\bEval\(",
    Language.JAVASCRIPT: r"module\.exports\s*=|export default|\boutput\b.*\bexpected\b|\breferenceOutputs\b",
    Language.TYPESCRIPT: r"\boutput\b.*\bexpected\b|\breferenceOutputs\b|Scorer<",
}
_LINES: Final = re.MULTILINE
_TEXTS: Final = (
    *(f".{suffix}" for suffix in _LANGUAGES),
    ".tsx",
    ".json",
    ".toml",
    ".txt",
    ".md",
    ".cfg",
)
_BYTES: Final = range(150, 30_000)
_TOGETHER: Final = 4
_ONE_CHECKOUT: Final = asyncio.Lock()
_CLOSE: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFile:
    """A file of the corpus.

    Attributes:
      address: `github:OWNER/NAME@COMMIT:PATH`.
      sha256: Digest of the file, in hexadecimal.
      row: Fields of the row.
      score: The score that its platform gives; None if there is only a label.
      passed: The verdict, for a file that gives only a verdict.
      stops: For a pasted file that cannot score: the code of the error, and text in the error's message or hint.
      in_checkout: Values of `score`, `passed`, `stops` and `row` that are different if the file runs in its checkout.
      model: For a file that asks a model: the kind of the model that the file may call in its checkout, and the answer
        that this model gives to every request.
    """

    address: str
    sha256: str
    row: dict[str, Any] = field(default_factory=dict)
    score: float | None = None
    passed: bool | None = None
    stops: tuple[str, str] | None = None
    in_checkout: dict[str, Any] | None = None
    model: tuple[str, str] | None = None

    @property
    def parts(self) -> dict[str, str]:
        """Parts of the address: owner, name, commit, path and suffix."""
        found = _ADDRESS.fullmatch(self.address)
        assert found is not None, self.address
        return found.groupdict()

    def lying(self) -> "WholeFile":
        """Return this record with the outcome that is expected if the file runs in its checkout."""
        alone: dict[str, Any] = {"score": None, "passed": None, "stops": None, "in_checkout": None}
        return self if self.in_checkout is None else replace(self, **(alone | self.in_checkout))

    def judged(self, result: EvaluationResult) -> str:
        """Judge a result: `right`, `wrong`, `as it should` (the expected error) or `stopped` (another error)."""
        if result.error is None:
            score = result.score is not None and self.score is not None and abs(result.score - self.score) <= _CLOSE
            verdict = self.passed is not None and result.passed is self.passed
            return "right" if self.stops is None and (score or verdict) else "wrong"
        told = f"{result.error.message} {result.error.hint or ''}"
        clear = self.stops is not None and result.error.code == self.stops[0] and self.stops[1] in told
        return "as it should" if clear else "stopped"


def corpus() -> list[WholeFile]:
    found = json.loads(_CORPUS.read_text())
    return [
        WholeFile(**{name: tuple(value) if isinstance(value, list) else value for name, value in one.items()})
        for one in found
    ]


def text_of(one: WholeFile, checkouts: Path) -> str:
    """Return the content of a file.

    Raises:
      ValueError: the file's digest is different.
    """
    at = one.parts
    shown = next((text for git in _places(one, checkouts) if (text := _git(git, "show", _object(one)))), None)
    if shown is None:
        shown = httpx.get(_RAW.format(**at), follow_redirects=True, timeout=30).raise_for_status().content
    if hashlib.sha256(shown).hexdigest() != one.sha256:
        raise ValueError(f"{one.address} has another digest")
    return shown.decode()


def _places(one: WholeFile, checkouts: Path) -> tuple[Path, Path, Path]:
    folder = checkouts / f"{one.parts['owner']}+{one.parts['name']}"
    return folder, folder / "repo", folder / ".git"


def _object(one: WholeFile) -> str:
    return f"{one.parts['commit']}:{one.parts['path']}"


def checked_out(one: WholeFile, checkouts: Path, into: Path) -> Path:
    """Check out the sources of a file's repository into a new folder, and return the file's path in that folder.

    Raises:
      ValueError: no repository below `checkouts` has the file.
    """
    root = into / f"{one.parts['owner']}+{one.parts['name']}+{one.parts['commit']}"
    if not root.is_dir():
        git = next(
            (place for place in _places(one, checkouts) if _git(place, "cat-file", "-e", _object(one)) is not None),
            None,
        )
        if git is None:
            raise ValueError(f"no repository below {checkouts} has {one.address}")
        (root / ".git").mkdir(parents=True)
        for path, text in _texts(git, one.parts["commit"]):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text)
    return root / one.parts["path"]


def _texts(git: Path, commit: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each source file in a commit. Large files may be missing in the repository."""
    lines = [line.partition(b"\t") for line in (_git(git, "ls-tree", "-r", commit) or b"").splitlines()]
    blobs = {path.decode(errors="replace"): about.split()[2] for about, _, path in lines if about.startswith(b"100")}
    wanted = [path for path in blobs if path.endswith(_TEXTS)]
    asked = b"".join(blobs[path] + b"\n" for path in wanted)
    packed = subprocess.run(
        ["git", "-C", str(git), "cat-file", "--batch"], input=asked, capture_output=True, check=True
    )
    answer = io.BytesIO(packed.stdout)
    for path in wanted:
        head = answer.readline().split()
        if head[1] == b"blob":
            yield path, answer.read(int(head[2]) + 1)[:-1]


def _git(folder: Path, *told: str) -> bytes | None:
    if not folder.is_dir():
        return None
    done = subprocess.run(["git", "-C", str(folder), *told], capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


async def run(checkouts: Path, only: str, packages: tuple[str, ...], *, in_checkout: bool) -> int:
    """Paste all files, print each outcome, and return how many scores are wrong."""
    files = [one.lying() if in_checkout else one for one in corpus() if only in one.address]
    turns = asyncio.Semaphore(_TOGETHER)
    asked = {one.sha256: one.model for one in files if one.model is not None} if in_checkout else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        ScriptedModels({name: answer for name, (_, answer) in asked.items()}) as server,
    ):
        into = Path(folder) if in_checkout else None
        models = {name: {"base_url": server.url, "kind": kind, "model": name} for name, (kind, _) in asked.items()}
        async with open_evaluation_service(Settings(models=models, judge_hosts=("127.0.0.1",)), None) as engine:
            ends = await asyncio.gather(*(_paste(engine, one, checkouts, into, turns, packages) for one in files))
    for one, (judged, told) in zip(files, ends, strict=True):
        print(f"{judged:13} {one.address.partition('@')[0][7:]} {one.parts['path']}\n{'':14}{told}")
    counts = Counter(judged for judged, _ in ends)
    print(f"{len(files)} files: {dict(counts)}; {counts['right'] / len(files):.0%} score at the first paste")
    return counts["wrong"]


async def _paste(
    engine: EvaluationService,
    one: WholeFile,
    checkouts: Path,
    into: Path | None,
    turns: asyncio.Semaphore,
    packages: tuple[str, ...],
) -> tuple[str, str]:
    async with turns:
        try:
            if into is None:
                text = await asyncio.to_thread(text_of, one, checkouts)
                evaluator = Evaluator(text, _LANGUAGES[one.parts["suffix"]], packages=packages)
            else:
                async with _ONE_CHECKOUT:
                    file = await asyncio.to_thread(checked_out, one, checkouts, into)
                models = [f"*={one.sha256}"] if one.model is not None else []
                evaluator = await asyncio.to_thread(_read, file, packages, models)
            result = await engine.evaluate(evaluator, Row(**one.row))
        except HostError as failed:
            return "stopped", f"{failed.code}: {failed}".partition("\n")[0]
    error = result.error
    told = f"{result.score} by {result.evaluator.contract}" if error is None else f"{error.code}: {error.message}"
    return one.judged(result), told if error is None else f"{told} | {error.hint}"


def _read(file: Path, packages: tuple[str, ...], models: list[str]) -> Evaluator:
    return read_evaluator(file, None, host=Settings(), packages=list(packages), models=models).evaluator


def drawn(checkouts: Path) -> Iterator[dict[str, str]]:
    """Yield the address and digest of each file that looks like an evaluator and is not in the corpus."""
    known = {one.sha256 for one in corpus()}
    for folder in sorted(checkouts.iterdir()):
        git = next((one for one in (folder / "repo", folder / ".git", folder) if one.is_dir()), folder)
        head, listed = _git(git, "rev-parse", "HEAD"), _git(git, "ls-tree", "-r", "-l", "HEAD")
        for line in (listed or b"").decode(errors="replace").splitlines():
            (_, _, blob, size), path = line.partition("\t")[0].split(), line.partition("\t")[2]
            language = _LANGUAGES.get(path.rpartition(".")[2])
            if language is None or not size.isdigit() or int(size) not in _BYTES or head is None:
                continue
            text = _git(git, "cat-file", "blob", blob) or b""
            digest = hashlib.sha256(text).hexdigest()
            if digest not in known and re.search(_SIGNATURES[language], text.decode(errors="replace"), _LINES):
                known.add(digest)
                name = folder.name.replace("+", "/", 1)
                yield {"address": f"github:{name}@{head.decode().strip()}:{path}", "sha256": digest}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.whole_files", description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["run", "draw"])
    parser.add_argument("checkouts", type=Path, help="folder of git repositories, as owner+name")
    parser.add_argument("--only", default="", help="take only files whose addresses contain this text")
    parser.add_argument(
        "--packages", action="append", default=[], help="exact versions of packages for every evaluator, or auto"
    )
    parser.add_argument(
        "--in-checkout", action="store_true", help="run each file in its checkout, with the modules that it imports"
    )
    told = parser.parse_args()
    if told.command == "draw":
        json.dump(list(drawn(told.checkouts)), sys.stdout, indent=1)
        return 0
    return min(1, asyncio.run(run(told.checkouts, told.only, tuple(told.packages), in_checkout=told.in_checkout)))


if __name__ == "__main__":
    sys.exit(main())
