"""Headlines and scheduled events on the way of a tick: read, recorded, replayed, and vetoed by."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import torra.desk.outlook
from tests.cases import cases
from tests.tries import until
from tests.worlds import desks
from torra import regular_files
from torra.clock import System, iso
from torra.config import ROOT, Instance, Profile, validate
from torra.desk.outlook import ContextFeeds, currencies_of, subject_of
from torra.desk.schedule import Desk
from torra.errors import ConfigError
from torra.evidence.news_digest import NewsStatus
from torra.evidence.scheduled_events import EventView
from torra.news import watched_file
from torra.replay.rerun.journal_replay import replay
from torra.replay.rerun.replay_store import JournalDatabase
from torra.store import news as news_table

HEADLINES = "headlines.jsonl"
CALENDAR = "events.csv"
FULL = {
    "agents": {"mode": "full", "include_news": True},
    "news": {"sources": ["file"], "file": HEADLINES},
}


def profile(**sections: Any) -> Profile:
    return validate(Profile, {**FULL, **sections}, "a test")


def write_headlines(folder: Path, *rows: tuple[float, str]) -> None:
    """Write headlines that were first seen so many hours after the start of the desk."""
    lines = [
        {"headline": text, "published": iso(desks.START + timedelta(hours=hours))}
        for hours, text in rows
    ]
    (folder / HEADLINES).write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_events(
    folder: Path, *minutes: float, impact: str = "high", currency: str = "USD"
) -> None:
    """Write events so many minutes after the start of the desk."""
    times = [iso(desks.START + timedelta(minutes=after)) for after in minutes]
    lines = [f"{time},{currency},{impact},Invented release\n" for time in times]
    (folder / CALENDAR).write_text("time,currency,impact,name\n" + "".join(lines))


def desk_with(folder: Path, settings: Profile) -> Desk:
    if not (folder / HEADLINES).exists():
        write_headlines(folder)
    desk = desks.open_desk(folder, profile=settings)
    outlook = ContextFeeds(folder, desk.database, {}, [settings], now=desk.clock.now)
    desk.roster.setups = {
        name: replace(
            setup,
            news=outlook.news(setup.instance, settings),
            events=outlook.events(setup.instance, settings),
        )
        for name, setup in desk.setups.items()
    }
    desk.outlook = outlook  # type: ignore[attr-defined]
    desks.open_for_work(desk)
    return desk


def look_again(desk: Desk) -> None:
    """Read the calendars again, as the desk's thread does."""
    desk.outlook.refresh()  # type: ignore[attr-defined]


def report(tick: Mapping[str, Any], agent: str) -> Mapping[str, Any]:
    (found,) = [one for one in tick["deliberation"]["reports"] if one["agent_id"] == agent]
    return found


def test_a_tick_knows_the_headlines_that_were_seen_and_no_later_one(tmp_path: Path) -> None:
    write_headlines(
        tmp_path,
        (-1.0, "Bitcoin surges as funds report record gains"),
        (0.2, "Bitcoin rally stalls, traders warn of losses"),
        (0.6, "Bitcoin plunges after exchange failure"),
    )
    desk = desk_with(tmp_path, profile())
    desks.step(desk)
    first = desks.newest(desk)
    assert first["news"]["status"] == "available" and first["news"]["unique"] == 2
    assert not report(first, "news")["abstained"]
    assert first["source_type"] == "AGENT_FULL" and first["calls"] is not None
    texts = {item["id"]: item["value"] for item in first["features"]}
    assert "Bitcoin plunges after exchange failure" not in texts.values()
    desks.step(desk, 2)
    assert desks.newest(desk)["news"]["unique"] == 3
    ids = [item["id"] for item in desks.newest(desk)["news"]["items"]]
    assert len(news_table.news_items(desk.database, ids)) == 3


def test_without_headlines_the_agent_abstains_and_the_record_says_why(tmp_path: Path) -> None:
    write_headlines(tmp_path, (-1.0, "Wheat harvest is late this year"))
    desk = desk_with(tmp_path, profile())
    desks.step(desk)
    tick = desks.newest(desk)
    assert tick["news"]["status"] == "empty"
    assert report(tick, "news")["abstained"]
    assert report(tick, "news")["reason"] == "no news evidence: empty"
    assert tick["source_type"] == "AGENT_FULL", "an abstention costs nothing"
    assert "news" not in {call["role"] for call in tick["calls"]}


def test_a_profile_that_wants_no_news_opens_nothing(tmp_path: Path) -> None:
    settings = validate(Profile, {"agents": {"mode": "full"}}, "a test")
    desk = desks.open_desk(tmp_path, profile=settings)
    outlook = ContextFeeds(tmp_path, desk.database, {}, [settings], now=System().now)
    assert outlook.collector is None
    assert outlook.news(desks.BTC, settings) is None
    assert outlook.events(desks.BTC, settings) is None
    outlook.start()
    outlook.close()
    desks.open_for_work(desk)
    desks.step(desk)
    assert desks.newest(desk)["news"] is None and desks.newest(desk)["events"] is None
    assert report(desks.newest(desk), "news")["reason"] == "no news evidence: off"


