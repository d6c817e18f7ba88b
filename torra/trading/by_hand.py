"""`torra halt`, `resume`, `signals`, `approve`, `reject` and `settle`: a person's hand on the desk.

These commands work on the desk's database and on the HALT files, whether or not a desk runs. A
running desk sees the files at its next step, and the signals of an approval within a second.
Halting does as much as it can, says what it could not reach, and needs no key and no database: the
files come first. Only `resume` lets trading go on.

Each command is two functions. One works on an open database; the pages of a running desk call it
with the desk's own (torra.dashboard.trade.orders). A thin one for the command line opens the
database. A command that changes the database alone is one transaction with its entry in the audit
log: neither is there without the other. A command that is refused raises ConfigError and has
changed nothing. The caller puts a refusal on record, and a halt too, which waits for no record. A
proposal that a check ended is no error; its `Done` says so.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from instance_database import Database, open_home
from torra.clock import System, iso
from torra.config import DeskSettings, Instance, Profile, load_desk, load_profile
from torra.errors import ConfigError, DataUnavailable, StoreUnavailable, TorraError
from torra.home import DATABASE, HALT, lost
from torra.store import bars as bar_table
from torra.store import ticks as claim_table
from torra.store.standings import WarmUps
from torra.store.trade import proposals_and_alarms as execution_table
from torra.store.trade.rows import ProposalRow
from torra.tick import approval
from torra.trading import channels
from torra.trading.findings import missing_key
from torra.trading.kill_switch import KillSwitch, files_down, halt_files, put_down
from torra.verdict.risk_engine import DenyReason
from torra.verdict.signal_states import SENT, signal_life

BY_A_PERSON: Final = "by a person"

log = logging.getLogger("torra")

LONGEST_OUTCOME: Final = 300
"""Characters of an outcome in the audit log."""

ROWS: Final = 30
"""Signals that `torra signals` shows unless it is asked for more."""

TOLD: Final = (
    "sid", "instance", "timeframe", "bar_time", "kind", "side", "lots", "entry", "stop", "target",
    "state", "detail", "decided_at", "expires", "bridge", "ticket", "price", "opened_at",
    "close_price", "closed_at", "profit", "r_multiple", "close_reason", "outcome", "evolution",
)  # fmt: skip


IN_WARM_UP: Final = (
    "made in warm-up, on bars from before the desk's first start, on paper; no order of a running "
    "desk"
)
"""What the mark warm-up means."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The giver of a command, as the audit log names them, and their address."""

    actor: str
    address: str = ""


COMMAND_LINE: Final = Actor("command line")


