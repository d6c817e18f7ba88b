"""What stands first on a tick's page: for, against, without agents, and six facts in a line.

The points are those of an approval (torra.dashboard.trade.why), so both pages say the same. Pure
functions over a record; text of models passes through `figures.sanitize`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agents.contracts import SIDES as SEATS
from agents.contracts import WINNERS, AgentReport
from agents.debate.scoring import DIRECTIONS
from torra.config import SymbolSpec
from torra.dashboard.record import agreement, citations, swarm, thesis
from torra.dashboard.record.shown import NOT_COUNTED, WATCH_ONLY, Decision, TickLimits, TickView
from torra.dashboard.record.transcript import CitedFeature
from torra.exhibits import figures
from torra.exhibits.figures import DASH
from torra.tick.marks import PROPOSED, OrderPhrase
from torra.tick.sentence import KEPT, NO_AGENT, outage_of, position_age, position_side
from torra.tick.tick_record import (
    DebateRecord,
    SignalRecord,
    TickRecord,
    is_gate,
)
from torra.verdict.order_levels import Levels, levels
from torra.verdict.position_size import notional, smallest, worth
from torra.words.deny_reasons import DenyReason
from torra.words.orders import LEANS, SIDES

UNHEARD: Final = frozenset(("Bars", "Gate", "Veto", "Disagreement"))
"""Who has points against a side without being one that was heard for or against it."""

ARGUERS: Final = frozenset(SEATS)
"""Who argues for a side."""

NAMED: Final = 3
"""Agents, and facts of the evidence, that a card names; of more it gives the number."""


Fact = tuple[str, str]
"""A figure of a tick, and what must be said besides."""


def no_order(record: TickView) -> str:
    """Return what stands beside a BUY or SELL to which no order belongs; "" beside all others."""
    ordered = record.signals or record.proposed or record.reason == PROPOSED
    if record.verdict not in SIDES or ordered or record.hosted is not None:
        return ""
    if record.reason != KEPT:
        return "no order"
    return f"{position_side(record) or 'position'} kept"


def side_of(record: Decision) -> str:
    """Return the side that a tick is about: its verdict's, or the one that it came nearer to."""
    if record.verdict in SIDES:
        return str(record.verdict)
    return "SELL" if (record.consensus or 0.0) < 0 else "BUY"


def refuting(record: TickView, falsifiers: Sequence[str]) -> Fact:
    """Return what would prove it wrong; where a judge takes no side, what would settle it.

    The ends of a thesis that counts come first, then those of the case, then those of a judge
    whose side no verdict took.
    """
    debate, leans = record.deliberation, _judge_leans(record)
    own = [] if debate.in_shadow else thesis.ends(record)
    judges = debate.judge.falsifiers if debate.judge and leans else ()
    ends = (figures.sanitize(end, 160) for end in (*own, *falsifiers, *judges) if end)
    first = next(ends, "")
    if not first:
        return swarm.tie_breaker(record) or (DASH, "")
    whose = f"the judge's {leans} side" if leans else f"the case for a {side_of(record).lower()}"
    return first, "" if record.verdict in SIDES else whose


def _judge_leans(record: TickView) -> str:
    """Return which side a swarm's judge takes on a HOLD; "" elsewhere, and of none."""
    debate = record.deliberation
    if debate.swarm is None or debate.judge is None or record.verdict in SIDES:
        return ""
    return LEANS.get(debate.judge.winner, "")


def conviction(record: TickView) -> tuple[str, str, str]:
    """Return the conviction in a tick's side, and what lowered it, after what to call it."""
    debate, side = record.deliberation, side_of(record)
    agreed = debate.panel.agreement(side)
    kept, raw = _percent(agreed.conviction), _percent(agreed.raw)
    if outage_of(record) is not None:
        return "Size", kept, NO_AGENT
    more = ""
    if debate.in_shadow:
        more = NOT_COUNTED
    elif leans := _judge_leans(record):
        more = f"of a {side.lower()}: the judge is {leans}"
    elif kept != raw:
        objection = thesis.costs(debate, side)
        why = f", as {objection}" if objection else " by what speaks against it"
        more = f"down from {raw}{why}"
    return "Conviction", kept, more


def _percent(share: float) -> str:
    """Return a share in percent; a dash of what is none."""
    return f"{100 * share:.0f} %" if 0.0 <= share <= 1.0 else DASH


