"""Operators can use the commands for keys and the audit log."""

import os
from pathlib import Path

import pytest

from evaluator_host.types.errors import refusal_of
from tests import forked
from tests.databases import Databases
from tests.keyed import EXACT, bearer, command, make_key, shown
from tests.server import Server


@pytest.fixture
def url(databases: Databases) -> str:
    return databases.make("sqlite")


def test_a_key_is_made_listed_and_revoked(url: str) -> None:
    made = command("keys", "create", "ci", "--workspace", "acme", "--expires", "90d", url=url)
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    assert token.startswith("eh_")
    assert "\n" not in token, "the token must be a single line, so that a shell variable can hold it"
    assert "from now on every request" in made.stderr
    again = shown("keys", "create", "notebook", url=url)
    assert (again["name"], again["workspace"], again["expires_at"]) == ("notebook", "default", None)
    assert again["key"].startswith(f"eh_{again['id']}_")
    revoked = shown("keys", "revoke", again["id"], url=url)
    assert (revoked["state"], revoked["name"]) == ("revoked", "notebook")
    states = {known["name"]: known["state"] for known in shown("keys", "list", url=url)}
    assert states == {"ci": "active", "notebook": "revoked"}
    listed = command("keys", "list", "--workspace", "acme", url=url).stdout
    assert "ci" in listed
    assert "notebook" not in listed
    assert token[16:] not in listed
    header, line = listed.splitlines()
    assert header.split() == ["ID", "STATE", "WORKSPACE", "NAME", "EXPIRES", "USED"]
    assert "until 20" in line
    assert "never expires" in command("keys", "list", "--workspace", "default", url=url).stdout


@pytest.mark.long
def test_a_new_workspace_is_named_with_what_was_perhaps_meant(url: str) -> None:
    first = command("keys", "create", "ci", "--workspace", "search", url=url).stderr
    assert "workspace search is new; existing workspaces: default" in first
    assert "is new" not in command("keys", "create", "two", "--workspace", "search", url=url).stderr
    assert "is new" not in command("keys", "create", "ci", url=url).stderr
    misspelt = command("keys", "create", "ci", "--workspace", "serach", url=url).stderr
    assert "workspace serach is new; did you mean search?" in misspelt


def test_the_first_key_is_asked_about_at_a_terminal(url: str) -> None:
    def create(answer: str, *options: str) -> tuple[int, str]:
        ours, theirs = os.openpty()
        os.write(ours, answer.encode())
        arguments = ["keys", "create", "ci", *options]
        environment = {**os.environ, "EVALUATOR_HOST_DATABASE_URL": url}
        try:
            done = forked.run(arguments, stdin=theirs, env=environment)
        finally:
            os.close(ours)
            os.close(theirs)
        assert ("Create it?" in done.stderr) == (answer != "")
        return done.returncode, done.stdout.strip()

    assert create("n\n") == (1, "")
    assert shown("keys", "list", url=url) == []
    assert create("y\n")[1].startswith("eh_")
    assert create("", "--workspace", "other")[1].startswith("eh_"), "only the first key needs a confirmation"


@pytest.mark.long
def test_a_browser_without_a_key_is_shown_that_there_is_nothing(url: str, tmp_path: Path) -> None:
    make_key("ci", "default", url=url)
    with Server(log=tmp_path / "log", environment={"EVALUATOR_HOST_DATABASE_URL": url}) as server:
        html = {"Accept": "text/html,*/*;q=0.8"}
        page = server.client.get("/nothing/here", headers=html)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        for path, headers in (("/nothing", {}), ("/v1/jobs", html), ("/metrics", html), ("/openapi.json", {})):
            assert server.client.get(path, headers=headers).status_code == 401, path
        assert server.client.post("/nothing", headers=html).status_code == 401


