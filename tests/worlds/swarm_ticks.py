"""Ticks of a swarm whose reader, experts and judge say what a test wants, and the pages of a desk.

`lived` runs one close of the sample on a desk of mode `swarm` whose thresholds nearly everything
reaches, and returns its pages. Liquidity leans up and geometry down, so that they conflict; the
judge takes the long side with a chance of 0.48, unless a script says otherwise. Microstructure and
macro have nothing to read in the sample and abstain.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from agents.contracts import VECTORS, Request
from agents.features import sides
from tests.doubles import scripted
from tests.worlds import desk_pages, desks

SWARM: Final[Mapping[str, Any]] = {
    "execution": "approve",
    "thresholds": {"buy": 0.05, "sell": 0.95},
    "agents": {"mode": "swarm", "influence": "full", "call_policy": "always"},
}
INSTANCE, TIMEFRAME, BAR = "BTCUSD", "M15", "2021-11-10T10:00:00Z"
"""The tick of the first close."""

TICK: Final = f"/symbol/{INSTANCE}/{TIMEFRAME}/{BAR}"
CLAIM: Final = "Long: buyers hold the 20-bar mean, and 1 of 2 experts leans up."
COUNTER: Final = "Resistance is 0.5 ATR above, where sellers stood 2 times."
OVER: Final = "The squeeze that carried the long is over."
READ: Final = "ADX at 20 shows no trend yet."
CHANCE: Final = 0.48
LEANS: Final[Mapping[str, float]] = {"liquidity": 0.2, "geometry": -0.15}


def read(request: Request, **changes: Any) -> dict[str, Any]:
    """A reader's reply, of the code's own regime."""
    told = scripted.report(request)
    kept = ("symbol", "confidence", "evidence", "points_for", "points_against")
    return {
        **{name: told[name] for name in kept},
        "claim": READ,
        "regime": request.features["market.regime"].value,
        "budget_pct": 100.0,
        "first": "liquidity",
        "bias": "NEUTRAL",
    } | changes


def found(request: Request, value: float | None = None, **changes: Any) -> dict[str, Any]:
    """An expert's reply: a finding that leans as the world has it, or to `value`."""
    name = request.role.id
    lean = LEANS.get(name, 0.0) if value is None else value
    side = (lean > 0.0) - (lean < 0.0)
    told = {
        **scripted.report(request),
        "claim": f"The {name} reading is {abs(lean):.2f} {'up' if side > 0 else 'down'}.",
        "points_for": _points(request, side),
        "points_against": _points(request, -side)[:1],
        "adjustments": {v: lean if v in request.role.focus else None for v in VECTORS},
        "anomaly": "none",
        "bias": {1: "UP", -1: "DOWN"}.get(side, "NEUTRAL"),
        "horizon": "bars_16",
        "pattern": "none",
        "levels": [],
    } | changes
    return {name: told[name] for name in request.schema["properties"]}


def decided(request: Request, **changes: Any) -> dict[str, Any]:
    """A judge's reply: the long side, with a counter and a close that would prove it."""
    close = float(request.features["technical.close"].value or 0.0)
    ends = {"close": "below", "level": round(0.995 * close, 2), "what": "the last low", "bars": 12}
    told = {
        **scripted.report(request),
        "claim": CLAIM,
        "points_for": _points(request, 1),
        "points_against": _points(request, -1)[:1],
        "adjustments": dict.fromkeys(VECTORS, 0.1),
        "side": "LONG",
        "counter": COUNTER,
        "falsifiers": [ends],
        "win_share": CHANCE,
        "close": False,
        "horizon": "bars_16",
    } | changes
    return {name: told[name] for name in request.schema["properties"]}


def lived(
    home: Path,
    script: Mapping[str, Any] | None = None,
    *,
    steps: int = 1,
    profile: Mapping[str, Any] | None = None,
) -> desk_pages.Pages:
    """Return the pages of a desk that lived through some closes."""
    known = {"regime_reader": _reads, "judge": _decides, **dict.fromkeys(LEANS, _finds)}
    voice = scripted.Scripted(known | dict(script or {}))
    return desk_pages.open_pages(home, profile=dict(profile or SWARM), steps=steps, provider=voice)


def asked_to_close(home: Path) -> desk_pages.Pages:
    """Return the pages of a desk that holds a long whose judge asks for its close."""
    closing = False

    def judge(request: Request) -> dict[str, Any]:
        changes = {"side": "SHORT", "close": True, "claim": OVER} if closing else {}
        return decided(request, **changes)

    pages = lived(home, {"judge": judge}, steps=3, profile=dict(SWARM) | {"execution": "auto"})
    closing = True
    desks.step(pages.desk)
    return pages


SCRIPTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "decided": {},
    "disputed": {
        "regime_reader": lambda request: read(request, regime="volatile", budget_pct=30.0)
    },
    "vetoed": {"judge": lambda request: decided(request, win_share=0.2)},
    "held": {"judge": lambda request: decided(request, side="NONE", falsifiers=[], counter="")},
    "judgeless": {"judge": "no JSON"},
    "thin": {"geometry": "no JSON"},
    "blind": {"regime_reader": "no JSON"},
    "agreed": {"geometry": lambda request: found(request, 0.1)},
    "closing": {"judge": lambda request: decided(request, side="SHORT", close=True)},
}
"""What differs from the world, by case."""


@cache
def record(case: str = "decided") -> dict[str, Any]:
    """Return the stored record of the first tick in a case."""
    with tempfile.TemporaryDirectory() as folder:
        pages = lived(Path(folder), SCRIPTS[case])
        told = pages.json(f"/api/v1{TICK}")
        pages.desk.close()
    return dict(told)


def _reads(request: Request) -> dict[str, Any]:
    return read(request)


def _finds(request: Request) -> dict[str, Any]:
    return found(request)


def _decides(request: Request) -> dict[str, Any]:
    return decided(request)


def _points(request: Request, side: int) -> list[dict[str, Any]]:
    """Points on what an expert was shown that may stand on a side."""
    fit = [name for name in request.features if side in sides(name, request.features)]
    own = sorted(fit, key=lambda name: (not name.startswith(f"{request.role.id}."), name))
    return [
        {
            "id": name,
            "value": request.features[name].value,
            "says": f"Fact {place} reads {request.features[name].value}",
            "why": "so it leans",
        }
        for place, name in enumerate(own[:2], 1)
    ]
