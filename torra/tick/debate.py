"""The debate of one tick: decides whether agents are asked, seats the desk, blends its scores.

`plan` decides who is asked; `run_tick_debate` returns the debate and the two blends with L1. Three
things leave a tick with L1 alone before any call, and the record says which: nobody is to be asked
(a warm-up that would cost money); the policy `pivotal` finds that no reply could change the verdict
(AGENT_SKIPPED); the ladder has no level left to pay for (L1_ONLY, flag `budget`). Else the desk of
the level deliberates, each stage within its reservation. Agents whose influence is `shadow`, or
`earned` and not earned yet, are asked and recorded, and the tick decides as L1 alone.

Only `plan` reads the tick's store, and only there the database can fail: the debates of ticks that
closed together are held in threads of their own. A picture that cannot be had is a flag, never a
failure.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

import agent_framework
from agent_config import CONSULT_SECONDS, AgentSettings, DebateSettings
from agent_framework import Deliberation
from agents.contracts import (
    EMPTY,
    CallBound,
    Completion,
    DebateContext,
    Prompt,
    Request,
    SourceType,
    Submit,
    is_synchronous,
    synchronous,
)
from agents.registry import AGENTS, SCORER, Agent, seated
from instance_database import TickKey
from scoring_rubric import build_interpretive_prompt
from torra.chart import renderer, screenshot
from torra.clock import Clock, iso, token
from torra.store.tick_store import OpeningContext
from torra.tick import thesis
from torra.tick.degradation import DegradationLevel
from torra.tick.late_answers import LateReplies
from torra.tick.marks import SHADOW
from torra.tick.record import TickDebate, TickInputs
from torra.tick.tick_database import TickDatabase
from torra.verdict import call_policy, sentiment_rules

log = logging.getLogger("torra")

BUDGET: Final = "budget"
"""Flag of a tick whose agents the hour's ceiling leaves no money to ask."""

PICTURE_SHARE: Final = 0.1
"""Share of the remaining time for which a picture may wait for others that are being drawn."""


class TickPurse(Protocol):
    """Pays for the calls of one tick (torra.tick.spending.Purse)."""

    def reserve(self, stage: str, bounds: tuple[CallBound, ...]) -> bool:
        """Grant a stage or refuse it (agents.contracts.Reserve)."""
        ...

    def submit(self, request: Request) -> Future[Completion]:
        """Send a request."""
        ...

    def settled(self, deliberation: Deliberation) -> Deliberation:
        """Return a deliberation with what its calls count for."""
        ...


class Payer(Protocol):
    """Pays for ticks and says on which desk they run (torra.tick.spending.SpendingAccount)."""

    def degradation_level(
        self,
        settings: AgentSettings,
        agents: Mapping[str, Agent] | None = None,
        *,
        reserved_usd: float = 0.0,
    ) -> DegradationLevel:
        """Return what the next tick is run with; `reserved_usd` is for ticks of its close."""
        ...

    def purse(
        self,
        key: TickKey,
        settings: AgentSettings,
        submit: Submit,
        *,
        monotonic: Callable[[], float],
        deadline: float,
    ) -> TickPurse:
        """Open the purse of a tick."""
        ...


