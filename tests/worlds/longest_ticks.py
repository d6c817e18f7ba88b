"""Ticks whose evidence is as long as it gets: memories, every flag, headlines, lessons, trades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from agent_config import MODES
from agents.contracts import EVENT_CLASSES, DebateContext, Feature
from agents.features import FEATURES, ids_of
from scoring_rubric import ASSET_NOTES
from technical_calculator import score_frame
from tests.doubles.scripted import context
from tests.worlds.price_series import row_of, sample
from torra.clock import duration, iso
from torra.config import SYMBOLS, NewsSettings
from torra.evidence.companion_readings import NUMBERS
from torra.evidence.feature_bundle import EvidenceInputs, build
from torra.evidence.news_digest import NewsItem, NewsStatus, NewsView, Weighted
from torra.evidence.outside_readings import LEVELS_OF
from torra.evidence.scheduled_events import EventView
from torra.market.bar_view import BarView

TALK = "A sentence of ordinary length about what the evidence says. "
TALES = (TALK, "漢字", "\U0001f4c8", "é́ ", "<" * 9)
"""Prose of an agent that never stops: plain, and in letters of two, three and four bytes."""
WARM = {
    "recent_transitions": ["STRONG_BEARISH→STRONG_BULLISH"] * 4,
    "next_probabilities": {"STRONG_BEARISH": 0.3333, "BULLISH": 0.3333},
    "sentiment_trend": [-0.1234] * 10,
    "open_positions": [{"direction": "SHORT", "pnl": -12345.67, "age_ticks": 120}],
    "recent_signals": ["HOLD"] * 10,
    "current_markov_state": "STRONG_BEARISH",
    "state_duration": 120,
    "trend_direction": "falling",
    "losing_streak": 12,
    "open_elsewhere": 2,
    "position": "SHORT",
    "session": "LONDON_NY_OVERLAP",
    "day_of_week": "Wednesday",
}
"""A memory whose words are as long as they get."""


CALENDAR = EventView("available", to_next=29.99, since_last=1439.99)
FIGURES = dict.fromkeys((name.partition(".")[2] for name in ids_of("fundamentals")[1:]), -12345.67)
ALL_FLAGS = "range_spike volume_spike gap stale"
MOST_ITEMS = NewsSettings.model_fields["max_items"].metadata[1].le


def headlines(tale: str, published: datetime) -> NewsView:
    """Return as many headlines as a profile can ask for, of every class, with a stock's figures."""
    items = tuple(
        Weighted(
            NewsItem(
                f"{n:016x}",
                "finnhub",
                "finnhub:general",
                tale * 30,
                published,
                published,
                -0.1234,
                max(EVENT_CLASSES, key=len),
            ),
            age_hours=719.25,
            weight=0.1234,
        )
        for n in range(MOST_ITEMS)
    )
    return NewsView(
        NewsStatus.AVAILABLE,
        items,
        unique=1234,
        score=-0.1234,
        events=dict.fromkeys(EVENT_CLASSES, (123, -0.1234)),
        fundamentals=FIGURES,
        fundamentals_status=NewsStatus.AVAILABLE,
    )


DANGERS: dict[str, Any] = {
    "market.triage": ALL_FLAGS,
    "market.spread_atr": 123.4567,
    "market.bar_age": 12.34,
    "market.valid_bars": 123.0,
    "memory.losing_streak": 12.0,
    "memory.open_elsewhere": 12.0,
    "technical.volatility_percentile": 99.99,
}
"""Whatever the gate's rules look at is at its worst, so that they give every reason at once."""


def real_ticks(name: str, count: int, tale: str = "") -> Iterator[DebateContext]:
    """Yield what the desk sees at that many closes of the sample, with all that can be known.

    The memory is warm, there are events, a company's figures and every flag; and headlines, if
    `tale` is what they tell.
    """
    symbol, timeframe = name.split("_")
    bars = sample(name)
    spec, rows = SYMBOLS[symbol], score_frame(bars)
    for at in range(len(bars) - count * 7, len(bars), 7):
        opened = bars.index[at].to_pydatetime()
        news = headlines(tale, opened)
        inputs = EvidenceInputs(
            symbol=symbol,
            timeframe=timeframe,
            bar_time=opened,
            as_of=opened + duration(timeframe),
            row=row_of(rows.iloc[at]),
            spread=spec.spread,
            valid_bars=750,
            bar_age=0.0,
            memory=WARM,
            digits=spec.digits,
            bars=BarView.of(bars.iloc[: at + 1]),
            news=news if tale else replace(news, items=()),
            events=CALENDAR,
        )
        made = build(inputs)
        worst = {name: made.features[name]._replace(value=value) for name, value in DANGERS.items()}
        about = context(
            symbol=symbol,
            timeframe=timeframe,
            bar_time=iso(opened),
            as_of=iso(opened + duration(timeframe)),
            scores=made.scores,
            notes=made.notes,
            memory=WARM,
            asset=max(ASSET_NOTES, key=lambda asset: len(ASSET_NOTES[asset][""])),
        )
        yield replace(about, features={**made.features, **worst})


TRADES = [
    {"side": "SHORT", "outcome": "scratch", "r_multiple": -1.03, "hours_ago": 1234.56,
     "evolution": "Inconclusive"},
] * 3  # fmt: skip
"""Closed trades that take as much room as any."""
NOTES = ("x" * 180, "漢" * 60, "A lesson of ordinary length about what came of it. " * 9)

OF_A_CLASS: Mapping[str, tuple[str, ...]] = {
    "crypto": ("cot.", "positioning.", "derivs."),
    "stock": ("company.", "fundamentals."),
    "index": ("cot.", "positioning."),
}
"""Blocks from beside the chart that a class has and others have not."""

EVERYWHERE = ("flow.", "spread.", "micro.", "liquidity.", "geometry.", "lessons.")
COMPANIONS = ("dollar_index", "vix", "brent_oil", "us10y")


def known_of(asset: str) -> Iterator[str]:
    """Yield the ids of all that can be known of a symbol of a class beside its bars."""
    levels = tuple(f"macro.{name}" for name in LEVELS_OF.get(asset, ()))
    blocks = (*EVERYWHERE, *OF_A_CLASS[asset])
    yield from (name for name in FEATURES if name.startswith((*blocks, *levels)))
    yield from (f"geometry.level.{place}" for place in range(1, 9))
    yield from (f"companion.{name}.{number}" for name in COMPANIONS for number in NUMBERS)
    yield from (f"stakes.{name}" for name in ("cost_r", "reward_r", "break_even"))
    yield from (f"standing.{name}_hit_share" for name in MODES["swarm"].seats)
    yield from (f"standing.win_share_{tenth}" for tenth in range(10))


def fullest(asset: str, tale: str) -> DebateContext:
    """Return a real tick with all that can be known, each number as long as it gets."""
    (about,) = real_ticks("BTCUSD_M15", 1, tale)
    more = {
        name: Feature(name, -12345.6789, "ATR", about.as_of, decimals=4)
        for name in known_of(asset)
        if about.features.get(name) is None or about.features[name].value is None
    }
    shares = {
        name: Feature(name, 0.5833, "", about.as_of, decimals=4)
        for name in more
        if name.startswith(("standing.", "stakes."))
    }
    memory = {**about.memory, "recent_trades": TRADES}
    features = {**about.features, **more, **shares}
    return replace(
        about, features=features, memory=memory, lessons=NOTES, asset=asset, picture=b"png"
    )
