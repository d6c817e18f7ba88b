"""The table of the rules: `rules.csv` has a row for each piece of evidence, with its weights.

`seats` are who reads it, `all` is every seat that measures the scores. A row with a `vector`
measures that score; a row without one lies over every score that its seat may touch. `lean` is a
key of `LEANS` and what is fixed in it. `trend` and `range` are the weights, `component` is the part
of the score that is read where the features are not shown, `sparse` is for events.

A sweep of stops counts the less the older it is; a pool of equal highs draws price until it is
taken; a spread that is dear for its hour takes the weight from the bar's own move, whichever way it
went. Companions have the names that a user gave them, so their rules are made for each tick: one
that moves with this market speaks for the way it went, one that moves against it for the other.

The weights are a textbook's, set to be sensible and never fitted to results. Turn the market upside
down, and every lean turns. Nothing raises.
"""

from __future__ import annotations

import csv
import math
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from agent_config import EXPERTS
from agents.contracts import VECTORS, Feature
from agents.features import COMPANION, Features, number
from agents.phrases import PHRASES, Phrase
from torra.evidence.outside_readings import FIT_R2
from torra.providers.rules.rule import (
    ADX,
    NO_WORDS,
    EvidenceRule,
    Signals,
    ramp,
    read,
    tanh_of,
    trend_of,
    word,
)

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


# --- leans ----------------------------------------------------------------------------------------


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
    "heading": lambda heading: {"rising": 1.0, "falling": -1.0}.get(heading, 0.0),
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


# --- the tables -----------------------------------------------------------------------------------


def _tables() -> dict[str, dict[str, list[EvidenceRule]]]:
    tables: dict[str, dict[str, list[EvidenceRule]]] = defaultdict(lambda: defaultdict(list))
    with Path(__file__).with_name("rules.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name, *fixed = row["lean"].split()
            reads = tuple(row["features"].split())
            rule = EvidenceRule(
                reads,
                LEANS[name](*map(float, fixed)) if fixed else LEANS[name],
                float(row["trend"]),
                float(row["range"]),
                bool(row["sparse"]),
                word if name == "heading" else number,
                PHRASES.get(reads, NO_WORDS),
            )
            if row["component"]:
                own = (f"component.{row['component']}",)
                instead = rule._replace(reads=own, lean=float, phrase=PHRASES[own])
                rule = rule._replace(component=instead)
            for seat in row["seats"].split():
                tables[seat][row["vector"]].append(rule)
    return tables


TABLES: Final[Mapping[str, Mapping[str, Sequence[EvidenceRule]]]] = _tables()
"""The rules of each seat by vector; "" is the vector of what lies over every score."""

COMMON_RULES: Final = TABLES["all"]


def signals_for(seat: str, features: Features, vectors: Sequence[str]) -> Signals:
    """Return what a seat reads of these vectors; an overlay says the same of each of them."""
    table, trend = TABLES.get(seat, {}), trend_of(features, by_name=seat in EXPERTS)
    if "" in table:
        companions = companion_rules(features) if seat == "macro" else ()
        overlay = read((*table[""], *companions), features, trend)
        return dict.fromkeys(vectors, overlay) if overlay else {}
    by_vector = {
        vector: read((*COMMON_RULES[vector], *table.get(vector, ())), features, trend)
        for vector in vectors
    }
    return {vector: signals for vector, signals in by_vector.items() if signals}


def companion_rules(features: Features) -> Iterator[EvidenceRule]:
    """Yield the rule of each companion that goes with this market or against it."""
    for name in features:
        if name.startswith(COMPANION) and name.endswith(".correlation"):
            together = number(features, name)
            if together is not None and abs(together) >= MOVES_WITH:
                yield _companion_rule(name.removesuffix("correlation"), with_it=together > 0.0)


@lru_cache(maxsize=64)
def _companion_rule(companion: str, *, with_it: bool) -> EvidenceRule:
    went, goes = ("rose", "with") if with_it else ("fell", "against")
    name = companion.removeprefix(COMPANION).strip(".").replace("_", " ")
    phrase = Phrase(
        f"{name} {went} {{n}} in 20 bars",
        f"and it goes {goes} this market, so buyers have it behind them",
        lambda change, *_: abs(change),
        "{:.2f} %",
    )
    reads = tuple(companion + number for number in ("change_20", "correlation", "percentile"))
    return EvidenceRule(reads, _companion, 0.5, 0.4, True, number, phrase)


# --- the common signals ---------------------------------------------------------------------------

_READ: Final = (
    ADX,
    *(
        name
        for rules in COMMON_RULES.values()
        for rule in rules
        for part in (rule, rule.component)
        if part
        for name in part.reads
    ),
)
"""Every feature that COMMON_RULES may read."""

_last: Final[list[tuple[list[Feature | None], Signals]]] = [([None] * len(_READ), {})]
"""The features that COMMON_RULES read last, by identity, and the signals.

The features are held, so that no new one can have the identity of an old one.
"""


def common_signals(features: Features) -> Signals:
    """Return what `COMMON_RULES` read; for the same features it is worked out once.

    Bull and bear are shown the same, one after the other. The caller must not change the result.
    """
    shown = [features.get(name) for name in _READ]
    kept, signals = _last[0]
    if not all(map(operator.is_, kept, shown)):
        signals = signals_for("", features, VECTORS)
        # One assignment: another thread sees the old pair or the new one, never half of each.
        _last[0] = shown, signals
    return signals
