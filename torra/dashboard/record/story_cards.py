"""What stands first on a tick's page: for, against, without agents, and six facts in a line.

The points are those of an approval (torra.dashboard.trade.why), so both pages say the same. Pure
functions over a record; text of models passes through `figures.clean`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agents.contracts import WINNERS, AgentReport
from agents.debate.panel import DIRECTIONS, Agreement
from torra.config import SymbolSpec
from torra.dashboard.record import swarm, thesis
from torra.dashboard.record.agreement import left_of
from torra.dashboard.record.citations import EQUAL, JUDGED, CitedRow
from torra.dashboard.record.shown import NOT_COUNTED, WATCH_ONLY, Decision, TickLimits, TickView
from torra.exhibits import figures
from torra.exhibits.figures import DASH
from torra.tick.marks import PROPOSED
from torra.tick.sentence import HELD, NO_AGENT, held_side, held_since, outage_of
from torra.tick.tick_record import (
    DebateRecord,
    ProposedOrder,
    SignalRecord,
    is_gate,
)
from torra.verdict.order_levels import Levels, levels
from torra.verdict.position_size import notional, smallest, worth
from torra.words.deny_reasons import DenyReason
from torra.words.orders import LEANS, SIDES

TRUE: Final = JUDGED[EQUAL][0]
"""Glyph of a citation that is as the evidence has it."""

UNHEARD: Final = frozenset(("Bars", "Gate", "Veto", "Disagreement"))
"""Who has points against a side without being one that was heard for or against it."""

ARGUERS: Final = frozenset(("Bull", "Bear"))
"""Who argues for a side, as a cited fact names them."""

NAMED: Final = 3
"""Agents, and facts of the evidence, that a card names; of more it gives the number."""


@dataclass(frozen=True, slots=True)
class TickFact:
    """A fact of a tick: its name, its figure, and what must be said besides.

    `answers` is the question of a reader that it answers, "" for one that answers none of the five.
    """

    name: str
    value: str
    more: str = ""
    answers: str = ""


def no_order(record: TickView) -> str:
    """Return what stands beside a BUY or SELL to which no order belongs; "" beside all others."""
    ordered = record.signals or record.proposed or record.reason == PROPOSED
    if record.verdict not in SIDES or ordered or record.hosted is not None:
        return ""
    if record.reason != HELD:
        return "no order"
    return f"{held_side(record) or 'position'} kept"


def side_of(record: Decision) -> str:
    """Return the side that a tick is about: its verdict's, or the one that it came nearer to."""
    if record.verdict in SIDES:
        return str(record.verdict)
    return "SELL" if (record.consensus or 0.0) < 0 else "BUY"


def facts(
    record: TickView,
    cited: Sequence[CitedRow],
    shown: Sequence[str],
    falsifiers: Sequence[str],
    spec: SymbolSpec | None,
    currency: str,
    proposed: Levels | None = None,
) -> list[TickFact]:
    """Return the conviction, which size, what at risk, what evidence and cost, what refutes.

    `shown` are the ids of the features that the page's points cite; `spec` are the symbol's terms,
    None where the desk does not know them any more; `proposed` the levels of an order that waits or
    waited for a person.
    """
    return [
        _sure(record),
        _too_small(record, spec, currency) or _size(record),
        _risk(record, spec, currency, proposed),
        _evidence(cited, shown),
        _cost(record),
        _refuting(record, falsifiers),
    ]


def _refuting(record: TickView, falsifiers: Sequence[str]) -> TickFact:
    """Return what would prove it wrong; where a judge takes no side, what would settle it."""
    found, leans = _refuted(record, falsifiers), _judge_leans(record)
    if found == DASH and (ends := _judges_ends(record)):
        found = ends[0]
    if found == DASH:
        return TickFact("Proved wrong by", *(swarm.tie_breaker(record) or (DASH,)))
    held = f"the judge's {leans} side" if leans else f"the case for a {side_of(record).lower()}"
    return TickFact("Proved wrong by", found, "" if record.verdict in SIDES else held)


