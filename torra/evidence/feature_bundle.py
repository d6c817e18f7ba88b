"""Builds the evidence of one tick: every number that an agent may cite, with its id, unit and time.

`build` makes a flat table of features from what was known at `as_of`: the newest row of
`technical_calculator.score_frame`, the bars behind it, the memory context, the news and the
scheduled events. It computes no indicator; its own are a few words about the last 20 bars, a spread
in ATR and a forecast:

    drift = horizon * (close - ema20) * a / (1 - a), a = 2 / 21    as percent of the close
    band  = drift +- atr14 * sqrt(horizon)                         as percent of the close

An EMA follows a straight trend at the distance slope * (1 - a) / a, so the drift is the trend that
would keep EMA20 where it is. The band is one ATR a bar, growing as a random walk does. The forecast
is evidence for agents and nothing else: no score, stop or size is made of it. Another one takes its
place as the argument `forecaster` of `build`, and no agent changes for it.

The bundle is always whole; a block of it is computed at the first look at it. What cannot be known
(NaN, no memory yet, a feed that is off or brings nothing) is a feature with the value None, never a
guess; the block `source` says why. Each kind of number has its decimals. The value is rounded to
them, so the value and its text in a prompt are the same; `market.spread_atr` is exact, because the
gate has a limit for it. A price has two decimals more than the
symbol is quoted with, which leaves three digits of a MACD that is a ten-thousandth of its price.
Strangers wrote the values of `news.item.N` and of no other feature.

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
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from itertools import pairwise, takewhile
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pandas as pd

from agents.contracts import EVENT_CLASSES, VECTORS, Feature
from agents.evidence import COMPANIONS, OUTSIDE, POSITIONS, SCORES
from technical_calculator import COMPONENTS, INDICATORS, VectorEvidence, explain
from torra.clock import duration, iso
from torra.evidence import flow_readings, geometry_readings, liquidity_readings
from torra.evidence.companion_readings import BLOCK as COMPANION
from torra.evidence.companion_readings import kind_of_companion
from torra.evidence.expert_bars import ExpertBars, Numbers
from torra.evidence.news_digest import NewsStatus, NewsView
from torra.evidence.outside_readings import BLOCKS, NO_OUTSIDE, OutsideView, kind_of
from torra.evidence.scheduled_events import EventView
from torra.evidence.vendor_figures import OF_PEERS, RATING, SURPRISE
from torra.market import bar_anomalies
from torra.market import regime as market_regime
from torra.market.bar_view import BarView
from torra.market.exact_rounding import Rounding
from torra.market.regime import DISTANCE_DECIMALS, PERCENTILE_DECIMALS, Regime
from torra.market.spreads import NO_SPREADS, SpreadView

HORIZON: Final = 4
"""Bars that the forecast looks ahead."""

EMA_LAG: Final = 19 / 2
"""Bars by which EMA20 follows a straight trend: (1 - a) / a with a = 2 / (20 + 1)."""

MAX_SPREAD_ATR: Final = 1000.0
"""Spread in ATR where the market does not move at all, so that the gate still sees a wide one."""

MOOD_BARS: Final = 20
"""Bars over which the mood of the market is read."""

ATR: Final = "ATR"
BARS: Final = "bars"
PERCENT: Final = "%"
PRICE: Final = "price"
OF_100: Final = "of 100"
OF_RANGE: Final = "of range"
VOLUME: Final = "volume"


class FeatureKind(NamedTuple):
    """A kind of number: its unit, and how many decimals it has."""

    unit: str
    decimals: int


SCORE: Final = FeatureKind("", 4)
COUNT: Final = FeatureKind("", 0)
LIMITED: Final = FeatureKind(ATR, DISTANCE_DECIMALS)
"""Kind of a number that is held to a limit: its value is exact, its text alone is rounded."""
DISTANCE: Final = FeatureKind(ATR, DISTANCE_DECIMALS)
SHARE: Final = FeatureKind(OF_RANGE, 4)
OSCILLATOR: Final = FeatureKind(OF_100, PERCENTILE_DECIMALS)
CHANGE: Final = FeatureKind(PERCENT, 4)
PART: Final = FeatureKind("of 1", 4)
WORD: Final = FeatureKind("", 0)
MINUTES: Final = FeatureKind("min", 2)
HOSTS: Final = FeatureKind("", 0)
"""Kind of a host's own numbers: nobody here knows their scale, so they have eight digits."""

