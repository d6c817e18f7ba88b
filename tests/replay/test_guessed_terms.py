"""A file of a symbol of which nobody told is replayed on guessed terms, and the result says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ROOT
from torra.replay import caveats, reporting
from torra.replay.replaying import GUESSED_SPREAD, ReplayPlan
from torra.replay.reporting import ReplayRequest

BARS = ROOT / "sample_data" / "EURUSD_H1.csv"


def planned(home: Path, symbol: str, costs: str = "") -> ReplayPlan:
    return reporting.planned(home, symbol, ReplayRequest(bars=[str(BARS)], costs=costs))


def test_terms_are_read_off_the_bars_and_told_with_the_result(tmp_path: Path) -> None:
    plan = planned(tmp_path, "MYCOIN")
    spec = plan.profile.symbol("MYCOIN")
    bars = plan.history.frames["H1"]
    usual = float((bars["high"] - bars["low"]).median())
    assert (spec.digits, spec.tick_size, spec.contract_size) == (5, 1e-5, 1.0)
    assert spec.spread == pytest.approx(GUESSED_SPREAD * usual, abs=1e-5)
    said = " ".join(caveats.caveats(plan, ()))
    assert "Nobody told how MYCOIN is traded, so it is guessed: 5 decimals, one unit a lot" in said


def test_a_known_symbol_keeps_its_terms_and_costs_that_are_given_count(tmp_path: Path) -> None:
    plan = planned(tmp_path, "EURUSD")
    assert not plan.guessed and plan.profile.symbol("EURUSD").contract_size == 100_000
    assert "Nobody told" not in " ".join(caveats.caveats(plan, ()))
    given = planned(tmp_path, "MYCOIN", costs="0.001,0,0")
    assert given.guessed and given.profile.symbol("MYCOIN").spread == 0.001
