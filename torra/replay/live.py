"""The scorecard of a running desk: its own ticks and trades, beside what L1 alone would have done.

Nothing is run again and no model is asked. The ticks are those of the journal that ran with the
profile's present setting, the trades those that were made. The control arm is on every row: L1's
own scores, consensus and verdict were stored beside the final ones. L1's trades were never sent. On
ticks in shadow they are the desk's own; else they are those that the stored bars would have given
on paper (torra.replay.l1.sweep). Agents that only looked on are judged by the verdicts that their
recorded adjustments would have made; such an arm has no trades.

A desk of several profiles without a symbol, and a text that is no time, raise ConfigError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pandas as pd

from agent_config import GateSettings
from agents.contracts import OfficerReason
from agents.risk_officer import NO_ROWS, RiskOverlay
from instance_database import Database, open_home
from torra.clock import System, duration, iso
from torra.config import DeskSettings, Instance, load_desk, load_profile
from torra.desk import promotion
from torra.desk.promotion import PromotionSubject
from torra.errors import ConfigError
from torra.evaluation.exhibits import Exhibit
from torra.evaluation.observations import (
    NOTHING,
    ArmObservation,
    SwarmObservation,
    TickObservation,
    TradeObservation,
)
from torra.evaluation.promotion_evidence import has_opinion
from torra.evaluation.promotion_rule import LOOKS
from torra.evaluation.recomposition import BrainNumbers, Changes, recompose
from torra.evaluation.wording import count
from torra.exhibits import report, trade_file
from torra.exhibits.documents import FOLDER, MOST_SUMMARY, Document, allowed
from torra.exhibits.outcome import outcome
from torra.home import has_database
from torra.overlay import judged
from torra.replay import scorecard
from torra.replay.caveats import of_the_openings, thresholds_told
from torra.replay.l1.sweep import L1Backtest
from torra.replay.l1.trades import END
from torra.replay.l1.verdicts import micros
from torra.replay.shards import trials
from torra.replay.shards.history import moment
from torra.replay.shards.seen import trade_seen
from torra.store import hosted as hosted_table
from torra.store import standings as standing_table
from torra.store import tick_queries
from torra.store.hosted import is_hosted
from torra.store.standings import WarmUps
from torra.store.trade.positions import BY_HAND
from torra.tick.marks import INVENTED

CALLED: Final = "scorecard"
"""Prefix of the names of a desk's own scorecards; no replay may have it."""

FINAL: Final = "final"
WOULD_BE: Final = "recomposed"
"""Names of the desk's own chain, and of the one that agents in shadow would have made."""

OF_TRADES: Final = frozenset(("claims", "arms", "sharpe", "paired-days", "gate", "criteria"))
"""Exhibits that need trades or actions; agents in shadow have none."""

ROWS: Final = frozenset(OfficerReason) - {OfficerReason.NEGATIVE_EV, OfficerReason.JUDGE_HOLD}
"""The rows of the risk officer that no agent's word is in."""

NO_TICK: Final = (
    "This desk has run no tick yet: start it with torra run. The first look takes "
    f"{LOOKS[0]:,} ticks with agents."
)
NO_AGENT: Final = (
    f"No ticks with agents yet: 0 of the {LOOKS[0]:,} that the first look takes. Those of other "
    "settings do not count."
)
"""Why there is no scorecard."""

NO_TRADES: Final = "Agents sent no order here, so they are judged by what they said, not in money."
"""The sentence of a scorecard without trades of agents."""

Frames = Mapping[str, Mapping[str, pd.DataFrame]]

Exclusions = Mapping[str, Sequence[TradeObservation]]
"""Trades that no figure has, by the reason."""


@dataclass(frozen=True, slots=True)
class WarmedUp:
    """How many ticks and trades of a scorecard were made in warm-up."""

    ticks: int = 0
    trades: int = 0


