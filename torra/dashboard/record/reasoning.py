"""The decision of a tick, its gate and its provenance, in words.

`transcript` has the conversation, `citations` and `inputs` what it rests on, `arithmetic` the sums,
`waterfall` the drawings. Pure functions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pydantic import JsonValue

from agent_framework import NOTHING_OPENS
from agents.contracts import GateRuling
from torra.dashboard.record import vetoes
from torra.dashboard.record.shown import Decision
from torra.exhibits import figures
from torra.exhibits.beyond import outside_words
from torra.exhibits.beyond.outside_row import OutsideShown
from torra.tick.tick_record import (
    DebateRecord,
    TickRecord,
    is_gate,
)
from torra.words.badge import capital
from torra.words.orders import REASONS

SENTENCE: Final = 400
"""Most characters of a tick's own sentence that are shown."""

NEAR: Final = 0.005
"""A gap to the threshold below this is written with more decimals."""


SILENT_GATE: Final = "did not answer; the rules stand"


def beyond(record: TickRecord) -> OutsideShown | None:
    """Return what was known from beyond the chart; None of another program's scorer."""
    if record.hosted and record.outside is None:
        return None
    return outside_words.shown(record.symbol, record.outside)


def headline(record: Decision) -> str:
    """Return one sentence on where the consensus stands against its thresholds."""
    where = standing(record)
    if not where:
        return "No consensus is stored for this tick."
    return f"Consensus {figures.format_signed(record.consensus, _decimals(record))} {where}."


class Distance(NamedTuple):
    """How far a consensus is from the threshold of its `side`, BUY or SELL.

    `gap` is what it is short of it, 0 or negative where it reaches it.
    """

    side: str
    limit: float
    gap: float


def distance(record: Decision) -> Distance | None:
    """Return how far a tick is from a verdict by its own thresholds; None if they are not known."""
    consensus, limits = record.consensus, record.thresholds
    if consensus is None or limits is None:
        return None
    side, limit = ("BUY", limits.buy) if consensus >= 0 else ("SELL", -limits.sell)
    return Distance(side, limit, abs(limit) - abs(consensus))


def standing(record: Decision) -> str:
    """Return how far a consensus is from the nearer threshold; empty if that is not known."""
    away = distance(record)
    if away is None:
        return ""
    threshold = f"{away.side} threshold {figures.format_signed(away.limit, 2)}"
    if away.gap <= 0:
        return f"reaches the {threshold}"
    return f"is {figures.plain(away.gap, _decimals(record))} short of the {threshold}"


def why(record: Decision) -> str:
    """Return the reason word of an action with its meaning; a host's own text stays as it is."""
    word = figures.sanitize(record.reason, 300)
    if word == "THRESHOLD":
        return ""  # the standing of the consensus says it
    meaning = REASONS.get(word, "")
    if word == "GATE_VETO":
        meaning = vetoes.cause(record) or meaning
    return capital(meaning) if meaning else word


def _decimals(record: Decision) -> int:
    """Return more decimals if three would hide on which side of a threshold the number is."""
    consensus, limits = record.consensus or 0.0, record.thresholds
    ends = (limits.buy, -limits.sell) if limits else ()
    near = any(abs(consensus - end) < NEAR for end in ends)
    return figures.FULL_DECIMALS if near else figures.SCORE_DECIMALS


def gate_rows(record: TickRecord) -> list[tuple[str, GateRuling | None, str]]:
    """Return the ruling of the gate's rules, that of its agent, and the one in force.

    Each has its name and its detail, or why there is none.
    """
    debate = record.deliberation
    report = next((report for report in debate.reports if is_gate(report)), None)
    own = report.ruling if report else None
    force = "the rules alone, in shadow" if debate.in_shadow else "the lower multiplier"
    # the record's own gate wins: it is what was in force
    return [
        ("Rules", record.gate.rule, record.gate.rule.detail),
        ("Gate agent, its own", own, own.detail if own else _no_ruling(debate)),
        (f"In force: {force}", record.gate.ruling, debate.ruling.detail),
    ]


def _no_ruling(deliberation: DebateRecord) -> str:
    """Return why the gate's agent gave no ruling; one that was not needed did not fail."""
    spared = any(
        NOTHING_OPENS in stage.agents.values()
        for stage in deliberation.stages
        if stage.status == "skipped"
    )
    return "was not asked, as nothing can open; the rules stand" if spared else SILENT_GATE


def provenance(record: TickRecord) -> list[tuple[str, JsonValue]]:
    """Return the inputs by which this tick can be repeated."""
    bars = record.bars
    span = f"{bars.count} from {figures.moment(bars.first)} to {figures.moment(bars.last)}"
    return [
        ("Bars", span),
        ("Hash of the bars", bars.hash),
        ("Profile", record.profile),
        ("Provider", record.provider),
        *record.versions.items(),
    ]


def value_text(value: JsonValue) -> str:
    """Return a stored value in words: the items of a list or a dict, separated by commas."""
    if isinstance(value, dict):
        items = [f"{figures.sanitize(name, 60)} {value_text(item)}" for name, item in value.items()]
    elif isinstance(value, list):
        items = [value_text(item) for item in value]
    else:
        return figures.format_any(value)
    return ", ".join(items) or "none"
