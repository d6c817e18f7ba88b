"""A mode brings its own caps of leverage, as it brings its own influence (W2)."""

from __future__ import annotations

from typing import Any

import pytest

from agent_config import LONG_FROM, MODES, OFFICER_CAPS, AgentSettings
from torra.clock import TIMEFRAMES
from torra.config import Profile, validate
from torra.profiles.fields import along_with_mode, changed

SHORT, LONG = 3.0, 1.0


def caps(values: dict[str, Any]) -> dict[str, float]:
    return validate(Profile, values, "a test").risk.leverage_caps


def test_each_timeframe_has_its_cap_where_an_officer_sits() -> None:
    for name, row in MODES.items():
        found = caps({"agents": {"mode": name}})
        assert found == (OFFICER_CAPS if row.officer else {})
    assert {name: LONG if name in LONG_FROM else SHORT for name in TIMEFRAMES} == OFFICER_CAPS
    assert Profile(agents=AgentSettings(mode="swarm")).risk.leverage_caps == OFFICER_CAPS


@pytest.mark.parametrize("own", [{"M15": 1.5}, {"account": 4.0}])
def test_what_a_profile_writes_stands(own: dict[str, float]) -> None:
    assert caps({"agents": {"mode": "swarm"}, "risk": {"leverage_caps": own}}) == own


def test_a_saved_profile_without_a_cap_has_those_of_its_mode() -> None:
    saved = Profile().model_dump(mode="json")
    saved["agents"]["mode"] = "swarm"
    assert saved["risk"]["leverage_caps"] == {} and caps(saved) == OFFICER_CAPS


def test_from_mode_to_mode_a_profile_has_what_each_brings() -> None:
    whole = validate(Profile, {"agents": {"mode": "swarm"}}, "a test").model_dump(mode="json")
    for mode in ("firm", "swarm", "firm"):
        whole = along_with_mode(whole, changed(whole, {("agents", "mode"): mode}))
        found = validate(Profile, whole, "a test")
        usual = validate(Profile, {"agents": {"mode": mode}}, "a test")
        assert found.agents.quorum == usual.agents.quorum, mode
        assert found.agents.influence == "earned" and found.risk.leverage_caps == OFFICER_CAPS


def test_the_caps_of_a_mode_are_not_written_and_give_way_to_another_mode() -> None:
    swarm = validate(Profile, {"agents": {"mode": "swarm"}, "risk": {"capital": 5_000.0}}, "a test")
    assert swarm.model_dump(exclude_unset=True) == {
        "agents": {"mode": "swarm"}, "risk": {"capital": 5_000.0}
    }  # fmt: skip
    assert swarm.with_agents(mode="full").risk.leverage_caps == {}
    assert Profile().with_agents(mode="swarm").risk.leverage_caps == OFFICER_CAPS


def test_a_profile_that_is_switched_to_a_mode_gets_its_caps_unless_it_has_its_own() -> None:
    before = Profile().model_dump(mode="json")
    after = along_with_mode(before, changed(before, {("agents", "mode"): "swarm"}))
    assert after["risk"]["leverage_caps"] == OFFICER_CAPS
    assert after["agents"]["influence"] == "earned"
    own = changed(before, {("risk", "leverage_caps", "H4"): 2.0})
    kept = along_with_mode(own, changed(own, {("agents", "mode"): "swarm"}))
    assert kept["risk"]["leverage_caps"] == {"H4": 2.0}
    broken = {**before, "risk": "none"}
    assert along_with_mode(broken, changed(broken, {("agents", "mode"): "swarm"}))["risk"] == "none"
