"""Only with `force`, a running host deletes an object that a schedule, alert, label queue, model or evaluator uses."""

from collections.abc import Iterator
from typing import Any

import pytest

from evaluator_host.client import Client
from evaluator_host.types.alerts import AlertRule, Metric
from evaluator_host.types.errors import InUse, NotFound
from evaluator_host.types.evaluator import Evaluator
from evaluator_host.types.jobs import Target
from evaluator_host.types.models import RegisteredModel
from tests import forked
from tests.server import FORKED, Server

EXACT = Evaluator("def evaluate(inputs, outputs, trace):\n    return 1.0\n")
OTHER = Evaluator("def evaluate(inputs, outputs, trace):\n    return 0.5\n")
ROWS: list[dict[str, Any]] = [{"question": "France?", "outputs": "Paris"}]
MODEL = "http://127.0.0.1:9/v1"
HOST = {**FORKED, "EVALUATOR_HOST_JUDGE_HOSTS": '["127.0.0.1:9"]', "EVALUATOR_HOST_CODE_SECRETS": '["*"]'}
MONDAYS = "0 7 * * 1"
LOW = {"below": 0.5}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Server(log=tmp_path_factory.mktemp("server") / "log", environment=HOST) as server:
        yield server.url


@pytest.fixture(autouse=True)
def nothing_is_left(client: Client) -> Iterator[None]:
    yield
    held: tuple[Any, ...] = (client.alerts, client.labels, client.schedules, client.evaluators, client.models)
    for verbs in (*held, client.datasets):
        for one in verbs.all():
            verbs.delete(one.name, force=True)
    for secret in client.secrets.all():
        client.secrets.delete(secret.name, force=True)


def schedule(client: Client, name: str = "weekly", **job: Any) -> None:
    client.schedules.create(name, MONDAYS, **{"evaluators": [EXACT], "dataset": ROWS, **job})


def refused(verbs: Any, name: str, *users: str) -> None:
    """Check that the host refuses to delete an object in use and names its users, and that `force` deletes the object."""
    with pytest.raises(InUse) as error:
        verbs.delete(name)
    those = "that" if len(users) == 1 else "those"
    sentence = f"{name} is used by {', '.join(users)}; delete {those} first, or delete it anyway with force"
    assert error.value.detail == sentence
    verbs.get(name)
    verbs.delete(name, force=True)
    with pytest.raises(NotFound):
        verbs.delete(name)  # this error shows that `force` deleted the object


def test_an_evaluator(client: Client) -> None:
    for name in ("exact", "exact2"):
        client.evaluators.create(name, EXACT)
    client.evaluators.update("exact", OTHER)
    schedule(client, evaluators=["exact"])
    schedule(client, "pinned", evaluators=["exact2@1", EXACT])
    schedule(client, "latest", evaluators=["exact2@latest", "exact@1"])
    client.alerts.create("live", AlertRule(Metric.MEAN, live="exact", **LOW))
    refused(client.evaluators, "exact", "alert live", "schedule latest", "schedule weekly")
    refused(client.evaluators, "exact2", "schedule latest", "schedule pinned")


@pytest.mark.long
def test_a_data_set_by_name_version_and_id(client: Client) -> None:
    for name in ("qa", "qa2", "free"):
        client.datasets.upload(name, ROWS)
    first = client.datasets.get("qa")
    client.datasets.edit("qa", add=ROWS)
    schedule(client, dataset="qa")
    schedule(client, "first", dataset="qa@1")
    schedule(client, "by-id", dataset=first.id)
    client.labels.create("people", dataset="qa2")
    with pytest.raises(InUse, match="qa@1 is used by schedule by-id, schedule first; delete those"):
        client.datasets.delete("qa@1")
    refused(client.datasets, "qa", "schedule by-id", "schedule first", "schedule weekly")
    refused(client.datasets, "qa2", "label queue people")
    client.datasets.delete("free")


@pytest.mark.long
def test_a_schedule_and_a_job(client: Client) -> None:
    schedule(client)
    job = client.jobs.wait(client.schedules.run("weekly").id)
    client.alerts.create("low", AlertRule(Metric.MEAN, schedule="weekly", **LOW))
    refused(client.schedules, "weekly", "alert low")
    client.alerts.create("once", AlertRule(Metric.MEAN, job=job.id, **LOW))
    client.labels.create("review", job=job.id)
    refused(client.jobs, job.id, "alert once", "label queue review")


def test_a_secret_by_all_that_name_it(client: Client) -> None:
    client.secrets.set("openai", "secret-value")
    client.secrets.set("free", "secret-value")
    target = Target(MODEL, "small", api_key="openai", prompt_template="{{ question }}")
    schedule(client, dataset=[{"question": "France?"}], target=target)
    rule = AlertRule(Metric.MEAN, schedule="weekly", secret="openai", **LOW)
    client.alerts.create("signed", rule)
    client.models.create(RegisteredModel("judge", MODEL, secret="openai"))
    client.evaluators.create("asks", Evaluator(EXACT.code, secrets={"KEY": "openai"}))
    refused(client.secrets, "openai", "alert signed", "evaluator asks", "model judge", "schedule weekly")
    client.secrets.delete("free")


def test_a_model_by_name_by_another_name_and_in_an_older_version(client: Client) -> None:
    for name in ("judge", "jud"):
        client.models.create(RegisteredModel(name, MODEL))
    client.evaluators.create("asks", Evaluator(EXACT.code, models=("judge",)))
    schedule(client, evaluators=["asks@1"])
    client.evaluators.update("asks", EXACT)
    client.evaluators.create("asks-any", Evaluator(EXACT.code, models=("*=judge",)))
    schedule(client, "pasted", evaluators=[Evaluator(EXACT.code, models=("gpt-4o=judge",))])
    client.models.delete("jud")
    refused(client.models, "judge", "evaluator asks-any", "schedule pasted", "schedule weekly")


def test_the_command_says_who_uses_it_and_takes_force(client: Client, url: str) -> None:
    client.evaluators.create("exact", EXACT)
    for number in range(12):
        client.alerts.create(f"low-{number:02}", AlertRule(Metric.MEAN, live="exact", **LOW))
    told = forked.run(["evaluators", "delete", "exact", "--url", url])
    assert told.returncode == 2
    sentence = "alert low-09 and 2 more; delete those first, or delete it anyway with --force"
    assert sentence in " ".join(str(told.stderr).split())
    done = forked.run(["evaluators", "delete", "exact", "--force", "--url", url])
    assert done.returncode == 0, done.stderr
