"""A desk with companions: its ticks read them, trade nothing for them, and come no later."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import TypeAdapter

from instance_database import Database, TickKey
from tests.doubles.advisor_channel import in_a_path
from tests.examples import examples
from tests.tries import until
from tests.worlds import desks, mt5_bars
from tests.worlds.homes import desk_file
from torra.clock import Simulated, duration, parse
from torra.config import NAME, Channel, Instance, OutsideSettings, Profile, load_desk, validate
from torra.desk import wiring
from torra.desk.schedule import Desk
from torra.errors import ConfigError
from torra.evidence.outside_readings import OutsideView
from torra.feeds.close_reader import WAIT
from torra.feeds.companions import CompanionReader
from torra.feeds.limited import LimitedFeed
from torra.feeds.mt5_files import BarFileOwner
from torra.feeds.registry import FeedPlace, open_feed
from torra.market.bar_view import BarView
from torra.replay.outlook_then import PointInTimeData, read_outlook
from torra.replay.rerun import lookahead
from torra.replay.rerun.journal_replay import replay
from torra.replay.rerun.replay_store import JournalDatabase
from torra.store import bars as bar_table

BTC = desks.BTC.model_copy(update={"companions": {"euro": "EURUSD"}})
CLOSES = examples(12, 8)
"""Closes of a quarter of an hour: full hours."""

ITS_OWN = ("at", "elapsed_ms", "ms", "outside", "request_hash", "user")
"""Last parts of names in a record that say what an agent was asked, and when."""


class Gated:
    """The sample's bars, which do not come while the gate is shut."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        self.gate.wait(30.0)
        return desks.sample().bars(symbol, timeframe, as_of, limit)

    def period(self) -> tuple[datetime, datetime]:
        return desks.sample().period()


class Counted(CompanionReader):
    """Counts the waits of ticks."""

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.waits: list[float] = []

    def _wait(self, reading: Any) -> None:
        self.waits.append(reading.remaining(self._wait_s))
        super()._wait(reading)


def desk_of(
    folder: Path,
    reader: CompanionReader | None,
    instance: Instance = BTC,
    profile: Profile | None = None,
) -> Desk:
    desk = desks.open_desk(folder, [instance], profile=profile)
    desk.roster.setups = {
        name: replace(setup, companions=reader) for name, setup in desk.setups.items()
    }
    desks.open_for_work(desk)
    return desk


def lived(desk: Desk, closes: int = CLOSES) -> list[Mapping[str, Any]]:
    """Return the records of so many closes."""
    desks.step(desk, closes)
    return ticks_of(desk.database)


def ticks_of(database: Database) -> list[Mapping[str, Any]]:
    rows = database.connection().conn.execute(
        "SELECT instance, timeframe, bar_time FROM ticks WHERE state = 'done' "
        "ORDER BY bar_time, timeframe"
    )
    keys = (TickKey(name, timeframe, parse(time)) for name, timeframe, time in rows)
    return [tick for key in keys if (tick := database.tick(key)) is not None]


@pytest.fixture
def reader() -> Iterator[Counted]:
    with closing(Counted(BTC, desks.sample(), wait=20.0)) as made:
        yield made