@dataclass(frozen=True)
class CommandContext:
    """What a decision about a proposal needs; `now` is the desk's time.

    `kill_switch` is the one of the desk that runs in this process, None where none does.
    """

    home: Path
    database: Database
    settings: DeskSettings
    profile: Callable[[Instance], Profile]
    now: Callable[[], datetime]
    environment: Mapping[str, str]
    kill_switch: KillSwitch | None = None

    @property
    def switch(self) -> KillSwitch:
        """The kill switch to ask: the running desk's own knows most."""
        return self.kill_switch or KillSwitch(self.files, self.database)

    @property
    def files(self) -> dict[str, Path]:
        """The HALT files of the desk and of its channels."""
        return halt_files(self.home, self.settings)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command: the document that is printed, and the state before and after.

    `refused` is why it did not do what it was asked for, "" when it did.
    """

    document: dict[str, Any]
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    refused: str = ""

    @property
    def outcome(self) -> str:
        """The outcome in a word, and why it is a failure."""
        return f"failed: {self.refused}" if self.refused else "done"


# --- with an open database ------------------------------------------------------------------------


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
    before = _known_state(database)
    failed = switch.halt(why)
    if not failed:
        try:
            return _changed(database, before)
        except TorraError as error:
            failed = [str(error)]
    held = switch.standing()
    if own is not None:
        # A fault in memory holds whatever could not be written.
        held.append("this process sends nothing more until a person resumes")
    raise TorraError(_partly(failed, held))


def reduce_desk(database: Database, reason: str, person: Actor) -> CommandResult:
    """Stop every opening; raises ConfigError when everything is stopped already."""

    def act() -> CommandResult:
        before = database.trading_state()
        if before == "HALTED":
            raise ConfigError("trading is HALTED already, which is more: see torra resume")
        database.reduce(by_a_person(reason))
        return _changed(database, before)

    return with_record(database, person, "reduce", "", act)


def resume_desk(
    database: Database,
    files: Mapping[str, Path],
    reason: str,
    person: Actor,
    own: KillSwitch | None = None,
    *,
    reduce: bool = False,
) -> CommandResult:
    """Let trading go on and end the alarms; raises ConfigError when it is not halted.

    With `reduce` only closes go on (REDUCING), and the alarms stand.
    """
    switch = own or KillSwitch(files, database)
    before, ended = database.trading_state(), [] if reduce else database.alarms()
    if reduce and not switch.engaged():
        raise ConfigError(
            f"trading is {before}: closes go out already"
            + ("" if before == "REDUCING" else "; `torra halt --reduce` stops openings")
        )
    if not switch.engaged() and before == "ACTIVE" and not ended:
        raise ConfigError("trading is ACTIVE already and no alarm stands: nothing to resume")
    found: list[CommandResult] = []

    def record() -> None:
        done = _changed(database, before)
        after = {**done.after, "alarms_ended": [row.key for row in ended]}
        # Called once for each transaction of the resume; the last one tells how it ended.
        document = {**done.document, "alarms_ended": [row.as_json() for row in ended]}
        found.append(CommandResult(document, done.before, after))
        _write(database, person, "resume", "", found[-1])

    try:
        switch.resume(by_a_person(reason), record=record, reduce=reduce)
    except OSError as error:
        raise TorraError(f"not resumed: {error.filename}: {error.strerror}") from error
    return found[-1]


def approve_proposal(
    reach: CommandContext, sid: str, person: Actor, typed: float | None = None
) -> CommandResult:
    """Send what a proposal holds, if every check still agrees; raises ConfigError.

    Time, price and halt are read when the database is locked: a yes that had to wait for the lock
    is judged as late as it is.
    """

    def act() -> CommandResult:
        row, instance = _proposal(reach, sid)
        # Inside the transaction: a yes that had to wait for the lock is judged after the wait.
        decided = approval.approve(
            reach.database, sid, _moment(reach, instance),
            life=signal_life(row.timeframe), typed=typed,
        )  # fmt: skip
        return _decided(decided, row)

    return with_record(reach.database, person, "approve", sid, act)


def preview_proposal(reach: CommandContext, sid: str) -> approval.Preview:
    """Return how approving would end now; raises ConfigError and DataUnavailable as it would."""
    _, instance = _proposal(reach, sid)
    return approval.preview(reach.database, sid, _moment(reach, instance))


def reject_proposal(database: Database, sid: str, reason: str, person: Actor) -> CommandResult:
    """Take a proposal off the table; raises ConfigError."""

    def act() -> CommandResult:
        row = database.proposal(sid) or ProposalRow()
        decided = approval.reject(database, sid, reason or BY_A_PERSON)
        return _decided(decided, row, wanted="REJECTED")

    return with_record(database, person, "reject", sid, act)


def settle_signal(database: Database, sid: str, reason: str, person: Actor) -> CommandResult:
    """Book, on a person's word, that an order never reached the market; raises ConfigError.

    For an order whose end nothing else can tell any more; the person has looked in the terminal.
    """

    def act() -> CommandResult:
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
        document = {name: settled[name] for name in TOLD}
        after = {"state": settled["state"], "detail": detail}
        return CommandResult(document, {"state": row["state"]}, after)

    return with_record(database, person, "settle", sid, act)


# --- from the command line ------------------------------------------------------------------------


def halt(home: Path, reason: str, *, reduce: bool = False) -> dict[str, Any]:
    """Stop everything, or with `reduce` every opening; raises TorraError when a part failed."""
    if reduce:
        with open_desk(home) as database, refusals(database, "reduce"):
            return reduce_desk(database, reason, COMMAND_LINE).document
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
        _put_on_record(database, COMMAND_LINE, "halt", "", done)
        return done.document


def resume(home: Path, reason: str, *, reduce: bool = False) -> dict[str, Any]:
    """Let trading go on and end the alarms, or with `reduce` let closes go on; ConfigError."""
    files = files_to_halt(home, lambda: load_desk(home))
    with open_desk(home) as database, refusals(database, "resume"):
        return resume_desk(database, files, reason, COMMAND_LINE, reduce=reduce).document


def signals(home: Path, instance: str | None = None, limit: int = ROWS) -> dict[str, Any]:
    """Return state, bridges, alarms, proposals and the newest signals; changes nothing."""
    empty: dict[str, Any] = {"signals": [], "proposals": [], "bridges": [], "alarms": []}
    if instance is not None:
        instance = load_desk(home).instance(instance).id
    # Looking must not make a database: an empty one would pass for a desk.
    if not (home / DATABASE).exists():
        return {"trading_state": "ACTIVE", "reason": "", "at": None, **empty}
    with open_desk(home) as database:
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
                {name: getattr(row, name) for name in TOLD} | {"warm_up": warmed.made(*row.bar)}
                for row in rows
            ],
        }


def approve(home: Path, sid: str) -> dict[str, Any]:
    """Send what a proposal holds, if every check still agrees; raises ConfigError."""
    settings = load_desk(home)
    with open_desk(home) as database, refusals(database, "approve", sid):
        reach = reach_of(home, settings, database)
        return approve_proposal(reach, sid, COMMAND_LINE).document


def reject(home: Path, sid: str, reason: str) -> dict[str, Any]:
    """Take a proposal off the table; raises ConfigError."""
    with open_desk(home) as database, refusals(database, "reject", sid):
        return reject_proposal(database, sid, reason, COMMAND_LINE).document


def mark_not_sent(home: Path, sid: str, reason: str) -> dict[str, Any]:
    """Book, on a person's word, that an order never reached the market; raises ConfigError."""
    with open_desk(home) as database, refusals(database, "settle", sid):
        return settle_signal(database, sid, reason, COMMAND_LINE).document