AGE: Final = FeatureKind(BARS, PERCENTILE_DECIMALS)
EXTRA_DIGITS: Final = 2
"""Decimals of a price beyond those that the symbol is quoted with."""

NOT_PRICES: Final[Mapping[str, FeatureKind]] = {
    **dict.fromkeys(("rsi14", "stoch_k", "stoch_d", "adx14", "plus_di", "minus_di"), OSCILLATOR),
    **dict.fromkeys(("volatility_percentile",), OSCILLATOR),
    **dict.fromkeys(("support_distance_atr", "resistance_distance_atr", "gap_atr"), DISTANCE),
    **dict.fromkeys(("body_atr",), DISTANCE),
    **dict.fromkeys(("upper_wick", "lower_wick"), SHARE),
    **dict.fromkeys(("engulfing", "hammer", "trend_state", "bos"), COUNT),
    "cci20": FeatureKind("", 2),
    "volume_sma20": FeatureKind(VOLUME, 2),
    "volume_ratio": FeatureKind("x", DISTANCE_DECIMALS),
}
"""Kinds of the indicators that are no prices."""


_new: Final[Callable[[type[Feature], tuple[Any, ...]], Feature]] = tuple.__new__
"""Makes a feature of all its fields, in half the time of its own constructor."""


class RowFeatures:
    """What is the same of some features in every row: id, unit and decimals of each, in order."""

    __slots__ = ("_decimals", "_ids", "_rounding", "_units")

    def __init__(self, kinds: Iterable[tuple[str, FeatureKind]]) -> None:
        self._ids, found = zip(*kinds, strict=True)
        self._units, self._decimals = zip(*found, strict=True)
        self._rounding = Rounding(self._decimals)

    def of(self, values: Sequence[float], moment: str) -> list[Feature]:
        """Return the features of a row known at a moment, all of them rounded at once."""
        numbers = self._rounding.of(values)
        parts = zip(self._ids, numbers, self._units, self._decimals, strict=True)
        return [
            _new(Feature, (name, number, unit, moment, "", decimals))
            if math.isfinite(number)
            else Feature(name, None, unit, moment)
            for name, number, unit, decimals in parts
        ]


ROW_IDS: Final[Mapping[str, str]] = {
    **{name: vector for vector, name in SCORES.items()},
    **{f"component.{name}": name for part in COMPONENTS.values() for name in part},
    **{f"technical.{name}": name for name in INDICATORS},
}
"""Columns of a row by the id of their feature."""

GAP_PCT: Final = "technical.gap_pct"

MEMORY: Final[Mapping[str, tuple[str, FeatureKind]]] = {
    "markov_state": ("current_markov_state", WORD),
    "state_duration": ("state_duration", FeatureKind(BARS, 0)),
    "trend_direction": ("trend_direction", WORD),
    "losing_streak": ("losing_streak", FeatureKind("trades", 0)),
    "open_elsewhere": ("open_elsewhere", FeatureKind("positions", 0)),
    "position": ("position", WORD),
}
"""Features of the memory block: key of the memory context, kind."""

LESSONS: Final[Mapping[str, FeatureKind]] = {
    "side": WORD,
    "similar": FeatureKind("trades", 0),
    "win_share": PART,
    "mean_r": FeatureKind("R", 2),
}
"""Features of earlier trades in a like market, by their names in Recalled.numbers."""


STAKES: Final[Mapping[str, FeatureKind]] = {
    "reward_r": FeatureKind("R", 2),
    "cost_r": FeatureKind("R", 4),
    "break_even": PART,
}
"""Features of what an opening stakes."""

BULLISH: Final = ("BULLISH", "STRONG_BULLISH")
BEARISH: Final = ("BEARISH", "STRONG_BEARISH")
FUNDAMENTALS: Final[Mapping[str, FeatureKind]] = {
    "pe": FeatureKind("x", 2),
    "pb": FeatureKind("x", 2),
    "ev_ebitda": FeatureKind("x", 2),
    "revenue_growth_pct": FeatureKind(PERCENT, 2),
    "net_margin_pct": FeatureKind(PERCENT, 2),
    **dict.fromkeys((f"{name}_to_peers" for name in OF_PEERS), FeatureKind("x", 2)),
    RATING: FeatureKind("", 2),
    SURPRISE: FeatureKind(PERCENT, 2),
}
"""Figures of a company, by their names in NewsView.fundamentals."""

