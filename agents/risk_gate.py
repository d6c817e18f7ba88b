"""The risk gate: fixed arithmetic, and a model that may only be stricter.

`rules` turns features and the analysts' spread into a multiplier and a veto of openings. A feature
that the host does not supply leaves its rule silent, which is flagged; only a calendar of scheduled
events may be missing without a flag. A model is asked, too: `merged` lets the model's ruling lower
the multiplier or add a veto, never raise or lift one; when no model answers, the rules stand. A
veto acts on the action, never on the scores, and never on a close.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from agent_config import GateSettings

from .contracts import (
    SCORE_DECIMALS,
    Feature,
    GateReason,
    GateRuling,
    Role,
)
from .evidence import OUTSIDE
from .features import number
from .risk_officer import NO_ROWS
from .risk_officer import RiskOverlay as OfficerRows

SHOWN_DECIMALS: Final = 4
"""Decimals with which a prompt shows the rules' numbers."""

VOLATILITY: Final = "technical.volatility_percentile"

CALENDAR: Final = "source.events"
UNSURE: Final = ("broken", "ended")
"""Words in the state of a calendar that is there but may miss an event."""

AHEAD: Final = ("events.to_next_min", "source.events_ahead_min")
BEHIND: Final = ("events.since_last_min", "source.events_behind_min")
"""Minutes to an event and since one: from the close of the bar, and from the tick itself."""

ROLE: Final = Role(
    id="risk_gate",
    title="risk gate",
    kind="gate",
    tier="quick",
    task="""
        Judge risk, not direction. Rules have set a multiplier for the adjustments
        (gate.multiplier) and perhaps a veto of openings (gate.veto): lower the one or add
        the other, never raise or lift. multiplier 1, veto false, reason_code NONE say that
        you add nothing, the usual answer. Bull and bear differ by office: that alone is no
        risk. Veto only for a concrete danger that you can cite; lower the multiplier where
        the cases rest on weak or missing evidence, and name the reason_code that fits.
    """,
    shape="ruling",
    focus={},
    needs=(),
    evidence=(
        "scores.",
        "gate.",
        "market.",
        "spread.",
        "memory.",
        "events.",
        *OUTSIDE,
        VOLATILITY,
        "technical.adx14",
        "technical.plus_di",
        "technical.minus_di",
    ),
)


class Rules(NamedTuple):
    """The ruling of the arithmetic, and the flags about it.

    `flags` are `silent:<feature>` for each missing feature that a rule needed, and `events:broken`
    and `events:ended` where a calendar of scheduled events may miss one. `storm` is the factor of
    the multiplier that volatility, and where a risk officer sits panic and liquidations, left.
    """

    ruling: GateRuling
    flags: tuple[str, ...]
    storm: float = 1.0


def rules(
    features: Mapping[str, Feature],
    settings: GateSettings,
    spread: float,
    officer: OfficerRows = NO_ROWS,
) -> Rules:
    """Rule on the evidence and on the spread of the analysts' adjustments (0 to 0.6).

    `officer` is what the risk officer's rows come to, where one sits.
    """
    seen = _Seen(features)
    vetoes = (
        seen.above("market.spread_atr", settings.max_spread_atr, GateReason.WIDE_SPREAD),
        seen.below("market.valid_bars", settings.min_valid_bars, GateReason.THIN_DATA),
        seen.above("market.bar_age", settings.max_bar_age, GateReason.STALE_DATA),
        _near_event(features, settings),
    )
    percentile = settings.volatility_percentile
    volatile = seen.above(VOLATILITY, percentile, GateReason.HIGH_VOLATILITY)
    losing = seen.reaches("memory.losing_streak", settings.losing_streak, GateReason.LOSING_STREAK)
    exposed = seen.above("memory.open_elsewhere", 0, GateReason.OPEN_EXPOSURE)
    agreed = agreement(spread, settings)
    # They read the same storm: the smallest factor counts, not the product.
    storm = min(settings.volatility_multiplier if volatile else 1.0, officer.storm)
    multiplier = (
        storm
        * officer.worn
        * (settings.losing_streak_multiplier if losing else 1.0)
        * (settings.exposure_multiplier if exposed else 1.0)
        * agreed
    )
    disagreeing = GateReason.DISAGREEMENT if agreed < 1.0 else None
    reasons = [str(code) for code in (*vetoes, volatile, losing, exposed, disagreeing) if code]
    ruling = GateRuling(
        round(multiplier, SCORE_DECIMALS),
        any(vetoes),
        (*reasons, *officer.reasons),
        veto_sides=officer.veto_sides,
    )
    silent = (f"silent:{name}" for name in seen.silent)
    return Rules(ruling, (*silent, *_unsure(features), *officer.flags), storm)


