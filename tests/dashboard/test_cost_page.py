"""The page Cost: its sums are the ledger's, and a ledger of a million rows is not read through."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_config import VENDORS, AgentSettings
from instance_database import Database, open_home
from tests.cases import cases
from tests.doubles.page_reader import Page, check_policy
from tests.worlds import desks
from tests.worlds.calls import store
from tests.worlds.desk_pages import PAYING, Pages, open_pages
from tests.worlds.told import PAID
from torra.clock import System, duration, iso, parse
from torra.dashboard.answers import adapters
from torra.desk import costs as cost_report
from torra.exhibits import figures
from torra.providers.prices import PriceList
from torra.store import ledger as ledger_table
from torra.store.ledger import Booking, Settlement
from torra.tick.degradation import UNASKED, to_climb
from torra.tick.spending import SpendingAccount

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOW = parse("2026-11-21T18:20:31Z")
COUNTED = ("calls", "input_tokens", "cached_tokens", "output_tokens")
"""Cells of the shell around the page."""

PAYER = desks.BTC.model_copy(update={"profile": "paying"})


def book(database, at, usd=None, *, profile="paying", role="technical", worst=0.05):
    row = Booking("analysts", role, 1, 1, "anthropic", "claude-haiku-5-5", worst)
    (number,) = database.book(profile, "BTCUSD|M15|2021-11-10T10:00:00Z", [row], at=at, until=at)
    if usd is not None:
        database.settle(number, Settlement(usd, at, 4000, 400, 1000))
    return number


@pytest.fixture(scope="module")
def paying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    pages = open_pages(tmp_path_factory.mktemp("paying"), (PAYER,), profile=PAYING)
    real = pages.desk.clock.real_now()
    for back, usd in (
        (0.2, 0.001),
        (0.4, None),
        (3, 0.01),
        (30, 0.1),
        (24 * 10, 0.3),
        (24 * 20, 0.0001),
    ):
        number = book(pages.database, real - back * HOUR, usd)
        if usd is None:
            pages.database.keep(number)
    yield pages
    pages.desk.close()


@pytest.fixture(scope="module")
def free(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    pages = open_pages(tmp_path_factory.mktemp("free"), steps=1)
    yield pages
    pages.desk.close()


# --- the figures ----------------------------------------------------------------------------------


def test_page_and_command_tell_the_same(paying: Pages) -> None:
    told = paying.json("/api/v1/costs")
    real = paying.desk.clock.real_now()
    again = cost_report.report(
        paying.backing.home, paying.database, paying.backing.setups, real, environment={}
    )
    for name in ("last_hour", "last_24_hours", "roles", "models", "days", "kept", "late"):
        assert told[name] == again[name], name
    assert told["last_hour"]["usd"] == 0.051
    assert sum(row["usd"] for row in told["days"]) == pytest.approx(0.4611)


def test_the_page_shows_every_sum_in_words(paying: Pages) -> None:
    page = Page(paying.text("/costs"))
    check_policy(page)
    report = paying.json("/api/v1/costs")
    adapters()["api_costs"].validate_python(report, extra="forbid")
    for row in (report["last_hour"], report["today"], *report["roles"], *report["models"]):
        sums = [figures.money(row["usd"]), *(figures.plain(row[name], 0) for name in COUNTED)]
        assert [cells for cells in page.rows if cells[1:6] == sums], row


def test_what_is_left_and_when_the_oldest_cost_leaves(paying: Pages) -> None:
    (row,) = paying.json("/api/v1/costs")["profiles"]
    real = paying.desk.clock.real_now().replace(microsecond=0)
    assert (row["spent_usd"], row["left_usd"]) == (0.051, 0.449)
    assert abs(parse(row["oldest_leaves_at"]) - (real + 0.6 * HOUR)) <= timedelta(seconds=2)
    assert row["ticks_left"] == int(0.449 / row["worst_tick_usd"])
    assert row["ticks_an_hour"] == int(0.5 / row["worst_tick_usd"])


def test_a_rung_says_why_and_since_when(paying: Pages) -> None:
    real = paying.desk.clock.real_now()
    ledger_table.set_degradation_level(paying.database, "paying", UNASKED)
    number = book(paying.database, real, worst=0.4)
    try:
        (row,) = paying.json("/api/v1/costs")["profiles"]
        assert (row["degradation_level"], row["ticks_left"]) == (UNASKED, 0)
        assert row["degradation_level_since"] is not None
        page = Page(paying.text("/costs"))
        budget = next(step for step in row["ladder"] if step["degradation_level"] == "budget")
        assert f"climbs back to budget when ${budget['needs_usd']:.4f}" in page.text
        assert "Ticks it still pays for none now; the next from" in page.text
        assert "○ bars alone stepped down" in page.text
    finally:
        paying.database.release(number)
        ledger_table.set_degradation_level(paying.database, "paying", "full")


@pytest.mark.parametrize("ceiling", [1.0, 0.4], ids=["twice", "halfway"])
def test_what_a_rung_needs_is_what_the_ladder_asks_for(tmp_path: Path, ceiling: float) -> None:
    """The page's sentence against tick.spending: at that much the profile climbs, below it not."""
    prices = PriceList.read(tmp_path / "prices.json")
    agents = AgentSettings(provider="anthropic", max_api_cost_per_hour=ceiling)
    database = Database.open(tmp_path / "torra.db", now=lambda: NOW)
    worst = cost_report.worst_ticks(prices, agents, {})["budget"]
    needed = to_climb(worst, ceiling, 0.01)
    account = SpendingAccount(database, prices, "p", lambda _: False, lambda: NOW)
    assert worst < needed < ceiling
    for more, climbs in ((1e-6, True), (-1e-6, False)):
        ledger_table.set_degradation_level(database, "p", UNASKED)
        number = book(database, NOW, profile="p", worst=ceiling - needed - more)
        found = account.degradation_level(agents)
        database.release(number)
        assert (found.name == "budget") == climbs
    database.close()