@pytest.mark.long
def test_deleting_every_key_opens_a_host_on_loopback_again(url: str, tmp_path: Path) -> None:
    key = make_key("ci", "default", url=url)
    environment = {"EVALUATOR_HOST_DATABASE_URL": url}
    with Server(log=tmp_path / "first", environment=environment) as server:
        assert server.client.get("/v1/info").status_code == 401
        assert command("keys", "reset", url=url).returncode == 2, "the command must ask for a confirmation"
        assert server.client.get("/v1/info", headers=bearer(key)).status_code == 200
        done = command("keys", "reset", "--open", url=url)
        assert (done.returncode, "deleted 1 key;" in done.stderr) == (0, True), done.stderr
        assert shown("keys", "list", url=url) == []
    with Server(log=tmp_path / "second", environment=environment) as server:
        assert server.client.get("/v1/info").status_code == 200


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("keys", "create", "../etc"), "is not a name"),
        (("keys", "reset"), "--open"),
        (("keys", "create", "x", "--expires", "soon"), "90d"),
        (("keys", "revoke", "nobody"), "keys list"),
    ],
)
def test_a_mistake_is_reported_with_what_would_do(url: str, arguments: tuple[str, ...], said: str) -> None:
    done = command(*arguments, url=url)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr


NO_DATABASE = "no host has stored data in {folder}: evaluator-host.db does not exist"
NO_SETS = "there are no package sets in {folder}: the folder environments does not exist"


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("keys", "list"), NO_DATABASE),
        (("keys", "revoke", "ci"), NO_DATABASE),
        (("keys", "reset", "--open"), NO_DATABASE),
        (("audit",), NO_DATABASE),
        (("usage",), NO_DATABASE),
        (("jobs", "list", "--all-workspaces"), NO_DATABASE),
        (("secrets", "rotate"), NO_DATABASE),
        (("backup", "backup.tar"), NO_DATABASE),
        (("packages", "list"), NO_SETS),
        (("packages", "show", "0123456789ab"), NO_SETS),
        (("packages", "verify"), NO_SETS),
        (("packages", "prune"), NO_SETS),
        (("packages", "delete", "0123456789ab"), NO_SETS),
        (("packages", "push", "0123456789ab", "localhost:1/sets:1"), NO_SETS),
    ],
)
def test_a_folder_without_data_is_named_and_left_as_it_is(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    for folder in (tmp_path / "wrong", tmp_path / "empty"):
        if folder.name == "empty":
            folder.mkdir()
        done = forked.run(
            [*arguments, "--data-dir", str(folder)], env={**os.environ, "EVALUATOR_HOST_DATABASE_URL": ""}, cwd=tmp_path
        )
        assert done.returncode == 2, done.stderr
        printed = " ".join(done.stderr.split())
        assert said.format(folder=folder) in printed
        assert "--data-dir or EVALUATOR_HOST_DATA_DIR" in printed
    assert [one.name for one in tmp_path.rglob("*")] == ["empty"]


def test_another_kind_of_database_is_refused_without_its_password(tmp_path: Path) -> None:
    done = command("keys", "list", url="mysql://user:hunter2@db.example/x")
    assert done.returncode == 2
    assert "PostgreSQL" in done.stderr
    assert "hunter2" not in done.stderr


@pytest.mark.long
def test_the_audit_log_has_calls_without_code_and_rows(url: str, tmp_path: Path) -> None:
    key = make_key("ci", "acme", url=url)
    make_key("idle", "globex", url=url)
    secret = "the-secret-of-a-row"
    code = EXACT + f"# {secret}\n"
    with Server(log=tmp_path / "log", environment={"EVALUATOR_HOST_DATABASE_URL": url}) as server:
        as_ci = {"headers": bearer(key)}
        body = {"evaluator": {"code": code}, "inputs": {"correct_answer": secret}, "outputs": secret}
        digest = server.client.post("/v1/evaluate", json=body, **as_ci).json()["evaluator"]["digest"]
        rows = [{"inputs": {"correct_answer": secret}, "outputs": secret}, {"outputs": secret}, {"outputs": secret}]
        server.client.post("/v1/evaluate/batch", json={"evaluator": {"code": code}, "rows": rows}, **as_ci)
        server.client.post("/v1/check", json={"evaluator": {"code": code}}, **as_ci)
        refused = {"evaluator": {"code": code, "limits": {"memory_mb": 10**6}}}
        server.client.post("/v1/evaluate", json=refused, **as_ci)
        lines = {**as_ci["headers"], "Content-Type": "application/x-ndjson"}
        server.client.post("/v1/datasets?name=three", content=b'{"a": 1}\n' * 3, headers=lines)
        server.client.patch("/v1/datasets/three", json={"add": [{"a": 2}], "remove": [0], "version": 1}, **as_ci)
        server.client.post("/v1/environments", json={"packages": [f"{secret}==1"], "language": "python"}, **as_ci)
    used = {known["name"]: known["last_used_at"] for known in shown("keys", "list", url=url)}
    assert used["idle"] is None
    assert used["ci"] is not None, "the use of a key must be recorded before the host ends"
    lines = shown("audit", url=url)
    seen = [(line["verb"], line["outcome"], line["rows"], line["failed"]) for line in lines]
    assert seen[1:] == [
        ("datasets.edit", "ok", 2, 0),
        ("datasets.upload", "ok", 3, 0),
        ("evaluate", "invalid_request", 1, 1),
        ("check", "ok", 0, 0),
        ("evaluate_batch", "user_exception", 3, 2),
        ("evaluate", "scored", 1, 0),
    ]
    assert seen[0][0] == "environments.build"
    assert {(line["workspace"], line["key"]) for line in lines} == {("acme", "ci")}
    assert [line["evaluator"] for line in lines[4:]] == [digest] * 3
    assert all(line["duration_ms"] > 0 and line["at"].endswith("Z") for line in lines)
    assert len(shown("audit", "--workspace", "acme", "--key", "ci", "--since", "1h", "--limit", "2", url=url)) == 2
    assert "evaluate_batch" in command("audit", url=url).stdout
    kept = b"".join(path.read_bytes() for path in Path(url.removeprefix("sqlite:///")).parent.glob("host.db*"))
    assert digest.encode() in kept
    assert secret.encode() not in kept
    assert secret not in server.log


@pytest.mark.long
def test_commands_that_change_keys_are_in_the_audit_log(url: str) -> None:
    made = shown("keys", "create", "ci", "--workspace", "acme", url=url)
    command("secrets", "rotate", url=url)
    command("keys", "revoke", "ci", url=url)
    command("keys", "reset", "--open", url=url)
    name = f"ci ({made['id']})"
    wanted = [
        ("keys.reset", "default", "1 keys"),
        ("keys.revoke", "acme", name),
        ("secrets.rotate", "default", None),
        ("keys.create", "acme", name),
    ]
    lines = shown("audit", url=url)
    assert [(line["verb"], line["workspace"], line["subject"]) for line in lines] == wanted
    assert {(line["key"], line["outcome"], line["evaluator"]) for line in lines} == {(None, "ok", None)}
    header, newest, *_ = command("audit", url=url).stdout.splitlines()
    assert header.split()[:5] == ["TIME", "WORKSPACE", "KEY", "OPERATION", "OUTCOME"]
    assert newest.split()[2:6] == ["default", "-", "keys.reset", "ok"]


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files in the folder of another user")
def test_root_makes_no_database_in_the_folder_of_another_user(tmp_path: Path) -> None:
    folder = tmp_path / "service"
    folder.mkdir()
    os.chown(folder, 65534, -1)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("EVALUATOR_HOST_")}
    environment = {**ours, "EVALUATOR_HOST_DATA_DIR": str(folder)}
    for arguments in (("keys", "create", "ci"), ("restore", "none.tar")):
        refused = forked.run(arguments, env=environment)
        assert refused.returncode == 2
        assert f"{folder} belongs to the user nobody" in " ".join(refused.stderr.split())
        assert "sudo -u nobody" in refused.stderr
    assert list(folder.iterdir()) == []
    os.chown(folder, 0, -1)
    assert forked.run(("keys", "create", "ci"), env=environment).returncode == 0


def test_a_file_that_may_not_be_read_is_not_called_a_program(tmp_path: Path) -> None:
    (tmp_path / "lock").touch(0o600)
    (tmp_path / "tool").touch(0o755)
    told = [
        refusal_of(PermissionError(13, "Permission denied", str(tmp_path / name))) for name in ("lock", "tool", "no")
    ]
    assert ["noexec" in one for one in told] == [False, True, False]
