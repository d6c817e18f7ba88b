"""`torra halt`, `resume`, `signals`, `approve`, `reject` and `settle`: a person's hand on the desk.

These commands work on the desk's database and on the HALT files, whether or not a desk runs. A
running desk sees the files at its next step, and the signals of an approval within a second.
Halting does as much as it can, says what it could not reach, and needs no key and no database: the
files come first, and the caller puts it on record. Only `resume` lets trading go on. A proposal
that a check ended is no error; the result's `refused` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from instance_database import Database, open_home
from torra.clock import System, iso
from torra.config import Instance, load_desk
from torra.errors import ConfigError, DataUnavailable, StoreUnavailable, TorraError
from torra.home import DATABASE, has_database, lost
from torra.store import bars as bar_table
from torra.store import ticks as claim_table
from torra.store.standings import WarmUps
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade.rows import ProposalRow
from torra.tick import approval
from torra.trading import channels
from torra.trading.commanding import (
    BY_A_PERSON,
    COMMAND_LINE,
    Actor,
    CommandContext,
    CommandResult,
    by_a_person,
    command,
    record,
    record_late,
    refusals,
)
from torra.trading.kill_switch import KillSwitch, files_down, files_to_halt, put_down
from torra.trading.reconciliation import missing_key
from torra.verdict.risk_engine import DenyReason
from torra.verdict.signal_states import SENT, signal_life

ROWS: Final = 30
"""Signals that `torra signals` shows unless it is asked for more."""

COLUMNS: Final = (
    "sid", "instance", "timeframe", "bar_time", "kind", "side", "lots", "entry", "stop", "target",
    "state", "detail", "decided_at", "expires", "bridge", "ticket", "price", "opened_at",
    "close_price", "closed_at", "profit", "r_multiple", "close_reason", "outcome", "evolution",
)  # fmt: skip
"""The columns of a signal that are shown."""

IN_WARM_UP: Final = (
    "made in warm-up, on bars from before the desk's first start, on paper; no order of a running "
    "desk"
)
"""What the mark warm-up means."""


# --- the commands ---------------------------------------------------------------------------------


def halt(home: Path, reason: str) -> dict[str, Any]:
    """Stop everything from the command line; raises TorraError when a part failed."""
    files = files_to_halt(home, lambda: load_desk(home))
    new = not lost(home / DATABASE)  # asked first: the files are the sign of a desk
    # The files first: the other side obeys them even if the database cannot be opened.
    failed = put_down(files, by_a_person(reason))
    try:
        database = open_home(home, anew=new)
    except (ConfigError, StoreUnavailable) as error:
        raise TorraError(_partly([*failed, str(error)], files_down(files))) from error
    with closing(database), refusals(database, "halt"):
        done = halt_desk(database, files, reason)
        record_late(database, COMMAND_LINE, "halt", "", done)
        return done.document


def halt_desk(
    database: Database, files: Mapping[str, Path], reason: str, own: KillSwitch | None = None
) -> CommandResult:
    """Stop everything, the files first; raises TorraError when a part could not be reached.

    `own` is the kill switch of the desk that runs in this process: it holds before anything is
    read or written, and whatever cannot be written. The error names what holds. Never raises
    StoreUnavailable, and writes no audit entry.
    """
    switch, why = own or KillSwitch(files, database), by_a_person(reason)
    if own is not None:
        # In memory first: this process stops even if nothing can be written.
        own.hold(why)
    before = "not known"
    with suppress(TorraError):
        before = database.trading_state()
    failed = switch.halt(why)
    if not failed:
        try:
            return _changed(database, before)
        except TorraError as error:
            failed = [str(error)]
    halts = switch.standing()
    if own is not None:
        # A fault in memory holds whatever could not be written.
        halts.append("this process sends nothing more until a person resumes")
    raise TorraError(_partly(failed, halts))


@command("reduce")
def reduce(desk: CommandContext, *, reason: str = "") -> CommandResult:
    """Stop every opening; raises ConfigError when everything is stopped already."""
    before = desk.database.trading_state()
    if before == "HALTED":
        raise ConfigError("trading is HALTED already, which is more: see torra resume")
    desk.database.reduce(by_a_person(reason))
    return _changed(desk.database, before)


def resume(
    desk: CommandContext, person: Actor, *, reason: str, reduce: bool = False
) -> CommandResult:
    """Let trading go on and end the alarms; raises ConfigError when it is not halted.

    With `reduce` only closes go on (REDUCING), and the alarms stand. Each of its transactions has
    an entry in the audit log.
    """
    switch, database = desk.switch, desk.database
    before, ended = database.trading_state(), [] if reduce else database.alarms()
    if reduce and not switch.engaged():
        raise ConfigError(
            f"trading is {before}: closes go out already"
            + ("" if before == "REDUCING" else "; `torra halt --reduce` stops openings")
        )
    if not switch.engaged() and before == "ACTIVE" and not ended:
        raise ConfigError("trading is ACTIVE already and no alarm stands: nothing to resume")
    results: list[CommandResult] = []

    def put_on_record() -> None:
        done = _changed(database, before)
        after = {**done.after, "alarms_ended": [row.key for row in ended]}
        # Called once for each transaction of the resume; the last one tells how it ended.
        document = {**done.document, "alarms_ended": [row.as_json() for row in ended]}
        results.append(CommandResult(document, done.before, after))
        record(database, person, "resume", "", results[-1])

    try:
        switch.resume(by_a_person(reason), record=put_on_record, reduce=reduce)
    except OSError as error:
        raise TorraError(f"not resumed: {error.filename}: {error.strerror}") from error
    return results[-1]


@command("approve", needs_desk=True)
def approve(desk: CommandContext, sid: str, *, typed: float | None = None) -> CommandResult:
    """Send what a proposal holds, if every check still agrees; raises ConfigError.

    Time, price and halt are read when the database is locked: a yes that had to wait for the lock
    is judged as late as it is.
    """
    row, at = _proposal(desk, sid)
    life = signal_life(row.timeframe)
    return _decided(approval.approve(desk.database, sid, at, life=life, typed=typed), "APPROVED")


def preview(desk: CommandContext, sid: str) -> approval.Preview:
    """Return how approving would end now; raises ConfigError and DataUnavailable as it would."""
    return approval.preview(desk.database, sid, _proposal(desk, sid)[1])


@command("reject")
def reject(desk: CommandContext, sid: str, *, reason: str = "") -> CommandResult:
    """Take a proposal off the table; raises ConfigError."""
    return _decided(approval.reject(desk.database, sid, reason or BY_A_PERSON), "REJECTED")


@command("settle")
def settle(desk: CommandContext, sid: str, *, reason: str = "") -> CommandResult:
    """Book, on a person's word, that an order never reached the market; raises ConfigError.

    For an order whose end nothing else can tell any more; the person has looked in the terminal.
    """
    database = desk.database
    row = database.signal(sid)
    if row is None:
        raise ConfigError(f"there is no signal {sid}; `torra signals` lists them")
    if row["state"] not in SENT:
        raise ConfigError(
            f"the signal {sid} is {row['state']}: only one that is {', '.join(SENT)} can be "
            "settled by hand"
        )
    detail = by_a_person(reason)
    # Only an UNKNOWN signal may end as NOT_SENT (see TRANSITIONS).
    if row["state"] != "UNKNOWN":
        database.move_signal(sid, "UNKNOWN", detail=detail)
    database.move_signal(sid, "NOT_SENT", detail=detail)
    # The doubt is over, and its alarms with it.
    for key in (f"UNKNOWN {sid}", missing_key(sid)):
        database.end_alarm(key)
    settled = database.signal(sid) or row
    document = {name: settled[name] for name in COLUMNS}
    after = {"state": settled["state"], "detail": detail}
    return CommandResult(document, {"state": row["state"]}, after)


def signals(home: Path, instance: str | None = None, limit: int = ROWS) -> dict[str, Any]:
    """Return state, bridges, alarms, proposals and the newest signals; changes nothing."""
    if instance is not None:
        instance = load_desk(home).instance(instance).id
    # Looking must not make a database: an empty one would pass for a desk.
    if not has_database(home):
        empty: dict[str, Any] = {name: [] for name in ("bridges", "alarms", "proposals", "signals")}
        return {"trading_state": "ACTIVE", "reason": "", "at": None, **empty}
    with closing(open_home(home)) as database:
        rows, warmed = (
            execution_table.signal_page(database, instance=instance, limit=limit),
            WarmUps(database),
        )
        return {
            **_state(database),
            "bridges": [row.as_json() for row in database.bridges()],
            "alarms": [row.as_json() for row in database.alarms()],
            "proposals": [
                approval.as_json(row, database)
                for row in database.proposals()
                if instance in (None, row.instance)
            ],
            "signals": [
                {name: getattr(row, name) for name in COLUMNS} | {"warm_up": warmed.made(*row.bar)}
                for row in rows
            ],
        }


def market_now(
    desk: CommandContext, instance: Instance, now: datetime
) -> tuple[float, dict[str, Any]]:
    """Return the bid of now, and what else the broker says of account and symbol.

    Where no broker quotes, the newest bar's close stands for the price. The account's figures are
    those that the desk noted last. Raises DataUnavailable where there is neither quote nor bar.
    """
    settings, database = desk.settings, desk.database
    way = None if instance.bridge == "paper" else settings.channels.get(instance.channel)
    figures = channels.taken(way, "")
    for row in database.bridges():
        if row.name == instance.route:
            figures |= channels.account_figures(row.account)
            figures["clock_ok"] = row.deny != DenyReason.CLOCK_SKEW.value
    quote = channels.quote(settings, instance, desk.environment, now)
    if quote is not None:
        return quote.bid, {**figures, "live_spread": quote.ask - quote.bid}
    newest = bar_table.last_close(database, instance.id, instance.shortest, now)
    if newest is None:
        raise DataUnavailable("no_price", f"no bar of {instance.id} is stored yet")
    return newest[1], figures


# --- a terminal -----------------------------------------------------------------------------------


def settled_line(document: Mapping[str, Any]) -> str:
    """Return what settling did."""
    return f"{document['sid']} is {document['state']} ({document['detail']})"


def state_line(document: Mapping[str, Any]) -> str:
    """Return the trading state as a sentence."""
    why = f" ({document['reason']})" if document["reason"] else ""
    since = f" since {document['at']}" if document["at"] else ""
    return f"Trading is {document['trading_state']}{since}{why}."


def resumed(document: Mapping[str, Any]) -> str:
    """Return what resuming did, with the alarms that it ended."""
    lines = [f"alarm ended: {row['kind']} {row['detail']}" for row in document["alarms_ended"]]
    return "\n".join([*lines, state_line(document)])


def table(document: Mapping[str, Any]) -> str:
    """Return `torra signals` for a terminal."""
    lines = [state_line(document)]
    lines += [_bridge_line(row) for row in document["bridges"]]
    lines += [f"ALARM {row['at']} {row['kind']}: {row['detail']}" for row in document["alarms"]]
    lines += [_proposal_line(row) for row in document["proposals"]]
    if not document["signals"]:
        return "\n".join([*lines, "No signal has been written yet."])
    heading = (
        f"{'id':<14}{'instance':<12}{'tf':<5}{'decided':<18}{'order':<11}{'lots':>7}"
        f"  {'state':<17}what came of it"
    )
    lines += ["", heading, *(_signal_line(row) for row in document["signals"])]
    if number := sum(row["warm_up"] for row in document["signals"]):
        lines += ["", f"{number:,} of these {len(document['signals']):,}: {IN_WARM_UP}."]
    return "\n".join(lines)


def decided_line(document: Mapping[str, Any]) -> str:
    """Return what became of a proposal."""
    why = f": {document['reason']}" if document["reason"] else ""
    sent = [
        f"  {row['kind']} {row['side']} {row['lots']} {row['symbol']}, {row['state']} until "
        f"{row['expires']}"
        for row in document["signals"]
    ]
    return "\n".join([f"{document['sid']} is {document['state']}{why}", *sent])


def _bridge_line(row: Mapping[str, Any]) -> str:
    state = f"{row['deny']}: {row['detail']}" if row["deny"] else row["detail"] or "ready"
    return f"bridge {row['name']}: {state} (books compared {row['reconciled_at'] or 'never'})"


def _proposal_line(row: Mapping[str, Any]) -> str:
    line = (
        f"PROPOSAL {row['sid']} {row['action']} {row['instance']} {row['timeframe']} at "
        f"{row['price']}, until {row['expires']}: torra approve {row['sid']}"
    )
    thesis = row.get("thesis")
    return f"{line}\n  the trader's words: {thesis['claim']}" if thesis else line


def _signal_line(row: Mapping[str, Any]) -> str:
    moment = row["decided_at"].replace("T", " ")[:16]
    return (
        f"{row['sid']:<14}{row['instance']:<12}{row['timeframe']:<5}{moment:<18}"
        f"{row['kind'] + ' ' + row['side']:<11}{row['lots']:>7g}  {row['state']:<17}{_end_of(row)}"
        f"{', warm-up' if row['warm_up'] else ''}"
    )


def _end_of(row: Mapping[str, Any]) -> str:
    if row["state"] == "CLOSED":
        return f"{row['profit']:+.2f} ({row['r_multiple']:+.2f} R, {row['close_reason']})"
    if row["price"] is not None:
        return f"at {row['price']:.10g}"  # as filled: :g alone would round 62586.75
    return str(row["detail"])


# --- details --------------------------------------------------------------------------------------


def _proposal(desk: CommandContext, sid: str) -> tuple[ProposalRow, approval.ApprovalContext]:
    """Return a proposal that waits, and what a decision about it is judged by now."""
    row = approval.waiting(desk.database, sid)
    instance, now = desk.settings.instance(row.instance), desk.now()
    price, figures = market_now(desk, instance, now)
    return row, approval.ApprovalContext(
        instance=instance,
        profile=desk.profile(instance),
        now=now,
        price=price,
        figures=figures,
        halted=desk.switch.engaged(),
    )


def _decided(decided: approval.Decided, wanted: str) -> CommandResult:
    after = {
        "state": decided.state,
        "reason": decided.reason,
        "signals": [
            {name: signal[name] for name in ("sid", "kind", "side", "lots")}
            for signal in decided.signals
        ],
    }
    refused = "" if decided.state == wanted else f"{decided.state}: {decided.reason}"
    return CommandResult(asdict(decided), {"state": "WAITING"}, after, refused)


def _partly(failed: Sequence[str], halts: Sequence[str]) -> str:
    """Return the sentence on a halt that could not be written everywhere."""
    failures = "; ".join(failed)
    if not halts:
        return f"NOT halted, nothing could be written: {failures}; stop the desk itself"
    return f"halted, but not everywhere: {failures}. What holds: {', '.join(halts)}"


def _changed(database: Database, before: str) -> CommandResult:
    document = _state(database)
    after = {"trading_state": document["trading_state"], "reason": document["reason"]}
    return CommandResult(document, {"trading_state": before}, after)


def _state(database: Database) -> dict[str, Any]:
    newest = claim_table.trading_states(database, 1)
    return {
        "trading_state": database.trading_state(),
        "reason": newest[0].reason if newest else "",
        "at": newest[0].at if newest else None,
        "now": iso(System().real_now().replace(microsecond=0)),
    }