NOTHING: Final[Mapping[str, float]] = MappingProxyType({})
NO_NEWS: Final = NewsView(NewsStatus.OFF)
NO_EVENTS: Final = EventView()
HEARD: Final = (NewsStatus.AVAILABLE, NewsStatus.EMPTY)
"""Statuses in which no headline means that there is none."""

IN_FORCE: Final = ("available", "broken")
"""Statuses of a usable calendar; a broken one is used as it was last read well."""

Value = float | str | None
Found = Iterator[tuple[str, Value, FeatureKind]]
Block = Callable[[str], Iterable[Feature]]
"""Makes the features of a block, known at a moment."""


class Forecast(NamedTuple):
    """Where the close may stand HORIZON bars on, and the band around it, in percent of the close.

    What is None or not finite is not known.
    """

    drift_pct: float | None
    low_pct: float | None
    high_pct: float | None


Forecaster = Callable[[Mapping[str, float], NewsView], Forecast]
"""Makes a forecast of a row of score_frame and of the news known then; it raises nothing."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The evidence of one tick: the four L1 scores, a line about each, and the features by id.

    `regime` is the kind of market, with the features that it was read from; `explained` holds the
    components behind the scores.
    """

    symbol: str
    timeframe: str
    scores: Mapping[str, float]
    notes: Mapping[str, str]
    features: Mapping[str, Feature]
    regime: Regime
    explained: Mapping[str, VectorEvidence]


class LazyFeatures(Mapping[str, Feature]):
    """Features by id, in order; each block of them is computed at the first look at it."""

    __slots__ = ("_begin", "_held", "_known", "_made", "_moment", "_one", "_whole")

    def __init__(
        self,
        begin: Callable[[], Mapping[str, Block]],
        moment: str,
        one: Callable[[str], Feature | None],
    ) -> None:
        """Take what gives the blocks in order, each with what makes it; `moment` is ISO text.

        `one` returns a single feature by its id, None for one that is made with its whole block.
        """
        self._begin = begin
        self._held: Mapping[str, Block] | None = None
        self._one = one
        self._moment = moment
        self._made: dict[str, dict[str, Feature]] = {}
        self._known: dict[str, Feature] = {}
        self._whole: dict[str, Feature] | None = None

    def __getitem__(self, name: str) -> Feature:
        found: Feature | None = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """Return a feature by its id, or `default`; what goes wrong in its block is raised."""
        found = self._known.get(name)
        if found is None:
            # One indicator is looked up alone: working out its whole block would cost fifty. So is
            # what the gate's rules read.
            found = self._one(name) or self._block(name.partition(".")[0]).get(name)
            if found is None:
                return default
            self._known[name] = found
        return found

    @property
    def _blocks(self) -> Mapping[str, Block]:
        if self._held is None:  # a tick that asks nobody reads no block
            self._held = self._begin()
        return self._held

    def _block(self, name: str) -> Mapping[str, Feature]:
        found = self._made.get(name)
        if found is None:
            makes = self._blocks.get(name)
            made = makes(self._moment) if makes else ()
            found = self._made[name] = {feature.id: feature for feature in made}
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())

    def keys(self) -> KeysView[str]:
        """Return the ids in their order."""
        return self._all().keys()

    def values(self) -> ValuesView[Feature]:
        """Return the features in their order."""
        return self._all().values()

    def items(self) -> ItemsView[str, Feature]:
        """Return ids and features in their order."""
        return self._all().items()

    def _all(self) -> dict[str, Feature]:
        if self._whole is None:
            whole: dict[str, Feature] = {}
            for name in self._blocks:
                whole.update(self._block(name))
            self._known = self._whole = whole
        return self._whole

    def with_block(self, name: str, yields: Callable[[], Found]) -> LazyFeatures:
        """Return these features and one more block; what was worked out of others stays."""
        blocks = {**self._blocks, name: _told(yields)}
        more = LazyFeatures(lambda: blocks, self._moment, self._one)
        more._made = {block: made for block, made in self._made.items() if block != name}
        return more


class _Known(NamedTuple):
    """What the features are made of that are looked up one by one."""

    row: Mapping[str, float]
    price: FeatureKind
    spread: float | None
    bars_held: int
    bar_age: float
    memory: Mapping[str, Any]
    calendar: EventView


def _recalled(key: str) -> Callable[[_Known], Value]:
    return lambda known: known.memory.get(key)


