"""Which settings of `agents` and `gate` have no effect, by the desk or by another setting.

IDLE is the one table: names of settings, with * for any part, how a person is told when they change
nothing of a tick, and the condition. A setting without a row always changes something. A test runs
ticks with every setting in every mode and holds the table to what they come to, both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import Final

from agent_config import EXPERTS, QUORUM_FROM, VENDORS, AgentSettings, route
from agents.registry import AGENTS, REVIEWER, SCORER
from torra.config import Profile
from torra.profiles.fields import canonical, changed, settings
from torra.profiles.guard import compare

Holds = Callable[[Profile, str], bool]
"""Tells whether a setting has no effect in a profile, by its name."""

SECTIONS: Final = ("agents", "gate")
"""Sections whose settings the table covers."""

CHOICES: Final = (
    AgentSettings.rebuts,
    AgentSettings.most_rounds,
    AgentSettings.looks_again,
    AgentSettings.remembers,
)
"""What settings with a choice `auto` come to."""


def _fewer(least: int, *sits: str) -> Holds:
    """Return whether fewer agents of these kinds, or of these names, sit at the desk."""

    def holds(profile: Profile, _: str) -> bool:
        seats = [AGENTS[name].role for name in profile.agents.desk() if name in AGENTS]
        return sum(seat.kind in sits or seat.id in sits for seat in seats) < least

    return holds


def _at(place: str, *values: str) -> tuple[str, Holds]:
    """Return that another setting has one of these values: the words for it, and whether."""
    words = " or ".join(value or "empty" for value in values)
    return f"while {place} is {words}", lambda profile, _: str(attrgetter(place)(profile)) in values


def _not(ask: Callable[[AgentSettings], object]) -> Holds:
    return lambda profile, _: not ask(profile.agents)


def _as_auto(profile: Profile, name: str) -> bool:
    """Tell whether a choice that is not auto comes to what auto does."""
    auto = changed(canonical(profile), {tuple(name.split(".")): "auto"})
    both = profile.agents, Profile.model_validate(auto).agents
    mine, autos = ([ask(one) for ask in CHOICES] for one in both)
    return both[0] != both[1] and mine == autos


def _by_rules(profile: Profile, name: str) -> bool:
    # The scorer's prompt is written for them too.
    return SCORER.id not in name and profile.agents.vendors() == ("rules",)


def _absent(profile: Profile, name: str) -> bool:
    agent = name.split(".")[2]
    return agent in AGENTS and agent not in profile.agents.desk()


def _debates(agents: AgentSettings) -> bool:
    return any(stage.debates for stage in agents.row().stages)


def _reviewed(agents: AgentSettings) -> bool:
    return route(agents.model(REVIEWER.id, REVIEWER.tier), agents.provider)[0] in VENDORS


def _spared(agents: AgentSettings) -> bool:
    return any(vendor in VENDORS for vendor, _ in agents.first_routes())


IDLE: Final[tuple[tuple[str, str, Holds], ...]] = (
    (
        "agents.debate_rounds agents.rebuttal",
        "{where}, without bull and bear",
        _fewer(1, "researcher"),
    ),
    ("agents.rebuttal", *_at("agents.debate_rounds", "2", "3")),
    (
        "agents.rebuttal agents.second_look agents.memory.use",
        "while auto comes to the same",
        _as_auto,
    ),
    ("agents.quorum", "{where}, without a debate", _not(_debates)),
    (
        "agents.quorum",
        "{where}, with fewer than four analysts",
        _fewer(QUORUM_FROM, "analyst"),
    ),
    (
        "agents.none_cost",
        "{where}, without a manager or a judge",
        _fewer(1, "arbiter", "judge"),
    ),
    (
        "agents.second_look agents.role_caps.*.prompt_bytes",
        "while the rules alone answer",
        _by_rules,
    ),
    (
        "agents.escalation.* agents.role_models.trader agents.role_caps.trader.*",
        "{where}, without a trader",
        _not(AgentSettings.consulted),
    ),
    ("agents.escalation.at", *_at("agents.escalation.when", "pivotal", "off")),
    (
        "agents.chief_think_model",
        "{where}, without an escalated trader",
        _not(lambda agents: "chief" in agents.tiers()),
    ),
    (
        "agents.role_models.* agents.role_caps.*",
        "while that agent has no seat {where}",
        _absent,
    ),
    (
        "agents.role_models.reviewer agents.role_caps.reviewer.*",
        *_at("agents.memory.review", "rules"),
    ),
    ("agents.memory.review", "while no vendor answers for the reviewer", _not(_reviewed)),
    ("agents.fallback_models", "while no vendor is asked first", _not(_spared)),
    (
        "agents.max_api_cost_per_hour agents.off_tick_share",
        "while no model has to be paid",
        _not(AgentSettings.paid),
    ),
    ("agents.pivotal_sample", *_at("agents.call_policy", "always")),
    (
        "agents.memory.roles agents.memory.notes agents.memory.embedder",
        "{where}, while agents.memory.use is not on",
        _not(AgentSettings.remembers),
    ),
    ("agents.memory.roles", *_at("agents.memory.notes", "0")),
    ("agents.judge_*", "{where}, without a judge", _fewer(1, "judge")),
    ("agents.judge_close", *_at("execution", "off")),
    ("agents.judge_close", *_at("agents.influence", "shadow")),
    ("agents.trust agents.standing", "{where}, without experts", _fewer(1, *EXPERTS)),
    ("agents.picture_file", *_at("agents.picture", "off", "rendered")),
    ("gate.disagreement_*", "{where}, without two analysts", _fewer(2, "analyst")),
    ("gate.event_*", *_at("events.calendar", "")),
    (
        "gate.panic_* gate.crowded_* gate.liquidations_* gate.exhaustion_*",
        "{where}, without a risk officer",
        _not(lambda agents: agents.row().officer),
    ),
)
"""The table: names of settings, in which case, and the condition; the first that holds counts.

{where} stands for the mode, or for the profile's own list of agents.
"""


def idle(profile: Profile) -> dict[str, str]:
    """Return every setting that has no effect in a profile, by name, with the words for it."""
    known = [one.name for one in settings(canonical(profile)) if one.place[0] in SECTIONS]
    return {name: why for name in known if (why := why_idle(profile, name))}


def why_idle(profile: Profile, name: str) -> str:
    """Return the words for a setting that has no effect in a profile, "" for any other."""
    agents = profile.agents
    where = "with agents.active_agents" if agents.active_agents else f"in mode {agents.mode}"
    for names, case, holds in IDLE:
        if any(fnmatchcase(name, one) for one in names.split()) and holds(profile, name):
            return f"no effect {case.format(where=where)}"
    return ""


def set_in_vain(profile: Profile) -> dict[str, str]:
    """Return those that a profile sets away from its mode's default, each in a sentence."""
    usual = Profile.model_validate({"agents": {"mode": profile.agents.mode}})
    differ = {change.name for change in compare(canonical(usual), canonical(profile))}
    return {name: f"{name} has {why}." for name, why in idle(profile).items() if name in differ}
