"""How the rules read a request: rows turn its numbers into signals, and the others into pushes.

A `SeatView` reads a request once, and no prose of it. A row of
`rules.csv` is an `EvidenceRule`; what it reads now is a `RuleSignal`, a lean in [-1, +1] (bearish
to bullish). The weight depends on the regime, which is read from ADX. In a trend, what follows the
trend counts. In a range, what is stretched is faded: the weight of RSI, of the stochastic and of
the Bollinger bands is negative there. Between the two the weights move in a straight line.

The columns: `seats` are who reads a row, `all` is every seat that measures the scores. A row with a
`vector` measures that score; a row without one lies over every score that its seat may touch.
`lean` is a key of `LEANS` and what is fixed in it. `trend` and `range` are the weights, `component`
is the part of the score that is read where the features are not shown, `sparse` is for events.

A sweep of stops counts the less the older it is; a pool of equal highs draws price until it is
taken; a spread that is dear for its hour takes the weight from the bar's own move, whichever way it
went. Companions have the names that a user gave them, so their rules are made for each tick: one
that moves with this market speaks for the way it went, one that moves against it for the other.

The weights are a textbook's, set to be sensible and never fitted to results. Turn the market upside
down, and every lean turns. A rule whose features are missing or malformed is silent. Pure
functions; nothing raises, whatever the features.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent_config import EXPERTS, GATE_ID, MANAGER_ID, READER_ID, TRADER_ID
from agents.contracts import ADJUSTMENT_BOUND, SIDES, VECTORS, AgentReport, Request, Role
from agents.evidence import COMPANIONS, trust
from agents.features import finite, rows_of, values_of
from agents.phrases import PHRASES, Phrase
from torra.evidence.outside_readings import FIT_R2

RANGE_ADX: Final = 20.0
TREND_ADX: Final = 30.0
"""At or below the first ADX there is a range, at or above the second a trend (Wilder: 20 to 25)."""

ADX: Final = "technical.adx14"
CLOSE: Final = "technical.close"
REGIME: Final = "market.regime"
"""The regime by its name (torra.market.regime)."""

VOLATILITY: Final = "technical.volatility_percentile"
EVENT: Final = "events.to_next_min"

TREND_IN: Final = {"trend_up": 1.0, "trend_down": 1.0, "range": 0.0, "quiet": 0.0}
"""How much of a trend a regime is; a volatile one is half of it, as without a name."""

HEADING: Final = "memory.trend_direction"
HEADINGS: Final = {"rising": 1.0, "falling": -1.0}
"""The one feature whose word is read as a number, 0 for any other word."""

LESSON_MEAN: Final = "lessons.mean_r"

UNSCORED: Final = {MANAGER_ID, READER_ID, GATE_ID, TRADER_ID}
"""Who reports and moves no score. An analyst is who is none of these and no researcher, so a desk
of somebody else's analysts is read as well.
"""

FULL_ADX: Final = 50.0
"""ADX at which a direction counts in full."""

FORGOTTEN: Final = 5.0
"""Bars after which a sweep counts for 1/e."""

ABSORBS: Final = (1.5, 3.0)
"""Volume over the usual one for its range between which a bar absorbs, not at all to fully."""

DEAR: Final = (50.0, 95.0)
"""Ranks of the spread in its hour between which the bar's move counts less, down to nothing."""

BEGUN: Final = 0.4
"""Lean of a pattern that no close has completed; a completed one leans in full."""

MOVES_WITH: Final = 0.3
"""Correlation, either way, from which a companion says something of this market."""

NO_WORDS: Final = Phrase(half="", why="", number="never", format="")
"""The words of what is counted and never said: no number is clear enough for them."""


Numbers = Mapping[str, float]
"""Numbers by the feature or the vector that they are of."""


class RuleSignal(NamedTuple):
    """What one rule says now: what it read, a lean in [-1, +1] after any fading, and its weight.

    `main` is the feature that it is about: what price, which all are measured by, is held against.
    """

    reads: tuple[str, ...]
    main: str
    values: tuple[float, ...]
    lean: float
    weight: float
    fades: bool
    phrase: Phrase


