"""The Expert Advisor and the paper bridge play one tape of ticks and say the same.

The advisor is mql5/TorraBridge.mq5 itself, compiled against a simulated broker; it reads signed
files from a folder and answers in files. The paper bridge is a pure function over bars, of which
each tick is two: the tick itself, which stops and targets meet, and the moment after, when the
orders meet the same quote. They share nothing but the tape (tests/worlds/tick_tape.py): the same
signals are executed, at prices within one tick, and the others refused for the same reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.doubles.compiled_ea import ACCOUNT, CompiledEa
from tests.worlds.tick_tape import (
    LOT_MAX,
    STOPS_LEVEL,
    SYMBOL,
    Limits,
    Plea,
    Tick,
    tape,
)
from torra.advisor_protocol import PROTOCOL
from torra.bridges import paper
from torra.bridges.guards import REASONS, GuardRequest, View
from torra.bridges.torra import messages
from torra.config import SYMBOLS, SymbolSpec

SEED = 1
"""Of the tape on which every guard objects at least 20 times in 500 ticks and once in 80."""

KEY = "the key of both sides"
GOLD = SYMBOLS["XAUUSD"].model_copy(update={"stops_level": STOPS_LEVEL, "lot_max": LOT_MAX})
ONE_TICK = GOLD.tick_size + 1e-9


class Answer(NamedTuple):
    """What became of one order."""

    status: str
    reason: str = ""
    price: float = 0.0
    volume: float = 0.0


class Ending(NamedTuple):
    """How a position ended by itself or by a close; `at` in epoch seconds, profit in money."""

    sid: str
    how: str
    at: int
    price: float
    volume: float
    profit: float


@dataclass
class Story:
    """What one side made of a tape."""

    answers: dict[str, Answer] = field(default_factory=dict)
    endings: list[Ending] = field(default_factory=list)

    def reasons(self) -> Counter[str]:
        return Counter(answer.reason for answer in self.answers.values() if answer.reason)


def differences(one: Story, other: Story) -> Iterator[str]:
    """Yield what the two tell differently; prices and profits may be one tick apart."""
    for sid in sorted(one.answers.keys() | other.answers.keys()):
        a, b = one.answers.get(sid), other.answers.get(sid)
        same = a and b and a[:2] == b[:2] and abs(a.volume - b.volume) < 1e-9
        if not (same and a and b and abs(a.price - b.price) <= ONE_TICK):
            yield f"{sid}: {a} and {b}"
    if [item[:3] for item in one.endings] != [item[:3] for item in other.endings]:
        yield f"endings: {one.endings} and {other.endings}"
        return
    for mine, theirs in zip(one.endings, other.endings, strict=True):
        tick = ONE_TICK / GOLD.tick_size * GOLD.tick_value * mine.volume + 0.01
        if abs(mine.price - theirs.price) > ONE_TICK or abs(mine.volume - theirs.volume) > 1e-9:
            yield f"ending: {mine} and {theirs}"
        elif abs(mine.profit - theirs.profit) > tick:
            yield f"profit: {mine} and {theirs}"


# --- the paper bridge -----------------------------------------------------------------------------


@dataclass
class OnPaper:
    """Plays a tape on paper; `spec` are the symbol's conditions."""

    spec: SymbolSpec = GOLD
    story: Story = field(default_factory=Story)
    position: paper.PaperPosition | None = None
    entries: Counter[date] = field(default_factory=Counter)

    def play(self, ticks: list[Tick]) -> Story:
        for tick in ticks:
            self._meet(tick, [])
            for plea in tick.pleas:
                self._ask(tick, plea)
        return self.story

    def _ask(self, tick: Tick, plea: Plea) -> None:
        order = plea.order
        reason = paper.acceptance(asked(plea), tick.at, self._conditions(tick))
        if reason:
            self.story.answers[order.sid] = refused(reason)
            return
        levels = (order.stop, order.target) if order.kind == "open" else (None, None)
        waiting = paper.PaperOrder(
            order.sid, order.kind, order.side, order.lots, *levels, tick.at, entry=order.entry,
            max_spread_pts=order.max_spread_pts, max_dev_pts=order.max_dev_pts,
            closes=order.closes or None,
        )  # fmt: skip
        self._meet(tick, [waiting])

    def _meet(self, tick: Tick, orders: list[paper.PaperOrder]) -> None:
        bar = paper.Bar(tick.at, tick.bid, tick.bid, tick.bid, tick.bid)
        conditions = self._conditions(tick)
        left, self.position, events = paper.advance(
            orders, self.position, bar, tick.spread, self.spec, conditions
        )
        assert not left
        for event in events:
            self._book(tick, event, {order.sid: order.kind for order in orders})

    def _book(self, tick: Tick, event: paper.PaperEvent, kinds: dict[str, str]) -> None:
        if event.kind in ("STOPPED", "TARGET", "CLOSED"):
            told = (event.price, event.volume, event.profit)
            at = int(tick.at.timestamp())
            self.story.endings.append(Ending(event.sid, event.kind, at, *told))
            return
        answer = Answer(event.kind, event.reason, event.price, event.volume)
        self.story.answers[event.sid] = answer
        if event.kind != "REJECTED" and kinds[event.sid] == "open":
            self.entries[tick.at.date()] += 1

    def _conditions(self, tick: Tick) -> View:
        return View(
            now=0,
            bid=0.0,
            ask=0.0,
            digits=0,
            channel="main",
            account=ACCOUNT,
            real_account="live" in tick.trouble,
            halted="kill" in tick.trouble,
            connected="not_connected" not in tick.trouble,
            algo_allowed="autotrading_off" not in tick.trouble,
            trade_mode=tick.trade_mode,
            session_open="session" not in tick.trouble,
            max_lots=tick.limits.max_lots,
            max_positions=tick.limits.max_positions,
            max_trades_per_day=tick.limits.max_trades_per_day,
            trades_today=self.entries[tick.at.date()],
        )


