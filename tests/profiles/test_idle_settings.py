"""Settings without effect: the table names exactly those that change nothing of any tick.

Every setting of `agents` and `gate` is tried in every mode, with a vendor and with the rules, by
the ticks of tests/worlds/idle_ticks.py: one that is not named idle has to change them, and all that
are named idle may change nothing, alone or together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest

from agent_config import MODES
from agents.registry import AGENTS
from tests.worlds import idle_ticks
from torra.config import Profile
from torra.profiles.fields import Setting, canonical, changed, flat, settings
from torra.profiles.idle import SECTIONS, idle, set_in_vain, why_idle

BASE: Final[Mapping[str, Any]] = {
    "thresholds": {"buy": 0.02, "sell": 0.95},
    "risk": {"capital": 1e6},
}

OTHER: Final[Mapping[str, Any]] = {
    "gate.max_spread_atr": 1e-6,
    "gate.min_valid_bars": 100_000,
    "gate.max_bar_age": 1e-6,
    "gate.volatility_percentile": 99.0,
    "gate.volatility_multiplier": 0.1,
    "gate.losing_streak": 9,
    "gate.losing_streak_multiplier": 0.1,
    "gate.exposure_multiplier": 0.1,
    "gate.disagreement_scale": 2.0,
    "gate.disagreement_floor": 0.9,
    "gate.event_before_minutes": 60.0,
    "gate.event_after_minutes": 60.0,
    "gate.panic_percentile": 99.0,
    "gate.panic_multiplier": 0.1,
    "gate.crowded_percentile": 99.0,
    "gate.liquidations_percentile": 100.0,
    "gate.liquidations_multiplier": 0.1,
    "gate.exhaustion_multiplier": 0.1,
    "agents.outage_size": 0.1,
    "agents.none_cost": 0.6,
    "agents.debate_rounds": 3,
    "agents.quick_think_model": "another-quick",
    "agents.deep_think_model": "another-deep",
    "agents.chief_think_model": "another-chief",
    "agents.escalation.at": 1.0,
    "agents.fallback_models": ["google:gemini-4-argon"],
    "agents.max_api_cost_per_hour": 0.0001,
    "agents.off_tick_share": 0.5,
    "agents.timeout_seconds": 77.0,
    "agents.pivotal_sample": 1.0,
    "agents.history_lookback": 1,
    "agents.memory.roles": ["technical", "liquidity"],
    "agents.memory.notes": 1,
    "agents.memory.embedder": "a folder",
    "agents.picture_file": "chart.png",
}
"""Another value of each setting that is no choice, one that the ticks' evidence makes matter."""


def others(setting: Setting, profile: Profile) -> list[Any]:
    """Return other values of a setting: all of a choice, else one."""
    name, now = setting.name, flat(canonical(profile)).get(setting.place)
    analysts = sum(AGENTS[one].role.kind == "analyst" for one in profile.agents.desk())
    told = {
        **OTHER,
        "agents.active_agents": list(profile.agents.desk())[1:],
        "agents.quorum": analysts if now != analysts else analysts - 1,
    }
    if name in told:
        return [told[name]]
    if setting.section == "agents.role_models":
        return ["another"]
    if setting.section == "agents.role_caps":
        return [2_000 if name.endswith("prompt_bytes") else 400]
    if setting.kind == "switch":
        return [not now]
    assert setting.kind == "choice", f"{name} is new: give OTHER a value that changes a tick"
    return [one for one in setting.choices if one != now]


def tried(profile: Profile, only: str = "") -> Iterator[tuple[Setting, Profile]]:
    """Yield every setting with the profiles that differ in it alone."""
    values = canonical(profile)
    for setting in settings(values):
        if setting.place[0] in SECTIONS and only in ("", setting.name):
            for value in others(setting, profile):
                new = {setting.place: value}
                yield setting, Profile.model_validate(changed(values, new))


SLOW: Final = pytest.mark.journey
DESKS: Final = [
    pytest.param(mode, provider, marks=() if (mode, provider) == ("swarm", "anthropic") else SLOW)
    for mode in MODES
    for provider in ("anthropic", "rules")
]
"""Every mode with a vendor and with the rules; the daily suite tries one of them."""


