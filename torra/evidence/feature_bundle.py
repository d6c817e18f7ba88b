"""Builds the evidence of one tick: every number that an agent may cite, with its id, unit and time.

`build` makes a flat table of features from what was known at `as_of`: the newest row of
`technical_calculator.score_frame`, the bars behind it, the memory context, the news and the
scheduled events. A block is a function that returns {id: value}; the registry (agents.features)
has unit and decimals of each id. No indicator is computed here; the module's own are a few words
about the last 20 bars, a spread in ATR and a forecast:

    drift = horizon * (close - ema20) * a / (1 - a), a = 2 / 21    as percent of the close
    band  = drift +- atr14 * sqrt(horizon)                         as percent of the close

An EMA follows a straight trend at the distance slope * (1 - a) / a, so the drift is the trend that
would keep EMA20 where it is. The band is one ATR a bar, growing as a random walk does. The forecast
is evidence for agents and nothing else: no score, stop or size is made of it. Another one takes its
place as the input `forecaster`, and no agent changes for it.

The bundle is always whole; a block of it is computed at the first look at it. What cannot be known
(NaN, no memory yet, a feed that is off or brings nothing) is a feature with the value None, never a
guess; the block `source` says why. A value is rounded to its decimals, so it is the same as its
text in a prompt; `market.spread_atr` is exact, because the gate has a limit for it. A price has two
decimals more than the symbol is quoted with, which leaves three digits of a MACD that is a
ten-thousandth of its price. Strangers wrote the values of `news.item.N` and of no other feature.

Reads no clock and no file. Nothing in it is later than `as_of`: a bar that is not closed then, bars
that do not end with it and a headline first seen later raise ValueError. So does a row of the
warm-up.

The block `spread` is of the bars' own spreads (torra.market.spreads): the last one, and the mean of
20, in the ATR of the deciding bar. `market.spread_atr` stays the one that the profile assumes, by
which every cost is reckoned. The blocks `liquidity`, `micro` and `geometry` are there only for a
desk that seats a swarm's experts: a bundle of another one has not a feature more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import chain, pairwise, takewhile
from operator import itemgetter, mul
from types import MappingProxyType
from typing import Any, Final

from agents.contracts import EVENT_CLASSES, VECTORS, Feature
from agents.evidence import OUTSIDE, POSITIONS
from agents.features import PRICE, ROWS, ids_of, row_of
from technical_calculator import COMPONENTS, INDICATORS, VectorEvidence, explain
from torra.clock import duration, iso
from torra.evidence import flow_readings, geometry_readings, liquidity_readings
from torra.evidence.expert_bars import ExpertBars, Numbers
from torra.evidence.news_digest import NewsStatus, NewsView
from torra.evidence.outside_readings import BLOCKS, NO_OUTSIDE, OutsideView
from torra.evidence.scheduled_events import EventView
from torra.market import bar_anomalies
from torra.market import regime as market_regime
from torra.market.bar_view import BarView
from torra.market.regime import Beyond, Regime
from torra.market.spreads import NO_SPREADS, SpreadView

HORIZON: Final = 4
"""Bars that the forecast looks ahead."""

EMA_LAG: Final = 19 / 2
"""Bars by which EMA20 follows a straight trend: (1 - a) / a with a = 2 / (20 + 1)."""

MAX_SPREAD_ATR: Final = 1000.0
"""Spread in ATR where the market does not move at all, so that the gate still sees a wide one."""

MOOD_BARS: Final = 20
"""Bars over which the mood of the market is read."""

EXTRA_DIGITS: Final = 2
"""Decimals of a price beyond those that the symbol is quoted with."""

SPREAD_ATR: Final = "market.spread_atr"
ROW_BLOCKS: Final = {
    block: ([f"{block}.{column}" for column in columns], itemgetter(*columns))
    for block, columns in {
        "scores": VECTORS,
        "component": tuple(chain.from_iterable(COMPONENTS.values())),
        "technical": INDICATORS,
    }.items()
}
"""The ids of each block that stands in a row of score_frame, and what reads their columns."""

ANSWERED: Final = (NewsStatus.AVAILABLE, NewsStatus.EMPTY)
"""Statuses in which no headline means that there is none."""

IN_FORCE: Final = ("available", "broken")
"""Statuses of a usable calendar; a broken one is used as it was last read well."""

NO_NEWS: Final = NewsView(NewsStatus.OFF)
NO_EVENTS: Final = EventView()
Value = float | str | None
Forecaster = Callable[[Mapping[str, float], NewsView], Numbers]
"""Makes a forecast of a row of score_frame and of the news known then; it raises nothing.

