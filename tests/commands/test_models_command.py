"""`torra models`: what can be asked and what it costs, and one test question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from agent_config import MODES, VENDORS
from tests.doubles.vendor_line import environment
from tests.doubles.vendor_server import Reply, Status, VendorServer
from tests.worlds.homes import profile_file
from torra.commands.command_line import main
from torra.config import Profile, load_desk
from torra.desk.models.expected_cost import CostBasis, figures, sentence
from torra.desk.models.report import spending_line
from torra.providers.prices import PriceList


@pytest.fixture(scope="module")
def server() -> Iterator[VendorServer]:
    with VendorServer() as found:
        yield found


def call(home: Path, *words: str, **env: str) -> Result:
    return CliRunner().invoke(main, ["--home", str(home), "models", *words], env=env)


def test_what_every_mode_is_expected_to_cost_is_told(tmp_path: Path) -> None:
    told = json.loads(call(tmp_path, "--json").output)
    rows = {(row["mode"], row["vendor"]): row for row in told["expected"]}
    assert rows.keys() == {(mode, vendor) for mode in MODES for vendor in VENDORS}
    desk = load_desk(tmp_path).instances
    estimate = CostBasis.of(None, desk, PriceList(), {})
    firm = Profile().with_agents(mode="firm", provider="google")
    found = estimate.expected(firm)
    assert found == {name: rows["firm", "google"][name] for name in found}
    lines = [line.split() for line in call(tmp_path).output.splitlines()]
    assert ["firm", "google", *figures(found)] in lines
    profile_file(tmp_path, firm)
    own = env_of_a_local_server()
    text = call(tmp_path, **own).output
    users = [item for item in desk if item.profile == "default"]
    of_users = sentence(CostBasis.of(None, users, PriceList(), {}).expected(firm))
    assert f"profile default: {of_users}; 0.0000 USD in 24 hours" in text
    none = ["swarm", "openai_compatible", "0.0000", "0.00", "0.00"]
    assert none in [line.split() for line in text.splitlines()], "a server of one's own"
    strange = Profile().with_agents(active_agents=["technical", "nobody"], provider="google")
    profile_file(tmp_path, strange)
    text = call(tmp_path).output
    (line,) = [line for line in text.splitlines() if line.startswith("profile default:")]
    assert "no cost can be estimated" in line and "costs nothing" not in line


def test_a_profile_that_no_instance_has_is_told_no_day(tmp_path: Path) -> None:
    row = told_of(tmp_path, mode="firm", provider="google")
    assert spending_line(row).count("a day of 120 closes") == 2
    alone: Any = {**row, "closes": 0, "expected": {**row["expected"], "closes": 0}}
    assert "a day of" not in spending_line(alone) and "a tick costs" in spending_line(alone)


def told_of(home: Path, **agents: Any) -> Any:
    """Return what the report says of the money of the profile `default`."""
    profile_file(home, Profile().with_agents(**agents))
    row, _ = json.loads(call(home, "--json").output)["profiles"]
    return row


def env_of_a_local_server() -> dict[str, str]:
    return {"TORRA_OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}


@pytest.mark.journey
def test_a_test_prints_what_came_of_it(tmp_path: Path, server: VendorServer) -> None:
    """The newest test of a vendor is on record, and told."""
    for reply in (Reply(text='{"answer": "ready"}'), Status(401, "bad_key")):
        server.play({"*": reply})
        done = call(tmp_path, "--test", "google", **environment(server))
    assert "the key was refused. Remedy: set" in done.output
    newest = json.loads(call(tmp_path, "--json", **environment(server)).output)
    assert newest["vendors"][1]["tested"]["error"] == "the key was refused"
