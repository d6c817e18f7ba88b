"""The null store is the database to a tick: same records, same trades; its state goes into JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_config import DebateSettings
from agent_framework import Deliberation, l1_only_record
from agents.contracts import DebateContext
from instance_database import RECALLED
from tests.worlds import desks, journals, stores
from tests.worlds.remembering import keys, window
from torra.clock import Simulated, duration
from torra.config import Markov, Profile, validate
from torra.errors import StoreUnavailable
from torra.providers.rules.provider import RulesProvider
from torra.replay.shards import arm_words
from torra.store import ticks as claim_table
from torra.store.connection import TickKey, stamp
from torra.store.memory import MemoryStore
from torra.store.trade import memory_signals
from torra.store.trade import signals as signal_table
from torra.tick.debate import Debater, reads_no_notes
from torra.tick.edges import TickDeps
from torra.verdict import sentiment_rules
from torra_trader import TickOutcome, run_tick

BTC = "BTCUSD"
OFTEN = {"buy": 0.06, "sell": 0.06}
APART = "elapsed_ms"
"""The only field of a record that the two stores do not share: real time."""

CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "budget desk, closing": ({"on_opposite": "close"}, True),
    "L1 alone, reversing": ({"on_opposite": "reverse"}, False),
    "the gate vetoes a wide spread": ({"gate": {"max_spread_atr": 0.1}}, False),
    "nothing is sent": ({"execution": "off"}, False),
    "the desk halts": ({"on_opposite": "reverse", "risk": {"max_signals_per_hour": 1}}, False),
}


class Lived(NamedTuple):
    """What ticks came to, and the store that they were kept in."""

    outcomes: list[TickOutcome]
    store: Any


def profile_of(changes: Mapping[str, Any]) -> Profile:
    # By the record high alone these bars are bought and sold.
    settings = {"thresholds": OFTEN, "record_score": "high", **changes}
    return validate(Profile, settings, "a test")


def live(
    store: Any,
    profile: Profile,
    ticks: list[TickKey],
    *,
    asked: bool = False,
    between: Callable[[Any], Any] = lambda store: store,
    **edges: Any,
) -> Lived:
    """Run ticks; `between` may exchange the store before each of them."""
    voice, clock, outcomes = RulesProvider(), Simulated(desks.START), []
    for key in ticks:
        store = between(store)
        clock.set(key.bar_time + duration(key.timeframe))
        told = TickDeps(
            database=store,
            window=window(),
            submit=voice.submit if asked else None,
            provider=voice.name,
            clock=clock,
        )
        outcomes.append(
            run_tick(
                desks.BTC, key.timeframe, key.bar_time, clock.monotonic(),
                profile=profile, edges=replace(told, **edges),
            )
        )  # fmt: skip
    return Lived(outcomes, store)


def kept(store: MemoryStore) -> MemoryStore:
    """Take a store through a checkpoint."""
    told = json.loads(json.dumps(store.as_json()))
    again = MemoryStore.of(told, store._profiles)
    assert again.as_json() == told
    return again


def records(lived: Lived) -> list[dict[str, Any]]:
    told = [dict(outcome.record or {}) for outcome in lived.outcomes]
    assert all(record.pop(APART) >= 0.0 for record in told)
    return json.loads(json.dumps(told))


def trades(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["closed_at"], row["seq"]))


@pytest.mark.journey
@pytest.mark.parametrize("case", CASES)
def test_ticks_are_the_same_in_memory_as_in_a_database(
    case: str, tmp_path: Path, scaled: Callable[..., int]
) -> None:
    changes, asked = CASES[case]
    profile, ticks = profile_of(changes), keys(scaled(400, 12 if asked else 48))
    database = desks.open_database(tmp_path)
    database.apply_profile(BTC, profile.model_dump_json(), profile.digest())
    one = live(database, profile, ticks, asked=asked)
    numbers = iter(range(len(ticks)))
    other = live(
        MemoryStore({BTC: profile}), profile, ticks, asked=asked,
        between=lambda store: kept(store) if next(numbers) % 5 == 4 else store,
    )  # fmt: skip
    assert records(one) == records(other)
    assert other.store.take_trades() == trades(
        [row.as_json() for row in signal_table.closed_trades(database, BTC, 1000)]
    )
    assert other.store.take_trades() == []
    assert other.store.trading_state() == database.trading_state()
    assert other.store.positions() == database.positions()
    told = Counter(record["action"] for record in records(one))
    held = sum(bool(record["before"]["latches"]) for record in records(one))
    if case == "the gate vetoes a wide spread":
        assert 3 < held < len(ticks), "latches come and go"
    elif case == "nothing is sent":
        assert set(told) == {"HOLD"}
    elif case == "the desk halts":
        assert (
            len(other.store.as_json()["states"]) == len(claim_table.trading_states(database)) == 1
        )
    else:
        assert len(told) > 2, told


def test_a_debater_has_the_notes_unless_it_reads_none_and_nobody_keeps_them() -> None:
    read: list[bool] = []

    def debater(context: DebateContext, config: DebateSettings) -> Deliberation:
        read.append(bool(context.notes))
        return l1_only_record(context, config)

    def ask(debater: Debater, *, recording: bool) -> None:
        live(MemoryStore(), profile_of({}), keys(8)[:1], recording=recording, debater=debater)

    ask(debater, recording=False)
    marked = reads_no_notes(debater)
    ask(marked, recording=False)
    ask(marked, recording=True)
    assert read == [True, False, True]
    assert getattr(arm_words.speaking({}), "reads_no_notes", False)


def test_a_listener_has_the_record_though_nobody_keeps_it() -> None:
    heard: list[tuple[str, dict[str, Any]]] = []
    store = MemoryStore()
    live(
        store, profile_of({}), keys(8)[:2], recording=False,
        on_event=lambda kind, told: heard.append((kind, told)),
    )  # fmt: skip
    assert [kind for kind, _ in heard] == ["tick_start", "tick"] * 2
    assert heard[1][1]["bars"]["count"] == 750


def test_a_tick_that_fails_leaves_the_store_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the deciding transaction goes; the claim is given back and the tick can run again."""
    profile, ticks = profile_of({"on_opposite": "reverse"}), keys(48)
    whole = live(MemoryStore({BTC: profile}), profile, ticks)
    finish = MemoryStore.finish_tick
    failing = iter(range(len(ticks) * 2))

    def fail(self: MemoryStore, key: TickKey) -> None:
        finish(self, key)
        if next(failing) % 2 == 0:
            raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(MemoryStore, "finish_tick", fail)
    store = MemoryStore({BTC: profile})
    for number, key in enumerate(ticks):
        standing = store.as_json()
        with pytest.raises(StoreUnavailable):
            live(store, profile, [key])
        after = store.as_json()
        apart = {"claims", "cursors", "signals", "trades", "ended", "live_sids", "closes"}
        apart |= {"seq", "step_number", "kept", "learnt"}
        apart |= {"lessons", "newest_lesson", "vetoed"}  # written where the bars were lived through
        assert {n: after[n] for n in after if n not in apart} == {
            n: standing[n] for n in standing if n not in apart
        }
        (again,) = live(store, profile, [key]).outcomes
        assert again.result is not None and whole.outcomes[number].result is not None
        assert again.result.saved == whole.outcomes[number].result.saved, key
    assert store.take_trades() == whole.store.take_trades()