ALONE: Final[Mapping[str, tuple[Callable[[_Known], Value], FeatureKind]]] = {
    "market.spread_atr": (lambda known: _spread_atr(known.spread, known.row["atr14"]), LIMITED),
    "market.valid_bars": (lambda known: float(known.bars_held), FeatureKind(BARS, 0)),
    "market.bar_age": (lambda known: known.bar_age, AGE),
    **{f"memory.{name}": (_recalled(key), kind) for name, (key, kind) in MEMORY.items()},
    "events.available": (lambda known: float(known.calendar.status in IN_FORCE), COUNT),
    "events.to_next_min": (lambda known: known.calendar.to_next, MINUTES),
    "events.since_last_min": (lambda known: known.calendar.since_last, MINUTES),
    "source.events": (lambda known: known.calendar.status, WORD),
    "source.events_ahead_min": (lambda known: known.calendar.ahead, MINUTES),
    "source.events_behind_min": (lambda known: known.calendar.behind, MINUTES),
}
"""Features beside those of a row that are made alone where they alone are asked for.

On a tick that asks nobody the gate's rules read them and nothing else.
"""

_ALONE_IN: Final[Mapping[str, tuple[str, ...]]] = {
    block: tuple(name for name in ALONE if name.startswith(f"{block}."))
    for block in ("market", "memory", "events", "source")
}


class _Notes(Mapping[str, str]):
    """A line about each score, written when it is read."""

    __slots__ = ("_explained",)

    def __init__(self, explained: Mapping[str, VectorEvidence]) -> None:
        self._explained = explained

    def __getitem__(self, vector: str) -> str:
        return self._explained[vector].note

    def __iter__(self) -> Iterator[str]:
        return iter(self._explained)

    def __len__(self) -> int:
        return len(self._explained)

    def __repr__(self) -> str:
        return repr(dict(self))


def follow_drift(row: Mapping[str, float], news: NewsView) -> Forecast:  # noqa: ARG001  it reads none
    """Return the trend that would keep EMA20 where it is, in a band of one ATR a bar."""
    close = row["close"]
    drift = 100.0 * HORIZON * (close - row["ema20"]) / EMA_LAG / close
    band = 100.0 * row["atr14"] * math.sqrt(HORIZON) / close
    return Forecast(drift, drift - band, drift + band)


def build(
    *,
    symbol: str,
    timeframe: str,
    bar_time: datetime,
    as_of: datetime,
    row: Mapping[str, float],
    spread: float | None,
    bars_held: int,
    bar_age: float,
    memory: Mapping[str, Any],
    digits: int = 5,
    bars: BarView | pd.DataFrame | None = None,
    news: NewsView | None = None,
    events: EventView | None = None,
    outside: OutsideView | None = None,
    host: Mapping[str, float] = NOTHING,
    known_at: datetime | None = None,
    spreads: SpreadView = NO_SPREADS,
    forecaster: Forecaster = follow_drift,
    experts: bool = False,
) -> Bundle:
    """Return the evidence of the bar that opened at `bar_time`.

    `row` is its row of score_frame; `spread` is in price units, None where nobody knows it,
    `bars_held` counts the bars behind the row, `bar_age` is how many bars ago the newest one
    closed, `memory` is the memory context, `digits` the decimals with which the symbol is quoted.
    `bars` are the bars behind the row, this one last; `news` and `events` what was known at
    `as_of`, headlines of a host at `known_at`; `outside` the outside numbers known at `as_of`. None
    of any of them: nothing is known. `spreads` is what is known of the bars' own ones, `host` has a
    host's own numbers by name. `forecaster` makes the forecast. The blocks of a swarm's experts are
    there, and their flags in the triage, only for `experts`.
    """
    headlines, calendar, beside = news or NO_NEWS, events or NO_EVENTS, outside or NO_OUTSIDE
    view = BarView.of(bars) if isinstance(bars, pd.DataFrame) else bars
    _check_times(bar_time, timeframe, as_of, view, headlines, known_at or as_of)
    explained, regime = explain(row), market_regime.read(row)
    price = FeatureKind(PRICE, digits + EXTRA_DIGITS)
    known = _Known(row, price, spread, bars_held, bar_age, memory, calendar)
    moment = iso(as_of)

    def blocks() -> dict[str, Block]:
        told: dict[str, Callable[[], Found]] = {
            "forecast": lambda: _forecast(forecaster(row, headlines)),
            "market": lambda: _market(known, view, regime, beside if experts else None),
            "spread": lambda: _spreads(spreads, row["atr14"], price),
            "memory": lambda: _memory(known),
            "events": lambda: _some("events", known),
            "news": lambda: _news(headlines),
            "sentiment": lambda: _mood(view, headlines, beside),
            "fundamentals": lambda: _fundamentals(headlines),
            **{block.rstrip("."): partial(_outside, block, beside) for block in OUTSIDE},
            "source": lambda: _sources(headlines, known, beside),
            "host": lambda: _host(host),
            **(_of_experts(view, row, beside, spreads, price) if experts else {}),
        }
        made: dict[str, Block] = {"row": partial(_of_row, row, price)}
        return made | {name: _told(yields) for name, yields in told.items()}

    return Bundle(
        symbol=symbol,
        timeframe=timeframe,
        scores={vector: float(row[vector]) for vector in VECTORS},
        notes=_Notes(explained),
        features=LazyFeatures(blocks, moment, lambda name: _alone(name, known, moment)),
        regime=regime,
        explained=explained,
    )