class EvidenceRule(NamedTuple):
    """One row: what is read, how it leans, and its weight in a trend and in a range.

    A negative weight fades: the lean counts against itself. Where the features are not shown,
    `component`, the score's own part, reads in their place. A `sparse` rule (an event) weighs
    nothing while its lean is 0.
    """

    reads: tuple[str, ...]
    lean: Callable[..., float]
    trend: float
    range: float
    sparse: bool = False
    phrase: Phrase = NO_WORDS
    component: str = ""


Rules = Mapping[str, Sequence[EvidenceRule]]
"""The rules of a seat by vector; "" is the vector of what lies over every score."""


class Peer(NamedTuple):
    """A report that was given, the trust in it, and its push: its adjustments summed without it."""

    report: AgentReport
    trust: float
    push: float


NOBODY: Final = Peer(AgentReport(""), 0.0, 0.0)
"""The case of a researcher that made none: it asks for nothing and cites nothing."""


class SeatView:
    """A request as its seat reads it.

    `numbers` and `words` hold the features that have a value, by id. `signals` are what the rows of
    the seat say of each vector; one without evidence is left out. `gaps`: they are measured from
    the scores, else from 0. `trend` is how much of a trend there is, 0 (range) to 1. `ahead`: the
    reply names the time that it speaks for, as those of a firm and a swarm do. `cases` are those of
    the researchers by their side, +1 or -1; NOBODY where there is none.
    """

    def __init__(self, request: Request) -> None:
        """Read the request."""
        self.request, self.role, self.features = request, request.role, request.features
        self.numbers, self.words = values_of(request.features)
        self.scores = {v: finite(request.scores.get(v)) or 0.0 for v in VECTORS}
        self.ahead = "horizon" in request.schema.get("properties", ())
        self.trend = trend_of(self.numbers, self.words, by_name=self.role.id in EXPERTS)
        table = TABLES.get(self.role.id, {}) if self.role.kind == "analyst" else {}
        self.gaps = self.role.kind in ("analyst", "researcher", "scorer") and "" not in table
        self.signals = {vector: signals for vector, signals in self._read(table).items() if signals}
        peers = [
            Peer(report, trust(report), math.fsum(filter(None, report.adjustments.values())))
            for report in request.reports
            if not report.abstained and report.agent_id not in UNSCORED
        ]
        self.analysts = [peer for peer in peers if peer.report.agent_id not in SIDES]
        self.cases = {
            side: next((peer for peer in peers if peer.report.agent_id == name), NOBODY)
            for name, side in SIDES.items()
        }

    def _read(self, table: Rules) -> dict[str, list[RuleSignal]]:
        focused = self.role.kind in ("analyst", "researcher", "gate")
        vectors = focus_of(self.role) if focused else VECTORS
        numbers = {**self.numbers, HEADING: HEADINGS.get(self.words.get(HEADING, ""), 0.0)}
        if "" in table:
            companions = companion_rules(numbers) if self.role.id == "macro" else []
            return dict.fromkeys(vectors, read([*table[""], *companions], numbers, self.trend))
        return {
            v: read([*TABLES["all"][v], *table.get(v, ())], numbers, self.trend) for v in vectors
        }

    def with_signals(self, signals: dict[str, list[RuleSignal]]) -> SeatView:
        """Return the same view with these signals."""
        view = copy(self)
        view.signals = signals
        return view

    def all(self) -> list[RuleSignal]:
        """Return the signals of every vector."""
        return [signal for signals in self.signals.values() for signal in signals]

    def sided(self) -> list[int]:
        """Return the side, +1 or -1, of each analyst that takes one."""
        return [side for peer in self.analysts if (side := side_of(peer.push))]

    def mean_push(self) -> float:
        """Return the mean push of the analysts by trust, -1 to +1; 0 without any."""
        shares = [
            peer.trust * peer.push / (ADJUSTMENT_BOUND * len(VECTORS)) for peer in self.analysts
        ]  # by their number, not their trust: a report with little trust must weigh less
        return math.fsum(shares) / len(shares) if shares else 0.0

    def mean_adjustment(self, vector: str) -> float | None:
        """Return the analysts' mean adjustment of a vector by trust, as a share of their bound.

        None when nobody scored it.
        """
        moved = [
            peer.trust * value
            for peer in self.analysts
            if (value := peer.report.adjustments.get(vector)) is not None
        ]
        return sum(moved) / len(moved) / ADJUSTMENT_BOUND if moved else None

    def lessons(self) -> float | None:
        """Return which way similar trades speak, in [-1, +1]; None where too few are known.

        A mean result of 1 R speaks for a side as strongly as anything can.
        """
        mean = self.numbers.get(LESSON_MEAN)
        if mean is None or "lessons.side" not in self.features:
            return None
        way = 1 if self.words.get("lessons.side") == "LONG" else -1
        return way * max(-1.0, min(1.0, mean))


