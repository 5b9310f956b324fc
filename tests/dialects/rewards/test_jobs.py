"""Jobs with reward functions: if the call that scores all rows together fails, the job reports the failure."""

from collections.abc import Iterator

import pytest

from evaluator_host import Client, Evaluator
from tests.server import FORKED, Server, new_home

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("server")
    with Server(log=home / "log", data_dir=new_home(home), environment=FORKED) as running:
        yield running


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("returned", "doubt"),
    [("[0.5]", "the score over all rows together failed: see `together` in the summary"), ("[0.5 for one in completions]", None)],
)  # fmt: skip
def test_a_job_doubts_a_function_that_gives_one_reward_for_all_rows(
    server: Server, returned: str, doubt: str | None
) -> None:
    evaluator = Evaluator(f"def reward(completions, **kwargs):\n    return {returned}\n")
    with Client(server.url) as client:
        job = client.jobs.wait(client.jobs.create([evaluator], [{"outputs": "a"}, {"outputs": "bb"}]).id)
        [score] = job.scores
    assert (score.mean, score.doubt) == (0.5, doubt)