def with_lessons(bundle: Bundle, numbers: Mapping[str, Value]) -> Bundle:
    """Return the evidence with what earlier trades came to (torra.lessons.recall); none adds none.

    The keys are the ids of the features after `lessons.`.
    """
    if not numbers or not isinstance(bundle.features, LazyFeatures):
        return bundle
    features = bundle.features.with_block("lessons", lambda: _lessons(numbers))
    return replace(bundle, features=features)


def with_standing(bundle: Bundle, numbers: Mapping[str, float | None]) -> Bundle:
    """Return the evidence with what its seats' past came to (torra.evaluation.standing).

    The keys are the ids of the features after `standing.`; none adds none.
    """
    if not numbers or not isinstance(bundle.features, LazyFeatures):
        return bundle
    features = bundle.features.with_block("standing", lambda: _standing(numbers))
    return replace(bundle, features=features)


def with_stakes(bundle: Bundle, numbers: Mapping[str, Value]) -> Bundle:
    """Return the evidence with what an opening stakes (torra.verdict.order_levels.stakes)."""
    if not isinstance(bundle.features, LazyFeatures):
        return bundle
    features = bundle.features.with_block("stakes", lambda: _stakes(numbers))
    return replace(bundle, features=features)


def with_experts_of(
    bundle: Bundle,
    bars: BarView | None,
    row: Mapping[str, float],
    *,
    digits: int,
    outside: OutsideView | None = None,
    spreads: SpreadView = NO_SPREADS,
) -> Bundle:
    """Return the evidence with the experts' blocks of other bars than its own, None for no bars.

    Arguments are those of `build`; all else stays, the flags of the triage too.
    """
    features = bundle.features
    if not isinstance(features, LazyFeatures):
        return bundle
    price = FeatureKind(PRICE, digits + EXTRA_DIGITS)
    blocks = _of_experts(bars, row, outside or NO_OUTSIDE, spreads, price)
    for name, yields in blocks.items():
        features = features.with_block(name, yields)
    return replace(bundle, features=features)


def plain(value: Any, decimals: int) -> Value:
    """Return a number with so many decimals, a word as it is, None for what is not finite."""
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    # + 0.0: no negative zero in a prompt.
    return round(number, decimals) + 0.0 if math.isfinite(number) else None


def _check_times(
    bar_time: datetime,
    timeframe: str,
    as_of: datetime,
    bars: BarView | None,
    news: NewsView,
    known_at: datetime,
) -> None:
    """Raise ValueError for anything that was not known at `as_of`, a headline at `known_at`."""
    if as_of < bar_time + duration(timeframe):
        raise ValueError(f"the bar of {iso(bar_time)} is not closed at {iso(as_of)}")
    if bars is not None and bars.last != bar_time:
        raise ValueError(f"the bars end at {bars.last}, not with that of {iso(bar_time)}")
    late = [heard.item for heard in news.items if heard.item.first_seen > known_at]
    if late:
        seen = iso(late[0].first_seen)
        raise ValueError(
            f"the headline {late[0].id} was first seen at {seen}, after {iso(known_at)}"
        )


