"""What L1 alone would do in the place of a proposal: the same trade, another one, or none.

    Without agents: the same trade, 0.09 lots   bars +0.53, BUY from +0.50

The size is that of the sizing code (torra.verdict.position_size), at the price of the proposal and
with the multiplier of the gate's rules alone: no agent has lowered it, neither by its word nor by
disagreeing with another, and no conviction counts.
Where a part of it is not stored, the line says so. Pure functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agents import risk_gate
from agents.contracts import Feature
from torra.config import Profile
from torra.exhibits import figures
from torra.store.trade.rows import ProposalRow
from torra.tick.sentence import number
from torra.tick.tick_record import TickRecord
from torra.verdict.order_levels import Levels, Side, levels
from torra.verdict.position_size import size
from torra.words.deny_reasons import DenyReason
from torra.words.orders import SIDES

if TYPE_CHECKING:
    from torra.dashboard.trade.order import Terms

OTHER: Final[dict[str, Side]] = {"BUY": "SELL", "SELL": "BUY"}


def line(
    row: ProposalRow, record: TickRecord | None, at: Levels | None, terms: Terms
) -> tuple[str, str]:
    """Return what L1 alone would do instead of a proposal, and where its consensus stands.

    `at` are the levels of the proposal, None for one that only closes.
    """
    if record is None:
        return "not known: the tick behind this proposal is not stored", ""
    return _trade(row, record, at, terms), _standing(record)


def _trade(row: ProposalRow, record: TickRecord, at: Levels | None, terms: Terms) -> str:
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
    return _opening(OTHER[OTHER[alone]], row, record, at, terms)


def _opening(
    side: Side, row: ProposalRow, record: TickRecord, at: Levels | None, terms: Terms
) -> str:
    """Return what L1 alone would open, in words."""
    what = "the same trade" if side == row.verdict else f"a {SIDES[side].verb} instead"
    veto, alone = _rules(record, terms.profile)
    if veto:
        return "no trade, the gate's rules veto it"
    if at is None or terms.profile is None or terms.spec is None or alone is None:
        return f"{what}, its size is not known"
    # the levels of its side at the price of the proposal
    own = at if side == row.verdict else levels(side, at.entry, at.atr, terms.spec)
    if isinstance(own, DenyReason):
        return "no trade, it could have no stop and target"
    lots = size(own, terms.spec, terms.profile.risk, alone)
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
        features = {one.id: Feature(one.id, one.value) for one in record.features}
        ruling = risk_gate.rules(features, profile.gate, 0.0).ruling
        return ruling.veto, ruling.multiplier
    spread = max(record.deliberation.panel.spread.values(), default=0.0)
    return rule.veto, risk_gate.without_analysts(rule.multiplier, spread, profile.gate)


def _lots(lots: float | None) -> str:
    return f"{figures.plain(lots, 2)} lots"


def _standing(record: TickRecord) -> str:
    """Return the consensus of L1 and the threshold that it reaches; both where it reaches none."""
    consensus, limits = record.l1_consensus, record.thresholds
    ends = {"BUY": limits.buy, "SELL": -limits.sell}
    shown = [name for name in ends if record.l1_verdict not in OTHER or name == record.l1_verdict]
    text = ", ".join(f"{name} from {_signed(ends[name])}" for name in shown)
    return f"bars {_signed(consensus, *ends.values())}, {text}"


def _signed(value: float, *limits: float) -> str:
    return number(value, limits).replace("-", figures.MINUS)
