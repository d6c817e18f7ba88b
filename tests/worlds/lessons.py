"""Made-up lessons: facts of trades that nobody made, in markets that a test chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from torra.lessons.lesson import SCALES, LessonFacts, LessonText, Situation
from torra.lessons.reviews import rules_words

NOON: Final = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MIDDLE: Final[Mapping[str, float | None]] = {name: scale.middle for name, scale in SCALES.items()}

RISING: Final = Situation(
    {**MIDDLE, "momentum": 0.8, "structure": 0.6, "adx14": 45.0, "di_difference": 20.0},
    regime="trend_up",
    session="LONDON",
    strongest=(("mo_rsi", 1), ("st_medium", 1), ("kl_cloud", 1)),
)
FLAT: Final = Situation(
    {**MIDDLE, "adx14": 8.0, "volatility_percentile": 4.0, "volume_ratio": 0.2},
    regime="quiet",
    session="ASIA",
    triage=("gap",),
    strongest=(("pa_wicks", -1), ("kl_lines", -1), ("mo_cci", -1)),
)


def facts(sid: str = "T1", hours: float = 0.0, **more: Any) -> LessonFacts:
    """Return the facts of a trade that ended so many hours after noon."""
    end = NOON + timedelta(hours=hours)
    known = {
        "sid": sid,
        "kind": "trade",
        "instance": "XAUUSD",
        "symbol": "XAUUSD",
        "asset": "gold",
        "timeframe": "M15",
        "side": "LONG",
        "bar_time": end - timedelta(hours=3),
        "opened_at": end - timedelta(hours=2.75),
        "closed_at": end,
        "known_at": end,
        "outcome": "loss",
        "evolution": "Falsified",
        "reason": "STOPPED",
        "r": -1.02,
        "planned_r": 2.0,
        "slipped_r": 0.02,
        "mae_r": -1.02,
        "mfe_r": 0.4,
        "hours_held": 2.75,
        "surprise": 1.02,
        "profit": -51.0,
        "situation": RISING,
    }
    return LessonFacts(**{**known, **more})


def won(sid: str, hours: float = 0.0, **more: Any) -> LessonFacts:
    result = {"outcome": "win", "evolution": "Realized", "reason": "TARGET", "r": 1.9}
    return facts(sid, hours, **{**result, "mfe_r": 1.9, "mae_r": -0.2, "profit": 95.0, **more})


def words(of: LessonFacts) -> LessonText:
    return rules_words(of, of.known_at)


def reviewed(
    of: LessonFacts, hours: float, rule: str = "Wait for volume.", **more: Any
) -> LessonText:
    """Return what a model wrote of a trade so many hours after its end."""
    written = replace(words(of), author="claude-sonnet-5-5", rule=rule, **more)
    return replace(written, known_at=of.known_at + timedelta(hours=hours))
