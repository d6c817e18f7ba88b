"""What the brain stores of a tick and what it remembers: whole, causal, and quick to read."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import instance_database
from ath_calculator import Records
from instance_database import Database
from tests.examples import examples
from tests.worlds.calls import a_call
from tests.worlds.legacy_database import build
from tests.worlds.price_series import times_of
from tests.worlds.query_plans import plans
from tests.worlds.stores import (
    NOON,
    PROFILE,
    Hand,
    closing,
    count,
    flat,
    frame,
    key_of,
    open_database,
    opening,
    save,
)
from torra.clock import duration, iso
from torra.config import Profile
from torra.store import bars as bar_table
from torra.store import tick_queries
from torra.store import ticks as claim_table
from torra.store.trade import signals as signal_table

STEP = timedelta(minutes=15)
HOUR = timedelta(hours=1)


def memory(database: Database, as_of: datetime, timeframe: str = "M15") -> dict[str, Any]:
    bar = bar_table.last_close(database, "BTCUSD", "M15", as_of)
    return database.memory_context(
        "BTCUSD", timeframe, as_of=as_of, profile=PROFILE, symbol="BTCUSD",
        price=bar[1] if bar else 100.0,
    )  # fmt: skip


# --- saving ---------------------------------------------------------------------------------------


@pytest.mark.by_day(8)
@pytest.mark.parametrize("broken", [math.nan, math.inf, 1.01, -1.5, "0.4", True, None])
@pytest.mark.parametrize("place", ["scores", "l1", "ungated", "ath"])
def test_a_broken_score_is_refused_before_anything_is_written(
    database: Database, place: str, broken: object
) -> None:
    told: dict[str, Any] = {name: flat(0.2) for name in ("scores", "l1", "ungated")}
    told["ath"] = 0.2
    if place == "ath":
        told["ath"] = broken
    else:
        told[place]["momentum"]["score"] = broken
    with pytest.raises(ValueError, match=r"the score of (momentum|ath) is"):
        database.save_sentiment(
            **told, key=key_of(NOON), close_time=NOON, source_type="L1_ONLY", profile=PROFILE,
            deliberation=None, timeframes=("M15", "H1"),
        )  # fmt: skip
    assert count(database, "sentiment") == count(database, "chains") == 0


def test_a_missing_vector_is_named(database: Database) -> None:
    scores = flat(0.1)
    del scores["structure"]
    with pytest.raises(ValueError, match="structure is missing"):
        instance_database.save_sentiment(
            database, scores, key=key_of(NOON), close_time=NOON, ath=0.0, l1=flat(0.1),
            ungated=flat(0.1), source_type="LEGACY", profile=PROFILE, deliberation=None,
            timeframes=("M15",),
        )  # fmt: skip


def test_a_tick_cannot_be_stored_twice(database: Database) -> None:
    save(database, NOON)
    with pytest.raises(Exception, match="UNIQUE"):
        save(database, NOON)
    assert count(database, "sentiment") == count(database, "chains") == 1


ticks = st.lists(
    st.tuples(
        st.sampled_from(["M15", "H1", "H4"]),
        st.integers(0, 40),
        *[st.floats(-1, 1).map(lambda value: round(value, 8))] * 3,
    ),
    max_size=25,
    unique_by=lambda tick: tick[:2],
)


@pytest.mark.journey
@settings(max_examples=60, deadline=None)
@given(ticks=ticks)
def test_every_chain_is_the_mean_of_its_latest_fresh_composites(
    tmp_path_factory: pytest.TempPathFactory, ticks: list[Any]
) -> None:
    """Against a plain search through everything that was stored, in any order of arrival."""
    database = open_database(tmp_path_factory.mktemp("brain"))
    profile = Profile(timeframe_weights={"M15": 0.4, "H1": 0.6, "H4": 1.5})
    frames = ("M15", "H1", "H4")
    stored: list[tuple[str, datetime, dict[str, float]]] = []
    for timeframe, number, l1, gated, free in ticks:
        close = NOON + number * duration(timeframe)
        saved = save(
            database, close, gated, timeframe=timeframe, l1=l1, ungated=free, profile=profile,
            ath=0.0, timeframes=frames,
        )  # fmt: skip
        own = {"l1": l1, "low": min(gated, free), "high": max(gated, free), "final": gated}
        stored.append((timeframe, close, {name: 0.9 * value for name, value in own.items()}))
        for chain in own:
            total = weights = 0.0
            for name in frames:
                seen = [row for row in stored if row[0] == name and row[1] <= close]
                latest = max(seen, key=lambda row: row[1], default=None)
                if name == timeframe:
                    latest = stored[-1]
                if latest and close - latest[1] <= 2 * duration(name):
                    total += profile.timeframe_weights[name] * latest[2][chain]
                    weights += profile.timeframe_weights[name]
            found = saved.consensus if chain == "final" else getattr(saved, f"{chain}_consensus")
            assert found == pytest.approx(total / weights, abs=2e-8)


def test_the_record_of_the_consensus_names_what_was_stale(database: Database) -> None:
    save(database, NOON, 0.8, timeframe="H1")
    fresh = save(database, NOON + 2 * HOUR, -0.2)
    stale = save(database, NOON + 2 * HOUR + STEP, -0.2)
    assert fresh.consensus == pytest.approx(0.4)
    assert stale.consensus == -0.2
    assert fresh.composites["H1"] == {
        "composite": 0.8, "close_time": iso(NOON), "weight": 0.6, "fresh": True,
    }  # fmt: skip
    assert stale.composites["H1"]["fresh"] is False
    assert stale.composites["M15"]["fresh"] is True


def test_instances_do_not_mix(database: Database) -> None:
    save(database, NOON, 0.9, timeframe="H1", instance="EURUSD")
    assert save(database, NOON, 0.1).consensus == 0.1


def test_journal_sentiment_and_chains_go_together(database: Database) -> None:
    for number, record in enumerate([{}, {"bad": math.nan}, {}, {"bad": math.inf}]):
        close = NOON + number * STEP
        with suppress(ValueError), database.transaction():
            save(database, close)
            database.write_journal(key_of(close), record)
    keys = [
        {row["torra_key"] for row in database.connection().table(table).rows}
        for table in ("sentiment", "chains", "journal")
    ]
    assert keys[0] == keys[1] == keys[2] == {key_of(NOON).text, key_of(NOON + 2 * STEP).text}


# --- remembering ----------------------------------------------------------------------------------


def test_a_tick_does_not_remember_itself(database: Database) -> None:
    save(database, NOON - STEP, 0.1)
    before = memory(database, NOON)
    save(database, NOON, 0.9)
    database.enqueue_signal(opening())
    assert memory(database, NOON) == before


def test_nothing_later_is_remembered(database: Database) -> None:
    """Whatever happens from `as_of` on, anywhere on the desk, leaves the memory as it was."""
    fill(database, "T1", NOON - HOUR, opened=NOON - HOUR)
    database.store_bars("BTCUSD", "M15", frame([100.0, 104.0], NOON - 2 * STEP))
    save(database, NOON - STEP, 0.1)
    before = memory(database, NOON)
    assert before["open_positions"] == [{"direction": "LONG", "pnl": 2.0, "age_ticks": 4}]
    database.store_bars("BTCUSD", "M15", frame([999.0] * 4, NOON))
    close(database, "T1", NOON, -50.0)
    for number in range(5):
        save(database, NOON + number * STEP, -0.9)
    fill(database, "T2", NOON + STEP, opened=NOON + STEP, side="SELL", stop=110.0, target=80.0)
    fill(database, "T3", NOON, opened=NOON, instance="EURUSD")
    assert memory(database, NOON) == before
    after = memory(database, NOON + 3 * STEP)
    assert (after["position"], after["losing_streak"], after["open_elsewhere"]) == ("SHORT", 1, 1)


def test_positions_and_streaks_are_counted_per_instance(database: Database) -> None:
    for number, profit in enumerate([5.0, -1.0, -2.0]):
        sid = f"T{number}"
        fill(database, sid, NOON + number * STEP, opened=NOON + number * STEP)
        close(database, sid, NOON + (number + 1) * STEP, profit)
    fill(database, "E1", NOON, opened=NOON, instance="EURUSD")
    close(database, "E1", NOON + STEP, -9.0)
    assert memory(database, NOON + 4 * STEP)["losing_streak"] == 2
    assert memory(database, NOON + 3 * STEP)["losing_streak"] == 1, "known when its bar has closed"
    fill(database, "T9", NOON + 4 * STEP, opened=NOON + 4 * STEP)
    close(database, "T9", NOON + 5 * STEP, 0.0)
    assert memory(database, NOON + 6 * STEP)["losing_streak"] == 0


def test_an_opening_counts_as_a_position(database: Database) -> None:
    database.enqueue_signal(opening("E1", instance="EURUSD"))
    assert memory(database, NOON)["open_elsewhere"] == 0, "decided at the same close"
    assert memory(database, NOON + STEP)["open_elsewhere"] == 1
    database.enqueue_signal(opening())
    told = memory(database, NOON + STEP)
    assert told["position"] == "LONG"
    assert told["open_positions"] == [{"direction": "LONG", "pnl": 0.0, "age_ticks": 1}]


def test_a_short_is_valued_at_the_ask(database: Database) -> None:
    fill(database, "T1", NOON - HOUR, opened=NOON - HOUR, side="SELL", stop=110.0, target=80.0)
    database.store_bars("BTCUSD", "M15", frame([70.0], NOON - STEP))
    spread = PROFILE.symbol("BTCUSD").spread
    (position,) = memory(database, NOON)["open_positions"]
    assert position["pnl"] == pytest.approx((100.0 - 70.0 - spread) * 0.5)


def fill(database: Database, sid: str, decided: datetime, *, opened: datetime, **more: Any) -> None:
    row = opening(sid, decided_at=decided, bar_time=decided - STEP, **more)
    database.enqueue_signal(row)
    database.move_signal(sid, "PUBLISHED")
    database.move_signal(sid, "FILLED", fields={"price": row["entry"], "opened_at": opened})


def close(database: Database, sid: str, time: datetime, profit: float) -> None:
    database.close_position(
        sid, price=100.0, time=time, profit=profit, r_multiple=profit / 5, reason="STOPPED"
    )


# --- going back -----------------------------------------------------------------------------------


def test_a_rewound_copy_knows_what_was_known_then(database: Database, tmp_path: Path) -> None:
    def live(one: Database, first: int, last: int) -> None:
        for number in range(first, last):
            moment = NOON + number * STEP
            for timeframe in ("H1", "M15") if number % 4 == 0 else ("M15",):
                key = key_of(moment, timeframe)
                one.store_bars("BTCUSD", "M15", frame([100.0 + number], moment - STEP))
                assert one.claim_tick(key)
                with one.transaction():
                    save(one, moment, number / 20, timeframe=timeframe)
                    one.write_journal(key, {"action": "HOLD"})
                    one.finish_tick(key)
            if number == 3:
                fill(one, "T1", moment, opened=moment + STEP)
            if number == 6:
                close(one, "T1", moment + STEP, 4.0)
                one.enqueue_signal(opening("T2", decided_at=moment, bar_time=moment - STEP))

    live(database, 0, 12)
    moment = NOON + 8 * STEP
    copy = Database.open(Database.copy(database.path, tmp_path / "c.db"), now=Hand())
    copy.rewind("BTCUSD", NOON + 4 * STEP, "M15")
    newest = {name: copy.ticks("BTCUSD", name, 1)[0]["close_time"] for name in ("M15", "H1")}
    assert newest == {"M15": iso(NOON + 3 * STEP), "H1": iso(NOON + 4 * STEP)}
    assert bar_table.newest_bar(copy, "BTCUSD", "M15") == NOON + 3 * STEP
    known = copy.records("BTCUSD", "M15", as_of=moment)
    assert known is not None and (known.high, known.low) == (105.0, 99.0)
    assert [row["sid"] for row in copy.signals()] == ["T1"]
    assert copy.position("BTCUSD").state == "PUBLISHED"
    copy.rewind("BTCUSD", NOON + 4 * STEP)
    assert copy.ticks("BTCUSD", "H1", 1)[0]["close_time"] == iso(NOON)
    assert count(copy, "sentiment") == count(copy, "chains") == count(copy, "journal") == 5
    live(copy, 4, 5)
    then = memory(copy, NOON + 4 * STEP)
    assert then == memory(database, NOON + 4 * STEP)
    copy.close()


# --- bars -----------------------------------------------------------------------------------------


def test_bars_come_back_as_they_went_in(database: Database) -> None:
    bars = frame([100.1, 100.25, 99.123456789])
    assert database.store_bars("BTCUSD", "M15", bars) == 3
    assert database.store_bars("BTCUSD", "M15", bars) == 0
    loaded = database.load_bars("BTCUSD", "M15", as_of=NOON + 3 * STEP)
    pd.testing.assert_frame_equal(
        loaded, bars, check_freq=False, check_index_type=False, check_names=True
    )
    assert str(times_of(loaded).tz) == "UTC"
    early = database.load_bars("BTCUSD", "M15", as_of=NOON + 3 * STEP - timedelta(seconds=1))
    assert len(early) == 2, "a bar is known when it has closed"
    last = database.load_bars("BTCUSD", "M15", as_of=NOON + HOUR, limit=1)
    assert list(last.index) == [bars.index[-1]]
    none = database.load_bars("EURUSD", "M15", as_of=NOON)
    assert (len(none), list(none.columns)) == (0, list(bars.columns))
    assert str(times_of(none).tz) == "UTC"
    assert bar_table.newest_bar(database, "EURUSD", "M15") is None


def test_a_changed_bar_is_a_new_revision(database: Database) -> None:
    database.store_bars("BTCUSD", "M15", frame([100.0, 120.0, 110.0]))
    changed = frame([100.0, 105.0, 110.0, 111.0])
    assert database.store_bars("BTCUSD", "M15", changed) == 1
    loaded = database.load_bars("BTCUSD", "M15", as_of=NOON + HOUR)
    assert loaded["close"].tolist() == [100.0, 105.0, 110.0, 111.0]
    assert count(database, "bars") == 5
    assert database.bar_revision("BTCUSD", "M15", NOON, NOON + HOUR) == 1
    assert database.bar_revision("BTCUSD", "M15", NOON, NOON) == 0
    known = database.records("BTCUSD", "M15", as_of=NOON + HOUR)
    assert known == Records(112.0, 99.0, NOON)


def test_a_withdrawn_bar_is_none_and_what_saw_it_still_does(database: Database) -> None:
    database.store_bars("BTCUSD", "M15", frame([100.0, 150.0, 110.0, 111.0]))
    bars = frame([100.0, 101.0, 110.0, 111.0]).drop(index=[NOON + STEP])
    assert database.withdraw_others("BTCUSD", "M15", bars) == 1
    assert database.withdraw_others("BTCUSD", "M15", bars) == 0
    end = NOON + HOUR
    assert database.load_bars("BTCUSD", "M15", as_of=end)["close"].tolist() == [100.0, 110.0, 111.0]
    assert len(bar_table.closes(database, "BTCUSD", "M15", since=NOON, as_of=end)) == 3
    assert (
        bar_table.bars_then(database, "BTCUSD", "M15", NOON, end, 0)["close"].tolist()[1] == 150.0
    )
    assert len(bar_table.bars_then(database, "BTCUSD", "M15", NOON, end, 1)) == 3
    known = database.records("BTCUSD", "M15", as_of=end)
    assert known is not None and known.high < 150.0
    # A bar that comes after all is there again.
    assert database.store_bars("BTCUSD", "M15", frame([100.0, 101.0])) == 0
    assert database.load_bars("BTCUSD", "M15", as_of=end)["close"].tolist()[1] == 101.0


def test_the_newest_bar_is_the_newest_that_was_not_withdrawn(database: Database) -> None:
    bars = frame([100.0, 101.0, 102.0])
    database.store_bars("BTCUSD", "M15", bars)
    around = pd.concat([bars.iloc[[0]], bars.iloc[[2]].shift(4, freq="15min")])
    assert database.withdraw_others("BTCUSD", "M15", around) == 2
    assert bar_table.newest_bar(database, "BTCUSD", "M15") == NOON
    assert bar_table.last_close(database, "BTCUSD", "M15", NOON + HOUR) == (iso(NOON), 100.0)
    # Bars that follow are no revisions of what was withdrawn.
    assert database.store_bars("BTCUSD", "M15", frame([100.0, 101.0, 102.0, 103.0])) == 1
    assert bar_table.newest_bar(database, "BTCUSD", "M15") == NOON + 3 * STEP


def test_a_broken_bar_is_refused(database: Database) -> None:
    with pytest.raises(ValueError, match="not finite"):
        database.store_bars("BTCUSD", "M15", frame([100.0, math.nan]))
    assert count(database, "bars") == 0


batches = st.lists(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 50)), min_size=1, max_size=8), max_size=8
)


@pytest.mark.journey
@settings(max_examples=examples(60, 20), deadline=None)
@given(batches=batches)
def test_the_records_are_those_of_a_plain_search(
    tmp_path_factory: pytest.TempPathFactory, batches: list[Any]
) -> None:
    """Bars arrive late, twice and changed; the newest revision of each counts."""
    database = open_database(tmp_path_factory.mktemp("bars"))
    known: dict[int, float] = {}
    for batch in batches:
        latest = dict(batch)
        known |= latest
        rows = sorted(latest)
        parts = [frame([float(latest[row])], NOON + row * STEP) for row in rows]
        database.store_bars("BTCUSD", "M15", pd.concat(parts))
        for last in range(-1, 32, 3):
            found = database.records("BTCUSD", "M15", as_of=NOON + (last + 1) * STEP)
            seen = [price for row, price in known.items() if row <= last]
            if not seen:
                assert found is None
                continue
            first = NOON + min(known) * STEP
            assert found == Records(max(seen) + 1.0, min(seen) - 1.0, first)


# --- reading --------------------------------------------------------------------------------------


def call(role: str, attempt: int = 1, cost: float = 0.01) -> Any:
    texts = {"system": "system", "user": "user", "reply": "reply", "request_hash": "abc"}
    return a_call(role_id=role, attempt=attempt, cost_usd=cost, model="rules", **texts)


def test_a_profile_is_kept_with_its_history(database: Database) -> None:
    assert database.apply_profile("BTCUSD", "{}", "aaa") is True
    assert database.apply_profile("BTCUSD", "{}", "aaa") is False
    assert database.apply_profile("BTCUSD", '{"x": 1}', "bbb") is True
    assert database.apply_profile("BTCUSD", "{}", "aaa") is True
    assert claim_table.applied_profile(database, "BTCUSD")["digest"] == "aaa"
    assert count(database, "trading_config") == 3


def test_no_read_of_a_tick_walks_through_a_table(tmp_path: Path) -> None:
    """Every statement of a tick and of the pages finds its rows by an index."""
    build(tmp_path / "torra.db", 500)
    database = open_database(tmp_path)
    fill(database, "T1", NOON - HOUR, opened=NOON - HOUR)
    database.enqueue_signal(closing("C1", "T1"))

    def ask() -> None:
        run_a_tick(database)
        for state in (None, ("PENDING", "WAITING")):
            for instance in (None, "BTCUSD"):
                database.signals(state, instance)
        database.latest_tick("BTCUSD", "M15")
        database.ticks("BTCUSD", "M15", 50)
        tick_queries.tick_states(database, "BTCUSD", "M15", 50)
        signal_table.closed_trades(database, "BTCUSD", 10)
        signal_table.closed_trades(database, None, 10)
        signal_table.signal_events(database, "T1")
        database.desk_time()
        tick_queries.verdict_tallies(database, ["BTCUSD"])
        bar_table.newest_bar(database, "BTCUSD", "M15")

    found = plans(database, ask)
    assert len(found) > 25
    for sql, steps in found.items():
        ordered = "ORDER BY seq DESC LIMIT" in sql or "ORDER BY id DESC LIMIT" in sql
        for step in steps:
            assert not re.match(r"SCAN (?!CONSTANT|json_each)", step) or ordered, f"{step}: {sql}"


def run_a_tick(database: Database) -> None:
    key = key_of(NOON)
    database.due("BTCUSD", "M15", upto=NOON, start=NOON - STEP)
    database.claim_tick(key)
    database.store_bars("BTCUSD", "M15", frame([100.0, 101.0], NOON - 2 * STEP))
    database.load_bars("BTCUSD", "M15", as_of=NOON, limit=750)
    database.records("BTCUSD", "M15", as_of=NOON)
    database.set_paper_cursor("BTCUSD", NOON)
    database.paper_cursor("BTCUSD")
    database.paper_orders("BTCUSD", ())
    database.paper_position("BTCUSD")
    memory(database, NOON)
    with database.transaction(1.0):
        save(database, NOON)
        database.position("BTCUSD")
        database.positions()
        database.exposure("BTCUSD", "M15", as_of=NOON)
        database.trading_state()
        for held in (True, False):
            database.set_latch("BTCUSD", "BUY", held)
        database.write_journal(key, {"action": "HOLD"})
        database.write_calls(key, (call("technical"),))
        database.finish_tick(key)
    database.move_signal("C1", "PUBLISHED")
    database.show_life(NOON)


def test_changed_verdicts_are_counted_by_stream_and_by_instance(database: Database) -> None:
    assert tick_queries.verdict_tallies(database, ["BTCUSD"]) == {}
    for number, (final, l1) in enumerate([(0.6, 0.1), (0.6, 0.6), (-0.6, 0.1), (0.1, 0.1)]):
        save(database, NOON + number * STEP, final, l1=l1, ath=0.0, timeframes=("M15",))
    save(database, NOON, 0.9, l1=0.0, timeframe="H1", timeframes=("H1",))
    save(database, NOON, 0.9, l1=0.0, instance="OTHER", timeframes=("M15",))
    rows = database.ticks("BTCUSD", "M15")
    changed = sum(row["verdict"] != row["l1_verdict"] for row in rows)
    assert changed == 2
    tallies = tick_queries.verdict_tallies(database, ["BTCUSD"])
    assert tallies == {("BTCUSD", "M15"): (changed, 4), ("BTCUSD", "H1"): (1, 1)}
