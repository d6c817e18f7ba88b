"""A desk counts its seats' calls from its journal, beside its ticks, and tells what it knows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database, TickKey
from tests.examples import examples
from tests.worlds import desks, remembering, swarm_calls
from torra.clock import parse
from torra.config import Profile
from torra.desk.memory import experts_past
from torra.desk.memory.experts_past import ExpertsPast, past_tick
from torra.desk.memory.shelves import lap_of
from torra.evaluation.standing import past_calls
from torra.evaluation.standing.past_calls import HitRates
from torra.evaluation.standing.track_record import (
    LATE,
    NO_RECORD,
    TOO_LATE,
    TrackRecord,
    TrackRecordQuery,
)
from torra.store import standings as standing_table

TICKS = 96
FEED = desks.sample()
BTC = desks.BTC.id


@pytest.fixture(autouse=True)
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_calls, "LEAST", 3)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a desk with ticks of both streams."""
    folder = tmp_path_factory.mktemp("called")
    database = desks.open_database(folder)
    settings = swarm_calls.profile()
    database.apply_profile(BTC, settings.model_dump_json(), settings.digest())
    swarm_calls.run(database, before(next_key()))
    database.close()
    return folder


@pytest.fixture
def database(stored: Path) -> Iterator[Database]:
    with closing(desks.open_database(stored)) as found:
        yield found


def asked(key: TickKey, close: float = 50_000.0, regime: str = "range") -> TrackRecordQuery:
    return TrackRecordQuery(BTC, key.timeframe, regime, key.close_time, close)


def ready(database: Database, moment: Any, provider: str = "rules", **agents: Any) -> Any:
    """Return what tells the ticks, its books counted."""
    past, profile = ExpertsPast(database), swarm_calls.profile(**agents)
    past.prepare([(desks.BTC, profile, provider, FEED)], moment, within=30.0)
    return past.of(profile, provider, FEED)


def next_key() -> TickKey:
    """Return the newest tick: none of the next pass of the sample."""
    return [key for key in remembering.keys(TICKS) if key.timeframe == "M15"][-1]


def before(key: TickKey, ticks: int = TICKS) -> list[TickKey]:
    """Return the ticks that closed before one."""
    return [one for one in remembering.keys(ticks) if one.close_time < key.close_time]


@pytest.mark.journey
def test_a_tick_is_told_what_the_journal_shows_and_nothing_of_itself(database: Database) -> None:
    lap = lap_of(FEED)
    key = next_key()
    told = ready(database, key.close_time)(asked(key)).numbers
    book = HitRates("M15")
    for row in standing_table.stream_calls(database, BTC, "M15", None, 1000):
        if lap(parse(row["close_time"])) == lap(key.close_time):
            book.take(past_tick(row))
    book.reach(key.close_time, 50_000.0)
    assert book.hits("judge", "range").calls + book.hits("judge", "trend_up").calls > 3
    assert told == {**told, **book.hit_shares("range")}
    assert {f"win_share_{k}" for k in range(10)} < set(told)
    assert any(value is not None for name, value in told.items() if "hit_share" in name)


@pytest.mark.journey
def test_only_what_its_settings_ask_for_is_told(database: Database) -> None:
    key = next_key()
    assert ready(database, key.close_time)(asked(key)).numbers
    past = ExpertsPast(database)
    assert past.of(swarm_calls.profile(standing="off"), "rules", FEED) is None
    assert past.of(swarm_calls.profile(mode="budget"), "rules", FEED) is None
    assert past.of(Profile(), "rules", FEED) is None


@pytest.mark.journey
def test_the_book_of_an_earlier_provider_goes_with_it(database: Database) -> None:
    moment = next_key().close_time
    past, profile = ExpertsPast(database), swarm_calls.profile()
    for provider in ("rules", "anthropic"):
        past.prepare([(desks.BTC, profile, provider, FEED)], moment, within=30.0)
        streams = [(name, book.timeframe) for name, book in past.books()]
        assert streams == [(BTC, "M15"), (BTC, "H1")], provider


