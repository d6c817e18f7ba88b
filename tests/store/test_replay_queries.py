"""What a replay reads of stored ticks: records, debates, and the state before each."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from instance_database import Database, TickKey
from tests.cases import cases
from tests.worlds.calls import a_call
from tests.worlds.stores import NOON, Hand, key_of, opening, save
from torra.clock import iso
from torra.store import replay_queries
from torra.store.replay_queries import TICKS_AT_HAND, TWIN_SCORES, StoredDebate

STEP = timedelta(minutes=15)
DEBATE = {
    "flags": ["thin"], "calls": [{"role_id": "technical", "round": 1, "attempt": 1}],
    "cost_usd": 0.5, "elapsed_ms": 7.0,
    "stages": [{"round": 1, "agents": {"technical": "answered", "bull": "budget"}, "ms": 3.0}],
}  # fmt: skip


def tick(database: Database, number: int, **more: Any) -> TickKey:
    """Store and journal the tick that closed so many quarters after noon, and claim its row."""
    close = NOON + number * STEP
    instance, timeframe = more.pop("instance", "BTCUSD"), more.pop("timeframe", "M15")
    key = key_of(close, timeframe, instance)
    database.claim_tick(key)
    save(database, close, instance=instance, timeframe=timeframe, **more)
    database.write_journal(key, {"number": number})
    database.finish_tick(key)
    return key


def test_calls_are_read_newest_first_from_a_place_on(database: Database, hand: Hand) -> None:
    assert replay_queries.calls_before(database, None, 9) == []
    for number in range(3):
        database.write_calls(key_of(NOON), [a_call(attempt=number, user="long", cost_usd=0.5)])
    rows = replay_queries.calls_before(database, None, 2)
    assert [row["attempt"] for row in rows] == [2, 1] and "user" not in rows[0]
    (last,) = replay_queries.calls_before(database, rows[-1]["place"], 9)
    assert (last["attempt"], last["cost_usd"], last["at"]) == (0, 0.5, iso(NOON))


def test_a_stored_debate_has_its_calls_its_words_and_its_flags(database: Database) -> None:
    key = tick(database, 0, deliberation=DEBATE)
    database.write_calls(key, [a_call(reply="a"), a_call(attempt=2, reply="b")])
    database.write_calls(key_of(NOON + 9 * STEP), [a_call(role_id="other")])
    debate = replay_queries.debate_of(database, key.text)
    assert debate is not None
    replies = {place: row["reply"] for place, row in debate.calls.items()}
    assert replies == {("technical", 1, 1): "a", ("technical", 1, 2): "b"}
    assert debate.requests == {("technical", 1, 1)} and debate.flags == ("thin",)
    assert debate.words == {("technical", 1): "answered", ("bull", 1): "budget"}
    assert replay_queries.debate_of(database, "no tick") is None
    plain = replay_queries.debate_of(database, tick(database, 1, deliberation=None).text)
    assert plain == StoredDebate({}, frozenset(), {}, ())


PLACES = (("technical", 1, 1), ("bull", 1, 1))
ROWS = {place: {"status": status} for place, status in zip(PLACES, ("ok", "garbage"), strict=True)}


def debate(**words: str) -> StoredDebate:
    asked = frozenset({("pruned", 1, 1)})
    return StoredDebate(ROWS, asked, {(role, 1): word for role, word in words.items()})


@cases(
    ("place", "words", "row"),
    [
        (("technical", 1, 1), {}, {"status": "ok"}),
        (("pruned", 1, 1), {"pruned": "budget"}, None),
        (("technical", 1, 2), {}, None),
        (("bull", 1, 2), {}, {"status": "budget", "unasked": True}),
        (("bear", 1, 2), {"bear": "deadline"}, None),
        (("bear", 1, 1), {"bear": "deadline"}, {"status": "deadline", "unasked": True}),
        (("bear", 1, 1), {"bear": "answered"}, None),
        (("bear", 1, 1), {"bear": "abstained"}, None),
        (("bear", 1, 1), {}, None),
        (("bear", 2, 1), {"bear": "deadline"}, None),
    ],
)
def test_the_row_of_a_request_or_why_it_was_not_made(
    place: tuple[str, int, int], words: dict[str, str], row: Any
) -> None:
    assert debate(**words).row(*place) == row


@cases(
    ("roles", "words", "reason"),
    [
        (["a", "b"], {"a": "budget", "b": "budget"}, "budget"),
        (["a"], {"a": "deadline"}, "deadline"),
        (["a", "b"], {"a": "budget", "b": "deadline"}, ""),
        (["a", "b"], {"a": "budget"}, ""),
        (["a"], {"a": "timeout"}, ""),
        (["a", "technical"], {"a": "budget", "technical": "budget"}, ""),
        (["a", "pruned"], {"a": "budget", "pruned": "budget"}, ""),
        (["a"], {}, ""),
    ],
)
def test_why_a_stage_asked_nobody(roles: list[str], words: dict[str, str], reason: str) -> None:
    assert debate(**words).refused(roles, 1) == reason
    assert debate(**words).refused(roles, 2) == ""


def test_a_history_answers_requests_of_its_instance(database: Database) -> None:
    keys = [tick(database, number, deliberation=DEBATE) for number in range(TICKS_AT_HAND + 2)]
    for key in keys:
        database.write_calls(key, [a_call(reply=key.text)])
    recall = replay_queries.journal_history(database, "BTCUSD")

    def request(key: TickKey, role: str = "technical", attempt: int = 1) -> Any:
        return SimpleNamespace(
            timeframe=key.timeframe, bar_time=iso(key.bar_time), round=1, attempt=attempt,
            role=SimpleNamespace(id=role),
        )  # fmt: skip

    for key in keys:
        row = recall(request(key))
        assert row is not None and row["reply"] == key.text
    assert recall(request(keys[-1], "bull")) == {"status": "budget", "unasked": True}
    assert recall(request(keys[-1], attempt=2)) is None
    assert recall(request(key_of(NOON - STEP))) is None
    database.change("DELETE FROM calls")
    row = recall(request(keys[-1]))
    assert row is not None, "as it was when the tick was first asked for"
    assert recall(request(keys[0])) is None, "only the newest ticks are at hand"
    other = replay_queries.journal_history(database, "EURUSD")
    assert other(request(keys[-1])) is None


def test_ticks_with_a_journal_are_chosen_by_stream_and_close(database: Database) -> None:
    order = [(1, "M15"), (0, "M15"), (4, "H1"), (3, "M15")]
    keys = {place: tick(database, place[0], timeframe=place[1]).text for place in order}
    save(database, NOON + 5 * STEP)  # without a journal
    tick(database, 0, instance="EURUSD")

    def chosen(*choice: Any, **more: Any) -> list[Any]:
        found = replay_queries.journalled(database, "BTCUSD", *choice, **more)
        return [place for text in found for place in order if keys[place] == text]

    assert chosen() == order, "in the order they ran"
    assert chosen(2) == order[2:] and chosen(0) == []
    assert chosen(timeframes=("H1",)) == [(4, "H1")]
    assert chosen(begin=NOON + STEP) == [(1, "M15"), (4, "H1"), (3, "M15")]
    assert chosen(timeframes=("M15", "H1"), begin=NOON + STEP, end=NOON + 3 * STEP) == [
        (1, "M15"), (3, "M15"),
    ]  # fmt: skip


def test_ends_of_ticks_are_counted_by_stream_state_and_reason(database: Database) -> None:
    assert replay_queries.ticked_instances(database) == []
    for number in (0, 1):
        tick(database, number)
    tick(database, 0, instance="AUDUSD")
    for number, reason in ((2, "stale"), (3, "late"), (4, "stale")):
        database.skip_tick(key_of(NOON + number * STEP), reason, "")
    database.claim_tick(key_of(NOON, "H1"))

    def ends(*choice: Any) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in
                replay_queries.tick_ends(database, "BTCUSD", *choice)]  # fmt: skip

    late, stale = ("M15", "skipped", "late", 1), ("M15", "skipped", "stale", 2)
    assert ends() == [("H1", "claimed", "", 1), ("M15", "done", "", 2), late, stale]
    assert ends(("M15",), NOON + STEP, NOON + 3 * STEP) == [
        ("M15", "done", "", 1), late, (*stale[:3], 1),
    ]  # fmt: skip
    assert replay_queries.ticked_instances(database) == ["AUDUSD", "BTCUSD"]


def test_the_record_of_a_tick_and_when_it_was_stored(database: Database, hand: Hand) -> None:
    hand.pass_by(7)
    key = tick(database, 0)
    assert replay_queries.journal_row(database, key.text) == ({"number": 0}, iso(hand.moment))
    with pytest.raises(KeyError, match="no tick"):
        replay_queries.journal_row(database, "no tick")


def test_profiles_of_an_instance_are_listed_newest_first(database: Database, hand: Hand) -> None:
    for instance, digest in (("BTCUSD", "a"), ("BTCUSD", "b"), ("EURUSD", "c")):
        database.apply_profile(instance, "{}", digest)
        hand.pass_by(1)
    newest, oldest = replay_queries.profiles_of(database, "BTCUSD")
    assert newest == {"digest": "b", "profile": "{}", "applied_at": iso(NOON.replace(second=1))}
    assert oldest["digest"] == "a" and replay_queries.profiles_of(database, "X") == []
    given = [replay_queries.knows_profile(database, "BTCUSD", digest) for digest in "abc"]
    assert given == [True, True, False]


def life(database: Database, sid: str = "T1", **more: Any) -> None:
    """Take a signal from its decision to its fill; a close of the trade comes later."""
    database.enqueue_signal(opening(sid, **more))
    database.move_signal(sid, "PUBLISHED", detail="sent")
    fill = {"price": 101.0, "opened_at": NOON, "filled_lots": 0.5, "deal": "9"}
    database.move_signal(sid, "FILLED", fields=fill)


def ends(database: Database, sid: str = "T1") -> None:
    database.close_position(
        sid, price=99.0, time=NOON + STEP, profit=-1.0, r_multiple=-0.1, reason="STOPPED"
    )


def test_steps_are_those_of_an_instances_signals(database: Database) -> None:
    life(database)
    life(database, "T2", instance="EURUSD", bridge="main")
    steps = replay_queries.signal_steps

    def numbers(*choice: Any) -> list[int]:
        return [row["id"] for row in steps(database, "BTCUSD", *choice)]

    assert numbers(0, None) == [1, 2, 3] and numbers(1, 2) == [2] and numbers(3, None) == []
    first, sent, _ = steps(database, "EURUSD", 0, None)
    assert (first["sid"], first["from_state"], first["to_state"]) == ("T2", None, "PENDING")
    assert (sent["from_state"], sent["detail"], sent["bridge"]) == ("PENDING", "sent", "main")


def test_what_is_stored_of_a_tick_beside_its_record(database: Database) -> None:
    key = tick(database, 0, score=0.25, timeframes=("M15",), deliberation=DEBATE)
    database.write_calls(key, [a_call(system="be brief", user="bars", request_hash="h")])
    twins = replay_queries.twins(database, key.text)
    chain = database.row("SELECT * FROM chains") or {}
    chain.pop("sentiment_id")
    assert twins["chains"] == chain
    assert tuple(twins["sentiment"]) == TWIN_SCORES and twins["sentiment"]["consensus"] == 0.25
    agents = {"technical": "answered", "bull": "budget"}
    assert twins["debate"] == {"flags": ["thin"], "stages": [{"round": 1, "agents": agents}]}
    ((place, call),) = twins["calls"].items()
    assert place == "technical.1.1" and len(call.pop("instructions")) == 16
    assert call == {"status": "ok", "user": "bars", "request_hash": "h"}
    none = dict.fromkeys(TWIN_SCORES)
    assert replay_queries.twins(database, "no tick") == {
        "chains": {}, "sentiment": none, "debate": {}, "calls": {},
    }  # fmt: skip


def test_the_state_before_a_tick_has_the_newest_chains_of_each_stream(
    database: Database,
) -> None:
    for number in range(4):
        tick(database, number)
    tick(database, 2, timeframe="H1")
    tick(database, 3, instance="EURUSD")
    last = tick(database, 4)
    tick(database, 5)
    state = replay_queries.state_before(database, "BTCUSD", last.text, 0, 2)
    rows = [(row["timeframe"], row["close_time"]) for row in state["chains"]]
    assert rows == [
        ("M15", iso(NOON + 2 * STEP)), ("M15", iso(NOON + 3 * STEP)), ("H1", iso(NOON + 2 * STEP)),
    ]  # fmt: skip
    numbers = [row["sentiment_id"] for row in state["chains"]]
    assert [row["id"] for row in state["sentiment"]] == numbers == [3, 4, 5]
    assert set(state["chains"][0]) == set(database.row("SELECT * FROM chains") or {})
    assert state["signals"] == state["signal_events"] == []


@pytest.mark.parametrize(
    ("step", "state", "price", "profit"),
    [(1, "PENDING", None, None), (2, "PUBLISHED", None, None), (3, "FILLED", 101.0, None),
     (4, "CLOSED", 101.0, -1.0)],
)  # fmt: skip
def test_a_signal_before_a_tick_is_as_it_was_after_that_step(
    database: Database, step: int, state: str, price: float | None, profit: float | None
) -> None:
    life(database)
    ends(database)
    life(database, "T2")
    life(database, "X1", instance="EURUSD")
    before = replay_queries.state_before(database, "BTCUSD", "no tick", step, 9)
    (row,) = before["signals"]
    assert [event["id"] for event in before["signal_events"]] == list(range(1, step + 1))
    assert (row["sid"], row["state"], row["price"], row["profit"]) == ("T1", state, price, profit)
    filled = (row["opened_at"] is None, row["filled_lots"], row["deal"])
    assert filled == ((True, None, None) if price is None else (False, 0.5, "9"))
    ended = [row[name] is not None for name in replay_queries.OF_ITS_END]
    assert ended == [profit is not None] * len(ended)
    assert row["detail"] == ("", "sent", "", "STOPPED")[step - 1]


def test_a_close_before_a_tick_has_its_end_with_its_fill(database: Database) -> None:
    life(database)
    life(database, "C1", kind="close", side="SELL", closes="T1")
    database.learn("C1", closed_at=NOON, profit=1.0)

    def profits(step: int) -> list[datetime | None]:
        before = replay_queries.state_before(database, "BTCUSD", "no tick", step, 9)
        return [row["profit"] for row in before["signals"] if row["kind"] == "close"]

    assert profits(5) == [None] and profits(6) == [1.0]