def companion(tick: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a tick knew of its companion, by the number."""
    told = tick["outside"]["numbers"]
    return {name.rpartition(".")[2]: value for name, value in told.items()}


def decided(tick: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return all of a record but what tells of companions, what was asked, and its own time."""
    return {
        name: value
        for name, value in lookahead._flat(tick).items()
        if "companion" not in name and name.rpartition(".")[2] not in ITS_OWN
    }


def test_a_tick_reads_its_companion_and_says_where_there_is_none(
    tmp_path: Path, reader: Counted
) -> None:
    desk = desk_of(tmp_path, reader)
    ticks = lived(desk)
    hours = [tick for tick in ticks if tick["timeframe"] == "H1"]
    assert len(hours) == CLOSES // 4 + 1
    for tick in hours:
        assert tick["outside"]["statuses"] == {"companion": "available"}
        assert None not in companion(tick).values()
        seen = tick["outside"]["seen"]["companion.euro"]
        assert seen["at"] == tick["as_of"] and seen["source"] == "EURUSD"
    quarters = [tick for tick in ticks if tick["timeframe"] == "M15"]
    # The sample has no quarters of an hour of it.
    assert {tick["outside"]["statuses"]["companion"] for tick in quarters} == {"missing"}
    assert {value for tick in quarters for value in companion(tick).values()} == {None}
    desk.close()


def test_companions_are_read_without_any_outside_source_as_the_setting_says(
    tmp_path: Path, reader: Counted
) -> None:
    said = str(OutsideSettings.model_fields["sources"].description)
    assert said.endswith("empty = no agent sees such a number; companions are read all the same")
    profile = validate(Profile, {"outside": {"sources": []}}, "a test")
    desk = desk_of(tmp_path, reader, profile=profile)
    newest = next(tick for tick in lived(desk, 4) if tick["timeframe"] == "H1")
    assert newest["outside"]["statuses"] == {"companion": "available"}
    desk.close()


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> list[Mapping[str, Any]]:
    """The ticks of a desk without companions."""
    with closing(desk_of(tmp_path_factory.mktemp("plain"), None)) as desk:
        return lived(desk)


def test_the_agents_are_shown_a_companion_and_the_rules_do_not_heed_it(
    tmp_path: Path, reader: Counted, without: list[Mapping[str, Any]]
) -> None:
    desk = desk_of(tmp_path, reader)
    for plain, having in zip(without, lived(desk), strict=True):
        assert decided(having) == decided(plain)
        features = {one["id"]: one for one in having["features"]}
        assert [one for name, one in features.items() if "companion" not in name] == [
            *plain["features"]
        ]
    desk.close()


def test_a_hanging_companion_makes_no_tick_later(
    tmp_path: Path, without: list[Mapping[str, Any]]
) -> None:
    feed = Gated()
    feed.gate.clear()
    with closing(Counted(BTC, feed)) as reader:
        hung = desk_of(tmp_path, reader)
        for plain, having in zip(without, lived(hung), strict=True):
            assert decided(having) == decided(plain)
            assert asked(having) == asked(plain)
            assert having["outside"]["statuses"]["companion"] == "unread"
        # The first tick waits a tenth of a second, and no other at all.
        assert len(reader.waits) == 1 and reader.waits[0] <= WAIT
        feed.gate.set()
    hung.close()


class Written:
    """Companions over an Expert Advisor's folder; one file is written for each question."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._path, self._content = folder / "bars", FILES[kind][0]
        instance = BTC.model_copy(update={"feed": "mt5_files"})
        place = FeedPlace(
            instance, folder, {}, lambda: None, desks.sample, Channel(account=mt5_bars.ACCOUNT),
            folder=lambda: folder, key=lambda: mt5_bars.KEY, related=True,
        )  # fmt: skip
        self._feed = open_feed(place, lambda _: lambda _: None)

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        step = duration(timeframe)
        opens = [as_of - number * step for number in range(300, 0, -1)]
        source = BarFileOwner("main", mt5_bars.ACCOUNT, symbol, timeframe)
        if (content := self._content(opens, source)) is not None:
            mt5_bars.put(self._path / f"{in_a_path(symbol)}_{timeframe}.csv", content, as_of)
        return self._feed.bars(symbol, timeframe, as_of, limit)

    def period(self) -> None:
        return


def sheet(opens: list[datetime], source: BarFileOwner, ahead: int = 0) -> str:
    told = mt5_bars.offset(mt5_bars.new_york_plus_7, opens[-1]) + ahead
    return mt5_bars.text(mt5_bars.rows(opens), told, source)


FILES: Mapping[str, tuple[Callable[[list[datetime], BarFileOwner], str | None], str]] = {
    "sound": (sheet, "available"),
    "late": (lambda opens, source: sheet(opens[:-1], source), "late"),
    "missing": (lambda *_: None, "missing"),
    "on another clock": (lambda opens, source: sheet(opens, source, 7200), "clock"),
    "of another symbol": (
        lambda opens, source: sheet(opens, replace(source, broker_symbol="GBPUSD")),
        "broken",
    ),
    "broken": (lambda opens, source: sheet(opens, source)[:5000], "broken"),
}
"""What stands in a companion's file at each close, and what a tick says of it."""


class Unhurried(Counted):
    """Ticks whose own work takes as long as a reading: what they wait is waited for the fault."""

    def known(self, timeframe: str, *words: Any) -> Any:
        with suppress(AssertionError):
            until(lambda: self._newest[timeframe].complete, 0.5)
        return super().known(timeframe, *words)


@pytest.mark.parametrize("kind", FILES)
def test_no_tick_waits_and_none_decides_otherwise_whatever_a_companion_is(
    tmp_path: Path,
    kind: str,
    without: list[Mapping[str, Any]],
) -> None:
    """Side by side with a desk that has none, at every close."""
    with closing(Unhurried(BTC, Written(tmp_path / "channel", kind))) as reader:
        desk = desk_of(tmp_path / "desk", reader)
        having = lived(desk)
        desk.close()
    assert reader.waits == []
    assert len(having) == len(without) > CLOSES
    for one, other in zip(having, without, strict=True):
        assert decided(one) == decided(other)
        assert asked(one) == asked(other)
        assert one["outside"]["statuses"]["companion"] == FILES[kind][1]
        assert ({*companion(one).values()} == {None}) is (kind != "sound")


def asked(tick: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what agents were asked, line by line, without what tells of companions."""
    return {
        name: [line for line in str(value).splitlines() if "companion" not in line]
        for name, value in lookahead._flat(tick).items()
        if name.rpartition(".")[2] == "user"
    }


def test_no_companion_is_asked_about_the_past(tmp_path: Path) -> None:
    """A live reader knows bars of now: each close of the warm-up would wait for them in vain."""
    with closing(Counted(BTC, desks.sample(), wait=20.0)) as reader:
        desk = desk_of(tmp_path, reader)
        *_, (done, planned) = desk.warm_up(desks.START, bars=12)
        assert done == planned == 15
        assert not reader.readings() and not reader.waits
        assert {tick["outside"] for tick in ticks_of(desk.database)} == {None}
        desks.step(desk)
        assert until(lambda: bool(reader.readings())), "the first live close reads them"
        desk.close()


def test_the_reading_does_not_go_through_the_feed_of_the_ticks(tmp_path: Path) -> None:
    """Its limit would be shared: a companion's file that hangs would cost the tick its bars."""
    folder = tmp_path / "channel"
    folder.mkdir()
    instance = BTC.model_copy(update={"feed": "mt5_files"})
    place = FeedPlace(
        instance, tmp_path, {}, lambda: None, desks.sample,
        Channel(account=1), folder=lambda: folder, key=lambda: "key",
    )  # fmt: skip
    own = open_feed(place, lambda _: lambda _: None)
    other = open_feed(replace(place, related=True), lambda _: lambda _: None)
    assert isinstance(own, LimitedFeed) and isinstance(other, LimitedFeed)
    assert own._limit is not other._limit
    assert own._feed._symbols == {"BTCUSD": "BTCUSD"}  # type: ignore[attr-defined]
    assert other._feed._symbols == {"EURUSD": "EURUSD"}  # type: ignore[attr-defined]


# --- never traded ---------------------------------------------------------------------------------


def test_nothing_ticks_and_nothing_trades_for_a_companion(tmp_path: Path) -> None:
    desk_file(tmp_path, BTC.model_dump(mode="json", exclude_defaults=True))
    desk, settings = wiring.open_desk(tmp_path)
    with closing(desk.setups["BTCUSD"].companions) as reader:
        assert reader is not None
        desks.open_for_work(desk)
        desk.clock = Simulated(desks.START)
        lived(desk, 4)
        stream = settings.instances[0].companion_stream("EURUSD")
        assert until(lambda: bar_table.bar_rows(desk.database, stream, "H1") >= 250)
    ask = desk.database.connection().conn.execute
    tables = [name for (name,) in ask("SELECT name FROM sqlite_master WHERE type = 'table'")]
    naming = {
        table for table in tables for row in ask(f"SELECT * FROM {table}") if "EURUSD" in str(row)
    }
    assert naming == {"bars", "record_highs", "record_lows", "journal", "trading_config"}
    assert {row[0] for row in ask("SELECT instance FROM ticks")} == {"BTCUSD"}
    assert [*desk.setups] == ["BTCUSD"]
    assert not NAME.fullmatch(stream), "no instance can be called so"
    desk.close()


@pytest.mark.parametrize("other", [{"feed": "mt5_files"}, {"channel": "second"}])
def test_what_two_sources_call_by_one_name_is_kept_apart(
    tmp_path: Path, other: Mapping[str, str]
) -> None:
    """Each would overwrite the other's bars at every close, and a replay would read a mixture."""
    bars = desks.sample().bars("EURUSD", "H1", desks.START, 250)
    elsewhere = BTC.model_copy(update=other)
    with closing(desks.open_database(tmp_path)) as database:
        wiring._keep(BTC, database, "EURUSD", "H1", bars)
        wiring._keep(elsewhere, database, "EURUSD", "H1", bars * 1.001)
        for instance, factor in ((BTC, 1.0), (elsewhere, 1.001)):
            stream = instance.companion_stream("EURUSD")
            assert bar_table.bar_rows(database, stream, "H1") == 250, "no revision of the other's"
            newest = database.load_bars(stream, "H1", as_of=desks.START, limit=1)
            assert newest["close"].iloc[-1] == bars["close"].iloc[-1] * factor


# --- again ----------------------------------------------------------------------------------------


@pytest.mark.journey
def test_the_journal_runs_every_tick_again_without_feed_and_store(
    tmp_path: Path, reader: Counted, scaled: Callable[..., int]
) -> None:
    desk = desk_of(tmp_path, reader)
    desk.database.apply_profile("BTCUSD", Profile().model_dump_json(), Profile().digest())
    desks.step(desk, scaled(240, 12))
    with closing(JournalDatabase.at(tmp_path / "again.db")) as into:
        found = list(replay(desk.database, into, "BTCUSD"))
    assert {(one.state, *one.differences) for one in found} == {("same",)}
    assert len(found) == len(ticks_of(desk.database))
    desk.close()


def test_a_replay_knows_what_the_live_ticks_knew(tmp_path: Path) -> None:
    def keep(symbol: str, timeframe: str, bars: pd.DataFrame) -> None:
        wiring._keep(BTC, desk.database, symbol, timeframe, bars)

    desk_file(tmp_path, BTC.model_dump(mode="json", exclude_defaults=True))
    with closing(CompanionReader(BTC, desks.sample(), keep, wait=20.0)) as one:
        desk = desk_of(tmp_path, one)
        ticks = lived(desk, examples(24, 12))
        newest = desks.clock_of(desk).now()
        stream = BTC.companion_stream("EURUSD")
        until(
            lambda: bar_table.newest_bar(desk.database, stream, "H1") == newest - timedelta(hours=1)
        )
    plain = Instance(symbol="BTCUSD", timeframes=("M15", "H1"), feed="store")
    outlook = read_outlook(tmp_path, plain, Profile(), desks.START, newest)
    then = PointInTimeData.of(json.loads(json.dumps(outlook.as_json()))).companions_of()
    assert then is not None
    for tick in (one for one in ticks if one["timeframe"] == "H1"):
        as_of = parse(tick["as_of"])
        own = BarView.of(desk.database.load_bars("BTCUSD", "H1", as_of=as_of, limit=750))
        known = then.known("H1", as_of, own)
        assert TypeAdapter(OutsideView).dump_python(known, mode="json") == tick["outside"]
    desk.close()


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("companions", "said"),
    [
        ({"DXY": "USDX"}, "lower-case letters, digits and _"),
        ({"d" * 17: "USDX"}, "16 at most"),
        ({"dxy": "US,DX"}, "'US,DX' is no symbol"),
        ({"dxy": ""}, "is no symbol"),
        ({"a": "A", "b": "A"}, "two companions are the same symbol"),
        ({"me": "BTCUSD"}, "is BTCUSD itself"),
        ({name: name.upper() for name in "abcde"}, "4 companions at most, not 5"),
        ({"dxy": 3}, "companions.dxy"),
    ],
)
def test_companions_that_cannot_be_are_refused_with_the_remedy(
    tmp_path: Path, companions: Mapping[str, Any], said: str
) -> None:
    row = {"symbol": "BTCUSD", "timeframes": ["M15", "H1"], "companions": companions}
    desk_file(tmp_path, row)
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_desk(tmp_path)


def test_the_sample_has_no_other_companions_than_its_own(tmp_path: Path) -> None:
    row = {"symbol": "BTCUSD", "companions": {"dxy": "USDX"}}
    desk_file(tmp_path, row)
    with pytest.raises(ConfigError, match="its companion dxy is USDX, which the sample does not"):
        wiring.open_desk(tmp_path)