def test_an_inner_part_is_undone_alone() -> None:
    store = MemoryStore()
    with store.transaction():
        store.enqueue_signal(stores.opening("T1"))
        with pytest.raises(ValueError, match="has an opening"):
            a_failing_part(store)
    assert store.signals() == [store.signal("T1")]
    assert store.signals()[0]["state"] == "PENDING"
    assert store.standing(BTC) == {"paper_cursor": None, "latches": [], "signal_event": 1}
    assert store.trading_state() == "ACTIVE" and store.raise_alarm("a", "b", "c")


def a_failing_part(store: MemoryStore) -> None:
    with store.transaction():
        store.set_latch(BTC, "BUY")
        store.set_paper_cursor(BTC, stores.NOON)
        store.halt("a test")
        store.raise_alarm("a", "b", "c")
        store.move_signal("T1", "PUBLISHED")
        store.enqueue_signal(stores.opening("T2"))


SIGNAL_STEPS = st.lists(
    st.tuples(
        st.sampled_from(("open", "close", "move", "close position")),
        st.integers(0, 5),
        st.sampled_from((*("PENDING", "PUBLISHED", "FILLED", "PARTIAL", "CLOSED"),
                         *("REJECTED", "EXPIRED", "CANCELLED", "UNKNOWN", "NOT_SENT"))),
    ),
    max_size=30,
)  # fmt: skip


@pytest.mark.journey
@settings(max_examples=25, deadline=None)
@given(steps=SIGNAL_STEPS)
def test_signals_go_the_same_way_in_memory(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Any]
) -> None:
    """Every step, and every refusal of one, is the database's; so are the books at each moment."""
    database = stores.open_database(tmp_path_factory.mktemp("signals"))
    memory = MemoryStore()
    moment = stores.NOON
    for number, (what, name, state) in enumerate(steps):
        moment += timedelta(minutes=5)
        answers = [
            attempt(store, what, name, state, number, moment) for store in (database, memory)
        ]
        assert answers[0] == answers[1], (what, name, state)
        for ask in BOOKS:
            assert ask(database, moment) == ask(memory, moment), (what, name, state)


