"""The promotion rule applied to the journal: which agents have earned their influence.

The rule judges a setting: what agents are (`fingerprint`), whatever the profile that has it is
called and whichever instances run with it now. Every tick that any instance of the database ever
ran with a setting counts for it, and for no other. So a profile that is renamed, copied, or edited
and edited back, and an instance that comes or goes, neither skip a look nor repeat one, nor begin
anew. A setting with `agents.influence` earned is looked at when its ticks reach one of the rule's
looks. The look uses the first ticks there were, in the order of time, so the moment at which it is
computed does not matter. It is taken once; its result is one row that nobody changes, with its
entry in the audit log in the same transaction.

A look that fails is logged and changes nothing; ticks never wait for one. Until the first row says
otherwise, and while the database cannot be read, agents are in shadow.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.random import PCG64, Generator
from pydantic import ValidationError

from agent_config import EXPERTS, JUDGE_ID, MANAGER_ID, READER_ID, TRADER_ID, AgentSettings
from agents.registry import SCORER, seated, wording
from instance_database import Database
from torra.clock import duration, parse
from torra.config import Instance, Profile
from torra.errors import StoreUnavailable
from torra.evaluation import promotion_rule
from torra.evaluation.promotion_rule import RULE, PromotionStatus, Rule
from torra.store import replay_queries, tick_queries
from torra.store import standings as standing_table
from torra.store.hosted import is_hosted
from torra.tick.record import versions

if TYPE_CHECKING:
    from torra.evaluation.observations import TickObservation
    from torra.evaluation.outcomes import Outcomes
    from torra.evaluation.promotion_evidence import Pool
    from torra.tick.tick_record import TickRecord

EARNED: Final = "earned"
"""The influence that follows the rule."""

ACTION: Final = "agents.standing"
ACTOR: Final = "promotion rule"
"""Action and actor of a look in the audit log."""

NO_MATTER: Final = frozenset(("influence", "max_api_cost_per_hour", "outage_size", "picture_file"))
"""Settings of the agents that do not change what they say."""

ABSENT_ELSEWHERE: Final = (MANAGER_ID, JUDGE_ID, TRADER_ID)
"""Who is told lessons wherever nothing else is written, at desks that have no such seat too."""

SWARMS_OWN: Final = frozenset((READER_ID, *EXPERTS, JUDGE_ID))
"""Who sits in a swarm, and at no other desk unless a profile names them."""

OFFICERS: Final = ("panic_", "crowded_", "liquidations_", "exhaustion_")
"""How the gate's settings begin that count only where a risk officer sits."""


def _swarms(agents: AgentSettings) -> bool:
    """Return whether any of a swarm sits at the desk."""
    return not SWARMS_OWN.isdisjoint(agents.desk())


AT_WORK: Final[Mapping[str, Callable[[AgentSettings], object]]] = {
    "memory": AgentSettings.remembers,
    "escalation": AgentSettings.consulted,
    "chief_think_model": AgentSettings.consulted,
    "rebuttal": lambda agents: agents.most_rounds() != agents.debate_rounds,
    "fallback_models": lambda agents: agents.fallback_models,
    "role_caps": lambda agents: agents.role_caps,
    "gate_call": lambda agents: agents.gate_call != "always",
    "judge_hold": lambda agents: JUDGE_ID in agents.desk(),
    "none_cost": lambda agents: not {MANAGER_ID, JUDGE_ID}.isdisjoint(agents.desk()),
    "judge_close": lambda agents: JUDGE_ID in agents.desk(),
    "trust": _swarms,
    "standing": _swarms,
}
"""Settings of the agents that are part of a setting only where they change something.

So a setting that was judged before one of them was there keeps its standing.
"""

CODE: Final = "rules"
"""A provider whose replies come from this program: another version is another setting."""

log = logging.getLogger("torra")


