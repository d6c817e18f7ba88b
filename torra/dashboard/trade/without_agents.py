"""What L1 alone would do in the place of a proposal: the same trade, another one, or none.

    Without agents: the same trade, 0.09 lots   bars +0.53, BUY from +0.50

The size is that of the sizing code (torra.verdict.position_size), at the price of the proposal and
with the multiplier of the gate's rules alone: no agent has lowered it, neither by its word nor by
disagreeing with another, and no conviction counts.
Where a part of it is not stored, the line says so. Pure functions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from agents import risk_gate
from agents.contracts import Feature
from torra.config import Profile, SymbolSpec
from torra.dashboard.cells.common import Cells, words
from torra.exhibits import figures
from torra.store.trade.rows import ProposalRow
from torra.tick.sentence import number
from torra.tick.tick_record import TickRecord
from torra.verdict.order_levels import Levels, Side, levels
from torra.verdict.position_size import size
from torra.words.deny_reasons import DenyReason
from torra.words.orders import SIDES

NAME: Final = "p.without"
OTHER: Final[dict[str, Side]] = {"BUY": "SELL", "SELL": "BUY"}


class OrderTerms(NamedTuple):
    """At what the sizes are made: the levels of the proposal, None for one that only closes."""

    levels: Levels | None
    profile: Profile | None
    spec: SymbolSpec | None


def line(row: ProposalRow, record: TickRecord | None, at: OrderTerms) -> Cells:
    """Return what L1 alone would do instead of a proposal, and where its consensus stands."""
    if record is None:
        told = words("not known: the tick behind this proposal is not stored")
        return {NAME: told, f"{NAME}.why": words("")}
    return {NAME: words(_trade(row, record, at)), f"{NAME}.why": words(_standing(record))}


def _trade(row: ProposalRow, record: TickRecord, at: OrderTerms) -> str:
    """Return the trade of L1 alone, in words."""
    alone = record.l1_verdict
    if alone not in OTHER:
        return "no trade"
    first = row.first
    if alone == row.verdict and first.kind == "close":
        return f"the same close, {_lots(first.lots)}"
    if alone != row.verdict and any(draft.kind == "close" for draft in row.orders):
        # what the proposal closes is on the side of L1
        return "no trade, what is open stays open"
    return _opening(OTHER[OTHER[alone]], row, record, at)


def _opening(side: Side, row: ProposalRow, record: TickRecord, at: OrderTerms) -> str:
    """Return what L1 alone would open, in words."""
    what = "the same trade" if side == row.verdict else f"a {SIDES[side].verb} instead"
    veto, alone = _rules(record, at.profile)
    if veto:
        return "no trade, the gate's rules veto it"
    if at.levels is None or at.profile is None or at.spec is None:
        return f"{what}, its size is not known"
    found = _levels(side, row, at.levels, at.spec)
    if isinstance(found, DenyReason):
        return "no trade, it could have no stop and target"
    if alone is None:
        return f"{what}, its size is not known"
    lots = size(found, at.spec, at.profile.risk, alone)
    if not lots:
        return "no trade, its size is below the smallest order"
    return f"{what}, {_lots(lots)}"


def _rules(record: TickRecord, profile: Profile | None) -> tuple[bool, float | None]:
    """Return the veto of the gate's own rules and their multiplier, None where it is not known.

    As if no analyst had been heard; of a swarm without its risk officer and its judge.
    """
    rule = record.gate.rule
    if profile is None:
        return rule.veto, None
    if record.deliberation.swarm is not None:
        seen = {one.id: Feature(one.id, one.value) for one in record.features}
        ruling = risk_gate.rules(seen, profile.gate, 0.0).ruling
        return ruling.veto, ruling.multiplier
    apart = max(record.deliberation.panel.spread.values(), default=0.0)
    return rule.veto, risk_gate.without_analysts(rule.multiplier, apart, profile.gate)


def _levels(side: Side, row: ProposalRow, of: Levels, spec: SymbolSpec) -> Levels | DenyReason:
    """Return the levels of a side at the price of the proposal, whose own levels are `of`."""
    return of if side == row.verdict else levels(side, of.entry, of.atr, spec)


def _lots(lots: float | None) -> str:
    return f"{figures.plain(lots, 2)} lots"


def _standing(record: TickRecord) -> str:
    """Return the consensus of L1 and the threshold that it reaches; both where it reaches none."""
    consensus, limits = record.l1_consensus, record.thresholds
    ends = {"BUY": limits.buy, "SELL": -limits.sell}
    shown = [name for name in ends if record.l1_verdict not in OTHER or name == record.l1_verdict]
    told = ", ".join(f"{name} from {_signed(ends[name])}" for name in shown)
    return f"bars {_signed(consensus, *ends.values())}, {told}"


def _signed(value: float, *limits: float) -> str:
    return number(value, limits).replace("-", figures.MINUS)
