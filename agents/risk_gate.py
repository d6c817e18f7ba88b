"""The risk gate: fixed arithmetic, and a model that may only be stricter.

`rules` turns features and the analysts' spread into a multiplier and a veto of openings. A feature
that the host does not supply leaves its rule silent, which is flagged; only a calendar of scheduled
events may be missing without a flag. A model is asked, too: `merged` lets the model's ruling lower
the multiplier or add a veto, never raise or lift one; when no model answers, the rules stand. A
veto acts on the action, never on the scores, and never on a close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import ge, gt, lt
from typing import Final, NamedTuple

from agent_config import GateSettings

from .contracts import SCORE_DECIMALS, Feature, GateReason, GateRuling, Role
from .evidence import OUTSIDE
from .features import number
from .risk_officer import NO_ROWS, RiskOverlay

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
    task="""
        Judge risk, not direction. Rules have set a multiplier for the adjustments
        (gate.multiplier) and perhaps a veto of openings (gate.veto): lower the one or add
        the other, never raise or lift. multiplier 1, veto false, reason_code NONE say that
        you add nothing, the usual answer. Bull and bear differ by office: that alone is no
        risk. Veto only for a concrete danger that you can cite; lower the multiplier where
        the cases rest on weak or missing evidence, and name the reason_code that fits.
    """,
    shape="ruling",
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


class GateRule(NamedTuple):
    """A rule: a number beyond a limit vetoes openings, or lowers the multiplier to a factor.

    `limit` and `factor` are settings of the gate; without a limit it is 0, without a factor the
    rule vetoes.
    """

    reason: GateReason
    feature: str
    beyond: Callable[[float, float], bool]
    limit: str = ""
    factor: str = ""

    def holds(self, value: float | None, settings: GateSettings) -> bool:
        """Tell whether a number is beyond the limit; one that is not known is not."""
        limit = getattr(settings, self.limit) if self.limit else 0.0
        return value is not None and self.beyond(value, limit)


ROWS: Final = (
    GateRule(GateReason.WIDE_SPREAD, "market.spread_atr", gt, "max_spread_atr"),
    GateRule(GateReason.THIN_DATA, "market.valid_bars", lt, "min_valid_bars"),
    GateRule(GateReason.STALE_DATA, "market.bar_age", gt, "max_bar_age"),
    GateRule(
        GateReason.HIGH_VOLATILITY, VOLATILITY, gt, "volatility_percentile", "volatility_multiplier"
    ),
    GateRule(
        GateReason.LOSING_STREAK,
        "memory.losing_streak",
        ge,
        "losing_streak",
        "losing_streak_multiplier",
    ),
    GateRule(GateReason.OPEN_EXPOSURE, "memory.open_elsewhere", gt, factor="exposure_multiplier"),
)
"""The rules about one number each."""


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
    officer: RiskOverlay = NO_ROWS,
) -> Rules:
    """Rule on the evidence and on the spread of the analysts' adjustments (0 to 0.6).

    `officer` is what the risk officer's rows come to, where one sits.
    """
    values = [(row, number(features, row.feature)) for row in ROWS]
    holds = [row for row, value in values if row.holds(value, settings)]
    vetoes = [row.reason for row in holds if not row.factor]
    near = _near_event(features, settings)
    if near:
        vetoes.append(GateReason.SCHEDULED_EVENT)
    factors = {row.reason: getattr(settings, row.factor) for row in holds if row.factor}
    agreed = agreement(spread, settings)
    disagreeing = (GateReason.DISAGREEMENT,) if agreed < 1.0 else ()
    reasons = tuple(str(reason) for reason in (*vetoes, *factors, *disagreeing))
    # They read the same storm: the smallest factor counts, not the product.
    storm = min(factors.pop(GateReason.HIGH_VOLATILITY, 1.0), officer.storm)
    multiplier = math.prod((storm, officer.worn, *factors.values(), agreed))
    ruling = GateRuling(
        round(multiplier, SCORE_DECIMALS),
        bool(vetoes),
        (*reasons, *officer.reasons),
        veto_sides=officer.veto_sides,
    )
    silent = [f"silent:{row.feature}" for row, value in values if value is None]
    status = features.get(CALENDAR)
    words = () if status is None else str(status.value).split("_")
    unsure = (f"events:{word}" for word in words if word in UNSURE)
    return Rules(ruling, (*silent, *unsure, *officer.flags), storm)


def _near_event(features: Mapping[str, Feature], settings: GateSettings) -> bool:
    """Tell whether a scheduled event is near, both ends of the window included.

    An event at the very moment was 0 minutes ago, so that a setting of 0 still vetoes at it. What
    counts is any moment from the close of the bar to the tick: a late tick opens now, not then.
    Where there is no calendar nothing is missing, so nothing is flagged.
    """
    limits = (AHEAD, settings.event_before_minutes), (BEHIND, settings.event_after_minutes)
    return any(
        minutes is not None and minutes <= limit
        for names, limit in limits
        for minutes in map(partial(number, features), names)
    )


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
        "gate.reasons": " ".join(ruling.reasons) or GateReason.NONE.value,
        "gate.analyst_spread": round(spread, SCORE_DECIMALS),
    }
    rows = (Feature(*row, as_of=as_of, decimals=SHOWN_DECIMALS) for row in values.items())
    return {feature.id: feature for feature in rows}


def merged(rule: GateRuling, model: GateRuling | None) -> GateRuling:
    """Return the stricter of two rulings; the model's reason counts only where it added something.

    A model that is stricter without naming a reason is recorded as MODEL_JUDGEMENT.
    """
    if model is None:
        return rule
    veto = rule.veto or model.veto
    stricter = replace(rule, multiplier=min(rule.multiplier, model.multiplier), veto=veto)
    if stricter == rule:
        return rule
    named = [code for code in model.reasons if code != GateReason.NONE]
    reasons = dict.fromkeys((*rule.reasons, *(named or [str(GateReason.MODEL_JUDGEMENT)])))
    return replace(stricter, reasons=tuple(reasons), detail=model.detail)