def _judge_leans(record: TickView) -> str:
    """Return which side a swarm's judge takes on a HOLD; "" elsewhere, and of none."""
    told = record.deliberation
    if told.swarm is None or told.judge is None or record.verdict in SIDES:
        return ""
    return LEANS.get(told.judge.winner or "", "")


def _judges_ends(record: TickView) -> list[str]:
    """Return the closes that would prove a judge wrong whose side no verdict took."""
    judge = record.deliberation.judge if _judge_leans(record) else None
    return [figures.sanitize(one, 160) for one in judge.falsifiers if one] if judge else []


def _refuted(record: TickView, falsifiers: Sequence[str]) -> str:
    """Return what would end a trade: the first end of a thesis that counts, else of its case."""
    asked, ends = record.deliberation.consulted, falsifiers
    if asked and asked.report and not (asked.report.declined or record.deliberation.in_shadow):
        ends = [figures.sanitize(one, 160) for one in asked.report.falsifiers if one] or falsifiers
    return ends[0] if ends else DASH


def _agreed(record: TickView) -> Agreement | None:
    """Return how far the desk agreed with the side that a tick is about; None without opinions."""
    told = record.deliberation.panel
    return told.agreement(side_of(record)) if told else None


def _sure(record: TickView) -> TickFact:
    agreed = _agreed(record)
    if agreed is None or agreed.conviction is None:
        return TickFact("Conviction", DASH, "no agent took a side")
    kept, raw = agreed.conviction, agreed.raw
    lost = raw is not None and _percent(raw) != _percent(kept)
    named = thesis.costs(record.deliberation, side_of(record))
    why = f", as {named}" if named else " by what speaks against it"
    more = f"down from {_percent(raw or 0.0)}{why}" if lost else ""
    if outage_of(record) is not None:
        return TickFact("Size", _percent(kept), NO_AGENT)
    if record.deliberation.in_shadow:
        return TickFact("Conviction", _percent(kept), NOT_COUNTED)
    if leans := _judge_leans(record):
        judged = f"of a {side_of(record).lower()}: the judge is {leans}"
        return TickFact("Conviction", _percent(kept), judged)
    return TickFact("Conviction", _percent(kept), more)


def _percent(share: float) -> str:
    """Return a share in percent; of a damaged record it may be none."""
    return f"{100 * share:.0f} %" if 0.0 <= share <= 1.0 else DASH


def _evidence(cited: Sequence[CitedRow], shown: Sequence[str]) -> TickFact:
    """Return how many facts are cited, how many are true, and those that the points stand on.

    What the gate cites is told on every tick, such as the kind of market: it is named last.
    """
    if not cited:
        return TickFact("Evidence", "Nothing cited", answers="evidence")
    right = sum(all(one["glyph"] == TRUE for one in row["by"]) for row in cited)
    first = sorted(cited, key=lambda row: (row["id"] not in shown, *_argued(row)))[:NAMED]
    names = ", ".join((row["name"] or row["id"]).removeprefix("the ") for row in first)
    true = "all" if right == len(cited) else right
    more = f"{true} true to the record: {names}" + (" …" if len(cited) > NAMED else "")
    return TickFact(
        "Evidence", f"{len(cited)} fact{'' if len(cited) == 1 else 's'} cited", more, "evidence"
    )


def _argued(row: CitedRow) -> tuple[int, int, int]:
    """Return where a fact stands among those that are named: the sides' own first."""
    who = {one["who"] for one in row["by"]}
    sides = len(who & ARGUERS)
    return (any("gate" in one.lower() for one in who), -sides, -len(who))


def _cost(record: TickView) -> TickFact:
    """Return what a tick cost: a figure that rounds to nothing is said as nothing."""
    calls, elapsed, usd = len(record.made_calls), record.elapsed_ms, record.cost_usd
    took = "" if elapsed is None else f" in {_seconds(elapsed)}"
    said = "Nothing" if usd == 0 else figures.money(usd)
    asked = f"{calls} question{'' if calls == 1 else 's'}{took}"
    return TickFact("Paid for the agents", said, asked, "cost")


