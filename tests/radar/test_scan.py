"""A scan: each stream in one end, stored ticks as they are stored, and nothing else is `act`."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from instance_database import Database
from tests.conftest import Scale
from tests.worlds import busy_desk, desks, radar_desks
from tests.worlds.price_series import times_of
from tests.worlds.radar_desks import EIGHT, by_stream
from torra.clock import duration, floor
from torra.config import DeskSettings, Profile, RadarSettings
from torra.desk.schedule import Desk
from torra.errors import ConfigError, DataUnavailable
from torra.radar import scan as scans
from torra.radar import universe as universes
from torra.radar.exits import PositionState, exit_codes, way_left
from torra.radar.groups import CLOSES, Closes, groups
from torra.radar.result import RadarRun
from torra.radar.scan import scan
from torra.radar.streams import StreamState, state_of
from torra.radar.universe import RadarStream, universe
from torra.store import tick_queries
from torra.tick.tick_record import TickRecord, load
from torra.tools.desk_reader import DeskReader
from torra.verdict.signal_states import POSITION_STATES
from torra.words.radar import CODES, words_of


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return busy_desk.run(tmp_path_factory.mktemp("lived"), busy_desk.VOICES["wild"](), "full", 8)


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database with the bars of eight symbols, and no tick."""
    with closing(desks.open_database(tmp_path_factory.mktemp("walks"))) as database:
        radar_desks.store_walks(database)
        yield database


def reader_of(desk: Desk, delay: timedelta = timedelta(), **more: Any) -> DeskReader:
    setups = desk.setups.values()
    settings = DeskSettings(
        instances=tuple(one.instance for one in setups), radar=RadarSettings(**more)
    )
    profiles = {one.instance.id: one.profile for one in setups}
    moment = desk.clock.now() + delay
    home = desk.database.path.parent
    return DeskReader(home, desk.database, settings, profiles, moment, moment)


def record_of(desk: Desk, stream: str) -> TickRecord:
    instance, timeframe = stream.split("|")
    key, _ = tick_queries.newest_of(desk.database, [(instance, timeframe)])[instance, timeframe]
    record = load("", desk.database.tick_without_calls(str(key)) or {})
    assert isinstance(record, TickRecord)
    return record


def hold_one(desk: Desk) -> dict[str, Any]:
    """Let a desk go on until it holds a position; return the opening as it is stored."""
    while not (held := [row for row in desk.database.openings() if row["price"] is not None]):
        busy_desk.go_on(desk, 1)
    return held[0]


def ends(run: RadarRun) -> list[str]:
    """Return every stream that a run names, as often as it does."""
    return [*(row.stream for row in (*run.act, *run.watch, *run.exit_radar)),
            *(one.stream for one in run.coverage.failed)]  # fmt: skip


def check_ends(run: RadarRun, streams: int) -> None:
    """Check that each stream came to one end, with codes of its bucket."""
    found, coverage = ends(run), run.coverage
    assert len(found) == len(set(found))
    assert len(found) + coverage.quiet == coverage.streams == streams
    assert len({*found, *coverage.quiet_streams}) == streams, "each stream is named"
    for row in (*run.act, *run.watch, *run.exit_radar):
        also = CODES["exit_radar"] if row.bucket == "act" else ()
        assert row.code in CODES[row.bucket] and set(row.codes) <= {*CODES[row.bucket], *also}
    assert all(one.code in CODES["failed"] and one.message for one in coverage.failed)
    assert not {row.state for row in run.act} & {"not debated"}


def test_own_rows_are_their_stored_ticks(lived: Desk, scaled: Scale) -> None:
    """Of 2,000 ticks at night."""
    seen = set()
    for _ in range(scaled(1_600, least=8)):
        busy_desk.go_on(lived, 1)
        reader = reader_of(lived)
        run = scan(reader)
        check_ends(run, 2)
        for name, row in by_stream(run).items():
            record = record_of(lived, name)
            facts = {fact.id.partition("/")[2]: fact for fact in row.facts}
            assert facts["radar.consensus"].value == record.consensus
            assert facts["technical.close"].value == record.close
            assert facts["market.regime"].value == record.regime.name
            assert facts["radar.consensus"].id.startswith(f"{name}@{record.bar_time}/")
            seen.add(row.code)
            if row.bucket == "act":
                assert record.verdict != "HOLD"
                opened = [one for one in record.signals if one.kind == "open"]
                assert (row.code == "OPENED") == bool(opened)
                if row.code == "HELD_BACK":
                    assert row.deny_reason == record.denied[0] and not opened
                states = [(lived.database.signal(one.sid) or {})["state"] for one in opened]
                assert not opened or set(states) & set(POSITION_STATES)
    assert seen and (not scaled.whole or seen >= {"OPENED", "HELD_BACK", "NEAR_THRESHOLD"})


