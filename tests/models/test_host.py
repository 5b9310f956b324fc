"""Over API and CLI, models on a real host are registered, granted, called and counted; their answers are recorded."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from evaluator_host.client import Client
from evaluator_host.types.errors import InvalidRequest, NameTaken, NotFound
from evaluator_host.types.evaluator import Evaluator, ModelBudget, Replay
from evaluator_host.types.jobs import JobStatus
from evaluator_host.types.models import RegisteredModel
from tests import forked
from tests.keyed import audited, eventually
from tests.model_server import Fault, ModelServer, no_fault
from tests.models.conftest import KEY
from tests.models.judges import ONE
from tests.server import Server, new_home

pytestmark = [pytest.mark.engine, pytest.mark.timeout(200)]

ROWS = [{"answer": f"text {n}"} for n in range(4)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_home(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def host(home: Path, provider: ModelServer) -> Iterator[Server]:
    operators = home.parent / "models.json"
    operators.write_text(json.dumps({"house": {"base_url": provider.url, "model": "real", "key": KEY}}))
    environment = {
        "EVALUATOR_HOST_DATABASE_URL": f"sqlite:///{home / 'evaluator-host.db'}",
        "EVALUATOR_HOST_JUDGE_HOSTS": '["127.0.0.1"]',
        "EVALUATOR_HOST_MODELS": str(operators),
    }
    with Server(data_dir=home, log=home.parent / "log", environment=environment) as running:
        yield running


@pytest.fixture
def unregistered(host: Server) -> Iterator[None]:
    """Remove the model `judge` after the test."""
    yield
    with Client(host.url) as client, suppress(NotFound):
        client.models.delete("judge", force=True)


@pytest.fixture
def judge(host: Server, provider: ModelServer, unregistered: None) -> None:
    """The model `judge`, registered with a secret and prices."""
    model = RegisteredModel("judge", provider.url, model="real-name", secret="provider", input_price=1, output_price=2)
    with Client(host.url) as client:
        client.secrets.set("provider", KEY)
        client.models.create(model)


def command(server: Server, *arguments: str, text: str = "", code: int = 0) -> str:
    done = forked.run([*arguments, "--url", server.url], given=text)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.usefixtures("unregistered")
def test_a_model_is_registered_granted_and_counted(host: Server, home: Path, provider: ModelServer) -> None:
    command(host, "secrets", "set", "provider", text=KEY)
    prices = ("--input-price", "1", "--output-price", "2")
    given = ("--model-url", provider.url, "--model", "real-name", "--secret", "provider", *prices)
    command(host, "models", "add", "judge", *given)
    assert "answer to Answer with the word ok." in command(host, "models", "test", "judge")
    listed = command(host, "models", "list")
    assert "house" in listed
    assert "judge" in listed
    assert KEY not in listed
    file = home.parent / "judge.py"
    file.write_text(ONE)
    shown = command(host, "run", str(file), "--outputs", "hello", "--model", "judge", "--budget-requests", "1")
    assert "1 request, 4 + 3 tokens, cost 1e-05" in shown
    assert "model:judge" in shown
    assert '"judge"' in command(host, "check", str(file), "--model", "judge", "--json")
    with Client(host.url) as client:
        assert [one.name for one in client.models.all()] == ["house", "judge"]
        assert client.evaluate(Evaluator(ONE, models=("judge=house",)), outputs="x").usage.cost is None
        granted = client.evaluate(Evaluator(ONE, models=("judge=house",)), outputs="x").evaluator.grants
        assert granted == ("model:judge=house",)
        log = f"sqlite:///{home / 'evaluator-host.db'}"
        eventually(lambda: audited(log)[0].grants == granted[0])
        with pytest.raises(NameTaken):
            client.models.create(RegisteredModel("judge", provider.url))
        with pytest.raises(NotFound, match="secret"):
            client.models.create(RegisteredModel("other", provider.url, secret="none"))
        with pytest.raises(InvalidRequest, match="may not call models on example"):
            client.models.create(RegisteredModel("other", "https://example.com/v1"))
        with pytest.raises(InvalidRequest, match="evaluator"):
            client.evaluate(Evaluator(ONE, models=("judge",), budget=ModelBudget(requests=1000)), outputs="x")


@pytest.mark.long
@pytest.mark.usefixtures("judge")
def test_a_job_has_a_budget_and_its_answers_are_recorded(
    host: Server, home: Path, provider: ModelServer, tmp_path: Path
) -> None:
    with Client(host.url) as client:
        client.evaluators.create("judged", Evaluator(ONE, models=("judge",), budget=ModelBudget(requests=2)))
        kept = client.evaluators.get("judged").evaluator
        assert (kept.models, kept.budget.requests) == (("judge",), 2)

        def run(**options: object) -> tuple[str, list[str | None], object]:
            job = client.jobs.create(["judged"], ROWS, mapping={"outputs": "answer"}, **options)
            job = client.jobs.wait(job.id)
            assert job.status is JobStatus.COMPLETED
            rows = [row.result["error"] and row.result["error"]["code"] for row in client.jobs.rows(job.id)]
            return job.id, rows, client.jobs.results(job.id).evaluators[0].usage

        _, rows, usage = run(budget=ModelBudget(requests=3))
        assert sorted(map(str, rows)) == ["None", "None", "None", "budget_exceeded"]
        assert usage.requests == 3
        before = len(provider.asked)
        _, rows, first = run(replay=Replay.PREFER)
        assert (rows, first.requests, len(provider.asked) - before) == ([None] * 4, 4, 4)
        assert client.models.answers().answers == 4
        job_id, rows, again = run(replay=Replay.REQUIRE)
        assert (rows, again.requests, again.replayed, again.cost) == ([None] * 4, 0, 4, 0.0)
        assert len(provider.asked) - before == 4
    assert "0 requests, 4 recorded answers" in command(host, "jobs", "results", job_id)
    called = {(one.verb, one.grants) for one in audited(f"sqlite:///{home / 'evaluator-host.db'}")}
    assert ("jobs.create", "model:judge") in called
    file = tmp_path / "answers.jsonl"
    file.write_text(command(host, "models", "export"))
    assert len(file.read_text().splitlines()) == 4
    assert KEY not in file.read_text()
    command(host, "models", "forget")
    assert "4 recorded answers" in command(host, "models", "import", str(file))
    assert "judge" in command(host, "models", "usage")


@pytest.mark.long
@pytest.mark.usefixtures("judge")
def test_the_budget_of_a_job_counts_requests_from_before_a_pause(host: Server, provider: ModelServer) -> None:
    begun, go_on = Event(), Event()

    def faults(question: str, _attempt: int) -> Fault:
        if question.endswith("text 2"):
            begun.set()
            go_on.wait(60)
        return no_fault(question, 1)

    with Client(host.url) as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(provider, "faults", faults)
        budget = ModelBudget(requests=4)
        rows = [{"answer": f"text {n}"} for n in range(9)]
        evaluator = Evaluator(ONE, models=("judge",))
        job = client.jobs.create([evaluator], rows, mapping={"outputs": "answer"}, parallelism=1, budget=budget)
        try:
            assert begun.wait(60)
            eventually(lambda: client.jobs.get(job.id).progress.done == 2)
            client.jobs.pause(job.id)
            eventually(lambda: client.jobs.get(job.id).status is JobStatus.PAUSED)
        finally:
            go_on.set()
        client.jobs.resume(job.id)
        assert client.jobs.wait(job.id).status is JobStatus.COMPLETED
        (found,) = client.jobs.results(job.id).evaluators
    assert (found.scored, [(one.code, one.count) for one in found.errors]) == (4, [("budget_exceeded", 5)])
    assert found.usage is not None
    assert found.usage.requests == 4


@pytest.mark.long
@pytest.mark.usefixtures("judge")
def test_a_new_price_counts_from_the_next_request_on(host: Server, provider: ModelServer) -> None:
    shown = command(host, "models", "set", "judge", "--input-price", "10", "--unset", "output-price", "--retries", "1")
    assert "judge" in shown
    evaluator = Evaluator(ONE, models=("judge",))
    with Client(host.url) as client:
        changed = client.models.get("judge")
        assert (changed.input_price, changed.output_price, changed.retries) == (10.0, None, 1)
        assert (changed.model, changed.secret, changed.timeout_s) == ("real-name", "provider", 60.0)
        assert client.evaluate(evaluator, outputs="x").usage.cost is None
        client.models.update("judge", output_price=20, model=None, timeout_s=None)
        assert client.models.get("judge").model == "judge"
        assert client.evaluate(evaluator, outputs="x").usage.cost == pytest.approx(1e-4)
        assert provider.bodies[-1]["model"] == "judge"
        for changes, refused, says in (
            ({"url": "https://example.com/v1"}, InvalidRequest, "may not call models on example"),
            ({"url": None}, InvalidRequest, "url"),
            ({"name": "other"}, InvalidRequest, "name"),
            ({"input_price": -1}, InvalidRequest, "input_price"),
            ({"secret": "none"}, NotFound, "secret"),
        ):
            with pytest.raises(refused, match=says):
                client.models.update("judge", **changes)
        assert client.models.get("judge").url == provider.url
        with pytest.raises(InvalidRequest, match="operator"):
            client.models.update("house", input_price=1)
        with pytest.raises(NotFound, match="no model other"):
            client.models.update("other", input_price=1)
    assert "name a field" in command(host, "models", "set", "judge", code=2)


@pytest.mark.usefixtures("judge")
def test_a_removed_model_is_granted_no_more(host: Server) -> None:
    with Client(host.url) as client:
        client.evaluators.create("asks", Evaluator(ONE, models=("judge",)))
        assert "evaluator asks" in command(host, "models", "remove", "judge", code=2)
        command(host, "models", "remove", "judge", "--force")
        with pytest.raises(InvalidRequest, match="no model 'judge'"):
            client.evaluate("asks", outputs="x")