def _seconds(elapsed_ms: float) -> str:
    told = figures.plain(elapsed_ms / 1000, 1)
    return "under 0.1 s" if told == "0.0" else f"{told} s"


def who(record: TickView, side: str, shown: Sequence[str] = ()) -> str:
    """Return who disagreed with a side; of those without a point among `shown`, on which score."""
    deliberation = record.deliberation
    heard = [one for one in deliberation.reports if not is_gate(one) and not one.abstained]
    if deliberation.swarm is not None:
        heard = [one for one in heard if not one.regime]
    if not heard:
        asked = bool(record.made_calls or deliberation.failures)
        return "No agent answered." if asked else "No agent was asked."
    panel, towards = deliberation.panel, DIRECTIONS[side]
    leanings = panel.pushes
    against = [
        one
        for one in heard
        if (leanings.get(one.agent_id) or 0.0) * towards < 0.0
        or WINNERS.get(one.winner or "", towards) != towards
    ]
    if not against:
        weak = any(one not in UNHEARD for one in shown)
        many = _heard(deliberation, heard)
        return f"Nobody disagreed, of {many}{'; they named:' if weak else '.'}"
    # who judged both cases first: its word takes most off the conviction
    against.sort(key=lambda one: not one.winner)
    named = [_on(one, towards, shown) for one in against[:NAMED]]
    rest = f" and {len(against) - NAMED} more" if len(against) > NAMED else ""
    says = "Disagreed" if record.verdict in SIDES else f"Against {SIDES[side].verb}ing"
    return f"{says}: {', '.join(named)}{rest}."


def _heard(spoken: DebateRecord, heard: Sequence[AgentReport]) -> str:
    """Return how many were heard; of a swarm how many experts, and whether the judge was."""
    if spoken.swarm is None:
        return f"{len(heard)} heard"
    judge = spoken.judge
    experts = sum(one is not judge for one in heard)
    if not experts:
        return "the judge alone"
    named = f"{experts} expert{'' if experts == 1 else 's'}"
    return f"{named} and the judge" if judge in heard else named


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


def _size(record: TickView) -> TickFact:
    orders: list[SignalRecord | ProposedOrder] = [*record.signals, *record.proposed]
    opening = next((one for one in orders if one.kind == "open"), None)
    if opening is None:
        if orders:
            return TickFact("Size", "A close")
        if record.reason != HELD:
            return TickFact("Size", "No order")
        since = f", {told}" if (told := held_since(record)) else ""
        return TickFact(
            "Size", "No new order", f"the {held_side(record) or 'open position'} stays{since}"
        )
    agreed, gate = _agreed(record), record.gate.multiplier
    shadow, budget = record.deliberation.in_shadow, record.budget
    sure = 1.0 if agreed is None or shadow else agreed.conviction
    left = left_of(gate, sure, budget)
    if left is None or sure is None or left >= 1.0:
        return TickFact("Size", f"{figures.plain(opening.lots, 2)} lots")
    regime = "" if budget is None else f", budget {_percent(budget)}"
    panel = WATCH_ONLY if shadow else f"conviction {_percent(sure)}"
    more = f"{_percent(left)} of what risk allows: gate {_percent(gate or 0.0)}, {panel}{regime}"
    return TickFact("Size", f"{figures.plain(opening.lots, 2)} lots", more)