@dataclass(frozen=True, slots=True)
class Scorecard:
    """A desk's own scorecard of one profile, `document` None while there is nothing to show.

    `says` is one sentence; `heard` how many ticks agents were heard on, `warmed` how many of all
    were run in warm-up, `left_out` how many trades no figure has.
    """

    subject: PromotionSubject
    arms: tuple[ArmObservation, ...]
    exhibits: tuple[Exhibit, ...]
    heard: int
    says: str
    document: Document | None = None
    warmed: WarmedUp = WarmedUp()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs: with every figure where there is a document."""
        told = None if self.document is None else self.document.model_dump(mode="json")
        return {
            "profile": self.subject.name,
            "instances": [instance.id for instance in self.subject.instances],
            "ticks_with_agents": self.heard,
            "warm_up": {"ticks": self.warmed.ticks, "trades": self.warmed.trades},
            "left_out": self.left_out,
            "says": self.says,
            "document": told,
        }


def scored(
    home: Path, symbol: str | None = None, begin: str | None = None, end: str | None = None
) -> Scorecard:
    """Return the scorecard of a desk, of one instance where a symbol or name is given.

    Its document goes to the page Replays as well. Raises ConfigError for a desk of several profiles
    without a symbol, and for a time that is none.
    """
    start, last = moment("--from", begin), moment("--to", end)
    if symbol is not None and is_hosted(symbol):
        return _of_a_host(home, symbol, start, last)
    settings = load_desk(home)
    subject = _subject(home, settings, symbol)
    if not has_database(home):
        return nothing_yet(subject, NO_TICK)
    with closing(open_home(home)) as database:
        found = made(database, subject, trials_of(home, subject), start, last, symbol)
    _keep(home, found)
    return found


def _keep(home: Path, found: Scorecard) -> None:
    """Write a scorecard's document for the page Replays, and its trades beside it."""
    if found.document is None:
        return
    # before the document: a page that links to trades must find them
    folder = home / FOLDER / found.document.name
    report.put(folder / trade_file.FILE, trade_file.as_csv(found.arms))
    report.write(home, found.document, overwrite=True)


def _of_a_host(home: Path, name: str, start: datetime | None, end: datetime | None) -> Scorecard:
    """Return the scorecard of another program's stream, which sends nothing."""
    if not has_database(home):
        raise ConfigError(f"{home} has no database yet, and so no stream {name}")
    with closing(open_home(home)) as database:
        subject = judged.subject_of(database, name)
        told = judged.reported_outcomes(hosted_table.hosted_outcomes(database, name)).says
        tried = trials_of(home, subject)
        found = made(database, subject, tried, start, end, name, told=(told,))
    _keep(home, found)
    return found


def made(
    database: Database,
    subject: PromotionSubject,
    tried: int = 1,
    start: datetime | None = None,
    end: datetime | None = None,
    symbol: str | None = None,
    *,
    told: Sequence[str] = (),
) -> Scorecard:
    """Return the scorecard of the ticks of a profile that closed in [start, end].

    `symbol` is the one that was named, None for the whole profile; the document's name has it too.
    `told` are sentences more to be read before the figures.
    """
    final = arm_seen(database, subject, start, end)
    heard = sum(map(has_opinion, final.ticks))
    if not heard:
        return nothing_yet(subject, _why_none(database, subject, start, end))
    frames = frames_of(database, subject, final.ticks)
    left = exclusions(database, final)
    arms = arms_of(final, subject, frames, left)
    exhibits = scorecard.exhibits(arms, frames, profile=subject.profile, trials=tried)
    # Agents in shadow sent nothing: an exhibit of trades would be about none.
    if arms[-1].name == WOULD_BE or _of_hosts(subject):
        exhibits = tuple(one for one in exhibits if one.name not in OF_TRADES)
    warmed = warmed_of(database, final)
    notes = [*warnings(final, subject), *_of_the_warm_up(final, warmed)]
    notes += [f"{exclusion_words(left).capitalize()}."] if left else []
    names = [arm.name for arm in arms]
    came_to = outcome(exhibits, names)
    debated = f"{heard:,} of {len(final.ticks):,} ticks were debated."
    says = f"{came_to.sentence if came_to else NO_TRADES} {debated}"
    document = report.document(
        document_name(subject, symbol),
        "scorecard",
        f"{', '.join(instance.id for instance in subject.instances)}: profile {subject.name}",
        says[:MOST_SUMMARY],
        (final.ticks[0].bar_time, final.ticks[-1].close_time),
        names,
        exhibits,
        [*told, *notes],
        System().real_now(),
        {"profile": subject.name, "thresholds": thresholds_told(subject.profile)},
    )
    counted = {why: len(some) for why, some in left.items()}
    return Scorecard(subject, arms, exhibits, heard, says, document, warmed, counted)


