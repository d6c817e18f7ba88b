"""The tick's own sentence: what it did and why, and what the agents had to do with it.

    Buys 0.06 lots of BTCUSD on M15: the consensus +0.53 reaches the buy threshold +0.50; the agents
    agree.

At most MOST_WORDS words, made of the values of a finished tick by code, so that no model tells how
its own word counted. What is stored stays; `told` says it as a page does now, with what else the
record holds. It says what was decided, not what became of it: an order may still be
refused. Names of codes and components stay out. Pure functions; a tick of which verdict or action
is not known has no sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from agents.contracts import SCORE_DECIMALS, WINNERS, GateReason, SourceType
from agents.debate.deliberation import OUTAGE
from agents.debate.scoring import DIRECTIONS
from torra import clock
from torra.tick.marks import EXECUTION_OFF, HOSTED, PROPOSED, SHADOW
from torra.verdict.vetoed import REFUSERS
from torra.words.badge import capital
from torra.words.deny_reasons import DenyReason
from torra.words.orders import LEANS, SIDES
from torra.words.ticks import GATE_REASONS, UNHEARD

if TYPE_CHECKING:
    from torra.tick.tick_record import (
        Composite,
        TickRecord,
    )

MOST_WORDS: Final = 40

EARLIER: Final = "agents' earlier answers"
"""Answers on other ticks, of which the consensus is as well; a page names the timeframe."""

MOST_TOLD: Final = 50
"""Words of a sentence with what a page adds to it from the rest of the record."""

HELD: Final = "POSITION_HELD"
"""Reason of a tick that keeps the position as it is."""

KEEPS: Final = "Keeps the open position"
"""How the stored sentence of such a tick begins; a page names the side."""

NO_AGENT: Final = "no agent was heard, so the size is cut"
"""What a page and a notice say of the size of an opening in an outage."""

SOME_INVENTED: Final = "; some evidence is invented"
"""How the sentence of a demo's tick ends that saw the invented sample."""

BRIEFEST: Final = 3
"""How often a sentence can be shortened."""

FEWEST_DECIMALS: Final = 2

BARS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "L1 carries": "the bars alone carry",
        "L1 and the agents agree": "on balance the agents agree",
        "L1 and the experts agree": "on balance the experts agree",
        "L1 and": "the bars and",
    }
)
"""How a page says what a record says of L1."""

TENTHS: Final = re.compile(r"\b(\d+\.\d) lots\b")
"""A size with one decimal: everywhere else on a page sizes have two."""

BELOW_ZERO: Final = re.compile(r"(?<![\w.])-(?=\d)")
"""The hyphen before a number, for which a page shows a minus."""

OTHER_CAUSE: Final = "a check objects"
VETOED_NOW: Final = "the gate vetoes it"
LATCHED: Final = "an earlier veto or decline still holds"
"""The cause of a latched side at a desk whose trader may have declined it."""


AGREED: Final[Mapping[int, str]] = MappingProxyType(
    {
        1: "L1 and the agents agree",
        0: "L1 and the experts agree, and the judge takes no side",
        -1: "L1 and the experts agree, and the judge is against it",
    }
)
"""Who agrees with a verdict that L1 gives as well, by the judge's side beside it."""


