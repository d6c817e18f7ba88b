"""What L1 alone would have done at a stored tick, what was done, and what each came to.

L1's verdict meets the position and the account that the desk had at that tick, by the same risk
engine, with the gate's own rules as if no analyst had been heard, and without conviction. Where a
risk officer sits its rows and the budget of the code's own regime hold for L1 too: they are
arithmetic, and no agent is credited with them. A side that was latched before the tick stays so,
whoever vetoed it. Where that opens a trade, the
stored bars after the tick fill it on paper (torra.replay.l1), and the stored verdicts of L1 may
close it. Nothing is stored, sent or asked; a damaged record gives its verdicts, and that the rest
is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError

import signal_bridge
from agents import risk_gate
from agents.contracts import SCORE_DECIMALS, GateRuling
from agents.risk_officer import RiskOverlay
from instance_database import Database
from technical_calculator import WARM_UP, score_frame
from torra.clock import duration, parse
from torra.config import Instance, Profile
from torra.desk.journal_ticks import own_veto, swarm_observation
from torra.errors import MALFORMED, ConfigError
from torra.evaluation.observations import TradeObservation
from torra.replay.l1.sweep import L1Backtest
from torra.replay.l1.trades import END, L1Course, account_of, gate_flags
from torra.replay.l1.verdicts import BUY, SELL, Flags, micros
from torra.replay.live import rows_alone
from torra.replay.rerun.inputs_then import NotAgain, Spoilt, profile_then
from torra.store import standings as standing_table
from torra.store.trade.positions import as_position
from torra.tick.marks import EXECUTION_OFF, PROPOSED
from torra.tick.tick_record import LAST_PRICE, TickRecord, load
from torra.verdict import risk_engine, sentiment_rules
from torra.verdict.order_levels import levels
from torra.verdict.position_size import size
from torra.verdict.risk_engine import CLOSING, Account, Decision, Position, TradingState
from torra.verdict.signal_states import POSITION_STATES
from torra.words.deny_reasons import DenyReason

Kind = Literal["verdict", "action", "size"]

BEFORE: Final = 230
AFTER: Final = 500
"""Bars before a tick that scores need, and bars after it within which its trade must end."""

AT_ONCE: Final = 1_500
"""Bars more than one tick needs that are read and scored for the ticks before it in a list."""

WORDS: Final = {"BUY": BUY, "SELL": SELL}

NOT_SENT: Final = (PROPOSED, EXECUTION_OFF)
"""Reasons of a HOLD that the profile's execution made of an order that was wanted."""

OPENING: Final = ("OPEN_BUY", "OPEN_SELL", "REVERSE")


@dataclass(frozen=True, slots=True)
class CameTo:
    """What an opening came to: `state` closed, open, none (no opening) or unknown.

    `r` in units of its risk and `money` in the account's currency, both None unless it is closed.
    """

    state: Literal["closed", "open", "none", "unknown"]
    r: float | None = None
    money: float | None = None


NO_TRADE: Final = CameTo("none")
UNKNOWN: Final = CameTo("unknown")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict and what follows from it; `action` None where it is not known."""

    verdict: str
    action: str | None = None
    reason: str = ""
    lots: float | None = None
    came_to: CameTo = UNKNOWN


@dataclass(frozen=True, slots=True)
class ChangedTick:
    """One tick that agents changed, and what of it (`changed`)."""

    key: str
    instance: str
    symbol: str
    timeframe: str
    bar_time: str
    close_time: str
    changed: tuple[Kind, ...]
    l1: Outcome
    done: Outcome


class ScoredBars:
    """The stored bars around ticks, read and scored once for all that lie near each other."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._held: dict[tuple[str, str], _Scored] = {}

    def around(
        self, instance: Instance, close: datetime, until: datetime | None = None
    ) -> L1Backtest | None:
        """Return the bars around a tick, scored, with the ticks from it on; None without bars.

        They end AFTER bars later, or where `until` says so.
        """
        end = until or close + AFTER * duration(instance.shortest)
        frames, scored = {}, {}
        for name in instance.timeframes:
            wanted = BEFORE + (end - close) // duration(name) + 1
            held = self._held.get((instance.id, name))
            if held is None or not held.has(end, wanted):
                limit = wanted + AT_ONCE
                bars = self.database.load_bars(instance.id, name, as_of=end, limit=limit)
                held = _Scored.of(bars, duration(name), end, whole=len(bars) < limit)
                self._held[instance.id, name] = held
            frames[name], scored[name] = held.until(end, wanted)
        begin = close - timedelta(microseconds=1)
        try:
            return L1Backtest(instance, frames, scored=scored, begin=begin, end=end)
        except ConfigError:
            return None