@dataclass(frozen=True, slots=True)
class PromotionSubject:
    """A profile as the rule sees it: its name, its settings, the instances that run with it."""

    name: str
    profile: Profile
    instances: tuple[Instance, ...]

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its setting now."""
        return fingerprint(self.profile)


@dataclass(frozen=True, slots=True)
class AgentsStanding:
    """How a profile's agents stand, for people to read.

    `ticks` is how many pooled ticks of this setting there are. `next_look` is the count at which
    the next look is taken, None where none is left. `waiting` is how many more ticks there are
    whose outcome, or that of one before them, is not known yet. `trial` is the number of this
    setting among those of the database that came to a look.
    """

    subject: PromotionSubject
    standing: PromotionStatus
    ticks: int
    next_look: int | None
    trial: int
    looks: tuple[Mapping[str, Any], ...] = ()
    waiting: int = 0

    @property
    def counts(self) -> bool:
        """Whether its agents count now."""
        influence = self.subject.profile.agents.influence
        return influence == "full" or (influence == EARNED and self.standing.promoted)


@dataclass
class Promotions:
    """The standing of every profile of a desk: read by each tick, looked at now and then.

    `subjects` are those of the desk as it runs now. Any thread may use it.
    """

    database: Database
    subjects: Callable[[], Iterable[PromotionSubject]]
    rule: Rule = RULE
    _known: dict[str, bool] = field(default_factory=dict)
    _counted: dict[str, tuple[int, int]] = field(default_factory=dict)

    def promoted(self, name: str, profile: Profile) -> bool:
        """Return whether agents of a profile that have to earn their influence have earned it."""
        mark = fingerprint(profile)
        known = self._known.get(mark)
        if known is None:
            try:
                # Remembered only when it was read: shadow for want of a database must not last.
                known = self._known[mark] = standing_table.agents_promoted(self.database, mark)
            except StoreUnavailable as error:
                log.error("the standing of %s: %s", name, error)
                return False
        return known

    def look(self) -> list[tuple[str, PromotionStatus]]:
        """Take every look that is due; return the profiles with how they stand after it.

        Never raises: what fails for one profile is logged and tried again the next time.
        """
        taken: list[tuple[str, PromotionStatus]] = []
        for subject in self.subjects():
            if subject.profile.agents.influence != EARNED:
                continue
            try:
                taken += [(subject.name, standing) for standing in self._looks(subject)]
            except Exception:
                log.exception("the agents of %s could not be looked at", subject.name)
        return taken

    def _looks(self, subject: PromotionSubject) -> list[PromotionStatus]:
        from torra.evaluation.promotion_evidence import evidence  # noqa: PLC0415 - seldom due

        mark, database = subject.fingerprint, self.database
        standing, trial = standing_of(database, mark)
        self._known[mark] = standing.promoted
        wanted = next_look(standing, self.rule)
        # A cheap upper bound: pooling 100,000 ticks takes half a minute, and mostly none is due.
        tallies = tick_queries.verdict_tallies(database, [*ran_with(database, mark)])
        stored = sum(number for _, number in tallies.values())
        counted, then = self._counted.get(mark, (0, 0))
        if wanted is None or counted + stored - then < wanted:
            return []
        pool = pooled(database, subject)
        self._counted[mark] = pool.count, stored
        statuses = []
        while due := promotion_rule.due(standing, pool.count, trial, self.rule):
            # Seeded by setting and look: whichever desk takes the look, its intervals are the same.
            chance = Generator(PCG64([int(mark, 16), due.number]))
            analysis = evidence(pool, due, chance)
            after = promotion_rule.decide(standing, analysis, self.rule)
            if self._write(subject, trial, standing, after, analysis.as_json()):
                statuses.append(after)
            before = standing, trial
            standing, trial = standing_of(database, mark)  # as it is on record, by whomever
            self._known[mark] = standing.promoted
            # Nothing was written, here or elsewhere: the next turn would be this one again.
            if (standing, trial) == before:
                break
        return statuses

    def _write(
        self,
        subject: PromotionSubject,
        trial: int,
        before: PromotionStatus,
        after: PromotionStatus,
        figures: Mapping[str, Any],
    ) -> bool:
        """Store a look with its entry in the audit log; False when another desk was first."""
        with self.database.transaction():
            new = standing_table.write_standing(
                self.database,
                subject.name,
                subject.fingerprint,
                trial=trial,
                figures=figures,
                **asdict(after),
            )
            if new:
                self.database.audit(
                    actor=ACTOR,
                    action=ACTION,
                    target=subject.name,
                    outcome="done",
                    before={"promoted": before.promoted, "look": before.look},
                    after={"promoted": after.promoted, "look": after.look, "why": after.reason},
                )
        if new:
            log.warning("agents of %s, look %s: %s", subject.name, after.look, after.reason)
        return new


def watch_only(database: Database, profile: Profile) -> bool:
    """Return whether the agents of a profile only look on now: whatever they say, L1 decides."""
    influence = profile.agents.influence
    earned = influence == EARNED and standing_table.agents_promoted(database, fingerprint(profile))
    return influence != "full" and not earned


def subjects_of(setups: Iterable[tuple[Instance, Profile]]) -> tuple[PromotionSubject, ...]:
    """Return the profiles by which instances run; one that runs with two settings is two."""
    users = defaultdict[tuple[str, str], list[tuple[Instance, Profile]]](list)
    for instance, profile in setups:
        users[instance.profile, profile.digest()].append((instance, profile))
    return tuple(
        PromotionSubject(name, rows[0][1], tuple(instance for instance, _ in rows))
        for (name, _), rows in users.items()
    )


def account(database: Database, subject: PromotionSubject, rule: Rule = RULE) -> AgentsStanding:
    """Return how a profile's agents stand, with every look of its setting; counts its ticks."""
    mark = subject.fingerprint
    standing, trial = standing_of(database, mark)
    pool = pooled(database, subject)
    return AgentsStanding(
        subject,
        standing,
        pool.count,
        next_look(standing, rule),
        trial,
        tuple(standing_table.standings(database, mark)),
        pool.waiting,
    )