class OrderPhrase(NamedTuple):
    """An order that a tick wrote or proposed."""

    kind: str
    side: str
    lots: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What the sentence says of a tick; `sell` is the threshold as a size.

    `orders` were written, or proposed where the reason is PROPOSED. `vetoed`: the gate vetoed on
    this very tick, for `vetoed_for` where it vetoed one side alone. `flags` are the debate's.
    `push` is which way the agents' own words lean, None where that is not told. `trader`: the desk
    asks one about openings; `declined` is the code of its decline. `judge` is the side LONG, SHORT
    or NONE that a swarm's judge takes, "" where none was heard. `outage` is the share of its size
    that an opening has because no agent was heard, None where there is no such cut. `invented`: the
    tick saw the invented sample of the demo.
    """

    symbol: str
    timeframe: str
    verdict: str
    l1_verdict: str | None
    consensus: float | None
    l1_consensus: float | None
    buy: float | None
    sell: float | None
    action: str
    reason: str
    denied: Sequence[str] = ()
    orders: Sequence[OrderPhrase] = ()
    vetoed: bool = False
    vetoed_for: Sequence[str] = ()
    against: bool = False
    source: str = ""
    flags: Sequence[str] = ()
    push: float | None = None
    trader: bool = False
    declined: str = ""
    judge: str = ""
    outage: float | None = None
    invented: bool = False


def page_text(record: TickRecord) -> str:
    """Return the sentence of a record as a page says it now; that of a page stays as it is."""
    return _with_others(_with_side(in_page_words(record.sentence), record), record)


def held_side(record: TickRecord) -> str:
    """Return the side of the position that a tick kept, "long" or "short"; "" where none is told.

    The memory of a tick has the position as it stood at the look. One on the other side than the
    verdict is kept where a profile keeps it; a timeframe that closed with the tick may have turned
    it since.
    """
    if record.reason != HELD:
        return ""
    stood = LEANS.get(str(record.memory.get("position")), "")
    alone = not record.together and not record.apart
    wanted = SIDES.get(record.verdict or "")
    return stood if alone or (wanted and stood == wanted.position) else ""


def held_since(record: TickRecord) -> str:
    """Return since when the kept position is open, as far as the record tells; else "".

    The memory of a tick knows the age of a position in bars, and nothing of one that another tick
    of the same close opened.
    """
    open_then = record.memory.get("open_positions")
    for one in open_then if isinstance(open_then, list) else ():
        if not isinstance(one, dict) or one.get("direction") != held_side(record).upper():
            continue
        age = one.get("age_ticks")
        if not isinstance(age, int) or isinstance(age, bool) or age < 0:
            return ""
        return f"open for {age} bar{'' if age == 1 else 's'}" if age else "opened within this bar"
    return ""


def _with_side(said: str, record: TickRecord) -> str:
    """Return a sentence of a kept position with its side, and since when it is open."""
    side = held_side(record)
    if not side or not said.startswith(KEEPS):
        return said
    head, colon, tail = said.removeprefix(KEEPS).partition(":")
    since = held_since(record)
    long = f"Keeps the {side}{head}, {since}{colon}{tail}"
    fits = since and len(long.split()) <= MOST_TOLD
    return long if fits else f"Keeps the {side}{head}{colon}{tail}"


ASKED: Final = re.compile("^Wants to (.*), if approved")
"""What a sentence says of a proposal as it is made."""


def in_page_words(said: str) -> str:
    """Return a stored sentence as a page says it now.

    With a minus, without the word L1, with lots as pages write them, a veto as that of whoever made
    it, and a proposal as one that may be decided by now.
    """
    said = ASKED.sub(r"Asked to \1", said)
    for stored, now in BARS.items():
        said = said.replace(stored, now)
    for code, who in REFUSERS.items():
        why = f"vetoes it ({GATE_REASONS[code]})"
        said = said.replace(f"the gate {why}", f"the {who} {why}")
    said = TENTHS.sub(r"\g<1>0 lots", said)
    return BELOW_ZERO.sub("\u2212", said)


def outage_of(record: TickRecord) -> float | None:
    """Return the share of its size that an opening had because models failed; None without."""
    return record.deliberation.panel.buy.conviction if OUTAGE in record.flags else None


def percent(share: float) -> str:
    """Return a share in whole per cent."""
    return f"{100 * share:.0f} %"


def sentence(tick: Finished) -> str:
    """Return the sentence of a finished tick, without its lesser facts where it would be long."""
    for brief in range(BRIEFEST):
        said = _said(tick, brief)
        if len(said.split()) <= MOST_WORDS:
            return said
    return _said(tick, BRIEFEST)


def _said(tick: Finished, brief: int) -> str:
    """Return the sentence; the numbers beside L1 and the denial go first, the consensus last."""
    standing = "" if brief == BRIEFEST else _standing(tick, short=brief > 1)
    end = SOME_INVENTED if tick.invented else ""
    return f"{_done(tick, brief)}: {standing}{_agents(tick, brief)}{_cut(tick)}{end}."


def other_timeframe(record: TickRecord) -> tuple[str, Composite] | None:
    """Return the one other timeframe of which the consensus is; None without, and with several."""
    found = [
        (name, one)
        for name, one in record.composites.items()
        if name != record.timeframe and one.fresh and one.composite is not None
    ]
    return found[0] if len(found) == 1 else None


def _with_others(said: str, record: TickRecord) -> str:
    """Return a sentence that names the other timeframe where that moved the consensus.

    Agents' answers on other ticks are those of that timeframe; and an earlier composite of it may
    pull the consensus back from the side that this bar and its agents are on.
    """
    other = other_timeframe(record)
    when = _written(other[1].close_time) if other else ""
    if other is None or not when:
        return said
    name = other[0]
    if EARLIER in said:
        long = said.replace(EARLIER, f"the {name} agents' answers of {when}")
    elif (shown := _against(record, other[1])) and said.endswith("."):
        note = f"; {name} of {when} ({shown}) pulls the other way."
        # A record that is kept for a glance has the sentence of its page already.
        long = said if said.endswith(note) else said[:-1] + note
    else:
        return said
    return long if len(long.split()) <= MOST_TOLD else said


def _against(record: TickRecord, other: Composite) -> str:
    """Return the composite that stands against this bar, as it is written; "" where none does.

    This bar's composite and its agents on balance are on one side, the earlier composite is on the
    other, and takes the consensus across zero or away from a threshold that this bar alone reaches.
    """
    push, pulled = record.deliberation.panel.push or 0.0, other.composite or 0.0
    own, mean = record.composite or 0.0, record.consensus or 0.0
    if record.deliberation.in_shadow or record.source_type == SourceType.LEGACY:
        return ""
    earlier = _written(other.close_time) < _written(record.as_of)
    if not earlier or own * push <= 0.0 or pulled * push >= 0.0:
        return ""
    limit = record.thresholds.buy if push > 0 else record.thresholds.sell
    lost = limit is not None and abs(own) >= limit > abs(mean)
    if mean * push > 0.0 and not lost:
        return ""
    return BELOW_ZERO.sub("\u2212", number(round(pulled, FEWEST_DECIMALS)))


def _written(moment: str | None) -> str:
    """Return a stored time as pages write it, and their switch of times reads it."""
    try:
        return clock.parse(str(moment)).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return ""


# --- what it did ----------------------------------------------------------------------------------


DONE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "open": "{verb}s {lots} of {where}",
        "close": "closes the {closes}{size} in {where}{unturned}",
        "turn": "turns {position} in {where}, closing {closed} and {verb}ing {lots}",
        "wants to open": "wants to {verb} {lots} of {where}, if approved",
        "wants to close": "wants to close the {closes}{size} in {where}{unturned}, if approved",
        "wants to turn": "wants to turn {position} in {where} with {lots}, if approved",
        "wants": "has an order for {where} and asks for approval",
        "denied": "does not {verb} {where}, as {cause}",
        "hold": "does nothing in {where}",
        "none": "sends no order for {where}",
        HOSTED: "reads a {verb} in {where}, and your scorer decides",
        EXECUTION_OFF: "sends no order for {where}, as execution is off",
        HELD: f"{KEEPS} in {{where}}",
    }
)
"""What a tick did, by its outcome."""


def _done(tick: Finished, brief: int) -> str:
    """Return what happened, up to the colon."""
    orders = {order.kind: order for order in tick.orders if order.side in SIDES}
    opening, closing = orders.get("open"), orders.get("close")
    side = SIDES.get(opening.side if opening else tick.verdict)
    position = side.position if side else ""
    cause = _cause(tick, brief) if tick.denied else ""
    text = DONE[_outcome(tick, opening, closing)].format(
        where=f"{tick.symbol} on {tick.timeframe}",
        verb=side.verb if side else "hold",
        position=position,
        lots=_lots(opening),
        closed=_lots(closing),
        closes=SIDES["BUY" if closing and closing.side == "SELL" else "SELL"].position,
        size=f" of {_lots(closing)}" if closing and closing.lots is not None else "",
        cause=cause,
        unturned=f" without turning {position}, as {cause}" if cause and side else "",
    )
    return capital(text)


def _outcome(tick: Finished, opening: OrderPhrase | None, closing: OrderPhrase | None) -> str:
    """Return the row of DONE that a tick has."""
    orders = "turn" if opening and closing else "open" if opening else "close" if closing else ""
    if tick.reason == PROPOSED:
        return f"wants to {orders}" if orders else "wants"
    if orders or tick.reason == HOSTED:
        return orders or HOSTED
    if tick.verdict not in SIDES:
        return "hold"
    if tick.reason == EXECUTION_OFF:
        return EXECUTION_OFF
    return "denied" if tick.denied else HELD if tick.reason == HELD else "none"


def _cause(tick: Finished, brief: int) -> str:
    """Return why an order was denied: the first reason in words, and how many more there are."""
    first = tick.denied[0]
    cause = DenyReason[first].cause if first in DenyReason.__members__ else OTHER_CAUSE
    if first == DenyReason.GATE_VETO and (tick.vetoed or tick.trader):
        cause = VETOED_NOW if tick.vetoed else LATCHED
        why = [*filter(None, map(why_declined, tick.vetoed_for))]
        cause = f"{cause} ({why[0]})" if why and not brief else cause
    if first == DenyReason.TRADER_DECLINED and (why_not := why_declined(tick.declined)):
        cause = f"{cause} ({why_not})"
    more = len(tick.denied) - 1
    return f"{cause} (and {more} more)" if more and not brief else cause


def _lots(order: OrderPhrase | None) -> str:
    if order is None or order.lots is None:
        return "an unknown size"
    return f"{order.lots:.10g} lot{'' if order.lots == 1 else 's'}"


# --- where the consensus stands -------------------------------------------------------------------


def _standing(tick: Finished, *, short: bool) -> str:
    """Return where the consensus stands, with what parts it from the agents' clause."""
    value, limits = tick.consensus, _limits(tick)
    if value is None or limits is None:
        return ""
    sell, buy = limits
    shown = number(value, limits)
    if short:
        return f"consensus {shown}; "
    if value >= buy:
        return f"the consensus {shown} reaches the buy threshold {number(buy)}; "
    if value <= sell:
        return f"the consensus {shown} reaches the sell threshold {number(sell)}; "
    return f"the consensus {shown} is between the thresholds {number(sell)} and {number(buy)}; "