`forecast.drift_pct` is where the close may stand HORIZON bars on, `low_pct` and `high_pct` are the
band around it, in percent of the close. What is None or not finite is not known.
"""

_new: Final[Callable[[type[Feature], tuple[Any, ...]], Feature]] = tuple.__new__
"""Makes a feature of all its fields, in half the time of its own constructor."""


def follow_drift(row: Mapping[str, float], news: NewsView) -> Numbers:  # noqa: ARG001  reads none
    """Return the trend that would keep EMA20 where it is, in a band of one ATR a bar."""
    close = row["close"]
    drift = 100.0 * HORIZON * (close - row["ema20"]) / EMA_LAG / close
    band = 100.0 * row["atr14"] * math.sqrt(HORIZON) / close
    return {
        "forecast.drift_pct": drift,
        "forecast.low_pct": drift - band,
        "forecast.high_pct": drift + band,
    }


@dataclass(kw_only=True, eq=False)  # frozen would take a tick three microseconds more
class EvidenceInputs:
    """What the evidence of a bar is made of: the bar that opened at `bar_time`, and all around it.

    `row` is its row of score_frame; `spread` is in price units, None where nobody knows it,
    `valid_bars` counts the bars behind the row, `bar_age` is how many bars ago the newest one
    closed, `memory` is the memory context, `digits` the decimals with which the symbol is quoted.
    `bars` are the bars behind the row, this one last, None where they are not known. `news`,
    `events` and `outside` are what was known at `as_of`, headlines of a host at `known_at`.
    `spreads` is what is known of the bars' own ones, `host` has a host's own numbers by name.
    `forecaster` makes the forecast. The blocks of a swarm's experts are there, and their flags in
    the triage, only for `experts`.
    """

    symbol: str
    timeframe: str
    bar_time: datetime
    as_of: datetime
    row: Mapping[str, float]
    spread: float | None
    valid_bars: int
    bar_age: float
    memory: Mapping[str, Any]
    digits: int = 5
    bars: BarView | None = None
    news: NewsView = NO_NEWS
    events: EventView = NO_EVENTS
    outside: OutsideView = NO_OUTSIDE
    host: Mapping[str, float] = field(default_factory=dict)
    known_at: datetime | None = None
    spreads: SpreadView = NO_SPREADS
    forecaster: Forecaster = follow_drift
    experts: bool = False

    @cached_property
    def regime(self) -> Regime:
        """The kind of market."""
        return market_regime.read(self.row)

    @cached_property
    def expert_bars(self) -> ExpertBars | None:
        """The bars that a swarm's experts read; None where there are too few."""
        return ExpertBars.of(self.bars, self.row)


