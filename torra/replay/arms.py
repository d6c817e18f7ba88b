"""The arms of a replay: the variants that are compared on the same ticks and the same market.

An arm is the very run_tick with another desk of agents, or with nobody asked. A placebo arm holds
the debate itself (Edges.debater). It gives the words of a real arm's agents to other ticks, with
another sign, or drawn at random. So an arm that only stirs the scores is seen to do no more than
its placebo:

    shuffled   the words of the same time of day on another day
    flipped    the words of this tick with the other sign
    random     the words of any other tick, each vector with a sign of its own

The rules of the gate hold in a placebo as in every arm. A model's veto, and what a trader declined,
stay with the words that they came with, and so does what the agents left of an opening's size: a
placebo that traded larger than its source would lose to it, or beat it, by its size alone. An
unknown arm raises ConfigError.

Three arms tell whether numbers from beside the chart are worth anything: a desk with a fundamental
analyst that reads them, the same desk without them, and a placebo that reads each series as it was
SHIFT before.

So do arms with and without lessons of their own trades: each desk that seats a researcher or a
judge has a twin `*_no_memory`, and `placebo_memory` (`placebo_memory_firm` of a firm) is told as
many lessons of the same age, drawn by lot. Where one of these runs, the other arms remember.

Every desk that consults a trader has an arm in which bull and bear always answer each other, and
one whose trader is always of the chief tier. A swarm has arms in which all experts count alike,
without the reader of its regime, without its judge, and with the chart's picture; the experts of
its placebo read what theirs showed on an earlier day. An arm that would be another one by
construction is refused, and so are more than MOST_ARMS: each more costs all others some of their
power.

Who is not asked at a swarm has none of its risk officer either: an arm that names no desk runs on
the small one where the profile's own has an officer. The control alone has the officer's rows where
every desk beside it has them (`control_of`): else agents would be credited with what the rows do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from agent_config import (
    GATE_ID,
    JUDGE_ID,
    MODES,
    READER_ID,
    TRADER_ID,
    AgentSettings,
    EscalationSettings,
)
from agents.contracts import (
    Completion,
    ModelUnavailable,
    Request,
    SourceType,
    Submit,
    is_synchronous,
    synchronous,
)
from agents.registry import AGENTS
from torra.config import OutsideSettings, Profile
from torra.errors import ConfigError
from torra.evaluation import wording

Placebo = Literal["shuffled", "flipped", "random"]

CONTROL: Final = wording.CONTROL
PLACEBOS: Final[tuple[Placebo, ...]] = ("shuffled", "flipped", "random")


@dataclass(frozen=True, slots=True)
class Arm:
    """One variant of a replay.

    `voice`: nobody is asked, the whole desk is, the scorer alone, every call fails, or a placebo
    speaks. `agents` are changes to the profile's section agents; `placebo` says how the words of
    the reference are used, `outside` which numbers from beside the chart the agents read, `memory`
    which lessons of its own trades they are told: those that the profile lets them have, none, or
    some by lot. `without` are seats of the desk that are left empty, `evidence` says whether a
    swarm's experts read their own bars or those of an earlier day. `whole` are the source types of
    a tick on which everybody spoke who should have; empty where nobody should.
    """

    name: str
    says: str
    voice: Literal["nobody", "desk", "scorer", "outage", "placebo"] = "desk"
    agents: Mapping[str, Any] = field(default_factory=dict)
    placebo: Placebo | None = None
    outside: Literal["known", "none", "shifted"] = "known"
    memory: Literal["own", "none", "by_lot"] = "own"
    without: tuple[str, ...] = ()
    evidence: Literal["own", "earlier"] = "own"
    whole: frozenset[SourceType] = frozenset()

    @property
    def is_placebo(self) -> bool:
        """Whether it is there to be no better than chance."""
        return self.placebo is not None or self.outside == "shifted" or self.memory == "by_lot"

    @property
    def draws(self) -> bool:
        """Whether a seed makes it another arm."""
        by_lot = self.memory == "by_lot" or self.evidence == "earlier"
        return self.placebo is not None or by_lot

    def profile(self, profile: Profile) -> Profile:
        """Return the profile with which this arm runs; its agents always count (influence full)."""
        settings = profile.agents
        if settings.row().officer and self.voice not in ("placebo", "nobody"):
            settings = settings.model_copy(update={"mode": SMALL})
        settings = settings.model_copy(update={"influence": "full", **self.agents})
        if self.without:
            settings = fewer(settings, self.without)
        changes: dict[str, Any] = {"agents": settings}
        if self.memory == "none":
            changes["agents"] = remembering(settings, "off")
        if self.outside == "none":
            changes["outside"] = OutsideSettings(sources=())
        return profile.model_copy(update=changes)


def remembering(agents: AgentSettings, use: Literal["on", "off"]) -> AgentSettings:
    """Return settings of a desk that is told lessons of its trades, or of one that is not."""
    memory = agents.memory.model_copy(update={"use": use})
    return agents.model_copy(update={"memory": memory})


def fewer(agents: AgentSettings, without: Sequence[str]) -> AgentSettings:
    """Return settings of the same desk with these seats empty, told of its trades as before."""
    seats = tuple(name for name in agents.desk() if name not in without)
    told = remembering(agents, "on" if agents.remembers() else "off")
    return told.model_copy(update={"active_agents": seats})


MOST_ARMS: Final = 8
"""Arms of one report, the control among them."""

ANALYSTS: Final = tuple(
    name for name in MODES["full"].seats if AGENTS[name].role.kind == "analyst" or name == GATE_ID
)
DESK: Final = {"active_agents": (), "call_policy": "always"}
SMALL: Final = next(iter(MODES))
"""The cheapest desk: arms that are about something else run on it."""

SMALL_DESK: Final = {**DESK, "mode": SMALL}

READERS: Final = {
    **SMALL_DESK,
    "active_agents": (
        *("technical", "sentiment", "fundamental"),
        *("bull_researcher", "bear_researcher", GATE_ID),
    ),
}
"""The desk whose analysts read the numbers from beside the chart."""

RULES: Final = "rules"
"""The provider that answers by arithmetic."""

CUSTOM: Final = frozenset({SourceType.AGENT_CUSTOM})

ARGUED: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    wording.REBUTTAL: ("bull and bear always answer each other", {"rebuttal": "always"}),
    wording.ESCALATED: (
        "every opening is asked of the chief tier",
        {"escalation": EscalationSettings(when="conviction", at=0.0)},
    ),
}
"""What desks that consult a trader do otherwise, by the ending of the arm's name."""

