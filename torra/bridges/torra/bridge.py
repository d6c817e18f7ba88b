"""Torra's own bridge: signals as signed files in a folder shared with an Expert Advisor.

Nothing is sent unless the Advisor is alive, on the right account and of this version of the
protocol, and nobody has halted the channel; `health` says which of these fails and what to do.
Alive means that its signed heartbeat has advanced within ALIVE_SECONDS of our own monotonic clock;
a copy of an older heartbeat does not advance. An answer counts only when its signature fits: any
other goes to bad/ and is counted as an alarm. A state file that is missing, half written, forged or
old never means "no positions". The last good copy stands for as long as it is fresh; after that
nothing is known.

`drop_folder` moves the files and `messages` is their text. `signal_bridge` decides what reports
mean for the database, `reconciliation` what the books mean.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, TypeVar

from torra.advisor_protocol import PROTOCOL
from torra.bridges.protocol import BrokerBooks, Health, Order, OrderReport, Recall, SymbolTerms
from torra.bridges.torra.advisor_health import Latest, objections
from torra.bridges.torra.book_rows import read_deal, read_position, read_symbol
from torra.bridges.torra.drop_folder import (
    NAME,
    SETTLING,
    DropFolder,
    file_name,
)
from torra.bridges.torra.messages import (
    LIMIT,
    NAMES,
    Ack,
    Deals,
    DeskState,
    Heartbeat,
    Message,
    MessageError,
    Positions,
    Signal,
    Symbols,
    decode,
    encode,
    limit_of,
    moment,
    report_of,
    signal_of,
)
from torra.bridges.torra.place import folder_of, key_of
from torra.clock import Clock, real_sleep
from torra.config import Channel
from torra.errors import BridgeUnavailable, bounded
from torra.time_limit import Run, at_once
from torra.verdict.risk_engine import DenyReason, TradingState

FRESH: Final = timedelta(seconds=30)
"""Positions, deals and quotes that are older are not known any more."""

PRUNE_SECONDS: Final = 86_400.0
"""How often old files are removed."""


M = TypeVar("M", bound=Message)
S = TypeVar("S", Heartbeat, Positions, Deals, Symbols)


class TorraFiles:
    """One channel's bridge (torra.bridges.protocol.Bridge); safe to use from several threads."""

    def __init__(
        self,
        name: str,
        channel: Channel,
        clock: Clock,
        *,
        environment: Mapping[str, str] | None = None,
        run: Run = at_once,
        sleep: Callable[[float], None] = real_sleep,
        halts: Sequence[Path] = (),
    ) -> None:
        """Open the channel `name`; raises ConfigError when it has no key or no folder.

        A folder that cannot be reached now is tried again at each call. `sleep` takes real seconds.
        `halts` are HALT files besides the channel's own: one that comes while an order is being
        written keeps it from the inbox.
        """
        self._channel_name, self._channel, self._clock = name, channel, clock
        self._key = key_of(channel, environment)
        self._folder = DropFolder(
            folder_of(name, channel, environment),
            monotonic=clock.monotonic,
            run=run,
            sleep=sleep,
            halts=halts,
        )
        self._heart = self._latest(Heartbeat)
        self._positions = self._latest(Positions, read_position)
        self._deals = self._latest(Deals, read_deal)
        self._symbols = self._latest(Symbols, read_symbol)
        self._lock = threading.RLock()
        # Of its own: `health` and `books` do not wait while an order is being written.
        self._state_lock = threading.Lock()
        self._prepared = False
        self._trouble: dict[str, str] = {}
        self._alarms = 0
        self._last_alarm = ""
        self._unread: tuple[str, ...] = ()
        self._claims: dict[str, datetime | None] = {}
        self._beats = 0
        self._pruned: float | None = None
        with suppress(BridgeUnavailable):
            self._prepare()

    @property
    def name(self) -> str:
        """The bridge's name on pages and in messages."""
        return f"torra_files {self._channel_name}"

    # --- orders -----------------------------------------------------------------------------------

    def submit(self, order: Order) -> None:
        """Write an order's file unless it has been written before.

        An order that was recalled stays recalled. Raises BridgeUnavailable when `health` or the
        folder objects, and MessageError for an order that no message can express, such as a price
        of NaN.
        """
        name = file_name(order.seq, order.sid)
        signal = signal_of(order, channel=self._channel_name, account=self._channel.account)
        # Else the Advisor would find another order in it than the one that was decided.
        if order.as_decided and not signal.as_decided:
            detail = f"{order.digits} decimals cannot say its prices: mend digits of {order.symbol}"
            raise MessageError("schema", detail)
        data = encode(signal, self._key, version=PROTOCOL)
        with self._lock:
            self._prepare()
            place = self._folder.where(name)
            if place == "inbox":
                # An earlier try may have failed after the rename: the name must reach the disk.
                self._folder.sync_inbox()
            elif place == "done":
                self._folder.restore_answer(name, LIMIT)
            # Only a new file needs a living Advisor; one that is there is executed in any case.
            elif not place:
                health = self.health()
                if not health.ok:
                    raise BridgeUnavailable(health.detail)
                self._folder.publish(name, data)

    def recall(self, sid: str, seq: int) -> Recall:
        """Take an order back out of inbox/; of this and the Advisor's claim, one succeeds."""
        name = file_name(seq, sid)
        with self._lock:
            self._prepare()
            if self._folder.recall(name):
                with suppress(BridgeUnavailable, MessageError):
                    raw = self._folder.read(f"cancelled/{name}", LIMIT) or b""
                    if moment(self._decoded(raw, Signal).expires) <= self._clock.now():
                        self._folder.file_as_expired(name)
                return Recall.RECALLED
            place = self._folder.where(name)
            if place in ("cancelled", "expired"):
                return Recall.RECALLED
            if place == "done":
                self._folder.restore_answer(name, LIMIT)
            return Recall.TAKEN if place else Recall.NEVER_SENT

    # --- reports ----------------------------------------------------------------------------------

    def poll(self) -> Sequence[OrderReport]:
        """Return the reports of ack/, and CLAIMED for a signal in work/ without an answer yet."""
        with self._lock:
            try:
                self._prepare()
                self._look(self._heart)
                reports = self._reports()
            except BridgeUnavailable as error:
                self._trouble["ack"] = str(error)
                return []
            self._trouble.pop("ack", None)
            return reports

    def settle(self, report: OrderReport) -> None:
        """Move the answer with this report to arch/; a newer answer of the same id stays."""
        with self._lock, suppress(BridgeUnavailable, MessageError):
            # A claim has no file of its own: the signal in work/ belongs to the Advisor.
            if report.status == "CLAIMED":
                self._claims[report.sid] = None
                return
            for name in self._folder.acks():
                if _sid(name) == report.sid and self._report(name) == report:
                    # Rename, then compare: the Advisor may replace its interim answer in between.
                    taken = self._folder.take(name)
                    if self._report(taken) == report:  # not replaced in between
                        self._folder.archive(taken)

    def _reports(self) -> list[OrderReport]:
        answers = self._folder.acks()
        self._unread = ()
        answered = {name.removesuffix(SETTLING) for name in answers}
        claims = [name for name in self._folder.claimed() if name not in answered]
        # The first ten characters of a name are the signal's number.
        names = sorted([*answers, *claims], key=lambda name: name[:10])
        present = {_sid(name) for name in names}
        self._claims = {sid: at for sid, at in self._claims.items() if sid in present}
        reports = (self._claim(name) if name in claims else self._answer(name) for name in names)
        return [report for report in reports if report]

    def _answer(self, name: str) -> OrderReport | None:
        """Return the report in a file of ack/; a file that holds none goes to bad/ in time."""
        try:
            report = self._report(name)
        except MessageError as error:
            if error.reason == "version":  # another Advisor's: kept for the Torra that reads it
                self._unread += (name,)
            # Forged goes at once; what is cut short may only be half written yet.
            elif self._folder.reject(name, at_once=error.reason == "auth" and error.whole):
                self._alarm(f"ack/{name} was put into bad/: {error}")
            return None
        if report and report.sid != _sid(name):
            if self._folder.reject(name, at_once=True):
                self._alarm(f"ack/{name} was put into bad/: it answers {report.sid}")
            return None
        self._folder.legible(name)
        return report

    def _report(self, name: str) -> OrderReport | None:
        try:
            raw = self._folder.read(f"ack/{name}", LIMIT)
        except BridgeUnavailable:  # open elsewhere for a moment, or gone: the next poll looks again
            return None
        return None if raw is None else report_of(self._decoded(raw, Ack))

    def _claim(self, name: str) -> OrderReport | None:
        """Return the report of a claim, None when it is settled."""
        sid = _sid(name)
        at = self._claims.setdefault(sid, self._clock.now())
        return OrderReport(sid, "CLAIMED", at) if at else None

    # --- health -----------------------------------------------------------------------------------

    def health(self) -> Health:
        """Return whether orders may be handed over now; never raises."""
        self._look(self._heart)
        return replace(next(self._objections(), Health(None, "")), facts=self._facts())

    def _objections(self) -> Iterator[Health]:
        try:
            self._prepare()
            self._folder.check()
        except BridgeUnavailable as error:
            yield Health(DenyReason.BRIDGE_DEAD, str(error))
        # A copy: another thread may change it.
        for trouble in tuple(self._trouble.values()):
            yield Health(DenyReason.BRIDGE_DEAD, trouble)
        if self.halted():
            yield Health(
                DenyReason.TRADING_HALTED,
                f"{self._folder.root}/control/HALT is there: `torra resume` lets orders go again",
            )
        monotonic = self._clock.monotonic()
        yield from objections(self._heart, self._channel_name, self._channel, monotonic)

    def _facts(self) -> Mapping[str, object]:
        facts: dict[str, object] = {
            "folder": str(self._folder.root),
            "protocol": PROTOCOL,
            "heartbeat_age_s": self._heart.age(self._clock.monotonic()),
            "alarms": self._alarms,
            "last_alarm": self._last_alarm,
            "unread": self._unread,
        }
        beat = self._heart.good
        if beat:
            facts["clock_offset_s"] = self._heart.ahead
            for key in Heartbeat.__dataclass_fields__:
                value = getattr(beat, key)
                facts[key] = float(value) if isinstance(value, Decimal) else value
        return facts

    # --- books ------------------------------------------------------------------------------------

    def books(self) -> BrokerBooks | None:
        """Return positions and deals; None when either is missing, old or another account's."""
        positions, deals = self._look(self._positions), self._look(self._deals)
        if positions is None or deals is None:
            return None
        # After a change of account the two files may be of different ones for a moment.
        if {positions.account, deals.account} != {self._channel.account}:
            return None
        if not (self._fresh(positions.gmt) and self._fresh(deals.gmt)):
            return None
        # Books are as old as the older of the two lists.
        at = moment(min(positions.gmt, deals.gmt))
        return BrokerBooks(positions.rows, deals.rows, at, moment(deals.since))

    def terms(self) -> Mapping[str, SymbolTerms]:
        """Return what the broker trades; without quotes when the list is older than FRESH."""
        symbols = self._look(self._symbols)
        if symbols is None or symbols.account != self._channel.account:
            return {}
        fresh = self._fresh(symbols.gmt)
        return {
            row.broker_symbol: row if fresh else replace(row, quote=None) for row in symbols.rows
        }

    def _fresh(self, gmt: int) -> bool:
        return abs(self._clock.now() - moment(gmt)) <= FRESH

    # --- control ----------------------------------------------------------------------------------

    def halted(self) -> bool:
        """Return whether control/HALT is there; a folder that is not there is not halted.

        Nothing is sent through such a folder either: `health` and `submit` object.
        """
        try:
            return self._folder.halted()
        except OSError:
            return False

    def set_halt(self, reason: str | None) -> None:
        """Make control/HALT, or remove it with None. Raises OSError."""
        self._folder.set_halt(reason)

    def heartbeat(self, state: TradingState) -> None:
        """Tell the Advisor that Torra lives, and look at its own heartbeat; never raises.

        To be called every second or so: it also removes old files, once a day.
        """
        with self._lock:
            self._beats += 1
            now = self._clock.now()
            gmt = int(now.timestamp())
            beat = DeskState(n=self._beats, gmt=gmt, channel=self._channel_name, state=state)
            try:
                self._prepare()
                self._folder.write_state("torra.json", encode(beat, self._key, version=PROTOCOL))
                self._trouble.pop("state", None)
            except BridgeUnavailable as error:
                self._trouble["state"] = str(error)
            monotonic = self._clock.monotonic()
            if self._pruned is None or monotonic - self._pruned > PRUNE_SECONDS:
                self._pruned = monotonic
                self._folder.prune(now)
        self._look(self._heart)

    def close(self) -> None:
        """Do nothing: no file stays open."""

    # --- inside -----------------------------------------------------------------------------------

    def _decoded(self, raw: bytes, kind: type[M]) -> M:
        """Read a message; MessageError for another channel's too: channels may share a key."""
        message = decode(raw, kind, self._key, version=PROTOCOL)
        # A heartbeat of another channel is read: `health` says which one the Advisor serves.
        if kind is not Heartbeat and message.channel != self._channel_name:
            text = f"it is signed as channel {message.channel}'s, and this is {self._channel_name}"
            raise MessageError("auth", text)
        return message

    def _latest(self, kind: type[S], read: Callable[[str], Any] | None = None) -> Latest[S]:
        """Return the keeper of a state file; a list with a row that cannot be read is not taken."""

        def parsed(raw: bytes) -> S:
            message = self._decoded(raw, kind)
            if read is None or isinstance(message, Heartbeat):
                return message
            try:
                return replace(message, rows=tuple(map(read, message.rows)))
            except ValueError as error:
                raise MessageError("schema", str(error)) from error

        return Latest(f"state/{NAMES[kind]}.json", limit_of(kind), parsed)

    def _look(self, latest: Latest[S]) -> S | None:
        """Return the newest good copy of a state file."""
        raw = None
        with suppress(BridgeUnavailable):
            raw = self._folder.read(latest.place, latest.limit)
        with self._state_lock:
            suspicious = latest.take(raw, self._clock.now(), self._clock.monotonic())
            if suspicious:
                self._alarm(f"{latest.place}: {suspicious}")
            return latest.good

    def _alarm(self, what: str) -> None:
        self._alarms += 1
        self._last_alarm = bounded(what)

    def _prepare(self) -> None:
        if not self._prepared:
            self._folder.prepare()
            self._prepared = True


def _sid(name: str) -> str:
    match = NAME.match(name)
    return match[2] if match else ""