class LazyFeatures(Mapping[str, Feature]):
    """Features by id, in order; a block of values is computed at the first look at one of them."""

    def __init__(
        self,
        inputs: EvidenceInputs,
        blocks: Sequence[str],
        values: Mapping[str, Numbers] = MappingProxyType({}),
    ) -> None:
        """Take the names of the blocks in order, and the values of those computed elsewhere."""
        self.inputs = inputs
        self._blocks = blocks
        self._values = dict(values)
        self._moment = iso(inputs.as_of)
        self._price_decimals = inputs.digits + EXTRA_DIGITS
        self._features: dict[str, Feature] = {}

    def __getitem__(self, name: str) -> Feature:
        return self._all[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a feature by its id, or `default`; what goes wrong in its block is raised."""
        feature = self._features.get(name)
        if feature is None:
            block = name.partition(".")[0]
            values = self._values.get(block) or self._block(block)
            if name not in values:
                return default
            feature = self._features[name] = self._feature(name, values[name])
        return feature

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def items(self) -> ItemsView[str, Feature]:
        """Return ids and features in their order."""
        return self._all.items()

    def with_blocks(self, blocks: Mapping[str, Numbers]) -> LazyFeatures:
        """Return these features with other blocks, or more; what was computed of others stays."""
        names = tuple(dict.fromkeys((*self._blocks, *blocks)))
        return LazyFeatures(self.inputs, names, {**self._values, **blocks})

    @cached_property
    def _all(self) -> dict[str, Feature]:
        known = self._features
        self._features = {
            name: known.get(name) or self._feature(name, value)
            for block in self._blocks
            for name, value in self._block(block).items()
        }
        return self._features

    def _block(self, name: str) -> Numbers:
        if name not in self._values:
            self._values[name] = _BLOCKS[name](self.inputs) if name in self._blocks else {}
        return self._values[name]

    def _feature(self, name: str, value: Value) -> Feature:
        row = row_of(name)
        unit = row.unit
        decimals = self._price_decimals if unit == PRICE else row.decimals
        if decimals is not None:
            if type(value) is float and math.isfinite(value):  # nearly every one
                if name != SPREAD_ATR:  # a limit is compared with the spread: that one is exact
                    value = round(value, decimals) + 0.0
            else:
                value = plain(value, decimals)
        shown = decimals if isinstance(value, float) else None
        return _new(Feature, (name, value, unit, self._moment, "", shown))


@dataclass(frozen=True)
class Bundle:
    """The evidence of one tick: the four L1 scores, a line about each, and the features by id.

    `regime` is the kind of market, with the features that it was read from; `explained` holds the
    components behind the scores.
    """

    symbol: str
    timeframe: str
    scores: Mapping[str, float]
    features: Mapping[str, Feature]
    regime: Regime
    explained: Mapping[str, VectorEvidence]

    @cached_property
    def notes(self) -> Mapping[str, str]:
        """A line about each score."""
        return {vector: part.note for vector, part in self.explained.items()}


def build(inputs: EvidenceInputs) -> Bundle:
    """Return the evidence of a bar; raises ValueError for what was not known at its `as_of`."""
    row, bar_time, as_of = inputs.row, inputs.bar_time, inputs.as_of
    if as_of < bar_time + duration(inputs.timeframe):
        raise ValueError(f"the bar of {iso(bar_time)} is not closed at {iso(as_of)}")
    if inputs.bars is not None and inputs.bars.last != bar_time:
        raise ValueError(f"the bars end at {inputs.bars.last}, not with that of {iso(bar_time)}")
    known_at = inputs.known_at or as_of
    for item in (weighted.item for weighted in inputs.news.items):
        if item.first_seen > known_at:
            moment = iso(item.first_seen)
            raise ValueError(
                f"the headline {item.id} was first seen at {moment}, after {iso(known_at)}"
            )
    explained = explain(row)
    blocks = tuple(_BLOCKS) if inputs.experts else tuple(_BLOCKS)[: -len(_EXPERTS)]
    return Bundle(
        symbol=inputs.symbol,
        timeframe=inputs.timeframe,
        scores={vector: float(row[vector]) for vector in VECTORS},
        features=LazyFeatures(inputs, blocks),
        regime=inputs.regime,
        explained=explained,
    )


def with_numbers(bundle: Bundle, block: str, numbers: Mapping[str, Value] | None) -> Bundle:
    """Return the evidence with a block of what was computed elsewhere; None adds none.

    The keys are the ids of the features after the block's name: of similar trades (`lessons`,
    torra.lessons.recall), of the seats' past (`standing`, torra.evaluation.standing), of what an
    opening stakes (`stakes`, torra.verdict.order_levels).
    """
    if numbers is None or not isinstance(bundle.features, LazyFeatures):
        return bundle
    values = _by_id(block, numbers) or {f"{block}.{name}": numbers[name] for name in numbers}
    return replace(bundle, features=bundle.features.with_blocks({block: values}))


def with_experts_of(bundle: Bundle, **others: Any) -> Bundle:
    """Return the evidence with the experts' blocks of other bars than its own, or of none.

    `others` are those of `EvidenceInputs`; all else stays, the flags of the triage too.
    """
    features = bundle.features
    if not isinstance(features, LazyFeatures):
        return bundle
    inputs = replace(features.inputs, **others)
    blocks = {name: _BLOCKS[name](inputs) for name in _EXPERTS}
    return replace(bundle, features=features.with_blocks(blocks))


def plain(value: Any, decimals: int) -> Value:
    """Return a number with so many decimals, a word as it is, None for what is not finite."""
    if value is None or isinstance(value, str):
        return value
    # + 0.0: no negative zero in a prompt.
    return round(float(value), decimals) + 0.0 if math.isfinite(value) else None


# --- the blocks -----------------------------------------------------------------------------------


def _by_id(block: str, values: Mapping[str, Value]) -> Numbers:
    """Return the values of a block's fixed ids, of those by the names after the block's."""
    return {name: values.get(name.partition(".")[2]) for name in ids_of(block)}


def _of_row(block: str, inputs: EvidenceInputs) -> Numbers:
    ids, columns = ROW_BLOCKS[block]
    return dict(zip(ids, columns(inputs.row), strict=True))


def _technical(inputs: EvidenceInputs) -> Numbers:
    """Return the indicators, and the gap as percent of the close before."""
    row = inputs.row
    gap = row["gap_atr"] * row["atr14"]
    # The row has no open and no close before: both follow from body and gap.
    before = row["close"] - row["body_atr"] * row["atr14"] - gap
    gap_pct = 100.0 * gap / before if before > 0.0 else None
    return _of_row("technical", inputs) | {"technical.gap_pct": gap_pct}


def _market(inputs: EvidenceInputs) -> Numbers:
    """Return the market; the outside numbers are there for a swarm's experts alone."""
    row, memory, range_atr, beyond = inputs.row, inputs.memory, None, None
    if inputs.bars is not None:
        high, low = (inputs.bars.newest(name, 1)[0] for name in ("high", "low"))
        # A market that does not move has no range.
        range_atr = 0.0 if row["atr14"] == 0.0 else (high - low) / row["atr14"]
        if inputs.experts:
            beyond = Beyond(high, low, row["close"], row["swing_high"], row["swing_low"])
    flags = market_regime.triage(
        range_atr=range_atr,
        volume_ratio=row["volume_ratio"],
        gap_atr=row["gap_atr"],
        bar_age=inputs.bar_age,
        beyond=beyond,
    )
    odd = _anomalies(range_atr, inputs) if inputs.experts else {}
    unknown = " ".join(name for name, stands in odd.items() if stands is None) or None
    return {
        SPREAD_ATR: _in_atr(inputs.spread, row["atr14"]),
        "market.valid_bars": float(inputs.valid_bars),
        "market.bar_age": inputs.bar_age,
        "market.session": memory.get("session"),
        "market.day_of_week": memory.get("day_of_week"),
        "market.range_atr": range_atr,
        "market.regime": inputs.regime.name,
        "market.triage": " ".join((*flags, *(name for name in odd if odd[name]))) or None,
        **({"market.triage_unknown": unknown} if odd else {}),
    }


