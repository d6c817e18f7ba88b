"""What pages read of many streams: the newest rows of each, their skips and their neighbours."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from instance_database import Database
from tests.worlds.stores import NOON, count, key_of, save
from torra.clock import iso
from torra.store import tick_queries

HOUR, STEP = timedelta(hours=1), timedelta(minutes=15)
STREAM = ("BTCUSD", "M15")
BOTH = ("M15", "H1")


def bar(number: int) -> str:
    """Return the open time of the bar that closes so many quarters after noon."""
    return iso(NOON + (number - 1) * STEP)


def close(number: int) -> str:
    return iso(NOON + number * STEP)


def tick(database: Database, number: int, record: Any = None, **more: Any) -> str:
    """Store the tick that closed so many quarters after noon, with a journal if it has a record."""
    moment = NOON + number * STEP
    key = key_of(moment, more.get("timeframe", "M15"), more.get("instance", "BTCUSD"))
    save(database, moment, **more)
    if record is not None:
        database.write_journal(key, record)
    return key.text


def skip(database: Database, number: int, reason: str = "stale", timeframe: str = "M15") -> None:
    key = key_of(NOON + number * STEP, timeframe)
    assert database.skip_tick(key, reason, f"why {number}")


def test_the_newest_ticks_of_many_streams_are_read_at_once(database: Database) -> None:
    for number in range(5):
        for hours in (1, 0):
            save(database, NOON - hours * HOUR, instance=f"I{number}")
    skip(database, 8)
    streams = [*((f"I{number}", "M15") for number in range(5)), STREAM, ("I0", "H1")]
    newest = tick_queries.newest_of(database, streams)
    assert newest == {
        **{(f"I{number}", "M15"): (f"I{number}|M15|{bar(0)}", None) for number in range(5)},
        STREAM: (None, bar(8)),
        ("I0", "H1"): (None, None),
    }
    assert tick_queries.newest_of(database, []) == {}


def test_ticks_are_summed_up_newest_first(database: Database) -> None:
    tick(database, 0, score=0.75, l1=-0.9, ath=0.75, timeframes=("M15",), source_type="L1_ONLY")
    key = tick(database, 1, {"action": "OPEN_BUY", "reason": "VERDICT"}, score=0.5)
    tick(database, 4, timeframe="H1")
    newest, oldest = tick_queries.tick_summaries(database, *STREAM, 9)
    assert newest["torra_key"] == key and newest["action"] == "OPEN_BUY"
    vectors = ("price_action", "key_levels", "momentum", "structure", "ath")
    assert {name: oldest.pop(name) for name in vectors} == dict.fromkeys(vectors, 0.75)
    consensus, l1 = oldest.pop("consensus"), oldest.pop("l1_consensus")
    assert consensus == 0.75 and l1 < 0 and oldest == {
        "torra_key": f"BTCUSD|M15|{bar(0)}", "bar_time": bar(0), "close_time": close(0),
        "verdict": "BUY", "l1_verdict": "SELL", "source_type": "L1_ONLY", "action": None,
        "reason": None,
    }  # fmt: skip
    (only,) = tick_queries.tick_summaries(database, *STREAM, 1)
    assert only == newest


def test_words_of_records_are_read_by_name_and_damaged_ones_are_left_out(
    database: Database,
) -> None:
    keys = [tick(database, number, {"a": {"b": number}, "c": None}) for number in range(3)]
    database.change("UPDATE journal SET record = 'no JSON' WHERE torra_key = ?", keys[1])
    words = tick_queries.words_of(database, [*keys, "no tick"], ("a.b", "c", "d"))
    assert words == {keys[0]: {"a.b": 0}, keys[2]: {"a.b": 2}}


def test_the_history_of_a_stream_is_its_newest_ticks_oldest_first(database: Database) -> None:
    for number, score in enumerate((-0.9, 0.0, 0.9)):
        tick(database, number, score=score, timeframes=("M15",))
    history = tick_queries.consensus_history(database, *STREAM, 2)
    assert history == [
        {"close_time": close(1), "consensus": 0.0, "verdict": "HOLD"},
        {"close_time": close(2), "consensus": 0.9, "verdict": "BUY"},
    ]


def test_verdicts_and_flags_are_of_the_newest_ticks_of_all_timeframes(database: Database) -> None:
    scores = {("M15", 0): 0.9, ("M15", 3): 0.0, ("H1", 2): -0.9, ("H1", 6): 0.9, ("M5", 7): -0.9}
    for (timeframe, number), score in scores.items():
        debate = {"flags": [f"d{number}"], "reports": [{"flags": [f"r{number}", 7]}, {"flags": []}]}
        tick(database, number, timeframe=timeframe, score=score, timeframes=(timeframe,),
             deliberation=debate)  # fmt: skip
    verdicts = tick_queries.verdicts_of
    assert verdicts(database, "BTCUSD", BOTH, 9) == {"BUY": 2, "HOLD": 1, "SELL": 1}
    assert verdicts(database, "BTCUSD", BOTH, 3) == {"BUY": 1, "HOLD": 1, "SELL": 1}
    assert verdicts(database, "BTCUSD", ("M15",), 1) == {"HOLD": 1}
    assert verdicts(database, "EURUSD", BOTH, 9) == {}

    def flags(limit: int) -> list[list[str]]:
        return sorted(tick_queries.debate_flags(database, "BTCUSD", BOTH, limit))

    assert flags(2) == [["d3", "r3", "7"], ["d6", "r6", "7"]]
    tick(database, 8, deliberation={})
    tick(database, 9)
    database.change("UPDATE sentiment SET agent_deliberation = 'no JSON' WHERE id = 7")
    assert flags(3) == [[], ["d6", "r6", "7"]], "one that flagged nothing, and none unread"


def test_how_each_block_stood_is_told_newest_first(database: Database) -> None:
    tick(database, 0, {"outside": {"statuses": {"rates": "used"}}})
    tick(database, 1, {"outside": {"statuses": ["odd"]}})
    tick(database, 2)
    tick(database, 4, {"outside": {"statuses": {"rates": "stale"}}}, timeframe="H1")
    damaged = tick(database, 5, {})
    database.change("UPDATE journal SET record = 'no JSON' WHERE torra_key = ?", damaged)
    statuses = tick_queries.outside_statuses(database, "BTCUSD", BOTH, 9)
    assert statuses == [{}, {"rates": "stale"}, {}, {}, {"rates": "used"}]
    assert tick_queries.outside_statuses(database, "BTCUSD", BOTH, 2) == statuses[:2]


def test_the_newest_skip_is_told_with_those_behind_it(database: Database) -> None:
    for number, reason in ((0, "late"), (1, "stale"), (2, "late"), (4, "stale")):
        skip(database, number, reason)
    skip(database, 9, timeframe="M5")
    database.claim_tick(key_of(NOON + 7 * STEP))
    newest = {
        "bar_time": bar(4), "close_time": close(4), "state": "skipped", "reason": "stale",
        "detail": "why 4",
    }  # fmt: skip
    after = tick_queries.skips_after
    counts = {"count": 4, "oldest": bar(0), "others": 2}
    assert after(database, *STREAM, "", 9) == {**newest, **counts}
    assert after(database, *STREAM, bar(0), 2) == {
        **newest, "count": 2, "oldest": bar(2), "others": 1,
    }  # fmt: skip
    assert after(database, *STREAM, bar(4), 9) is None
    found = tick_queries.skips_from(database, *STREAM, bar(2), 9)
    assert found == [newest, {**found[1], "bar_time": bar(2), "reason": "late"}]
    (only,) = tick_queries.skips_from(database, *STREAM, bar(1), 1)
    assert only == newest


def test_the_state_of_a_close(database: Database) -> None:
    skip(database, 1)
    state = tick_queries.tick_state
    assert state(database, *STREAM, bar(1)) == {
        "state": "skipped", "reason": "stale", "detail": "why 1",
    }  # fmt: skip
    others = ((*STREAM, bar(2)), ("BTCUSD", "M5", bar(1)), ("EURUSD", "M15", bar(1)))
    assert [state(database, *place) for place in others] == [None] * 3
    skip(database, 0)
    rows = tick_queries.tick_states(database, *STREAM)
    assert [(row["bar_time"], row["close_time"]) for row in rows] == [
        (bar(1), close(1)), (bar(0), close(0)),
    ]  # fmt: skip
    assert rows[0]["at"] == iso(NOON)
    assert tick_queries.tick_states(database, *STREAM, 1) == rows[:1]


def test_the_times_of_stored_ticks_between_two_bars(database: Database) -> None:
    for number in (3, 0, 2, 1):
        tick(database, number)
    tick(database, 2, timeframe="H1")
    times = tick_queries.tick_times
    assert times(database, *STREAM, bar(1), bar(2)) == [bar(1), bar(2)]
    assert times(database, *STREAM, bar(4), bar(9)) == []


def test_the_neighbours_of_a_tick_are_done_or_skipped(database: Database) -> None:
    for number in range(6):
        database.claim_tick(key_of(NOON + number * STEP))
    for number in (0, 2, 4):
        database.finish_tick(key_of(NOON + number * STEP))
    skip(database, 1)
    near = tick_queries.adjacent_ticks
    assert near(database, *STREAM, bar(1)) == (bar(0), bar(2))
    assert near(database, *STREAM, bar(3)) == (bar(2), bar(4))
    assert near(database, *STREAM, bar(0)) == (None, bar(1))
    assert near(database, *STREAM, bar(4)) == (bar(2), None), "others are being worked on"
    hosted = "host:scorer:BTCUSD"
    for number in (0, 2, 5):
        tick(database, number, instance=hosted)
    assert near(database, hosted, "M15", bar(2)) == (bar(0), bar(5))
    assert near(database, hosted, "M15", bar(0)) == (None, bar(2))
    assert count(database, "ticks") == 6, "nobody owes it anything"


def test_tallies_are_those_of_the_instances_that_are_named(database: Database) -> None:
    for number, (score, l1) in enumerate(((0.9, 0.0), (0.9, 0.9), (0.0, 0.9))):
        tick(database, number, score=score, l1=l1, timeframes=("M15",))
    tick(database, 0, instance="EURUSD")
    tallies = tick_queries.verdict_tallies
    assert tallies(database, ["BTCUSD", "XAUUSD"]) == {STREAM: (2, 3)}
    assert tallies(database, []) == {}
