"""Memory and database are one store to a tick: the same calls have the same answers."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.worlds import lessons
from tests.worlds.stores import NOON, PROFILE, closing, flat, key_of, open_database, opening
from torra.errors import StoreUnavailable
from torra.lessons.facts import PriceRange
from torra.store import memory
from torra.store.memory import STATE, MemoryStore
from torra.store.tick_store import OpeningContext
from torra.verdict import call_policy
from torra.verdict.risk_engine import OpenSide
from torra.verdict.sentiment_rules import CHAINS
from torra.verdict.vetoed import VetoedOpening

BTC, EUR = "BTCUSD", "EURUSD"
STEP = timedelta(minutes=15)
KEY = key_of(NOON)
VETOED = VetoedOpening(
    sid="V1", instance=BTC, symbol=BTC, timeframe="M15", bar_time=KEY.bar_time, side="BUY",
    decided_at=NOON, entry=100.0, stop=90.0, target=120.0, lived=KEY.bar_time, reason="GATE_VETO",
)  # fmt: skip


@pytest.fixture(params=["memory", "database"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else open_database(tmp_path)


def save(
    store: Any, number: int, score: float = 0.1, timeframe: str = "M15", l1: float | None = None
) -> Any:
    """Score the tick that closed so many quarters after noon."""
    close = NOON + number * STEP
    return store.save_sentiment(
        flat(score), key=key_of(close, timeframe), close_time=close, ath=score,
        l1=flat(score if l1 is None else l1),
        ungated=flat(score), source_type="L1_ONLY", deliberation=None, profile=PROFILE,
        timeframes=("M15", "H1"),
    )  # fmt: skip


def fill(store: Any, sid: str, **more: Any) -> None:
    store.enqueue_signal(opening(sid, **more))
    for state in ("PUBLISHED", "FILLED"):
        store.move_signal(sid, state, fields={"price": 100.0} if state == "FILLED" else {})


def end(store: Any, sid: str, profit: float = -1.0) -> bool:
    return store.close_position(
        sid, price=99.0, time=NOON + STEP, profit=profit, r_multiple=profit / 10, reason="STOPPED"
    )


def test_a_claim_goes_its_way_once(store: Any) -> None:
    store.release_claim(KEY)  # there is none
    with pytest.raises(StoreUnavailable, match="claim lost"):
        store.require_claim(KEY)
    assert store.claim_tick(KEY) and not store.claim_tick(KEY)
    store.require_claim(KEY)
    store.release_claim(KEY)
    with pytest.raises(StoreUnavailable, match="claim lost"):
        store.finish_tick(KEY)
    assert store.claim_tick(KEY)
    store.finish_tick(KEY)
    store.release_claim(KEY)
    assert not store.claim_tick(KEY) and not store.skip_tick(KEY, "late", "")
    with pytest.raises(StoreUnavailable, match="claim lost"):
        store.finish_tick(KEY)
    others = [key_of(NOON + number * STEP) for number in (1, 2, 3)]
    store.claim_tick(others[1])
    store.claim_tick(others[2])
    store.release_claim(others[2])
    for other in others:
        assert store.skip_tick(other, "late", "x" * 900) and not store.skip_tick(other, "late", "")
        assert not store.claim_tick(other)
    assert store.claim_tick(key_of(NOON, "H1")) and store.claim_tick(key_of(NOON, instance=EUR))


def test_the_trading_state_is_the_newest_one(store: Any) -> None:
    assert store.trading_state() == "ACTIVE"
    with pytest.raises(ValueError, match="ASLEEP is no trading state; use ACTIVE, REDUCING"):
        store.set_trading_state("ASLEEP", "")
    assert store.reduce("a test") and not store.reduce("again")
    assert store.trading_state() == "REDUCING"
    assert store.halt("a test") and not store.halt("again") and not store.reduce("too late")
    assert store.trading_state() == "HALTED"
    store.set_trading_state("ACTIVE", "a person")
    assert store.trading_state() == "ACTIVE" and store.halt("straight")


def test_an_alarm_stands_once(store: Any) -> None:
    assert not store.end_alarm("a")
    assert store.raise_alarm("a", "LOST", "why") and not store.raise_alarm("a", "LOST", "again")
    assert store.raise_alarm("b", "LOST", "why")
    assert store.end_alarm("a") and not store.end_alarm("a")
    assert store.raise_alarm("a", "LOST", "once more") and not store.raise_alarm("b", "LOST", "")


def test_latches_and_the_paper_cursor_are_of_an_instance(store: Any) -> None:
    assert store.standing(BTC) == {"paper_cursor": None, "latches": [], "signal_event": 0}
    assert store.paper_cursor(BTC) is None
    for side in ("SELL", "BUY", "BUY"):
        store.set_latch(BTC, side)
    store.set_latch(EUR, "BUY")
    store.set_latch(EUR, "SELL", latched=False)
    store.set_paper_cursor(BTC, NOON)
    store.set_paper_cursor(BTC, NOON + STEP)
    store.enqueue_signal(opening())
    assert store.standing(BTC) == {
        "paper_cursor": "2026-02-13T12:15:00Z", "latches": ["BUY", "SELL"], "signal_event": 1,
    }  # fmt: skip
    assert store.paper_cursor(BTC) == NOON + STEP and store.paper_cursor(EUR) is None
    store.set_latch(BTC, "BUY", latched=False)
    assert (store.latches(BTC), store.latches(EUR)) == ({"SELL"}, {"BUY"})


def test_what_is_known_of_a_signal(store: Any) -> None:
    assert store.signal("T1") is None and store.last_state("T1") is None
    store.enqueue_signal(opening())
    store.enqueue_signal(opening("E1", instance=EUR))
    store.move_signal("T1", "PUBLISHED", detail="sent")
    store.note_signal("T1", "x" * 900)
    store.note_signal("T9", "nobody")
    store.learn("T1", ticket="7", opened_at=NOON)
    row = store.signal("T1")
    assert (row["state"], len(row["detail"]), row["ticket"]) == ("PUBLISHED", 500, "7")
    assert row["opened_at"] == "2026-02-13T12:00:00Z" and store.last_state("T1") == "PUBLISHED"
    with pytest.raises(ValueError, match="no column colour"):
        store.learn("T1", colour="red")
    for sid, order in (("C1", closing), ("C2", closing)):
        store.enqueue_signal(order(sid, "T1"))
    assert [row["sid"] for row in store.closes_of(BTC, "T1")] == ["C1", "C2"]
    assert store.closes_of(EUR, "T1") == store.closes_of(BTC, "T2") == []
    live = store.live_signals
    assert [row["sid"] for row in live(("PENDING",), None, "close")] == ["C1", "C2"]
    assert [row["sid"] for row in live(("PENDING", "PUBLISHED"), EUR, "open")] == ["E1"]
    assert [row["sid"] for row in live(("PUBLISHED",), None, "open")] == ["T1"]
    assert live(("FILLED",), None, "open") == []


def test_openings_that_are_not_finished_and_the_position_that_is_closed(store: Any) -> None:
    fill(store, "T1")
    store.enqueue_signal(opening("T2", instance=EUR))
    store.enqueue_signal(closing("C1", "T1"))
    assert sorted(row["sid"] for row in store.openings()) == ["T1", "T2"]
    being_closed = {row["sid"]: store.being_closed(row) for row in store.openings()}
    assert being_closed == {"T1": True, "T2": False}
    assert store.position(BTC).state == "CLOSING" and store.position(EUR).state == "PENDING"
    assert end(store, "T1") and not end(store, "T1")
    assert [row["sid"] for row in store.openings()] == ["T2"] and store.position(BTC) is None


def test_the_stop_of_a_position_is_where_it_was_moved_last(store: Any) -> None:
    fill(store, "T1")
    assert (store.position(BTC).stop, store.position(BTC).moved_from) == (90.0, None)
    for sid, stop in (("M1", 92.0), ("M2", 94.0), ("M3", 96.0)):
        store.enqueue_signal(closing(sid, "T1", kind="modify", stop=stop))
        store.move_signal(sid, "PUBLISHED")
        store.move_signal(sid, "FILLED" if sid < "M3" else "REJECTED")
    assert (store.position(BTC).stop, store.position(BTC).moved_from) == (94.0, 90.0)
    store.learn("T1", broker_stop=95.0)
    assert (store.position(BTC).stop, store.position(BTC).moved_from) == (95.0, 90.0)


def test_the_market_of_an_opening_is_kept_as_it_was_first(store: Any) -> None:
    for situation in (lessons.RISING, lessons.FLAT):
        store.keep_situation("T1", situation)
    assert store.situation("T1") == lessons.RISING and store.situation("T2") is None


def test_a_trade_has_one_lesson(store: Any) -> None:
    one, other = lessons.facts("T1"), lessons.won("T2")
    vetoed = replace(one, kind="vetoed", profit=None)
    numbers = [store.write_lesson(facts, lessons.words(facts)) for facts in (one, one, other)]
    assert numbers == [1, None, 2]
    assert store.write_lesson(vetoed, lessons.words(vetoed)) == 3
    assert store.lesson("T1").facts == one and store.lesson("T1", "vetoed").number == 3
    assert store.lesson("T1").words == (lessons.words(one),)
    assert store.lesson("T2", "vetoed") is None and store.lesson("T9") is None
    fresh = store.lessons_since(1, 1)
    assert [lesson.number for lesson in fresh.lessons] == [2, 3]
    assert (fresh.words, fresh.facts, fresh.words_number) == ([], 3, 3)
    assert store.lessons_since(3, 3) == ([], [], 3, 3)
    assert len(store.lessons_since(0, 0).lessons) == 3


def test_a_trade_leaves_its_lesson_with_its_end(store: Any) -> None:
    fill(store, "T1")
    store.keep_situation("T1", lessons.RISING)
    assert end(store, "T1")
    lesson = store.lesson("T1")
    assert (lesson.facts.outcome, lesson.facts.situation) == ("loss", lessons.RISING)


def test_vetoed_openings_are_followed_until_their_end(store: Any) -> None:
    assert store.vetoed_openings(BTC) == []
    later = replace(VETOED, sid="V0", decided_at=NOON + STEP)
    other = replace(VETOED, sid="V3", instance=EUR)
    twin = replace(VETOED, sid="V2")
    for vetoed in (later, twin, VETOED, other):
        store.keep_vetoed(vetoed)
    assert store.vetoed_openings(BTC) == [VETOED, twin, later]
    filled = replace(VETOED, price=100.5, opened_at=NOON, closing_at=NOON + STEP)
    store.keep_vetoed(filled)
    assert store.vetoed_openings(BTC) == [filled, twin, later]
    store.end_vetoed("V2")
    store.end_vetoed("V9")
    assert store.vetoed_openings(BTC) == [filled, later] and store.vetoed_openings(EUR) == [other]


def test_a_stretch_of_vetoes_is_of_one_side(store: Any) -> None:
    store.set_veto_stretch(BTC, None)
    assert store.veto_stretch(BTC) is None
    for side in ("BUY", "SELL"):
        store.set_veto_stretch(BTC, side)
        assert store.veto_stretch(BTC) == side
    store.set_veto_stretch(EUR, "BUY")
    store.set_veto_stretch(BTC, None)
    assert (store.veto_stretch(BTC), store.veto_stretch(EUR)) == (None, "BUY")


def test_scores_are_remembered_by_close(store: Any) -> None:
    scores = [save(store, number, number / 10) for number in range(4)]
    hour = save(store, 3, 0.9, "H1")
    assert scores[1].consensus == 0.1 and hour.consensus > 0.3
    history = store._history(BTC, "M15", NOON + 3 * STEP, 2)
    assert history == [
        ("2026-02-13T12:15:00Z", 0.1, "HOLD"), ("2026-02-13T12:30:00Z", 0.2, scores[2].verdict),
    ]  # fmt: skip
    assert store._history(EUR, "M15", NOON + STEP, 9) == []
    latest = store._latest_composites(KEY, NOON + 2 * STEP, ("M15", "H1"))
    assert list(latest) == ["M15"] and latest["M15"][0] == NOON + 2 * STEP
    assert store._latest_composites(KEY, NOON - STEP, ("M15",)) == {}
    assert list(store._latest_composites(KEY, NOON + 3 * STEP, ("M15", "H1"))) == ["M15", "H1"]
    for number in (1, 3, 4):  # a question about the past, and one about now
        moves, newest = store._markov(BTC, "M15", NOON + number * STEP, PROFILE)
        assert newest == store._history(BTC, "M15", NOON + number * STEP, 99)
        assert moves == store._markov(BTC, "M15", NOON + number * STEP, PROFILE)[0]


def test_what_the_consensus_may_come_to_counts_l1_of_what_closes_with_it(store: Any) -> None:
    save(store, 0, 0.1, "H1")
    save(store, 0, 0.3)
    save(store, 4, 0.9, "H1")
    close = NOON + 4 * STEP

    def foreseen(together: dict[str, float]) -> list[tuple[float, float]]:
        return store.foresee(
            key_of(close), close, l1=flat(0.5), ath=0.5, profile=PROFILE,
            timeframes=("M15", "H1", "H4"), together=together,
        )  # fmt: skip

    before = {"H1": (NOON, dict.fromkeys(CHAINS, 0.1)), "M15": (NOON, dict.fromkeys(CHAINS, 0.3))}
    for together, siblings in (
        ({}, {"H1": 0.9}), ({"H4": 0.7}, {"H1": 0.9, "H4": 0.7}), ({"M15": 0.2}, {"H1": 0.9}),
    ):  # fmt: skip
        assert foreseen(together) == call_policy.foreseen(
            "M15", 0.5, close, together=siblings, known=before, weights=PROFILE.timeframe_weights
        )


def test_the_company_of_a_tick_is_what_closed_before_and_the_longer_ones_with_it(
    store: Any,
) -> None:
    save(store, -1, 0.3)
    save(store, -3, 0.1, "H1")
    fill(store, "T1")
    store.set_latch(BTC, "SELL")

    def company(together: dict[str, float]) -> Any:
        return store.company(KEY, NOON, ("M15", "H1"), together)

    hour = {"H1": (NOON - 3 * STEP, dict.fromkeys(CHAINS, 0.1))}
    held, latched = OpenSide("LONG", "FILLED"), frozenset(["SELL"])
    assert company({}) == OpeningContext(hour, held, latched)
    assert company({}).as_dict() == {"held": ["LONG", "FILLED"], "latched": ["SELL"]}
    longer = {"H4": (NOON, dict.fromkeys(CHAINS, 0.7))}
    assert company({"H4": 0.7, "M5": 0.2}) == OpeningContext(hour | longer, held, latched)
    end(store, "T1")
    assert company({}).as_dict() == {"held": None, "latched": ["SELL"]}
    store.reduce("a test")
    assert company({}) is None, "nothing may open now"


def test_a_transaction_that_raises_leaves_nothing(store: Any) -> None:
    def lives() -> None:
        with store.transaction():
            store.claim_tick(KEY)
            save(store, 0)
            fill(store, "T1")
            end(store, "T1")
            store.set_latch(BTC, "BUY")
            store.set_paper_cursor(BTC, NOON)
            store.halt("a test")
            store.raise_alarm("a", "LOST", "why")
            store.end_alarm("b")
            store.keep_situation("T2", lessons.RISING)
            store.end_vetoed("V1")
            store.set_veto_stretch(BTC, None)
            raise RuntimeError

    store.raise_alarm("b", "LOST", "why")
    store.keep_vetoed(VETOED)
    store.set_veto_stretch(BTC, "BUY")
    with pytest.raises(RuntimeError):
        lives()
    assert store.standing(BTC) == {"paper_cursor": None, "latches": [], "signal_event": 0}
    assert store.claim_tick(KEY) and store.signals() == [] and store.trading_state() == "ACTIVE"
    assert store._history(BTC, "M15", NOON + STEP, 9) == [] and store.lesson("T1") is None
    assert store.situation("T2") is None and store.vetoed_openings(BTC) == [VETOED]
    assert store.veto_stretch(BTC) == "BUY" and store.raise_alarm("a", "LOST", "why")
    assert not store.raise_alarm("b", "LOST", "it still stands")
    assert store.write_lesson(lessons.facts("T1"), lessons.words(lessons.facts("T1"))) == 1


# --- the database alone ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "context"),
    [
        ({"together": []}, (0.9, ["LONG", "FILLED"], ["SELL"])),
        ({"together": ["M15"], "before": {"latches": ["BUY"]}, "signals": []},
         (0.54, ["LONG", "FILLED"], ["BUY"])),
        ({"together": ["M15"], "company": {"held": None, "latched": []}, "signals": [1]},
         (0.54, None, [])),
        ({"together": ["M15"], "company": {"held": None, "latched": []}, "signals": []},
         (0.54, ["LONG", "FILLED"], [])),
    ],
    ids=["alone", "without company", "sent something", "sent nothing"],
)  # fmt: skip
def test_what_debated_beside_a_tick_tells_what_stood_before_it(
    tmp_path: Path, record: dict[str, Any], context: tuple[float, Any, list[str]]
) -> None:
    """The hour that closed with it is stored already: its final score counts only if it ran alone;
    else its L1 score does.
    """
    store = open_database(tmp_path)
    save(store, -4, 0.1, "H1")
    save(store, 0, 0.9, "H1", l1=0.5)
    store.write_journal(key_of(NOON, "H1"), record)
    fill(store, "T1")
    store.set_latch(BTC, "SELL")
    found = store.company(KEY, NOON, ("M15", "H1"), {})
    final, held, latched = context
    assert found is not None and found.as_dict() == {"held": held, "latched": latched}
    close, composites = found.latest["H1"]
    assert (close, round(composites["final"], 9)) == (NOON, final)


# --- memory alone ---------------------------------------------------------------------------------


def full(store: MemoryStore) -> MemoryStore:
    """Fill every part of a store's state."""
    for number in range(3):
        save(store, number, number / 10)
    store.claim_tick(KEY)
    fill(store, "T1")
    store.enqueue_signal(closing("C1", "T1"))
    end(store, "T1")
    fill(store, "T2", instance=EUR)
    store.set_latch(BTC, "SELL")
    store.set_paper_cursor(BTC, NOON)
    store.keep_situation("T2", lessons.RISING)
    store.keep_vetoed(VETOED)
    store.set_veto_stretch(BTC, "BUY")
    store.halt("a test")
    store.raise_alarm("a", "LOST", "why")
    store._losses[BTC, "BUY"] = "2026-02-12T12:00:00Z"
    store._forgotten[BTC, "H1"] = "2026-02-12T12:00:00Z"
    store._kept = 2
    return store


