"""When series are asked for, what is stored of them and from when it counts, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.outside_server import OutsideServer, week, weekdays
from tests.house.test_floors import MODULES, targets
from tests.worlds.stores import Hand, open_database
from torra.collecting.asking import WAITS_S
from torra.errors import StoreUnavailable
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import CFTC, FRED, SeriesRow
from torra.outside import fred
from torra.outside.answers import SeriesAnswer
from torra.outside.collector import OVERLAP, SeriesCollector
from torra.outside.publisher import EVERY_S, SPACING_S, open_publishers

NOON = datetime(2026, 2, 13, 12, tzinfo=UTC)
S = NewsStatus
OK = SeriesAnswer(S.EMPTY)


def row(day: str, known: str, value: float = 4.25, name: str = "DGS10") -> SeriesRow:
    at, known_at = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (day, known))
    return SeriesRow(name, at, known_at, value, "fred")


THURSDAY = row("2026-02-05", "2026-02-06 22:00")


class Publisher:
    """A publisher that gives the answers of a list; the last one repeats. A topic is a series."""

    spacing = SPACING_S
    topics = fred.TOPICS

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.since: list[date | None] = []

    def every(self, topic: str) -> float:
        return EVERY_S

    def fetch(
        self, topic: str, now: datetime, seconds: float, since: date | None = None
    ) -> SeriesAnswer:
        self.asked.append(topic)
        self.since.append(since)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return SeriesAnswer(S.AVAILABLE, "", tuple(answer)) if isinstance(answer, list) else answer


class Table:
    """The table in memory; `broken` makes it fail."""

    def __init__(self) -> None:
        self.rows: list[SeriesRow] = []
        self.seen: list[datetime] = []
        self.broken: Exception | None = None

    def store_series(self, rows: Iterable[SeriesRow], first_seen: datetime) -> int:
        if self.broken:
            raise self.broken
        self.rows += rows
        self.seen.append(first_seen)
        return len(self.rows)


def at(server: OutsideServer | None = None) -> dict[str, Any]:
    """Both publishers, on a server."""
    return {**open_publishers(server.environment if server else {})}


class Desk:
    """A collector with clocks that are set by hand."""

    def __init__(
        self, store: Any = None, *, names: Iterable[str] = ("DGS10",), **publishers: Any
    ) -> None:
        self.store = store or Table()
        self.now = Hand(NOON)
        self.seconds = 1000.0
        self.collector = SeriesCollector(
            publishers, self.store.store_series, now=self.now, monotonic=lambda: self.seconds
        )
        self.collector.watch(names)

    def later(self, seconds: float) -> Desk:
        self.seconds += seconds
        self.now.pass_by(seconds)
        self.collector.turn()
        return self

    def status(self) -> NewsStatus:
        return self.collector.status_of("DGS10")


# --- when -----------------------------------------------------------------------------------------


def test_the_parts_of_a_market_are_one_question_and_strangers_none() -> None:
    desk = Desk(names=(), **at())
    desk.collector.watch(("cot.gold.long", "cot.gold.short", "derivs.dvol.BTCUSD", "DGS2", "x"))
    places = [(state.source, state.topic) for state in desk.collector.status()]
    assert places == [("cftc", "gold"), ("fred", "DGS2")]
    assert desk.collector.status_of("cot.gold.open_interest") is S.NOT_YET
    for name in ("cot.oil.long", "DGS10", "derivs.dvol.BTCUSD"):
        assert desk.collector.status_of(name) is S.OFF


def test_at_first_the_history_is_asked_for_and_later_what_is_new() -> None:
    friday = row("2026-02-06", "2026-02-09 22:00")
    fred = Publisher([THURSDAY, friday], SeriesAnswer(S.BROKEN), [friday], [THURSDAY], OK)
    desk = Desk(fred=fred)
    for _ in range(6):
        desk.later(EVERY_S)
    first = friday.at.date() - OVERLAP
    assert fred.since == [None, *[first] * 5], "it never goes back"


def test_what_could_not_be_stored_is_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    fred = Publisher([THURSDAY])
    desk = Desk(fred=fred)
    desk.store.broken = StoreUnavailable("locked at https://host/?token=CANARY")
    desk.later(0)
    assert desk.status() is S.BROKEN
    assert desk.collector.status()[0].detail == "what came could not be stored"
    desk.store.broken = None
    desk.later(WAITS_S[S.BROKEN][0])
    assert desk.status() is S.AVAILABLE and fred.since == [None, None]
    assert desk.store.rows == [THURSDAY] and caplog.text and "CANARY" not in caplog.text


# --- what is stored -------------------------------------------------------------------------------


def test_what_is_handed_to_the_store_is_a_whole_second() -> None:
    desk = Desk(fred=Publisher([THURSDAY]))
    desk.now.pass_by(0.25)
    desk.later(0)
    assert desk.store.seen == [NOON + timedelta(seconds=1)]


FRIDAY = row("2026-02-06", "2026-02-09 22:00")
MONDAY = row("2026-02-09", "2026-02-10 22:00")
LATER = row("2026-02-12", "2026-02-13 22:00")
MOMENTS = {
    # No table has this postponement: the publisher was asked after its hour, and had nothing.
    "it came late": ([THURSDAY, MONDAY], [THURSDAY, FRIDAY, MONDAY], EVERY_S, FRIDAY),
    # Asked at noon, before its hour, and again at midnight.
    "it came in time": ([THURSDAY], [THURSDAY, LATER], 2 * EVERY_S, None),
    # A desk that was not asking cannot tell, and the rule holds.
    "the desk slept": ([THURSDAY], [THURSDAY, LATER], 30 * 86_400, None),
}


@pytest.mark.parametrize("why", MOMENTS)
def test_what_came_late_is_known_when_it_was_first_seen(why: str) -> None:
    first, second, seconds, late = MOMENTS[why]
    desk = Desk(fred=Publisher(first, second))
    desk.later(0).later(seconds)
    moment = NOON + timedelta(seconds=seconds)
    assert desk.store.rows[len(first) :] == [
        told._replace(known_at=moment) if told is late else told for told in second
    ]
    assert desk.store.seen[-1] == moment


def test_a_week_without_a_release_is_counted_and_not_stored(tmp_path: Path) -> None:
    store = open_database(tmp_path)
    with OutsideServer() as server:
        server.weeks = [week("gold", f"2017-{day}") for day in ("01-10", "01-17", "03-14")]
        desk = Desk(store, names=("cot.gold.long",), **at(server))
        desk.later(0)
        assert [state.dropped for state in desk.collector.status()] == [1]
        desk.later(EVERY_S)
        assert len(store.series_rows(["cot.gold.long"])) == 2
        assert "2017-01-31" in server.asked[1][1]["$where"], "the second question begins later"
    store.close()


def test_both_publishers_fill_the_store(tmp_path: Path) -> None:
    store = open_database(tmp_path)
    with OutsideServer() as server:
        server.days = {name: dict.fromkeys(weekdays("2025-12-01", 50), "4.25") for name in FRED}
        tuesdays = ("2026-01-27", "2026-02-03", "2026-02-10")
        server.weeks = [
            week(market, day)
            for market in ("gold", "oil", "eur", "sp500", "vix", "btc")
            for day in tuesdays
        ]
        desk = Desk(store, names=(*FRED, *CFTC), **at(server))
        for _ in range(13):
            desk.later(SPACING_S)
    assert {state.status for state in desk.collector.status()} == {S.AVAILABLE}
    assert len(store.series_rows(FRED)) == len(FRED) * 50 and len(store.series_rows(CFTC)) == 18 * 3
    store.close()


# --- how it stands --------------------------------------------------------------------------------


def test_a_publisher_has_a_trouble_until_one_series_answers() -> None:
    desk = Desk(fred=Publisher(SeriesAnswer(S.BROKEN), SeriesAnswer(S.REFUSED), OK))
    assert desk.collector.trouble("fred") == "not_yet" and desk.collector.trouble("cftc") == ""
    desk.later(0)
    assert desk.collector.trouble("fred") == "broken"
    desk.collector.watch(["DGS2"])
    desk.later(SPACING_S)
    assert desk.collector.trouble("fred") == "refused"
    desk.later(EVERY_S)
    assert desk.collector.trouble("fred") == ""


# --- no tick enters it ----------------------------------------------------------------------------

COLLECTING = ("torra/outside", "torra/collecting", "news_collector", "torra/news")


def reached(start: str, into: Any = targets) -> set[str]:
    """Return every module that one leads to."""
    found, todo = set(), [start]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += into(name)
    return found


def enters(start: str, into: Any = targets) -> set[str]:
    return {name for name in reached(start, into) if name.startswith(COLLECTING)}


TICK = sorted(
    name
    for name in MODULES
    if name == "torra_trader" or name.startswith(("torra/tick/", "agents/", "agent_framework"))
)


@pytest.mark.journey
def test_no_tick_thread_can_call_it() -> None:
    """What a tick runs leads to no collector, however far: it reads what is in the store."""
    assert len(TICK) > 20
    assert {name: enters(name) for name in TICK if enters(name)} == {}


@pytest.mark.journey
def test_a_tick_that_would_call_it_is_found() -> None:
    def planted(name: str) -> frozenset[str]:
        more = {"torra/outside/collector"} if name == "torra/tick/look" else set()
        return targets(name) | more

    assert "torra/outside/collector" in enters("torra_trader", planted)
