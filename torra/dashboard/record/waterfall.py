"""Two waterfall charts of one tick, as numbers and as geometry: its time, and its scores.

Time: every call on the axis of the tick, with the end of its stage and the deadline. A record says
how long stages and calls took, not when they began. So they are laid one after the other, from the
end of the work before the debate, and a second request of an agent comes after its first.
Scores: the score of the bars as the bar that it is, from zero; how far each agent, the gate and the
blend move it from there; and what the contributions add up to against the thresholds. Each has an
axis with zero and numbers. The numbers are those of `arithmetic`, which checks them against the
record.
Pure functions; what lacks a number is left out, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, NotRequired, TypedDict

from agent_config import CONSULT_SECONDS, FALLBACK_SHARE, FOCUS_WEIGHT, row_of
from agents.contracts import ADJUSTMENT_BOUND, RESEARCHER_BOUND, SIDES, VECTORS, AgentReport
from agents.debate import synthesis
from agents.registry import AGENTS
from torra.dashboard.record import arithmetic, inputs, swarm, thesis
from torra.dashboard.record.rows import Tried
from torra.dashboard.record.shown import TickLimits, TickView
from torra.exhibits import figures
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
CHART_WIDTH: Final = 366.0
LABEL_WIDTH: Final = 112.0
NUMBER_WIDTH: Final = 52.0
ROW_HEIGHT: Final = 16.0
NARROWEST: Final = 0.02
"""The least range of scores on a chart, so that a tiny change is not drawn as a large one."""

AXIS_HEIGHT: Final = 18.0
"""Height below the rows of a chart, for the numbers of its axis."""

MARKED: Final = 5
"""Most numbers on an axis of scores: more would touch each other."""

AXIS_STEPS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0)
"""Steps between the numbers of an axis."""


# --- time ---


class Span(Tried):
    """A call from its start to its end, in ms since the tick was due; its stage ends at `until`."""

    who: str
    stage: str
    status: str
    good: bool
    detail: str
    start: float
    end: float
    until: float | None


class CallBar(Span, BarSpan):
    """A call on the time axis."""

    limit_x: float | None
    start_ms: str
    took_ms: str
    until_ms: str
    over: bool


class CallTimeline(TypedDict):
    """The calls of a tick on its time axis."""

    rows: list[CallBar]
    span: float
    axis: list[str]
    before: BarSpan | None
    before_ms: str
    deadline: str
    deadline_x: float | None
    took_x: float | None
    took: str
    beyond: bool
    last: float


def timeline(record: TickView) -> CallTimeline:
    """Return the calls of a tick on its time axis; `rows` is empty where none was made.

    Times of rows are milliseconds since the tick was due.
    """
    deadline = (record.limits or TickLimits()).timeout_seconds
    end_ms = None if deadline is None else deadline * 1000
    before = _before(record)
    rows = list(_spans(record, before, end_ms))
    took = record.elapsed_ms
    last = max([took or 0.0, *(row["end"] for row in rows), *(row["until"] or 0 for row in rows)])
    used = max([took or 0.0, *(row["end"] for row in rows)])
    span = end_ms if end_ms and used >= SHOWS_DEADLINE * end_ms else _nice(used * ROOM)
    # 1 ms at least: an axis of no length places nothing
    span = max(span, used, 1.0)
    return {
        "rows": [_drawn(row, span) for row in rows],
        "span": span,
        "axis": [_told_ms(span * step / (TICKS - 1)) for step in range(TICKS)],
        "before": _bar(0.0, before, span) if before else None,
        "before_ms": figures.plain(before, 0),
        "deadline": "" if end_ms is None else _told_ms(end_ms),
        "deadline_x": None if end_ms is None or end_ms > span else _x(end_ms, span),
        "took_x": None if took is None else _x(took, span),
        "took": figures.DASH if took is None else _told_ms(took),
        "beyond": bool(end_ms and end_ms > span),
        "last": last,
    }


def _before(record: TickRecord) -> float:
    """Return how long the tick took without its debate, in ms: at most this long before it."""
    whole, debate = record.elapsed_ms, record.deliberation.elapsed_ms
    return 0.0 if whole is None or debate is None else max(0.0, whole - debate)


def _spans(record: TickRecord, before: float, deadline: float | None) -> Iterable[Span]:
    """Yield every call with its start and end and when its stage was over, in order of stages."""
    calls, stages = record.made_calls, record.deliberation.stages
    row = row_of(name for stage in stages for name in stage.agents)
    # What was kept for the trader is no time of the debate's.
    kept = CONSULT_SECONDS * 1000 if record.deliberation.consulted else 0.0
    debate = None if deadline is None or deadline <= 2 * kept else deadline - kept
    at, heard = before, False
    for stage in stages:
        share = row.share(str(stage.name), stage.round or 1)
        ends_at = debate if share is not None and debate is not None else deadline
        until = _until(share, at, before, ends_at, heard=heard)
        ends: dict[str, float] = {}
        for call in calls:
            if (call.stage, call.round) != (stage.name, stage.round):
                continue
            # all agents of a stage are asked at once, but a repeated request waits for the first
            start = ends.get(call.role_id, at)
            ends[call.role_id] = start + (call.elapsed_ms or 0.0)
            yield _span(call, start, ends[call.role_id], until)
        at += stage.ms or 0.0
        heard = heard or any(word in ("answered", "abstained") for word in stage.agents.values())
    known = {(stage.name, stage.round) for stage in stages}
    for call in calls:
        if (call.stage, call.round) not in known:
            yield _span(call, at, at + (call.elapsed_ms or 0.0), None)


def _span(call: StoredCall, start: float, end: float, until: float | None) -> Span:
    return {
        "who": figures.title(call.role_id),
        "stage": figures.sanitize(call.stage, 40),
        "try": inputs.numbered(call),
        "status": figures.sanitize(call.status, 40),
        "good": call.status == "ok",
        "detail": figures.sanitize(call.detail, 400),
        "start": start,
        "end": end,
        "until": until,
    }


def _until(
    share: float | None, at: float, began: float, deadline: float | None, *, heard: bool
) -> float | None:
    """Return when a stage had to be over, as the sitting reckons it; None without a deadline.

    A stage without a share, such as the fallback, may use what is left.
    """
    if deadline is None:
        return None
    if share is None:
        return deadline
    # while nobody has answered, the sitting keeps this share for the fallback
    kept = 0.0 if heard else FALLBACK_SHARE * max(0.0, deadline - began)
    return max(at, min(at + share * (deadline - at), deadline - kept))


def _drawn(row: Span, span: float) -> CallBar:
    until = row["until"]
    return {
        **row,
        **_bar(row["start"], row["end"], span),
        "limit_x": None if until is None or until > span else _x(until, span),
        "start_ms": figures.plain(row["start"], 0),
        "took_ms": figures.plain(row["end"] - row["start"], 0),
        "until_ms": figures.plain(until, 0),
        "over": until is not None and row["end"] > until + 1.0,
    }


def _bar(start: float, end: float, span: float) -> BarSpan:
    x = _x(start, span)
    width = max(LEAST, _x(end, span) - x)
    # a bar at the very end keeps its least width too
    return {"x": round(min(x, AXIS - LEAST), 1), "width": round(min(width, AXIS - x + LEAST), 1)}


def _x(ms: float, span: float) -> float:
    return round(max(0.0, min(1.0, ms / span)) * AXIS, 1)


def _nice(ms: float) -> float:
    """Return the next of 1, 2, 2.5, 5, 10 and so on that is not below."""
    if ms <= 0:
        return 1.0
    base = 10.0 ** math.floor(math.log10(ms))
    return next(base * step for step in (1.0, 2.0, 2.5, 5.0, 10.0) if base * step >= ms)


def _told_ms(ms: float) -> str:
    if ms < 1000:
        return f"{ms:.4g} ms"
    return f"{ms / 1000:.4g} s"


# --- scores ---


class ScoreRange(NamedTuple):
    """The range of scores that a chart shows."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """Return where a score lies on a chart."""
        room = CHART_WIDTH - LABEL_WIDTH - NUMBER_WIDTH
        return round(LABEL_WIDTH + (value - self.low) / (self.high - self.low) * room, 1)


class WaterfallStep(NamedTuple):
    """A step of a waterfall."""

    name: str
    start: float
    end: float
    kind: str


class FallRow(TypedDict):
    """A drawn step of a waterfall."""

    name: str
    kind: str
    y: float
    x: float
    width: float
    end: float
    tone: str
    number: str


class ThresholdLine(TypedDict):
    """A threshold on a chart."""

    name: str
    x: float
    value: str


class AxisMark(TypedDict):
    """A number on the axis of a chart, and its place."""

    x: float
    value: str
    zero: bool


class WaterfallChart(TypedDict):
    """A waterfall: its steps with their geometry, and its axis."""

    width: float
    height: float
    floor: float
    rows: list[FallRow]
    axis: list[AxisMark]
    spoken: str


class VectorChart(TypedDict):
    """The waterfall of a vector, or why there is none."""

    title: str
    why: str
    rows: list[FallRow]
    origin: NotRequired[float]
    width: NotRequired[float]
    height: NotRequired[float]
    floor: NotRequired[float]
    axis: NotRequired[list[AxisMark]]
    spoken: NotRequired[str]


class DecisionChart(WaterfallChart):
    """The waterfall of the decision, with the thresholds in it."""

    lines: list[ThresholdLine]


def score_charts(record: TickRecord) -> list[VectorChart]:
    """Return one waterfall per vector: L1, who moved it, the gate, the clamp, the blend."""
    return [_vector_chart(record, vector) for vector in VECTORS]


def decision_chart(record: TickRecord) -> DecisionChart | None:
    """Return the waterfall from the contributions to the consensus, with the thresholds in it."""
    composite, consensus = record.composite, record.consensus
    if composite is None or consensus is None:
        return None
    parts = arithmetic.contributions(record)
    steps = list(_sums(parts, "Composite", composite, record.record_name))
    steps += _sums(arithmetic.shares(record), "Consensus", consensus)
    buy, sell = record.thresholds.buy, record.thresholds.sell
    lines = [("BUY", buy), ("SELL", None if sell is None else -sell)]
    known = [(name, value) for name, value in lines if value is not None]
    if record.l1_consensus is not None:
        steps.append(WaterfallStep("Without agents", 0.0, record.l1_consensus, "control"))
    drawn, scale = _chart(steps, [value for _, value in known])
    return {
        **drawn,
        "lines": [
            {
                "name": figures.mark(name).text,
                "x": scale.x(value),
                "value": figures.format_signed(value, 2),
            }
            for name, value in known
        ],
    }


def _vector_chart(record: TickRecord, vector: str) -> VectorChart:
    l1 = record.l1.get(vector)
    title = figures.title(vector)
    if l1 is None:
        return {"title": title, "rows": [], "why": "no L1 score is recorded"}
    steps = [WaterfallStep("Bars (L1)", 0.0, l1, "base")]
    at = l1
    for who, moved in _moves(record, vector):
        steps.append(WaterfallStep(who, at, at + moved, "voiced"))
        at += moved
    agent, final = record.agents.get(vector), record.final(vector)
    if agent is not None:
        # the voices add up to more than was applied: a bound has cut the rest
        if abs(agent - at) > arithmetic.TOLERANCE:
            steps.append(WaterfallStep("Cut at a bound", at, agent, "voiced"))
        steps.append(WaterfallStep("Agent score", 0.0, agent, "sum"))
    if final is not None:
        name = "Bars: not counted" if record.deliberation.in_shadow else "What counts"
        steps.append(WaterfallStep(name, 0.0, final, "base"))
    drawn, scale = _chart(steps, [])
    return {"title": title, "why": "", "origin": scale.x(l1), **drawn}


def _moves(record: TickRecord, vector: str) -> Iterable[tuple[str, float]]:
    """Yield the shift of a vector by each agent, and then by the gate."""
    debate = record.deliberation.debate.get(vector)
    shift = record.adjustments.get(vector)
    shares = list(_shares(record.deliberation, vector))
    yield from shares
    total = math.fsum(moved for _, moved in shares)
    if debate is None:
        if shift:
            yield "Adjustment", shift - total
        return
    if abs(debate - total) > arithmetic.TOLERANCE:
        # the part of the debate that no voice explains
        yield "Fallback" if not shares else "Side left out", debate - total
    multiplier = record.said_multiplier
    if multiplier is not None and debate:
        yield f"Gate × {figures.plain(multiplier, 2)}", debate * multiplier - debate


def _shares(deliberation: DebateRecord, vector: str) -> Iterable[tuple[str, float]]:
    """Yield each opinion's part of the debate: f k a / Σf of an analyst, w k a / 2 of a side.

    f counts the regime's weight of an expert, w is a manager's weight of the case, and a judge's
    part is k a. A side without the other is yielded only where its word is
    used alone.
    """
    weighs, counts = thesis.weights(deliberation), swarm.trusted(deliberation.swarm)
    heard = [_vote(told, vector, counts) for told in deliberation.reports]
    votes = [vote for vote in heard if vote is not None]
    focus = math.fsum(weight for _, weight, _, side in votes if not side)
    sides = [vote for vote in votes if vote[0] in SIDES]
    opinions = [
        told
        for told in deliberation.reports
        if not is_gate(told) and not told.abstained and told.agent_id not in arithmetic.ARBITERS
    ]
    both = len(sides) == len(SIDES)
    for name, weight, moved, side in votes:
        who, share = figures.title(name), weighs.get(name)
        if name in arithmetic.JUDGE:
            yield who, moved
        elif not side and focus:
            yield _counting(who, counts.get(name)), weight * moved / focus
        elif side and both and share is not None:
            yield f"{who.removesuffix(' researcher')} × {share:.2f}", share * moved / 2
        elif side and (both or len(opinions) == 1):
            yield who, moved / 2 if both else moved


def _counting(who: str, weight: float | None) -> str:
    """Return an expert's name with what its word counts."""
    short = who.replace("Microstructure", "Microstr.")
    return who if weight is None else f"{short} × {weight:.2f}"