def test_the_whole_state_goes_through_a_checkpoint() -> None:
    store = full(MemoryStore({BTC: PROFILE}))
    state = json.loads(json.dumps(store.as_json()))
    assert set(state) == {"version", *STATE}
    assert [name for name, part in state.items() if not part] == []
    again = MemoryStore.of(state, {BTC: PROFILE})
    assert again.as_json() == state
    for name in STATE:
        assert getattr(again, f"_{name}") == getattr(store, f"_{name}"), name
        assert type(getattr(again, f"_{name}")) is type(getattr(store, f"_{name}")), name
    assert again.take_trades() == store.take_trades() != []
    assert again.exposure(BTC, "M15", as_of=NOON + STEP) == store.exposure(
        BTC, "M15", as_of=NOON + STEP
    )
    assert again.position(EUR) == store.position(EUR) is not None
    assert again._markov(BTC, "M15", NOON + 9 * STEP, PROFILE) == store._markov(
        BTC, "M15", NOON + 9 * STEP, PROFILE
    )


def test_the_state_of_another_version_is_refused() -> None:
    for state in ({}, {**MemoryStore().as_json(), "version": memory.VERSION - 1}):
        with pytest.raises(ValueError, match=f"of version .*, not {memory.VERSION}"):
            MemoryStore.of(state)


