"""A data file is sent once, over HTTP or on the command line, and calls, stored evaluators and jobs use it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator_host.client import Client
from evaluator_host.types.errors import InUse, InvalidRequest, NotFound, OverQuota
from evaluator_host.types.evaluator import Evaluator
from tests import forked
from tests.server import Server, new_home

CODE = "def evaluate(inputs, outputs, trace):\n    return len(open('words/list.bin', 'rb').read()) == 256\n"
BYTES = bytes(range(256))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("server")
    with Server(log=home / "log", data_dir=new_home(home), environment={"EVALUATOR_HOST_DATA_MB": "1"}) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with Client(server.url) as opened:
        yield opened


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "list.bin").write_bytes(BYTES)
    (tmp_path / "words" / "note.txt").write_text("also data")
    (tmp_path / "score.py").write_text(CODE)
    return tmp_path


def test_a_file_is_sent_once_and_used_by_its_digest(client: Client, project: Path) -> None:
    sent = client.data.send(project / "words" / "list.bin")
    assert client.data.send(project / "words" / "list.bin") == sent == client.data.get(sent.digest)
    assert [one.digest for one in client.data.all()] == [sent.digest]
    evaluator = Evaluator(CODE, data={"words/list.bin": sent.digest})
    assert client.evaluate(evaluator, outputs="x").score == 1
    stored = client.evaluators.create("words", evaluator)
    assert stored.evaluator.data == evaluator.data
    job = client.jobs.create(evaluators=["words", evaluator], dataset=[{"outputs": "x"}])
    assert [one.mean for one in client.jobs.wait(job.id).scores] == [1, 1]
    with pytest.raises(InUse, match="evaluator words"):
        client.data.delete(sent.digest)
    client.evaluators.delete("words")
    client.data.delete(sent.digest)
    with pytest.raises(NotFound):
        client.data.get(sent.digest)
    with pytest.raises(InvalidRequest) as refused:
        client.evaluate(evaluator, outputs="x")
    assert refused.value.problems[0].field == "evaluator.data.words/list.bin"


def test_a_workspace_stores_so_much(client: Client, tmp_path: Path) -> None:
    for name, content in (("a", b"a"), ("b", b"b")):
        (tmp_path / name).write_bytes(content * (600 << 10))
    kept = client.data.send(tmp_path / "a")
    with pytest.raises(OverQuota):
        client.data.send(tmp_path / "b")
    client.data.delete(kept.digest)
    client.data.delete(client.data.send(tmp_path / "b").digest)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("named", [("words",), ("words/list.bin", "words/note.txt")], ids=["folder", "files"])
@pytest.mark.parametrize("remote", [False, True], ids=["here", "on a host"])
def test_the_command_line_sends_what_file_names(
    server: Server, client: Client, project: Path, named: tuple[str, ...], remote: bool
) -> None:
    files = [word for name in named for word in ("--file", str(project / name))]
    where = ["--url", server.url] if remote else ["--data-dir", str(new_home(project))]
    done = forked.run(["run", str(project / "score.py"), "--outputs", "x", *files, *where, "--json"])
    assert done.returncode == 0, done.stderr
    assert '"score":1' in done.stdout.replace(" ", "")


def test_a_link_that_leads_out_of_a_folder_is_not_followed(project: Path) -> None:
    (project / "words" / "secret").symlink_to("/etc/passwd")
    done = forked.run(["run", str(project / "score.py"), "--outputs", "x", "--file", str(project / "words")])
    assert done.returncode == 2
    assert "resolves through a link to /etc/passwd, which is not a file in" in done.stderr
