"""Companions in a replay: as the desk stored them, shifted for the placebo, blind to what is later.

That a replay knows what the live ticks knew is in tests/desk/test_companions_of_a_desk.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import PCG64, Generator

from agent_config import MODES
from instance_database import open_home
from tests.conftest import Scale
from tests.worlds import desks
from tests.worlds.price_series import walk
from torra.clock import duration
from torra.config import Instance, Profile
from torra.desk.setup import bar_import
from torra.evidence.companion_readings import CompanionBars, CompanionsThen
from torra.feeds.companions import CompanionReader
from torra.market.bar_view import BarView
from torra.replay import runner
from torra.replay.arms import ARMS
from torra.replay.outlook_then import NOTHING, SHIFT, PointInTimeData, only_series, read_outlook
from torra.replay.rerun.lookahead import LookaheadSubject, probe
from torra.replay.runner import Schedule, run_arm
from torra.replay.shards.companion_tracks import CompanionTrack
from torra.replay.shards.history import History
from torra.replay.voices import rules_voice
from torra.store import bars as bar_table
from torra.tick import edges

OWN = desks.BTC.model_copy(update={"companions": {"euro": "EURUSD", "dxy": "usdx"}})
BEGIN = desks.START
END = BEGIN + timedelta(days=2)
PLAIN = Instance(symbol="BTCUSD", timeframes=("M15", "H1"), feed="store")
STEP = {name: duration(name) for name in ("M15", "H1")}


def track(frame: pd.DataFrame, name: str = "dxy", timeframe: str = "M15") -> CompanionTrack:
    times = pd.DatetimeIndex(frame.index).as_unit("us").asi8.tolist()
    return CompanionTrack(name, name.upper(), timeframe, tuple(times), tuple(frame["close"]))


def ending(frame: pd.DataFrame, number: int = -1) -> Any:
    """Return when a bar of 15 minutes closes."""
    return frame.index[number].to_pydatetime() + STEP["M15"]


BARS = walk(1000, 41)
OTHER = walk(1000, 42)
BESIDE = PointInTimeData(companions=(track(OTHER), track(BARS, "same")))


def known(outlook: PointInTimeData, number: int) -> dict[str, Any]:
    """Return the numbers of the tick at a bar of BARS."""
    then = outlook.companions_of()
    assert then is not None
    own = BarView.of(BARS.iloc[max(0, number - 749) : number + 1])
    return dict(then.known("M15", ending(BARS, number), own).numbers)


# --- what the desk has stored ---------------------------------------------------------------------


def desk_of(home: Path, *instances: Instance) -> None:
    rows = [one.model_dump(mode="json", exclude_defaults=True) for one in instances]
    home.mkdir(exist_ok=True)
    (home / "desk.json").write_text(json.dumps({"instances": rows}))


def kept(home: Path, *instances: Instance) -> None:
    """Let a home's desk have stored one companion as it read it, and another by import."""
    instance, *_ = instances = instances or (OWN,)
    desk_of(home, *instances)
    hours = desks.sample().bars("EURUSD", "H1", END + timedelta(days=9), 3000)
    with closing(open_home(home)) as database:
        database.store_bars(instance.companion_stream("EURUSD"), "H1", hours)
        database.store_bars("USDX", "H1", hours.iloc[::2])


def test_a_replay_reads_what_was_read_live_and_what_was_imported(tmp_path: Path) -> None:
    kept(tmp_path)
    for found in (
        read_outlook(tmp_path, PLAIN, Profile(), BEGIN, END),
        only_series(tmp_path, PLAIN, Profile(), BEGIN, END),
    ):
        tracks = [one for one in found.companions if one.times]
        assert [(one.name, one.symbol, one.timeframe) for one in tracks] == [
            ("euro", "EURUSD", "H1"), ("dxy", "usdx", "H1"),
        ]  # fmt: skip
        newest = tracks[0].times[-1] / 1e6 + 3600.0
        assert newest == END.timestamp(), "no bar that closes after the replay"
        assert len(tracks[0].times) > 250


