"""The work behind `torra ablate`: judges a finished replay as if its desk had been another.

The words of every agent are in the replay's folder, so no model is asked. Scores and verdicts come
from torra.evaluation.recomposition. To get trades, the recomposed adjustments go through the very
run_tick again, as the words of a debater. A recomposition is exact for analysts with the debate
off; otherwise it is first-order, and its label says so above every figure. Each one is a trial,
logged before it runs: whoever tries many desks and shows the best one shows luck.

An unknown replay, arm or analyst raises ConfigError.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Final, cast

from agent_config import EXPERTS, THIN_CONVICTION
from agents.contracts import (
    ADJUSTMENT_BOUND,
    BLEND_WEIGHT,
    OPINIONS,
    UNHEARD,
    VECTORS,
    WINNERS,
    AgentReport,
    Confidence,
    Winner,
)
from agents.debate.scoring import UNJUDGED, CountedReport, outage, panel_of
from agents.debate.swarm import SPOKEN_LEAST
from agents.evidence import trust
from agents.registry import AGENTS
from torra.clock import System, iso
from torra.config import Profile, validate
from torra.errors import ConfigError
from torra.evaluation.exhibits import MOST_LETTERS
from torra.evaluation.observations import (
    AgentOpinion,
    ArmObservation,
    Four,
    TickObservation,
    side_of,
)
from torra.evaluation.opinion_table import spoke
from torra.evaluation.recomposition import (
    BrainNumbers,
    Changes,
    GateUse,
    Recomposed,
    recompose,
    trusted_on,
)
from torra.evaluation.wording import the_arm, upper_first
from torra.exhibits import report, trade_file
from torra.exhibits.documents import MOST_SUMMARY, Document
from torra.replay import arms, scorecard
from torra.replay.arms import CONTROL, Arm
from torra.replay.caveats import of_the_openings
from torra.replay.folders import made_of, seen_of
from torra.replay.replaying import ReplayPlan, course_of
from torra.replay.runner import AgentSource, run_arm
from torra.replay.shards import arm_words, trials
from torra.replay.shards.arm_words import ArmWords

Progress = Callable[[int, str], AbstractContextManager[Callable[[int], None]]]
"""A progress bar: takes the total and a label, returns a context; its value adds finished steps."""


RECOMPOSED: Final = "recomposed"
NOTE: Final = "Recomposed from what was said."
ALONE: Final = ("arbiter", "judge", "reader")
"""Kinds of whom a desk seats one: a recomposition may leave it out."""

FIRST_ORDER: Final = "first-order: "
"""Prefix of the label of a recomposition that is not exact."""


def quiet(total: int, label: str) -> AbstractContextManager[Callable[[int], None]]:
    """Return a progress that tells nobody."""
    del total, label
    return nullcontext(lambda _: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomposeRequest:
    """What is asked of a recomposition, in the words of the command's options.

    None and "" leave the number as recorded, and every analyst in; with `flat` the experts of a
    swarm all count alike.
    """

    arm: str
    keep: str = ""
    drop: str = ""
    no_debate: bool = False
    flat: bool = False
    gate: GateUse = "recorded"
    bound: float | None = None
    blend: float | None = None
    buy: float | None = None
    sell: float | None = None
    weights: str = ""


@dataclass(frozen=True, slots=True)
class Recomposition(report.Reported):
    """A recorded arm, its recomposition and L1 alone, with the document of them."""

    arms: tuple[ArmObservation, ...]
    exact: bool
    label: str
    document: Document
    where: ClassVar = "Plots and every table: --report FILE."

    def trades(self) -> str:
        """Return the trades of every arm as CSV."""
        return trade_file.as_csv(self.arms)


def recomposed(
    home: Path, name: str, asked: RecomposeRequest, *, progress: Progress
) -> Recomposition:
    """Recompose an arm of a replay; raises ConfigError naming what to mend."""
    arm = asked.arm
    plan = made_of(home, name)
    recorded = seen_of(home, plan, arm)
    arm = recorded.name
    drop = _names(asked.drop)
    case = _case(drop & _of_kind(recorded, "researcher"))
    alone = {kind: drop & _of_kind(recorded, kind) for kind in ALONE}
    changes = Changes(
        analysts=_analysts(
            recorded, _names(asked.keep), drop - {case} - frozenset().union(*alone.values())
        ),
        researchers=not asked.no_debate,
        researcher=case,
        arbiter=not alone["arbiter"],
        judge=not alone["judge"],
        reader=not alone["reader"],
        flat=asked.flat,
        gate=asked.gate,
        bound=ADJUSTMENT_BOUND if asked.bound is None else asked.bound,
        blend=BLEND_WEIGHT if asked.blend is None else asked.blend,
    )
    profile = _changed(plan.profile, (asked.buy, asked.sell), asked.weights)
    # Before it runs: a trial whose result disappoints counts as well.
    tried = trials.log(
        home, plan.history.symbol, [_trial(plan, arm, changes, profile)], f"recompose {name} {arm}"
    )
    with progress(2 * len(recorded.ticks), f"{name} {arm}") as forward:
        return run(plan, recorded, changes, profile, tried=tried, on_ticks=forward)


def _trial(plan: ReplayPlan, arm: str, changes: Changes, profile: Profile) -> str:
    """Return the name of a recomposition in the log of trials."""
    settings = {
        **plan.identity(arms.ARMS[arm]),
        # Another version of the program is no other trial.
        "program": "",
        "profile": arms.ARMS[arm].profile(profile).digest(),
        **{one.name: getattr(changes, one.name) for one in dataclasses.fields(changes)},
        # A set has another order in each process.
        "analysts": None if changes.analysts is None else sorted(changes.analysts),
    }
    symbol, digest = plan.history.symbol, plan.history.digest
    return trials.name_of(RECOMPOSED, symbol, digest, settings)


def _analysts(
    recorded: ArmObservation, keep: frozenset[str], drop: frozenset[str]
) -> frozenset[str] | None:
    """Return the analysts that are kept, None for all; raises ConfigError for a stranger.

    The message names who can be left out.
    """
    known = {one.agent_id for tick in recorded.ticks for one in tick.opinions}
    analysts = _of_kind(recorded, "analyst")
    strangers = sorted((keep | drop) - analysts)
    if strangers:
        hint = "; --no-debate leaves researchers out" if strangers[0] in known else ""
        there = f"there are {', '.join(sorted(analysts))}" if analysts else "it has none"
        others = [*sorted(_of_kind(recorded, "researcher"))]
        others += [name for kind in ALONE for name in _of_kind(recorded, kind)]
        also = f"; --drop also takes {', '.join(others)}" if others else ""
        raise ConfigError(f"{strangers[0]} is no analyst of {recorded.name}; {there}{also}{hint}")
    return frozenset((keep or analysts) - drop) if keep or drop else None


def _case(drop: Collection[str]) -> str:
    """Return the researcher that is left out, "" for none; raises ConfigError for both."""
    cases = sorted(drop)
    if len(cases) > 1:
        raise ConfigError(f"--drop {','.join(cases)}: --no-debate leaves both researchers out")
    return "".join(cases)


def _of_kind(recorded: ArmObservation, kind: str) -> set[str]:
    return {one.agent_id for tick in recorded.ticks for one in tick.opinions if one.kind == kind}


def _names(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def run(
    plan: ReplayPlan,
    recorded: ArmObservation,
    changes: Changes,
    profile: Profile,
    *,
    tried: int,
    on_ticks: Callable[[int], None] = lambda _: None,
) -> Recomposition:
    """Recompose an arm of a replay with the thresholds and weights of `profile`.

    `tried` is how many configurations were ever tried on the symbol, this one among them.
    """
    changes = dataclasses.replace(changes, brain=BrainNumbers.of(profile))
    found = recompose(recorded, changes, BrainNumbers.of(plan.profile))
    if not changes.arbiter:
        found = dataclasses.replace(found, ticks=unjudged(found.ticks, profile))
    ticks = tuple(of_a_swarm(tick, changes, profile) for tick in found.ticks)
    found = dataclasses.replace(found, ticks=ticks)
    course = course_of(plan)
    words = {
        (tick.timeframe, iso(tick.bar_time)): _words(tick, changes.blend, part)
        for tick, part in zip(found.ticks, _parts(found.ticks, changes, plan), strict=True)
    }
    other = Arm(RECOMPOSED, found.label, "placebo")
    told = run_arm(
        course,
        other,
        arms.spoken_by(profile, recorded.name),
        AgentSource(debater=arm_words.speaking(words, NOTE), provider=RECOMPOSED),
        commission=plan.costs.commission,
        on_ticks=on_ticks,
    )
    # No agent was asked in this run: its opinions are the recorded ones.
    told = dataclasses.replace(told, ticks=_with_opinions(told.ticks, found.ticks))
    # L1 anew: the recorded control ran with the old thresholds and weights.
    control = run_arm(
        course,
        arms.ARMS[CONTROL],
        arms.control_of(profile, [arms.ARMS[recorded.name]]),
        AgentSource(),
        commission=plan.costs.commission,
        on_ticks=on_ticks,
    )
    shown = (control, recorded, told)
    told_apart = differences(plan.profile, recorded, changes, profile)
    exhibits = scorecard.exhibits(
        shown,
        {plan.history.symbol: plan.history.frames},
        profile=profile,
        trials=tried,
        seed=plan.seed,
        commission=plan.costs.commission,
    )
    document = report.document(
        plan.name,
        "replay",
        _title(f"{_who(recorded)}, changed ({plan.name}): {', '.join(told_apart)}"),
        _summary(recorded, told_apart, found.label),
        (found.ticks[0].bar_time, found.ticks[-1].close_time),
        [arm.name for arm in shown],
        exhibits,
        [*_first_order(found), *of_the_openings(shown, profile)],
        System().real_now(),
    )
    return Recomposition(shown, found.exact, found.label, document)


# --- conviction anew ------------------------------------------------------------------------------


WORDS: Final[tuple[Confidence, ...]] = ("high", "medium", "low")
FLAGS: Final[tuple[tuple[str, ...], ...]] = ((), ("ungrounded",))
TOLD: Final[Mapping[float, tuple[Confidence, tuple[str, ...]]]] = {
    trust(AgentReport("", {}, word, flags=flags)): (word, flags)
    for word, flags in product(WORDS, FLAGS)
}
"""A confidence and flags that lend a report its trust."""


def unjudged(ticks: Sequence[TickObservation], profile: Profile) -> tuple[TickObservation, ...]:
    """Return ticks with the conviction that their desk would have had without an arbiter."""
    return tuple(
        tick
        if tick.shadow
        else dataclasses.replace(
            tick,
            conviction=conviction(
                tick, side_of(tick.verdict, tick.consensus), profile, arbiter=False
            ),
        )
        for tick in ticks
    )


def of_a_swarm(tick: TickObservation, changes: Changes, profile: Profile) -> TickObservation:
    """Return a tick of a swarm with the conviction of those who are left; others as they are.

    Its budget and weights are those that the recomposition left (TickSeen.swarm).
    """
    if tick.swarm is None or tick.shadow or not tick.opinions:
        return tick
    kept = tuple(one for one in tick.opinions if _stays(one, changes))
    less = dataclasses.replace(tick, opinions=kept)
    side = side_of(tick.verdict, tick.consensus)
    return dataclasses.replace(tick, conviction=conviction(less, side, profile))


def _stays(one: AgentOpinion, changes: Changes) -> bool:
    """Return whether an agent of a swarm keeps its seat."""
    if one.kind == "analyst":
        return changes.analysts is None or one.agent_id in changes.analysts
    return {"judge": changes.judge, "reader": changes.reader}.get(one.kind, True)


def conviction(
    tick: TickObservation, side: str, profile: Profile, *, arbiter: bool = True
) -> float:
    """Return the share, 0 to 1, that the desk's agreement leaves of an opening BUY or SELL.

    Without the `arbiter` it is as of a desk at which none sits.
    """
    # An outage's share, and that of a debate which was not held, hang on nobody's word.
    if tick.source_type in UNHEARD or _unheld(tick):
        return tick.conviction
    heard = [one for one in tick.opinions if one.answered and one.kind in OPINIONS]
    failed = [one.agent_id for one in tick.opinions if not one.answered and one.kind in OPINIONS]
    judged = _judge_report(tick.opinions) if arbiter else None
    answers = [CountedReport(AGENTS[one.agent_id].role, _report(one)) for one in heard]
    if failed and all(one.report.abstained for one in answers):
        kept = [AGENTS[one.agent_id] for one in tick.opinions if one.kind in OPINIONS]
        return min(tick.conviction, outage(kept, 1.0).buy.conviction)
    trusted = dict(zip(EXPERTS, trusted_on(tick), strict=False))
    spoken = sum(one.role.kind == "analyst" and not one.report.abstained for one in answers)
    thin = tick.swarm is not None and spoken < SPOKEN_LEAST
    most = THIN_CONVICTION if thin else 1.0
    weights, cost = profile.debate().weights, profile.agents.none_cost
    found = panel_of(answers, failed, weights, judged, trusted, most, cost)
    return found.agreement(side).conviction


def _unheld(tick: TickObservation) -> bool:
    """Tell whether a firm was below its quorum: its arbiter sits there without a case."""
    kinds = {one.kind for one in tick.opinions}
    return "arbiter" in kinds and "researcher" not in kinds


def _judge_report(opinions: Iterable[AgentOpinion]) -> AgentReport | None:
    told = [one for one in opinions if one.kind in ("arbiter", "judge")]
    if not told:
        return None
    heard = [one for one in told if one.answered]
    return _report(heard[0]) if heard else UNJUDGED


def _report(one: AgentOpinion) -> AgentReport:
    if not spoke(one):
        return AgentReport.abstain(one.agent_id, "")
    word, flags = TOLD.get(one.trust, (WORDS[0], ()))
    moves = dict(zip(VECTORS, one.adjustments, strict=True))
    winner = one.winner if one.winner in WINNERS else ""
    return AgentReport(one.agent_id, moves, word, flags=flags, winner=cast(Winner, winner))


def _first_order(found: Recomposed) -> list[str]:
    """Return the warning that a recomposition is not exact, if it is not."""
    return [] if found.exact else [f"First order only: {found.label.removeprefix(FIRST_ORDER)}."]


def differences(
    before: Profile, recorded: ArmObservation, changes: Changes, after: Profile
) -> tuple[str, ...]:
    """Return in words what a recomposition changes from one profile to the other."""
    told = []
    if changes.analysts is not None:
        told += [
            f"without {name}" for name in sorted(_of_kind(recorded, "analyst") - changes.analysts)
        ]
    told += [] if changes.researchers else ["no debate"]
    told += [f"without {changes.researcher}"] if changes.researcher else []
    told += [] if changes.arbiter else ["without the research manager"]
    told += [] if changes.judge else ["without the judge"]
    told += [] if changes.reader else ["without the reader of the regime"]
    told += ["all experts alike"] if changes.flat else []
    told += [] if changes.gate == "recorded" else [f"gate {changes.gate}"]
    told += [] if changes.bound == ADJUSTMENT_BOUND else [f"bound {changes.bound:g}"]
    told += [] if changes.blend == BLEND_WEIGHT else [f"blend {changes.blend:g}"]
    old, new = before.thresholds, after.thresholds
    told += [] if new.buy == old.buy else [f"BUY {new.buy:g}"]
    told += [] if new.sell == old.sell else [f"SELL {new.sell:g}"]
    weights, held = (one.sentiment_weights.model_dump() for one in (after, before))
    told += [f"{name} {value:g}" for name, value in weights.items() if value != held[name]]
    return tuple(told) or ("nothing changed",)


def _title(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 4]} ..."


def _summary(recorded: ArmObservation, told_apart: Sequence[str], label: str) -> str:
    changed = _title(", ".join(told_apart))
    beside = "beside L1 with the same weights and thresholds"
    return f"{_who(recorded)}, {changed}, {beside}; {label}."[:MOST_SUMMARY]


def _who(arm: ArmObservation) -> str:
    return upper_first(the_arm(arm.name, [arm.name]))


def _parts(ticks: Sequence[TickObservation], changes: Changes, plan: ReplayPlan) -> list[float]:
    """Return the agents' part of the rules' multiplier on each tick; 1.0 with the gate off."""
    if changes.gate == "off":
        return [1.0] * len(ticks)
    return arm_words.agents_part(ticks, plan.profile.gate)


def _words(tick: TickObservation, blend: float, part: float) -> ArmWords:
    """Return a tick's recomposed words, with the size that they leave of an opening."""
    # run_tick blends with BLEND_WEIGHT: scaled words come out as with the other blend.
    scale = blend / BLEND_WEIGHT
    return ArmWords(
        _scaled(tick.adjustments, scale),
        arm_words.stopped(tick),
        _scaled(tick.debate, scale),
        multiplier=part,
        conviction=tick.conviction,
    )