def _too_small(record: TickView, spec: SymbolSpec | None, currency: str) -> TickFact | None:
    """Return what the smallest order would have taken, where an opening was too small for one.

    None of another tick, and where price, terms or limits are not known.
    """
    side, at = str(record.verdict), record.limits or TickLimits()
    if DenyReason.SIZE_ZERO not in record.denied or spec is None or side not in SIDES:
        return None
    if at.capital is None:
        return None
    found = levels(side, record.close, record.atr, spec)
    agreed = None if record.deliberation.in_shadow else _agreed(record)
    budget = record.budget
    left = left_of(record.gate.multiplier, 1.0 if agreed is None else agreed.conviction, budget)
    if not isinstance(found, Levels) or left is None:
        return None
    sure = "" if agreed is None or agreed.conviction is None else _percent(agreed.conviction)
    regime = "" if budget is None else f", budget {_percent(budget)}"
    gate = _percent(record.gate.multiplier or 0.0)
    why = f" (gate {gate}, conviction {sure}{regime})" if sure else ""
    lots = smallest(spec)
    takes = (
        ("would lose {} at its stop", worth(abs(found.entry - found.stop), lots, spec)),
        ("would be worth {}", notional(lots, found.entry, spec)),
    )
    for (says, needed), share in zip(
        takes, (at.risk_per_trade_pct, at.max_notional_pct), strict=True
    ):
        if share is None or needed <= at.capital * share / 100 * left:
            continue
        amount, allowed = (
            f"{figures.plain(one, 2)} {currency}".rstrip()
            for one in (needed, at.capital * share / 100 * left)
        )
        more = (
            f"the smallest order, {lots:g} lots, {says.format(amount)}; allowed are {allowed}: "
            f"{share:g} % of {figures.plain(at.capital, 0)} × {figures.plain(left, 2)}{why}"
        )
        return TickFact("Size", "Too small", more)
    return None


def _risk(
    record: TickView, spec: SymbolSpec | None, currency: str, proposed: Levels | None
) -> TickFact:
    orders: list[SignalRecord | ProposedOrder] = [*record.signals, *record.proposed]
    opening = next((one for one in orders if one.kind == "open"), None)
    at = opening if isinstance(opening, SignalRecord) else proposed
    if opening is None or opening.lots is None:
        kept = not orders and record.reason == HELD
        return TickFact("At risk", "Nothing new", "") if kept else TickFact("At risk", "Nothing")
    if at is None or at.entry is None or at.stop is None:
        return TickFact("At risk", DASH, "where its stop lay is not known")
    distance = abs(at.entry - at.stop)
    digits = 5 if record.digits is None else record.digits
    away = f"stop {figures.plain(distance, digits)} away"
    if spec is None:
        return TickFact("At risk", away)
    money = figures.plain(worth(distance, opening.lots, spec), 2)
    return TickFact("At risk", f"{money} {currency}".rstrip(), away)


def without(record: TickView, told: Mapping[str, str] | None) -> tuple[str, str]:
    """Return what would have happened without agents, in a word and in a sentence.

    `told` is what torra.replay.changed says of a tick that agents changed: did, came and done; None
    where they changed nothing of it, or nobody can tell.
    """
    alone, verdict = figures.mark(record.l1_verdict).word, figures.mark(record.verdict).word
    l1 = figures.format_signed(record.l1_consensus)
    if record.l1_verdict is None:
        return "Not known", "What the bars alone said is not recorded."
    if told:
        return (
            told["did"],
            f"{told['came']} With agents: {told['done']} The bars alone stood at {l1}. "
            "That is this trade only.",
        )
    judged = record.reason == DenyReason.TRADER_DECLINED or (
        record.reason == DenyReason.GATE_VETO and not record.gate.rule.veto
    )
    if record.l1_verdict == record.verdict and judged:
        return "Not known", f"The bars alone stood at {l1}, which is {alone} too."
    if record.l1_verdict == record.verdict:
        traded, kept = bool(record.signals or record.proposed), record.reason == HELD
        return (
            "The same trade"
            if traded
            else f"The same: {held_side(record) or 'position'} kept"
            if kept
            else "No trade either",
            f"The bars alone stood at {l1}, which is {alone} too.",
        )
    return (
        f"A {SIDES[record.l1_verdict].verb}" if record.l1_verdict in SIDES else "No trade",
        f"The bars alone stood at {l1}; with agents the verdict is {verdict}.",
    )