def test_one_without_stored_bars_is_missing_as_on_a_live_tick(tmp_path: Path) -> None:
    alone = OWN.model_copy(update={"companions": {"vix": "VIX"}})
    desk_of(tmp_path, alone)
    open_home(tmp_path).close()
    stored = read_outlook(tmp_path, PLAIN, Profile(), ending(BARS, 989), ending(BARS))
    own = BarView.of(BARS.iloc[250:])
    with closing(CompanionReader(alone, desks.sample(), wait=20.0)) as reader:
        reader.begin("M15", ending(BARS))
        live = reader.known("M15", ending(BARS), own)
    assert live.statuses == {"companion": "missing", "companion.vix": "missing"}
    again = PointInTimeData.of(json.loads(json.dumps(stored.as_json())))
    for outlook in (stored, again, stored.with_older_series()):
        then = outlook.companions_of()
        assert then is not None and then.known("M15", ending(BARS), own) == live
    assert stored.short_series == (), "it is left out of no placebo"


def test_what_was_imported_stays_when_the_desk_reads_bars_itself(tmp_path: Path) -> None:
    desk_of(tmp_path, OWN)
    hours = desks.sample().bars("EURUSD", "H1", END, 300)
    read = hours.iloc[-5:-2]
    with closing(open_home(tmp_path)) as database:
        database.store_bars("EURUSD", "H1", hours * 2.0)
        database.store_bars(OWN.companion_stream("EURUSD"), "H1", read)
        assert bar_table.newest_companion(database, OWN, "EURUSD", "H1") == hours.index[-1]
    tracks = read_outlook(tmp_path, PLAIN, Profile(), BEGIN, END).companions
    found = next(one for one in tracks if one.timeframe == "H1")
    expected = hours["close"].where(hours.index.isin(read.index), hours["close"] * 2.0)
    assert found.closes == tuple(expected), "the desk's own win"
    assert found.times == track(hours).times


def test_a_home_without_a_desk_of_the_symbol_has_none(tmp_path: Path) -> None:
    assert read_outlook(tmp_path, PLAIN, Profile(), BEGIN, END) == NOTHING
    kept(tmp_path, OWN.model_copy(update={"companions": {}}))
    assert read_outlook(tmp_path, PLAIN, Profile(), BEGIN, END) == NOTHING


def test_companions_are_those_of_the_very_instance_where_there_is_one(tmp_path: Path) -> None:
    other = OWN.model_copy(update={"name": "swing", "companions": {"pound": "EURUSD"}})
    alone = OWN.model_copy(update={"companions": {}})

    def names() -> set[str]:
        found = read_outlook(tmp_path, PLAIN, Profile(), BEGIN, END)
        return {one.name for one in found.companions}

    kept(tmp_path, other, OWN)
    assert names() == {"euro", "dxy"}
    desk_of(tmp_path, other, alone)
    assert names() == set(), "it has none, whatever another instance of its symbol has"
    desk_of(tmp_path, alone.model_copy(update={"name": "day"}), other)
    assert names() == {"pound"}, "none is called so: the first of the symbol that has some"


def test_an_import_by_the_name_of_a_companion_is_read(tmp_path: Path) -> None:
    own = OWN.model_copy(update={"feed": "store", "companions": {"dxy": "usdx"}})
    kept(tmp_path, own)
    hours = desks.sample().bars("EURUSD", "H1", END, 400)
    file = tmp_path / "usdx.csv"
    hours.reset_index().to_csv(file, index=False)
    told = bar_import.run(tmp_path, file, "USDX", "H1", "utc", revise=True)
    assert told["instance"] == "USDX" and told["watched"] and not told["learns"]
    tracks = read_outlook(tmp_path, PLAIN, Profile(), BEGIN, END).companions
    (found,) = (one for one in tracks if one.times)
    assert found.name == "dxy" and found.closes[-1] == hours["close"].iloc[-1]


def test_they_go_through_json_and_make_another_replay() -> None:
    assert PointInTimeData.of(json.loads(json.dumps(BESIDE.as_json()))) == BESIDE
    fewer = replace(BESIDE, companions=BESIDE.companions[:1])
    moved = replace(BESIDE, companions=(BESIDE.companions[0].older(STEP["H1"]),))
    assert len({one.digest for one in (BESIDE, fewer, moved)}) == 3
    assert NOTHING.as_json() == {}