def _vote(
    told: AgentReport, vector: str, counts: Mapping[str, float]
) -> tuple[str, float, float, bool] | None:
    """Return the agent's id, focus, k a, and whether it is no analyst; None without a vote."""
    name, value = told.agent_id, told.adjustments.get(vector)
    trust, seat = arithmetic.trust(told), AGENTS.get(name)
    if trust is None or value is None or seat is None or is_gate(told):
        return None
    side = name in SIDES or name in arithmetic.JUDGE
    if not side and vector not in seat.role.focus:
        return None
    weight = 1.0 if side else FOCUS_WEIGHT[seat.role.focus[vector]] * counts.get(name, 1.0)
    bound = RESEARCHER_BOUND if side else ADJUSTMENT_BOUND
    return name, weight, trust * synthesis.clamp(value, bound), side


def _sums(
    parts: Mapping[str, float | None], name: str, total: float, ath: str = ""
) -> Iterable[WaterfallStep]:
    at = 0.0
    for part, value in parts.items():
        if value is not None:
            label = ath if part == "ath" else figures.title(part)
            yield WaterfallStep(label, at, at + value, "voiced")
            at += value
    yield WaterfallStep(name, 0.0, total, "sum")


def _chart(steps: list[WaterfallStep], more: list[float]) -> tuple[WaterfallChart, ScoreRange]:
    """Return the rows of a chart with their geometry, and its scale; zero is always on it."""
    values = [value for step in steps for value in (step.start, step.end)]
    values += [*more, 0.0]
    low, high = min(values), max(values)
    pad = max(NARROWEST - (high - low), (high - low) * 0.08) / 2
    scale = ScoreRange(low - pad, high + pad)
    rows = [_row(step, place, scale) for place, step in enumerate(steps)]
    floor = ROW_HEIGHT * len(steps) + 2
    return {
        "width": CHART_WIDTH,
        "height": floor + AXIS_HEIGHT,
        "floor": floor,
        "rows": rows,
        "axis": _axis(scale),
        "spoken": spoken(rows),
    }, scale


