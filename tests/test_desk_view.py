"""The pages' view of a desk that ran: what the database holds is what the pages show."""

from __future__ import annotations

import re
from datetime import timedelta

import desks
import pytest

from instance_database import TickKey
from torra.clock import iso, parse
from torra.config import DeskSettings
from torra.dashboard import figures, reasoning
from torra.dashboard.app import create_app
from torra.dashboard.desk_view import DatabaseView, neighbours

SETTINGS = DeskSettings(instances=(desks.BTC, desks.EUR))
STEPS = 9


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A desk after some closes, with one skipped tick at the end of BTCUSD M15."""
    made = desks.open_desk(tmp_path_factory.mktemp("desk"), SETTINGS.instances)
    desks.take_lease(made)
    for _ in range(STEPS):
        moment = desks.step(made)
    key = TickKey("BTCUSD", "M15", moment)
    assert made.database.claim_tick(key, made.epoch)
    assert made.database.skip_tick(key, "stale", "the newest bar is old", made.epoch)
    yield made
    made.close()


@pytest.fixture
def view(desk):
    return DatabaseView(desk.database, SETTINGS, desk)


@pytest.fixture
def client(view):
    return create_app(view).test_client()


def test_the_strip_tells_desk_time_role_and_cost(view, desk):
    strip = view.desk()
    assert strip["now"] == iso(desk.clock.now())
    assert (strip["role"], strip["trading_state"]) == ("ACTIVE", "ACTIVE")
    assert (strip["cost_hour"], strip["ceiling"]) == (0.0, 2.0)
    epoch, desk.epoch = desk.epoch, None
    try:
        assert view.desk()["role"] == "STANDBY"
    finally:
        desk.epoch = epoch


def test_a_halt_shows_with_its_reason(view, desk, client):
    desk.database.set_trading_state("HALTED", "the disk was full")
    try:
        assert view.desk()["trading_state"] == "HALTED"
        assert "the disk was full" in client.get("/").get_data(as_text=True)
    finally:
        desk.database.set_trading_state("ACTIVE", "")


def test_the_overview_has_every_stream_with_its_newest_tick(view, desk):
    shown = view.overview()
    assert [one["instance"] for one in shown["instances"]] == ["BTCUSD", "EURUSD"]
    for one in shown["instances"]:
        for stream in one["streams"]:
            stored = desk.database.latest_tick(one["instance"], stream["timeframe"])
            assert stream["tick"] == stored
            close = parse(stored["as_of"])
            assert stream["age_seconds"] == (desk.clock.now() - close).total_seconds()
            assert parse(stream["next_close"]) > desk.clock.now()
            assert stream["history"][-1] == stored["consensus"]
    (btc, _) = shown["instances"]
    assert btc["latest"]["timeframe"] == "M15"
    assert btc["digits"] == 2
    assert btc["streams"][0]["skipped"]["reason"] == "stale"


def test_a_stream_without_news_turns_stale(view, desk):
    moment = desk.clock.now()
    try:
        desk.clock.set(moment + timedelta(minutes=22))
        assert not view.overview()["instances"][0]["streams"][0]["stale"]
        desk.clock.set(moment + timedelta(minutes=23))
        assert view.overview()["instances"][0]["streams"][0]["stale"]
    finally:
        desk.clock.set(moment)


def test_a_symbol_has_its_bars_and_ticks_and_nothing_from_the_future(view, desk):
    data = view.symbol("BTCUSD", "M15", 50)
    times = [bar["time"] for bar in data["bars"]]
    assert times == sorted(times)
    assert parse(times[-1]) + timedelta(minutes=15) <= desk.clock.now()
    ticks = [tick["bar_time"] for tick in data["ticks"]]
    assert ticks == sorted(ticks, reverse=True)
    assert set(ticks) <= set(times)
    assert (data["previous"], data["next"]) == (None, "EURUSD")
    assert view.symbol("BTCUSD", "M5", 50) is None
    assert view.symbol("NOPE", "M15", 50) is None


@pytest.mark.parametrize(
    ("name", "timeframe"), [("BTCUSD", "M15"), ("BTCUSD", "H1"), ("EURUSD", "H1")]
)
def test_every_tick_of_the_real_overlay_recomputes(view, desk, client, name, timeframe):
    rows = desk.database.ticks(name, timeframe, 50)
    assert rows
    for row in rows:
        record = view.tick(name, timeframe, row["bar_time"])
        told = reasoning.story(record)
        assert told["failed_checks"] == []
        assert [agent["mark"].word for agent in told["agents"]] == ["answered"] * 4
        page = client.get(f"/symbol/{name}/{timeframe}/{row['bar_time']}")
        assert page.status_code == 200
        assert figures.signed(row["consensus"], 5) in page.get_data(as_text=True)


def test_ticks_are_linked_in_order_and_a_skipped_one_has_its_page(view, desk, client):
    skipped = desk.database.tick_states("BTCUSD", "M15", 1)[0]["bar_time"]
    newest = desk.database.ticks("BTCUSD", "M15", 2)
    record = view.tick("BTCUSD", "M15", newest[0]["bar_time"])
    assert (record["previous"], record["next"]) == (newest[1]["bar_time"], skipped)
    page = client.get(f"/symbol/BTCUSD/M15/{skipped}")
    assert "the newest bar is old" in page.get_data(as_text=True)
    assert view.tick("BTCUSD", "M15", "2001-01-01T00:00:00Z") is None


@pytest.mark.parametrize(
    "address",
    ["/", "/symbol/BTCUSD", "/symbol/EURUSD/H1", "/help", "/healthz", "/api/symbol/BTCUSD/H1"],
)
def test_every_page_of_a_real_desk_opens(client, address):
    answer = client.get(address)
    assert answer.status_code == 200
    assert not re.search(r">\s*(None|nan|Undefined)\s*<", answer.get_data(as_text=True))


def test_pages_write_nothing(client, desk):
    def contents():
        return [
            desk.database.signals(limit=1000),
            desk.database.tick_states("BTCUSD", "M15", 1000),
            desk.database.trading_states(1000),
            desk.database.lease()["renewed_at"],
        ]

    before = contents()
    for address in ("/", "/symbol/BTCUSD/M15", "/api/overview", "/healthz"):
        for method in ("GET", "POST", "DELETE"):
            client.open(address, method=method)
    assert contents() == before


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("a", (None, "b")),
        ("b", ("a", "d")),
        ("c", ("b", "d")),
        ("d", ("b", None)),
        ("e", ("d", None)),
    ],
)
def test_neighbours(wanted, found):
    row = neighbours(["a", "b", "d"], wanted)
    assert (row["previous"], row["next"]) == found
