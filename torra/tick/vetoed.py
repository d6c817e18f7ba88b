"""Follows the openings that the gate took away, so that a veto has a lesson as a trade has one.

The first veto of a stretch is an opening on paper with the levels of its tick: it fills at the next
bar's open and ends at its stop, its target, or at the open after L1 alone has turned to the other
side, as L1's own trade would have. `note` begins and closes them where a tick is stored, `follow`
lives them through the bars that went by. Both join the tick's transaction. No order comes of it,
and nothing here counts for a score, a verdict or an account.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import signal_bridge
from agents.contracts import GateRuling
from instance_database import ConsensusResult
from torra.bridges import paper
from torra.clock import duration
from torra.config import Instance, Profile, SymbolSpec
from torra.errors import StoreUnavailable
from torra.lessons.facts import facts_of
from torra.lessons.reviews import rules_words
from torra.tick.bar_window import Window
from torra.tick.paper import path as paper_path
from torra.tick.record import TickInputs
from torra.tick.tick_database import TickDatabase
from torra.verdict.order_levels import Levels, Side, levels
from torra.verdict.risk_engine import CLOSES, OPENS, Action
from torra.verdict.trade_outcome import judge
from torra.verdict.vetoed import REFUSERS, VetoedOpening, refusal
from torra.words.deny_reasons import DenyReason

log = logging.getLogger("torra")

VETOED: Final = frozenset(
    one.value
    for one in (DenyReason.GATE_VETO, DenyReason.GATE_CANNOT_OPEN, DenyReason.TRADER_DECLINED)
)
"""Reasons of an opening that the gate or the trader took away."""

LOTS: Final = 1.0
"""Any size will do: the result is in R."""


def opening_id(inputs: TickInputs, side: str) -> str:
    """Return the id of the signal by which a tick would open a side."""
    name, timeframe, bar_time = inputs.key
    symbol = inputs.instance.symbol
    return signal_bridge.signal_id(name, symbol, timeframe, bar_time, kind="open", side=side)


def note(
    inputs: TickInputs,
    saved: ConsensusResult,
    action: Action,
    ruling: GateRuling,
    database: TickDatabase,
) -> VetoedOpening | None:
    """Return the vetoed opening that begins with a tick; close those that L1 has turned from.

    A tick that trades nothing (execution off, or a late bar) begins none, and ends the stretch.
    """
    instance = inputs.instance
    for opening in database.vetoed_openings(instance.id):
        if opening.closing_at is None and saved.l1_verdict == CLOSES[OPENS[opening.side]]:
            database.keep_vetoed(replace(opening, closing_at=inputs.as_of))
    standing = database.veto_stretch(instance.id)
    vetoed = action.reason in VETOED and inputs.profile.execution != "off"
    verdict = saved.verdict if vetoed else None
    if verdict == standing:
        return None
    database.set_veto_stretch(instance.id, verdict)
    if verdict is None:
        return None
    side: Side = "BUY" if verdict == "BUY" else "SELL"
    prices = levels(side, inputs.close, inputs.atr, inputs.profile.symbol(instance.symbol))
    if not isinstance(prices, Levels):
        return None
    # That of a judge or an officer where their veto is what counts, so a lesson can say who
    # refused its opening.
    code = refusal(ruling, side) if action.reason == DenyReason.GATE_VETO else ""
    begun = VetoedOpening(
        sid=opening_id(inputs, side),
        instance=instance.id,
        symbol=instance.symbol,
        timeframe=inputs.timeframe,
        bar_time=inputs.bar_time,
        side=side,
        decided_at=inputs.as_of,
        entry=prices.entry,
        stop=prices.stop,
        target=prices.target,
        lived=inputs.as_of - duration(instance.shortest),
        reason=code or action.reason,
    )
    database.keep_vetoed(begun)
    return begun


def path(
    instance: Instance, window: Window, openings: Sequence[VetoedOpening], as_of: datetime
) -> list[paper.Bar]:
    """Return the bars since the least followed one of them; none where a feed has none to give."""
    if not openings:
        return []
    try:
        return paper_path(instance, window, min(one.lived for one in openings), as_of)
    except Exception as error:  # noqa: BLE001 - no tick fails for an order that nobody made
        log.info("%s: vetoed openings wait for their bars: %s", instance.id, error)
        return []


def follow(
    instance: Instance,
    openings: Sequence[VetoedOpening],
    bars: Sequence[paper.Bar],
    profile: Profile,
    database: TickDatabase,
    as_of: datetime,
) -> None:
    """Live vetoed openings through the bars since each of them was followed last.

    One that cannot be followed, or is of another symbol than the instance has now, is given up.
    """
    for opening in openings:
        if opening.symbol != instance.symbol:
            database.end_vetoed(opening.sid)
            continue
        try:
            with database.transaction():
                _follow(opening, bars, profile.symbol(opening.symbol), database, as_of)
        except StoreUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - no tick fails for an order that nobody made
            log.warning("the vetoed opening %s is given up: %s", opening.sid, error)
            database.end_vetoed(opening.sid)


def _follow(
    opening: VetoedOpening,
    bars: Sequence[paper.Bar],
    spec: SymbolSpec,
    database: TickDatabase,
    as_of: datetime,
) -> None:
    sid, side, levels = opening.sid, OPENS[opening.side], (opening.stop, opening.target)
    waiting: list[paper.PaperOrder] = []
    position: paper.PaperPosition | None = None
    if opening.price is None or opening.opened_at is None:
        entry = paper.PaperOrder(
            sid, "open", opening.side, LOTS, *levels, opening.decided_at, entry=opening.entry
        )
        waiting.append(entry)
    else:
        position = paper.PaperPosition(sid, side, LOTS, opening.price, *levels, opening.opened_at)
    if opening.closing_at is not None:  # L1 asked for its end
        end = paper.PaperOrder(
            f"{sid}-close", "close", CLOSES[side], LOTS, None, None, opening.closing_at, closes=sid
        )
        waiting.append(end)
    result, reached = paper.advance_all(
        waiting, position, bars, cursor=opening.lived, spread=spec.spread, spec=spec
    )
    known = replace(opening, lived=reached or opening.lived)
    # The close's own fill says no more than the end of the position.
    for event in (event for event in result.events if event.sid == sid):
        if event.kind in ("FILLED", "PARTIAL"):
            known = replace(known, price=event.price, opened_at=event.time)
            continue
        if event.kind in ("STOPPED", "TARGET", "CLOSED"):
            _learn(known, event, spec, database, as_of)
        # Else a guard would have refused it: there is nothing to follow.
        database.end_vetoed(sid)
        return
    if known != opening:
        database.keep_vetoed(known)


def _learn(
    opening: VetoedOpening,
    event: paper.PaperEvent,
    spec: SymbolSpec,
    database: TickDatabase,
    as_of: datetime,
) -> None:
    """Write the lesson of a vetoed opening that has ended; its outcome is told in R alone."""
    row = opening.as_dict()
    end = judge(row, exit_price=event.price, closed_at=event.time, profit=0.0, reason=event.kind)
    opened, price_range = opening.opened_at, None
    if opened is not None:
        price_range = database.price_range(opening.instance, opened, event.time)
    facts = facts_of(
        row,
        end,
        kind="vetoed",
        exit_price=event.price,
        closed_at=event.time,
        known_at=as_of,
        price_range=price_range,
        asset=spec.asset,
        spread=spec.spread,
        situation=database.situation(opening.sid),
        refused=opening.reason if opening.reason in REFUSERS else "",
    )
    database.write_lesson(facts, rules_words(facts, as_of))
