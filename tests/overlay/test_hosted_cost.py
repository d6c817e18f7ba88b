"""Calls of a host are booked before they are made, under the ceiling that a desk shares."""

from __future__ import annotations

import dataclasses
import json
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tests.conftest import Scale
from tests.doubles import vendor_line
from tests.doubles.vendor_server import ANTHROPIC, VendorServer
from tests.overlay.test_beside_a_desk import with_desk_file
from tests.worlds import desks, scorers
from torra.clock import System
from torra.config import Instance, Profile, validate
from torra.desk.models.access import open_models
from torra.providers.rules.provider import RulesProvider
from torra.tick.degradation import tick_worst_case


def priced(folder: Path, ceiling: float) -> None:
    """Write a profile of a vendor's models with a ceiling, in USD an hour."""
    agents = {"provider": ANTHROPIC, "max_api_cost_per_hour": ceiling, "second_look": "never"}
    scorers.profile(folder, "paid", agents={**agents, "timeout_seconds": 30.0})


@pytest.mark.parametrize("ticks", [1.05, pytest.param(1.15, marks=pytest.mark.nightly)])
def test_a_scorer_and_a_running_desk_keep_one_ceiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ticks: float, scaled: Scale
) -> None:
    """Both ask in turn; what one has spent the other does not have."""
    turns = scaled(12, least=5)
    settings = vendor_line.agents(ANTHROPIC, second_look="never")
    ceiling = ticks * tick_worst_case(vendor_line.prices(), settings, lambda _: False)
    priced(tmp_path, ceiling)
    home = tmp_path / "home"
    with_desk_file(home)
    profile = validate(Profile, json.loads((home / "profiles" / "paid.json").read_text()), "paid")
    with VendorServer() as server:
        for name, value in vendor_line.environment(server).items():
            monkeypatch.setenv(name, value)
        overlay = scorers.overlay(tmp_path, profile="paid", name="one")
        bitcoin = Instance(symbol="BTCUSD", profile="paid")
        desk = desks.open_desk(home, (bitcoin,), profile=profile, provider=RulesProvider())
        debated = 0
        with closing(desk.database), closing(open_models(home, desk.database)) as models:
            desk.roster.setups = {
                name: dataclasses.replace(
                    setup,
                    provider=models.provider(profile.agents),
                    account=models.account(profile.agents, "paid"),
                )
                for name, setup in desk.setups.items()
            }
            desks.open_for_work(desk)
            now = System().real_now()
            for size in range(300, 300 + turns):
                asked = scorers.asked(overlay, scorers.bars(size), scores=scorers.L1)
                debated += asked.debated
                desks.step(desk)
                spent = desk.database.spent("paid", now - timedelta(hours=1))
                assert spent <= ceiling + 1e-12
        overlay.close()
    with closing(desks.open_database(home)) as database:
        paid = database.connection().execute("SELECT DISTINCT torra_key FROM ledger").fetchall()
    of_hosts = sum(key.startswith("host:") for (key,) in paid)
    assert of_hosts == debated > 0 and len(paid) > of_hosts, "both were heard"
    assert len(paid) < 2 * turns, "the ceiling was never met"