def nothing_yet(subject: PromotionSubject, why: str = NO_AGENT) -> Scorecard:
    """Return the scorecard of a profile whose agents have not been heard, and why there is none."""
    return Scorecard(subject, (), (), 0, why)


def _why_none(
    database: Database, subject: PromotionSubject, start: datetime | None, end: datetime | None
) -> str:
    """Return why no tick with agents was found in [start, end]."""
    every = promotion.ticks_of(database, subject)
    closes = [tick.close_time for tick in every if has_opinion(tick)]
    if closes and not (start is None and end is None):
        return (
            f"No ticks with agents in that period; there are {len(closes):,} from "
            f"{iso(closes[0])} to {iso(closes[-1])}."
        )
    names = [instance.id for instance in subject.instances]
    return NO_AGENT if tick_queries.verdict_tallies(database, names) else NO_TICK


def document_name(subject: PromotionSubject, symbol: str | None = None) -> str:
    """Return the name of a scorecard's file: by its profile, and the symbol if one is named.

    A name that is too long for a file is cut to its symbol, or to the word itself.
    """
    named = () if symbol is None else (f"{CALLED}-{subject.name}-{symbol}", f"{CALLED}-{symbol}")
    names = named or (f"{CALLED}-{subject.name}",)
    return next((name for name in names if allowed(name)), CALLED)


# --- the arms -------------------------------------------------------------------------------------


def arm_seen(
    database: Database,
    subject: PromotionSubject,
    start: datetime | None = None,
    end: datetime | None = None,
    name: str = FINAL,
) -> ArmObservation:
    """Return what the journal holds of a profile's instances as one arm.

    Ticks that closed in [start, end] and ran with the profile's setting of now, and the closed
    trades that they decided, but for those that are left out.
    """
    ticks = promotion.ticks_of(database, subject, start, end)
    if not ticks:
        return ArmObservation(name, (), (), capital=subject.profile.risk.capital)
    names = [instance.id for instance in subject.instances]
    span = ticks[0].close_time, ticks[-1].close_time
    return ArmObservation(
        name,
        tuple(ticks),
        tuple(_trades_by_reason(database, ticks).get("", ())),
        capital=subject.profile.risk.capital,
        skipped=standing_table.skipped_between(database, names, *span),
    )


def _trades_by_reason(database: Database, ticks: Sequence[TickObservation]) -> Exclusions:
    """Return the closed trades between some ticks by why they are left out, "" if they are not.

    A person closed it; or its tick ran with other settings, or on invented evidence.
    """
    keys = {(tick.instance, tick.timeframe, iso(tick.bar_time)) for tick in ticks}
    names = sorted({tick.instance for tick in ticks})
    found: dict[str, list[TradeObservation]] = {}
    for row in standing_table.trades_between(
        database, names, ticks[0].close_time, ticks[-1].close_time
    ):
        key = row["instance"], row["timeframe"], row["bar_time"]
        why = "by_hand" if row["close_reason"] == BY_HAND else ""
        if key not in keys:
            record = database.record("|".join(key))
            why = "invented_evidence" if record.get(INVENTED) else "other_settings"
        found.setdefault(why, []).append(trade_seen(row))
    return found


def exclusions(database: Database, final: ArmObservation) -> Exclusions:
    """Return the closed trades between the ticks of `arm_seen` that it has not, by the reason."""
    return {
        why: some for why, some in sorted(_trades_by_reason(database, final.ticks).items()) if why
    }


def exclusion_words(left: Exclusions) -> str:
    """Return which trades are left out, as a part of a sentence; "" where there are none."""
    told = ", ".join(f"{why.replace('_', ' ')} {len(some):,}" for why, some in left.items())
    return f"trades left out: {told}" if told else ""


def _of_hosts(subject: PromotionSubject) -> bool:
    """Return whether a subject is a stream of another program's scorer."""
    return all(is_hosted(instance.id) for instance in subject.instances)


