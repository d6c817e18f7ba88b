"""Pages of a large desk: as quick as those of a small one, and never older than the database.

The counts are nightly counts: 1,000,000 ticks of 50 instances. The steps of SQLite's machine tell
that the work does not grow with the database; what a page takes is asserted by the benchmark of the
pages. What the pages keep in memory is held against a reading without memory.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from benchmarks import bench_pages
from tests.cases import cases
from tests.conftest import Scale
from tests.dashboard.test_query_plans import ROUTES, address, values
from tests.doubles.page_reader import Page
from tests.doubles.visitors import open_app
from tests.worlds import large_database
from tests.worlds.demo_full_desk import CASES, desk_record
from tests.worlds.demo_view import ScriptedView
from tests.worlds.records import DEBATE, quiet, tick_record
from tests.worlds.stores import flat
from torra.clock import duration, iso
from torra.config import Profile
from torra.dashboard.record.reasoning import headline
from torra.dashboard.screens import home
from torra.dashboard.streams.attention import AttentionReason
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_values import (
    ChangeCount,
    Overview,
    OverviewSymbol,
    PositionValue,
    StreamStatus,
)
from torra.dashboard.view.desk_view import DatabaseView
from torra.dashboard.view.kept import LruCache
from torra.dashboard.view.stream_reading import StreamReading, brief
from torra.store.connection import TickKey
from torra.store.trade import proposals_and_alarms as execution_table
from torra.tick.tick_record import ThresholdsRecord, TickRecord
from torra.verdict.one_sided import TICKS
from torra.verdict.risk_engine import Position

PAGES = ("overview", "symbol", "tick")
SMALL, LARGER = 2_250, 5_000
STEP = 20
"""Instructions of SQLite's machine between two counts."""


class Opened:
    """A database on disk, with a view and a client of its own each time one is asked for."""

    def __init__(self, folder, rows, instances, **more) -> None:
        self.path = folder / "torra.db"
        self.desk = large_database.build(self.path, rows, instances, **more)
        self.database = large_database.open_database(self.path)
        self.looking = large_database.looking(self.database, self.desk)
        self.backing = PageContext(self.path.parent, self.database, self.desk, self.looking)
        # Once in the life of an app, whatever page is asked for first: what its trades came to.
        self.backing.money()

    def view(self) -> Any:
        return DatabaseView(self.database, self.desk, self.looking)

    def client(self, view=None):
        app = open_app(view or self.view(), backing=self.backing)
        return app.test_client()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, scaled: Scale) -> Iterator[Opened]:
    """What counts in the present hour, for all its profiles, is as much as in the large one."""
    booked = large_database.BOOKED * scaled(50, least=3) // 3
    opened = Opened(tmp_path_factory.mktemp("small"), SMALL, 3, booked=booked)
    yield opened
    opened.database.close()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, scaled: Scale) -> Iterator[Opened]:
    rows, instances = scaled(1_000_000, least=LARGER), scaled(50, least=3)
    opened = Opened(tmp_path_factory.mktemp("large"), rows, instances)
    yield opened
    opened.database.close()


# --- as quick ---


def steps(opened, name):
    """Return how many instructions SQLite ran for one page, asked for the first time."""
    counted = [0]

    def count() -> None:
        counted[0] += 1

    client, connection = opened.client(), opened.database.connection().conn
    connection.set_progress_handler(count, STEP)
    try:
        answer = client.get(address(ROUTES[name], values(opened.database, opened.desk)))
        assert answer.status_code == 200
        answer.get_data()
    finally:
        connection.set_progress_handler(None, 0)
    return counted[0] * STEP


COUNTED = 2 * TICKS * 20
"""Instructions for the newest verdicts of two timeframes, which a symbol's page counts once a tick:
a bounded number of rows, of which the small database has fewer.
"""


@pytest.mark.journey
@pytest.mark.parametrize("name", PAGES)
def test_a_page_costs_the_same_however_much_is_stored(
    name: str, small: Opened, large: Opened
) -> None:
    if len(large.desk.instances) > 3:
        few = large.desk.model_copy(update={"instances": large.desk.instances[:3]})
        large = large_of_three(large, few)
    bounded = COUNTED if name == "symbol" else 0
    assert steps(large, name) <= 1.1 * steps(small, name) + 500 + bounded


def large_of_three(large, few):
    """Return the large database as a desk of three instances sees it."""
    seen = object.__new__(Opened)
    seen.path, seen.desk, seen.database = large.path, few, large.database
    seen.looking = large_database.looking(large.database, few)
    seen.backing = replace(large.backing, settings=few, desk=seen.looking)
    seen.backing.money()
    return seen


