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
from typing import TYPE_CHECKING, Final

from agents.contracts import SCORE_DECIMALS, WINNERS, GateReason, SourceType
from agents.debate.deliberation import OUTAGE
from agents.debate.scoring import DIRECTIONS
from torra import clock
from torra.tick.marks import EXECUTION_OFF, HOSTED, PROPOSED, SHADOW, OrderPhrase
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

MOST_ON_PAGE: Final = 50
"""Words of a sentence with what a page adds to it from the rest of the record."""

KEPT: Final = "POSITION_HELD"
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

BARS: Final[Mapping[str, str]] = {
    "L1 carries": "the bars alone carry",
    "L1 and the agents agree": "on balance the agents agree",
    "L1 and the experts agree": "on balance the experts agree",
    "L1 and": "the bars and",
}
"""How a page says what a record says of L1."""

TENTHS: Final = re.compile(r"\b(\d+\.\d) lots\b")
"""A size with one decimal: everywhere else on a page sizes have two."""

BELOW_ZERO: Final = re.compile(r"(?<![\w.])-(?=\d)")
"""The hyphen before a number, for which a page shows a minus."""

OTHER_CAUSE: Final = "a check objects"
VETOED_NOW: Final = "the gate vetoes it"
LATCHED: Final = "an earlier veto or decline still holds"
"""The cause of a latched side at a desk whose trader may have declined it."""


AGREED: Final[Mapping[int, str]] = {
    1: "L1 and the agents agree",
    0: "L1 and the experts agree, and the judge takes no side",
    -1: "L1 and the experts agree, and the judge is against it",
}
"""Who agrees with a verdict that L1 gives as well, by the judge's side beside it."""


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
    l1_verdict: str
    consensus: float
    l1_consensus: float
    buy: float
    sell: float
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


def position_side(record: TickRecord) -> str:
    """Return the side of the position that a tick kept, "long" or "short"; "" where none is told.

    The memory of a tick has the position as it stood at the look. One on the other side than the
    verdict is kept where a profile keeps it; a timeframe that closed with the tick may have turned
    it since.
    """
    if record.reason != KEPT:
        return ""
    stood = LEANS.get(str(record.memory.get("position")), "")
    alone = not record.together and not record.apart
    wanted = SIDES.get(record.verdict)
    return stood if alone or (wanted and stood == wanted.position) else ""


def position_age(record: TickRecord) -> str:
    """Return since when the kept position is open, as far as the record tells; else "".

    The memory of a tick knows the age of a position in bars, and nothing of one that another tick
    of the same close opened.
    """
    positions, side = record.memory.get("open_positions"), position_side(record).upper()
    ages = (
        row.get("age_ticks")
        for row in (positions if isinstance(positions, list) else ())
        if isinstance(row, dict) and row.get("direction") == side
    )
    age = next(ages, None)
    if type(age) is not int or age < 0:
        return ""
    return f"open for {age} bar{'' if age == 1 else 's'}" if age else "opened within this bar"


def _with_side(text: str, record: TickRecord) -> str:
    """Return a sentence of a kept position with its side, and since when it is open."""
    side = position_side(record)
    if not side or not text.startswith(KEEPS):
        return text
    head, colon, tail = text.removeprefix(KEEPS).partition(":")
    since = position_age(record)
    long = f"Keeps the {side}{head}, {since}{colon}{tail}"
    fits = since and len(long.split()) <= MOST_ON_PAGE
    return long if fits else f"Keeps the {side}{head}{colon}{tail}"


PROPOSAL: Final = re.compile("^Wants to (.*), if approved")
"""What a sentence says of a proposal as it is made."""


def in_page_words(text: str) -> str:
    """Return a stored sentence as a page says it now.

    With a minus, without the word L1, with lots as pages write them, a veto as that of whoever made
    it, and a proposal as one that may be decided by now.
    """
    text = PROPOSAL.sub(r"Asked to \1", text)
    for stored, now in BARS.items():
        text = text.replace(stored, now)
    for code, who in REFUSERS.items():
        why = f"vetoes it ({GATE_REASONS[code]})"
        text = text.replace(f"the gate {why}", f"the {who} {why}")
    text = TENTHS.sub(r"\g<1>0 lots", text)
    return BELOW_ZERO.sub("\u2212", text)