def _anomalies(range_atr: float | None, inputs: EvidenceInputs) -> dict[str, bool | None]:
    """Return which anomalies of document 003 the bar has, by its numbers as they are shown."""
    values = {
        **inputs.outside.numbers,
        bar_anomalies.RANGE: range_atr,
        bar_anomalies.VOLUME: inputs.row["volume_ratio"],
    }
    return bar_anomalies.anomalies(
        {
            name: value
            for name in bar_anomalies.READS
            if not isinstance(value := plain(values.get(name), ROWS[name].decimals or 0), str)
        }
    )


def _in_atr(spread: float | None, atr: float) -> float | None:
    if spread is None or math.isnan(atr):
        return None
    if spread <= 0.0:
        return 0.0
    # In a flat market any spread is wide, and the gate must see that.
    return min(spread / atr, MAX_SPREAD_ATR) if atr > 0.0 else MAX_SPREAD_ATR


def _spreads(inputs: EvidenceInputs) -> Numbers:
    view, atr = inputs.spreads, inputs.row["atr14"]
    return {
        "spread.available": float(view.last is not None),
        "spread.last": view.last,
        "spread.last_atr": _in_atr(view.last, atr),
        "spread.mean_atr": _in_atr(view.mean, atr),
        "spread.percentile": view.percentile,
    }


