"""The proposals that wait for a person, and what the thirty-second screen shows of one.

Each request computes everything anew: the present price, the drift, and every check as an approval
would meet it at this moment. Nothing is changed. `version` tells a program that a proposal has
expired or was decided elsewhere. `orders` has the commands that decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product
from typing import Any, Final, NamedTuple

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from agent_config import EscalationSettings
from torra.clock import parse
from torra.config import Profile
from torra.dashboard.doors.routes import Route
from torra.dashboard.record import agreement, arithmetic, reading_patterns, reasoning, swarm, thesis
from torra.dashboard.streams import price_lines
from torra.dashboard.trade import order as order_reads
from torra.dashboard.trade import orders, proposals, why, without_agents
from torra.dashboard.trade.order import WAITING, DeskOrder
from torra.dashboard.view.desk_values import DeskStatus
from torra.dashboard.view.rendering import backing, state
from torra.desk.promotion import watch_only
from torra.exhibits import figures, money
from torra.profiles.idle import why_idle
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade.rows import ProposalRow
from torra.tick.marks import DEMO_SECONDS, GATE, PROPOSED
from torra.tick.tick_record import TickRecord, statement
from torra.tick.words import thesis_words
from torra.verdict.position_size import loss_of_one, worth
from torra.words.badge import Badge
from torra.words.orders import ACTIONS, REASONS

WAITING_SHOWN: Final = 50
DECIDED_SHOWN: Final = 20
DECIDED_READ: Final = 200
"""Decided proposals that are read for the page, before equal neighbours are folded."""


def waiting_list(desk: DeskStatus) -> dict[str, Any]:
    """Return what a page shows of the proposals that wait for a person."""
    profiles = [setup.profile for setup in backing().desk.setups.values()]
    return {
        "waiting": _waiting_orders(),
        "words": proposals,
        "lives": lives(desk.rate),
        "asks": any(profile.execution == "approve" for profile in profiles),
        "judges": any(_may_ask_to_close(profile) for profile in profiles),
        "profiles": sorted({item.profile for item in backing().settings.instances}),
    }


def decided_list(states: Collection[str] = execution_table.DECIDED) -> dict[str, Any]:
    """Return what a page shows of the newest proposals that have ended in some states."""
    return {"decided": _decided_runs(states), "words": proposals}


def api_approvals() -> ResponseReturnValue:
    """Answer the queue: proposals that wait, newest first, and the newest decided ones."""
    database = backing().database
    runs = [*([order] for order in _waiting_orders()), *_decided_runs()]
    return jsonify(
        version=" ".join(
            f"{run[0].proposal_row.sid}:{run[0].proposal_row.state}:{len(run)}" for run in runs
        ),
        waiting=list(map(_as_json, _waiting_rows())),
        decided=list(map(_as_json, execution_table.decided_proposals(database, DECIDED_SHOWN))),
    )


def decision(order: DeskOrder) -> dict[str, Any]:
    """Return what a page shows of an order's proposal, for a decision within thirty seconds."""
    row, terms, record = order.proposal_row, order.terms, order.record
    preview, trouble = order.foreseen
    levels, spec = order.levels, terms.spec
    return {
        "preview": preview,
        "end_now": proposals.end_now(preview, trouble),
        "ladder": proposals.ladder(order),
        "loss": float(loss_of_one(levels, spec)) * order.lots if levels and spec else None,
        "typing": order.waits and terms.instance and orders.needs_typing(terms.instance),
        "record": record,
        "conviction": proposals.conviction(record, row.verdict),
        "chips": proposals.chips(preview, record),
        "outcomes": proposals.check_outcomes(preview, record),
        "without": without_agents.line(row, record, levels, terms),
        "case": why.case(record, row.verdict) if record else why.Case([], [], []),
        "patterns": record and reading_patterns.on_approval(record, order.refused),
        "thesis": thesis,
        "rule": record and _escalation(order, record),
        "statement": statement,
        "thesis_words": thesis_words,
        "swarm": record and swarm.brief(record),
        "cited": record and price_lines.cited(record),
        "words": proposals,
        "meanings": REASONS,
        "money": money,
        "arithmetic": arithmetic,
        "reasoning": reasoning,
        "manager_verdict": thesis.manager_verdict,
        "first_sentence": why.first_sentence,
        "wide_push": agreement.WIDE_PUSH,
        "gate_role": GATE,
        "reasons": orders.REJECTIONS,
    }


def api_approval(sid: str) -> ResponseReturnValue:
    """Answer one proposal and how approving it would end now, with every check."""
    order = DeskOrder.find(sid)
    row, (preview, trouble) = order.proposal or abort(404), order.foreseen
    outcome = (preview.state, preview.reason) if preview else ("", trouble)
    return jsonify(
        version=" ".join(
            (row.state, figures.sanitize(row.reason, 100), *outcome, order.signal_row.state)
        ),
        proposal=_as_json(row),
        now=proposals.foreseen(preview, trouble),
    )