def _feature(name: str, value: Value, kind: FeatureKind, moment: str) -> Feature:
    """Return one feature, its number rounded; one with a limit and a host's own as they are."""
    if kind is HOSTS:
        return Feature(name, value, "", moment)
    unit, decimals = kind
    # The usual cases, without a further call.
    if type(value) is float and math.isfinite(value):
        number = value if kind is LIMITED else round(value, decimals) + 0.0
        return _new(Feature, (name, number, unit, moment, "", decimals))
    if value is None:
        return _new(Feature, (name, None, unit, moment, "", None))
    known = plain(value, decimals)
    return Feature(name, known, unit, moment, "", decimals if isinstance(known, float) else None)


def _told(yields: Callable[[], Found]) -> Block:
    """Return what makes the features of a block that tells them one by one."""
    return lambda moment: [_feature(name, value, kind, moment) for name, value, kind in yields()]


def _of_row(row: Mapping[str, float], price: FeatureKind, moment: str) -> list[Feature]:
    """Return scores, components and indicators, all of them rounded at once."""
    values = [row[column] for column in ROW_IDS.values()]
    return _row_features(price).of([*values, _gap_pct(row)], moment)


@lru_cache(maxsize=16)  # one for each number of digits that symbols are quoted with
def _row_features(price: FeatureKind) -> RowFeatures:
    kinds = [(name, _kind_of(column, price)) for name, column in ROW_IDS.items()]
    return RowFeatures([*kinds, (GAP_PCT, CHANGE)])


def _kind_of(column: str, price: FeatureKind) -> FeatureKind:
    return NOT_PRICES.get(column, price) if column in INDICATORS else SCORE


def _alone(name: str, known: _Known, moment: str) -> Feature | None:
    """Return one feature; None for one that is made with its whole block."""
    column = ROW_IDS.get(name)
    if column is not None:
        return _feature(name, known.row[column], _kind_of(column, known.price), moment)
    if name in ALONE:
        read, kind = ALONE[name]
        return _feature(name, read(known), kind, moment)
    return _feature(name, _gap_pct(known.row), CHANGE, moment) if name == GAP_PCT else None


def _some(block: str, known: _Known) -> Found:
    """Yield the features of a block that are also made alone."""
    for name in _ALONE_IN[block]:
        read, kind = ALONE[name]
        yield name, read(known), kind


def _gap_pct(row: Mapping[str, float]) -> float:
    """Return the gap between the close before and the bar's open as percent of that close."""
    gap = row["gap_atr"] * row["atr14"]
    # The row has no open and no close before: both follow from body and gap.
    before = row["close"] - row["body_atr"] * row["atr14"] - gap
    return 100.0 * gap / before if before > 0.0 else math.nan


def _forecast(told: Forecast) -> Found:
    for name, value in told._asdict().items():
        yield f"forecast.{name}", value, CHANGE


def _market(
    known: _Known, bars: BarView | None, regime: Regime, outside: OutsideView | None
) -> Found:
    """Yield the market; the outside numbers are there for a swarm's experts alone."""
    row, memory = known.row, known.memory
    range_atr = _range_atr(bars, row["atr14"])
    flags = market_regime.triage(
        range_atr=range_atr,
        volume_ratio=row["volume_ratio"],
        gap_atr=row["gap_atr"],
        bar_age=known.bar_age,
        beyond=None if outside is None else _beyond(bars, row),
    )
    odd = {} if outside is None else _anomalies(range_atr, row["volume_ratio"], outside)
    flags += tuple(name for name, stands in odd.items() if stands)
    yield from _some("market", known)
    yield "market.session", memory.get("session"), WORD
    yield "market.day_of_week", memory.get("day_of_week"), WORD
    yield "market.range_atr", range_atr, DISTANCE
    yield "market.regime", regime.name, WORD
    yield "market.triage", " ".join(flags) or None, WORD
    if odd:
        unknown = (name for name, stands in odd.items() if stands is None)
        yield "market.triage_unknown", " ".join(unknown) or None, WORD


def _anomalies(
    range_atr: float | None, volume_ratio: float, outside: OutsideView
) -> dict[str, bool | None]:
    """Return which anomalies of document 003 the bar has, by its numbers as they are shown."""
    values = {
        **{name: outside.numbers.get(name) for name in bar_anomalies.READS},
        bar_anomalies.RANGE: range_atr,
        bar_anomalies.VOLUME: volume_ratio,
    }
    rounded = (
        (name, plain(value, kind_of(name)[1] or DISTANCE_DECIMALS))
        for name, value in values.items()
    )
    return bar_anomalies.anomalies(
        {name: value for name, value in rounded if not isinstance(value, str)}
    )