def test_the_day_is_read_in_stretches_of_an_hour() -> None:
    for minute in (0, 20, 59):
        edges = cost_report._edges(NOW.replace(minute=minute, second=0))
        assert (edges[0], len(edges) >= 24) == (NOW.replace(minute=minute, second=0) - DAY, True)
        assert max(b - a for a, b in itertools.pairwise(edges)) <= HOUR


def test_a_desk_that_pays_nobody_is_told_what_vendors_would_cost(free: Pages) -> None:
    page = Page(free.text("/costs"))
    (setup,) = free.desk.setups.values()
    told = cost_report.by_vendor(free.backing.home, setup.profile.agents)
    dear = {"fallback_models": ("anthropic:claude-opus-5-5",)}
    also = setup.profile.agents.model_copy(update=dear)
    assert cost_report.by_vendor(free.backing.home, also) == told, "each vendor's own models"
    assert set(told) == set(VENDORS)
    assert all(usd > 0 for usd in told.values())
    rows = {row[0]: row for row in page.rows if len(row) == 3}
    for vendor, usd in told.items():
        _, tick, day = rows[vendor.replace("_", " ")]
        ticks = sum(DAY / duration(frame) for frame in setup.instance.timeframes)
        most = 24 * setup.profile.agents.max_api_cost_per_hour
        assert tick == figures.money(usd)
        assert day == figures.money(min(usd * ticks, most), 2)


@cases(("ceiling", "day"), [(1_000.0, None), (0.5, 12.0), (0.0, 0.0)])
def test_a_day_costs_no_more_than_its_hours_may(
    free: Pages, ceiling: float, day: float | None
) -> None:
    (setup,) = free.desk.setups.values()
    agents = setup.profile.agents.model_copy(update={"max_api_cost_per_hour": ceiling})
    profile = setup.profile.model_copy(update={"agents": agents})
    (told,) = [
        one
        for one in cost_report.of_vendors(free.backing.home, [(setup.instance, profile)] * 2)
        if one["vendor"] == "anthropic"
    ]
    # two instances with one profile share its ceiling
    ticks = 2 * sum(DAY / duration(frame) for frame in setup.instance.timeframes)
    assert told["day_usd"] == pytest.approx(told["tick_usd"] * ticks if day is None else day)


def test_a_profile_that_is_gone_or_broken_is_no_trouble(paying: Pages) -> None:
    folder = paying.backing.home / "profiles"
    folder.mkdir(exist_ok=True)
    (folder / "broken.json").write_text("{", encoding="utf-8")
    real = paying.desk.clock.real_now()
    numbers = [book(paying.database, real, profile=name) for name in ("broken", "**")]
    assert paying.text("/costs").count("the profile is gone, or its file cannot be read") == 2
    for number in numbers:
        paying.database.release(number)


def test_a_request_under_way_is_told_apart(paying: Pages) -> None:
    real = paying.desk.clock.real_now()
    row = Booking("gate", "risk_gate", 1, 1, "anthropic", "m", 0.01)
    (number,) = paying.database.book("paying", "a|b|c", [row], at=real, until=real + HOUR)
    first = paying.json("/api/v1/costs")["kept"][0]
    assert (first["role"], first["under_way"]) == ("risk_gate", True)
    paying.database.release(number)


def test_each_day_that_cost_anything_has_a_bar(paying: Pages) -> None:
    days = paying.json("/api/v1/costs")["days"]
    path = paying.text("/costs").partition('class="column" d="')[2].partition('"')[0]
    assert path.count("M") == sum(row["usd"] > 0 for row in days) < len(days)
    assert "v-100.0" in path and "v-1.5" in path, (
        "the dearest day, and one that cost hardly anything"
    )


