"""Who reads what from beside the chart: seven asset classes, with sources and without, by role.

And turned round, the evidence turns every reading exactly.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from agents.contracts import DebateContext, Feature
from agents.evidence import missing
from agents.features import values_of
from agents.registry import AGENTS
from scoring_rubric import shown_features
from tests.doubles.scripted import context
from tests.evidence.test_outside_readings import AS_OF, SUBJECTS, nothing, whole
from tests.outside.test_nothing_later import Rows
from tests.worlds import company_reports
from torra.evidence import outside_readings as readings_then
from torra.evidence.outside_readings import OutsideView
from torra.outside.shelf import OutsideShelf, trouble_of
from torra.providers.rules.engine import TABLES, read

DAY = timedelta(days=1)
READS = {
    "fundamental": {"gold", "index", "fx", "oil", "stock"},
    "sentiment": {"gold", "index", "fx", "oil", "stock", "crypto"},
}
"""Classes of which a role has something to read, where the sources bring it."""

SOURCES = {
    "none": (),
    "file": ("file",),
    "all": ("fred", "cftc", "file"),
}


FACTS = company_reports.stored(
    row for row in company_reports.reports(company_reports.grown(3)) if row.known_at <= AS_OF
)


def view(asset: str, there: bool, sources: tuple[str, ...]) -> OutsideView:
    """Return what a class knows; a stock has the reports of its company beside the series."""
    subject = SUBJECTS[asset]
    then = whole(subject) if there and sources else nothing
    found = readings_then.read(subject, then, AS_OF, trouble=trouble_of(sources))
    if asset != "stock":
        return found
    shelf = OutsideShelf(Rows(FACTS if there and sources else []), live=False)
    share = replace(subject, ticker="ACME")
    prices = [(AS_OF.date() - n * DAY, 100.0 + n % 9) for n in range(1500, 0, -1)]
    company = shelf.latest(share, AS_OF, closes=lambda _span: prices, trouble=trouble_of(sources))
    numbers = {**found.numbers, **company.numbers}
    # The shelf knows no series here: those that were read stay.
    numbers |= {name: value for name, value in found.numbers.items() if value is not None}
    statuses = {**found.statuses, "company": company.statuses["company"]}
    return replace(found, numbers=numbers, statuses=statuses)


def seen(found: OutsideView, asset: str) -> DebateContext:
    statuses = {f"source.{block}": word for block, word in found.statuses.items()}
    return context(features={**found.numbers, **statuses}, asset=asset)


@pytest.mark.by_day(8)
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


@pytest.mark.parametrize("asset", sorted({*READS["sentiment"], *READS["fundamental"]}))
@pytest.mark.parametrize("trend", [0.0, 0.4, 1.0])
def test_evidence_turned_round_turns_each_reading_exactly(asset: str, trend: float) -> None:
    found = view(asset, there=True, sources=SOURCES["all"]).numbers
    held = {
        **found,
        "macro.real_yield_fit_r2": 0.8,
        "macro.real_yield_fit_slope": -0.1,
    }
    turned = {name: _turned(name, value) for name, value in held.items()}
    said = 0
    for role in ("fundamental", "sentiment"):
        signals, mirrored = (
            read(
                TABLES[role][""],
                values_of({name: Feature(name, value) for name, value in numbers.items()})[0],
                trend,
            )
            for numbers in (held, turned)
        )
        for first, second in zip(signals, mirrored, strict=True):
            assert first.reads == second.reads
            assert first.lean == pytest.approx(-second.lean, abs=1e-12)
            assert first.weight == second.weight
            said += 1
    assert said


def _turned(name: str, value: float | str | None) -> float | str | None:
    if not isinstance(value, float) or "_fit_" in name:
        return value
    if name.endswith(("rank", "fear_greed")):
        return 100.0 - value
    if name == "company.f_score":
        return 9.0 - value
    if name.startswith("company."):
        return -value
    return -value if "change" in name else value


@pytest.mark.parametrize("role", ["news", "sentiment"])
def test_news_and_sentiment_are_shown_macro_numbers_at_a_firm_alone(role: str) -> None:
    given = seen(view("gold", there=True, sources=SOURCES["all"]), "gold")
    shown = {
        ahead: {
            name
            for name in shown_features(replace(given, ahead=ahead), AGENTS[role].role)
            if name.startswith("macro.")
        }
        for ahead in (True, False)
    }
    assert "macro.dollar" in shown[True] and shown[False] <= {"macro.vix_rank"}
