"""A real host accepts valid keys and no others, with both databases, and tells callers why it refuses a key."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.databases import ENGINES, Databases
from tests.keyed import BODY, bearer, eventually, is_problem, make_key, revoke_key
from tests.server import Server

# makes the host trust cached keys for an hour; it must still notice each change of a key at once
TRUSTS = "from evaluator_host.platform.http.auth import keyring\nkeyring._TRUSTED_S = 3600.0"


@dataclass(frozen=True, slots=True)
class Keyed:
    """A host with a key for workspace acme, and its database."""

    server: Server
    url: str
    key: str

    def get(self, path: str = "/v1/info", key: str | None = None) -> httpx.Response:
        return self.server.client.get(path, headers=bearer(key) if key else {})


@pytest.fixture(scope="module", params=ENGINES)
def keyed(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Keyed]:
    url = databases.make(request.param)
    key = make_key("first", "acme", url=url)
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(log=log, environment={"EVALUATOR_HOST_DATABASE_URL": url}, program=TRUSTS) as server:
        yield Keyed(server, url, key)


def test_a_key_opens_the_host_and_its_absence_does_not(keyed: Keyed) -> None:
    refused = keyed.server.client.post("/v1/evaluate", json=BODY)
    assert is_problem(refused, 401, "unauthorized")
    assert refused.headers["www-authenticate"] == 'Bearer realm="evaluator-host"'
    assert "keys create" in refused.json()["detail"]
    scored = keyed.server.client.post("/v1/evaluate", json=BODY, headers=bearer(keyed.key))
    assert scored.json()["score"] == 1.0
    assert scored.headers["x-content-type-options"] == "nosniff"


def test_a_text_that_is_not_a_key_is_refused(keyed: Keyed) -> None:
    key = keyed.key
    flipped = key[:-1] + ("A" if key[-1] != "A" else "B")
    secret_of_another = key[:15] + "_" + make_key("other", "globex", url=keyed.url).split("_", 2)[2]
    unknown = key.replace(key[3:15], "x" * 12)
    for wrong in (
        flipped,
        secret_of_another,
        unknown,
        key[:-1],
        key + "x",
        key.upper(),
        "x",
        "null",
        "'",
        "eh_" + "_" * 60,
    ):
        assert is_problem(keyed.get(key=wrong), 401, "unauthorized"), wrong
    for header in (key, f"Basic {key}", "Bearer", f"Bearer {key} {key}", f"Bearer: {key}"):
        response = keyed.server.client.get("/v1/info", headers={"Authorization": header})
        assert is_problem(response, 401, "unauthorized"), header
    assert keyed.server.client.get("/v1/info", headers={"Authorization": f"bearer  {key}"}).status_code == 200
    assert is_problem(keyed.server.client.get(f"/v1/info?key={key}&access_token={key}"), 401, "unauthorized")


def test_every_route_but_the_probes_needs_a_key(keyed: Keyed) -> None:
    own = keyed.get("/openapi.json", keyed.key).json()
    vendors = [keyed.get(f"/openapi.json?of={name}", keyed.key).json()["paths"] for name in own["x-documents"]]
    paths = {path: methods for part in (own["paths"], *vendors) for path, methods in part.items()}
    open_routes = set()
    for path, operations in [
        *paths.items(),
        ("/openapi.json", {"get": {}}),
        ("/nowhere", {"get": {}}),
    ]:
        for method in operations:
            response = keyed.server.client.request(method, path.replace("{", "").replace("}", ""))
            if response.status_code != 401:
                open_routes.add(path)
    assert open_routes == {"/healthz", "/readyz"}


def test_a_revoked_key_stops_working_soon_also_where_it_is_known(keyed: Keyed) -> None:
    key = make_key("leaver", "acme", url=keyed.url)
    assert keyed.get(key=key).status_code == 200
    revoke_key("leaver", url=keyed.url)
    eventually(lambda: keyed.get(key=key).status_code == 401, within_s=60)
    assert keyed.get(key=keyed.key).status_code == 200


def test_a_new_key_works_at_once(keyed: Keyed) -> None:
    key = make_key("joiner", "acme", url=keyed.url)
    assert keyed.get(key=key).status_code == 200


def test_a_version_names_the_key_that_made_it(keyed: Keyed) -> None:
    code = {"code": BODY["evaluator"]["code"], "tags": ["é"]}
    post, headers = keyed.server.client.post, bearer(keyed.key)
    made = post("/v1/evaluators", json={"name": "authored", **code}, headers=headers).json()
    assert (made["author"], made["created_by"]) == ("first", keyed.key.split("_")[1])
    other = bearer(make_key("second", "acme", url=keyed.url))
    changed = {**code, "code": code["code"] + "# two\n", "message": "by another"}
    keyed.server.client.put("/v1/evaluators/authored", json=changed, headers=other)
    row = {"inputs": BODY["inputs"], "outputs": BODY["outputs"]}
    job = post("/v1/jobs", json={"evaluators": ["authored"], "dataset": {"rows": [row]}}, headers=headers).json()
    [listed] = keyed.get("/v1/evaluators?tag=é", key=keyed.key).json()
    assert (listed["author"], listed["message"], listed["last_job"]["job"]) == ("second", "by another", job["id"])


def test_an_expired_key_stops_working_while_the_host_knows_it(keyed: Keyed) -> None:
    key = make_key("brief", "acme", url=keyed.url, expires_s=2)
    assert keyed.get(key=key).status_code == 200
    eventually(lambda: keyed.get(key=key).status_code == 401)
    assert keyed.get(key=keyed.key).status_code == 200


@pytest.mark.long
def test_a_warm_call_does_not_ask_the_database(databases: Databases, tmp_path: Path) -> None:
    server = databases.postgresql
    url = databases.make("postgresql")
    key = make_key("ci", "acme", url=url)
    with Server(log=tmp_path / "log", environment={"EVALUATOR_HOST_DATABASE_URL": url}) as host:

        def score() -> float:
            response = host.client.post("/v1/evaluate", json=BODY, headers=bearer(key), timeout=5)
            return float(response.json()["score"])

        score()
        server.freeze()
        try:
            assert [score() for _ in range(20)] == [1.0] * 20
        finally:
            server.thaw()
        assert score() == 1.0