@pytest.mark.journey
def test_the_benchmark_asks_for_pages_that_answer(large: Opened) -> None:
    client = large.client()
    asked = bench_pages.addresses_of(large.database, large.desk, bench_pages.WARM)
    assert asked.keys() == bench_pages.TARGETS.keys()
    for addresses in asked.values():
        for asked_for in addresses:
            bench_pages.one_request(client, asked_for)  # raises for any answer but 200


def test_the_figures_of_the_benchmark_are_percentiles_by_page() -> None:
    assert bench_pages.percentile(list(range(1, 101)), 95) == 95
    pages = bench_pages.flat({"symbol": {"median": 3.0, "wall": 4.0}})
    assert pages == {"symbol_median": 3.0, "symbol_wall": 4.0}


# --- nothing old ---


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Opened]:
    opened = Opened(tmp_path, 60, 2)
    yield opened
    opened.database.close()


def add_tick(opened, instance, close, score):
    """Store one more tick."""
    key = TickKey(instance, "M15", close - duration("M15"))
    opened.database.save_sentiment(
        flat(score), key=key, close_time=close, ath=score, l1=flat(-score), ungated=flat(score),
        source_type="AGENT_FULL", profile=large_database.profile(), deliberation=DEBATE,
        timeframes=("M15", "H1"),
    )  # fmt: skip
    stored = opened.database.ticks(instance, "M15", 1)[0]
    record = quiet(
        instance=instance, bar_time=iso(key.bar_time), as_of=iso(close), now=iso(close),
        consensus=stored["consensus"], verdict=stored["verdict"], l1_verdict=stored["l1_verdict"],
    )  # fmt: skip
    del record["deliberation"]
    opened.database.write_journal(key, record)
    return key


def test_a_new_tick_is_seen_at_once(fresh: Opened) -> None:
    view, name = fresh.view(), fresh.desk.instances[0].id
    client = fresh.client(view)
    before = view.overview().instances[0]
    listed = view.symbol(name, "M15", 300).ticks
    client.get("/")
    key = add_tick(fresh, name, large_database.NOW + duration("M15"), 0.9)
    after = view.overview().instances[0]
    assert after.streams[0].tick.bar_time == iso(key.bar_time)
    assert after.streams[0].history[:-1] == before.streams[0].history[-47:]
    (counted,) = fresh.database.rows(
        "SELECT sum(verdict <> l1_verdict) AS changed, count(*) AS every FROM chains "
        "WHERE instance = ?",
        name,
    )
    assert after.changes == ChangeCount(**counted) != before.changes
    data = view.symbol(name, "M15", 300)
    assert [t.bar_time for t in data.ticks[1:]] == [t.bar_time for t in listed]
    assert data.states.history[-1][0] == iso(large_database.NOW + duration("M15"))
    assert headline(data.latest) in client.get("/").text


def test_a_tick_that_came_late_takes_its_place(fresh: Opened) -> None:
    """A bar that was waited for while the next one ran: the newest tick stays the newest."""
    view, name = fresh.view(), fresh.desk.instances[0].id
    close = large_database.NOW
    database = fresh.database
    key = f"{name}|M15|{iso(close - 2 * duration('M15'))}"
    with database.transaction():
        for table in ("journal", "chains", "sentiment"):
            database.change(f"DELETE FROM {table} WHERE torra_key = ?", key)
    short = view.overview().instances[0].streams[0].history
    assert len(view.symbol(name, "M15", 300).ticks) == len(short)
    add_tick(fresh, name, close - duration("M15"), 0.25)
    stream = view.overview().instances[0].streams[0]
    assert stream.history[:-2] == short[:-1]
    assert stream.history[-1] == short[-1]
    assert view.symbol(name, "M15", 300).ticks[1].bar_time == key.split("|")[2]


def test_ages_and_waits_go_on_while_rows_are_kept(fresh: Opened) -> None:
    client = fresh.client()
    first = Page(client.get("/symbols").text)
    fresh.looking.clock.set(large_database.NOW + timedelta(minutes=9))
    later = Page(client.get("/symbols").text)
    for page, age, wait in ((first, "40 s", "14:20"), (later, "9 min", "6:00")):
        line, *_ = page.texts("stream-line", "i0")
        assert line.endswith(f" {age} {wait}")


def test_what_a_person_changes_is_seen_at_once(fresh: Opened) -> None:
    client = fresh.client()
    before = Page(client.get("/symbols").text).text
    assert "1 to decide" in before and "1 stands" in before
    execution_table.decide_proposal(fresh.database, large_database.PROPOSED, "REJECTED", "a test")
    execution_table.end_alarms(fresh.database)
    fresh.database.set_trading_state("HALTED", "a test")
    after = Page(client.get("/symbols").text)
    assert "nothing to decide" in after.text and "no alarm" in after.text
    (halted,) = [one for one in after.all("p") if one.get("id") == "trading-halted"]
    assert "hidden" not in halted


