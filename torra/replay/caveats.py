"""States what is to be read before the figures of a replay: its conditions, and their limits.

The conditions of the run (costs, provider, seed, bars) come first, because every figure is a figure
under them. An arm whose agents were not asked on many ticks is no trial of them, whatever its
figures say; each such arm is named with its count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from agents.contracts import SourceType
from technical_calculator import WARM_UP
from torra.clock import iso
from torra.config import Instance, Profile
from torra.desk.outlook import currencies_of
from torra.evaluation.observations import ArmObservation
from torra.evaluation.openings import rounding_warning, side_warning
from torra.evaluation.wording import count, percent, signed, the_arm, upper_first
from torra.evidence.expert_bars import WINDOW
from torra.evidence.scheduled_events import EVERY_CURRENCY, ScheduledEvent
from torra.exhibits.trade_file import jump_of
from torra.market.plausibility import look
from torra.providers.recorded import NAME as RECORDED
from torra.replay.arms import ARMS, READERS
from torra.replay.outlook_then import SHIFT
from torra.replay.replaying import ReplayPlan
from torra.replay.shards.history import History

PAPER: Final = (
    "A replay fills at the next bar's open and knows no queue, no requote and no news gap inside a "
    "bar; docs/paper.md says what it cannot know."
)
MEMORY: Final = (
    "A language model may have read about these days when it was trained. Only ticks after its "
    "knowledge ends are evidence; the others show what it remembers."
)

TOO_SHORT: Final = "too_short"
"""The reason of a tick with fewer bars before it than the scores take."""

NO_REPLY: Final = "the journal holds no reply for these requests"
"""The reason when a desk that is answered from the journal was not whole."""


def caveats(plan: ReplayPlan, seen: Sequence[ArmObservation]) -> list[str]:
    """Return the sentences above the figures of a replay."""
    own = [arm for arm in seen if not (arm.name in ARMS and ARMS[arm.name].is_placebo)]
    return [
        conditions(plan),
        *of_the_openings(own, plan.profile),
        *_across_jumps(plan.history, own),
        *_of_the_outlook(plan),
        *_of_earlier_days(plan),
        *_of_the_bars(plan),
        *_of_the_run(plan, seen),
        PAPER,
    ]


def of_the_openings(seen: Sequence[ArmObservation], profile: Profile) -> list[str]:
    """Return what is to be said of the openings of arms: lots that round to none, one side only."""
    return [told for told in (rounding_warning(seen, profile), side_warning(seen)) if told]


def thresholds_told(profile: Profile) -> str:
    """Return from where on a consensus is a verdict."""
    limits = profile.thresholds
    return f"BUY from {signed(limits.buy)}, SELL to {signed(-limits.sell)}"


def conditions(plan: ReplayPlan) -> str:
    """Return under which conditions a replay ran, in one sentence."""
    symbol, costs = plan.history.symbol, plan.costs
    provider = plan.profile.agents.provider
    return (
        f"Run with spread {costs.spread:g} and slippage {costs.slippage:g} in the price of "
        f"{symbol}, commission {costs.commission:g} a lot, answers by {provider}, seed "
        f"{plan.seed}, bars {plan.history.digest}."
    )


def _of_the_outlook(plan: ReplayPlan) -> Iterator[str]:
    """Say what was known of events and headlines; headlines are those of the replay's days."""
    told = plan.outlook
    if told.events is not None:
        yield _of_the_calendar(plan, told.events)
    if told.filed is not None:
        yield f"Agents read {count(len(told.filed), 'headline')} of {plan.profile.news.file}."
    if told.stored:
        first = iso(told.stored[0].first_seen)
        yield (
            f"Agents read {count(len(told.stored), 'headline')} of vendors, as this desk first saw "
            f"them, the first at {first}: before it they had none."
        )
    if told.series or told.facts:
        names = sorted({one.row.name for one in told.series})
        names += sorted({f"the reports of {one.row.ticker}" for one in told.facts})
        yield (
            f"Outside numbers ({', '.join(names)}) count from the moment at which the public could "
            "know them; a live desk has them from when it saw them itself, which may be later."
        )
    beside = dict.fromkeys(one.name for one in told.companions if one.times)
    if beside:
        yield (
            f"Companions ({', '.join(beside)}) are the bars that this desk has stored, known from "
            "the close of each; a live tick goes without one that comes late."
        )
    if missing := dict.fromkeys(one.name for one in told.companions if one.name not in beside):
        yield f"No bars of companions ({', '.join(missing)}) are stored: no tick knew them."
    if told.flow:
        yield (
            f"Order flow ({', '.join(told.flow)}) counts from the close of its bar; a live tick may"
            " have looked before it was there, or before a bar that was left out was counted."
        )
    reads = any(arm.agents.get("active_agents") == READERS["active_agents"] for arm in plan.arms)
    if reads and not (told.series or told.facts or beside or told.flow):
        yield (
            f"No outside number that {plan.history.symbol} reads is stored and was known by the "
            "end of these bars, so the arms with and without them saw the same: import some with "
            "`torra data import FILE`."
        )
    if told.short_series and any(arm.outside == "shifted" for arm in plan.arms):
        yield (
            f"Too short for the placebo, which reads each series as it was {SHIFT.days} days "
            f"before: {', '.join(told.short_series)}."
        )


