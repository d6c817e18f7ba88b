"""The demo's invented sample: every seat speaks, each such tick says so, and nothing counts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.registry import seated
from instance_database import TickKey
from tests.examples import examples
from tests.worlds import desk_pages, desks, remembering
from tests.worlds.homes import desk_file
from tests.worlds.records import tick_record
from torra.clock import iso, parse
from torra.config import ROOT, Profile, load_desk, validate
from torra.dashboard.record import swarm
from torra.dashboard.trade import why
from torra.desk import promotion, wiring
from torra.desk.outlook import subject_of
from torra.desk.schedule import Desk
from torra.desk.timers import next_close
from torra.evidence.outside_numbers import SeriesRow
from torra.feeds.sample import SampleFeed
from torra.market.bar_view import BarView
from torra.outside.invented import InventedSample
from torra.replay.rerun import trial_tick
from torra.replay.rerun.edges_then import FrozenClock
from torra.replay.rerun.journal_replay import replay
from torra.replay.rerun.replay_store import JournalDatabase
from torra.store import lessons as lesson_table
from torra.store import standings as standing_table
from torra.tick.tick_record import TickRecord, load

DEMO = SampleFeed(ROOT / "sample_data", invents=True)
MARK = "some evidence is invented"
BLOCKS = ("spread.", "macro.", "flow.", "companion.", "news.")


def profile(mode: str, **sections: Any) -> Profile:
    return validate(Profile, {"agents": {"mode": mode, "influence": "full"}, **sections}, "a test")


def lived(
    folder: Path, settings: Profile, closes: int, *, feed: Any = DEMO, instances: Any = (desks.BTC,)
) -> Desk:
    """Return a desk that has run the ticks of some closes of M15, each a second late."""
    desk = desks.working_desk(
        folder,
        instances,
        profile=settings,
        feed=feed,
        make_clock=lambda at: FrozenClock(at or desks.START),
    )
    clock = desks.clock_of(desk)
    for _ in range(closes):
        clock.set(next_close(clock.now(), ["M15"]) + timedelta(seconds=1))
        for name in desk.setups:
            desk.wake(name)
    return desk


def ticks(desk: Desk) -> list[Mapping[str, Any]]:
    rows = desks.rows(desk, "SELECT torra_key FROM journal ORDER BY torra_key")
    keys = [str(row["torra_key"]).split("|") for row in rows]
    found = [desk.database.tick(TickKey(one, name, parse(time))) for one, name, time in keys]
    return [one for one in found if one is not None]


@pytest.mark.parametrize("mode", ["firm", "swarm", "full"])
def test_every_seat_of_the_demo_speaks(tmp_path: Path, mode: str) -> None:
    settings = profile(mode)
    desk = lived(tmp_path, settings, examples(48, 8), instances=(desks.BTC, desks.EUR))
    found, abstained = ticks(desk), Counter[str]()
    for tick in found:
        assert not tick["deliberation"]["failures"]
        for report in tick["deliberation"]["reports"]:
            abstained[report["agent_id"]] += report["abstained"]
    assert {*abstained} == {seat.role.id for seat in seated(settings.agents)}
    assert max(abstained.values()) <= 0.2 * len(found), abstained
    # each stream has ticks of its own
    assert {(one["symbol"], one["timeframe"]) for one in found} == {
        ("BTCUSD", "M15"),
        ("BTCUSD", "H1"),
        ("EURUSD", "H1"),
    }


def test_a_tick_of_the_demo_says_what_is_invented(tmp_path: Path) -> None:
    desk = lived(tmp_path, profile("swarm"), 1)
    tick = ticks(desk)[0]
    assert tick["invented"] is True and MARK in tick["sentence"]
    units = {one["id"]: one["unit"] for one in tick["features"] if one["value"] is not None}
    for block in BLOCKS:
        told = [unit for name, unit in units.items() if name.startswith(block)]
        assert told and all(unit.endswith("invented") for unit in told), block
    real = ("scores.", "technical.", "geometry.", "market.", "memory.")
    assert not [
        name for name, unit in units.items() if name.startswith(real) and "invented" in unit
    ]
    assert {one["source"] for one in tick["outside"]["seen"].values()} == {"invented"}
    record = tick_record(tick)
    assert swarm.brief(record).endswith(MARK)
    assert MARK not in swarm.brief(record.model_copy(update={"invented": False}))


def test_nothing_invented_is_stored_beside_the_record(tmp_path: Path) -> None:
    desk = lived(tmp_path, profile("firm"), 3)
    assert all(one["invented"] for one in ticks(desk))
    for table in ("news", "fundamentals", "spreads", "series", "facts", "flow"):
        (row,) = desks.rows(desk, f"SELECT count(*) AS rows FROM {table}")
        assert row["rows"] == 0, table


def test_no_later_bar_changes_what_is_invented() -> None:
    """The sample that ends at a close gives what the whole one gives of that close."""
    whole = DEMO.bars
    moment = desks.START

    def cut(symbol: str, timeframe: str, as_of: Any, limit: int | None = None) -> Any:
        assert as_of <= moment
        return whole(symbol, timeframe, as_of, limit)

    settings = profile("firm")
    subject = subject_of(desks.BTC, settings)
    made = InventedSample(cut, subject, "M15")
    news = made.news(moment)
    assert news.items and all(one.item.first_seen <= moment for one in news.items)
    times = BarView.of(whole("BTCUSD", "M15", moment, 20)).newest_times(20)
    assert [*made.flow("M15", times).rows] == times
    bars = BarView.of(whole("BTCUSD", "M15", moment, 400))
    longer = BarView.of(whole("BTCUSD", "M15", moment, 500))
    known = made.known("M15", moment, bars)
    assert known.numbers and known.numbers == made.known("M15", moment, longer).numbers
    assert known.numbers != made.known("M15", moment - timedelta(hours=1), bars).numbers
    # a day's value is known when the day is over
    days = [(moment.date() - timedelta(days=n), 60_000.0 - 100.0 * n) for n in range(40, 0, -1)]
    outside = made.outside(moment, lambda _: days)
    assert outside.seen and all(one.known_at <= moment for one in outside.seen.values())


def often(mode: str) -> Profile:
    return remembering.profile(agents={"mode": mode, "influence": "full"})


def test_a_marked_tick_makes_no_standing_and_no_lesson(tmp_path: Path) -> None:
    closes = examples(60, 24)
    for name, feed, counts in (("demo", DEMO, False), ("own", desks.sample(), True)):
        (tmp_path / name).mkdir()
        store = lived(tmp_path / name, often("full"), closes, feed=feed).database
        assert standing_table.trades_between(store, ["BTCUSD"]), "no trade has ended"
        first = load(*next(standing_table.observed(store, ["BTCUSD"])))
        assert isinstance(first, TickRecord)
        store.apply_profile("BTCUSD", often("full").model_dump_json(), first.profile)
        mark = promotion.Fingerprints(store).of(first)
        assert mark and bool(promotion._ticks(store, mark, ["BTCUSD"])) is counts
        calls = standing_table.stream_calls(store, "BTCUSD", "M15", None, 500)
        assert calls and any(row["reports"] != "[]" for row in calls) is counts
        assert all(row["close"] for row in calls)
        assert bool(lesson_table.lesson_count(store)) is counts


def test_a_marked_tick_runs_again_to_the_bit_and_stays_marked(tmp_path: Path) -> None:
    settings = profile("firm")
    desk = lived(tmp_path, settings, 0)
    desk.database.apply_profile("BTCUSD", settings.model_dump_json(), settings.digest())
    desks.step(desk, 3)
    into = JournalDatabase.at(tmp_path / "again.db")
    found = [*replay(desk.database, into, desks.BTC.id)]
    assert [(one.state, dict(one.differences)) for one in found] == [("same", {})] * len(found)
    assert len(found) >= 3 and all(one.record and one.record["invented"] for one in found)
    into.close()


@pytest.mark.parametrize(
    "sections",
    [
        {"agents": {"mode": "budget"}},
        {"agents": {"mode": "full", "include_news": True}, "news": {"sources": ["finnhub"]}},
        {"agents": {"mode": "full"}, "outside": {"sources": []}},
    ],
)
def test_nothing_is_invented_where_no_seat_wants_it_or_a_source_is_named(
    tmp_path: Path, sections: dict[str, Any]
) -> None:
    settings = validate(Profile, sections, "a test")
    plain, demo = (
        ticks(lived(folder, settings, 1, feed=feed))
        for name, feed in (("plain", desks.sample()), ("demo", DEMO))
        if (folder := tmp_path / name).mkdir() is None
    )
    assert plain and all("invented" not in one for one in demo)
    for one, other in zip(plain, demo, strict=True):
        told = [{**tick, "elapsed_ms": 0, "now": ""} for tick in (one, other)]
        assert [told[0][name] for name in SAME] == [told[1][name] for name in SAME]


SAME = ("features", "scores", "outside", "news", "spreads", "sentence", "consensus")


def test_numbers_that_a_person_imported_stand_alone(tmp_path: Path) -> None:
    desk = lived(tmp_path, profile("swarm"), 0)
    seen = desks.START - timedelta(days=1)
    row = SeriesRow("VIXCLS", seen.replace(hour=0), seen, 20.0, "my file")
    assert desk.database.store_series([row], seen)
    desks.step(desk)
    assert ticks(desk) and all("invented" not in one for one in ticks(desk))


def test_only_the_home_of_the_demo_invents(tmp_path: Path) -> None:
    def feeds() -> list[Any]:
        settings = load_desk(tmp_path)
        return [*wiring.open_feeds(settings.instances, settings, tmp_path, None).values()]

    assert all(one.invents for one in feeds())
    trial = trial_tick.run(tmp_path, "BTCUSD", "M15", as_of=iso(desks.START), mode="swarm")
    assert trial["invented"] is True and not trial["abstained"]
    assert MARK in trial_tick.table(trial) and "\ninvented " in trial_tick.table(trial)
    assert trial_tick.document(trial)["invented"] is True
    desk_file(tmp_path, {"symbol": "BTCUSD", "timeframes": ["M15", "H1"], "feed": "sample"})
    assert not any(one.invents for one in feeds())
    trial = trial_tick.run(tmp_path, "BTCUSD", "M15", as_of=iso(desks.START), mode="swarm")
    assert "invented" not in trial and {"macro", "microstructure"} <= {*trial["abstained"]}
    assert "invented" not in trial_tick.table(trial)


def test_the_page_of_a_marked_tick_says_what_is_invented(tmp_path: Path) -> None:
    pages = desk_pages.open_pages(
        tmp_path / "home", profile={"agents": {"mode": "firm"}}, steps=1, feed=DEMO
    )
    (tick,) = [one for one in ticks(pages.desk) if one["timeframe"] == "M15"]
    text = pages.text(f"/symbol/BTCUSD/M15/{tick['bar_time']}")
    assert "Invented evidence" in text and MARK in text
    assert "leaves no lesson" in text
    told = [one["id"] for one in tick["news"]["items"]]
    assert told and all(one in text for one in told)
    assert "News that counted, invented" in text
    assert "not stored any more" not in text
    # the numbers beside their features, in the evidence that nobody cites
    assert "ATR invented" in text


def test_a_point_on_an_invented_number_says_so() -> None:
    report = {
        "agent_id": "fundamental",
        "adjustments": {"momentum": 0.1},
        "points_for": [{"id": "macro.vix", "value": 20.0, "says": "VIX fell", "side": 1}],
        "points_against": [{"id": "technical.rsi14", "value": 60.0, "says": "RSI up", "side": 1}],
    }
    record = {"verdict": "BUY", "deliberation": {"reports": [report]}}
    for mark, begin in ((True, "Invented: VIX fell."), (False, "VIX fell.")):
        case = why.case(tick_record({**record, **({"invented": True} if mark else {})}), "BUY")
        assert [point.text for point in case.why] == [begin, "RSI up."]