def test_a_replay_sees_the_news_and_the_events_of_then(tmp_path: Path) -> None:
    write_headlines(tmp_path, (-2.0, "Bitcoin slides on regulator's warning"), (0.3, "Bitcoin up"))
    write_events(tmp_path, 20.0, 300.0)
    settings = profile(events={"calendar": CALENDAR})
    desk = desk_with(tmp_path, settings)
    desk.database.apply_profile("BTCUSD", settings.model_dump_json(), settings.digest())
    desks.step(desk, 4)
    (tmp_path / HEADLINES).unlink()
    (tmp_path / CALENDAR).unlink()
    past = tmp_path / "again"
    past.mkdir()
    into = JournalDatabase.at(past / "torra.db")
    found = list(replay(desk.database, into, desks.BTC.id))
    assert len(found) >= 4
    assert [(one.state, dict(one.differences), dict(one.misses)) for one in found] == [
        ("same", {}, {})
    ] * len(found)
    into.close()


def test_a_tick_whose_headlines_are_gone_is_told_and_left_out(tmp_path: Path) -> None:
    write_headlines(tmp_path, (0.1, "Bitcoin slides on regulator's warning"), (0.3, "Bitcoin up"))
    settings = profile()
    desk = desk_with(tmp_path, settings)
    desk.database.apply_profile("BTCUSD", settings.model_dump_json(), settings.digest())
    desk.wake("BTCUSD")
    desks.step(desk, 2)
    assert (
        news_table.prune_news(desk.database, desk.clock.real_now() + timedelta(days=1), limit=1)
        == 1
    )
    into = JournalDatabase.at(tmp_path / "again.db")
    found = {one.key: one for one in replay(desk.database, into, desks.BTC.id)}
    states = [one.state for one in found.values()]
    assert "same" in states and "no_news" in states
    assert set(states) <= {"same", "no_news", "different"}
    gone = next(one for one in found.values() if one.state == "no_news")
    assert gone.detail.endswith("headlines that it saw are gone: too old")
    assert gone.differences == {} and gone.record is None
    into.close()


# --- scheduled events -----------------------------------------------------------------------------

EAGER = {"thresholds": {"buy": 0.0001, "sell": 0.0001}, "risk": {"capital": 100_000.0}}
"""Every tick has a verdict, so that something is there to be vetoed."""


def eager_desk(folder: Path) -> Desk:
    return desk_with(folder, profile(events={"calendar": CALENDAR}, **EAGER))


@pytest.mark.parametrize(
    ("minutes", "vetoed"), [((40.0,), True), ((5.0,), True), ((200.0,), False), ((-20.0,), False)]
)
def test_no_opening_near_a_high_impact_event(
    minutes: tuple[float, ...], vetoed: bool, tmp_path: Path
) -> None:
    """The first close is a quarter of an hour after the start."""
    write_events(tmp_path, *minutes)
    desk = eager_desk(tmp_path)
    desks.step(desk)
    tick = desks.newest(desk)
    assert tick["verdict"] != "HOLD"
    assert ("SCHEDULED_EVENT" in tick["gate"]["reasons"]) is vetoed
    assert tick["gate"]["veto"] is vetoed
    if vetoed:
        assert tick["reason"] in {"GATE_VETO", "OPPOSITE_VERDICT"}, "no opening, but a close"
    assert tick["events"]["status"] in {"available", "ended"}


def test_an_event_never_keeps_a_position_open(tmp_path: Path) -> None:
    """The hour's tick opens before the window; the quarter's verdict turns inside it: a close."""
    write_events(tmp_path, 40.0)
    settings = profile(events={"calendar": CALENDAR}, record_score="high", **EAGER)
    desk = desk_with(tmp_path, settings)
    desk.wake("BTCUSD")
    desks.step(desk)
    hour = desks.newest(desk, "H1")
    assert hour["action"].startswith("OPEN"), "the window has not begun"
    tick = desks.newest(desk)
    assert tick["gate"]["veto"] and tick["gate"]["reasons"][0] == "SCHEDULED_EVENT"
    assert (tick["action"], tick["reason"]) == ("CLOSE", "OPPOSITE_VERDICT")


def test_a_calendar_that_breaks_later_still_keeps_its_windows(tmp_path: Path) -> None:
    write_events(tmp_path, 40.0)
    desk = eager_desk(tmp_path)
    (tmp_path / CALENDAR).write_text("nonsense\n")
    look_again(desk)
    desks.step(desk)
    tick = desks.newest(desk)
    assert tick["events"]["status"] == "broken"
    assert tick["gate"]["veto"] and "SCHEDULED_EVENT" in tick["gate"]["reasons"]
    desks.step(desk, 2)
    tick = desks.newest(desk)
    assert tick["events"]["status"] == "broken_ended", "the event was the last"
    assert {"events:broken", "events:ended"} <= set(tick["deliberation"]["flags"])
    told = {row["id"]: row["value"] for row in tick["features"]}
    assert (told["events.available"], told["source.events"]) == (0.0, "broken_ended")


