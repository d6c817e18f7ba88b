"""The queue of proposals that wait for a person, and the page of one: the thirty-second screen.

Each request computes everything anew: the present price, the drift, and every check as an approval
would meet it at this moment. Nothing is changed. `version` tells a program that a proposal has
expired or was decided elsewhere. Without a desk behind the pages the screen says so. `orders` has
the commands that decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple

from flask import abort, jsonify, url_for
from flask.typing import ResponseReturnValue
from pydantic import JsonValue

from torra.clock import duration, floor, iso, parse
from torra.config import Instance, Profile, SymbolSpec
from torra.dashboard.cells import price_lines
from torra.dashboard.cells.common import Cells
from torra.dashboard.doors.routes import Route
from torra.dashboard.record import reading_patterns, swarm, thesis
from torra.dashboard.record.shown import EscalationSetting
from torra.dashboard.trade import orders, proposals, why, without_agents
from torra.dashboard.view.rendering import (
    backing,
    desk_page,
    desk_view,
    state,
    tick_link,
)
from torra.desk.promotion import watch_only
from torra.errors import ConfigError, DataUnavailable
from torra.exhibits import figures
from torra.profiles.idle import why_idle
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade.rows import ProposalRow, SignalRow
from torra.tick.marks import DEMO_SECONDS, PROPOSED
from torra.tick.tick_record import TickRecord, load
from torra.verdict.position_size import worth
from torra.verdict.signal_states import UNDER_WAY
from torra.words.badge import Badge
from torra.words.orders import ACTIONS

if TYPE_CHECKING:
    from torra.tick.approval import Preview
    from torra.trading.hand_close import CloseQuote
    from torra.verdict.risk_engine import Position

WAITING_SHOWN: Final = 50
DECIDED_SHOWN: Final = 20
DECIDED_READ: Final = 200
"""Decided proposals that are read for the page, before equal neighbours are folded."""

DIGITS: Final = 5
"""Decimals of a price whose symbol the desk does not know any more."""


class Queue(NamedTuple):
    """The proposals that wait with their cells, and in runs those that ended last."""

    cells: Cells
    queue: list[ProposalRow]
    decided: list[list[ProposalRow]]

    @property
    def version(self) -> str:
        """What changes with the page."""
        runs = (*([row] for row in self.queue), *self.decided)
        return " ".join(f"{run[0].sid}:{run[0].state}:{len(run)}" for run in runs)


class ProposalScreen(NamedTuple):
    """A proposal with everything that may change while its page is open.

    `signal` is what an approved one became. `fills` says when its order is filled on paper, ""
    where it is or where nobody can tell; the cell p.booked counts down to when that is booked.
    `closing` is the position that a proposal which only closes would end, None for any other.
    `preview` is how approving would end now, None with `trouble` where that cannot be told;
    `typing` is whether the size must be typed. `record` is that of its tick, None without one, and
    `damaged` what is wrong then.
    """

    row: ProposalRow
    signal: SignalRow | None
    closing: CloseQuote | None
    fills: str
    cells: Cells
    version: str
    preview: Preview | None
    trouble: str
    typing: bool
    channel: str
    currency: str
    record: TickRecord | None
    damaged: str

    @property
    def refused(self) -> list[str]:
        """What speaks against an approval now, or what denied it then."""
        if self.preview is None:
            ended = self.row.reason if self.row.state == "DENIED" else ""
            return [why for why in (self.trouble, ended) if why]
        failed = [rule for rule, outcome in self.preview.checks.items() if outcome == "failed"]
        return failed or ([] if self.preview.passes else [self.preview.reason])


def approvals() -> str:
    """Show the proposals that wait for a person, and how the newest others ended."""
    desk = desk_view().desk()
    if state().backing is None:
        return desk_page("approvals.html", queue=None)
    found = _queue()
    executions = [setup.profile for setup in backing().desk.setups.values()]
    return desk_page(
        "approvals.html",
        desk,
        live=True,
        **found._asdict(),
        orders=proposals,
        decimals=_digits,
        levels={row.sid: _position_of(row) or row.first.levels for row in found.queue},
        signals={run[0].sid: signal_of(run[0]) for run in found.decided},
        lives=lives(desk.rate),
        asks=any(profile.execution == "approve" for profile in executions),
        judges=any(_may_ask_to_close(profile) for profile in executions),
        profiles=sorted({item.profile for item in backing().settings.instances}),
    )


def api_approvals() -> ResponseReturnValue:
    """Answer the queue: proposals that wait, newest first, and the newest decided ones."""
    database, found = backing().database, _queue()
    waiting = [_current(row) for row in database.proposals(limit=WAITING_SHOWN)]
    return jsonify(
        version=found.version,
        waiting=[_as_json(row) for row in waiting],
        decided=[
            _as_json(row) for row in execution_table.decided_proposals(database, DECIDED_SHOWN)
        ],
    )


def approval(sid: str) -> str:
    """Show one proposal so that a person can decide within thirty seconds."""
    found = _proposal(sid)
    row, record, side = found.row, found.record, found.row.verdict
    context = found._asdict() | {"case": why.Case([], [], [])}
    if record:
        context |= {
            "panel": proposals.panel(record),
            "case": why.case(record, side),
            "patterns": reading_patterns.on_approval(record, found.refused),
            "thesis": thesis.thesis_section(record, _escalation(row, record)),
            "swarm": swarm.brief(record),
            "sums": proposals.sums(record),
            "cited": price_lines.cited(record),
        }
    return desk_page(
        "approval.html",
        live=True,
        **context,
        orders=proposals,
        price_then=figures.plain(row.price, _digits(row)),
        checks=proposals.every_check(found.preview, record),
        conviction=proposals.conviction(record, side),
        asked=row.asked_by,
        chips=proposals.groups(record),
        over=price_lines.LINES,
        levels=proposals.CLOSE_LEVELS if found.closing else proposals.LEVELS,
        reasons=orders.REJECTIONS,
        tick=tick_link(row.instance, row.timeframe, row.bar_time),
    )


def api_approval(sid: str) -> ResponseReturnValue:
    """Answer one proposal and how approving it would end now, with every check."""
    found = _proposal(sid)
    return jsonify(
        version=found.version,
        proposal=_as_json(found.row),
        now=proposals.foreseen(found.preview, found.trouble),
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
    return [_glance(row) for row in _waiting()[:most]]


def of_tick(record: TickRecord) -> ProposalRow | None:
    """Return the proposal of a tick as it stands; None without one."""
    known = state().backing
    if known is None or record.reason != PROPOSED:
        return None
    from signal_bridge import signal_id  # noqa: PLC0415  a page alone must not load the desk

    instance, symbol, timeframe = record.instance, record.symbol, record.timeframe
    moment = parse(record.bar_time)
    # the record does not name its proposal, whose id is that of one of these four orders
    for kind, side in product(("open", "close"), ("BUY", "SELL")):
        sid = signal_id(instance, symbol, timeframe, moment, kind=kind, side=side)
        row = known.database.proposal(sid)
        if row is not None:
            return _current(row)
    return None


def signal_of(row: ProposalRow | None) -> SignalRow | None:
    """Return the signal that an approved proposal became, as it is now; None for any other."""
    return backing().database.order(row.sid) if row and row.state == "APPROVED" else None


# --- details --------------------------------------------------------------------------------------


def _current(row: ProposalRow) -> ProposalRow:
    return proposals.current(row, backing().now())


def _waiting() -> list[ProposalRow]:
    rows = map(_current, backing().database.proposals(limit=WAITING_SHOWN))
    return [row for row in rows if row.state == "WAITING"]


def _as_json(row: ProposalRow) -> dict[str, JsonValue]:
    from torra.tick import approval  # noqa: PLC0415  a page alone must not load the desk

    return approval.as_json(row, backing().database)


def _glance(row: ProposalRow) -> PendingProposal:
    """Return a proposal in a line: what, at which levels, and what is at risk."""
    (instance, _, spec, _), first = _terms(row), row.first
    side = figures.mark(row.verdict)
    name = figures.sanitize(row.instance, 40)
    currency = f" {backing().currency(instance.route)}".rstrip() if instance else ""
    digits, at = _digits(row), _position_of(row) or first.levels
    levels = f"at {figures.plain(row.price, digits)}"
    if at is not None:
        stop, target = figures.plain(at.stop, digits), figures.plain(at.target, digits)
        levels += f", stop {stop}, target {target}"
    if first.kind == "open" and spec is not None and first.levels is not None:
        risk = worth(abs(first.levels.entry - first.levels.stop), first.lots, spec)
        levels += f"; {figures.plain(risk)}{currency} at risk"
    return PendingProposal(
        side=side._replace(word=f"{ACTIONS.get(row.action, row.action).capitalize()} {name}"),
        what=f"{figures.plain(first.lots, 2)} lots",
        levels=levels,
        seconds=_seconds_left(row),
        address=url_for(".approval", sid=row.sid),
    )


def _queue() -> Queue:
    database, waiting = backing().database, _waiting()
    rows = map(_current, database.proposals(limit=WAITING_SHOWN))
    over = [row for row in rows if row.state != "WAITING"]  # nobody has booked their end yet
    ended = _folded([*over, *execution_table.decided_proposals(database, DECIDED_READ)])[
        :DECIDED_SHOWN
    ]
    cells = {f"wait.{row.sid}": proposals.left(_seconds_left(row)) for row in waiting}
    return Queue(cells, waiting, ended)


def _may_ask_to_close(profile: Profile) -> bool:
    """Return whether a judge sits whose word counts and who may ask for a close."""
    proposes = profile.agents.judge_close == "propose"
    if not proposes or why_idle(profile, "agents.judge_close"):
        return False
    return not watch_only(backing().database, profile)


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


def _folded(rows: Iterable[ProposalRow]) -> list[list[ProposalRow]]:
    """Return rows in runs: neighbours that expired alike are one, every other stands alone."""
    runs: list[list[ProposalRow]] = []
    for row in rows:
        if row.state == "EXPIRED" and runs and runs[-1][0].state == "EXPIRED":
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _proposal(sid: str) -> ProposalScreen:
    """Return a proposal as it is now, 404 without one."""
    known = backing()
    row = _current(known.database.proposal(sid) or abort(404))
    waits = row.state == "WAITING"
    instance, profile, spec, trouble = _terms(row)
    preview, trouble = _preview(sid) if waits and not trouble else (None, trouble)
    typing = waits and instance is not None and orders.needs_typing(instance)
    currency = backing().currency(instance.route) if instance else ""
    closing = _closing(row) if waits else None
    cells: Cells = {}
    if closing:
        cells |= proposals.close_ladder(closing, row.atr)
    elif row.first.kind != "close":
        cells |= proposals.ladder(row, preview, profile, spec, currency)
    record, damaged = _record(row)
    levels = preview.levels if preview else row.first.levels
    cells |= without_agents.line(row, record, without_agents.OrderTerms(levels, profile, spec))
    if waits:
        cells |= proposals.head(preview, trouble, DIGITS if spec is None else spec.digits)
        cells |= {"p.left": proposals.left(_seconds_left(row))} | proposals.chips(preview, record)
    if typing:
        cells |= proposals.typed(preview)
    outcome = (preview.state, preview.reason) if preview else ("", trouble)
    signal = signal_of(row)
    fills, booked = _fills(signal, instance)
    if fills:
        booking = {"tone": "", "title": "real time until it is booked"}
        cells["p.booked"] = {**proposals.left(booked), **booking}  # type: ignore[typeddict-item]
    went = signal.state if signal else ""
    return ProposalScreen(
        row=row,
        signal=signal,
        closing=closing,
        fills=fills,
        cells=cells,
        version=" ".join((row.state, figures.sanitize(row.reason, 100), *outcome, went)),
        preview=preview,
        trouble=trouble,
        typing=typing,
        channel=instance.channel if instance else "",
        currency=currency,
        record=record,
        damaged=damaged,
    )


def _closing(row: ProposalRow) -> CloseQuote | None:
    """Return the position that a proposal closes and opens nothing after; None without one."""
    from torra.trading import hand_close  # noqa: PLC0415  a page alone must not load the desk

    held = _position_of(row)
    return hand_close.quote(orders.reach(), held) if held else None


def _position_of(row: ProposalRow) -> Position | None:
    """Return what a proposal closes and opens nothing after, as long as it is held."""
    held = backing().database.position(row.instance) if row.first.kind == "close" else None
    return held if held and held.signal_id == row.first.closes else None


def _fills(signal: SignalRow | None, instance: Instance | None) -> tuple[str, float]:
    """Return when an order on paper is filled: at the next bar's open, booked as that bar closes.

    Beside the words stand the real seconds until then. "" where it is filled, was refused, or goes
    to a broker, who says so himself.
    """
    if signal is None or instance is None or instance.route != "paper":
        return "", 0.0
    if signal.state not in (*UNDER_WAY, "WAITING") or not signal.decided_at:
        return "", 0.0
    shortest, clock = instance.shortest, backing().desk.clock
    opens = floor(parse(signal.decided_at), shortest) + duration(shortest)
    booked = opens + duration(shortest)
    left = (booked - clock.now()).total_seconds() / (clock.rate or 1.0)
    bar = f"{shortest} bar of {figures.moment(iso(opens))}"
    return f"On paper it fills at the open of the {bar}, and is booked as that bar closes", left


def _terms(
    row: ProposalRow,
) -> tuple[Instance | None, Profile | None, SymbolSpec | None, str]:
    """Return instance, profile and symbol of a proposal, and why it cannot be judged if so."""
    try:
        instance = backing().settings.instance(row.instance)
        profile = orders.profile_of(instance)
        return instance, profile, profile.symbol(instance.symbol), ""
    except ConfigError as error:
        return None, None, None, str(error)


def _preview(sid: str) -> tuple[Preview | None, str]:
    from torra.trading import by_hand  # noqa: PLC0415  a page alone must not load the desk

    try:
        return by_hand.preview(orders.reach(), sid), ""
    except (ConfigError, DataUnavailable) as error:
        return None, str(error)


def _record(row: ProposalRow) -> tuple[TickRecord | None, str]:
    """Return the record of the tick that proposed it, None without one, and what is wrong then."""
    from torra.store.connection import TickKey  # noqa: PLC0415

    key = TickKey(row.instance, row.timeframe, parse(row.bar_time))
    stored = backing().database.tick(key)
    if stored is None:
        return None, ""
    found = load(key.text, stored)
    return (found, "") if isinstance(found, TickRecord) else (None, f"damaged: {found.reason}")


def _escalation(row: ProposalRow, record: TickRecord) -> EscalationSetting | None:
    """Return by which rule the trader's tier was chosen; None where the profile has changed."""
    profile = _terms(row)[1]
    if profile is None or profile.digest() != record.profile:
        return None
    return EscalationSetting.parse(profile.agents.escalation.model_dump())


def _digits(row: ProposalRow) -> int:
    spec = _terms(row)[2]
    return DIGITS if spec is None else spec.digits


def _seconds_left(row: ProposalRow) -> float:
    """Return the real seconds until a proposal expires."""
    # the browser counts down in real seconds, and the sample's clock runs faster
    clock = backing().desk.clock
    return (clock.real_time_of(parse(row.expires)) - clock.real_now()).total_seconds()


ROUTES = (
    Route("/approvals", "approvals", approvals),
    Route("/approvals/<sid>", "approval", approval),
    Route("/api/v1/approvals", "api_approvals", api_approvals, reply="json"),
    Route("/api/v1/approvals/<sid>", "api_approval", api_approval, reply="json"),
)
