"""There is one HTTP client for each origin of a model; if there are many, unused clients are closed."""

from contextlib import AsyncExitStack

from evaluator_host.engine.config.settings import Settings
from evaluator_host.platform.models.origin_clients import KEPT, OriginClients

MANY = KEPT + 20


async def test_any_number_of_origins_leaves_few_clients_open() -> None:
    clients, lent = OriginClients(Settings(), at_once=1), []
    for number in range(MANY):
        async with clients.lend(f"http://host{number}.test/v1") as client:
            assert not client.is_closed
            lent.append(client)
        assert sum(not one.is_closed for one in lent) <= KEPT
    assert [one.is_closed for one in lent] == [True] * (MANY - KEPT) + [False] * KEPT
    async with clients.lend(f"http://host{MANY - 1}.test/other") as client:
        assert client is lent[-1]
    await clients.aclose()
    assert all(one.is_closed for one in lent)


async def test_a_client_with_a_request_stays_open_until_the_request_ends() -> None:
    clients = OriginClients(Settings(), at_once=1)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(clients.lend("http://first.test/v1"))
        more = [await stack.enter_async_context(clients.lend(f"http://host{n}.test/v1")) for n in range(MANY)]
        again = await stack.enter_async_context(clients.lend("http://first.test/v2"))
        assert again is first
        assert not any(one.is_closed for one in (first, *more))
    assert sum(not one.is_closed for one in (first, *more)) == KEPT
    await clients.aclose()