def agreement(spread: float, settings: GateSettings) -> float:
    """Return the factor, 0 to 1, that the analysts' spread leaves of the rules' multiplier."""
    return min(1.0, max(settings.disagreement_floor, 1.0 - spread / settings.disagreement_scale))


def without_analysts(multiplier: float, spread: float, settings: GateSettings) -> float:
    """Return a multiplier of the rules as it would be had no analyst been heard.

    Where the analysts' spread left nothing of it, it is as it was: the rest is not known.
    """
    agreed = agreement(spread, settings)
    return min(1.0, round(multiplier / agreed, SCORE_DECIMALS)) if agreed > 0.0 else multiplier


def as_features(ruling: GateRuling, spread: float, as_of: str) -> dict[str, Feature]:
    """Return the rules' ruling as evidence for the model that may sharpen it."""
    values: dict[str, float | str] = {
        "gate.multiplier": ruling.multiplier,
        "gate.veto": float(ruling.veto),
        "gate.reasons": " ".join(ruling.reasons) or str(GateReason.NONE),
        "gate.analyst_spread": round(spread, SCORE_DECIMALS),
    }
    return {
        name: Feature(
            name, value, "", as_of, decimals=None if isinstance(value, str) else SHOWN_DECIMALS
        )
        for name, value in values.items()
    }


def merged(rule: GateRuling, model: GateRuling | None) -> GateRuling:
    """Return the stricter of two rulings; the model's reason counts only where it added something.

    A model that is stricter without naming a reason is recorded as MODEL_JUDGEMENT.
    """
    if model is None:
        return rule
    multiplier = min(rule.multiplier, model.multiplier)
    veto = rule.veto or model.veto
    if (multiplier, veto) == (rule.multiplier, rule.veto):
        return rule
    named = [code for code in model.reasons if code != GateReason.NONE]
    reasons = dict.fromkeys((*rule.reasons, *(named or [str(GateReason.MODEL_JUDGEMENT)])))
    return GateRuling(multiplier, veto, tuple(reasons), model.detail, rule.veto_sides)


def _near_event(features: Mapping[str, Feature], settings: GateSettings) -> GateReason | None:
    """Veto near a scheduled event, both ends of the window included; without one there is none.

    An event at the very moment was 0 minutes ago, so that a setting of 0 still vetoes at it. What
    counts is any moment from the close of the bar to the tick: a late tick opens now, not then.
    """
    # Not through `_Seen`: where there is no calendar nothing is missing, so nothing is flagged.
    near = _within(features, AHEAD, settings.event_before_minutes) or _within(
        features, BEHIND, settings.event_after_minutes
    )
    return GateReason.SCHEDULED_EVENT if near else None


def _within(features: Mapping[str, Feature], names: tuple[str, ...], minutes: float) -> bool:
    for name in names:
        value = number(features, name)
        if value is not None and value <= minutes:
            return True
    return False


def _unsure(features: Mapping[str, Feature]) -> tuple[str, ...]:
    status = features.get(CALENDAR)
    if status is None:
        return ()
    words = str(status.value).split("_")
    return tuple([f"events:{word}" for word in words if word in UNSURE])


class _Seen:
    """Compares features with limits and remembers which features were missing."""

    def __init__(self, features: Mapping[str, Feature]) -> None:
        self._features = features
        self.silent: list[str] = []

    def above(self, name: str, limit: float, reason: GateReason) -> GateReason | None:
        value = self._value(name)
        return reason if value is not None and value > limit else None

    def below(self, name: str, limit: float, reason: GateReason) -> GateReason | None:
        value = self._value(name)
        return reason if value is not None and value < limit else None

    def reaches(self, name: str, limit: float, reason: GateReason) -> GateReason | None:
        value = self._value(name)
        return reason if value is not None and value >= limit else None

    def _value(self, name: str) -> float | None:
        value = number(self._features, name)
        if value is None:
            self.silent.append(name)
        return value