# --- the placebo and the arm without them ---------------------------------------------------------


def test_the_placebo_reads_each_companion_as_it_was_long_before() -> None:
    weeks = SHIFT // timedelta(weeks=1)
    before = OTHER.set_axis(OTHER.index - SHIFT)
    begin = ending(OTHER, 300)
    outlook = PointInTimeData(companions=(track(before),), begin=begin)
    older = outlook.with_older_series()
    assert older.companions[0].times == BESIDE.companions[0].times and weeks == 36
    assert known(older, 900) == {
        name: value for name, value in known(BESIDE, 900).items() if ".dxy." in name
    }
    assert outlook.short_series == ()


def test_a_companion_that_is_too_short_for_the_placebo_is_left_out_and_named() -> None:
    outlook = replace(BESIDE, begin=ending(OTHER, 300))
    assert outlook.with_older_series().companions_of() is None
    assert outlook.short_series == ("companion dxy M15", "companion same M15")


@pytest.mark.parametrize("name", ["outside", "no_outside", "outside_shifted", "l1"])
def test_each_arm_reads_the_companions_that_it_may(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[CompanionsThen | None] = []
    real = edges.TickDeps

    def opened(*words: Any, **named: Any) -> Any:
        handed.append(named["companions"])
        return real(*words, **named)

    monkeypatch.setattr(runner, "TickDeps", opened)
    other = walk(1000, 43)
    long_before = other.set_axis(other.index - SHIFT)
    both = pd.concat([long_before, OTHER])
    outlook = PointInTimeData(companions=(track(both),), begin=ending(BARS, 989))
    course = Schedule.of(
        History("BTCUSD", {"M15": BARS}, {}), begin=ending(BARS, 989), outlook=outlook
    )
    seen = run_arm(course, ARMS[name], Profile(), rules_voice(ARMS[name]))
    assert len(seen.ticks) == 10
    (found,) = handed
    if name == "no_outside":
        assert found is None
        return
    assert found is not None
    own = BarView.of(BARS.iloc[250:])
    told = found.known("M15", ending(BARS), own).seen["companion.dxy"]
    expected = other if name == "outside_shifted" else OTHER
    assert told.value == expected["close"].iloc[-1] and not told.stale


# --- nothing later --------------------------------------------------------------------------------


def test_another_future_moves_no_number_of_a_companion(scaled: Callable[[int], int]) -> None:
    chance = Generator(PCG64(3))
    for number in chance.integers(250, 999, scaled(1000)).tolist():
        other = BESIDE.with_other_future(ending(BARS, number), chance)
        assert other.companions != BESIDE.companions
        assert known(other, number) == known(BESIDE, number)
        later = known(other, number + 1)
        assert (
            later["companion.dxy.change_1"] != known(BESIDE, number + 1)["companion.dxy.change_1"]
        )


def subject(outlook: PointInTimeData) -> LookaheadSubject:
    return LookaheadSubject.of(History("BTCUSD", {"M15": BARS}, {}), Profile(), outlook)


@pytest.mark.journey
def test_torra_lookahead_looks_at_companions(
    monkeypatch: pytest.MonkeyPatch, scaled: Scale
) -> None:
    modes = tuple(MODES) if scaled.whole else ("budget",)
    found = probe(subject(BESIDE), points=1, seed=3, modes=modes)
    assert found.clean
    assert "outside.numbers.companion.dxy.change_1" in found.columns["tick"]
    assert "features.companion.dxy.correlation.value" in found.columns["tick"]
    real = CompanionBars.closed
    monkeypatch.setattr(
        CompanionBars, "closed", lambda bars, as_of, step: real(bars, as_of + step, step)
    )
    leaking = probe(subject(BESIDE), points=1, seed=3, modes=modes)
    assert any("companion.dxy" in one.column for one in leaking.moved)


def test_closes_are_read_as_numbers() -> None:
    then = BESIDE.companions_of()
    assert then is not None
    bars = then.bars["dxy", "M15"]
    assert bars.times.dtype == np.int64 and bars.closes.dtype == np.float64
