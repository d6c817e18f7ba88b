"""What a tick decides: scores, verdict, action and signal, in one transaction.

`decide` stores all that a tick leaves behind, and returns it. All of it is kept or none of it: a
claim that is another desk's by now, or a store that fails, raises StoreUnavailable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

import signal_bridge
from agent_config import JUDGE_ID
from agents.debate.deliberation import Deliberation
from instance_database import ConsensusResult, TickKey
from torra.clock import duration, iso
from torra.failpoints import failpoint
from torra.lessons.facts import situation_of
from torra.lessons.lesson import Judgement, Thesis
from torra.store.trade.rows import OrderRequest
from torra.tick import approval, vetoed
from torra.tick import record as tick_record
from torra.tick.edges import TickDeps
from torra.tick.marks import EXECUTION_OFF, PROPOSED
from torra.tick.record import TickDebate, TickInputs, TickResult
from torra.tick.tick_database import TickDatabase
from torra.verdict import risk_engine, sentiment_rules
from torra.verdict.risk_engine import CLOSES, Account, Action, Decision, SignalDraft, intent
from torra.verdict.signal_states import EXECUTED, signal_life
from torra.verdict.vetoed import VetoedOpening

BY_JUDGE: Final = "JUDGE"
"""Reason of an action that a judge asks for."""

NO_EXPOSURE: Final[Mapping[str, Any]] = MappingProxyType(
    {"positions_open": 0, "gross_notional": 0.0, "day_loss": 0.0}
)
"""Stands for the account at a HOLD, which asks nothing of it, when no record is kept."""


def decide(
    inputs: TickInputs,
    debated: TickDebate,
    edges: TickDeps,
    due: float,
    deadline: float,
    *,
    stored: set[TickKey],
) -> tuple[Mapping[str, Any] | None, TickResult]:
    """Store a tick with what follows from it; return its record, where one is wanted, and values.

    `stored` are the ticks of the same close that were stored since this one looked; it is added to
    them. Where there are any, its record has how the instance stood between the two, and the step
    that had come last when it looked.
    """
    database, instance, key = edges.database, inputs.instance, inputs.key
    profile, deliberation = inputs.profile, debated.deliberation
    figures = edges.route.figures(instance.id) if edges.route else {}  # files, and no lock held
    with edges.write(deadline):
        # First: a desk whose lock was deleted may find its tick run by another one.
        database.require_claim(key)
        if stored and edges.recorded:
            earlier = {"path": inputs.before["path"], "looked": inputs.before["signal_event"]}
            inputs = replace(inputs, before={**database.standing(instance.id), **earlier})
        # What came meanwhile is decided by too: a report of a bridge, a person's close.
        stands = database.standing(instance.id)["signal_event"] if edges.recorded else None
        saved = database.save_sentiment(
            debated.gated,
            key=key,
            close_time=inputs.as_of,
            ath=inputs.ath_score,
            l1=inputs.l1,
            ungated=debated.ungated,
            source_type=deliberation.source_type,
            profile=profile,
            deliberation=tick_record.stored_deliberation(deliberation) if edges.recording else None,
            timeframes=instance.timeframes,
        )
        failpoint("saved")
        # Taken after the wait for the lock: a tick that waited long decides as late as it is.
        now = edges.clock.now()
        desk: dict[str, Any] = {
            # Asked inside the transaction: a halt that came during the debate holds.
            "trading_state": edges.trading_state(),
            "exposure": NO_EXPOSURE,
        }
        # A HOLD asks nothing of the account: without a record it is not read.
        if edges.recorded or saved.verdict != "HOLD":
            desk["exposure"] = {**_exposure(inputs, database), **figures}
        decision, action = _review(inputs, debated, saved, database, desk)
        # In the same transaction: the halt of a runaway cannot be lost beside its tick.
        if action.halt is not None:
            database.halt(f"{action.halt} of {instance.id} {key.timeframe} at {iso(inputs.as_of)}")
        begun = vetoed.note(inputs, saved, action, debated.counted.ruling, database)
        proposed: tuple[SignalDraft, ...] = ()
        # After the review, so that the record still says what the checks thought of it.
        if profile.execution == "off" and action.drafts:
            action = Action("HOLD", EXECUTION_OFF, denied=action.denied)
        elif profile.execution == "approve" and action.drafts:
            proposed = action.drafts
            if not database.proposal_waits(key, now):
                approval.propose(
                    database, action, decision, key=key, symbol=instance.symbol, created=now,
                    expires=approval.expiry(inputs.as_of, inputs.timeframe, edges.clock),
                )  # fmt: skip
            action = Action("HOLD", PROPOSED, denied=action.denied)
        life = signal_life(inputs.timeframe)
        signals = tuple(
            signal_bridge.write_signal(
                database,
                draft,
                instance=instance.id,
                symbol=instance.symbol,
                timeframe=inputs.timeframe,
                bar_time=inputs.bar_time,
                created=now if now - inputs.as_of > life else inputs.as_of,
                expires=max(inputs.as_of, now) + life,
                authority="tick",
                bridge=instance.route,
            )
            for draft in action.drafts
        )
        drafts = (*action.drafts, *proposed)
        _ask_to_close(inputs, debated, decision, drafts, edges, now)
        _keep_situation(inputs, drafts, begun, deliberation, database)
        # The record holds its own time, so it is taken before the record is written.
        elapsed = (edges.clock.monotonic() - due) * 1000.0
        desk |= {"decided": iso(now), "signal_event": stands}
        result = TickResult(inputs, debated, saved, action, signals, desk, elapsed, proposed)
        record = tick_record.build(result, edges.provider) if edges.recorded else None
        database.note_lesson_uses(key.text, inputs.lessons.note_numbers)
        if inputs.news is not None and not inputs.invented:
            database.store_news(entry.item for entry in inputs.news.items)
        if record is not None and edges.recording:
            database.write_journal(key, record)
        failpoint("recorded")
        database.write_calls(key, deliberation.calls)
        if debated.picture is not None:
            database.store_picture(debated.picture)
        database.finish_tick(key)
        # Inside the transaction: the next one of the close may begin as soon as this one ends.
        stored.add(key)
        failpoint("finished")
    return record, result


def _exposure(inputs: TickInputs, database: TickDatabase) -> Mapping[str, Any]:
    """Return the account as an opening would meet it, as far as the store knows."""
    name, timeframe, _ = inputs.key
    met = database.exposure(name, timeframe, as_of=inputs.as_of)
    if not inputs.profile.risk.leverage_caps:
        return met
    # Before the rest: a tick that is run again has it among the exposure that it met.
    return {"levered": database.levered(name, timeframe, inputs.instance.route), **met}


def _review(
    inputs: TickInputs,
    debated: TickDebate,
    saved: ConsensusResult,
    database: TickDatabase,
    desk: Mapping[str, Any],
) -> tuple[Decision, Action]:
    instance, profile, side = inputs.instance, inputs.profile, saved.verdict
    counted, ruling = debated.counted, debated.counted.ruling
    outer = (saved.low_consensus, saved.high_consensus)
    before = database.latches(instance.id)
    latched = sentiment_rules.release_latch(before, outer, profile.thresholds)
    position = database.position(instance.id)
    known = dict(desk["exposure"])
    decision = Decision(
        verdict=side,
        price=inputs.close,
        atr=inputs.atr,
        # Gate, conviction and budget are at most 1: the desk can only shrink an opening.
        multiplier=ruling.multiplier if side == "HOLD" else counted.size_share(side),
        veto=ruling.vetoes(side) or side in latched,
        declined=counted.declined == side,
        opening_stands=sentiment_rules.opening_stands(side, *outer, profile.thresholds),
        # The market's own, where a broker quotes: it stands among what the broker says.
        last_price=known.pop("last_price", None),
        bar_age=max(0.0, (inputs.now - inputs.as_of) / duration(inputs.timeframe)),
        # This very decision is in the outbox already.
        duplicate=side != "HOLD" and database.signal(vetoed.opening_id(inputs, side)) is not None,
    )
    account = Account(trading_state=desk["trading_state"], **known)
    spec = profile.symbol(instance.symbol)
    action = risk_engine.review(decision, position, account, spec, profile)
    declined = counted.declined
    # Only the sides that were objected to: a veto of one side does nothing to the other one.
    vetoes = [side for side in sentiment_rules.SIDES if ruling.vetoes(side) or side == declined]
    if not before and not vetoes:
        return decision, action
    openings = [
        side
        for side in sentiment_rules.SIDES
        if any(leg.kind == "open" for leg in intent(side, position, profile.on_opposite).legs)
    ]
    latched = sentiment_rules.veto_latch(
        latched, outer, profile.thresholds, vetoes=vetoes, openings=openings
    )
    # A tick that trades nothing (off, or a late bar) must not latch or free later ones.
    if profile.execution == "off":
        return decision, action
    for side in sorted(before ^ latched):
        database.set_latch(instance.id, side, side in latched)
    return decision, action


def _keep_situation(
    inputs: TickInputs,
    drafts: Sequence[SignalDraft],
    begun: VetoedOpening | None,
    deliberation: Deliberation,
    database: TickDatabase,
) -> None:
    """Keep the market of an opening, for the lesson of its end: sent, proposed or vetoed."""
    sides = {draft.side for draft in drafts if draft.kind == "open"}
    sides |= {begun.side} if begun else set()
    if not sides:
        return
    judgements = (
        Judgement(report.winner, report.counter, report.win_share)
        for report in deliberation.reports
        if report.win_share is not None
    )
    situation = replace(
        situation_of(inputs.bundle.features, inputs.l1), judgement=next(judgements, None)
    )
    trader = deliberation.consulted
    for sid, side in sorted((vetoed.opening_id(inputs, side), side) for side in sides):
        report = trader.report if trader and trader.side == side else None
        thesis: Thesis | None = None
        if trader is not None and report is not None:
            thesis = Thesis(
                report.claim, report.falsifiers, report.risks, report.horizon_bars, trader.tier,
                report.declined,
            )  # fmt: skip
        database.keep_situation(sid, replace(situation, thesis=thesis))


def _ask_to_close(
    inputs: TickInputs,
    debated: TickDebate,
    decision: Decision,
    drafts: Sequence[SignalDraft],
    edges: TickDeps,
    now: datetime,
) -> None:
    """Write the close that a judge asks for as a proposal, whatever the desk does by itself.

    Nothing is ever sent for it without a person's yes. A position that is being closed, or that
    another proposal would close, needs no second one.
    """
    reports = debated.counted.reports
    judge = next((one for one in reports if one.agent_id == JUDGE_ID and one.close), None)
    if judge is None:  # before anything is read: hardly ever does one ask
        return
    database, profile = edges.database, inputs.profile
    expires = approval.expiry(inputs.as_of, inputs.timeframe, edges.clock)
    # A tick that comes after its bar was over would ask for what nobody can approve.
    if "off" in (profile.agents.judge_close, profile.execution) or now >= expires:
        return
    if any(draft.kind == "close" for draft in drafts) or edges.trading_state() == "HALTED":
        return
    position = database.position(inputs.instance.id)
    # What this very close has opened the judge did not see.
    if position is None or position.opened_at >= inputs.as_of or position.state not in EXECUTED:
        return
    if database.close_waits(position.signal_id, now):
        return
    side = CLOSES[position.side]
    close = SignalDraft("close", side, position.lots, closes=position.signal_id)
    approval.propose(
        database,
        Action("CLOSE", BY_JUDGE, (close,)),
        replace(decision, verdict=side),
        key=inputs.key,
        symbol=inputs.instance.symbol,
        created=now,
        expires=expires,
        request=OrderRequest(judge.agent_id, judge.main_claim),
    )