def score_chart(
    context: DebateContext, ask: Callable[[Prompt], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return four scores {score, note} of one model alone: what the debate replaced, its fallback.

    One call with the interpretive prompt; raises ModelUnavailable where it brings none, and L1
    stands. What the answer may move is bounded by the framework.
    """
    return ask(build_interpretive_prompt(context))


Debater = Callable[[DebateContext, DebateSettings], Deliberation]
"""A debate in the framework's place: an arm of a replay, with `scores` within the bounds."""


def reads_no_notes(debater: Debater) -> Debater:
    """Mark a debater that reads no note of its context: none is written for it then."""
    vars(debater)["reads_no_notes"] = True
    return debater


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Who answers a tick's agents, who pays for them, and who hears of it.

    `submit` is None where nobody is to be asked, `account` where nobody is to be paid. `on_event`
    hears what happens inside the tick and may not fail it. `picture` gives the chart that a replay
    shows again, in place of a new one. A `debater` holds the whole debate. `promoted` says whether
    agents with influence to earn have earned it. `fallback` is a host's own scorer, asked when no
    opinion answered in place of Torra's.
    """

    submit: Submit | None
    account: Payer | None = None
    on_event: Callable[[str, dict[str, Any]], None] | None = None
    picture: Callable[[], bytes | None] | None = None
    debater: Debater | None = None
    promoted: Callable[[], bool] = lambda: False
    fallback: agent_framework.Fallback | None = None

    @property
    def recorded(self) -> bool:
        """Whether the tick's record, with the notes of its scores, is wanted."""
        return True

    def about(
        self, key: TickKey, *, shadow: bool = False
    ) -> Callable[[str, dict[str, Any]], None] | None:
        """Return the listener of a debate; each event gets its tick's key and whether it counts."""
        on_event = self.on_event
        if on_event is None:
            return None
        return lambda kind, payload: on_event(
            kind, {**payload, "torra_key": key.text, "shadow": shadow}
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """How a tick is debated; `silent` is why no agent is asked, None when agents are.

    `worst_usd` is the most that it can cost. `pivotal`: agents could change the verdict, or would
    confirm an opening. `company` is what a desk that consults a trader foresees openings by.
    """

    config: DebateSettings
    flags: tuple[str, ...] = ()
    silent: SourceType | None = None
    worst_usd: float = 0.0
    pivotal: bool = False
    company: OpeningContext | None = None


def plan(
    inputs: TickInputs,
    answerers: ModelAccess,
    database: TickDatabase | None,
    *,
    reserved_usd: float = 0.0,
) -> Plan:
    """Decide who is asked at a tick; the ladder may step down here.

    `database` is None for a stream without other timeframes, positions and signals: a hosted one.
    `reserved_usd` is what other ticks of its close may cost, in USD: it is not spent twice.
    """
    config = inputs.profile.debate()
    if answerers.debater is not None:
        return Plan(config)
    if answerers.submit is None:
        return Plan(config, ("not_asked",), SourceType.L1_ONLY)
    flags: tuple[str, ...] = ()
    agents = config.agents
    by_policy, consults = agents.call_policy == "pivotal", bool(agents.consulted())
    pivotal = (
        by_policy or agents.gate_call == "openings" or agents.rebuts() or consults
    ) and _is_pivotal(inputs, database)
    # Before the ladder: a tick that asks nobody costs nothing, so it leaves the level where it is.
    if by_policy and not pivotal:
        # A sample is asked all the same, to measure what skipping leaves out.
        if not call_policy.sampled(inputs.key.text, agents.pivotal_sample):
            return Plan(config, (), SourceType.AGENT_SKIPPED)
        flags = ("pivotal_sample",)
    company: OpeningContext | None = None
    if database is not None and consults:
        company = database.company(
            inputs.key, inputs.as_of, inputs.instance.timeframes, inputs.together
        )
    if answerers.account is None:
        return Plan(config, flags, pivotal=pivotal, company=company)
    level = answerers.account.degradation_level(agents, AGENTS, reserved_usd=reserved_usd)
    if not level.calls_models:
        return Plan(config, (*flags, BUDGET), SourceType.L1_ONLY)
    if level.settings != agents:
        flags = (*flags, f"ladder:{level.name}")
        config = config.model_copy(update={"agents": level.settings})
    return Plan(
        config, flags, worst_usd=level.worst_usd, pivotal=pivotal,
        company=company if level.settings.consulted() else None,
    )  # fmt: skip


def _is_pivotal(inputs: TickInputs, database: TickDatabase | None) -> bool:
    """Return whether agents could change the verdict of a tick, or would confirm an opening."""
    profile, as_of = inputs.profile, inputs.as_of
    if database is None:
        own = sentiment_rules.composite(inputs.l1, inputs.ath_score, profile.sentiment_weights)
        pairs = call_policy.foreseen(
            inputs.timeframe, own, as_of,
            together=inputs.together, known={}, weights=profile.timeframe_weights,
        )  # fmt: skip
    else:
        pairs = database.foresee(
            inputs.key, as_of, l1=inputs.l1, ath=inputs.ath_score, profile=profile,
            timeframes=inputs.instance.timeframes, together=inputs.together,
        )  # fmt: skip
    return call_policy.pivotal(pairs, profile.sentiment_weights, profile.thresholds)


def run_tick_debate(
    plan: Plan,
    inputs: TickInputs,
    answerers: ModelAccess,
    *,
    clock: Clock,
    deadline: float,
) -> TickDebate:
    """Return what the desk made of a tick, blended with L1: gated, and with the gate left out."""
    influence, submit = plan.config.agents.influence, answerers.submit
    shadow = not answerers.promoted() if influence == "earned" else influence == "shadow"
    debates = answerers.debater is not None or (plan.silent is None and submit is not None)
    context = _context(inputs, answerers, debates=debates)
    late: LateReplies | None = None
    if answerers.debater is not None:
        deliberation = answerers.debater(context, plan.config)
    elif plan.silent is not None or submit is None:
        source = plan.silent or SourceType.L1_ONLY
        unpaid = seated(plan.config.agents, AGENTS) if BUDGET in plan.flags else ()
        deliberation = agent_framework.l1_only_record(
            context, plan.config, source, plan.flags, unpaid
        )
    else:
        left = deadline - clock.monotonic()
        if answerers.picture is None:
            picture, picture_flags = _picture(inputs, plan.config.agents, left, clock)
        else:
            # A replay is shown the chart of then, or none, as it was.
            picture, picture_flags = answerers.picture(), ()
        if picture is not None or plan.pivotal:
            context = replace(context, picture=picture, pivotal=plan.pivotal)
        late = LateReplies(submit, clock.monotonic)
        if not is_synchronous(submit):  # what answers at once brings nothing later
            submit = late.submit
        deliberation = _deliberate(
            context, plan, inputs, submit, answerers, clock, deadline, shadow=shadow
        )
        if more := (*plan.flags, *picture_flags):
            deliberation = replace(deliberation, flags=(*deliberation.flags, *more))
    alone: Deliberation | None = None
    if shadow:
        # What was said is recorded as it was; an undebated desk counts in its place.
        deliberation = replace(deliberation, flags=(*deliberation.flags, SHADOW))
        alone = agent_framework.l1_only_record(context, plan.config, deliberation.source_type)
    if behind := (*inputs.lessons.flags, *inputs.standing.flags):
        deliberation = replace(deliberation, flags=(*deliberation.flags, *behind))
    counted = alone or deliberation
    gated = ungated = agent_framework.blend(inputs.l1, counted.scores)
    if counted.ungated is not counted.scores:  # as they are where nobody moved a score
        ungated = agent_framework.blend(inputs.l1, counted.ungated)
    return TickDebate(
        deliberation,
        gated=gated,
        ungated=ungated,
        picture=context.picture,
        late=late,
        standing_in=alone,
        company=plan.company,
    )


def _context(inputs: TickInputs, answerers: ModelAccess, *, debates: bool) -> DebateContext:
    """Return what a desk is shown; notes and fence where it debates or a record is wanted."""
    symbol, read = inputs.instance.symbol, answerers.recorded
    # Notes are words for a reader: a tick that is not recorded and sends no prose out needs none.
    if debates and not read:
        read = (
            not is_synchronous(answerers.submit)
            if answerers.debater is None
            else not getattr(answerers.debater, "reads_no_notes", False)
        )
    return DebateContext(
        symbol=symbol,
        timeframe=inputs.timeframe,
        bar_time=iso(inputs.bar_time),
        as_of=iso(inputs.as_of),
        scores=inputs.l1,
        notes=inputs.bundle.notes if read else EMPTY,
        features=inputs.bundle.features,
        memory=inputs.memory,
        # Fresh each tick: a stranger's text cannot close a fence whose mark it cannot guess.
        nonce=token() if debates else "",
        asset=inputs.profile.symbol(symbol).asset,
        lessons=tuple(note.text for note in inputs.lessons.notes),
    )


def _deliberate(
    context: DebateContext,
    plan: Plan,
    inputs: TickInputs,
    submit: Submit,
    answerers: ModelAccess,
    clock: Clock,
    deadline: float,
    *,
    shadow: bool,
) -> Deliberation:
    """Hold the debate, ask the trader where an opening would stand, and settle what it cost."""
    config, account = plan.config, answerers.account
    purse = account and account.purse(
        inputs.key, config.agents, submit, monotonic=clock.monotonic, deadline=deadline
    )
    if purse:
        # A partial: the mark on a bound method would land on the function of every purse.
        paid = partial(purse.submit)
        submit = synchronous(paid) if is_synchronous(submit) else paid
    terms: dict[str, Any] = {
        "monotonic": clock.monotonic,
        "reserve": purse.reserve if purse else None,
        "on_event": answerers.about(inputs.key, shadow=shadow),
    }
    left = deadline - clock.monotonic()
    keeps = plan.company is not None and plan.pivotal and left > 2 * CONSULT_SECONDS
    deliberation = agent_framework.deliberate(
        context,
        config,
        submit,
        deadline=deadline - CONSULT_SECONDS if keeps else deadline,
        agents=AGENTS,
        fallback=answerers.fallback or score_chart,
        **terms,
    )
    if plan.company is not None:
        counted = deliberation
        if shadow:
            counted = agent_framework.l1_only_record(context, config, deliberation.source_type)
        opening = thesis.predict_consensus(plan.company, inputs, counted)
        if opening is not None:
            consult = partial(
                agent_framework.consult_trader,
                config=config, submit=submit, deadline=deadline, **terms,
            )  # fmt: skip
            left = deadline - clock.monotonic()
            deliberation = thesis.consulted(
                deliberation, opening, context, config.agents, inputs.profile, consult, left
            )
    return purse.settled(deliberation) if purse else deliberation


def _picture(
    inputs: TickInputs, agents: AgentSettings, left: float, clock: Clock
) -> tuple[bytes | None, tuple[str, ...]]:
    """Return the chart for the roles that ask for one, and a flag when it could not be had."""
    roles = (*(seat.role for seat in seated(agents, AGENTS)), SCORER)
    if agents.picture == "off" or not any(role.picture for role in roles):
        return None, ()
    symbol, timeframe = inputs.instance.symbol, inputs.timeframe
    try:
        if agents.picture == "file":
            picture = screenshot.read_picture(
                agents.picture_file,
                symbol=symbol,
                timeframe=timeframe,
                close_time=inputs.as_of,
                # The age of a file is real time, also where the desk's clock runs faster.
                now=clock.real_now(),
            )
            return picture.data, (picture.flag,) if picture.flag else ()
        drawn = renderer.render(
            inputs.view.frame,
            symbol=symbol,
            timeframe=timeframe,
            digits=inputs.profile.symbol(symbol).digits,
            wait_s=max(0.0, left * PICTURE_SHARE),
        )
    except TimeoutError:
        return None, ("picture:busy",)
    except Exception:
        log.exception("the chart of %s %s could not be drawn", symbol, timeframe)
        return None, ("picture:error",)
    return drawn, ()