def _memory(inputs: EvidenceInputs) -> Numbers:
    memory = inputs.memory
    chances = memory.get("next_probabilities") or {}
    values = {
        **memory,
        "markov_state": memory.get("current_markov_state"),
        "consensus_last": (memory.get("sentiment_trend") or [None])[-1],
    }
    for side in ("bullish", "bearish"):
        states = (side.upper(), f"STRONG_{side.upper()}")
        known = [chances[state] for state in states if state in chances]
        values[f"next_{side}"] = math.fsum(known) if known else None
    return _by_id("memory", values)


def _events(inputs: EvidenceInputs) -> Numbers:
    return {
        "events.available": float(inputs.events.status in IN_FORCE),
        "events.to_next_min": inputs.events.to_next,
        "events.since_last_min": inputs.events.since_last,
    }


def _news(inputs: EvidenceInputs) -> Numbers:
    return news_numbers(inputs.news)


def news_numbers(view: NewsView) -> dict[str, Value]:
    """Return the features of the news by their ids, as a view of them counts."""
    values: dict[str, Value] = {
        "news.available": float(view.unique > 0),
        "news.items": _count_of(view),
        "news.score": view.score,
    }
    for name in EVENT_CLASSES:
        items, score = view.events.get(name, (None, None))
        values |= {f"news.{name}_items": items, f"news.{name}_score": score}
    for number, weighted in enumerate(view.items, start=1):
        values |= {
            f"news.item.{number}": weighted.item.headline,
            f"news.item_score.{number}": weighted.item.score,
            f"news.item_weight.{number}": weighted.weight,
            f"news.item_age_h.{number}": weighted.age_hours,
            f"news.item_event.{number}": weighted.item.event,
        }
    return values


def _count_of(view: NewsView) -> float | None:
    """Return how many headlines count; None where the source gave no answer."""
    return float(view.unique) if view.unique or view.status in ANSWERED else None