def test_a_tick_that_is_older_than_the_newest_closed_bar_is_never_act(
    lived: Desk, scaled: Scale
) -> None:
    """After 10,000 delays at night."""
    chance = random.Random(68)
    for _ in range(40):
        if scan(reader_of(lived)).act:
            break
        busy_desk.go_on(lived, 1)
    for _ in range(scaled(10_000, least=25)):
        delay = timedelta(seconds=round(chance.expovariate(1 / 5_000)))
        reader = reader_of(lived, delay)
        run = scan(reader)
        check_ends(run, 2)
        for row in run.act:
            assert record_of(lived, row.stream).as_of == row.as_of
            assert floor(reader.as_of, row.timeframe) == reader.as_of - timedelta(seconds=row.age_s)
        late = [row for row in run.watch if "STALE" in row.codes]
        assert all(row.age_s >= duration(row.timeframe).total_seconds() for row in late)
        assert late or delay < timedelta(hours=1)


@pytest.mark.parametrize("kind", ["own", "hosted", "watched"])
def test_every_stream_comes_to_one_end_whatever_is_wrong(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scaled: Scale, kind: Any
) -> None:
    """In 10,000 scans at night, with missing, late, halted, hosted and broken symbols."""
    chance, reader = random.Random(kind), radar_desks.reader(database, tmp_path)
    streams = [
        RadarStream(kind if number % 3 else "own", one, one.symbol, name)
        for number, one in enumerate(EIGHT)
        for name in one.timeframes
    ]
    monkeypatch.setattr(scans, "universe", lambda *_: streams)
    monkeypatch.setattr(
        scans, "state_of", lambda reader, stream: radar_desks.odd_state(chance, reader, stream)
    )
    for _ in range(scaled(3_334, least=30)):
        run = scan(reader)
        check_ends(run, len(streams))
        kinds = {stream.name: stream.kind for stream in streams}
        for row in run.act:
            assert kinds[row.stream] == "own" and row.age_s == 0.0
            assert row.code in ("HELD_BACK", "OBSERVED"), "no order of these lives"


def test_eight_symbols_cost_little(walks: Database, tmp_path: Path) -> None:
    """0.6 s of processor where nothing is stored but bars; no socket is opened by any test."""
    reader = radar_desks.reader(walks, tmp_path)
    scan(reader)
    spent = []
    for _ in range(3):
        begun = time.process_time()
        run = scan(reader)
        spent.append(time.process_time() - begun)
    check_ends(run, 16)
    assert run.coverage.failed == () and run.act == ()
    assert {row.state for row in run.watch} <= {"not debated"}
    assert min(spent) <= 0.6