def _spread_atr(spread: float | None, atr: float) -> float | None:
    if spread is None:
        return None
    if math.isnan(atr) or spread <= 0.0:
        return math.nan if math.isnan(atr) else 0.0
    # In a flat market any spread is wide, and the gate must see that.
    return min(spread / atr, MAX_SPREAD_ATR) if atr > 0.0 else MAX_SPREAD_ATR


def _spreads(view: SpreadView, atr: float, price: FeatureKind) -> Found:
    yield "spread.available", float(view.last is not None), COUNT
    yield "spread.last", view.last, price
    yield "spread.last_atr", _spread_atr(view.last, atr), DISTANCE
    yield "spread.mean_atr", _spread_atr(view.mean, atr), DISTANCE
    yield "spread.percentile", view.percentile, OSCILLATOR


def _micro(view: SpreadView) -> Found:
    hour = view.hour
    percentile, jump, count = (
        (None, None, None) if hour is None else (hour.percentile, hour.jump, float(hour.count))
    )
    yield "micro.spread_percentile", percentile, OSCILLATOR
    yield "micro.spread_jump", jump, FeatureKind("x", 2)
    yield "micro.spread_count", count, FeatureKind(BARS, 0)


def _range_atr(bars: BarView | None, atr: float) -> float | None:
    """Return high less low of the newest bar in ATR; 0 in a market that does not move."""
    if bars is None:
        return None
    high, low = (bars.newest(name, 1)[0] for name in ("high", "low"))
    return 0.0 if atr == 0.0 else (high - low) / atr


def _beyond(bars: BarView | None, row: Mapping[str, float]) -> market_regime.Beyond | None:
    if bars is None:
        return None
    high, low = (bars.newest(name, 1)[0] for name in ("high", "low"))
    return market_regime.Beyond(high, low, row["close"], row["swing_high"], row["swing_low"])


def _of_experts(
    view: BarView | None,
    row: Mapping[str, float],
    outside: OutsideView,
    spreads: SpreadView,
    price: FeatureKind,
) -> dict[str, Callable[[], Found]]:
    """Return the blocks of a swarm's experts by name."""

    def bars() -> ExpertBars | None:
        return None if view is None else ExpertBars.of(view, row["atr14"])

    delta = outside.numbers.get(flow_readings.DELTA)
    known = None if isinstance(delta, str) else delta
    return {
        "liquidity": lambda: _expert(
            "liquidity", liquidity_readings.UNITS, liquidity_readings.read(bars(), known), price
        ),
        "micro": lambda: _micro(spreads),
        "geometry": lambda: _expert(
            "geometry", geometry_readings.UNITS, geometry_readings.read(bars(), row), price
        ),
    }


def _expert(
    block: str, units: Mapping[str, tuple[str, int]], numbers: Numbers, price: FeatureKind
) -> Found:
    """Yield the numbers of an expert's block; what has no unit of its own is a price."""
    for name, value in numbers.items():
        yield f"{block}.{name}", value, FeatureKind(*units[name]) if name in units else price


def _memory(known: _Known) -> Found:
    yield from _some("memory", known)
    memory = known.memory
    chances = memory.get("next_probabilities") or {}
    for side, states in (("bullish", BULLISH), ("bearish", BEARISH)):
        told = [chances[state] for state in states if state in chances]
        yield f"memory.next_{side}", math.fsum(told) if told else None, PART
    trend = memory.get("sentiment_trend") or [None]
    yield "memory.consensus_last", trend[-1], SCORE


def _news(view: NewsView) -> Found:
    yield "news.available", float(view.unique > 0), COUNT
    yield "news.items", _heard(view), COUNT
    yield "news.score", view.score, SCORE
    for name in EVENT_CLASSES:
        items, score = view.events.get(name, (None, None))
        yield f"news.{name}_items", items, COUNT
        yield f"news.{name}_score", score, SCORE
    for number, heard in enumerate(view.items, start=1):
        yield f"news.item.{number}", heard.item.headline, WORD
        yield f"news.item_score.{number}", heard.item.score, SCORE
        yield f"news.item_weight.{number}", heard.weight, PART
        yield f"news.item_age_h.{number}", heard.age_hours, FeatureKind("h", 2)
        yield f"news.item_event.{number}", heard.item.event, WORD


