"""Connections to vendors lie in small pools: which one a request takes, and that all end."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from torra.providers.vendors import transport

ADDRESS = "https://vendor.example/v1/messages"


class Counted(httpx2.AsyncBaseTransport):
    """A pool whose requests end when the test says so."""

    made: list[Counted]

    def __init__(self, **how: Any) -> None:
        self.how = how
        self.under_way, self.most, self.closed = 0, 0, False
        self.made.append(self)
        self.go = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.go.wait()
            if request.headers.get("fails"):
                raise httpx2.ConnectError("refused")
            return httpx2.Response(200)
        finally:
            self.under_way -= 1

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Counted]:
    found: list[Counted] = []
    monkeypatch.setattr(Counted, "made", found, raising=False)
    monkeypatch.setattr(httpx2, "AsyncHTTPTransport", Counted)
    return found


async def ask(pools: transport.Pools, **headers: str) -> None:
    request = httpx2.Request("POST", ADDRESS, headers=headers)
    await pools.handle_async_request(request)


async def together(pools: transport.Pools, made: list[Counted], requests: int) -> None:
    """Let so many requests be under way at the same moment, then end them."""
    asked = [asyncio.create_task(ask(pools)) for _ in range(requests)]
    await asyncio.sleep(0)
    for pool in made:
        pool.go.set()
    await asyncio.gather(*asked)
    for pool in made:
        pool.go.clear()


def test_requests_in_turn_share_a_pool_and_its_connection(made: list[Counted]) -> None:
    async def lives() -> None:
        pools = transport.Pools()
        for _ in range(5):
            await together(pools, made, 1)

    asyncio.run(lives())
    assert len(made) == 1 and made[0].how["limits"] == transport.LIMITS


def test_a_request_takes_the_pool_with_fewest_under_way(made: list[Counted]) -> None:
    async def lives() -> None:
        pools = transport.Pools()
        await together(pools, made, 3)
        assert [pool.most for pool in made] == [1, 1, 1]
        await together(pools, made, 2)
        await together(pools, made, 3 * transport.POOLS)

    asyncio.run(lives())
    assert [pool.most for pool in made] == [3] * transport.POOLS


def test_a_request_that_fails_gives_its_place_back(made: list[Counted]) -> None:
    async def lives() -> None:
        pools = transport.Pools()
        failing = asyncio.create_task(ask(pools, fails="yes"))
        await asyncio.sleep(0)
        made[0].go.set()
        with pytest.raises(httpx2.ConnectError):
            await failing
        await together(pools, made, 1)

    asyncio.run(lives())
    assert len(made) == 1


def test_certificates_are_read_once_and_every_pool_is_closed(made: list[Counted]) -> None:
    async def lives() -> None:
        pools = transport.Pools()
        await together(pools, made, 4)
        await pools.aclose()

    asyncio.run(lives())
    assert all(pool.closed for pool in made)
    assert len({id(pool.how["verify"]) for pool in made}) == 1
    assert all(pool.how["trust_env"] is False for pool in made)


def test_fifty_desks_of_eight_agents_have_room() -> None:
    limits = transport.LIMITS
    assert transport.POOLS * (limits.max_connections or 0) >= 50 * 8
