"""The command line works as users see it: real processes, their exit codes, and their output on each stream."""

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator_host.__main__ import main
from evaluator_host.engine.sandbox.linux.watchdog import child_pids
from tests import forked
from tests.conftest import DATA_DIR
from tests.server import Server, free_port

EXACT = 'def evaluate(inputs, outputs, trace):\n    return 1.0 if outputs == inputs["correct_answer"] else 0.0\n'
ENVIRONMENT = {**os.environ, "EVALUATOR_HOST_DATA_DIR": str(DATA_DIR), "EVALUATOR_HOST_SANDBOX": "bubblewrap"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(log=tmp_path_factory.mktemp("server") / "log") as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "exact.py").write_text(EXACT)
    rows = [{"question": n, "correct_answer": n % 4, "output": 0} for n in range(40)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def cli(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    ran = forked.run(arguments, cwd=folder, env={**ENVIRONMENT, **(environment or {})}, timeout=100)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran


def inside(
    folder: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """Run a command inside this process; return its exit code, standard output and standard error."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["evaluator-host", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@pytest.mark.long
def test_scores_for_each_value_of_a_column(folder: Path) -> None:
    (folder / "exact.py").write_text(EXACT.replace("else 0.0", "else outputs * 0.0"))
    rows = [
        {"topic": topic, "correct_answer": 1, "output": output} for topic, output in (("b", 1), ("a", 2), ("b", None))
    ]
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in (*rows, {"correct_answer": 1, "output": 1}))
    )
    ran = cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--by", "topic")
    table = [line.split() for line in ran.stdout.splitlines()[-4:]]
    assert table[0][0] == "TOPIC"
    assert table[1:] == [
        ["a", "1", "1", "0", "0", "0", "-", "1", "-"],
        ["b", "2", "1", "1", "0", "1", "-", "1", "-"],
        ["(no", "value)", "1", "1", "0", "0", "1", "-", "1", "-"],
    ]
    by = json.loads(cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--by", "topic", "--json").stdout)["by"]
    assert [(one["value"], one["mean"], one["failed"]) for one in by["groups"]] == [
        ("a", 0, 0),
        ("b", 1, 1),
        (None, 1, 0),
    ]
    assert (by["column"], by["others"]) == ("topic", None)
    wrong = cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--by", "topik")
    assert (wrong.returncode, "did you mean topic?" in wrong.stderr) == (2, True)


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_run_scores_a_file_and_writes_every_result(folder: Path) -> None:
    ran = cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--out", "out.jsonl", "--include-rows")
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"rows +40\n", ran.stdout)
    assert re.search(r"score +mean 0.25 \(standard error 0.069\), min 0, max 1\n", ran.stdout)
    entries = sorted(read_lines(folder / "out.jsonl"), key=lambda entry: entry["index"])
    assert [entry["index"] for entry in entries] == list(range(40))
    assert [entry["line"] for entry in entries] == list(range(1, 41))
    assert [entry["result"]["score"] for entry in entries] == [float(n % 4 == 0) for n in range(40)]
    assert entries[5]["row"] == {"question": 5, "correct_answer": 1, "output": 0}


@pytest.mark.long
def test_results_of_an_earlier_run_stay_until_there_are_new_ones(folder: Path) -> None:
    kept, data = folder / "kept.jsonl", folder / "rows.jsonl"
    kept.write_text("results of an earlier run\n")
    (folder / "empty.jsonl").touch()
    rows = data.read_text()
    for mistake in (
        ("exact.py", "--data", "rows.jsonl", "--map", "outputs=nothing"),
        ("exact.py", "--data", "empty.jsonl"),
        ("exact.py", "--data", "rows.jsonl", "--package", "nothing-of-this-name==1.0"),
    ):
        assert cli(folder, "run", *mistake, "--out", "kept.jsonl").returncode == 2
        assert kept.read_text() == "results of an earlier run\n"
    refused = cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--out", "./rows.jsonl")
    assert (refused.returncode, data.read_text()) == (2, rows)
    assert "choose another file" in refused.stderr
    for other in ("out.csv", "out.tsv", "out.parquet", "out.XLSX"):
        named = cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--out", other)
        assert (named.returncode, (folder / other).exists()) == (2, False)
        assert f"{other} has the suffix of another format: write --out out.jsonl" in named.stderr
    assert [path.name for path in folder.glob("*.part")] == []
    assert cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--out", "kept.jsonl").returncode == 0
    assert len(read_lines(kept)) == 40


@pytest.mark.long
def test_run_prints_its_summary_as_json(folder: Path) -> None:
    ran = cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--threshold", "0.5", "--json")
    assert ran.returncode == 0
    summary = json.loads(ran.stdout)
    assert (summary["rows"], summary["scored"], summary["failed"]) == (40, 40, 0)
    assert (summary["mean"], summary["min"], summary["max"], summary["pass_rate"]) == (0.25, 0.0, 1.0, 0.25)
    assert 0 < summary["run_ms"]["p50"] <= summary["run_ms"]["p99"]
    assert ran.stderr == ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("under", "code"), [("0.25", 0), ("0.26", 1)])
def test_run_exits_by_its_threshold(folder: Path, under: str, code: int) -> None:
    assert cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--fail-under", under).returncode == code


@pytest.mark.long
def test_run_prints_the_pins_that_it_lacks_once_and_none_of_a_strangers_package(folder: Path) -> None:
    body = "\nused = list(map(str, [{}]))\ndef evaluate(inputs, outputs, trace):\n    return len(used)\n"
    for imports, hint, pin in (
        ("import numpy", "add --package numpy==", r"^add --package numpy==[\d.]+$"),
        ("import numpy, pandas", "add --package numpy==", r"^add --package numpy==\S+ --package pandas==\S+$"),
        (
            "from rubrics import Rubric",
            "rubrics is probably a file of yours (no well-known package is called rubrics): send it with --file",
            None,
        ),
        (
            "import numpy\nfrom rubrics import Rubric",
            "rubrics is probably a file of yours",
            r"^add --package numpy==[\d.]+$",
        ),
    ):
        names = re.findall(r"numpy|pandas|Rubric", imports)
        (folder / "lacking.py").write_text(imports + body.format(", ".join(names)))
        ran = cli(folder, "run", "lacking.py", "--data", "rows.jsonl", "--map", "outputs=none", "--limit", "1")
        assert (ran.returncode, hint in ran.stdout + ran.stderr) == (1, True), ran.stdout + ran.stderr
        told = ran.stdout + ran.stderr
        found = re.findall(r"add --package.*$", told, re.MULTILINE)
        assert (found == []) if pin is None else re.match(pin, found[-1]), told
        assert told.count("--package numpy==") == imports.count("numpy") + imports.count("pandas"), told


@pytest.mark.long
def test_every_hint_names_the_version_in_the_lock_file_of_the_project(folder: Path) -> None:
    (folder / "requirements.txt").write_text("numpy==1.2.3\nopenai==1.2.4\n")
    used = "import numpy\nimport openai\ndef evaluate(inputs, outputs, trace):\n    return {}\n"
    row, rows = ("--inputs", "{}", "--outputs", "x"), ("--data", "rows.jsonl", "--map", "outputs=output")
    for code, pin in (("numpy.mean([1])", "numpy==1.2.3"), ("openai.OpenAI()", "openai==1.2.4")):
        (folder / "lacking.py").write_text(used.format(code))
        for arguments in (("run", "lacking.py", *row), ("run", "lacking.py", *rows), ("check", "lacking.py")):
            ran = cli(folder, *arguments)
            told = ran.stdout + "".join(
                ran.stderr.splitlines(keepends=True)[1:]
            )  # without the line that says what the file pins
            found = set(re.findall(r"(?:numpy|openai)==[\w.]+", told))
            assert pin in found, told
            assert found <= {"numpy==1.2.3", "openai==1.2.4"}, told


def test_a_row_that_fails_is_counted_shown_and_exits_1(folder: Path) -> None:
    with (folder / "rows.jsonl").open("a") as file:
        file.write('{"question": "no answer"}\n')
    ran = cli(folder, "run", "exact.py", "--data", "rows.jsonl")
    assert ran.returncode == 1
    assert re.search(r"failed +1  user_exception 1\n", ran.stdout)
    assert "row 40 (line 41): user_exception" in ran.stdout
    assert "(line 2, column 30 of the evaluator)" in ran.stdout


@pytest.mark.long
def test_bad_lines_are_named_and_left_out_unless_strict(folder: Path) -> None:
    with (folder / "rows.jsonl").open("a") as file:
        file.write("nonsense\n")
    ran = cli(folder, "run", "exact.py", "--data", "rows.jsonl")
    assert ran.returncode == 0
    assert "rows.jsonl:41: not JSON" in ran.stderr
    assert re.search(r"bad lines +1\n", ran.stdout)
    assert cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--strict").returncode == 2


def test_a_file_without_a_row_is_the_callers_mistake(folder: Path) -> None:
    (folder / "empty.jsonl").write_text("nonsense\n")
    ran = cli(folder, "run", "exact.py", "--data", "empty.jsonl")
    assert ran.returncode == 2
    assert "no row to score in empty.jsonl: bad lines: 1" in ran.stderr


@pytest.mark.sampled(2)
@pytest.mark.parametrize("isolation", ["row", "batch"])
def test_csv_mapping_limit_and_typescript(folder: Path, isolation: str) -> None:
    (folder / "length.ts").write_text(
        "export const evaluate = (inputs: {limit: string}, outputs: string, trace: unknown): number =>"
        " outputs.length <= Number(inputs.limit) ? 1 : 0;\n"
    )
    (folder / "rows.csv").write_text("limit,answer\n5,Paris\n5,Reykjavik\n5,Rome\n")
    ran = cli(
        folder, "run", "length.ts", "--data", "rows.csv", "--map", "outputs=answer", "--limit", "2", "--json",
        "--isolation", isolation, "--parallelism", "1",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert (json.loads(ran.stdout)["rows"], json.loads(ran.stdout)["mean"]) == (2, 0.5)


@pytest.mark.long
def test_one_row_needs_no_file(folder: Path) -> None:
    ran = cli(folder, "run", "exact.py", "--inputs", '{"correct_answer": "Paris"}', "--outputs", "Paris", "--json")
    assert ran.returncode == 0
    assert json.loads(ran.stdout)["score"] == 1.0
    ran = cli(folder, "run", "exact.py", "--inputs", "{}")
    assert ran.returncode == 1
    assert "user_exception" in ran.stdout
    assert "KeyError" in ran.stdout


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "missing.py"], "missing.py"),
        (["run", "rows.jsonl"], "--language"),
        (["run", "exact.py", "--package", "numpy>=2.1"], "did you mean numpy=="),
        (["run", "exact.py", "--memory-mb", "1"], "--memory-mb"),
        (["run", "exact.py", "--memory-mb", "9999999"], "  --memory-mb:"),
        (["run", "exact.py", "--inputs", "[1]"], "--inputs"),
        (["run", "exact.py", "--data", "rows.jsonl", "--outputs", "x"], "--outputs"),
        (["run", "exact.py", "--data", "nowhere.jsonl"], "nowhere.jsonl"),
        (["run", "exact.py", "--data", "rows.jsonl", "--map", "x=y"], "--map"),
        (["run", "exact.py", "--data", "rows.jsonl", "--out", "nowhere/out.jsonl"], "nowhere/out.jsonl"),
        (["run", "exact.py", "--no-such-option"], "--no-such-option"),
        (
            ["run", "exact.py", "--inputs", "{}", "--model", "judge-small"],
            "no model judge-small: to use what was added",
        ),
        (["serve", "--port", "70000"], "--port"),
    ],
)
def test_a_callers_mistake_exits_2_and_is_named(
    folder: Path, arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = inside(folder, arguments, monkeypatch, capsys)
    assert code == 2
    assert says in err
    assert out == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "example.org"])
def test_a_host_that_others_reach_needs_a_key(folder: Path, host: str) -> None:
    database = {"EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{folder}/host.db"}
    ran = cli(folder, "serve", "--host", host, environment=database)
    assert ran.returncode == 2
    assert "127.0.0.1" in ran.stderr


def test_a_setting_that_cannot_be_taken_is_named(folder: Path) -> None:
    for name, value in (("QUEUE_LIMIT", "many"), ("ALLOWED_HOSTS", "no json")):
        ran = cli(folder, "doctor", environment={f"EVALUATOR_HOST_{name}": value})
        assert ran.returncode == 2
        assert name.lower() in ran.stderr.lower()


@pytest.mark.long
def test_lost_indentation_is_shown_then_restored(folder: Path) -> None:
    lost, file = "\n".join(line.strip() for line in EXACT.split("\n")), folder / "lost.py"
    file.write_text(lost)
    ran = cli(folder, "check", "lost.py")
    assert ran.returncode == 1
    assert "+    return 1.0 if outputs" in ran.stdout
    assert cli(folder, "run", "lost.py", "--data", "rows.jsonl", "--repair").returncode == 0
    assert file.read_text() == lost
    ran = cli(folder, "check", "lost.py", "--fix")
    assert (ran.returncode, file.read_text()) == (0, EXACT), ran.stderr
    assert "was not changed" in cli(folder, "check", "lost.py", "--fix").stderr


@pytest.mark.long
def test_an_option_keeps_large_integers(folder: Path) -> None:
    (folder / "equal.js").write_text("export const evaluate = (inputs, outputs, trace) => outputs === inputs.id;\n")
    row = ("run", "equal.js", "--inputs", json.dumps({"id": 2**53 + 1}), "--outputs", str(2**53))
    said = cli(folder, *row)
    assert 'set --integers to "bigint" or "text"' in re.sub(r"\s+", " ", said.stdout)
    ran = cli(folder, *row, "--integers", "bigint", "--json")
    assert (json.loads(ran.stdout)["score"], json.loads(ran.stdout)["warnings"]) == (0, [])


@pytest.mark.parametrize("words", [("add", "evaluatr", "tone"), ("register", "evaluator"), ("add", "a", "b", "c")])
def test_a_wrong_command_of_uipath_is_answered_with_the_right_one(
    folder: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, told = inside(folder, ["uipath", *words], monkeypatch, capsys)
    assert code == 2
    assert f"did you mean: uipath {words[0]} evaluator" in told


def test_run_and_check_use_a_host_that_runs(folder: Path, server: Server) -> None:
    ran = cli(folder, "run", "exact.py", "--data", "rows.jsonl", "--url", server.url, "--json", "--out", "out.jsonl")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["mean"] == 0.25
    scores = {entry["index"]: entry["result"]["score"] for entry in read_lines(folder / "out.jsonl")}
    assert scores == {n: float(n % 4 == 0) for n in range(40)}
    assert cli(folder, "check", "exact.py", "--url", server.url).returncode == 0
    ran = cli(folder, "check", "exact.py", "--url", f"http://127.0.0.1:{free_port()}")
    assert ran.returncode == 3
    assert "nothing answers" in ran.stderr


def test_check_says_what_it_found(folder: Path) -> None:
    ran = cli(folder, "check", "exact.py")
    assert ran.returncode == 0
    assert re.search(r"contract +evaluate \(inferred\)\n", ran.stdout)
    (folder / "bad.py").write_text("import cv2\n" + EXACT + "\nevaluate.read = cv2.imread\n")
    ran = cli(folder, "check", "bad.py")
    assert ran.returncode == 1
    assert "No module named 'cv2' (line 1, column 1)" in ran.stdout
    assert ran.stdout.count("opencv-python==") == 1
    report = json.loads(cli(folder, "check", "bad.py", "--json").stdout)
    assert report["ok"] is False
    assert report["missing_imports"][0]["module"] == "cv2"


def test_a_name_that_is_not_a_file_is_reported(folder: Path) -> None:
    ran = cli(folder, "run", "exact", "--data", "rows.jsonl")
    assert (ran.returncode, "cannot read exact: there is no such file" in ran.stderr) == (2, True)


@pytest.mark.long
def test_an_empty_file_is_said_to_be_empty(folder: Path) -> None:
    (folder / "empty.csv").write_text("gold,answer\n")
    ran = cli(folder, "run", "exact.py", "--data", "empty.csv")
    assert (ran.returncode, "there is no row to score in empty.csv: the file is empty" in ran.stderr) == (2, True)


@pytest.mark.long
def test_printed_text_cannot_control_the_terminal(folder: Path) -> None:
    (folder / "loud.py").write_text(
        "def evaluate(inputs, outputs, trace):\n    print('\\x1b[2J[bold]x[/bold]')\n    return 1\n"
    )
    ran = cli(folder, "run", "loud.py")
    assert "\x1b" not in ran.stdout
    assert "[bold]x[/bold]" in ran.stdout


@pytest.mark.long
def test_doctor_finds_the_backend_that_works(folder: Path) -> None:
    ran = cli(folder, "doctor")
    assert ran.returncode == 0, ran.stdout
    report = json.loads(cli(folder, "doctor", "--json").stdout)
    assert report["ok"] is True
    assert {finding["name"]: finding["ok"] for finding in report["findings"]["bubblewrap"]}["python sandbox"]
    names = {finding["name"] for finding in report["findings"]["host"]}
    assert names >= {"python", "node", "esbuild", "data directory"}


@pytest.mark.long
def test_doctor_calls_a_backend_that_no_host_needs_no_fault(folder: Path) -> None:
    nowhere = {"EVALUATOR_HOST_DOCKER_HOST": "unix:///nowhere/docker.sock"}
    ran = cli(folder, "doctor", environment={**nowhere, "EVALUATOR_HOST_SANDBOX": "auto"})
    assert ran.returncode == 0, ran.stdout
    assert "docker (not needed: bubblewrap works)" in ran.stdout
    assert "NO  engine" not in ran.stdout
    assert "--  engine" in ran.stdout
    chosen = cli(folder, "doctor", environment={**nowhere, "EVALUATOR_HOST_SANDBOX": "docker"})
    assert chosen.returncode == 3, "doctor must exit with 3, because serve could not start"
    assert "NO  engine" in chosen.stdout
    assert (
        "docker does not work, so no evaluator can run: fix it, or choose another with EVALUATOR_HOST_SANDBOX"
        in " ".join(chosen.stdout.split())
    )


def test_a_taken_port_is_reported_clearly(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = cli(folder, "serve", "--port", str(port))
    assert ran.returncode == 2
    assert f"port {port} of 127.0.0.1 is in use" in ran.stderr


def test_serve_prints_a_call_that_works_when_pasted(server: Server) -> None:
    line = next(line for line in server.log.splitlines() if line.startswith("curl "))
    answer = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60).stdout
    assert json.loads(answer)["score"] == 1.0
    assert f"listens on {server.url} (sandbox: bubblewrap" in server.log
    assert f"For commands in other terminals: export EVALUATOR_HOST_URL={server.url}\n" in server.log


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_ends_its_sandboxes(folder: Path, number: signal.Signals) -> None:
    (folder / "slow.py").write_text("import time\ndef evaluate(i, o, t):\n    time.sleep(60)\n")
    command = ["run", "slow.py", "--timeout-s", "100"]
    with (folder / "said").open("w") as said:
        process = forked.Forked(command, cwd=folder, env=ENVIRONMENT, stderr=said.fileno())
    until = time.monotonic() + 30
    while not child_pids(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    sandboxes = child_pids(process.pid)
    assert sandboxes
    time.sleep(1)  # give the row time to begin
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    assert "Traceback" not in (folder / "said").read_text()
    assert not [pid for pid in sandboxes if Path(f"/proc/{pid}").exists()]


@pytest.mark.long
def test_the_progress_bar_shows_on_a_terminal_and_nowhere_else(folder: Path) -> None:
    (folder / "slow.py").write_text("import time\ndef evaluate(i, o, t):\n    time.sleep(0.05)\n    return 1\n")
    command = ["run", "slow.py", "--data", "rows.jsonl"]
    assert cli(folder, *command).stderr == ""
    ours, theirs = pty.openpty()
    terminal = {**ENVIRONMENT, "TERM": "xterm"}
    # the command is not forked, because the terminal must be there when the module is imported
    started = [sys.executable, "-m", "evaluator_host", *command]
    with subprocess.Popen(started, cwd=folder, env=terminal, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = _read_all(ours)
    assert process.returncode == 0
    assert "rows/s" in shown


def test_version_and_help(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert re.fullmatch(r"evaluator-host \d+\.\d+\.\d+\n", cli(folder, "version").stdout)
    _, out, _ = inside(folder, ["version", "--json"], monkeypatch, capsys)
    assert set(json.loads(out)) == {"version"}
    for arguments in ([], ["run"], ["images"], ["images", "build"]):
        code, out, _ = inside(folder, [*arguments, "--help"], monkeypatch, capsys)
        assert code == 0
        assert "Usage: " in out


def _read_all(descriptor: int) -> str:
    parts = []
    with contextlib.suppress(OSError):  # the terminal's other end is closed
        while part := os.read(descriptor, 65536):
            parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode(errors="replace")


@pytest.mark.long
def test_a_file_brings_the_modules_that_it_imports(folder: Path, server: Server) -> None:
    for path, text in {
        "pyproject.toml": "",
        "lib/text.py": "from .more import two\ndef score(): return two() + len(open('d.txt').read())\n",
        "lib/more.py": "def two(): return 2\n",
        "d.txt": "xyz",
        "evals/score.py": "from lib import text\ndef evaluate(inputs, outputs, trace):\n    return text.score()\n",
        "evals/bad.py": "from lib import gone\ndef evaluate(inputs, outputs, trace):\n    return gone.score()\n",
    }.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    run = cli(folder, "run", "evals/score.py", "--file", "d.txt", "--url", server.url, "--json")
    assert json.loads(run.stdout)["score"] == 5.0, run.stderr
    check = cli(folder, "check", "evals/bad.py", "--url", server.url)
    assert check.returncode == 1
    assert "the project has no lib.py" in check.stdout, check.stdout
    (folder / "two.py").write_text(
        "import torch\ndef one(i, o, t): return torch.ones(1)\ndef evaluate(i, o, t): return 1\n"
    )
    for command in (("check", "two.py"), ("run", "two.py", "--outputs", "x")):
        ran = cli(folder, *command, "--url", server.url)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert re.search(r"not loaded +torch\n", ran.stdout), ran.stdout
    made = cli(folder, "evaluators", "create", "several", "evals/score.py", "--file", "d.txt", "--url", server.url)
    assert made.returncode == 0, made.stderr
    stored = server.client.get("/v1/evaluators/several").json()["evaluator"]
    assert (sorted(stored["files"]), stored["path"]) == (["d.txt", "lib/more.py", "lib/text.py"], "evals/score.py")
    again = cli(folder, "evaluators", "update", "several", "evals/score.py", "--url", server.url, "--json")
    assert json.loads(again.stdout)["version"] == 2


@pytest.mark.long
def test_a_folder_goes_along_and_a_checkout_gives_what_the_project_lacks(folder: Path, server: Server) -> None:
    for path, text in {
        "repo/.git/HEAD": "",
        "repo/shared/words.py": "def words(text): return text.split()\n",
        "repo/evals/pyproject.toml": "",
        "repo/evals/score.py": "from shared.words import words\n"
        "def evaluate(inputs, outputs, trace):\n    return len(words(open('data/a.txt').read()))\n",
        "repo/evals/data/a.txt": "one two three",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "repo/evals/data/b.png").write_bytes(b"\x89PNG\xff")
    whole = ("--files", "repo/evals", "--url", server.url)
    run = cli(folder, "run", "repo/evals/score.py", *whole)
    assert (run.returncode, bool(re.search(r"score +3", run.stdout))) == (0, True), run.stdout + run.stderr
    root = (folder / "repo/evals").resolve()
    assert (
        f"4 files are sent with the evaluator, from {root}: data/a.txt, pyproject.toml, shared/words.py, data/b.png"
        in run.stderr
    )
    assert cli(folder, "check", "repo/evals/score.py", *whole).returncode == 0
    made = cli(
        folder, "evaluators", "create", "folder", "repo/evals/score.py", "--files", "repo/evals/data", *whole[2:]
    )
    assert made.returncode == 0, made.stderr
    assert "3 files are sent with the evaluator, from " in made.stderr
    stored = server.client.get("/v1/evaluators/folder").json()["evaluator"]
    assert (sorted(stored["files"]), stored["path"]) == (["data/a.txt", "shared/words.py"], "score.py")
    (folder / "pair.jsonl").write_text('{"question": "1", "output": "a"}\n')
    assert cli(folder, "datasets", "upload", "pair.jsonl", *whole[2:]).returncode == 0
    job = cli(folder, "jobs", "create", "-e", "repo/evals/score.py", "-d", "pair", "--wait", *whole)
    assert job.returncode == 0, job.stdout + job.stderr
    assert re.search(r"score +1 +0 +3 ", job.stdout), job.stdout
    stored_only = cli(folder, "jobs", "create", "-e", "folder", "-d", "pair", *whole)
    assert (stored_only.returncode, "the job has stored ones" in stored_only.stderr) == (2, True)
    (folder / "pinned.py").write_text(
        "import six\ndef evaluate(inputs, outputs, trace):\n    return {'score': 1, 'label': six.__version__}\n"
    )
    job = cli(
        folder,
        "jobs",
        "create",
        "-e",
        "pinned.py",
        "--package",
        "six==1.16.0",
        "-d",
        "pair",
        "--wait",
        "--url",
        server.url,
    )
    assert job.returncode == 0, job.stdout + job.stderr
    stored_only = cli(
        folder, "jobs", "create", "-e", "folder", "-d", "pair", "--package", "six==1.16.0", "--url", server.url
    )
    assert (stored_only.returncode, "the job has stored ones" in stored_only.stderr) == (2, True)
    threshold = ("--threshold", "0.5", "-d", "pair", "--url", server.url)
    passed = cli(folder, "jobs", "create", "-e", "pinned.py", "--package", "six==1.16.0", *threshold, "--wait")
    assert "100.0%" in passed.stdout, passed.stdout + passed.stderr
    mixed = cli(folder, "jobs", "create", "-e", "pinned.py", "-e", "folder", *threshold)
    assert (mixed.returncode, "the job has stored ones" in mixed.stderr) == (2, True)
    wrong = cli(folder, "run", "repo/evals/score.py", "--files", "repo/shared", *whole[2:])
    assert (wrong.returncode, "is not in the project" in wrong.stderr) == (2, True), wrong.stderr


@pytest.mark.long
def test_run_and_check_choose_packages_where_they_are_told_to(folder: Path) -> None:
    body = "\ndef evaluate(inputs, outputs, trace):\n    return emoji.emoji_count('') + 1.0\n"
    (folder / "choosing.py").write_text("import emoji" + body)
    ran = cli(folder, "run", "choosing.py", "--packages", "auto", "--inputs", "{}")
    assert (ran.returncode, bool(re.search(r"emoji==\d", ran.stdout))) == (0, True), ran.stdout + ran.stderr
    assert cli(folder, "check", "choosing.py").returncode == 1
    assert cli(folder, "check", "choosing.py", "--packages", "auto").returncode == 0