class PendingProposal(NamedTuple):
    """A proposal that waits for a person, as Home shows it; `seconds` are left to decide."""

    side: Badge
    what: str
    levels: str
    seconds: float
    address: str


def waiting(most: int) -> list[PendingProposal]:
    """Return the newest proposals that wait, as Home shows them."""
    return [_glance(order) for order in _waiting_orders()[:most]]


def of_tick(record: TickRecord) -> ProposalRow | None:
    """Return the proposal of a tick as it stands; None without one."""
    context = state().backing
    if context is None or record.reason != PROPOSED:
        return None
    from signal_bridge import signal_id  # noqa: PLC0415  a page alone must not load the desk

    instance, symbol, timeframe = record.instance, record.symbol, record.timeframe
    moment = parse(record.bar_time)
    # the record does not name its proposal, whose id is that of one of these four orders
    for kind, side in product(("open", "close"), ("BUY", "SELL")):
        sid = signal_id(instance, symbol, timeframe, moment, kind=kind, side=side)
        row = context.database.proposal(sid)
        if row is not None:
            return order_reads.current(row)
    return None


def lives(rate: float | None) -> str:
    """Return how long a proposal of a demo waits; "" for a desk in real time.

    `rate` is how many times faster than real time the desk's clock runs.
    """
    if not rate or rate <= 1:
        return ""
    return (
        f"This demo runs {rate:g} times as fast: a proposal waits {DEMO_SECONDS / 60:.3g} minutes "
        "for you, and bars go on closing meanwhile."
    )


# --- details --------------------------------------------------------------------------------------


def _waiting_rows() -> list[ProposalRow]:
    """Return the proposals that nobody has decided, those that are over included."""
    return list(map(order_reads.current, backing().database.proposals(limit=WAITING_SHOWN)))


def _waiting_orders() -> list[DeskOrder]:
    return [DeskOrder.of(row) for row in _waiting_rows() if row.state == WAITING]


def _decided_runs(
    states: Collection[str] = execution_table.DECIDED,
) -> list[list[DeskOrder]]:
    """Return in runs the orders whose proposals ended last, in some states that hold EXPIRED."""
    over = [row for row in _waiting_rows() if row.state != WAITING]  # not booked as ended yet
    ended = [*over, *execution_table.decided_proposals(backing().database, DECIDED_READ, states)]
    runs = _folded(ended)[:DECIDED_SHOWN]
    return [[DeskOrder.of(run[0]), *map(DeskOrder, run[1:])] for run in runs]


def _folded(rows: Iterable[ProposalRow]) -> list[list[ProposalRow]]:
    """Return rows in runs: neighbours that expired alike are one, every other stands alone."""
    runs: list[list[ProposalRow]] = []
    for row in rows:
        if row.state == "EXPIRED" and runs and runs[-1][0].state == "EXPIRED":
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _as_json(row: ProposalRow) -> dict[str, JsonValue]:
    from torra.tick import approval  # noqa: PLC0415  a page alone must not load the desk

    return approval.as_json(row, backing().database)


def _glance(order: DeskOrder) -> PendingProposal:
    """Return a proposal in a line: what, at which levels, and what is at risk."""
    row, first, terms = order.proposal_row, order.proposal_row.first, order.terms
    name = figures.sanitize(row.instance, 40)
    levels = f"at {figures.plain(row.price, terms.digits)}"
    if at := order.position or first.levels:
        stop, target = (figures.plain(price, terms.digits) for price in (at.stop, at.target))
        levels += f", stop {stop}, target {target}"
    if first.levels and terms.spec:
        risk = worth(abs(first.levels.entry - first.levels.stop), first.lots, terms.spec)
        levels += f"; {figures.plain(risk)} {terms.currency}".rstrip() + " at risk"
    action = f"{ACTIONS.get(row.action, row.action).capitalize()} {name}"
    return PendingProposal(
        side=figures.mark(row.verdict)._replace(word=action),
        what=f"{figures.plain(first.lots, 2)} lots",
        levels=levels,
        seconds=order.seconds_left,
        address=url_for(".order", sid=row.sid),
    )


def _may_ask_to_close(profile: Profile) -> bool:
    """Return whether a judge sits whose word counts and who may ask for a close."""
    proposes = profile.agents.judge_close == "propose"
    if not proposes or why_idle(profile, "agents.judge_close"):
        return False
    return not watch_only(backing().database, profile)


def _escalation(order: DeskOrder, record: TickRecord) -> EscalationSettings | None:
    """Return by which rule the trader's tier was chosen; None where the profile has changed."""
    profile = order.terms.profile
    if profile is None or profile.digest() != record.profile:
        return None
    return profile.agents.escalation


ROUTES = (
    Route("/api/v1/approvals", "api_approvals", api_approvals, reply="json"),
    Route("/api/v1/approvals/<sid>", "api_approval", api_approval, reply="json"),
)