def test_what_nobody_reads_again_is_dropped() -> None:
    store = MemoryStore()
    empty = store.as_json()
    assert (store.store_picture(b"x"), store.store_news([])) == ("", 0)
    for drop in (store.bar_revision, store.write_journal, store.write_calls, store.require_desk):
        assert drop(KEY) is None
    for no in (store.record_late, store.propose, store.proposal_waits, store.close_waits):
        assert no(KEY) is False
    assert store.record(KEY.text) == {} and store.win_rates(BTC, "M15") == {}
    assert store.as_json() == empty


def test_the_range_of_prices_is_what_the_replay_knows() -> None:
    assert MemoryStore().price_range(BTC, NOON, NOON + STEP) is None
    calls: list[Any] = []
    store = MemoryStore(ranges=lambda *asked: calls.append(asked) or PriceRange(1.0, 2.0))
    assert store.price_range(BTC, NOON, NOON + STEP) == PriceRange(1.0, 2.0)
    assert calls == [(BTC, NOON, NOON + STEP)]


def test_the_oldest_market_and_the_oldest_lesson_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "SITUATIONS", 2)
    monkeypatch.setattr(memory, "LESSONS", 2)
    store = MemoryStore()
    for sid in ("T1", "T2", "T1", "T3"):
        facts = lessons.facts(sid)
        store.keep_situation(sid, lessons.FLAT)
        store.write_lesson(facts, lessons.words(facts))
    assert [store.situation(sid) is None for sid in ("T1", "T2", "T3")] == [True, False, False]
    assert [store.lesson(sid) is None for sid in ("T1", "T2", "T3")] == [True, False, False]
    facts = lessons.facts("T1")
    assert store.write_lesson(facts, lessons.words(facts)) == 4, "its number is a new one"


def test_a_tick_that_is_not_newer_than_its_stream_is_refused() -> None:
    store = MemoryStore()
    save(store, 1)
    for number in (1, 0):
        with pytest.raises(ValueError, match="is not newer than the newest tick of its stream"):
            save(store, number)
    save(store, 0, timeframe="H1")


def test_claims_and_ticks_beyond_what_is_kept_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "CLAIMS", 3)
    monkeypatch.setattr(memory, "MARKOV_HISTORY", 3)
    store = MemoryStore()
    keys = [key_of(NOON + number * STEP) for number in range(9)]
    assert store.claim_tick(keys[1])
    store.release_claim(keys[1])
    for number, key in enumerate(keys):
        if number == 1:
            continue
        assert store.claim_tick(key)
        save(store, number)
        store.finish_tick(key)
    claims, stream = store._claims[BTC, "M15"], (BTC, "M15")
    assert 3 < len(claims) <= 7 and store._forgotten[stream] in {key.text[-20:] for key in keys}
    assert len(store._chains[stream]) <= 6
    assert not any(store.claim_tick(key) for key in keys if key != keys[1])
    assert store.claim_tick(keys[1]), "what was given back is not forgotten"