def test_a_tick_touches_no_calendar_s_disk(tmp_path: Path, monkeypatch: Any) -> None:
    write_events(tmp_path, 40.0)
    desk = eager_desk(tmp_path)
    (tmp_path / CALENDAR).unlink()
    monkeypatch.setattr(watched_file, "signature", lambda _: pytest.fail("the disk is touched"))
    desks.step(desk)
    assert desks.newest(desk)["gate"]["veto"]
    assert desks.newest(desk)["events"]["status"] != "broken"


class Counted:
    """A collector that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.told.append(name)


@pytest.fixture
def outlook(tmp_path: Path, monkeypatch: Any) -> Iterator[ContextFeeds]:
    """An outlook with a calendar that is looked after all the time."""
    monkeypatch.setattr(torra.desk.outlook, "REFRESH_SECONDS", 0.005)
    write_events(tmp_path, 40.0, 400.0)
    settings = validate(Profile, {"events": {"calendar": CALENDAR}}, "a test")
    made = ContextFeeds(tmp_path, None, {}, [settings], now=System().now)
    made.collector = Counted()  # type: ignore[assignment]
    made.tells = made.events(desks.BTC, settings)  # type: ignore[attr-defined]
    yield made
    made.close()


def next_in(outlook: ContextFeeds) -> float | None:
    found: EventView = outlook.tells(desks.START, desks.START)  # type: ignore[attr-defined]
    return found.to_next


def calendar_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "calendars"]


def test_a_thread_reads_a_calendar_that_changes(
    tmp_path: Path, outlook: ContextFeeds, monkeypatch: Any
) -> None:
    real = regular_files.read_regular

    def slowly(path: Path, limit: int) -> bytes:
        time.sleep(0.05)
        return real(path, limit)

    monkeypatch.setattr(watched_file, "read_regular", slowly)
    assert next_in(outlook) == 40.0
    write_events(tmp_path, 20.0, 400.0)
    assert next_in(outlook) == 40.0, "nobody looks yet"
    outlook.start()
    until(lambda: next_in(outlook) == 20.0)
    write_events(tmp_path, 7.0, 30.0, 400.0)
    until(lambda: next_in(outlook) == 7.0)
    outlook.close()
    assert calendar_threads() == []
    outlook.start()
    assert calendar_threads() == [], "closed is closed"


@cases(
    ("symbol", "spec", "concerned"),
    [
        ("GBPUSD", {"asset": "fx"}, ("GBP", "USD")),
        ("GBPUSD", {"asset": "fx", "currencies": ["GBP"]}, ("GBP",)),
        ("EURUSD", {}, ("EUR", "USD")),
        ("GBPUSD.a", {"asset": "fx"}, None),
        ("GbpUsd", {"asset": "fx"}, None),
        ("DE40", {"asset": "index"}, None),
        ("ETHUSD", {"asset": "crypto"}, None),
        ("DE40", {"asset": "index", "currencies": ["ALL"]}, ("ALL",)),
    ],
)
def test_the_currencies_of_a_pair_stand_in_its_name(
    symbol: str, spec: dict[str, Any], concerned: tuple[str, ...] | None
) -> None:
    shipped = json.loads(Profile().symbols["EURUSD"].model_dump_json())
    blank = {**shipped, "currencies": []} if symbol != "EURUSD" else shipped
    settings = validate(Profile, {"symbols": {symbol: {**blank, **spec}}}, "a test")
    instance = Instance(symbol=symbol)
    if concerned is None:
        with pytest.raises(ConfigError, match=rf"write symbols\.{symbol}\.currencies"):
            currencies_of(instance, settings)
        return
    assert currencies_of(instance, settings) == concerned
    assert subject_of(instance, settings).currencies == concerned


def test_a_calendar_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    settings = profile(events={"calendar": "nowhere.csv"})
    write_headlines(tmp_path)
    desk = desks.open_desk(tmp_path, profile=settings)
    outlook = ContextFeeds(tmp_path, desk.database, {}, [settings], now=System().now)
    with pytest.raises(ConfigError, match=r"nowhere\.csv"):
        outlook.events(desks.BTC, settings)


def test_every_status_can_stand_in_a_reason_and_on_its_page() -> None:
    page = (ROOT / "docs" / "news.md").read_text(encoding="utf-8")
    assert all(f"| `{status}` |" in page for status in NewsStatus)
    assert all(status.value.replace("_", "").isalpha() for status in NewsStatus)