def standing_of(database: Database, mark: str) -> tuple[PromotionStatus, int]:
    """Return how a setting stands, and its number among those of the database, by first looks."""
    rows = standing_table.standings(database, mark)
    if not rows:
        return PromotionStatus(), standing_table.count_trials(database) + 1
    last = rows[-1]
    return PromotionStatus(last["promoted"], last["look"], last["reason"]), last["trial"]


def next_look(standing: PromotionStatus, rule: Rule = RULE) -> int | None:
    """Return the pooled ticks at which the next look is taken; None where none is left."""
    wanted = rule.count(standing.look + 1)
    return wanted if promotion_rule.due(standing, wanted, rule=rule) else None


def pooled(database: Database, subject: PromotionSubject) -> Pool:
    """Return the rule's evidence: every tick of a setting, of whichever instances ran with it.

    Each tick comes with the bars of its own instance, at the costs of the newest profile by which
    that instance ran with this setting.
    """
    from torra.evaluation.promotion_evidence import pool  # noqa: PLC0415 - for looks alone
    from torra.evaluation.recomposition import BrainNumbers  # noqa: PLC0415

    mark = subject.fingerprint
    profiles = ran_with(database, mark)
    ticks = _ticks(database, mark, [*profiles])
    known = outcomes_of(database, ticks, profiles)
    return pool(ticks, known, BrainNumbers.of(subject.profile))


def ran_with(database: Database, mark: str) -> dict[str, Profile]:
    """Return the instances that were ever given a setting, and the newest profile that had it.

    Those of the desk: hosted streams are no part of it.
    """
    profiles = {}
    for instance, text in standing_table.profiles_given(database):
        if is_hosted(instance):
            continue  # what agents do for another scorer promotes nobody on a desk
        profile = _stored(text)
        # Oldest first, so the newest profile of an instance is the one that stays.
        if profile is not None and _seated_mark(profile) == mark:
            profiles[instance] = profile
    return profiles


def ticks_of(
    database: Database,
    subject: PromotionSubject,
    start: datetime | None = None,
    end: datetime | None = None,
) -> list[TickObservation]:
    """Return the ticks of a profile's instances of now in its setting, in the order of time.

    Those that closed in [start, end]. Of 100,000 ticks this takes about half a minute.
    """
    names = [instance.id for instance in subject.instances]
    return _ticks(database, subject.fingerprint, names, start, end)


def _ticks(
    database: Database,
    mark: str,
    names: Sequence[str],
    start: datetime | None = None,
    end: datetime | None = None,
) -> list[TickObservation]:
    # for looks and pages
    from torra.desk.journal_ticks import tick_of  # noqa: PLC0415
    from torra.tick.tick_record import TickRecord, load  # noqa: PLC0415

    marks = Fingerprints(database)
    records = (load(*row) for row in standing_table.observed(database, names, start, end))
    own = (
        tick_of(record)
        for record in records
        # Invented evidence, as in the demo, says nothing of an agent.
        if isinstance(record, TickRecord) and not record.invented and marks.of(record) == mark
    )
    # By close, and at the same close the longer timeframe first.
    return sorted(own, key=lambda tick: (tick.close_time, -duration(tick.timeframe)))