SWARM: Final = wording.SWARM
SWARM_DESK: Final = {**DESK, "mode": SWARM}
SWARM_ARMS: Final = (
    Arm(
        f"{SWARM}{wording.FLAT}",
        "the swarm, whose experts all count alike in every regime",
        agents={**SWARM_DESK, "trust": "flat"},
        whole=frozenset({SourceType(MODES[SWARM].complete)}),
    ),
    Arm(
        f"{SWARM}{wording.NO_READER}",
        "the swarm without the reader of its regime",
        agents=SWARM_DESK,
        without=(READER_ID,),
        whole=CUSTOM,
    ),
    Arm(
        wording.EXPERTS_ALONE,
        "the swarm without its judge",
        agents=SWARM_DESK,
        without=(JUDGE_ID,),
        whole=CUSTOM,
    ),
    Arm(
        f"{SWARM}{wording.PICTURED}",
        "the swarm, whose geometry expert is shown the chart",
        agents={**SWARM_DESK, "picture": "rendered"},
        whole=frozenset({SourceType(MODES[SWARM].complete)}),
    ),
)
"""What is done otherwise at the desk whose experts count by the regime."""

EVIDENCE: Final = wording.EVIDENCE
OWN_WORDS: Final = wording.OWN_WORDS

OWN_ARMS: Final = (
    Arm(CONTROL, "nobody is asked: the four deterministic scores alone", "nobody"),
    Arm(
        "legacy",
        "one model scores the chart by itself",
        "scorer",
        SMALL_DESK,
        whole=frozenset({SourceType.LEGACY}),
    ),
    Arm(
        "analysts",
        "analysts and the gate, no debate",
        "desk",
        {"active_agents": ANALYSTS},
        whole=CUSTOM,
    ),
    *(
        Arm(
            name,
            row.says,
            "desk",
            {**DESK, "mode": name},
            whole=frozenset({SourceType(row.complete)}),
        )
        for name, row in MODES.items()
    ),
    *(
        Arm(
            f"{name}{ending}",
            f"{row.says}; {says}",
            "desk",
            {**DESK, "mode": name, **changes},
            whole=frozenset({SourceType(row.complete)}),
        )
        for name, row in MODES.items()
        if row.consults
        for ending, (says, changes) in ARGUED.items()
    ),
    *SWARM_ARMS,
    Arm(
        "pivotal",
        f"the {SMALL} desk, asked only where it could change a verdict",
        "desk",
        {**SMALL_DESK, "call_policy": "pivotal"},
        whole=frozenset({SourceType(MODES[SMALL].complete), SourceType.AGENT_SKIPPED}),
    ),
    Arm("outage", f"the {SMALL} desk, and every call fails", "outage", SMALL_DESK),
    Arm(
        "outside",
        "a desk that reads numbers from beside the chart",
        "desk",
        READERS,
        whole=CUSTOM,
    ),
    Arm(
        "no_outside",
        "that desk without those numbers",
        "desk",
        READERS,
        outside="none",
        whole=CUSTOM,
    ),
    Arm(
        "outside_shifted",
        "that desk with numbers of long before",
        "desk",
        READERS,
        outside="shifted",
        whole=CUSTOM,
    ),
)
"""The arms without their twins and placebos."""