def control_seen(
    final: ArmObservation, trades: Sequence[TradeObservation], name: str = "l1"
) -> ArmObservation:
    """Return L1 alone on the same ticks, from the rows of `final`; `trades` are its own."""
    ticks = tuple(
        replace(
            tick,
            debate=NOTHING,
            adjustments=NOTHING,
            scores=tick.l1,
            consensus=tick.l1_consensus,
            verdict=tick.l1_verdict,
            action="",
            reason="",
            source_type="L1_ONLY",
            multiplier=tick.rule_multiplier,
            veto=tick.rule_veto,
            conviction=1.0,
            calls=0,
            cost_usd=0.0,
            shadow=False,
            opinions=(),
            swarm=tick.swarm and rows_alone(tick.swarm),
        )
        for tick in final.ticks
    )
    return replace(final, name=name, ticks=ticks, trades=tuple(trades))


def rows_alone(told: SwarmObservation) -> SwarmObservation:
    """Return what of a swarm is arithmetic: the officer's rows and the budget of the code's regime.

    Of the sides that stay shut those of a crowded market; a judge's veto is an agent's word.
    """
    reasons = tuple(one for one in told.reasons if one in ROWS)
    shut = tuple(side for side in told.veto_sides if side != told.vetoes) or told.veto_sides
    return SwarmObservation(
        budget=told.plain,
        plain=told.plain,
        storm=told.storm,
        reasons=reasons,
        veto_sides=shut if OfficerReason.CROWDED in reasons else (),
    )


def officer_rows(tick: TickObservation, gate: GateSettings) -> RiskOverlay:
    """Return what the officer's rows leave of an opening of L1, with the budget of its regime."""
    told = rows_alone(tick.swarm) if tick.swarm else None
    if told is None:
        return NO_ROWS
    worn = gate.exhaustion_multiplier if OfficerReason.EXHAUSTION in told.reasons else 1.0
    return RiskOverlay(min(told.storm, told.plain), worn, told.veto_sides)


def arms_of(
    final: ArmObservation, subject: PromotionSubject, frames: Frames, left: Exclusions
) -> tuple[ArmObservation, ArmObservation]:
    """Return L1 alone, and the final chain; in shadow the one that agents would have made."""
    if _of_hosts(subject):
        return control_seen(final, ()), final
    if not all(tick.shadow for tick in final.ticks if tick.opinions):
        return control_seen(final, l1_trades(final, subject, frames, left)), final
    brain = BrainNumbers.of(subject.profile)
    # What they would have sent is not known: actions are those of L1.
    ticks = recompose(final, Changes(counted=True), brain).ticks
    told = tuple(replace(tick, action="", reason="") for tick in ticks)
    return control_seen(final, final.trades), ArmObservation(
        WOULD_BE, told, (), capital=final.capital
    )


def l1_trades(
    final: ArmObservation, subject: PromotionSubject, frames: Frames, left: Exclusions
) -> list[TradeObservation]:
    """Return the trades that L1 alone would have closed on the stored bars, on paper.

    L1 acts on the ticks of `final` alone. For each trade that a person closed the one that L1
    opened on its tick, or held then, is left out too, unless the desk's of that tick counts.
    An instance whose profile uses a calendar has none: bars do not show its events.
    """
    found: list[TradeObservation] = []
    profile = subject.profile
    if profile.execution == "approve":
        # What nobody was asked about has no answer to wait for.
        profile = profile.model_copy(update={"execution": "auto"})
    for instance in subject.instances:
        own = [tick.close_time for tick in final.ticks if tick.instance == instance.id]
        # A calendar kept openings back; bars alone would give trades that L1 never had.
        if not own or profile.events.calendar:
            continue
        # A stream whose feed never gave a bar has none.
        known = frames.get(instance.symbol, {})
        bars = {name: known[name] for name in instance.timeframes if name in known}
        # The ground runs ticks that close after `begin`: the first own one is among them.
        begin = own[0] - timedelta(microseconds=1)
        ground = L1Backtest(instance, bars, begin=begin, end=own[-1])
        rows = {
            (tick.timeframe, micros(tick.close_time)): officer_rows(tick, profile.gate)
            for tick in final.ticks
            if tick.instance == instance.id
        }
        swept = ground.run(profile, rows, alone=True)
        found += [one for one in swept.trades if one.reason != END]
    counted = {(one.instance, one.decided) for one in final.trades}
    for closed in left.get("by_hand", ()):
        held = [
            one
            for one in found
            if one.instance == closed.instance
            and one.decided <= closed.decided <= one.closed
            and (one.instance, one.decided) not in counted
        ]
        for one in held[-1:]:
            found.remove(one)
    return sorted(found, key=lambda one: one.closed)