def attempt(
    store: Any, what: str, name: int, state: str, number: int, moment: datetime
) -> str | bool:
    sid, instance = f"T{name}", f"I{name % 2}"
    born: dict[str, Any] = {"instance": instance, "decided_at": moment, "bridge": "paper"}
    try:
        if what == "open":
            return bool(store.enqueue_signal(stores.opening(sid, **born)))
        if what == "close":
            return bool(store.enqueue_signal(stores.closing(f"C{number}", sid, **born)))
        if what == "move":
            fills = {"price": 101.0, "opened_at": moment} if state in ("FILLED", "PARTIAL") else {}
            return bool(store.move_signal(sid, state, detail="a step", fields=fills))
        profit = float(name - 3)
        return bool(
            store.close_position(
                sid, price=100.0 + profit, time=moment, profit=profit, r_multiple=profit / 10,
                reason="TARGET",
            )
        )  # fmt: skip
    except ValueError as error:
        return str(error)


BOOKS: tuple[Callable[[Any, datetime], Any], ...] = (
    lambda store, _: store.signals(),
    lambda store, _: store.signals(("PENDING", "PUBLISHED"), "I1"),
    lambda store, _: sorted(store.positions(), key=lambda item: item.instance),
    lambda store, _: [store.position("I0"), store.paper_position("I1")],
    lambda store, _: store.paper_orders("I0", {row["sid"] for row in store.signals()}),
    lambda store, now: recalled(store, "I0", now),
    lambda store, now: recalled(store, "I1", now),
    lambda store, now: recalled(store, "I1", now + timedelta(minutes=1)),
    lambda store, now: store.exposure("I0", "M15", as_of=now),
    lambda store, now: store.levered("I1", "M15", "paper"),
    lambda store, now: store.positions_at("I0", now - timedelta(minutes=5)),
    lambda store, _: store.standing("I0"),
)


def recalled(store: Any, instance: str, now: datetime) -> list[dict[str, Any]]:
    """Return the closed trades that a memory context looks at, as the database reads them."""
    rows = store._recent_trades(instance, now)
    return [{name: row[name] for name in RECALLED} for row in rows]


HISTORY = st.lists(
    st.tuples(st.sampled_from((1, 1, 1, 2)), st.floats(-1, 1).map(lambda value: round(value, 2))),
    max_size=60,
)


@given(history=HISTORY, limit=st.integers(1, 20))
def test_moves_counted_as_they_come_are_those_of_the_newest_ticks(
    history: list[Any], limit: int
) -> None:
    moves = sentiment_rules.MarkovMoves("M15", Markov(), limit)
    close, seen = datetime(2024, 1, 1, tzinfo=UTC), []
    for steps, value in history:
        close += steps * duration("M15")
        seen.append((close, value))
        moves.add(close, value)
        assert moves.view() == sentiment_rules.markov(seen[-limit:], "M15", Markov())


def test_finished_signals_are_forgotten_once_there_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory_signals, "SPARE", 4)
    monkeypatch.setattr(memory_signals, "RECENT_TRADES", 9)
    store, whole = MemoryStore(), MemoryStore()
    whole._kept = 1 << 40
    moment = stores.NOON
    for number in range(36):
        moment += timedelta(hours=7)
        for each in (store, whole):
            with each.transaction():
                live_trade(each, number, moment)
        now = moment + timedelta(minutes=1)
        assert store.exposure("I0", "M15", as_of=now) == whole.exposure("I0", "M15", as_of=now)
        assert recalled(store, "I0", now) == recalled(whole, "I0", now)
    with store.transaction():
        store.enqueue_signal(stores.opening("T36", instance="I0", decided_at=moment))
    assert len(whole._signals) == 72 and len(store._signals) < 36
    assert set(store._closes) <= set(store._signals)
    assert store._losses == {("I0", "BUY"): stamp(stores.NOON + timedelta(hours=7))}
    assert store.signal("T0") is None and store.closes_of("I0", "T0") == []
    assert store.position("I0") is not None and store.take_trades() == whole.take_trades()


def live_trade(store: MemoryStore, number: int, moment: datetime) -> None:
    """One trade from its opening to its close; only the very first one loses."""
    sid, profit = f"T{number}", -1.0 if number == 0 else 2.0
    store.enqueue_signal(stores.opening(sid, instance="I0", decided_at=moment))
    store.enqueue_signal(stores.closing(f"C{number}", sid, instance="I0", decided_at=moment))
    for name in (sid, f"C{number}"):
        store.move_signal(name, "PUBLISHED")
        store.move_signal(name, "FILLED", fields={"price": 100.0, "opened_at": moment})
    store.close_position(
        sid, price=110.0, time=moment, profit=profit, r_multiple=profit, reason="CLOSED"
    )


def test_a_changed_copy_of_a_profile_has_a_digest_of_its_own() -> None:
    profile = journals.a_profile()
    digest = profile.digest()
    copies = [profile.model_copy(update={"execution": word}) for word in ("off", "approve")]
    assert len({digest, profile.digest(), *(copy.digest() for copy in copies)}) == 3
    assert profile.debate() is profile.debate()
    changed = profile.model_copy(
        update={"gate": profile.gate.model_copy(update={"min_valid_bars": 9})}
    )
    assert changed.debate().gate.min_valid_bars == 9