# --- what is known now ----------------------------------------------------------------------------


def reach_of(home: Path, settings: DeskSettings, database: Database) -> CommandContext:
    """Return the parts that a decision from the command line needs."""
    return CommandContext(
        home,
        database,
        settings,
        profile=lambda instance: load_profile(instance.profile, home),
        now=lambda: desk_now(settings, database),
        environment=dict(os.environ),
    )


def desk_now(settings: DeskSettings, database: Database) -> datetime:
    """Return the desk's time: the clock's, or where a desk that replays the past stands."""
    stood = database.desk_time()
    # A desk that replays the past has a time of its own, which its proposals live by.
    if stood is not None and any(item.feed == "sample" for item in settings.instances):
        return stood
    return System().now()


def market_now(
    settings: DeskSettings,
    database: Database,
    instance: Instance,
    now: datetime,
    environment: Mapping[str, str] | None = None,
) -> tuple[float, dict[str, Any]]:
    """Return the bid of now, and what else the broker says of account and symbol.

    Where no broker quotes, the newest bar's close stands for the price. The account's figures are
    those that the desk noted last. Keys come from `environment`, by default the process's own.
    Raises DataUnavailable where there is neither quote nor bar.
    """
    way = None if instance.bridge == "paper" else settings.channels.get(instance.channel)
    figures = channels.taken(way, "")
    for row in database.bridges():
        if row.name == instance.route:
            facts = row.account
            named = ("free_margin", "leverage")
            figures |= {name: facts[name] for name in named if facts.get(name)}
            if isinstance(facts.get("equity"), int | float):
                figures["equity"] = facts["equity"]  # none is left of an account at 0
            figures["clock_ok"] = row.deny != DenyReason.CLOCK_SKEW.value
    known = dict(os.environ) if environment is None else environment
    quote = channels.quote(settings, instance, known, now)
    if quote is not None:
        return quote.bid, {**figures, "live_spread": quote.ask - quote.bid}
    newest = bar_table.last_close(database, instance.id, instance.shortest, now)
    if newest is None:
        raise DataUnavailable("no_price", f"no bar of {instance.id} is stored yet")
    return newest[1], figures


def files_to_halt(home: Path, settings: Callable[[], DeskSettings]) -> dict[str, Path]:
    """Return the HALT files; settings that are broken keep nobody from halting the desk."""
    try:
        return halt_files(home, settings())
    except ConfigError:
        return {"desk": home / HALT}


def by_a_person(reason: str) -> str:
    """Return a person's reason as it goes on record."""
    return f"{BY_A_PERSON}: {reason}" if reason else BY_A_PERSON


def settled_line(document: Mapping[str, Any]) -> str:
    """Return what settling did."""
    return f"{document['sid']} is {document['state']} ({document['detail']})"