def asked(plea: Plea) -> GuardRequest:
    order, flaws = plea.order, plea.flaws
    return GuardRequest(
        kind=order.kind,
        side=order.side,
        lots=order.lots,
        created=int(order.created.timestamp()),
        expires=int(order.expires.timestamp()),
        authentic="auth" not in flaws,
        version=PROTOCOL + ("version" in flaws),
        whole="schema" not in flaws,
        as_decided="decision" not in flaws,
        channel="other" if "channel" in flaws else "main",
        account=ACCOUNT + ("account" in flaws),
    )


def refused(reason: str) -> Answer:
    return Answer("EXPIRED" if reason == "stale" else "REJECTED", reason)


# --- the Expert Advisor ---------------------------------------------------------------------------

BROKEN: tuple[Callable[[str], str], ...] = (
    lambda body: body.replace(',"tf":"M15"', ""),
    lambda body: body + ',"more":1',
    lambda body: body.replace('"kind":"', '"kind":"x'),
    lambda body: body.replace(',"magic":', ',"magic":"1",').replace('"1",', '"', 1),
    lambda body: body.replace('"type":"market"', '"type":"limit"'),
    lambda body: body.replace('"policy":"reject_if_open"', '"policy":"add"'),
)
"""Ways in which a signed message does not fit the schema."""

ALTERED: tuple[dict[str, Any], ...] = (
    {"lots": Decimal("9.99")},
    {"sl": Decimal("0.01")},
    {"side": "SELL", "origin": "tick"},
    {"tp": Decimal("99999.00")},
    {"seal": "0" * 64},
    {"seal": ""},
)
"""Ways in which a signed message is not what was decided."""


def file_of(plea: Plea) -> bytes:
    """Return the message of an order, with its flaws."""
    order, flaws = plea.order, plea.flaws
    signal = messages.signal_of(
        order,
        channel="other" if "channel" in flaws else "main",
        account=ACCOUNT + ("account" in flaws),
    )
    if "decision" in flaws:
        signal = replace(signal, **ALTERED[order.seq % len(ALTERED)])
    key = KEY + " of others" if "auth" in flaws else KEY
    raw = messages.encode(signal, key, version=PROTOCOL + ("version" in flaws))
    if "schema" in flaws:
        body = raw[: -messages.TAIL_LENGTH].decode("ascii")
        raw = messages.seal(BROKEN[order.seq % len(BROKEN)](body), key)
    return raw


