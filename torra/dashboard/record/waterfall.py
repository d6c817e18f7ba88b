"""Two waterfall charts of one tick, as numbers on a scale: its time, and its scores.

Time: every call on the axis of the tick, with the end of its stage and the deadline. A record says
how long stages and calls took, not when they began. So they are laid one after the other, from the
end of the work before the debate, and a second request of an agent comes after its first.
Scores: the score of the bars as the bar that it is, from zero; how far each agent, the gate and the
blend move it from there; and what the contributions add up to against the thresholds. Each has an
axis with zero and numbers. The numbers are those of `arithmetic`, which checks them against the
record. The template draws. Pure functions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from agent_config import CONSULT_SECONDS, FALLBACK_SHARE, FOCUS_WEIGHT, MODES
from agents.contracts import ADJUSTMENT_BOUND, RESEARCHER_BOUND, SIDES, VECTORS
from agents.debate import scoring
from agents.registry import AGENTS
from torra.dashboard.record import arithmetic, swarm, thesis
from torra.dashboard.record.shown import TickView
from torra.exhibits import figures
from torra.exhibits.axis import AxisScale
from torra.exhibits.figures import BarSpan
from torra.tick.tick_record import DebateRecord, StoredCall, TickRecord, is_gate

AXIS: Final = 1000.0
"""Width of the time axis in the units of its drawings."""

LEAST: Final = 6.0
"""Width of the shortest bar, so that a call that took no time is still seen."""

ROOM: Final = 1.25
SHOWS_DEADLINE: Final = 0.25
"""The axis ends at the deadline when the tick used this share of it; else a little after the tick,
and the deadline is told in words.
"""

TICKS: Final = 5
LEFT, RIGHT = 112.0, 314.0
"""Where a drawing of scores begins and ends, between names and numbers, in its units."""

NARROWEST: Final = 0.02
"""The least range of scores on a chart, so that a tiny change is not drawn as a large one."""

MARKED: Final = 5
"""Most numbers on an axis of scores: more would touch each other."""

AXIS_STEPS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0)
"""Steps between the numbers of an axis."""


# --- time ---


class CallSpan(NamedTuple):
    """A call from its start to its end, in ms since the tick was due; its stage ends at `until`."""

    call: StoredCall
    start: float
    end: float
    until: float | None

    @property
    def over(self) -> bool:
        """Whether it ended after its stage."""
        return self.until is not None and self.end > self.until + 1.0


class CallTimeline(NamedTuple):
    """The calls of a tick on an axis of `span` ms; `before` passed before its debate."""

    rows: Sequence[CallSpan]
    span: float
    before: float
    deadline: float | None

    @property
    def axis(self) -> list[str]:
        """The times at its marks, in words."""
        return [self.words(self.span * step / (TICKS - 1)) for step in range(TICKS)]

    def words(self, ms: float) -> str:
        """Return a time with its unit."""
        return f"{ms:.4g} ms" if ms < 1000 else f"{ms / 1000:.4g} s"

    def x(self, ms: float) -> float:
        """Return where a time lies, 0 to AXIS."""
        return round(max(0.0, min(1.0, ms / self.span)) * AXIS, 1)

    def bar(self, start: float, end: float) -> BarSpan:
        """Return where a bar lies, which is LEAST wide at least, at the very end too."""
        x = min(self.x(start), AXIS - LEAST)
        return {"x": round(x, 1), "width": round(max(LEAST, self.x(end) - self.x(start)), 1)}


def timeline(record: TickView) -> CallTimeline:
    """Return the calls of a tick on its time axis; `rows` is empty where none was made."""
    seconds = record.limits.timeout_seconds if record.limits else None
    deadline = None if seconds is None else seconds * 1000
    # at most this long: what the tick took without its debate
    before = max(0.0, record.elapsed_ms - record.deliberation.elapsed_ms)
    rows = list(_spans(record, before, deadline))
    used = max([record.elapsed_ms, *(row.end for row in rows)])
    near = deadline and used >= SHOWS_DEADLINE * deadline
    span = deadline if deadline and near else _nice(used * ROOM)
    # 1 ms at least: an axis of no length places nothing
    return CallTimeline(rows, max(span, used, 1.0), before, deadline)


def _spans(record: TickRecord, before: float, deadline: float | None) -> Iterator[CallSpan]:
    """Yield every call with its start and end and when its stage was over, in order of stages."""
    stages, calls = record.deliberation.stages, defaultdict(list)
    for call in record.made_calls:
        calls[call.stage, call.round].append(call)
    shares = _stage_shares({name for stage in stages for name in stage.agents})
    # What was kept for the trader is no time of the debate's.
    kept = CONSULT_SECONDS * 1000 if record.deliberation.consulted else 0.0
    debate = None if deadline is None or deadline <= 2 * kept else deadline - kept
    at, answered = before, False
    for stage in stages:
        first, further = shares.get(str(stage.name), (None, None))
        share = further if (stage.round or 1) > 1 else first
        ends_at = debate if share is not None and debate is not None else deadline
        until = _until(share, at, before, ends_at, answered=answered)
        ends: dict[str, float] = {}
        for call in calls.pop((stage.name, stage.round), ()):
            # all agents of a stage are asked at once, but a repeated request waits for the first
            start = ends.get(call.role_id, at)
            ends[call.role_id] = start + call.elapsed_ms
            yield CallSpan(call, start, ends[call.role_id], until)
        at += stage.ms or 0.0
        answered = answered or not {"answered", "abstained"}.isdisjoint(stage.agents.values())
    for call in chain.from_iterable(calls.values()):
        yield CallSpan(call, at, at + call.elapsed_ms, None)


def _stage_shares(agents: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Return the share of a stage's first round and of a further one, by the stage's name.

    They are those of the mode that seats exactly these agents, of the first for a desk of its own.
    """
    modes = [*MODES.values()]
    mode = next((row for row in modes if {*row.seats} == {*agents} - {row.consults}), modes[0])
    return {plan.name: (plan.share, plan.share_of(2)) for plan in mode.stages}