def focus_of(role: Role) -> list[str]:
    """Return the vectors that a role may touch, in their order."""
    return [vector for vector in VECTORS if vector in role.focus]


def read(rules: Iterable[EvidenceRule], numbers: Numbers, trend: float) -> list[RuleSignal]:
    """Return what rules say now, those left out that have nothing to go on."""
    signals = []
    for rule in rules:
        reads, lean_of, in_trend, in_range, sparse, phrase, component = rule
        values: tuple[Any, ...] = tuple(map(numbers.get, reads))
        if None in values:
            if component not in numbers:
                continue
            reads, values, phrase = (component,), (numbers[component],), PHRASES[component,]
            lean_of = float
        lean, weight = lean_of(*values), in_range + (in_trend - in_range) * trend
        if not -1.0 <= lean <= 1.0:
            lean = max(-1.0, min(1.0, lean))
        if weight == 0.0 or (sparse and lean == 0.0):
            continue
        main, fades = reads[reads[0] == CLOSE], weight < 0.0
        way = -1.0 if fades else 1.0
        signals.append(RuleSignal(reads, main, values, way * lean, way * weight, fades, phrase))
    return signals


def trend_of(numbers: Numbers, words: Mapping[str, str], *, by_name: bool) -> float:
    """Return how much of a trend there is, 0 (range) to 1, by ADX; half a trend without one.

    `by_name`: without an ADX the regime's name tells it.
    """
    if ADX in numbers:
        return ramp(numbers[ADX], RANGE_ADX, TREND_ADX)
    return TREND_IN.get(words.get(REGIME, ""), 0.5) if by_name else 0.5


def mean_lean(signals: Iterable[RuleSignal]) -> float:
    """Return the mean lean of signals by their weight, 0 without any."""
    lean = weight = 0.0
    for signal in signals:
        lean += signal.weight * signal.lean
        weight += signal.weight
    return lean / weight if weight else 0.0


def side_of(value: float, least: float = 0.0) -> int:
    """Return +1 or -1 by the sign of a value; 0 for 0, and for less than `least` either way."""
    return 0 if abs(value) < least else (value > 0.0) - (value < 0.0)


def ramp(value: float, start: float, end: float) -> float:
    """Return 0 up to `start`, 1 from `end` on, a straight line between."""
    return max(0.0, min(1.0, (value - start) / (end - start)))


def linear_factor(value: float, start: float, end: float, least: float) -> float:
    """Return the factor of a danger: 1 up to `start`, `least` from `end` on."""
    return 1.0 - (1.0 - least) * ramp(value, start, end)


def tanh_of(amount: float, unit: float) -> float:
    """Return the amount in units, squashed into (-1, +1); 0 where there is no unit."""
    # A market that does not move has an ATR of 0.
    return math.tanh(amount / unit) if unit > 0.0 else 0.0


# --- the table ------------------------------------------------------------------------------------


def _outside(close: float, edge: float, other: float, atr: float) -> float:
    """Return the lean of a close outside two prices, 0 between them."""
    above = max(close - max(edge, other), 0.0)
    below = max(min(edge, other) - close, 0.0)
    return tanh_of(above - below, 2.0 * atr)


def _direction(adx: float, plus: float, minus: float) -> float:
    """Return the lean of the directional movement, as far as ADX gives it weight."""
    share = (plus - minus) / (plus + minus) if plus + minus > 0.0 else 0.0
    return share * ramp(adx, 0.0, FULL_ADX)