class OnAdvisor:
    """Plays a tape to the advisor; it is started anew whenever its inputs change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "main"
        self.market = folder / "broker"
        self.story = Story()
        self._limits: Limits | None = None
        self._deals = 0

    def play(self, ticks: list[Tick], **settings: object) -> Story:
        self.ea = CompiledEa(self.folder, key=KEY, broker=self.market, max_lots=0)
        with self.ea as ea:
            ea.symbol(
                SYMBOL, digits=2, tick_size=0.01, tick_value=1, contract=100, lot_min=0.01,
                lot_step=0.01, lot_max=LOT_MAX, stops_level=STOPS_LEVEL,
            )  # fmt: skip
            ea.set(free_margin=1_000_000_000, **settings)
            for tick in ticks:
                self._meet(tick)
        return self.story

    def _meet(self, tick: Tick) -> None:
        self._inputs(tick.limits)
        self._surroundings(tick)
        self.ea.quote(SYMBOL, tick.bid, tick.ask)
        for plea in tick.pleas:
            path = self.folder / "inbox" / name_of(plea)
            path.write_bytes(file_of(plea))
        self.ea.timer()
        for plea in tick.pleas:
            path = self.folder / "ack" / name_of(plea)
            if not path.exists():
                continue  # an answer that paper has and this story lacks is a difference
            raw = path.read_bytes()
            ack = messages.decode(raw, messages.Ack, KEY)
            assert (ack.sid, ack.seq, ack.adopted) == (plea.order.sid, plea.order.seq, False)
            told = (float(ack.price), float(ack.volume))
            self.story.answers[ack.sid] = Answer(ack.status, ack.reason, *told)
        self._endings()

    def _inputs(self, limits: Limits) -> None:
        if limits != self._limits:
            self._limits = limits
            self.ea.inputs.update(
                max_lots=limits.max_lots,
                max_positions=limits.max_positions,
                max_trades_per_day=limits.max_trades_per_day,
            )
            self.ea.restart()
            self.ea.timer()  # it makes its folders

    def _surroundings(self, tick: Tick) -> None:
        self.ea.clock(tick.at)
        self.ea.set(
            connected=int("not_connected" not in tick.trouble),
            algo=int("autotrading_off" not in tick.trouble),
            trade_mode="real" if "live" in tick.trouble else "demo",
        )
        session = "closed" if "session" in tick.trouble else "always"
        self.ea.symbol(SYMBOL, mode=tick.trade_mode, session=session)
        halt = self.folder / "control" / "HALT"
        if "kill" in tick.trouble:
            halt.write_text("a person")
        else:
            halt.unlink(missing_ok=True)

    def _endings(self) -> None:
        state = self.ea.broker_state()
        opened = {deal["position"]: deal for deal in state["deals"] if deal["entry"] == "in"}
        for deal in state["deals"][self._deals :]:
            if deal["entry"] == "out":
                self.story.endings.append(ending(deal, opened[deal["position"]]))
        self._deals = len(state["deals"])


def name_of(plea: Plea) -> str:
    return f"{plea.order.seq:010d}_{plea.order.sid}.json"


def ending(deal: dict[str, Any], opened: dict[str, Any]) -> Ending:
    how = {4: "STOPPED", 5: "TARGET"}.get(deal["reason"], "CLOSED")
    return Ending(
        opened["comment"], how, deal["gmt"], deal["price"], deal["volume"], deal["profit"]
    )


# --- both -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ticks(scaled: Callable[..., int]) -> list[Tick]:
    return tape(SEED, scaled(500, least=80))


@pytest.fixture(scope="module")
def advisor(ticks: list[Tick], tmp_path_factory: pytest.TempPathFactory) -> Story:
    return OnAdvisor(tmp_path_factory.mktemp("channel")).play(ticks)


def test_both_execute_the_same_orders_and_refuse_the_others_for_the_same_reasons(
    ticks: list[Tick], advisor: Story, record_property: Callable[[str, object], None]
) -> None:
    on_paper = OnPaper().play(ticks)
    assert list(differences(on_paper, advisor)) == []
    reasons, ends = advisor.reasons(), Counter(item.how for item in advisor.endings)
    filled = sum(answer.status == "FILLED" for answer in advisor.answers.values())
    told = f"{len(ticks)} ticks, {len(advisor.answers)} orders, {filled} executed, {dict(ends)}"
    print(told, dict(reasons))
    record_property("seen", told)
    least = 20 if len(ticks) >= 500 else 1
    assert {reason: reasons[reason] for reason in REASONS if reasons[reason] < least} == {}
    assert set(reasons) == set(REASONS)
    assert all(ends[how] for how in ("STOPPED", "TARGET", "CLOSED"))


@pytest.mark.timeout(1500)
def test_they_agree_on_other_tapes_too(tmp_path: Path, scaled: Callable[..., int]) -> None:
    for seed in range(1000, 1000 + scaled(8)):
        ticks = tape(seed, scaled(500, least=40))
        there = OnAdvisor(tmp_path / str(seed)).play(ticks)
        assert list(differences(OnPaper().play(ticks), there)) == [], seed


def test_orders_slip_alike(tmp_path: Path, scaled: Callable[..., int]) -> None:
    """The simulated broker lets entries and closes slip, stops only on paper."""
    ticks = tape(SEED + 1, scaled(500, least=40))
    there = OnAdvisor(tmp_path).play(ticks, slippage=7)
    slippery = GOLD.model_copy(update={"slippage": 0.07})
    here, smooth = OnPaper(slippery).play(ticks), OnPaper().play(ticks)
    for story in (here, there, smooth):
        story.endings = [item for item in story.endings if item.how == "CLOSED"]
    assert list(differences(here, there)) == []
    assert list(differences(smooth, there))