def outcomes_of(
    database: Database, ticks: Sequence[TickObservation], profiles: Mapping[str, Profile]
) -> Outcomes:
    """Return the outcomes of ticks over HORIZON bars, each instance's by its own bars and costs.

    One that came later than LONGEST_WAIT is none: by then later ticks were counted without it.
    """
    from torra.evaluation.outcomes import Outcomes, RoundTripCosts, outcomes  # noqa: PLC0415
    from torra.evaluation.promotion_evidence import HORIZON, in_time  # noqa: PLC0415

    forward, long, short = (np.full((len(ticks), 1), np.nan) for _ in range(3))
    for stream in dict.fromkeys((tick.instance, tick.timeframe) for tick in ticks):
        rows = [n for n, tick in enumerate(ticks) if (tick.instance, tick.timeframe) == stream]
        own = [ticks[row] for row in rows]
        bars = database.load_bars(*stream, as_of=FOREVER)
        bars = bars[bars.index >= pd.Timestamp(own[0].bar_time)]
        if not len(bars):
            continue
        spec = profiles[stream[0]].symbol(own[0].symbol)
        costs = {own[0].symbol: RoundTripCosts(spec.spread + 2 * spec.slippage)}
        known = outcomes(own, {(own[0].symbol, stream[1]): bars}, costs, (HORIZON,))
        timely = in_time(own, bars)
        for whole, part in ((forward, known.forward), (long, known.long), (short, known.short)):
            whole[rows] = np.where(timely[:, None], part, np.nan)
    return Outcomes((HORIZON,), forward, long, short)


FOREVER: Final[datetime] = parse("9000-01-01")
"""Later than any bar."""


class Fingerprints:
    """The settings with which stored ticks ran, by the digest of their profile."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._profiles: dict[str, dict[str, Profile]] = {}
        self._known: dict[tuple[str, str, str, str], str | None] = {}

    def of(self, record: TickRecord) -> str | None:
        """Return the fingerprint of the desk of a tick; None where it is not known."""
        versions = record.versions
        key = record.instance, record.profile, versions["rubric"], versions["torra"]
        if key not in self._known:
            profile = self.profiles(record.instance).get(record.profile)
            self._known[key] = _seated_mark(profile, *key[2:])
        return self._known[key]

    def profiles(self, instance: str) -> Mapping[str, Profile]:
        """Return the profiles that an instance ran with, by their digests."""
        known = self._profiles.get(instance)
        if known is None:
            known = self._profiles[instance] = {}
            for row in replay_queries.profiles_of(self._database, instance):
                profile = _stored(row["profile"])
                if profile is None:
                    continue
                # Ticks of late bars ran with execution off, whose digest no profile on record has.
                silent = profile.model_copy(update={"execution": "off"})
                known |= {row["digest"]: profile, silent.digest(): profile}
        return known


def fingerprint(profile: Profile, rubric: str | None = None, code: str | None = None) -> str:
    """Return what the agents of a profile are: 16 hexadecimal characters.

    It covers the prompts (by `rubric`), the models, every setting of agents, gate, weights and
    thresholds, and, where the rules answer, the program's version (`code`). None is that of today.
    """
    rubric = rubric or wording(profile.agents)
    return _fingerprint(profile.model_dump_json(), rubric, code or versions()["torra"])


@lru_cache(maxsize=256)
def _stored(text: str) -> Profile | None:
    """Return a stored profile; None for one of a version that had other settings."""
    try:
        return Profile.model_validate_json(text)
    except ValidationError:
        return None


def _seated_mark(profile: Profile | None, *versions: str) -> str | None:
    """Return the fingerprint of a profile; None for a desk that this version cannot seat."""
    try:
        return None if profile is None else fingerprint(profile, *versions)
    except ValueError:
        return None


@lru_cache(maxsize=256)
def _fingerprint(document: str, rubric: str, code: str) -> str:
    profile = Profile.model_validate_json(document)
    agents = profile.agents
    roles = [*(seat.role for seat in seated(agents)), SCORER]
    kept = {
        name: value
        for name, value in agents.model_dump(mode="json").items()
        if name not in NO_MATTER and (name not in AT_WORK or AT_WORK[name](agents))
    }
    if "memory" in kept:
        # Who is told lessons in words, without those of other desks who are not asked.
        callers = {*agents.desk(), agents.consulted()}
        kept["memory"]["roles"] = [
            name for name in agents.memory.roles if name in callers or name not in ABSENT_ELSEWHERE
        ]
    covered = {
        "rubric": rubric,
        "code": code if CODE in agents.vendors() else "",
        "models": {role.id: agents.model(role.id, role.tier) for role in roles}
        | {
            f"{TRADER_ID}.{tier}": agents.model(TRADER_ID, tier)
            for tier in agents.tiers()
            if agents.consulted() and tier != "quick"
        },
        "agents": kept,
        "gate": {
            name: value
            for name, value in profile.gate.model_dump().items()
            if agents.row().officer or not name.startswith(OFFICERS)
        },
        "weights": profile.sentiment_weights.model_dump(),
        "record_score": profile.record_score,
        "timeframe_weights": profile.timeframe_weights,
        "thresholds": profile.thresholds.model_dump(),
    }
    text = json.dumps(covered, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