def _real_yield(change: float, r2: float, slope: float) -> float:
    """Return the lean of the real yield's change; 0 where gold no longer goes with it."""
    return -tanh_of(change, 0.25) if r2 >= FIT_R2 and slope < 0.0 else 0.0


def _companion(change: float, together: float, ranked: float) -> float:
    """Return the lean of a companion whose change and whose rank agree."""
    stretch = ranked / 50.0 - 1.0
    return together * stretch if change * stretch > 0.0 else 0.0


LEANS: Final[Mapping[str, Callable[..., Any]]] = {
    "value": lambda value, *_: value,
    "difference": operator.sub,
    "linear": lambda middle, unit: lambda value: (value - middle) / unit,
    "above": lambda middle, unit: lambda value: math.tanh((value - middle) / unit),
    "gap": lambda unit: lambda value, other: math.tanh((value - other) / unit),
    "in_atr": lambda width: lambda value, atr: tanh_of(value, width * atr),
    "distance": lambda width: lambda price, other, atr: tanh_of(price - other, width * atr),
    "near": lambda way, unit: lambda distance: way * math.exp(-max(distance, 0.0) / unit),
    "in_range": lambda drift, low, high: tanh_of(drift, (high - low) / 2.0),
    "in_band": lambda close, low, mid, high: tanh_of(close - mid, (high - low) / 2.0),
    "outside": _outside,
    "volume": lambda body, volume: math.tanh(body) * math.tanh(max(volume - 1.0, 0.0)),
    "direction": _direction,
    "real_yield": _real_yield,
    # stops below a low lean up; nothing where both sides were taken
    "sweep": lambda low, high, age: (low - high) * math.exp(-max(age, 0.0) / FORGOTTEN),
    # much volume that moved little leans against where price has come from
    "absorbed": lambda vwap, effort: -tanh_of(vwap, 1.5) * ramp(effort, *ABSORBS),
    "on_spread": lambda body, rank: math.tanh(body) * (1.0 - ramp(rank, *DEAR)),
    "slope": lambda slope, r2: tanh_of(slope, 0.05) * r2,
    "place": lambda place, r2: (2.0 * place - 1.0) * math.sqrt(max(r2, 0.0)),
    "pattern": lambda side: lambda there, done: side * there * (1.0 if done else BEGUN),
}
"""How the values that are read lean; a row's own numbers make the lean of some."""


def _tables() -> dict[str, dict[str, list[EvidenceRule]]]:
    tables: dict[str, dict[str, list[EvidenceRule]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(Path(__file__).with_name("rules.csv")):
        name, *fixed = row["lean"].split()
        reads = tuple(row["features"].split())
        rule = EvidenceRule(
            reads,
            LEANS[name](*map(float, fixed)) if fixed else LEANS[name],
            float(row["trend"]),
            float(row["range"]),
            bool(row["sparse"]),
            PHRASES.get(reads, NO_WORDS),
            row["component"] and f"component.{row['component']}",
        )
        for seat in row["seats"].split():
            tables[seat][row["vector"]].append(rule)
    return tables


TABLES: Final[Mapping[str, Rules]] = _tables()
"""The rules of each seat."""


def companion_rules(numbers: Numbers) -> list[EvidenceRule]:
    """Return the rule of each companion that goes with this market or against it."""
    return [
        _companion_rule(name.removesuffix("correlation"), with_it=together > 0.0)
        for name, together in numbers.items()
        if name.startswith(COMPANIONS) and name.endswith(".correlation")
        if abs(together) >= MOVES_WITH
    ]


@lru_cache(maxsize=64)
def _companion_rule(companion: str, *, with_it: bool) -> EvidenceRule:
    went, goes = ("rose", "with") if with_it else ("fell", "against")
    name = companion.removeprefix(COMPANIONS).strip(".").replace("_", " ")
    phrase = Phrase(
        half=f"{name} {went} {{n}} in 20 bars",
        why=f"and it goes {goes} this market, so buyers have it behind them",
        number="size",
        format="{:.2f} %",
    )
    reads = tuple(companion + number for number in ("change_20", "correlation", "percentile"))
    return EvidenceRule(reads, _companion, 0.5, 0.4, sparse=True, phrase=phrase)