def _mood(inputs: EvidenceInputs) -> Numbers:
    """Return the mood, as the last bars and the headlines show it.

    A close that did not change, and the volume of a bar that closed where it opened, count half to
    either side: a market that stands still is in neither mood, and upside down the shares are 1
    less what they were.
    """
    bars, up_bars, up_volume, streak = inputs.bars, None, None, None
    # One bar more than are counted: the first close needs one before it.
    if bars is not None and len(bars) > MOOD_BARS:
        opened, close, volume = (
            bars.newest(name, MOOD_BARS + 1) for name in ("open", "close", "volume")
        )
        moves = [(now > last) - (now < last) for last, now in pairwise(close)]
        bodies = [(end > begin) - (end < begin) for begin, end in zip(opened, close, strict=True)]
        up_bars = (1.0 + sum(moves) / MOOD_BARS) / 2.0
        # Each move is +1, 0 or -1, so the sum is the length of the streak with its sign.
        streak = sum(takewhile(lambda move: move == moves[-1], reversed(moves)))
        traded = math.fsum(volume[1:])
        ahead = math.fsum(map(mul, bodies[1:], volume[1:]))
        up_volume = (1.0 + ahead / traded) / 2.0 if traded > 0.0 else None
    positions = any(
        value is not None
        for name, value in inputs.outside.numbers.items()
        if name.startswith(POSITIONS)
    )
    return {
        "sentiment.positioning_available": float(positions),
        "sentiment.news": inputs.news.score,
        "sentiment.news_items": _count_of(inputs.news),
        "sentiment.up_bars": up_bars,
        "sentiment.up_volume": up_volume,
        "sentiment.streak": streak,
    }


def _fundamentals(inputs: EvidenceInputs) -> Numbers:
    figures = _by_id("fundamentals", inputs.news.fundamentals)
    known = any(plain(value, 0) is not None for value in figures.values())
    return figures | {"fundamentals.available": float(known)}


def _outside(block: str, inputs: EvidenceInputs) -> Numbers:
    """Return a block of the outside numbers: those that the symbol's asset class reads."""
    numbers = inputs.outside.numbers
    return {name: value for name, value in numbers.items() if name.startswith(block)}


def _sources(inputs: EvidenceInputs) -> Numbers:
    """Return the status of each source, and the minutes that the gate compares with its windows.

    These minutes count from the tick, which may run later than the close: when an event is due is
    known beforehand. Companions and order flow have a source only where there are some.
    """
    statuses = dict.fromkeys(BLOCKS, str(NewsStatus.OFF)) | dict(inputs.outside.statuses)
    return {
        "source.news": str(inputs.news.status),
        "source.events": inputs.events.status,
        "source.events_ahead_min": inputs.events.ahead,
        "source.events_behind_min": inputs.events.behind,
        "source.fundamentals": str(inputs.news.fundamentals_status),
        **{f"source.{name}": status for name, status in statuses.items()},
    }


def _host(inputs: EvidenceInputs) -> Numbers:
    # Eight digits: nobody here knows the scale of a host's number.
    return {f"host.{name}": float(f"{value + 0.0:.8g}") for name, value in inputs.host.items()}


def _liquidity(inputs: EvidenceInputs) -> Numbers:
    delta = inputs.outside.numbers.get(flow_readings.DELTA)
    return liquidity_readings.read(inputs.expert_bars, None if isinstance(delta, str) else delta)


def _micro(inputs: EvidenceInputs) -> Numbers:
    return {
        f"micro.spread_{name}": getattr(inputs.spreads.hour, name, None)
        for name in ("percentile", "jump", "count")
    }


_EXPERTS: Final[Mapping[str, Callable[[EvidenceInputs], Numbers]]] = {
    "liquidity": _liquidity,
    "micro": _micro,
    "geometry": lambda inputs: geometry_readings.read(inputs.expert_bars, inputs.row),
}
_BLOCKS: Final[Mapping[str, Callable[[EvidenceInputs], Numbers]]] = {
    "scores": partial(_of_row, "scores"),
    "component": partial(_of_row, "component"),
    "technical": _technical,
    "forecast": lambda inputs: inputs.forecaster(inputs.row, inputs.news),
    "market": _market,
    "spread": _spreads,
    "memory": _memory,
    "events": _events,
    "news": _news,
    "sentiment": _mood,
    "fundamentals": _fundamentals,
    **{block.rstrip("."): partial(_outside, block) for block in OUTSIDE},
    "source": _sources,
    "host": _host,
    **_EXPERTS,
}
"""What returns the values of a block by the id of their feature; a swarm's experts come last."""
