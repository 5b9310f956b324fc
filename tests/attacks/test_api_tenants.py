"""A caller with a valid key cannot attack another workspace: its package sets, its sandboxes and its keys."""

import concurrent.futures
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.databases import Databases
from tests.keyed import BODY, audited, bearer, eventually, is_problem, make_key
from tests.server import Server

SETS = "/v1/environments"
# no other test pins this version, because this test removes its set
PINS = {"language": "javascript", "packages": ["nanoid@5.1.4"]}
NANOID = 'import { nanoid } from "nanoid";\nexport function evaluate(i, o, t) { return nanoid().length; }\n'


@dataclass(frozen=True, slots=True)
class Tenants:
    """A host with two workspaces, and a key for each of them."""

    server: Server
    url: str
    acme: str
    globex: str

    def ask(self, key: str, method: str, path: str, **arguments: Any) -> httpx.Response:
        return self.server.client.request(method, path, headers=bearer(key), **arguments)


@pytest.fixture(scope="module")
def tenants(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    url = databases.make("sqlite")
    keys = [make_key("ci", workspace, url=url) for workspace in ("acme", "globex")]
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(log=log, environment={"EVALUATOR_HOST_DATABASE_URL": url}) as server:
        yield Tenants(server, url, *keys)


def listed(tenants: Tenants, key: str) -> set[str]:
    return {known["key"] for known in tenants.ask(key, "GET", SETS).json()}


@pytest.mark.long
def test_a_package_set_is_seen_by_those_who_asked_for_it(tenants: Tenants) -> None:
    asked = tenants.ask(tenants.acme, "POST", SETS, json=PINS)
    key = asked.json()["key"]
    assert listed(tenants, tenants.acme) == {key}
    tenants.ask(tenants.acme, "GET", f"{SETS}/{key}/events")  # the stream of events ends when the set is built
    digest = tenants.ask(tenants.acme, "GET", f"{SETS}/{key}").json()["digest"]
    for name in (key, digest):
        for method, path in (("GET", ""), ("GET", "/events"), ("DELETE", "")):
            foreign = tenants.ask(tenants.globex, method, f"{SETS}/{name}{path}")
            unknown = tenants.ask(tenants.globex, method, f"{SETS}/sha256:{'0' * 64}{path}")
            assert is_problem(foreign, 404, "not_found")
            told, told_of_nothing = foreign.json()["detail"], unknown.json()["detail"]
            assert told.replace(name, "") == told_of_nothing.replace(f"sha256:{'0' * 64}", "")
    assert listed(tenants, tenants.globex) == set()

    body = {"evaluator": {"code": NANOID, "language": "javascript", "packages": PINS["packages"]}}
    assert tenants.ask(tenants.globex, "POST", "/v1/evaluate", json=body).json()["score"] == 21
    assert listed(tenants, tenants.globex) == {key}, (
        "a call must count as a request for the package set that its evaluator pins"
    )

    assert tenants.ask(tenants.acme, "DELETE", f"{SETS}/{key}").status_code == 204
    assert listed(tenants, tenants.acme) == set()
    kept = tenants.ask(tenants.globex, "GET", f"{SETS}/{key}")
    assert kept.json()["status"] == "ready", "a set that another workspace uses must stay"
    assert tenants.ask(tenants.globex, "POST", "/v1/evaluate", json=body).json()["score"] == 21
    assert tenants.ask(tenants.globex, "DELETE", f"{SETS}/{key}").status_code == 204
    assert is_problem(tenants.ask(tenants.globex, "GET", f"{SETS}/{key}"), 404, "not_found")

    job = {"evaluators": [body["evaluator"]], "dataset": {"rows": [{"n": 1}]}}
    assert tenants.ask(tenants.acme, "POST", "/v1/jobs", json=job).status_code == 202
    # a job also requests the packages that it pins
    eventually(lambda: len(listed(tenants, tenants.acme)) == 1, within_s=60)
    assert listed(tenants, tenants.globex) == set()


def test_the_same_code_of_two_workspaces_shares_no_sandbox(tenants: Tenants) -> None:
    """Code of two workspaces never runs in the same sandbox.

    A row may see what an earlier row of the same workspace left there, but nothing from another workspace.
    """
    code = (
        "import os\nLEFT = '/tmp/left'\n"
        "def evaluate(inputs, outputs, trace):\n"
        "    found = os.path.exists(LEFT)\n"
        "    open(LEFT, 'w').close()\n"
        "    return {'score': 1.0, 'label': str(found) + str(os.getppid())}\n"
    )
    body = {"evaluator": {"code": code}}
    first = tenants.ask(tenants.acme, "POST", "/v1/evaluate", json=body).json()
    again = tenants.ask(tenants.acme, "POST", "/v1/evaluate", json=body).json()
    other = tenants.ask(tenants.globex, "POST", "/v1/evaluate", json=body).json()
    assert [answer["sandbox"]["warm"] for answer in (first, again, other)] == [False, True, False]
    assert other["label"].startswith("False")


def test_no_header_or_field_moves_a_call_to_another_workspace(tenants: Tenants) -> None:
    names = ("X-Workspace", "X-Workspace-Id", "X-Evaluator-Host-Workspace", "X-Api-Key", "Cookie", "X-Forwarded-User")
    headers = {**bearer(tenants.globex), **dict.fromkeys(names, "acme")}
    assert tenants.server.client.post("/v1/evaluate", json=BODY, headers=headers).status_code == 200
    asked = tenants.server.client.post("/v1/evaluate?workspace=acme", json=BODY, headers=headers)
    assert is_problem(asked, 422, "invalid_request")
    smuggled = tenants.server.client.post("/v1/evaluate", json={**BODY, "workspace": "acme"}, headers=headers)
    assert is_problem(smuggled, 422, "invalid_request")
    newest = ("globex", "scored")
    eventually(lambda: [(one.workspace, one.outcome) for one in audited(tenants.url)[:1]] == [newest])


def test_two_keys_in_one_request_are_refused(tenants: Tenants) -> None:
    both = [("Authorization", f"Bearer {tenants.acme}"), ("Authorization", f"Bearer {tenants.globex}")]
    assert is_problem(tenants.server.client.get("/v1/info", headers=both), 422, "invalid_request")


def test_guessing_keys_keeps_nobody_else_waiting(tenants: Tenants) -> None:
    def guess(number: int) -> int:
        made_up = f"eh_{number:012d}_{'A' * 43}"
        return tenants.ask(made_up, "GET", "/v1/info").status_code

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        guesses = [pool.submit(guess, number) for number in range(400)]
        for _ in range(20):
            assert tenants.ask(tenants.acme, "POST", "/v1/evaluate", json=BODY).json()["score"] == 1.0
        assert {done.result() for done in guesses} == {401}