def evidence(cited: Sequence[CitedFeature], shown: Sequence[str]) -> Fact:
    """Return how many facts are cited, how many are true, and those that the points stand on.

    `shown` are the ids of the features that the page's points cite. What the gate cites is told on
    every tick, such as the kind of market: it is named last.
    """
    if not cited:
        return "Nothing cited", ""
    right = sum(row.is_true for row in cited)
    first = sorted(cited, key=lambda row: (row.id not in shown, *_argued(row)))
    names = ", ".join(_short_name(row.id) for row in first[:NAMED])
    true = "all" if right == len(cited) else right
    more = f"{true} true to the record: {names}" + (" …" if len(cited) > NAMED else "")
    return f"{len(cited)} fact{'' if len(cited) == 1 else 's'} cited", more


def _short_name(feature: str) -> str:
    name = citations.feature_name(feature) or figures.sanitize(feature, 80)
    return name.removeprefix("the ")


def _argued(row: CitedFeature) -> tuple[bool, int, int]:
    """Return where a fact stands among those that are named: the sides' own first."""
    who = {voice.name for voice, _ in row.by}
    return (any("gate" in name.lower() for name in who), -len(who & ARGUERS), -len(who))


def who(record: TickView, side: str, shown: Sequence[str] = ()) -> str:
    """Return who disagreed with a side; of those without a point among `shown`, on which score."""
    debate, towards = record.deliberation, DIRECTIONS[side]
    opinions = [row for row in debate.reports if not (is_gate(row) or row.abstained or row.regime)]
    if not opinions:
        called = bool(record.made_calls or debate.failures)
        return "No agent answered." if called else "No agent was asked."
    pushes = debate.panel.pushes
    against = [
        report
        for report in opinions
        if pushes.get(report.agent_id, 0.0) * towards < 0.0
        or WINNERS.get(report.winner, towards) != towards
    ]
    if not against:
        weak = any(name not in UNHEARD for name in shown)
        many = _count(debate, opinions)
        return f"Nobody disagreed, of {many}{'; they named:' if weak else '.'}"
    # who judged both cases first: its word takes most off the conviction
    against.sort(key=lambda report: not report.winner)
    named = [_on(report, towards, shown) for report in against[:NAMED]]
    rest = f" and {len(against) - NAMED} more" if len(against) > NAMED else ""
    says = "Disagreed" if record.verdict in SIDES else f"Against {SIDES[side].verb}ing"
    return f"{says}: {', '.join(named)}{rest}."


def _count(debate: DebateRecord, opinions: Sequence[AgentReport]) -> str:
    """Return how many were heard; of a swarm how many experts, and whether the judge was."""
    if debate.swarm is None:
        return f"{len(opinions)} heard"
    experts = sum(report is not debate.judge for report in opinions)
    if not experts:
        return "the judge alone"
    counted = f"{experts} expert{'' if experts == 1 else 's'}"
    return f"{counted} and the judge" if debate.judge in opinions else counted


def _on(report: AgentReport, towards: float, shown: Sequence[str]) -> str:
    """Return an agent that disagrees, and the score on which it does so most."""
    name = figures.title(report.agent_id.removesuffix("_researcher"))
    if report.winner and not WINNERS.get(report.winner, 1):
        return f"{name} ({'names neither' if report.win_share is None else 'takes no side'})"
    if name in shown:
        return name
    worst = min(
        ((value * towards, vector) for vector, value in report.adjustments.items() if value),
        default=(0.0, ""),
    )
    return f"{name} on {worst[1].replace('_', ' ')}" if worst[0] < 0.0 else name


def opening(record: TickRecord) -> SignalRecord | OrderPhrase | None:
    """Return the opening that a tick wrote or proposed."""
    orders: tuple[SignalRecord | OrderPhrase, ...] = (*record.signals, *record.proposed)
    return next((order for order in orders if order.kind == "open"), None)


def _size_share(record: TickView) -> tuple[float, str]:
    """Return the share of an opening's size that gate, conviction and budget leave, and these."""
    debate, side = record.deliberation, side_of(record)
    sure = _percent(debate.panel.agreement(side).conviction)
    counted = WATCH_ONLY if debate.in_shadow else f"conviction {sure}"
    budget = "" if record.budget is None else f", budget {_percent(record.budget)}"
    left = agreement.size_share(record, side)
    return left, f"gate {_percent(record.gate.multiplier)}, {counted}{budget}"