def _limits(tick: Finished) -> tuple[float, float] | None:
    if tick.buy is None or tick.sell is None:
        return None
    return -tick.sell, tick.buy


def why_declined(code: str | None) -> str:
    """Return why a trader declined or a gate vetoed; "" where it names only its judgement."""
    return "" if code == GateReason.MODEL_JUDGEMENT else GATE_REASONS.get(code or "", "")


def number(value: float, limits: Sequence[float] = ()) -> str:
    """Return a score with its sign, and as many decimals as its place among the limits needs.

    Without limits it is written in full.
    """
    for decimals in range(FEWEST_DECIMALS, SCORE_DECIMALS + 1):
        shown = round(value, decimals)
        if all(_order(shown, one) == _order(value, one) for one in limits or (value,)):
            break
    # zero has no sign
    return f"{shown:+.{decimals}f}" if shown else f"{0:.{decimals}f}"


def _order(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


# --- what the agents had to do with it ------------------------------------------------------------


def _agents(tick: Finished, brief: int) -> str:
    """Return what the agents had to do with the verdict."""
    differs = tick.l1_verdict in (*SIDES, "HOLD") and tick.l1_verdict != tick.verdict
    if silent := _silent(tick):
        return f"{silent}{_earlier(tick)}" if differs else silent
    if differs:
        return _made(tick, brief)
    return _carried(tick) if tick.verdict in DIRECTIONS else _holding(tick)


def _cut(tick: Finished) -> str:
    """Return what an outage leaves of an opening's size; empty where none was wanted."""
    wanted = tick.denied or any(order.kind == "open" for order in tick.orders)
    if tick.outage in (None, 1.0) or not wanted:
        return ""
    return f", and its size is cut to {percent(tick.outage)}"


def _carried(tick: Finished) -> str:
    """Return what the agents say of a verdict that L1 gives as well."""
    if tick.against:
        return f"L1 carries the {SIDES[tick.verdict].verb}, and the agents lean against it"
    if tick.source == SourceType.LEGACY:
        return "L1 and the one model in the agents' place agree"
    if tick.push is None:
        return "without agents it would be the same"
    way = DIRECTIONS[tick.verdict]
    if tick.push * way > 0:
        return AGREED[WINNERS.get(tick.judge, 0) * way if tick.judge else 1]
    return f"L1 carries the {SIDES[tick.verdict].verb}, and the agents take no side"


def _silent(tick: Finished) -> str:
    """Return why no agent counted on this tick; empty where one did."""
    if tick.source == SourceType.AGENT_SKIPPED:
        return "no agent was asked, as no answer could change it"
    if SHADOW in tick.flags:
        return "the agents only looked on"
    if tick.source == SourceType.L1_ONLY:
        known = (row.meaning for flag, row in UNHEARD.items() if flag in tick.flags)
        return next(known, "no agent answered")
    return ""


def _earlier(tick: Finished) -> str:
    """Return how answers on other ticks, which the consensus holds, changed this verdict."""
    done = "made" if tick.verdict in DIRECTIONS else "prevented"
    return f", yet {EARLIER} {done} {_call(tick)}"


def _made(tick: Finished, brief: int) -> str:
    """Return that the agents made this verdict, or prevented that of L1."""
    who = "the model in the agents' place" if tick.source == SourceType.LEGACY else "the agents"
    done = "made" if tick.verdict in DIRECTIONS else "prevented"
    said = f"{who} {done} {_call(tick)}"
    if _of_others(tick):
        lean = "up" if (tick.push or 0.0) > 0 else "down"
        said = f"{EARLIER} {done} {_call(tick)}, though this bar's lean {lean}"
    elif tick.against:
        said += ", though their words lean against it"
    l1, limits = tick.l1_consensus, _limits(tick)
    if brief == BRIEFEST:
        return said
    at = f" ({number(l1, limits)})" if l1 is not None and limits and not brief else ""
    side = SIDES.get(tick.l1_verdict or "")
    alone = side.verb if side else "hold"
    return f"{said}; without agents{at} it would {alone}"


def _of_others(tick: Finished) -> bool:
    """Tell whether the consensus moved the other way than this tick's agents push.

    It holds their answers on the other timeframes too, of bars before.
    """
    if tick.consensus is None or tick.l1_consensus is None or not tick.push:
        return False
    return tick.push * (tick.consensus - tick.l1_consensus) < 0.0


def _call(tick: Finished) -> str:
    side = tick.verdict if tick.verdict in DIRECTIONS else str(tick.l1_verdict)
    return f"the {SIDES[side].verb} verdict"


def _holding(tick: Finished) -> str:
    if tick.source == SourceType.LEGACY or not tick.push:
        return "without agents it would hold too"
    lean = "up" if tick.push > 0 else "down"
    return f"the agents lean {lean}, and without them it would hold too"