def test_a_profile_that_is_changed_while_the_desk_runs_is_seen_at_once(fresh: Opened) -> None:
    view, name = fresh.view(), fresh.desk.instances[0].id
    changed = large_database.profile().model_copy(
        update={"thresholds": type(large_database.profile().thresholds)(buy=0.3, sell=0.7)}
    )
    assert view.overview().instances[0].thresholds == ThresholdsRecord(buy=0.5, sell=0.5)
    fresh.looking.setups[name].profile = changed
    assert view.overview().instances[0].thresholds == ThresholdsRecord(buy=0.3, sell=0.7)


def test_a_glance_needs_no_more_of_a_record_than_is_kept(fresh: Opened) -> None:
    """The pages made from what is kept are those of the whole record."""
    reading = StreamReading(fresh.database, lambda _: Profile())
    for one in fresh.desk.instances:
        for row in fresh.database.ticks(one.id, "M15", 10):
            kept = reading.tick(row["torra_key"])
            whole = TickRecord.parse(fresh.database.tick_without_calls(row["torra_key"]))
            assert kept == brief(whole)
            assert shown_of(one.id, whole) == shown_of(one.id, kept)
            assert len(kept.model_dump_json()) < len(whole.model_dump_json()) / 3


@cases("case", CASES)
def test_a_glance_of_every_kind_of_tick_needs_no_more(case: str) -> None:
    for place in (69, 92, 329):
        whole = desk_record("BTCUSD", "M15", place, case)
        whole = {**whole, "denied": [*whole["denied"], "ANOTHER_REASON"]}
        record = tick_record(whole)
        assert shown_of("BTCUSD", record) == shown_of("BTCUSD", brief(record))


GLANCE = ScriptedView()
GLANCED = open_app(GLANCE).test_client()


def shown_of(name: str, tick: TickRecord) -> list[str]:
    """Return the pages of an instance with this newest tick, as a tile and as a row."""
    stream = StreamStatus(timeframe="M15", tick=tick)
    one = OverviewSymbol(instance=name, streams=(stream,), latest=tick)
    vars(GLANCE)["overview"] = lambda: Overview(instances=(one,))
    return [GLANCED.get(address).text for address in ("/", "/symbols")]


# --- what is kept ---

POSITION = Position("A", "A", "LONG", 0.1, 100.0, 90.0, 120.0, large_database.NOW, "T1", "FILLED")


def test_the_memory_is_bounded_and_lets_go_of_what_nobody_asks_for() -> None:
    made: list[int] = []

    def make(key: int) -> int:
        made.append(key)
        return key

    kept: LruCache[int] = LruCache(3)
    for key in (1, 2, 3, 1, 4, 1, 2):
        kept.get(key, partial(make, key))
    assert made == [1, 2, 3, 4, 2]
    assert len(kept) == 3


def test_threads_share_the_memory() -> None:
    kept: LruCache[int] = LruCache(8)
    wrong = []

    def ask(first: Any) -> None:
        for number in range(400):
            key = (first + number) % 16
            if kept.get(key, partial(operator.mul, key, 2)) != key * 2:
                wrong.append(key)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(kept) == 8


def test_a_kept_row_is_known_by_everything_that_it_shows() -> None:
    one = OverviewSymbol(
        instance="A", latest=tick_record(), streams=(StreamStatus(age_seconds=1.0),)
    )
    known = home.SymbolRow(0, one, (AttentionReason(3, "x", "warn"),), "", "", "")
    for other in (
        known._replace(notices=()),
        known._replace(debate="tick-1"),
        known._replace(event="Next event"),
        known._replace(first="No tick yet"),
        *(known._replace(symbol=replace(one, **change)) for change in (
            {"latest": tick_record()}, {"latest": None}, {"instance": "B"}, {"digits": 2},
            {"currency": "EUR"}, {"feed": "host"}, {"holding": PositionValue(POSITION)},
        )),
    ):  # fmt: skip
        assert other.shown != known.shown
    older = replace(one, streams=(StreamStatus(age_seconds=9.0),))
    same = known._replace(symbol=older)
    assert same.shown == known.shown and hash(same.shown) == hash(known.shown)


@cases("odd", ["BTC.USD_x-1", "a b", "ü&x", "a?b=c#d", "100%"])
def test_addresses_are_those_of_the_routes(odd: str) -> None:
    parts = {"instance": odd, "timeframe": "M15", "bar_time": "2021-12-01T10:15:00Z"}
    pages = shown_of(odd, tick_record(parts))
    with GLANCED.application.test_request_context("/"):
        for name, known in (("instance", 1), ("symbol", 2), ("tick", 3)):
            own: Any = dict(list(parts.items())[:known])
            address = GLANCED.application.url_for(f"torra_agents.{name}", **own)
            for page in pages:
                assert f'href="{escape(address)}"' in page