def _heard(view: NewsView) -> float | None:
    """Return how many headlines count; None where the source could not be heard."""
    return float(view.unique) if view.unique or view.status in HEARD else None


def _mood(bars: BarView | None, news: NewsView, outside: OutsideView) -> Found:
    """Yield the mood, as the last bars and the headlines show it.

    A close that did not change, and the volume of a bar that closed where it opened, count half to
    either side: a market that stands still is in neither mood, and upside down the shares are 1
    less what they were.
    """
    positions = any(
        value is not None for name, value in outside.numbers.items() if name.startswith(POSITIONS)
    )
    yield "sentiment.positioning_available", float(positions), COUNT
    yield "sentiment.news", news.score, SCORE
    yield "sentiment.news_items", _heard(news), COUNT
    up_bars, up_volume, streak = _moves(bars)
    yield "sentiment.up_bars", up_bars, PART
    yield "sentiment.up_volume", up_volume, PART
    yield "sentiment.streak", streak, FeatureKind(BARS, 0)


def _moves(bars: BarView | None) -> tuple[float | None, float | None, float | None]:
    # One bar more than are counted: the first close needs one before it.
    if bars is None or len(bars) <= MOOD_BARS:
        return None, None, None
    opened, close, volume = (
        bars.newest(name, MOOD_BARS + 1) for name in ("open", "close", "volume")
    )
    moves = [_direction(last, now) for last, now in pairwise(close)]
    # Each move is +1, 0 or -1, so the sum is the length of the streak with its sign.
    streak = sum(takewhile(lambda move: move == moves[-1], reversed(moves)))
    traded = math.fsum(volume[1:])
    bodies = map(_direction, opened[1:], close[1:])
    ahead = math.fsum(body * size for body, size in zip(bodies, volume[1:], strict=True))
    up_volume = (1.0 + ahead / traded) / 2.0 if traded > 0.0 else None
    return (1.0 + sum(moves) / MOOD_BARS) / 2.0, up_volume, streak


def _direction(first: float, then: float) -> int:
    return (then > first) - (then < first)


def _fundamentals(view: NewsView) -> Found:
    known = {name: view.fundamentals.get(name) for name in FUNDAMENTALS}
    there = any(plain(value, 0) is not None for value in known.values())
    yield "fundamentals.available", float(there), COUNT
    for name, kind in FUNDAMENTALS.items():
        yield f"fundamentals.{name}", known[name], kind


def _outside(block: str, view: OutsideView) -> Found:
    """Yield a block of the outside numbers: those that the symbol's asset class reads."""
    for name, value in view.numbers.items():
        if name.startswith(block):
            kind = kind_of_companion if block == COMPANIONS else kind_of
            yield name, value, FeatureKind(*kind(name))


def _sources(news: NewsView, known: _Known, outside: OutsideView) -> Found:
    """Yield the status of each source, and the minutes that the gate compares with its windows.

    These minutes count from the tick, which may run later than the close: when an event is due is
    known beforehand.
    """
    yield "source.news", str(news.status), WORD
    yield from _some("source", known)
    yield "source.fundamentals", str(news.fundamentals_status), WORD
    for block in BLOCKS:
        yield f"source.{block}", outside.statuses.get(block, str(NewsStatus.OFF)), WORD
    # Only where there are some: most symbols have none.
    for name, status in outside.statuses.items():
        if name.partition(".")[0] == COMPANION:
            yield f"source.{name}", status, WORD
    # Of a feed that brings order flow, or should: others have no such source.
    if flow := outside.statuses.get(flow_readings.BLOCK):
        yield f"source.{flow_readings.BLOCK}", flow, WORD


def _lessons(numbers: Mapping[str, Value]) -> Found:
    for name, kind in LESSONS.items():
        yield f"lessons.{name}", numbers.get(name), kind


def _standing(numbers: Mapping[str, float | None]) -> Found:
    for name, value in numbers.items():
        yield f"standing.{name}", value, PART


def _stakes(numbers: Mapping[str, Value]) -> Found:
    for name, kind in STAKES.items():
        yield f"stakes.{name}", numbers.get(name), kind


def _host(numbers: Mapping[str, float]) -> Found:
    """Yield the numbers of a host, whose scale and sense it alone knows."""
    for name, value in numbers.items():
        yield f"host.{name}", float(f"{value + 0.0:.8g}"), HOSTS
