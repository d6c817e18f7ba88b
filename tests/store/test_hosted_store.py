"""Questions of other scorers: claimed once, answered for good, numbered, put aside and counted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database, TickKey
from tests.cases import cases
from tests.worlds.stores import NOON, Hand, count, key_of, open_database, save
from torra.errors import StoreUnavailable
from torra.store import hosted
from torra.store.hosted import HostedAnswer

STREAM = "host:scorer:BTCUSD"
KEY = key_of(NOON, instance=STREAM)
HOUR = timedelta(hours=1)
CHART = {"price_action": {"score": 0.5, "note": "up"}}


def ask(
    database: Database,
    owner: str = "us",
    *,
    asked: str = "q",
    key: TickKey = KEY,
    lives: Callable[[str], bool] = lambda owner: True,
    expires: Any = NOON + HOUR,
    **more: Any,
) -> Any:
    return hosted.ask_hosted(database, key, asked, owner, expires, lives, **more)


def answer(database: Database, asked: str = "q", *, key: TickKey = KEY, final: bool = True) -> int:
    """Debate a claimed question as the overlay does: number, tick, record and answer."""
    with database.transaction():
        revision = hosted.hosted_revision(database, key, asked, "us")
        hosted.put_aside(database, key)
        save(database, key.close_time, timeframe=key.timeframe, instance=key.instance)
        database.write_journal(key, {"hosted": {"asked": asked, "revision": revision}})
        hosted.keep_answer(database, key, asked, CHART, revision, final=final)
    return revision


def states(database: Database) -> list[tuple[Any, ...]]:
    return database.tuples("SELECT asked, state, owner, revision FROM hosted ORDER BY asked")


@cases(
    ("name", "is_one"),
    [("host:a:BTCUSD", True), ("host:a:BTCUSD|M15|x", True), ("BTCUSD", False), ("hosted", False)],
)
def test_a_hosted_stream_is_told_by_its_name(name: str, is_one: bool) -> None:
    assert hosted.is_hosted(name) is is_one


def test_the_instance_of_a_stream_has_its_symbol_timeframes_and_profile() -> None:
    one = hosted.hosted_instance(STREAM, ["M15", "H1"], "mine")
    assert (one.id, one.symbol, one.feed) == (STREAM, "BTCUSD", "host")
    assert (one.timeframes, one.profile) == (("M15", "H1"), "mine")
    assert hosted.hosted_instance(STREAM, ["M15"]).profile == "default"


def test_of_two_that_ask_one_debates_until_its_claim_ends(database: Database) -> None:
    assert ask(database) == "ours"
    assert ask(database) == "ours", "its own claim is no other's"
    assert ask(database, "other") == "taken"
    assert ask(database, "other", asked="another question") == "ours"
    assert ask(database, "other", key=key_of(NOON + HOUR, instance=STREAM)) == "ours"
    assert ask(database, "other", lives=lambda owner: owner != "us", expires=NOON) == "ours"
    assert ask(database, "third") == "ours", "the claim of the other one has run out"
    assert ("q", "claimed", "third", 0) in states(database)


def test_a_claim_counts_until_its_moment(database: Database, hand: Hand) -> None:
    ask(database, expires=NOON + timedelta(seconds=60))
    hand.pass_by(59)
    assert ask(database, "other") == "taken"
    hand.pass_by(1)
    assert ask(database, "other") == "ours"


def test_a_final_answer_is_given_again_for_ever(database: Database) -> None:
    ask(database)
    assert answer(database) == 1
    assert states(database) == [("q", "final", "", 1)]
    for owner, waited in (("us", False), ("other", True)):
        assert ask(database, owner, waited=waited) == HostedAnswer(CHART, 1, None, final=True)
    assert hosted.hosted_answer(database, KEY.text, "q") == CHART
    assert hosted.hosted_answer(database, KEY.text, "r") is None


def test_an_open_answer_serves_who_waited_and_is_debated_anew_for_others(
    database: Database,
) -> None:
    ask(database)
    answer(database, final=False)
    assert ask(database, "other", waited=True) == HostedAnswer(CHART, 1, None, final=False)
    assert states(database) == [("q", "open", "", 1)]
    assert ask(database) == "ours"
    assert ask(database, "other", waited=True) == "taken", "who debates it has not ended"
    assert answer(database) == 2
    assert ask(database) == HostedAnswer(CHART, 2, None, final=True)


def test_a_question_without_an_answer_has_none_to_give_again(database: Database) -> None:
    ask(database)
    assert hosted.hosted_answer(database, KEY.text, "q") is None


def test_a_newer_question_takes_the_place_and_the_final_answer_keeps_its_record(
    database: Database,
) -> None:
    for number, asked in enumerate(("q", "r"), 1):
        ask(database, asked=asked)
        assert answer(database, asked) == number
    assert [count(database, table) for table in ("journal", "chains", "sentiment")] == [1, 1, 1]
    record = {"hosted": {"asked": "q", "revision": 1}}
    assert ask(database) == HostedAnswer(CHART, 1, record, final=True)
    assert ask(database, asked="r") == HostedAnswer(CHART, 2, None, final=True)


def test_an_answer_that_is_not_final_keeps_no_record(database: Database) -> None:
    ask(database)
    answer(database, final=False)
    hosted.put_aside(database, KEY)
    assert database.value("SELECT record FROM hosted") == ""
    assert [count(database, table) for table in ("journal", "chains", "sentiment")] == [0, 0, 0]
    hosted.put_aside(database, KEY)  # nothing is left, and nothing raises


def test_a_tick_of_nobodys_question_is_put_aside_too(database: Database) -> None:
    save(database, NOON, instance=STREAM)
    database.write_journal(KEY, {"action": "HOLD"})
    other = key_of(NOON, instance="host:other:BTCUSD")
    save(database, NOON, instance=other.instance)
    hosted.put_aside(database, KEY)
    assert database.column("SELECT torra_key FROM chains") == [other.text]


@cases("lost", ["never claimed", "given back", "taken over", "answered"])
def test_an_answer_needs_its_claim(tmp_path: Path, lost: str) -> None:
    database = open_database(tmp_path / lost)
    if lost != "never claimed":
        ask(database)
    if lost == "given back":
        hosted.give_back(database, KEY, "q", "us")
    elif lost == "taken over":
        ask(database, "other", lives=lambda owner: False)
    elif lost == "answered":
        answer(database)
    with pytest.raises(StoreUnavailable, match=r"claim lost: host:scorer:BTCUSD\|M15"):
        hosted.hosted_revision(database, KEY, "q", "us")


def test_a_claim_is_given_back_by_its_owner_alone(database: Database) -> None:
    ask(database)
    hosted.give_back(database, KEY, "q", "other")
    hosted.give_back(database, KEY, "r", "us")
    assert states(database) == [("q", "claimed", "us", 0)]
    hosted.give_back(database, KEY, "q", "us")
    assert states(database) == []


def test_what_was_answered_before_is_open_once_its_claim_is_given_back(
    database: Database,
) -> None:
    ask(database)
    answer(database, final=False)
    ask(database)
    hosted.give_back(database, KEY, "q", "us")
    assert states(database) == [("q", "open", "", 1)]


def test_a_late_answer_is_noted_in_its_own_record(database: Database) -> None:
    other = key_of(NOON, "H1", instance=STREAM)
    for key in (KEY, other):
        database.write_journal(key, {"hosted": {"asked": "q"}})
    hosted.came_late(database, KEY)
    assert database.record(KEY.text) == {"hosted": {"asked": "q", "late": True}}
    assert database.record(other.text) == {"hosted": {"asked": "q"}}


def test_streams_that_have_a_tick_are_listed_with_their_newest_profile(
    database: Database,
) -> None:
    save(database, NOON)  # an instance of the desk
    later = key_of(NOON + HOUR, instance=STREAM)
    for key, profile in ((KEY, "first"), (later, "second")):
        ask(database, key=key, profile=profile)
        answer(database, key=key)
    save(database, NOON, timeframe="H1", instance=STREAM)
    save(database, NOON, instance="host:also:EURUSD")
    ask(database, key=key_of(NOON, instance="host:scorer:BTCUSD2"), profile="another's")
    listed = {"host:also:EURUSD": ["M15"], STREAM: ["H1", "M15"]}
    assert hosted.hosted_streams(database) == listed
    one, other = hosted.hosted_instances(database)
    assert (one.id, one.profile, one.timeframes) == ("host:also:EURUSD", "default", ("M15",))
    assert (other.id, other.profile, other.timeframes) == (STREAM, "second", ("M15", "H1"))
    hosted.put_aside(database, key_of(NOON, instance="host:also:EURUSD"))
    assert list(hosted.hosted_streams(database)) == [STREAM], "it has no tick any more"


def test_answers_of_a_stream_are_counted_by_timeframe_and_close(database: Database) -> None:
    keys = [key_of(NOON + hour * HOUR, instance=STREAM) for hour in range(4)]
    for key in (*keys, key_of(NOON, "H1", instance=STREAM)):
        ask(database, key=key)
        answer(database, key=key)
    for asked in ("r", "s"):
        ask(database, asked=asked, key=keys[1])
        answer(database, asked, key=keys[1])
    save(database, NOON, instance="host:other:BTCUSD")

    def ends(*choice: Any) -> list[tuple[str, str, int]]:
        rows = hosted.hosted_ends(database, STREAM, *choice)
        assert all(row["reason"] == "" for row in rows)
        return [(row["timeframe"], row["state"], row["number"]) for row in rows]

    assert ends() == [("H1", "done", 1), ("M15", "done", 4), ("M15", "put_aside", 2)]
    assert ends(("H1",)) == [("H1", "done", 1)]
    assert ends(("M15",), NOON + 2 * HOUR) == [("M15", "done", 2)]
    assert ends((), NOON + HOUR, NOON + HOUR) == [("M15", "done", 1), ("M15", "put_aside", 2)]


def test_an_outcome_that_a_host_gave_stays(database: Database) -> None:
    later = key_of(NOON + HOUR, instance=STREAM)
    for key in (later, KEY):
        save(database, key.close_time, 0.25, l1=0.125, instance=STREAM)
    assert hosted.hosted_outcome(database, KEY.text) is None
    assert hosted.tell_outcome(database, later.text, "HOLD", None)
    assert hosted.tell_outcome(database, KEY.text, "BUY", 1.5)
    assert not hosted.tell_outcome(database, KEY.text, "BUY", 1.5)
    for verdict, r in (("SELL", 1.5), ("BUY", 1.0)):
        with pytest.raises(ValueError, match=r"was told as BUY, R 1\.5, and what was told stays"):
            hosted.tell_outcome(database, KEY.text, verdict, r)
    with pytest.raises(LookupError, match="no tick that is on record"):
        hosted.tell_outcome(database, key_of(NOON + 2 * HOUR).text, "BUY", 1.5)
    at = "2026-02-13T12:00:00Z"
    assert hosted.hosted_outcome(database, KEY.text) == {"verdict": "BUY", "r": 1.5, "at": at}
    scores = {"at": at, "consensus": 0.25, "l1_consensus": 0.1375}
    assert hosted.hosted_outcomes(database, STREAM) == [
        {"torra_key": KEY.text, "verdict": "BUY", "r": 1.5, **scores},
        {"torra_key": later.text, "verdict": "HOLD", "r": None, **scores},
    ]
    assert hosted.hosted_outcomes(database, "host:other:BTCUSD") == []