def outage_of(record: TickRecord) -> float | None:
    """Return the share of its size that an opening had because models failed; None without."""
    return record.deliberation.panel.buy.conviction if OUTAGE in record.flags else None


def percent(share: float) -> str:
    """Return a share in whole per cent."""
    return f"{100 * share:.0f} %"


def sentence(tick: Finished) -> str:
    """Return the sentence of a finished tick, without its lesser facts where it would be long."""
    for brief in range(BRIEFEST):
        text = _text(tick, brief)
        if len(text.split()) <= MOST_WORDS:
            return text
    return _text(tick, BRIEFEST)


def _text(tick: Finished, brief: int) -> str:
    """Return the sentence; the numbers beside L1 and the denial go first, the consensus last."""
    wanted = tick.denied or any(order.kind == "open" for order in tick.orders)
    cut = wanted and tick.outage not in (None, 1.0)
    return "".join(
        (
            f"{_done(tick, brief)}: ",
            "" if brief == BRIEFEST else _standing(tick, short=brief > 1),
            _agents(tick, brief),
            f", and its size is cut to {percent(tick.outage or 0.0)}" if cut else "",
            f"{SOME_INVENTED if tick.invented else ''}.",
        )
    )


def other_timeframe(record: TickRecord) -> tuple[str, Composite] | None:
    """Return the one other timeframe of which the consensus is; None without, and with several."""
    others = [
        (name, other)
        for name, other in record.composites.items()
        if name != record.timeframe and other.fresh
    ]
    return others[0] if len(others) == 1 else None


def _with_others(text: str, record: TickRecord) -> str:
    """Return a sentence that names the other timeframe where that moved the consensus.

    Agents' answers on other ticks are those of that timeframe; and an earlier composite of it may
    pull the consensus back from the side that this bar and its agents are on.
    """
    if (pair := other_timeframe(record)) is None:
        return text
    name, other = pair
    when = _written(other.close_time)
    if EARLIER in text:
        long = text.replace(EARLIER, f"the {name} agents' answers of {when}")
    elif text.endswith(".") and _pulls(record, other):
        shown = BELOW_ZERO.sub("\u2212", number(round(other.composite, FEWEST_DECIMALS)))
        note = f"; {name} of {when} ({shown}) pulls the other way."
        # A record that is kept for a glance has the sentence of its page already.
        long = text if text.endswith(note) else text[:-1] + note
    else:
        return text
    return long if len(long.split()) <= MOST_ON_PAGE else text


def _pulls(record: TickRecord, other: Composite) -> bool:
    """Return whether an earlier composite stands against this bar.

    This bar's composite and its agents on balance are on one side, the earlier composite is on the
    other, and takes the consensus across zero or away from a threshold that this bar alone reaches.
    """
    push = record.deliberation.panel.push or 0.0
    if record.deliberation.in_shadow or record.source_type == SourceType.LEGACY:
        return False
    earlier = _written(other.close_time) < _written(record.as_of)
    if not earlier or record.composite * push <= 0.0 or other.composite * push >= 0.0:
        return False
    limit = record.thresholds.buy if push > 0 else record.thresholds.sell
    lost = abs(record.composite) >= limit > abs(record.consensus)
    return record.consensus * push <= 0.0 or lost


def _written(moment: str) -> str:
    """Return a stored time as pages write it, and their switch of times reads it."""
    return clock.parse(moment).strftime("%Y-%m-%d %H:%M UTC")


# --- what it did ----------------------------------------------------------------------------------


DONE: Final[Mapping[str, str]] = {
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
    KEPT: f"{KEEPS} in {{where}}",
}
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
        size=f" of {_lots(closing)}" if closing else "",
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
    return "denied" if tick.denied else KEPT if tick.reason == KEPT else "none"


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
    if order is None:
        return ""
    return f"{order.lots:.10g} lot{'' if order.lots == 1 else 's'}"


# --- where the consensus stands -------------------------------------------------------------------


