"""Who reads what from beside the chart: seven asset classes, with sources and without, by role.

And turned round, the evidence turns every reading exactly.
"""

from __future__ import annotations

import pytest

from agents.contracts import VECTORS, DebateContext, Feature
from agents.evidence import missing
from agents.registry import AGENTS
from tests.doubles.scripted import context
from tests.evidence.test_outside_readings import AS_OF, SUBJECTS, nothing, whole
from torra.evidence import outside_readings as readings_then
from torra.evidence.outside_readings import OutsideView
from torra.outside.sources import trouble_of
from torra.providers.rules.readings import TrendStrength, readings
from torra.providers.rules.specialists import TABLES

READS = {
    "fundamental": {"gold", "index", "fx", "oil"},
    "sentiment": {"gold", "index", "fx", "oil", "stock", "crypto"},
}
"""Classes of which a role has something to read, where the sources bring it."""

SOURCES = {
    "none": (),
    "file": ("file",),
    "all": ("fred", "cftc", "file"),
}


def view(asset: str, there: bool, sources: tuple[str, ...]) -> OutsideView:
    subject = SUBJECTS[asset]
    then = whole(subject) if there and sources else nothing
    return readings_then.read(subject, then, AS_OF, trouble=trouble_of(sources))


def seen(found: OutsideView, asset: str) -> DebateContext:
    statuses = {f"source.{block}": word for block, word in found.statuses.items()}
    return context(features={**found.numbers, **statuses}, asset=asset)


@pytest.mark.parametrize("asset", SUBJECTS)
@pytest.mark.parametrize("named", SOURCES)
@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("role", READS)
def test_a_seat_abstains_where_it_has_nothing(
    asset: str, named: str, there: bool, role: str
) -> None:
    found = view(asset, there, SOURCES[named])
    why = missing(AGENTS[role].role, seen(found, asset))
    reads = asset in READS[role] and there and named != "none"
    assert (why == "") == reads
    if not reads and named == "none":
        assert why.endswith("off") or "off" in why
    if not reads and named != "none" and not there:
        assert "empty" in why


@pytest.mark.parametrize("asset", sorted({*READS["sentiment"], *READS["fundamental"]} - {"stock"}))
@pytest.mark.parametrize("trend", [0.0, 0.4, 1.0])
def test_evidence_turned_round_turns_each_reading_exactly(asset: str, trend: float) -> None:
    found = view(asset, there=True, sources=SOURCES["all"]).numbers
    held = {
        **found,
        "macro.real_yield_fit_r2": 0.8,
        "macro.real_yield_fit_slope": -0.1,
    }
    turned = {name: _turned(name, value) for name, value in held.items()}
    now, said = TrendStrength(trend, None), 0
    for role in ("fundamental", "sentiment"):
        one, other = (
            readings(
                {name: Feature(name, value) for name, value in numbers.items()},
                now, VECTORS, TABLES[role],
            )
            for numbers in (held, turned)
        )  # fmt: skip
        assert one.keys() == other.keys()
        for vector, heard in one.items():
            for first, second in zip(heard, other[vector], strict=True):
                assert first.reads == second.reads
                assert first.lean == pytest.approx(-second.lean, abs=1e-12)
                assert first.weight == second.weight
                said += 1
    assert said >= len(VECTORS)


def _turned(name: str, value: float | str | None) -> float | str | None:
    if not isinstance(value, float) or "_fit_" in name:
        return value
    if name.endswith(("rank", "fear_greed")):
        return 100.0 - value
    return -value if "change" in name else value