@pytest.mark.parametrize(("mode", "provider"), DESKS)
def test_exactly_the_settings_that_change_nothing_are_named(mode: str, provider: str) -> None:
    profile = Profile.model_validate({**BASE, "agents": {"mode": mode, "provider": provider}})
    before, vain = tuple(idle_ticks.came_to(profile)), idle(profile)
    wrong, together = [], canonical(profile)
    for setting, other in tried(profile):
        value = flat(canonical(other)).get(setting.place)
        if setting.name in vain and setting.name in idle(other):
            together = changed(together, {setting.place: value})
        else:
            wrong += faults(setting, other, before)
    assert not wrong, "\n".join(wrong)
    assert vain and not idle_ticks.differ(Profile.model_validate(together), before), [*vain]


WITH_ANOTHER: Final = (
    ("firm", {"agents": {"call_policy": "pivotal"}}, "agents.pivotal_sample"),
    ("firm", {"agents": {"debate_rounds": 2}}, "agents.rebuttal"),
    ("firm", {"agents": {"escalation": {"when": "off"}}}, "agents.chief_think_model"),
    ("firm", {"agents": {"escalation": {"when": "pivotal"}}}, "agents.escalation.at"),
    ("firm", {"agents": {"memory": {"notes": 0}}}, "agents.memory.roles"),
    ("firm", {"agents": {"memory": {"use": "off"}}}, "agents.memory.notes"),
    ("budget", {"agents": {"memory": {"use": "on"}}}, "agents.memory.roles"),
    ("budget", {"agents": {"memory": {"review": "model"}}}, "agents.role_models.reviewer"),
    ("budget", {"events": {"calendar": "events.csv"}}, "gate.event_before_minutes"),
    ("budget", {"agents": {"active_agents": ["technical", "momentum"]}}, "agents.debate_rounds"),
    ("budget", {"agents": {"active_agents": ["technical", "momentum"]}}, "gate.disagreement_floor"),
    ("budget", {"agents": {"active_agents": ["technical", "liquidity"]}}, "agents.standing"),
    ("swarm", {"execution": "off"}, "agents.judge_close"),
    ("swarm", {"agents": {"influence": "shadow"}}, "agents.judge_close"),
)
"""Settings whose effect goes by another setting."""


@pytest.mark.journey
@pytest.mark.parametrize(("mode", "given", "name"), WITH_ANOTHER)
def test_a_setting_may_be_idle_by_another_one(mode: str, given: dict[str, Any], name: str) -> None:
    agents = {"mode": mode, "provider": "anthropic", **given.get("agents", {})}
    profile = Profile.model_validate({**BASE, **given, "agents": agents})
    before = tuple(idle_ticks.came_to(profile))
    wrong = [
        fault for setting, other in tried(profile, name) for fault in faults(setting, other, before)
    ]
    assert not wrong, "\n".join(wrong)


def faults(setting: Setting, other: Profile, before: Sequence[str]) -> list[str]:
    """Return what the table says wrongly of a setting at another value."""
    named = idle(other).get(setting.name, "an effect")
    if idle_ticks.differ(other, before) == (named == "an effect"):
        return []
    value = flat(canonical(other)).get(setting.place)
    return [f"{setting.name} {value!r} has {named}, and that is not so"]


def test_what_a_profile_sets_in_vain_is_named() -> None:
    swarm = {"mode": "swarm", "quorum": 3, "debate_rounds": 2, "judge_hold": "veto"}
    profile = Profile.model_validate({"agents": swarm, "gate": {"panic_multiplier": 0.4}})
    assert set_in_vain(profile) == {
        "agents.debate_rounds": "agents.debate_rounds has no effect in mode swarm, without bull "
        "and bear.",
        "agents.quorum": "agents.quorum has no effect in mode swarm, without a debate.",
    }
    for mode in MODES:
        assert set_in_vain(Profile.model_validate({"agents": {"mode": mode}})) == {}


@pytest.mark.parametrize("mode", MODES)
def test_one_setting_is_looked_up_without_the_others(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = Profile.model_validate({"agents": {"mode": mode, "influence": "shadow"}})
    whole = idle(profile)
    # `agents.escalation.at` stands on two lines of the table, and the first that holds counts.
    names = ("agents.judge_close", "agents.escalation.at", "agents.mode", "gate.panic_percentile")
    monkeypatch.setattr("torra.profiles.idle.settings", lambda _: pytest.fail("the whole table"))
    assert [why_idle(profile, name) for name in names] == [whole.get(name, "") for name in names]