def test_eight_symbols_of_stored_ticks_cost_less(
    lived: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.25 s of processor for a whole scan; eight symbols read the ticks of one."""
    reader, spent = reader_of(lived), []
    stored = universe(reader)
    symbols = [one.model_copy(update={"name": one.symbol}) for one in EIGHT]
    streams = {
        stream._replace(instance=one, symbol=one.symbol): stream
        for one in symbols
        for stream in stored
    }
    monkeypatch.setattr(scans, "universe", lambda *_: [*streams])
    monkeypatch.setattr(
        scans, "state_of", lambda _, one: replace(state_of(reader, streams[one]), stream=one)
    )
    for _ in range(4):
        begun = time.process_time()
        run = scan(reader)
        spent.append(time.process_time() - begun)
    check_ends(run, 16)
    assert run.coverage.failed == ()
    assert min(spent) <= 0.25


def test_a_market_upside_down_has_its_rows_upside_down(walks: Database, tmp_path: Path) -> None:
    upright = scan(radar_desks.reader(walks, tmp_path, radar=RadarSettings(near=0.3)))
    folder = tmp_path / "mirrored"
    folder.mkdir()
    other = desks.open_database(folder)
    radar_desks.store_walks(other, mirrored=True)
    turned = scan(radar_desks.reader(other, tmp_path, radar=RadarSettings(near=0.3)))
    other.close()
    rows, others = by_stream(upright), by_stream(turned)
    assert rows.keys() == others.keys() and len(rows) > 4
    for name, row in rows.items():
        mirror = others[name]
        assert (row.codes, row.moves_with) == (mirror.codes, mirror.moves_with)
        values, turns = (
            {fact.id.partition("/")[2]: fact.value for fact in one.facts} for one in (row, mirror)
        )
        for signed in ("radar.consensus", "radar.moved_atr"):
            assert values.get(signed) == pytest.approx(-turns[signed], abs=1e-7)


def test_groups_are_those_of_an_oracle(walks: Database, tmp_path: Path) -> None:
    reader = radar_desks.reader(walks, tmp_path)
    frames = {
        stream: walks.load_bars(stream.instance.id, stream.timeframe, as_of=reader.as_of, limit=750)
        for stream in universe(reader)
    }
    closes = {
        stream.name: Closes(
            stream.symbol, duration(stream.timeframe), times_of(frame).as_unit("us").asi8,
            frame["close"].to_numpy(),
        )
        for stream, frame in frames.items()
    }  # fmt: skip
    edges = set()
    for one, left in frames.items():
        for other, right in frames.items():
            same = one.symbol == other.symbol
            if not same and one.timeframe == other.timeframe:
                moves = [np.log(frame["close"]).diff().tail(CLOSES - 1) for frame in (left, right)]
                same = abs(np.corrcoef(*moves)[0, 1]) >= 0.7
            if same and one is not other:
                edges.add((one.name, other.name))
    expected = {}
    for name in closes:
        reached, border = {name}, [name]
        while border:
            here = border.pop()
            for there in [right for left, right in edges if left == here and right not in reached]:
                reached.add(there)
                border.append(there)
        expected[name] = tuple(sorted(reached - {name}))
    assert groups(closes) == expected
    assert len(set(map(len, expected.values()))) > 1


def test_streams_that_move_together_count_as_one(walks: Database, tmp_path: Path) -> None:
    run = scan(radar_desks.reader(walks, tmp_path, radar=RadarSettings(near=1.0)))
    assert len(run.watch) == 16
    assert run.portfolio_brief[0] == "Deserves a look now: 5 near."


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, ""),
        ({"verdict": "SELL"}, "OPPOSITE_VERDICT"),
        ({"consensus": -0.06}, "CONSENSUS_AGAINST"),
        ({"stop_left": 0.25}, "NEAR_STOP"),
        ({"target_left": 0.2}, "NEAR_TARGET"),
        ({"event_minutes": 240.0}, "EVENT_AHEAD"),
        ({"stale": True}, "STALE_DATA"),
        ({"regime": "volatile"}, "REGIME_TURNED"),
        ({"loss_share": 0.8}, "LOSS_CAP_NEAR"),
    ],
)
def test_what_speaks_against_a_position(changes: dict[str, Any], code: str) -> None:
    calm = PositionState("LONG", "HOLD", 0.2, 1.0, 1.0, "range", "range", 241.0, False, 0.79)
    assert exit_codes(calm._replace(**changes)) == ((code,) if code else ())


def test_the_way_that_is_left_is_of_the_planned_stop() -> None:
    assert way_left("LONG", 100.0, 95.0, 90.0, 120.0, 90.0) == (0.5, 1.25)
    assert way_left("SHORT", 100.0, 105.0, 110.0, 80.0, 110.0) == (0.5, 1.25)
    assert way_left("LONG", 100.0, 110.0, 105.0, 120.0, 90.0) == (0.5, 0.5)


def test_a_position_stands_on_the_stream_that_opened_it(lived: Desk) -> None:
    """It is in the exit radar with the facts of its codes, once its market brings no bar."""
    opening = hold_one(lived)
    (row,) = scan(reader_of(lived, timedelta(days=2))).exit_radar
    assert row.stream == f"BTCUSD|{opening['timeframe']}" and "STALE_DATA" in row.codes
    facts = {fact.id.partition("/")[2]: fact.value for fact in row.facts}
    assert row.state == "held" and isinstance(facts["radar.r"], float)


def test_a_new_opening_hides_nothing_that_speaks_against_what_is_held(
    lived: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_one(lived)
    monkeypatch.setattr(scans, "_opening", lambda _: "HELD_BACK")
    monkeypatch.setattr(scans, "exit_codes", lambda _: ("NEAR_STOP",))
    run = scan(reader_of(lived))
    (row,) = (row for row in run.act if len(row.codes) > 1)
    assert row.codes == ("HELD_BACK", "NEAR_STOP")
    assert any(fact.id.endswith("/radar.r") for fact in row.facts)
    assert run.portfolio_brief[0].endswith("1 close to its stop.")
    assert any("a quarter of the way from entry to stop" in line for line in run.reasoning_log)


def test_positions_are_counted_whatever_is_scanned(walks: Database, lived: Desk) -> None:
    """Also those of an instance that is gone from desk.json: their scan fails for nobody."""
    hold_one(lived)
    reader = reader_of(lived)
    gone = DeskSettings(instances=EIGHT)
    moved = replace(reader, settings=gone, profiles={one.id: Profile() for one in EIGHT})
    run = scan(moved)
    assert run.portfolio_brief[1] == "The desk holds 1 position."
    assert len(run.coverage.failed) == 16, "no bar of them is stored"


def test_one_row_that_cannot_be_made_is_that_streams_failure(
    walks: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(state: StreamState) -> str:
        if state.stream.symbol == "SYM1":
            raise DataUnavailable("no_such_code", "a text")
        return ""

    monkeypatch.setattr(scans, "_opening", odd)
    run = scan(radar_desks.reader(walks, tmp_path))
    check_ends(run, 16)
    assert [one.code for one in run.coverage.failed] == ["BROKEN", "BROKEN"]


def test_quiet_streams_are_named_the_nearest_first(walks: Database, tmp_path: Path) -> None:
    near = scan(radar_desks.reader(walks, tmp_path, radar=RadarSettings(near=1.0))).watch
    distances = {row.stream: row.distance or 0.0 for row in near}
    names = scan(radar_desks.reader(walks, tmp_path)).coverage.quiet_streams
    assert len(names) > 2 and [distances[one] for one in names] == sorted(map(distances.get, names))


def test_a_watched_symbol_is_read_or_says_why_not(tmp_path: Path) -> None:
    desk = busy_desk.run(tmp_path, busy_desk.VOICES["wild"](), "full", 8)
    run = scan(reader_of(desk, watch=("EURUSD", "XAUUSD", "NOSUCH"), near=1.0))
    rows, failed = by_stream(run), {one.stream: one for one in run.coverage.failed}
    assert rows["EURUSD|H1"].state == "not debated"
    assert failed["EURUSD|M15"].code == failed["XAUUSD|H1"].code == "NOT_READ"
    assert failed["NOSUCH|H1"].code == "NO_TERMS"
    assert all("cannot be read: " in one.message for one in failed.values())


def test_a_symbol_that_is_named_twice_is_scanned_once(lived: Desk) -> None:
    reader = reader_of(lived, watch=("EURUSD", "EURUSD", "BTCUSD"))
    assert [one.symbol for one in universe(reader)] == ["BTCUSD"] * 2 + ["EURUSD"] * 2


def test_a_feed_that_hangs_costs_one_wait_and_no_row_of_the_desk(
    lived: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    monkeypatch.setattr(universes, "_read", lambda *_: gate.wait(20.0))
    monkeypatch.setattr(universes, "READ_SECONDS", 0.2)
    universes._limit.cache_clear()
    begun = time.monotonic()
    run = scan(reader_of(lived, watch=("EURUSD", "XAUUSD")))
    gate.set()
    universes._limit.cache_clear()
    assert time.monotonic() - begun < 10.0
    assert [one.code for one in run.coverage.failed] == ["NOT_READ"] * 4
    assert "no answer within 0.2 s" in run.coverage.failed[0].message
    assert run.coverage.streams == 6


def test_watched_symbols_have_a_minute_together(
    lived: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "WATCH_SECONDS", 0.0)
    run = scan(reader_of(lived, watch=("EURUSD",)))
    assert [one.message for one in run.coverage.failed] == [
        "EURUSD cannot be read: the symbols before it took 0 s"
    ] * 2
    check_ends(run, 4)


def test_a_symbol_that_is_not_scanned_is_refused_with_the_list(lived: Desk) -> None:
    assert [one.name for one in universe(reader_of(lived), ["BTCUSD"])] == [
        "BTCUSD|M15",
        "BTCUSD|H1",
    ]
    with pytest.raises(ConfigError, match="GOLD is not scanned; there are BTCUSD"):
        scan(reader_of(lived), ["GOLD"])
    with pytest.raises(ConfigError, match="is off"):
        scan(reader_of(lived, enabled=False))


def test_symbols_that_a_person_holds_come_first(walks: Database, tmp_path: Path) -> None:
    reader = radar_desks.reader(walks, tmp_path, radar=RadarSettings(near=1.0))
    assert {row.symbol for row in scan(reader, portfolio=["SYM5"]).watch[:2]} == {"SYM5"}
    distances = [row.distance for row in scan(reader).watch]
    assert distances == sorted(distances, key=float)


def test_a_damaged_record_is_one_row_with_its_code(lived: Desk) -> None:
    with lived.database.transaction():
        key = lived.database.value("SELECT torra_key FROM journal ORDER BY torra_key DESC LIMIT 1")
        old = lived.database.value("SELECT record FROM journal WHERE torra_key = ?", key)
        lived.database.change("UPDATE journal SET record = '{}' WHERE torra_key = ?", key)
    run = scan(reader_of(lived))
    lived.database.change("UPDATE journal SET record = ? WHERE torra_key = ?", old, key)
    assert [one.code for one in run.coverage.failed] == ["DAMAGED"]
    assert run.coverage.streams == 2


def test_every_code_has_a_word_and_a_meaning() -> None:
    for table, codes in CODES.items():
        for code, words in codes.items():
            assert words.word and (words.meaning or table == "fact") and words_of(code)
    held = SimpleNamespace(**PositionState._field_defaults)
    assert not vars(held) and set(CODES) == {
        "act", "watch", "exit_radar", "failed", "trigger", "objection", "fact", "film",
    }  # fmt: skip