FORGETFUL: Final = wording.FORGETFUL

TWINS: Final[Mapping[str, str]] = {
    f"{name}{FORGETFUL}": name for name in (*MODES, "pivotal", "outside")
}
"""The arms without a memory, each with the one that it is like: desks that seat researchers or a
judge, for these alone read lessons.
"""

BY_LOT: Final = wording.BY_LOT
LOTS: Final = wording.LOTS

ARMS: Final[Mapping[str, Arm]] = {
    arm.name: arm
    for arm in (
        *OWN_ARMS,
        *(
            replace(arm, name=name, says=f"{arm.says}, without lessons", memory="none")
            for name, like in TWINS.items()
            for arm in OWN_ARMS
            if arm.name == like
        ),
        *(
            Arm(
                name,
                f"the {like} desk, told lessons by lot",
                "desk",
                {**DESK, "mode": like},
                memory="by_lot",
                whole=frozenset({SourceType(MODES[like].complete)}),
            )
            for name, like in LOTS.items()
        ),
        Arm(
            EVIDENCE,
            "the swarm, whose experts read what theirs showed on an earlier day",
            agents=SWARM_DESK,
            outside="shifted",
            evidence="earlier",
            whole=frozenset({SourceType(MODES[SWARM].complete)}),
        ),
        *(
            Arm(f"placebo_{kind}", f"the reference arm's words, {kind}", "placebo", {}, kind)
            for kind in PLACEBOS
        ),
    )
}

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "placebo": tuple(f"placebo_{kind}" for kind in PLACEBOS),
    "beside": ("outside", "no_outside", "outside_shifted"),
    "memory": (SMALL, f"{SMALL}{FORGETFUL}", BY_LOT),
}
"""Names that stand for several arms."""

REFERENCES: Final = wording.SPEAKERS
"""Whose words the placebos use: the first of these that runs."""


def chosen(names: Sequence[str]) -> tuple[Arm, ...]:
    """Return the arms of a list of names in running order, the control always among them.

    Raises ConfigError for an unknown name, and for placebos without an arm to take words from.
    """
    wanted = [CONTROL]
    for name in names:
        wanted += GROUPS.get(name, (name,))
    for name in wanted:
        if name not in ARMS and name.removesuffix(FORGETFUL) in ARMS:
            raise ConfigError(_no_twin(name))
    unknown = [name for name in wanted if name not in ARMS]
    if unknown:
        known = ", ".join([*(name for name in ARMS if ARMS[name].placebo is None), *GROUPS])
        raise ConfigError(f"--arms {unknown[0]}: known are {known}")
    found = tuple(arm for name, arm in ARMS.items() if name in wanted)
    for name, like in OWN_WORDS.items():
        if name in wanted and like not in wanted:
            raise ConfigError(f"--arms {name} needs the arm whose placebo it is: add {like}")
    if any(arm.placebo for arm in found) and reference(arm.name for arm in found) is None:
        raise ConfigError(
            "--arms placebo needs an arm whose words it can use: add one of "
            + ", ".join(REFERENCES)
        )
    if len(found) > MOST_ARMS:
        raise ConfigError(
            f"--arms: {len(found)} arms, and a report has at most {MOST_ARMS}, {CONTROL} among "
            "them: each more costs the others some of their power. Ask for fewer, and for the "
            "rest in another replay"
        )
    return found