def _until(
    share: float | None, at: float, began: float, deadline: float | None, *, answered: bool
) -> float | None:
    """Return when a stage had to be over, as the sitting reckons it; None without a deadline.

    A stage without a share, such as the fallback, may use what is left.
    """
    if deadline is None:
        return None
    if share is None:
        return deadline
    # while nobody has answered, the sitting keeps this share for the fallback
    kept = 0.0 if answered else FALLBACK_SHARE * max(0.0, deadline - began)
    return max(at, min(at + share * (deadline - at), deadline - kept))


def _nice(ms: float) -> float:
    """Return the next of 1, 2, 2.5, 5, 10 and so on that is not below."""
    if ms <= 0:
        return 1.0
    base = 10.0 ** math.floor(math.log10(ms))
    return next(base * step for step in (1.0, 2.0, 2.5, 5.0, 10.0) if base * step >= ms)


# --- scores ---


class WaterfallStep(NamedTuple):
    """A step of a waterfall, from its start to its end; `kind` is base, voiced, sum or control."""

    name: str
    start: float
    end: float
    kind: str

    @property
    def number(self) -> str:
        """What it adds, or, from zero, what it is."""
        return figures.format_signed(self.end - self.start)

    @property
    def tone(self) -> str:
        """The tone of its number."""
        return figures.tone(self.end - self.start)


class Waterfall(NamedTuple):
    """Steps on one scale, which shows zero; `limits` are lines across it, by name."""

    title: str
    steps: Sequence[WaterfallStep]
    limits: Mapping[str, float]
    scale: AxisScale

    def x(self, value: float) -> float:
        """Return where a score lies, LEFT to RIGHT."""
        return round(LEFT + self.scale.place(value) * (RIGHT - LEFT), 1)

    @property
    def sentence(self) -> str:
        """Its steps as a sentence for those who do not see it."""
        return ", ".join(f"{step.name} {step.number}" for step in self.steps)