def _of_earlier_days(plan: ReplayPlan) -> Iterator[str]:
    """Say on how many ticks a placebo of the evidence may have no earlier day to read."""
    begin = plan.begin or plan.history.period[0]
    first = (frame.index[: WINDOW + WARM_UP] for frame in plan.history.frames.values())
    short = sum(int((times >= begin).sum()) for times in first)
    if short and any(arm.evidence == "earlier" for arm in plan.arms):
        yield (
            f"On up to {count(short, 'tick')} the placebo of the evidence has no earlier day to "
            f"read, which lies {WINDOW} bars before at least: its experts abstain there. Bars from "
            "before --from give them one."
        )


def _of_the_calendar(plan: ReplayPlan, events: Sequence[ScheduledEvent]) -> str:
    """Say how many events could keep an opening away; nothing that could says so plainly."""
    history, name = plan.history, plan.profile.events.calendar
    first, last = history.period
    begin, end = plan.begin or first, plan.end or last
    concerned = {*currencies_of(Instance(symbol=history.symbol), plan.profile), EVERY_CURRENCY}
    matter = [
        event
        for event in events
        if event.impact == "high" and event.currency in concerned and begin <= event.time <= end
    ]
    if not matter:
        return (
            f"The calendar {name} has no event of high impact for {history.symbol} in these days: "
            "no opening was kept away from one."
        )
    return (
        f"Openings keep away from {count(len(matter), 'event')} of high impact of the calendar "
        f"{name}, taken as it stands now: an event that was announced late was not known then."
    )


def _of_the_bars(plan: ReplayPlan) -> Iterator[str]:
    """Say what is odd about the bars, and where half of them are smaller than the spread."""
    history, spread = plan.history, plan.costs.spread
    yield from history.warnings
    if plan.guessed:
        digits = plan.profile.symbol(history.symbol).digits
        yield (
            f"Nobody told how {history.symbol} is traded, so it is guessed: {digits} decimals, one "
            f"unit a lot, spread {spread:g}. Money is as good as this guess; add the symbol to the "
            "desk to replay it on its own terms."
        )
    bars = history.frames[history.timeframes[0]]
    usual = float((bars["high"] - bars["low"]).median())
    if 0 < usual < spread:
        yield (
            f"The spread of {spread:g} is {spread / usual:.3g} times the range of the median "
            f"{history.timeframes[0]} bar ({usual:.3g}): are these bars of {history.symbol}?"
        )


def jumps_of(history: History) -> tuple[datetime, ...]:
    """Return the jumps of the price in the shortest bars of a history."""
    name = history.timeframes[0]
    return look(history.frames[name], name).jumps


def _across_jumps(history: History, seen: Sequence[ArmObservation]) -> Iterator[str]:
    """Say how many trades of each arm lived through a jump, and to what their results add up."""
    jumps = jumps_of(history) if any(arm.trades for arm in seen) else ()
    for arm in seen:
        marked = [trade.r for trade in arm.trades if jump_of(trade, jumps)]
        if marked:
            who = upper_first(the_arm(arm.name, [one.name for one in seen]))
            total = sum(trade.r for trade in arm.trades)
            yield (
                f"{who}: {count(len(marked), 'trade')} across a jump of the price, with "
                f"{signed(sum(marked))} R of {signed(total)} R in all: mend the bars first."
            )


def _of_the_run(plan: ReplayPlan, seen: Sequence[ArmObservation]) -> Iterator[str]:
    provider = plan.profile.agents.provider
    if plan.profile.agents.paid():
        yield MEMORY
    if plan.history.derived:
        names = ", ".join(plan.history.derived)
        yield f"{names} bars were put together from shorter ones; half bars are left out."
    if seen and seen[0].skipped:
        told = ", ".join(_skipped(*one) for one in seen[0].skipped.items())
        ran = len(seen[0].ticks)
        yield f"Of {ran + sum(seen[0].skipped.values()):,} ticks {ran:,} were run, {told}."
    every = [arm.name for arm in seen]
    halted = ", ".join(
        f"{the_arm(arm.name, every)} {count(arm.halts, 'time')}" for arm in seen if arm.halts
    )
    if halted:
        yield f"Halted by its own limits, and resumed at midnight: {halted}."
    yield from (told for arm in seen if (told := unheard(arm, provider, every)))


def _skipped(reason: str, number: int) -> str:
    """Return how many ticks were not run, and why."""
    why = "had too few bars" if reason == TOO_SHORT else "were skipped"
    return f"{number:,} {why} ({reason})"


def unheard(arm: ArmObservation, provider: str = "", among: Sequence[str] = ()) -> str:
    """Return on how many ticks an arm's desk was not whole, and why; "" where it always was."""
    whole = ARMS[arm.name].whole if arm.name in ARMS else frozenset[SourceType]()
    if not whole or not arm.ticks:
        return ""
    other = Counter(tick.source_type for tick in arm.ticks if tick.source_type not in whole)
    if not other:
        return ""
    told = ", ".join(f"{number:,} {kind}" for kind, number in other.most_common())
    why = NO_REPLY if provider == RECORDED else "no money, no time, or no answer"
    share = percent(other.total() / len(arm.ticks), 1)
    who = upper_first(the_arm(arm.name, among))
    return (
        f"{who}: on {count(other.total(), 'tick')} of {len(arm.ticks):,} ({share}) its desk "
        f"was not whole ({told}): {why}. To that share it is no trial of its agents."
    )