def _scaled(values: Four, scale: float) -> Four:
    first, second, third, fourth = (value * scale for value in values)
    return first, second, third, fourth


def _with_opinions(
    ran: Sequence[TickObservation], recomposed: Sequence[TickObservation]
) -> tuple[TickObservation, ...]:
    """Return the ticks that ran, with what the agents had said on them."""
    said = {tick.key: tick.opinions for tick in recomposed}
    return tuple(dataclasses.replace(tick, opinions=said.get(tick.key, ())) for tick in ran)


def _changed(
    profile: Profile, thresholds: tuple[float | None, float | None], weights: str
) -> Profile:
    """Return the profile with these thresholds of BUY and SELL and these five weights.

    None and "" leave them as recorded.
    """
    values: dict[str, Any] = json.loads(profile.model_dump_json())
    for side, value in zip(("buy", "sell"), thresholds, strict=True):
        if value is not None:
            values["thresholds"][side] = value
    if weights:
        names = list(values["sentiment_weights"])
        wanted = f"--weights {weights}: write {len(names)} numbers: {', '.join(names)}"
        try:
            given = [float(part) for part in weights.split(",")]
        except ValueError as error:
            raise ConfigError(wanted) from error
        if len(given) != len(names):
            raise ConfigError(wanted)
        values["sentiment_weights"] = dict(zip(names, given, strict=True))
    return validate(Profile, values, "the command line")