@dataclass(frozen=True, slots=True)
class _Scored:
    """Bars of one timeframe that were closed at `end`, and their scores; `whole`: all there are."""

    bars: pd.DataFrame
    scores: pd.DataFrame
    step: timedelta
    end: datetime
    whole: bool

    @classmethod
    def of(cls, bars: pd.DataFrame, step: timedelta, end: datetime, *, whole: bool) -> _Scored:
        scores = score_frame(bars) if len(bars) >= WARM_UP else bars
        return cls(bars, scores, step, end, whole)

    def has(self, end: datetime, wanted: int) -> bool:
        """Return whether the newest `wanted` bars closed at `end` are here, or all there are."""
        return end <= self.end and (self.whole or self._closed(end) >= wanted)

    def until(self, end: datetime, wanted: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the newest bars closed at `end`, at most so many, and their scores."""
        last = self._closed(end)
        some = slice(max(0, last - wanted), last)
        return self.bars.iloc[some], self.scores.iloc[some]

    def _closed(self, end: datetime) -> int:
        return int(self.bars.index.searchsorted(pd.Timestamp(end - self.step), side="right"))


def changed_tick(
    bars: ScoredBars, known: Mapping[str, Instance], torra_key: str
) -> ChangedTick | None:
    """Return a tick beside what L1 alone would have done; None if agents changed nothing of it."""
    database = bars.database
    row = standing_table.decided_tick(database, torra_key)
    if row is None:
        return None
    record = load(torra_key, row["record"])
    if isinstance(record, TickRecord) and record.deliberation.in_shadow:
        return None
    instance = known[row["instance"]]
    l1, done = (
        Outcome(row["l1_verdict"]),
        Outcome(row["verdict"], row["action"], row["reason"] or ""),
    )
    profile = None
    if isinstance(record, TickRecord):
        profile = _profile(database, record)
        l1, done = _courses(database, record, profile, l1, done)
    changed = _changes(l1, done)
    if not changed:
        return None
    if l1.action in OPENING and profile is not None:
        came = paper_trade(bars, instance, profile, row, l1.lots or 0.0)
        l1 = replace(l1, came_to=came)
    elif l1.action is not None:
        l1 = replace(l1, came_to=NO_TRADE)
    return ChangedTick(
        key=torra_key,
        instance=instance.id,
        symbol=instance.symbol,
        timeframe=row["timeframe"],
        bar_time=row["bar_time"],
        close_time=row["close_time"],
        changed=changed,
        l1=l1,
        done=replace(done, came_to=_came_to(database, row, instance.symbol, done)),
    )


def _changes(l1: Outcome, done: Outcome) -> tuple[Kind, ...]:
    found: list[Kind] = []
    if l1.verdict != done.verdict:
        found.append("verdict")
    if l1.action is not None and done.action is not None:
        if l1.action != done.action:
            found.append("action")
        elif l1.lots is not None and done.lots is not None and l1.lots != done.lots:
            found.append("size")
    return tuple(found)


# --- the two courses of a tick --------------------------------------------------------------------


def _profile(database: Database, record: TickRecord) -> Profile | None:
    try:
        return profile_then(
            database, record.instance, record.profile, record.execution, record.as_of
        ).profile
    except (NotAgain, Spoilt, ValidationError):
        return None


def _courses(
    database: Database, record: TickRecord, profile: Profile | None, plain: Outcome, told: Outcome
) -> tuple[Outcome, Outcome]:
    """Return what L1 alone would have done, and what was done, before what each came to."""
    if profile is None or record.hosted is not None:
        return plain, told
    position = _position(database, record)
    try:
        action = _without_agents(record, profile, position)
        done = _done(record, profile, position, told)
    except (ConfigError, *MALFORMED):  # an unknown symbol, or an exposure that was altered
        return plain, told
    return Outcome(plain.verdict, action.name, action.reason, _opening_lots(action)), done


def _position(database: Database, record: TickRecord) -> Position | None:
    held = standing_table.opening_at(
        database, record.instance, record.timeframe, parse(record.as_of)
    )
    if held is None:
        return None
    return as_position(held | {"state": CLOSING if held["closing"] else "FILLED"})


def _without_agents(
    record: TickRecord, profile: Profile, position: Position | None
) -> risk_engine.Action:
    """Return the action of L1's verdict at that tick, by the gate's own rules alone."""
    exposure: dict[str, Any] = dict(record.desk.exposure)
    last_price = exposure.pop(LAST_PRICE, None)
    rule, verdict = _rules(record, profile), record.l1_verdict
    outer = (record.l1_consensus, record.l1_consensus)
    latched = sentiment_rules.release_latch(record.before.latches, outer, profile.thresholds)
    late = parse(record.now) - parse(record.as_of)
    decision = Decision(
        verdict=verdict,
        price=record.close,
        atr=record.atr,
        multiplier=rule.multiplier,
        veto=rule.vetoes(verdict) or verdict in latched,
        opening_stands=True,
        last_price=last_price,
        bar_age=max(0.0, late / duration(record.timeframe)),
    )
    state = cast(TradingState, record.desk.trading_state)
    account = Account(trading_state=state, **exposure)
    return risk_engine.review(decision, position, account, profile.symbol(record.symbol), profile)


def _rules(record: TickRecord, profile: Profile) -> GateRuling:
    """Return what the rules say, an officer's among them, as if no analyst had been heard."""
    debate, rule = record.deliberation, record.gate.rule
    apart = max(debate.panel.spread.values(), default=0.0)
    multiplier = risk_gate.without_analysts(rule.multiplier, apart, profile.gate)
    if debate.swarm is None:
        return GateRuling(multiplier, rule.veto)
    rows = rows_alone(swarm_observation(record.timeframe, debate.swarm, rule, record.gate.ruling))
    # The budget is one of the storm's factors: what the multiplier took is not taken once more.
    left = min(1.0, rows.plain / rows.storm) if rows.storm > 0.0 else 1.0
    shares = round(multiplier * left, SCORE_DECIMALS)
    return GateRuling(shares, own_veto(rule.veto, rule.reasons), veto_sides=rows.veto_sides)


def _done(
    record: TickRecord, profile: Profile, position: Position | None, told: Outcome
) -> Outcome:
    """Return what the tick did; an order that a person was asked about counts as wanted."""
    if record.signal is not None and record.signal.kind == "open":
        return Outcome(told.verdict, told.action, told.reason, record.signal.lots)
    if told.reason not in NOT_SENT:
        return told
    wanted = risk_engine.intent(told.verdict, position, profile.on_opposite).name
    # An opening was taken from a reverse that left a reason of denial.
    if wanted == "REVERSE" and record.denied:
        wanted = "CLOSE"
    lots = _lots(record, profile) if wanted in OPENING else None
    return Outcome(told.verdict, wanted, told.reason, lots)


def _lots(record: TickRecord, profile: Profile) -> float | None:
    """Return the lots of an opening that was wanted and not sent."""
    spec, side, debate = profile.symbol(record.symbol), record.verdict, record.deliberation
    found = levels(side, record.close, record.atr, spec)
    if isinstance(found, DenyReason):
        return None
    conviction = debate.panel.agreement(side).conviction
    budget = debate.swarm.budget if debate.swarm else 1.0
    return size(found, spec, profile.risk, record.gate.multiplier * conviction * budget)


def _opening_lots(action: risk_engine.Action) -> float | None:
    return next((draft.lots for draft in action.drafts if draft.kind == "open"), None)


# --- what each came to ----------------------------------------------------------------------------


def _came_to(database: Database, row: Mapping[str, Any], symbol: str, done: Outcome) -> CameTo:
    """Return what the opening of a tick came to, by the desk's books."""
    if done.action is None or done.action not in OPENING:
        return NO_TRADE if done.action else UNKNOWN
    # A proposal has the id of the signal that it becomes once a person says yes.
    sid = signal_bridge.signal_id(
        row["instance"], symbol, row["timeframe"], parse(row["bar_time"]),
        kind="open", side=row["verdict"],
    )  # fmt: skip
    signal = database.signal(sid)
    if signal is None:
        return NO_TRADE
    if signal["state"] == "CLOSED":
        return CameTo("closed", signal["r_multiple"], signal["profit"])
    return CameTo("open") if signal["state"] in POSITION_STATES else NO_TRADE


def paper_trade(
    bars: ScoredBars, instance: Instance, profile: Profile, row: Mapping[str, Any], lots: float
) -> CameTo:
    """Return what L1's opening of a tick would have come to on the stored bars, on paper.

    Open if neither a level nor an opposite verdict of L1 ended it within AFTER bars, unknown where
    bars are missing.
    """
    close = parse(row["close_time"])
    ground = bars.around(instance, close)
    if ground is None:
        return UNKNOWN
    verdict = _verdicts(bars.database, instance, ground, row["timeframe"], close, row["l1_verdict"])
    if verdict is None:
        return UNKNOWN
    made = walk(ground, profile, verdict, np.zeros(len(verdict), bool), (), {})
    trade = next((one for one in made if one.decided == close), None)
    if trade is None:
        # An order of the newest bar waits for the next one.
        waits = not (ground.market.opens >= micros(close)).any()
        return CameTo("open") if waits else NO_TRADE
    if trade.reason == END:
        return CameTo("open")
    # Its size is that of its own tick: a streak of losses on the way to it is not in these bars.
    return CameTo("closed", trade.r, round(trade.profit / trade.lots * lots, 8))


def walk(
    ground: L1Backtest,
    profile: Profile,
    verdict: NDArray[np.int8],
    veto: Flags,
    rows: tuple[RiskOverlay, ...],
    multipliers: Mapping[int, float],
) -> tuple[TradeObservation, ...]:
    """Return the trades of verdicts on paper, each tick's; any execution counts as auto."""
    auto = profile.model_copy(update={"execution": "auto"})
    spread = auto.symbol(ground.instance.symbol).spread
    _, volatile = gate_flags(ground.market, auto.gate, spread)
    course = L1Course(verdict, veto, volatile, rows, multipliers)
    return account_of(ground.market, course, ground.instance, auto, {}).trades


def tick_keys(ground: L1Backtest) -> list[tuple[str, int]]:
    """Return the timeframe and the close of each tick of a ground, in running order."""
    names = [stream.timeframe for stream in ground.ticks.streams]
    places = zip(ground.ticks.stream.tolist(), ground.ticks.close.tolist(), strict=True)
    return [(names[stream], at) for stream, at in places]


def _verdicts(
    database: Database,
    instance: Instance,
    ground: L1Backtest,
    timeframe: str,
    close: datetime,
    first: str,
) -> NDArray[np.int8] | None:
    """Return the course of a trade: L1's verdict at its tick, and the opposite ones after it.

    The verdicts are those that the desk stored, so no score needs the whole history. None where
    the bars do not have the tick.
    """
    stored = {
        (name, micros(parse(at))): WORDS.get(word, 0)
        for name in instance.timeframes
        for at, word in standing_table.l1_verdicts(database, instance.id, name, close, AFTER)
    }
    keys = tick_keys(ground)
    mine = (timeframe, micros(close))
    if mine not in keys:
        return None
    at, side = keys.index(mine), WORDS[first]
    found = np.array([stored.get(key, 0) for key in keys], dtype=np.int8)
    # Once it is over, the same verdict must not open it again.
    found[:at], found[found == side] = 0, 0
    found[at] = side
    return found
