"""Headlines and scheduled events on the way of a tick: read, recorded, replayed, and vetoed by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests import desks
from torra.clock import System, iso
from torra.config import Profile, validate
from torra.errors import ConfigError
from torra.journal_replay import replay
from torra.news_digest import NewsStatus
from torra.outlook import Outlook
from torra.replay_store import Past
from torra.schedule import Desk

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
    outlook = Outlook(folder, desk.database, {}, [settings], now=desk.clock.now)
    desk.stations = {
        name: replace(
            station,
            news=outlook.news(station.instance, settings),
            events=outlook.events(station.instance, settings),
        )
        for name, station in desk.stations.items()
    }
    desks.take_lease(desk)
    return desk


def newest(desk: Desk) -> Mapping[str, Any]:
    found = desk.database.latest_tick("BTCUSD", "M15")
    assert found is not None
    return found


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
    first = newest(desk)
    assert first["news"]["status"] == "available" and first["news"]["unique"] == 2
    assert not report(first, "news")["abstained"]
    assert first["source_type"] == "AGENT_FULL" and first["calls"] is not None
    texts = {item["id"]: item["value"] for item in first["features"]}
    assert "Bitcoin plunges after exchange failure" not in texts.values()
    desks.step(desk)
    desks.step(desk)
    assert newest(desk)["news"]["unique"] == 3
    ids = [item["id"] for item in newest(desk)["news"]["items"]]
    assert len(desk.database.news_items(ids)) == 3
    desk.database.close()


def test_without_headlines_the_agent_abstains_and_the_record_says_why(tmp_path: Path) -> None:
    write_headlines(tmp_path, (-1.0, "Wheat harvest is late this year"))
    desk = desk_with(tmp_path, profile())
    desks.step(desk)
    tick = newest(desk)
    assert tick["news"]["status"] == "empty"
    assert report(tick, "news")["abstained"]
    assert report(tick, "news")["reason"] == "no news evidence: empty"
    assert tick["source_type"] == "AGENT_FULL", "an abstention costs nothing"
    assert "news" not in {call["role"] for call in tick["calls"]}
    desk.database.close()


def test_a_desk_without_a_key_says_so(tmp_path: Path) -> None:
    settings = profile(news={"sources": ["finnhub"]})
    desk = desk_with(tmp_path, settings)
    desks.step(desk)
    assert newest(desk)["news"]["status"] == "no_key"
    assert report(newest(desk), "news")["reason"] == "no news evidence: no_key"
    desk.database.close()


def test_a_profile_that_wants_no_news_opens_nothing(tmp_path: Path) -> None:
    settings = validate(Profile, {"agents": {"mode": "full"}}, "a test")
    desk = desks.open_desk(tmp_path, profile=settings)
    outlook = Outlook(tmp_path, desk.database, {}, [settings], now=System().now)
    assert outlook.collector is None
    assert outlook.news(desks.BTC, settings) is None
    assert outlook.events(desks.BTC, settings) is None
    outlook.start()
    outlook.close()
    desks.take_lease(desk)
    desks.step(desk)
    assert newest(desk)["news"] is None and newest(desk)["events"] is None
    assert report(newest(desk), "news")["reason"] == "no news evidence: off"
    desk.database.close()


def test_a_replay_sees_the_news_and_the_events_of_then(tmp_path: Path) -> None:
    write_headlines(tmp_path, (-2.0, "Bitcoin slides on regulator's warning"), (0.3, "Bitcoin up"))
    write_events(tmp_path, 20.0, 300.0)
    settings = profile(events={"calendar": CALENDAR})
    desk = desk_with(tmp_path, settings)
    desk.database.apply_profile("BTCUSD", settings.model_dump_json(), settings.digest())
    for _ in range(4):
        desks.step(desk)
    (tmp_path / HEADLINES).unlink()
    (tmp_path / CALENDAR).unlink()
    past = tmp_path / "again"
    past.mkdir()
    into = Past.at(past / "torra.db")
    found = list(replay(desk.database, into, desks.BTC))
    assert len(found) >= 4
    assert [(one.state, dict(one.differences), dict(one.misses)) for one in found] == [
        ("same", {}, {})
    ] * len(found)
    into.close()
    desk.database.close()


# --- scheduled events -----------------------------------------------------------------------------

EAGER = {"thresholds": {"buy": 0.0001, "sell": 0.0001}}
"""Every tick has a verdict, so that something is there to be vetoed."""


@pytest.mark.parametrize(
    ("minutes", "vetoed"), [((40.0,), True), ((5.0,), True), ((200.0,), False), ((-20.0,), False)]
)
def test_no_opening_near_a_high_impact_event(
    minutes: tuple[float, ...], vetoed: bool, tmp_path: Path
) -> None:
    """The first close is a quarter of an hour after the start."""
    write_events(tmp_path, *minutes)
    desk = desk_with(tmp_path, profile(events={"calendar": CALENDAR}, **EAGER))
    desks.step(desk)
    tick = newest(desk)
    assert tick["verdict"] != "HOLD"
    assert ("SCHEDULED_EVENT" in tick["gate"]["reasons"]) is vetoed
    assert tick["gate"]["veto"] is vetoed
    if vetoed:
        assert tick["reason"] in {"GATE_VETO", "OPPOSITE_VERDICT"}, "no opening, but a close"
    assert tick["events"]["status"] in {"available", "ended"}
    desk.database.close()


@pytest.mark.parametrize("row", [{"impact": "medium"}, {"currency": "JPY"}])
def test_other_events_keep_nobody_away(row: dict[str, str], tmp_path: Path) -> None:
    write_events(tmp_path, 20.0, **row)
    desk = desk_with(tmp_path, profile(events={"calendar": CALENDAR}, **EAGER))
    desks.step(desk)
    assert not newest(desk)["gate"]["veto"]
    desk.database.close()


def test_an_event_never_keeps_a_position_open(tmp_path: Path) -> None:
    """The hour's tick opens before the window; the quarter's verdict turns inside it: a close."""
    write_events(tmp_path, 40.0)
    desk = desk_with(tmp_path, profile(events={"calendar": CALENDAR}, **EAGER))
    desks.step(desk)
    hour = desk.database.latest_tick("BTCUSD", "H1")
    assert hour is not None and hour["action"].startswith("OPEN"), "the window has not begun"
    tick = newest(desk)
    assert tick["gate"]["veto"] and tick["gate"]["reasons"][0] == "SCHEDULED_EVENT"
    assert (tick["action"], tick["reason"]) == ("CLOSE", "OPPOSITE_VERDICT")
    desk.database.close()


def test_a_calendar_that_breaks_later_still_keeps_its_windows(tmp_path: Path) -> None:
    write_events(tmp_path, 40.0)
    desk = desk_with(tmp_path, profile(events={"calendar": CALENDAR}, **EAGER))
    (tmp_path / CALENDAR).write_text("nonsense\n")
    desks.step(desk)
    tick = newest(desk)
    assert tick["events"]["status"] == "broken"
    assert tick["gate"]["veto"] and "SCHEDULED_EVENT" in tick["gate"]["reasons"]
    desk.database.close()


def test_a_calendar_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    settings = profile(events={"calendar": "nowhere.csv"})
    write_headlines(tmp_path)
    desk = desks.open_desk(tmp_path, profile=settings)
    outlook = Outlook(tmp_path, desk.database, {}, [settings], now=System().now)
    with pytest.raises(ConfigError, match=r"nowhere\.csv"):
        outlook.events(desks.BTC, settings)
    desk.database.close()


def test_every_status_can_stand_in_a_reason() -> None:
    assert all(status.value.replace("_", "").isalpha() for status in NewsStatus)