def test_calls_and_trades_of_the_warm_up_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_calls, "LEAST", 1)
    database, key = desks.open_database(tmp_path), next_key()
    swarm_calls.run(database, before(key, examples(200, 24)), late=timedelta(0))
    assert any(one.facts.kind == "trade" for one in database.lessons_since(0, 0).lessons)
    assert ready(database, key.close_time)(asked(key)) == NO_RECORD


def test_a_tick_waits_for_no_book_and_says_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = next_key()
    go, fill = threading.Event(), ExpertsPast._fill

    def held(self: Any, *args: Any) -> None:
        go.wait(30.0)
        fill(self, *args)

    monkeypatch.setattr(ExpertsPast, "_fill", held)
    tells = ExpertsPast(database).of(swarm_calls.profile(), "rules", FEED)
    assert tells is not None
    assert tells(asked(key)) == TOO_LATE == TrackRecord(flags=(LATE,))
    assert tells(asked(key)) == TOO_LATE, "it is still being counted"
    go.set()
    for thread in threading.enumerate():
        if thread.name == "standing":
            thread.join(30.0)
    assert tells(asked(key)).numbers
    # An older tick than the newest would be told its own future.
    assert tells(asked(before(key)[-4])) == TOO_LATE


@pytest.mark.journey
def test_a_book_that_cannot_be_read_costs_no_tick(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    key = next_key()
    tells = ready(database, key.close_time)
    monkeypatch.setattr("torra.store.standings.stream_calls", lambda *_: 1 / 0)
    assert tells(asked(key)) == TOO_LATE
    assert "cannot be told" in caplog.text


@pytest.mark.journey
def test_a_later_outcome_that_is_planted_moves_no_tick(tmp_path: Path) -> None:
    """The books of a running desk know at each tick what a reader of that moment would."""
    moments = (30, 70, 110)[: examples(3, 2)]
    database, ticks = desks.open_database(tmp_path), remembering.keys(TICKS)[: moments[-1] + 1]
    tells = ready(database, ticks[0].close_time)
    outcomes = swarm_calls.run(database, ticks, tells)
    then = [(one.record or {}).get("standing") for one in outcomes]
    assert sum(bool(told and told["numbers"]) for told in then) > len(ticks) // 2
    short, done = desks.open_database(tmp_path / "short"), 0
    for number in moments:
        key = ticks[number]
        swarm_calls.run(short, ticks[done:number])
        done = number
        close = (outcomes[number].record or {})["close"]
        regime = (outcomes[number].record or {})["regime"]["name"]
        told = ready(short, key.close_time)(asked(key, close, regime))
        assert {"numbers": dict(told.numbers), "flags": [*told.flags]} == then[number], key
    short.close()


def test_the_chances_of_the_judge_are_held_to_its_closed_trades(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_calls, "LEAST", 1)
    key = next_key()
    told = ready(database, key.close_time)(asked(key)).numbers
    found: dict[int, list[bool]] = {}
    for lesson in database.lessons_since(0, 0).lessons:
        facts = lesson.facts
        _, text = standing_table.reports_of(
            database, TickKey(BTC, facts.timeframe, facts.bar_time).text
        )
        judge = next(one for one in json.loads(text) if one["agent_id"] == "judge")
        if facts.kind == "trade" and judge["winner"] == facts.side:
            found.setdefault(int(judge["win_share"] * 10), []).append(facts.outcome == "win")
    assert len(found) >= 2
    for k in range(10):
        wins = found.get(k)
        share = pytest.approx(sum(wins) / len(wins), abs=1e-4) if wins else None
        assert told[f"win_share_{k}"] == share
    # what came of another provider's chances is not held against this one's
    assert ready(database, key.close_time, "anthropic")(asked(key)) == NO_RECORD


def test_a_start_reads_the_newest_ticks_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = next_key()
    monkeypatch.setattr(experts_past, "KEPT", 10)
    stream = experts_past._Stream(database, BTC, "M15", "rules", lambda _: True)
    assert stream.take(1000) == 10
    assert stream.take(1000) == 0
    assert stream.book.newest == key.close_time - timedelta(minutes=15)
