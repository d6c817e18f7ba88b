"""What one tick saw and thought, and its journal: every number of it as plain JSON.

The record is what the pages and `torra tick --json` show and what a later replay is compared with.
It is built inside the tick's transaction from values that already exist; nothing is computed here
but the hash of the bars.
"""

from __future__ import annotations

import hashlib
import platform
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import pandas as pd

import technical_calculator
from agent_framework import Deliberation
from agents.contracts import VECTORS
from instance_database import Saved
from scoring_rubric import RUBRIC_VERSION
from torra.clock import iso
from torra.config import Instance, Profile
from torra.feature_bundle import Bundle
from torra.late_answers import LateAnswers
from torra.risk_engine import Action

RECORDED_PACKAGES: Final = ("torra", "numpy", "pandas", "pandas-ta-classic")
"""Libraries whose versions can change a score and are therefore stored with it."""

CALL_TEXTS: Final = ("system", "user", "reply")
"""Fields of a call that the `calls` table keeps."""


@dataclass(frozen=True, slots=True)
class Sight:
    """Everything that the tick saw: bars, L1, evidence and memory.

    `now` is when, on the desk's clock; `before` how the instance stood (JournalStore.standing) and
    the `path` of bars that its paper bridge then lived through.
    """

    instance: Instance
    timeframe: str
    bar_time: datetime
    as_of: datetime
    now: datetime
    before: Mapping[str, Any]
    bars: pd.DataFrame
    row: Mapping[str, float]
    ath: float
    ath_score: float
    memory: Mapping[str, Any]
    bundle: Bundle
    revision: int | None = None

    @property
    def l1(self) -> Mapping[str, float]:
        """The four deterministic scores."""
        return self.bundle.scores

    @property
    def close(self) -> float:
        """The close of the bar: the current price."""
        return float(self.row["close"])

    @property
    def atr(self) -> float:
        """ATR(14) of the deciding timeframe."""
        return float(self.row["atr14"])


@dataclass(frozen=True, slots=True)
class Thought:
    """The debate's record, the two blends that the brain needs, the chart that was shown.

    `late` watches the calls that nobody waits for any more.
    """

    deliberation: Deliberation
    gated: Mapping[str, Any]
    ungated: Mapping[str, Any]
    picture: bytes | None = None
    late: LateAnswers | None = None


def build(
    *,
    sight: Sight,
    thought: Thought,
    saved: Saved,
    action: Action,
    signals: Sequence[Mapping[str, Any]],
    profile: Profile,
    provider: str,
    desk: Mapping[str, Any],
    elapsed_ms: float,
) -> dict[str, Any]:
    """Return the record of a finished tick.

    `desk` is what the whole desk meant to the decision, and when that was: trading state, exposure.
    """
    return {
        **_identity(sight),
        **_scores(sight, thought),
        **_brain(saved, profile),
        **_gate(thought),
        "action": action.name,
        "reason": action.reason,
        "denied": [str(reason) for reason in action.denied],
        "signal": _opening(signals),
        "signals": [dict(signal) for signal in signals],
        "source_type": str(thought.deliberation.source_type),
        "calls": len(thought.deliberation.calls),
        "cost_usd": thought.deliberation.cost_usd,
        "elapsed_ms": round(elapsed_ms, 3),
        "provider": provider,
        "picture": hashlib.sha256(thought.picture).hexdigest() if thought.picture else None,
        "profile": profile.digest(),
        "execution": profile.execution,
        "now": iso(sight.now),
        "before": dict(sight.before),
        "desk": dict(desk),
        "versions": versions(),
        "bars": describe(sight.bars, sight.revision),
        "features": [
            {"id": item.id, "value": item.value, "unit": item.unit}
            for item in sight.bundle.features.values()
        ],
        "memory": dict(sight.memory),
        "skipped": None,
    }


def spoken(deliberation: Deliberation) -> dict[str, Any]:
    """Return a deliberation as the sentiment row keeps it: the texts of its calls stand apart."""
    told = deliberation.as_json()
    calls = [
        {name: value for name, value in call.items() if name not in CALL_TEXTS}
        for call in told["calls"]
    ]
    return {**told, "calls": calls}


def _identity(sight: Sight) -> dict[str, Any]:
    return {
        "instance": sight.instance.id,
        "symbol": sight.instance.symbol,
        "timeframe": sight.timeframe,
        "bar_time": iso(sight.bar_time),
        "as_of": iso(sight.as_of),
        "close": sight.close,
        "atr": sight.atr,
        "ath": sight.ath_score,
        "ath_price": sight.ath,
    }


def _scores(sight: Sight, thought: Thought) -> dict[str, Any]:
    explained = technical_calculator.explain(sight.row)
    gated = {vector: thought.gated[vector]["score"] for vector in VECTORS}
    ungated = {vector: thought.ungated[vector]["score"] for vector in VECTORS}
    return {
        "l1": dict(sight.l1),
        "notes": dict(sight.bundle.notes),
        "components": {
            vector: [
                {"name": part.name, "value": part.value, "weight": part.weight}
                for part in explained[vector].components
            ]
            for vector in VECTORS
        },
        "agents": {vector: thought.deliberation.scores[vector]["score"] for vector in VECTORS},
        "scores": dict(thought.gated),
        "ungated": ungated,
        "low": {vector: min(gated[vector], ungated[vector]) for vector in VECTORS},
        "high": {vector: max(gated[vector], ungated[vector]) for vector in VECTORS},
        "adjustments": dict(thought.deliberation.adjustments),
    }


def _brain(saved: Saved, profile: Profile) -> dict[str, Any]:
    return {
        "composite": saved.composite,
        "consensus": saved.consensus,
        "verdict": saved.verdict,
        "l1_composite": saved.l1_composite,
        "l1_consensus": saved.l1_consensus,
        "l1_verdict": saved.l1_verdict,
        "low_consensus": saved.low_consensus,
        "high_consensus": saved.high_consensus,
        "composites": dict(saved.composites),
        "weights": profile.sentiment_weights.model_dump(),
        "thresholds": profile.thresholds.model_dump(),
    }


def _gate(thought: Thought) -> dict[str, Any]:
    ruling, rule = thought.deliberation.ruling, thought.deliberation.rule_ruling
    return {
        "gate": {
            "multiplier": ruling.multiplier,
            "veto": ruling.veto,
            "reasons": list(ruling.reasons),
            "rule": {
                "multiplier": rule.multiplier,
                "veto": rule.veto,
                "reasons": list(rule.reasons),
            },
        }
    }


def _opening(signals: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    for signal in sorted(signals, key=lambda item: item["kind"] != "open"):
        return dict(signal)
    return None


def describe(bars: pd.DataFrame, revision: int | None = None) -> dict[str, Any]:
    """Name a range of bars: first and last time, number, revision and a hash of every value."""
    times = pd.DatetimeIndex(bars.index).as_unit("us")
    digest = hashlib.sha256(times.asi8.tobytes())
    digest.update(bars.to_numpy(dtype=float).tobytes())
    return {
        "from": iso(bars.index[0].to_pydatetime()),
        "to": iso(bars.index[-1].to_pydatetime()),
        "count": len(bars),
        "revision": revision,
        "hash": digest.hexdigest()[:16],
    }


@cache
def versions() -> dict[str, str]:
    """Return the versions of everything that can change a score."""
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    found["rubric"] = RUBRIC_VERSION
    for package in RECORDED_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