def frames_of(
    database: Database, subject: PromotionSubject, ticks: Sequence[TickObservation]
) -> dict[str, dict[str, pd.DataFrame]]:
    """Return the stored bars of a profile's instances by symbol and timeframe, all that there are.

    Of two instances with one symbol those of the one with more bars.
    """
    found: dict[str, dict[str, pd.DataFrame]] = {}
    for instance in subject.instances:
        if not any(tick.instance == instance.id for tick in ticks):
            continue
        own = found.setdefault(instance.symbol, {})
        for name in sorted(instance.timeframes, key=duration):
            bars = database.load_bars(instance.id, name, as_of=promotion.FOREVER)
            if len(bars) > len(own.get(name, ())):
                own[name] = bars
    return found


# --- words ----------------------------------------------------------------------------------------


def warmed_of(database: Database, final: ArmObservation) -> WarmedUp:
    """Return how many ticks and trades of an arm were made in warm-up."""
    has = WarmUps(database).has
    return WarmedUp(
        sum(has(tick.instance, tick.timeframe, tick.close_time) for tick in final.ticks),
        sum(has(trade.instance, trade.timeframe, trade.decided) for trade in final.trades),
    )


def _of_the_warm_up(final: ArmObservation, warmed: WarmedUp) -> list[str]:
    """Return what to know of ticks that no running desk made."""
    if not warmed.ticks:
        return []
    ran, traded = len(final.ticks) - warmed.ticks, len(final.trades) - warmed.trades
    return [
        f"Of {count(len(final.ticks), 'tick')} the running desk made {ran:,} and its warm-up "
        f"{warmed.ticks:,}, on bars from before its first start; of "
        f"{count(len(final.trades), 'trade')} the desk made {traded:,} and the warm-up "
        f"{warmed.trades:,}, on paper. The tables have both."
    ]


def warnings(final: ArmObservation, subject: PromotionSubject) -> list[str]:
    """Return the sentences to be read before the figures."""
    shadow = sum(tick.shadow for tick in final.ticks)
    found = []
    if shadow == len(final.ticks):
        found.append(
            "The agents are in shadow: recorded, not counted. They are judged by the verdicts that "
            "they would have made, and by no trade."
        )
    elif shadow:
        found.append(f"On {shadow:,} of {len(final.ticks):,} ticks the agents were in shadow.")
    if _of_hosts(subject):
        found.append(
            "This stream is another scorer's: Torra sends nothing, and judges the verdicts that it "
            "read. What your own trades came to is what you told it."
        )
        return found
    if shadow < len(final.ticks):
        found.append(
            "Trades of the bars alone were never sent: they are those that the stored bars would "
            "have given on paper."
        )
    if subject.profile.events.calendar:
        found.append(
            "The bars alone have no trades here: a calendar kept openings back that bars hide."
        )
    if final.skipped:
        told = ", ".join(f"{number} {reason}" for reason, number in final.skipped.items())
        found.append(f"Ticks that were not run: {told}.")
    return [*found, *of_the_openings([final], subject.profile)]


def trials_of(home: Path, subject: PromotionSubject) -> int:
    """Return how many configurations were ever tried on a profile's symbols; at least 1."""
    symbols = {instance.symbol for instance in subject.instances}
    return max(1, sum(trials.count(home, symbol) for symbol in symbols))


def subjects(home: Path, settings: DeskSettings) -> tuple[PromotionSubject, ...]:
    """Return the profiles of a desk as the promotion rule knows them."""
    known = {item.profile: load_profile(item.profile, home) for item in settings.instances}
    return promotion.subjects_of((item, known[item.profile]) for item in settings.instances)


def _subject(home: Path, settings: DeskSettings, symbol: str | None) -> PromotionSubject:
    if symbol is not None:
        one: Instance = settings.instance(symbol)
        return PromotionSubject(one.profile, load_profile(one.profile, home), (one,))
    found = subjects(home, settings)
    if len(found) == 1:
        return found[0]
    told = ", ".join(instance.id for subject in found for instance in subject.instances)
    raise ConfigError(
        f"this desk has {len(found)} profiles, and a scorecard is of one: name one of {told}"
    )