def _standing(tick: Finished, *, short: bool) -> str:
    """Return where the consensus stands, with what parts it from the agents' clause."""
    sell, buy = -tick.sell, tick.buy
    shown = number(tick.consensus, (sell, buy))
    if short:
        return f"consensus {shown}; "
    if tick.consensus >= buy:
        return f"the consensus {shown} reaches the buy threshold {number(buy)}; "
    if tick.consensus <= sell:
        return f"the consensus {shown} reaches the sell threshold {number(sell)}; "
    return f"the consensus {shown} is between the thresholds {number(sell)} and {number(buy)}; "


def why_declined(code: str | None) -> str:
    """Return why a trader declined or a gate vetoed; "" where it names only its judgement."""
    return "" if code == GateReason.MODEL_JUDGEMENT else GATE_REASONS.get(code or "", "")


def number(value: float, limits: Sequence[float] = ()) -> str:
    """Return a score with its sign, and as many decimals as its place among the limits needs.

    Without limits it is written in full.
    """
    for decimals in range(FEWEST_DECIMALS, SCORE_DECIMALS + 1):
        shown = round(value, decimals)
        if all(
            (shown > limit, shown < limit) == (value > limit, value < limit)
            for limit in limits or (value,)
        ):
            break
    # zero has no sign
    return f"{shown:+.{decimals}f}" if shown else f"{0:.{decimals}f}"


# --- what the agents had to do with it ------------------------------------------------------------


SHARE: Final[Mapping[str, str]] = {
    "against": "L1 carries the {verb}, and the agents lean against it",
    "model agrees": "L1 and the one model in the agents' place agree",
    "the same": "without agents it would be the same",
    "no side": "L1 carries the {verb}, and the agents take no side",
    "hold": "without agents it would hold too",
    "leant": "the agents lean {lean}, and without them it would hold too",
    "silent": f"{{silent}}, yet {EARLIER} {{done}} the {{verb}} verdict",
    "others": f"{EARLIER} {{done}} the {{verb}} verdict, though this bar's lean {{lean}}",
    "model": "the model in the agents' place {done} the {verb} verdict",
    "made": "the agents {done} the {verb} verdict",
}
"""What the agents had to do with a verdict, by how it came about."""

ALONE: Final = "; without agents{at} it would {alone}"
"""What a verdict would be without agents that changed it."""


def _agents(tick: Finished, brief: int) -> str:
    """Return what the agents had to do with the verdict."""
    silent, differs = _silent(tick), tick.l1_verdict != tick.verdict
    if silent and not differs:
        return silent
    share = "silent" if silent else _changed(tick) if differs else _carried(tick)
    decides = tick.verdict in DIRECTIONS
    side, l1 = SIDES.get(tick.verdict if decides else tick.l1_verdict), SIDES.get(tick.l1_verdict)
    text = SHARE.get(share, share).format(
        silent=silent,
        done="made" if decides else "prevented",
        verb=side.verb if side else "",
        lean="up" if (tick.push or 0.0) > 0 else "down",
    )
    if not differs or silent:
        return text
    if tick.against and share != "others":
        text += ", though their words lean against it"
    if brief == BRIEFEST:
        return text
    at = f" ({number(tick.l1_consensus, (-tick.sell, tick.buy))})" if not brief else ""
    return text + ALONE.format(at=at, alone=l1.verb if l1 else "hold")


def _changed(tick: Finished) -> str:
    """Return how the agents changed the verdict of L1.

    The consensus holds their answers on the other timeframes too, of bars before: it may have moved
    the other way than this tick's agents push.
    """
    if (tick.push or 0.0) * (tick.consensus - tick.l1_consensus) < 0.0:
        return "others"
    return "model" if tick.source == SourceType.LEGACY else "made"


def _carried(tick: Finished) -> str:
    """Return what the agents say of a verdict that L1 gives as well."""
    model = tick.source == SourceType.LEGACY
    if tick.verdict not in DIRECTIONS:
        return "hold" if model or not tick.push else "leant"
    if tick.against:
        return "against"
    if model or tick.push is None:
        return "model agrees" if model else "the same"
    way = DIRECTIONS[tick.verdict]
    if tick.push * way <= 0:
        return "no side"
    return AGREED[WINNERS.get(tick.judge, 0) * way if tick.judge else 1]


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