def check(arms: Iterable[Arm], agents: AgentSettings) -> None:
    """Raise ConfigError for an arm that these settings make the very same as another one."""
    for arm in arms:
        for ending in (*ARGUED, wording.FLAT, wording.PICTURED):
            like = arm.name.removesuffix(ending)
            if like != arm.name and (why := _same(arm, ARMS[like], agents)):
                raise ConfigError(f"--arms {arm.name}: {why}, so it would be {like} itself")


def _same(arm: Arm, like: Arm, agents: AgentSettings) -> str:
    """Return why an arm argues as another one does; "" where it does not."""
    own, other = (agents.model_copy(update=dict(one.agents)) for one in (arm, like))
    if arm.name.endswith(wording.FLAT):
        return "there all experts count alike too" if other.trust == own.trust else ""
    if arm.name.endswith(wording.PICTURED):
        return _no_picture(own, other)
    if arm.name.endswith(wording.REBUTTAL):
        always = not other.rebuts() and other.most_rounds() == own.most_rounds()
        return "there bull and bear always answer each other too" if always else ""
    chief, deep = (own.model(TRADER_ID, tier) for tier in ("chief", "deep"))
    if chief == deep:
        return f"the trader is asked of {deep} in either"
    return (
        "there every opening is asked of the chief tier too"
        if own.escalation == other.escalation
        else ""
    )


def _no_picture(own: AgentSettings, other: AgentSettings) -> str:
    """Return why a desk that is shown the chart is another one's like; "" where it is not."""
    if own.vendors() == (RULES,):
        return "the rules read numbers and no picture"
    return "there the chart is drawn too" if other.picture == own.picture else ""


def _no_twin(name: str) -> str:
    """Return why an arm has no twin without a memory, and which arms have one."""
    like = name.removesuffix(FORGETFUL)
    return (
        f"--arms {name}: nobody in {like} is told lessons, so it would be {like} itself; arms with "
        f"such a twin are {', '.join(TWINS.values())}"
    )


def spoken_by(profile: Profile, source: str) -> Profile:
    """Return the profile under which the words of an arm are given to other ticks.

    Where a risk officer sat its rows hold on those ticks too, and else none do.
    """
    own, told = profile.agents, ARMS[source].profile(profile).agents
    if not (own.row().officer or told.row().officer):
        return profile
    mode = told.mode if told.row().officer else SMALL
    return profile.model_copy(update={"agents": own.model_copy(update={"mode": mode})})


def control_of(profile: Profile, beside: Iterable[Arm]) -> Profile:
    """Return the profile under which nobody is asked, with the rows of the desks beside it."""
    desks = [one for one in beside if one.voice in ("desk", "scorer")]
    rows = [one.profile(profile).agents.row().officer for one in desks]
    agents = profile.agents
    mode = SWARM if rows and all(rows) else SMALL if agents.row().officer else agents.mode
    return profile.model_copy(update={"agents": agents.model_copy(update={"mode": mode})})


def reference(names: Iterable[str]) -> str | None:
    """Return which of these arms' words the placebos use; None where there is no such arm."""
    known = set(names)
    return next((name for name in REFERENCES if name in known), None)


# --- voices ---------------------------------------------------------------------------------------


def only_scorer(submit: Submit) -> Submit:
    """Return a `submit` on which only the single-model scorer answers."""

    def ask(request: Request) -> Future[Completion]:
        return submit(request) if request.role.kind == "scorer" else silence(request)

    return synchronous(ask) if is_synchronous(submit) else ask


@synchronous
def silence(request: Request) -> Future[Completion]:
    """Answer no request: each fails at once."""
    del request
    future: Future[Completion] = Future()
    future.set_exception(ModelUnavailable("error", "not asked in this arm", again=None))
    return future
