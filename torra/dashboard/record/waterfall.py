"""Two waterfall charts of one tick, as numbers and as geometry: its time, and its scores.

Time: every call on the axis of the tick, with the end of its stage and the deadline. A record says
how long stages and calls took, not when they began. So they are laid one after the other, from the
end of the work before the debate, and a second request of an agent comes after its first.
Scores: how far each agent, the gate and the blend move a vector, and what the contributions add up
to against the thresholds. The numbers are those of `arithmetic`, which checks them against the
record.
Pure functions; what lacks a number is left out, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agent_config import FALLBACK_SHARE, FOCUS_WEIGHT, row_of
from agents.contracts import ADJUSTMENT_BOUND, RESEARCHER_BOUND, VECTORS
from agents.debate import synthesis
from agents.registry import AGENTS
from torra.dashboard.record import arithmetic
from torra.dashboard.record.stored import Row, in_shadow, is_gate, mapping, reports, said_multiplier
from torra.exhibits import figures

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


# --- time ---


def timeline(
    record: Mapping[str, Any],
    stages: Sequence[Row],
    calls: Iterable[Any],
    limits: Mapping[str, Any],
) -> Row:
    """Return the calls of a tick on its time axis; `rows` is empty where none was made.

    `stages` are those of the transcript's record in order ({name, round, agents, ms}); times of
    rows are milliseconds since the tick was due.
    """
    deadline = figures.number(limits.get("timeout_seconds"))
    end_ms = None if deadline is None else deadline * 1000
    before = _before(record)
    rows = list(_spans(stages, calls, before, end_ms))
    took = figures.number(record.get("elapsed_ms"))
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


def _before(record: Mapping[str, Any]) -> float:
    """Return how long the tick took without its debate, in ms: at most this long before it."""
    whole = figures.number(record.get("elapsed_ms"))
    debate = figures.number(mapping(record.get("deliberation")).get("elapsed_ms"))
    return 0.0 if whole is None or debate is None else max(0.0, whole - debate)


def _spans(
    stages: Sequence[Row], calls: Iterable[Any], before: float, deadline: float | None
) -> Iterable[Row]:
    """Yield every call with its start and end and when its stage was over, in order of stages."""
    told = [mapping(call) for call in calls]
    agents = (mapping(mapping(stage).get("agents")) for stage in stages)
    shares = row_of(str(name) for names in agents for name in names).shares
    at, heard = before, False
    for stage in map(mapping, stages):
        share = shares.get(str(stage.get("name")))
        until = _until(share, at, before, deadline, heard=heard)
        ends: dict[str, float] = {}
        for call in told:
            if (call.get("stage"), call.get("round")) != (stage.get("name"), stage.get("round")):
                continue
            role = str(call.get("role_id"))
            # all agents of a stage are asked at once, but a repeated request waits for the first
            start = ends.get(role, at)
            ends[role] = start + (figures.number(call.get("elapsed_ms")) or 0.0)
            yield _span(call, start, ends[role], until)
        at += figures.number(stage.get("ms")) or 0.0
        words = mapping(stage.get("agents")).values()
        heard = heard or any(word in ("answered", "abstained") for word in words)
    known = {(stage.get("name"), stage.get("round")) for stage in map(mapping, stages)}
    for call in told:
        if (call.get("stage"), call.get("round")) not in known:
            took = figures.number(call.get("elapsed_ms")) or 0.0
            yield _span(call, at, at + took, None)


def _span(call: Row, start: float, end: float, until: float | None) -> Row:
    return {
        "who": figures.title(str(call.get("role_id"))),
        "stage": figures.clean(call.get("stage"), 40),
        "try": f"{call.get('round', figures.DASH)}.{call.get('attempt', figures.DASH)}",
        "status": figures.clean(call.get("status"), 40),
        "good": call.get("status") == "ok",
        "detail": figures.clean(call.get("detail"), 400),
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


def _drawn(row: Row, span: float) -> Row:
    until = row["until"]
    shown = until is not None and until <= span
    return {
        **row,
        **_bar(row["start"], row["end"], span),
        "limit_x": _x(until, span) if shown else None,
        "start_ms": figures.plain(row["start"], 0),
        "took_ms": figures.plain(row["end"] - row["start"], 0),
        "until_ms": figures.plain(until, 0),
        "over": until is not None and row["end"] > until + 1.0,
    }


def _bar(start: float, end: float, span: float) -> Row:
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


def score_charts(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> list[Row]:
    """Return one waterfall per vector: L1, who moved it, the gate, the clamp, the blend."""
    return [_vector_chart(record, deliberation, vector) for vector in VECTORS]


def decision_chart(record: Mapping[str, Any]) -> Row | None:
    """Return the waterfall from the contributions to the consensus, with the thresholds in it."""
    composite, consensus = (figures.number(record.get(n)) for n in ("composite", "consensus"))
    if composite is None or consensus is None:
        return None
    steps = list(_sums(arithmetic.contributions(record), "Composite", composite))
    steps += _sums(arithmetic.shares(record), "Consensus", consensus)
    limits = mapping(record.get("thresholds"))
    buy, sell = figures.number(limits.get("buy")), figures.number(limits.get("sell"))
    lines = [("BUY", buy), ("SELL", None if sell is None else -sell)]
    known = [(name, value) for name, value in lines if value is not None]
    l1 = figures.number(record.get("l1_consensus"))
    if l1 is not None:
        steps.append(_step("L1 alone", 0.0, l1, "control"))
    drawn = _chart(steps, [value for _, value in known], zero=True)
    scale = drawn.pop("scale")
    drawn["lines"] = [
        {"name": figures.mark(name).text, "x": scale.x(value), "value": figures.signed(value, 2)}
        for name, value in known
    ]
    drawn["zero"] = scale.x(0.0)
    return drawn | {"spoken": spoken(drawn)}


def _vector_chart(record: Mapping[str, Any], deliberation: Mapping[str, Any], vector: str) -> Row:
    l1 = figures.number(mapping(record.get("l1")).get(vector))
    title = figures.title(vector)
    if l1 is None:
        return {"title": title, "rows": [], "why": "no L1 score is recorded"}
    steps = [_step("L1", l1, l1, "base")]
    at = l1
    for who, moved in _moves(record, deliberation, vector):
        steps.append(_step(who, at, at + moved, "voiced"))
        at += moved
    agent = figures.number(mapping(record.get("agents")).get(vector))
    final = figures.number(mapping(mapping(record.get("scores")).get(vector)).get("score"))
    if agent is not None:
        # the voices add up to more than was applied: a bound has cut the rest
        if abs(agent - at) > arithmetic.TOLERANCE:
            steps.append(_step("Cut at a bound", at, agent, "voiced"))
        steps.append(_step("Agent score", l1, agent, "sum"))
    if final is not None:
        name = "L1: not counted" if in_shadow(deliberation) else "Blended"
        steps.append(_step(name, l1, final, "base"))
    drawn = _chart(steps, [])
    scale = drawn.pop("scale")
    return {"title": title, "why": "", "origin": scale.x(l1), "spoken": spoken(drawn), **drawn}


def _moves(
    record: Mapping[str, Any], deliberation: Mapping[str, Any], vector: str
) -> Iterable[tuple[str, float]]:
    """Yield the shift of a vector by each agent, and then by the gate."""
    debate = figures.number(mapping(deliberation.get("debate")).get(vector))
    shift = figures.number(mapping(record.get("adjustments")).get(vector))
    shares = list(_shares(deliberation, vector))
    yield from shares
    total = math.fsum(moved for _, moved in shares)
    if debate is None:
        if shift:
            yield "Adjustment", shift - total
        return
    if abs(debate - total) > arithmetic.TOLERANCE:
        # the part of the debate that no voice explains
        yield "Fallback" if not shares else "Side left out", debate - total
    multiplier = figures.number(said_multiplier(record, deliberation))
    if multiplier is not None and debate:
        yield f"Gate × {figures.plain(multiplier, 2)}", debate * multiplier - debate


def _shares(deliberation: Mapping[str, Any], vector: str) -> Iterable[tuple[str, float]]:
    """Yield each opinion's part of the debate: f k a / Σf of an analyst, k a / 2 of a side.

    A side without the other is yielded only where its word is used alone.
    """
    heard = [_vote(told, vector) for told in reports(deliberation)]
    votes = [vote for vote in heard if vote is not None]
    focus = math.fsum(weight for _, weight, _, side in votes if not side)
    sides = [vote for vote in votes if vote[3]]
    opinions = [
        told for told in reports(deliberation) if not is_gate(told) and not told.get("abstained")
    ]
    both = len(sides) == len(synthesis.SIDES)
    for who, weight, moved, side in votes:
        if not side and focus:
            yield who, weight * moved / focus
        elif side and (both or len(opinions) == 1):
            yield who, moved / 2 if both else moved


def _vote(told: Row, vector: str) -> tuple[str, float, float, bool] | None:
    """Return agent, focus, k a, and whether it is a side; None without a vote."""
    name = str(told.get("agent_id"))
    trust, seat = arithmetic.trust(told), AGENTS.get(name)
    value = figures.number(mapping(told.get("adjustments")).get(vector))
    if trust is None or value is None or seat is None or is_gate(told):
        return None
    side = name in synthesis.SIDES
    if not side and vector not in seat.role.focus:
        return None
    weight = 1.0 if side else FOCUS_WEIGHT[seat.role.focus[vector]]
    bound = RESEARCHER_BOUND if side else ADJUSTMENT_BOUND
    return figures.title(name), weight, trust * synthesis.clamp(value, bound), side


def _sums(parts: Mapping[str, float | None], name: str, total: float) -> Iterable[Row]:
    at = 0.0
    for part, value in parts.items():
        if value is not None:
            yield _step("ATH" if part == "ath" else figures.title(part), at, at + value, "voiced")
            at += value
    yield _step(name, 0.0, total, "sum")


def _step(name: str, start: float, end: float, kind: str) -> Row:
    return {"name": name, "start": start, "end": end, "kind": kind}


def _chart(steps: list[Row], more: list[float], *, zero: bool = False) -> Row:
    """Return the rows of a chart with their geometry, and its scale."""
    values = [value for step in steps for value in (step["start"], step["end"])]
    values += [*more, 0.0] if zero else more
    low, high = min(values), max(values)
    pad = max(NARROWEST - (high - low), (high - low) * 0.08) / 2
    scale = ScoreRange(low - pad, high + pad)
    return {
        "scale": scale,
        "width": CHART_WIDTH,
        "height": ROW_HEIGHT * len(steps) + 2,
        "rows": [_row(step, place, scale) for place, step in enumerate(steps)],
    }


def _row(step: Row, place: int, scale: ScoreRange) -> Row:
    start, end, kind = step["start"], step["end"], step["kind"]
    moved = end - start if kind == "voiced" else end
    a, b = sorted((scale.x(start), scale.x(end)))
    return {
        "name": step["name"],
        "kind": kind,
        "y": round(place * ROW_HEIGHT, 1),
        "x": a,
        "width": max(2.0, round(b - a, 1)),
        "end": scale.x(end),
        "tone": figures.tone(end - start),
        "number": figures.signed(moved),
    }


def spoken(chart: Row) -> str:
    """Return a chart's rows as a sentence for those who do not see it."""
    return ", ".join(f"{row['name']} {row['number']}" for row in chart["rows"])
