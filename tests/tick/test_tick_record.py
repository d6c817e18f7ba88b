"""A record goes through its type without loss, and what cannot be read is its default."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database, TickKey
from tests.doubles import scripted
from tests.worlds import desks, journals
from torra.chart import renderer
from torra.clock import parse
from torra.config import Profile, validate
from torra.evidence.news_digest import NewsItem, NewsStatus, NewsView, Weighted
from torra.evidence.scheduled_events import EventView, ScheduledEvent
from torra.tick.record import told_events, told_news
from torra.tick.tick_record import TickRecord

OF_THE_ROW = {"torra_key", "role", "instructions", "at"}
"""Columns of a stored call that are the store's own."""

MOMENT = datetime(2021, 12, 1, 10, 15, tzinfo=UTC)
NEWS = NewsView(
    NewsStatus.AVAILABLE,
    (Weighted(NewsItem("n1", "file", "file", "Words", MOMENT, MOMENT, 0.5, "macro"), 0.25, 0.75),),
    unique=3,
    score=0.5,
    events={"macro": (3, 0.5)},
    fundamentals={"pe": 31.2},
    fundamentals_status=NewsStatus.AVAILABLE,
)
EVENTS = EventView(
    "available", to_next=105.0, events=(ScheduledEvent(MOMENT, "EUR", "high", "Rates"),)
)
ODD: tuple[Any, ...] = (None, "text", 3, True, [], {}, [None, "x", 4], [[1]], {"a": {"b": 1}})

Lived = Callable[..., list[dict[str, Any]]]


class Nobody:
    """A provider that nobody is."""

    name = "nobody"
    submit = None

    def close(self) -> None: ...


def stored(database: Database) -> Iterator[dict[str, Any]]:
    """Yield every tick of a desk as its store tells it."""
    for name in ("BTCUSD", "EURUSD"):
        for key in database.journalled(name):
            instance, timeframe, bar_time = key.split("|")
            found = database.tick(TickKey(instance, timeframe, parse(bar_time)))
            assert found is not None
            calls = [
                {column: value for column, value in call.items() if column not in OF_THE_ROW}
                for call in found["calls"]
            ]
            yield json.loads(json.dumps({**found, "calls": calls}))


@pytest.fixture
def lived(tmp_path: Path) -> Lived:
    def live(profile: dict[str, Any], provider: Any = None) -> list[dict[str, Any]]:
        settings = validate(Profile, {"agents": profile}, "a test")
        desk = desks.open_desk(tmp_path, profile=settings, provider=provider or scripted.Scripted())
        desks.take_lease(desk)
        for _ in range(2):
            desks.step(desk)
        found = list(stored(desk.database))
        desk.database.close()
        assert found
        return found

    return live


def lossless(record: dict[str, Any]) -> None:
    told = TickRecord.read(record).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert told == record


@pytest.mark.parametrize(
    "agents",
    [
        None,
        {"call_policy": "pivotal", "pivotal_sample": 0.0},
        {"mode": "budget"},
        {"mode": "full", "debate_rounds": 2},
        {"mode": "full", "influence": "shadow"},
        {"picture": "rendered", "include_news": True},
    ],
    ids=["off", "pivotal", "budget", "full", "shadow", "picture"],
)
def test_a_record_of_every_kind_goes_through_without_loss(
    agents: dict[str, Any] | None, lived: Lived, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renderer, "render", lambda *_, **__: b"\x89PNG\r\n\x1a\n")
    for record in lived(agents or {}, Nobody() if agents is None else None):
        lossless(record)
        lossless({**record, "news": told_news(NEWS), "events": told_events(EVENTS)})
        # as the journal has it, before a store puts deliberation and calls in
        lossless({**{k: v for k, v in record.items() if k != "deliberation"}, "calls": 4})


@pytest.mark.journey
def test_a_desk_that_lived_through_much_goes_through_without_loss(tmp_path: Path) -> None:
    """Requests again, timeouts, garbage, proposals, reversals, a halt."""
    database = journals.live(tmp_path, 30)
    try:
        every = list(stored(database))
    finally:
        database.close()
    assert {call["status"] for record in every for call in record["calls"]} >= {"ok", "error"}
    assert any(call["attempt"] > 1 for record in every for call in record["calls"])
    assert any(record["signals"] for record in every)
    for record in every:
        lossless(record)


def test_a_skipped_tick_has_its_key_and_its_reason() -> None:
    key = {"instance": "EURUSD", "timeframe": "H1", "bar_time": "2021-12-01T10:00:00Z"}
    record = {**key, "skipped": {"reason": "no_bar", "detail": "the feed brought none"}}
    lossless(record)
    told = TickRecord.read(record)
    assert told.skipped and told.skipped.reason == "no_bar"
    assert not told.deliberation and told.consensus is None


@pytest.mark.journey
def test_what_cannot_be_read_is_its_default_and_the_rest_stays(lived: Lived) -> None:
    record = lived({"mode": "full"})[-1]
    whole, empty = TickRecord.read(record), TickRecord()
    for name in record:
        others = {key: value for key, value in record.items() if key != name}
        assert getattr(TickRecord.read(others), name) == getattr(empty, name)
        for odd in ODD:
            told = TickRecord.read({**record, name: odd})
            assert all(getattr(told, key) == getattr(whole, key) for key in others)
        for key in record[name] if isinstance(record[name], dict) else ():
            for odd in ODD:
                part = getattr(TickRecord.read({**record, name: {**record[name], key: odd}}), name)
                assert type(part) is type(getattr(whole, name))
    assert all(TickRecord.read(odd) == empty for odd in ODD)


def test_an_item_that_cannot_be_read_takes_no_other_with_it() -> None:
    told = TickRecord.read(
        {
            "l1": {"momentum": True, "structure": 0.5},
            "features": [3, {"id": "a", "value": float("nan")}, {"id": 4, "value": "word"}],
            "denied": ["A", None, "B"],
            "components": {"momentum": 3, "structure": [{"name": "a"}]},
            "deliberation": {
                "stages": [{"agents": ["news"]}],
                "reports": [{"evidence": [["a", 1]]}],
            },
        }
    )
    assert told.l1 == {"momentum": None, "structure": 0.5}
    assert [(one.id, one.value) for one in told.features] == [
        (None, None), ("a", None), (None, "word")
    ]  # fmt: skip
    assert told.denied == ("A", "B")
    assert (told.components["momentum"], len(told.components["structure"])) == ((), 1)
    # as older versions stored them: the names of a stage, a citation as a pair
    assert told.deliberation.stages[0].agents == {"news": ""}
    assert told.deliberation.reports[0].evidence[0].value == 1.0


def test_a_value_stays_the_same_and_an_empty_one_is_false() -> None:
    told = TickRecord.read({"reason": "VERDICT"})
    assert TickRecord.read(told) is told
    assert told and not told.gate and not TickRecord()
    assert "events" not in told.model_fields_set