# --- the sums over time ---------------------------------------------------------------------------


@given(
    ages=st.lists(st.integers(-7200, 31 * 86400), max_size=30),
    moment=st.integers(0, 86_399),
    later=st.integers(0, 7200),
)
@settings(max_examples=25)
def test_stretches_sum_to_what_the_rows_do(ages: list[int], moment: int, later: int) -> None:
    """Whatever the hour: the stretches of the day are the day's rows, and memory changes none."""
    rows = []
    now = parse("2026-11-21T00:00:00Z") + timedelta(seconds=moment)
    for place, age in enumerate(ages):
        rows.append((now - timedelta(seconds=age), float(2**place)))
    past = cost_report.LedgerSums()
    ledger: Any = Ledger(rows)
    for at in (now, now + timedelta(seconds=later)):
        groups = past.groups(ledger, ["p"], at)
        midnight = at.replace(hour=0, minute=0, second=0)
        for name, since in (("in_hour", at - HOUR), ("in_today", midnight), (None, at - 24 * HOUR)):
            told = sum(row["usd"] for row in groups if name is None or row[name])
            assert told == sum(usd for until, usd in rows if until > since), name
        days = past.days(ledger, ["p"], at)
        for row in days:
            day = sum(usd for until, usd in rows if iso(until)[:10] == row["day"])
            assert row["usd"] == day
        assert [row["day"] for row in days] == sorted({row["day"] for row in days})
        assert (len(days), days[-1]["day"]) == (30, iso(at)[:10])


class Ledger(SimpleNamespace):
    """Rows (until, usd) that answer as the ledger does, by its columns."""

    def __init__(self, rows) -> None:
        super().__init__(bookings=rows)

    def rows(self, sql, profile, after, upto):
        upto = None if upto == "~" else upto
        found = [usd for at, usd in self.bookings if at > after and (upto is None or at <= upto)]
        return [{"profile": profile, "usd": sum(found)}] if found else []

    def tuples(self, sql, profile, start, end):
        found = [usd for at, usd in self.bookings if start <= at < end]
        return [(sum(found), len(found))]


def test_the_past_is_remembered_and_read_again_after_a_while(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "torra.db", now=lambda: NOW)
    number = book(database, NOW - 50 * HOUR)
    past = cost_report.LedgerSums()

    def spent(now: datetime) -> float:
        return sum(row["usd"] for row in past.days(database, ["paying"], now))

    assert spent(NOW) == 0.05
    database.settle(number, Settlement(0.01, NOW - 50 * HOUR))
    assert spent(NOW) == 0.05
    assert spent(NOW + cost_report.REMEMBERED) == 0.01
    fresh = book(database, NOW - HOUR)
    assert spent(NOW + cost_report.REMEMBERED) == pytest.approx(0.06)
    database.release(fresh)
    assert spent(NOW + cost_report.REMEMBERED) == 0.01
    database.close()


def test_no_sum_of_the_ledger_scans_it(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "torra.db", now=lambda: NOW)
    book(database, NOW)
    asked: list[str] = []
    connection = database.connection().conn
    connection.set_trace_callback(asked.append)
    setups = [(desks.BTC.model_copy(update={"profile": "paying"}), PAID)]
    cost_report.report(tmp_path, database, setups, NOW, environment={})
    connection.set_trace_callback(None)
    looks = [sql for sql in asked if sql.lstrip().startswith(("SELECT", "WITH"))]
    assert len(looks) > 40
    for sql in set(looks):
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()]
        scans = [step for step in plan if step.startswith("SCAN")]
        # json_each is the list of names that was asked for, no table.
        allowed = ("found", "provider_blocks", "calls USING INDEX calls_cost", "json_each")
        assert all(step.removeprefix("SCAN ").startswith(allowed) for step in scans), (sql, plan)
    database.close()


def test_profiles_of_the_ledger_by_steps_in_its_index(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "torra.db", now=lambda: NOW)
    assert ledger_table.ledger_profiles(database) == []
    for name in ("b", "a", "ü", "a", "", "b"):
        book(database, NOW, profile=name)
    assert ledger_table.ledger_profiles(database) == ["", "a", "b", "ü"]
    sql = "SELECT DISTINCT profile FROM ledger ORDER BY profile"
    plain = database.connection().execute(sql).fetchall()
    assert [row[0] for row in plain] == ledger_table.ledger_profiles(database)
    database.close()


def test_answers_that_came_too_late_are_counted_of_the_newest_calls(tmp_path: Path) -> None:
    database = open_home(tmp_path)
    store(database, ["ok", "late", "garbage"])
    now = System().real_now()
    told = cost_report.report(tmp_path, database, [(desks.BTC, PAID)], now, environment={})
    assert told["late"] == {"calls": 1, "of": 3}
    database.close()