def _waterfall(
    title: str, steps: Sequence[WaterfallStep], limits: Mapping[str, float]
) -> Waterfall:
    """Return a waterfall with its scale: round numbers, zero among them, each with its word."""
    values = [0.0, *limits.values(), *(at for step in steps for at in (step.start, step.end))]
    low, high = min(values), max(values)
    pad = max(NARROWEST - (high - low), (high - low) * 0.08) / 2
    low, high = low - pad, high + pad
    step = next((one for one in AXIS_STEPS if (high - low) / one < MARKED), AXIS_STEPS[-1])
    decimals = 1 if math.isclose(step * 10, round(step * 10)) else 2
    places = [at * step for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
    words = [figures.format_signed(at, decimals) if at else "0" for at in places]
    return Waterfall(
        title, steps, limits, AxisScale(low, high, tuple(zip(places, words, strict=True)))
    )


def score_charts(record: TickRecord) -> list[Waterfall]:
    """Return one waterfall per vector: L1, who moved it, the gate, the clamp, the blend."""
    return [_vector_chart(record, vector) for vector in VECTORS]


def decision_chart(record: TickRecord) -> Waterfall:
    """Return the waterfall from the contributions to the consensus, with the thresholds in it."""
    parts = arithmetic.contributions(record)
    steps = [
        *_sums(parts, "Composite", record.composite, record.record_name),
        *_sums(arithmetic.shares(record), "Consensus", record.consensus),
        WaterfallStep("Without agents", 0.0, record.l1_consensus, "control"),
    ]
    limits = {"BUY": record.thresholds.buy, "SELL": -record.thresholds.sell}
    return _waterfall("Against the thresholds", steps, limits)


def _vector_chart(record: TickRecord, vector: str) -> Waterfall:
    at = l1 = record.l1[vector]
    steps = [WaterfallStep("Bars (L1)", 0.0, l1, "base")]
    for who, moved in _moves(record, vector):
        steps.append(WaterfallStep(who, at, at + moved, "voiced"))
        at += moved
    agent = record.agents[vector]
    # the voices add up to more than was applied: a bound has cut the rest
    if abs(agent - at) > arithmetic.TOLERANCE:
        steps.append(WaterfallStep("Cut at a bound", at, agent, "voiced"))
    name = "Bars: not counted" if record.deliberation.in_shadow else "What counts"
    steps += [
        WaterfallStep("Agent score", 0.0, agent, "sum"),
        WaterfallStep(name, 0.0, record.final(vector), "base"),
    ]
    return _waterfall(figures.title(vector), steps, {"": l1})


def _moves(record: TickRecord, vector: str) -> Iterable[tuple[str, float]]:
    """Yield the shift of a vector by each agent, and then by the gate."""
    debate, multiplier = record.deliberation.debate[vector], record.applied_multiplier
    shares = list(_shares(record.deliberation, vector))
    yield from shares
    total = math.fsum(moved for _, moved in shares)
    if abs(debate - total) > arithmetic.TOLERANCE:
        # the part of the debate that no voice explains
        yield "Fallback" if not shares else "Side left out", debate - total
    if debate:
        yield f"Gate × {figures.plain(multiplier, 2)}", debate * multiplier - debate


def _shares(deliberation: DebateRecord, vector: str) -> Iterator[tuple[str, float]]:
    """Yield each opinion's part of the debate: f k a / Σf of an analyst, w k a / 2 of a side.

    f counts the regime's weight of an expert, w is a manager's weight of the case, and a judge's
    part is k a. A side without the other is yielded only where its word is
    used alone.
    """
    weights, counts = thesis.weights(deliberation), swarm.trusted(deliberation.swarm)
    moved, focus = _votes(deliberation, vector)
    total, both = math.fsum(focus.values()), all(side in moved for side in SIDES)
    for name, value in moved.items():
        who, weight = figures.title(name), weights.get(name)
        if name in focus:
            if total:
                yield _counting(who, counts.get(name)), focus[name] * value / total
        elif name in arithmetic.JUDGE or (not both and _opinions(deliberation) == 1):
            yield who, value
        elif both and weight is not None:
            yield f"{who.removesuffix(' researcher')} × {weight:.2f}", weight * value / 2
        elif both:
            yield who, value / 2


def _votes(deliberation: DebateRecord, vector: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return k a of each voice by its id, and f of the analysts among them."""
    moved: dict[str, float] = {}
    focus: dict[str, float] = {}
    counts = swarm.trusted(deliberation.swarm)
    for report in deliberation.reports:
        name, value = report.agent_id, report.adjustments.get(vector)
        trust, seat = arithmetic.trust(report), AGENTS.get(name)
        if trust is None or value is None or seat is None or is_gate(report):
            continue
        if name not in (*SIDES, *arithmetic.JUDGE):
            if vector not in seat.role.focus:
                continue
            focus[name] = FOCUS_WEIGHT[seat.role.focus[vector]] * counts.get(name, 1.0)
        bound = ADJUSTMENT_BOUND if name in focus else RESEARCHER_BOUND
        moved[name] = trust * scoring.clamp(value, bound)
    return moved, focus


def _opinions(deliberation: DebateRecord) -> int:
    """Return how many reports have a say in the scores."""
    return sum(
        not is_gate(report) and not report.abstained and report.agent_id not in arithmetic.ARBITERS
        for report in deliberation.reports
    )


def _counting(who: str, weight: float | None) -> str:
    """Return an expert's name with what its word counts."""
    short = who.replace("Microstructure", "Microstr.")
    return who if weight is None else f"{short} × {weight:.2f}"


def _sums(
    parts: Mapping[str, float], name: str, total: float, ath: str = ""
) -> Iterable[WaterfallStep]:
    at = 0.0
    for part, value in parts.items():
        label = ath if part == "ath" else figures.title(part)
        yield WaterfallStep(label, at, at + value, "voiced")
        at += value
    yield WaterfallStep(name, 0.0, total, "sum")