# --- a terminal -----------------------------------------------------------------------------------


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
    told = f"{row['deny']}: {row['detail']}" if row["deny"] else row["detail"] or "ready"
    return f"bridge {row['name']}: {told} (books compared {row['reconciled_at'] or 'never'})"


def _proposal_line(row: Mapping[str, Any]) -> str:
    said = (
        f"PROPOSAL {row['sid']} {row['action']} {row['instance']} {row['timeframe']} at "
        f"{row['price']}, until {row['expires']}: torra approve {row['sid']}"
    )
    told = row.get("thesis")
    return f"{said}\n  the trader's words: {told['claim']}" if told else said


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


def _put_on_record(
    database: Database, person: Actor, action: str, target: str, done: CommandResult
) -> None:
    """Write a finished command into the audit log; where that fails, the program's log says so."""
    try:
        _write(database, person, action, target, done)
    except StoreUnavailable as error:
        log.error("%s %s (%s): this is not on record: %s", action, target, done.outcome, error)


def with_record(
    database: Database, person: Actor, action: str, target: str, act: Callable[[], CommandResult]
) -> CommandResult:
    """Do something and write it into the audit log, in one transaction: both or neither."""
    with database.transaction():
        done = act()
        _write(database, person, action, target, done)
    return done


def _write(
    database: Database, person: Actor, action: str, target: str, done: CommandResult
) -> None:
    database.audit(
        actor=person.actor,
        address=person.address,
        action=action,
        target=target,
        outcome=done.outcome[:LONGEST_OUTCOME],
        before=done.before,
        after=done.after,
    )


@contextmanager
def refusals(database: Database, action: str, target: str = "") -> Iterator[None]:
    """Put what the command line was refused into the audit log too."""
    try:
        yield
    except StoreUnavailable:
        # The audit log lies in the same store.
        raise
    except TorraError as error:
        _put_on_record(
            database, COMMAND_LINE, action, target, CommandResult({}, refused=str(error))
        )
        raise


def _moment(reach: CommandContext, instance: Instance) -> approval.ApprovalContext:
    """Return what a decision about a proposal is judged by now."""
    now = reach.now()
    price, figures = market_now(reach.settings, reach.database, instance, now, reach.environment)
    return approval.ApprovalContext(
        instance=instance,
        profile=reach.profile(instance),
        now=now,
        price=price,
        figures=figures,
        halted=reach.switch.engaged(),
    )


def _partly(failed: Sequence[str], held: Sequence[str]) -> str:
    """Return the sentence on a halt that could not be written everywhere."""
    told = "; ".join(failed)
    if not held:
        return f"NOT halted, nothing could be written: {told}; stop the desk itself"
    return f"halted, but not everywhere: {told}. What holds: {', '.join(held)}"


def _proposal(reach: CommandContext, sid: str) -> tuple[ProposalRow, Instance]:
    row = reach.database.proposal(sid)
    if row is None:
        raise ConfigError(f"there is no proposal {sid}; `torra signals` lists those that wait")
    return row, reach.settings.instance(row.instance)


def _decided(
    decided: approval.Decided, row: ProposalRow, wanted: str = "APPROVED"
) -> CommandResult:
    after = {
        "state": decided.state,
        "reason": decided.reason,
        "signals": [
            {name: signal[name] for name in ("sid", "kind", "side", "lots")}
            for signal in decided.signals
        ],
    }
    refused = "" if decided.state == wanted else f"{decided.state}: {decided.reason}"
    return CommandResult(asdict(decided), {"state": row.state or None}, after, refused)


def _changed(database: Database, before: str) -> CommandResult:
    document = _state(database)
    after = {"trading_state": document["trading_state"], "reason": document["reason"]}
    return CommandResult(document, {"trading_state": before}, after)


def _known_state(database: Database) -> str:
    try:
        return database.trading_state()
    except TorraError:
        return "not known"


@contextmanager
def open_desk(home: Path) -> Iterator[Database]:
    """Open the database of a home for one command. Raises ConfigError and StoreUnavailable."""
    database = open_home(home)
    try:
        yield database
    finally:
        database.close()


def _state(database: Database) -> dict[str, Any]:
    newest = claim_table.trading_states(database, 1)
    return {
        "trading_state": database.trading_state(),
        "reason": newest[0].reason if newest else "",
        "at": newest[0].at if newest else None,
        "now": iso(System().real_now().replace(microsecond=0)),
    }
