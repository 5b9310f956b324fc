"""Fixtures: a service on each backend, and a server on loopback that stands in for the service's models."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from evaluator_host.engine.opening import open_engine
from evaluator_host.engine.service import Service
from evaluator_host.engine.service.caller import Caller
from evaluator_host.engine.service.model_grants import Meter, ModelTerms
from evaluator_host.platform.models.judges import Judges, open_judges
from evaluator_host.platform.store.store import Store, open_store
from evaluator_host.types.evaluator import Evaluator, Replay, Row
from evaluator_host.types.outcome import EvaluationResult
from tests.conftest import BACKENDS, settings
from tests.model_server import ModelServer

KEY = "sk-live-51c0ffee77aa9d3e"
PRICES = {"model": "real-name", "key": KEY, "input_price": 1000, "output_price": 2000}


@dataclass(frozen=True)
class Granting:
    """A service that grants the models `judge` and `claude`, with its model server and its database."""

    service: Service
    models: Judges
    store: Store
    server: ModelServer

    async def score(
        self,
        evaluator: Evaluator | str,
        outputs: str = "hello",
        *,
        replay: Replay = Replay.OFF,
        meter: Meter | None = None,
    ) -> EvaluationResult:
        """Score one row and return the result. Code given without an evaluator is granted the model `judge`."""
        given = Evaluator(evaluator, models=("judge",)) if isinstance(evaluator, str) else evaluator
        return await self.service.evaluate(given, Row({}, outputs), caller=Caller(terms=ModelTerms(replay, meter)))


@pytest.fixture(scope="session")
def provider() -> Iterator[ModelServer]:
    with ModelServer(key=KEY, plays_all=True) as server:
        yield server


@pytest.fixture(scope="session", params=BACKENDS)
async def granting(
    request: pytest.FixtureRequest, provider: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Granting]:
    async with granting_on(request.param, provider, tmp_path_factory.mktemp("granting")) as made:
        yield made


@pytest.fixture(scope="session")
async def granted(provider: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Granting]:
    """A service that grants models, only on bubblewrap.

    Tests of things that the host does in the same way on both backends use it.
    """
    async with granting_on("bubblewrap", provider, tmp_path_factory.mktemp("granted")) as made:
        yield made


@asynccontextmanager
async def granting_on(backend: str, provider: ModelServer, folder: Path, **changes: object) -> AsyncIterator[Granting]:
    """A new service on a backend, with its own database."""
    models = {
        "judge": {"base_url": provider.url, **PRICES},
        "claude": {"base_url": provider.url, "kind": "anthropic", **PRICES},
    }
    chosen = settings(backend, models=models, judge_hosts=("127.0.0.1",), **changes)
    async with (
        open_store(f"sqlite:///{folder / 'host.db'}", folder) as store,
        open_judges(chosen, store) as judges,
        open_engine(chosen, models=judges) as service,
    ):
        yield Granting(service, judges, store, provider)