def _axis(scale: ScoreRange) -> list[AxisMark]:
    """Return round numbers on an axis, zero among them."""
    room = scale.high - scale.low
    step = next((one for one in AXIS_STEPS if room / one < MARKED), AXIS_STEPS[-1])
    decimals = 1 if math.isclose(step * 10, round(step * 10)) else 2
    first = math.ceil(scale.low / step)
    marks: list[AxisMark] = []
    for place in range(first, math.floor(scale.high / step) + 1):
        value = place * step
        told = figures.format_signed(value, decimals) if place else "0"
        marks.append({"x": scale.x(value), "value": told, "zero": not place})
    return marks


def _row(step: WaterfallStep, place: int, scale: ScoreRange) -> FallRow:
    name, start, end, kind = step
    moved = end - start if kind == "voiced" else end
    a, b = sorted((scale.x(start), scale.x(end)))
    return {
        "name": name,
        "kind": kind,
        "y": round(place * ROW_HEIGHT, 1),
        "x": a,
        "width": max(2.0, round(b - a, 1)),
        "end": scale.x(end),
        "tone": figures.tone(end - start),
        "number": figures.format_signed(moved),
    }


def spoken(rows: Iterable[FallRow]) -> str:
    """Return a chart's rows as a sentence for those who do not see it."""
    return ", ".join(f"{row['name']} {row['number']}" for row in rows)