def size(record: TickView, spec: SymbolSpec | None, currency: str) -> Fact:
    """Return the size of a tick's opening, or why there is none.

    `spec` are the symbol's terms, None where the desk does not know them any more.
    """
    if more := _too_small(record, spec, currency):
        return "Too small", more
    order = opening(record)
    if order is not None:
        left, factors = _size_share(record)
        more = f"{_percent(left)} of what risk allows: {factors}" if left < 1.0 else ""
        return f"{figures.plain(order.lots, 2)} lots", more
    if record.signals or record.proposed:
        return "A close", ""
    if record.reason != KEPT:
        return "No order", ""
    stays = [f"the {position_side(record) or 'open position'} stays", position_age(record)]
    return "No new order", ", ".join(filter(None, stays))


def _too_small(record: TickView, spec: SymbolSpec | None, currency: str) -> str:
    """Return what the smallest order would have taken, where an opening was too small for one.

    "" of another tick, and where price, terms or limits are not known.
    """
    limits = record.limits or TickLimits()
    capital, is_denied = limits.capital, DenyReason.SIZE_ZERO in record.denied
    if not is_denied or spec is None or record.verdict not in SIDES or capital is None:
        return ""
    at = levels(record.verdict, record.close, record.atr, spec)
    if not isinstance(at, Levels):
        return ""
    (left, factors), lots = _size_share(record), smallest(spec)
    why = "" if record.deliberation.in_shadow else f" ({factors})"
    loss, size = worth(abs(at.entry - at.stop), lots, spec), notional(lots, at.entry, spec)
    for says, needed, share in (
        ("would lose {} at its stop", loss, limits.risk_per_trade_pct),
        ("would be worth {}", size, limits.max_notional_pct),
    ):
        if share is None or needed <= (most := capital * share / 100 * left):
            continue
        amount, allowed = (
            f"{figures.plain(money, 2)} {currency}".rstrip() for money in (needed, most)
        )
        return (
            f"the smallest order, {lots:g} lots, {says.format(amount)}; allowed are {allowed}: "
            f"{share:g} % of {figures.plain(capital, 0)} × {figures.plain(left, 2)}{why}"
        )
    return ""


def risk(record: TickView, spec: SymbolSpec | None, currency: str, proposed: Levels | None) -> Fact:
    """Return what a tick's opening has at risk; `proposed` are the levels of a proposed one."""
    order = opening(record)
    if order is None:
        stays = not record.signals and not record.proposed and record.reason == KEPT
        return "Nothing new" if stays else "Nothing", ""
    at = order if isinstance(order, SignalRecord) else proposed
    if at is None or at.entry is None or at.stop is None:
        return DASH, "where its stop lay is not known"
    distance = abs(at.entry - at.stop)
    away = f"stop {figures.plain(distance, 5 if record.digits is None else record.digits)} away"
    if spec is None:
        return away, ""
    money = figures.plain(worth(distance, order.lots, spec), 2)
    return f"{money} {currency}".rstrip(), away


def without(record: TickView, effect: Mapping[str, str] | None) -> tuple[str, str]:
    """Return what would have happened without agents, in a word and in a sentence.

    `effect` is what torra.replay.changed says of a tick that agents changed: did, came, done; None
    where they changed nothing of it, or nobody can tell.
    """
    alone, verdict = figures.mark(record.l1_verdict).word, figures.mark(record.verdict).word
    stood = f"The bars alone stood at {figures.format_signed(record.l1_consensus)}"
    if effect:
        more = f"{effect['came']} With agents: {effect['done']} {stood}. That is this trade only."
        return effect["did"], more
    if record.l1_verdict != record.verdict:
        side = SIDES.get(record.l1_verdict)
        word = f"A {side.verb}" if side else "No trade"
        return word, f"{stood}; with agents the verdict is {verdict}."
    judged = record.reason == DenyReason.GATE_VETO and not record.gate.rule.veto
    if judged or record.reason == DenyReason.TRADER_DECLINED:
        word = "Not known"
    elif record.signals or record.proposed:
        word = "The same trade"
    elif record.reason == KEPT:
        word = f"The same: {position_side(record) or 'position'} kept"
    else:
        word = "No trade either"
    return word, f"{stood}, which is {alone} too."
