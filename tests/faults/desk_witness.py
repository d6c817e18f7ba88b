"""What must hold of a desk after every step, whatever was done to it; read from its files alone.

D1: a done tick has its sentiment, chain and journal row, each once, and its signals as the journal
tells them; what was acknowledged stays as it was; no tick is done twice. D4: a bar has one opening
at most, every order at the broker is of a signal that was let out, and each was executed once; no
instance holds two. R1: no opening on file breaks a limit, by tests/worlds/risk_oracle.py, with the
account counted anew from the steps on record before it. R4: from a halt on nothing is let out and
nothing is executed past the channel's HALT file, until a person resumes; a halt outlives every
process. R7: where database and broker are at rest the books are the broker's, comparing the same
books again changes nothing, and a position that nobody explains lets nothing open.

The witness reads tables and folders with queries of its own. It keeps what it has seen: rows that
change afterwards are a finding.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from tests.faults.desk_world import INSTANCES, ON_CHANNEL, PROFILES, World
from tests.worlds.risk_oracle import oracle
from torra.clock import duration, parse
from torra.config import Profile
from torra.verdict.risk_engine import Account, Levels, Ticket

HELD = ("FILLED", "PARTIAL", "PENDING", "PUBLISHED", "CLAIMED", "PLACED", "UNKNOWN", "WAITING")
EXPERT = 3
"""DEAL_REASON_EXPERT: the Advisor sent it."""

GONE = ("REJECTED", "EXPIRED", "CANCELLED", "UNKNOWN_NOT_SENT", "NOT_SENT")
TOLD = ("sid", "instance", "kind", "side", "lots", "entry", "stop", "target", "closes")
DUMPED = (
    "ticks", "sentiment", "chains", "journal", "signals", "signal_events", "proposals", "latches",
    "paper_cursor", "bars", "trading_config",
)  # fmt: skip
"""Tables that no migration may change."""

Row = sqlite3.Row


class Witness:
    """Sees one world through."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.stories: dict[str, tuple[Any, ...]] = {}
        self.parents: dict[str, str] = {}
        self.read = 0
        self.judged = 0
        self.halted = False
        self.last_free: int | None = None
        self.out: set[str] = set()
        self.marked: set[str] = set()
        self.booking = False
        self.down: int | None = None
        self.state = "ACTIVE"

    def look(self) -> None:
        """Hold what is new against the promises."""
        self.world.latest = max(self.world.latest, self.world.clock.now())
        self._parents()
        self.orders_are_single()
        self.tickets_keep_limits()
        self.halt_holds()

    # --- D1 ---------------------------------------------------------------------------------------

    def ticks_are_whole(self) -> None:
        ticks = self.world.rows("SELECT instance, timeframe, bar_time, state FROM ticks")
        done = {
            f"{row['instance']}|{row['timeframe']}|{row['bar_time']}"
            for row in ticks
            if row["state"] == "done"
        }
        for table in ("sentiment", "chains", "journal"):
            keys = [row[0] for row in self.world.rows(f"SELECT torra_key FROM {table}")]
            ours = [key for key in keys if key]
            assert len(ours) == len(set(ours)), f"{table} has a tick twice"
            assert set(ours) == done, f"{table} and the done ticks differ: {set(ours) ^ done}"
        twice = [key for key, times in self.world.done.items() if times > 1]
        assert not twice, f"done twice: {twice}"
        lost = (self.world.done.keys() | self.stories.keys()) - done
        assert not lost, f"acknowledged and lost: {lost}"
        self._stories()

    def _stories(self) -> None:
        rows = self.world.rows(
            "SELECT torra_key, s.price_action, s.composite, s.consensus, s.verdict, c.composite, "
            "c.verdict, j.action, j.reason FROM sentiment s JOIN chains c USING (torra_key) "
            "JOIN journal j USING (torra_key)"
        )
        for key, *story in rows:
            assert self.stories.setdefault(key, tuple(story)) == tuple(story), f"{key} has changed"
            assert tuple(story[1:2] + story[3:4]) == tuple(story[4:6]), f"{key}: twins differ"

    def _parents(self) -> None:
        """Hold new signals against the records of the ticks that decided them, both ways."""
        signals = {row["sid"]: row for row in self.world.rows("SELECT * FROM signals")}
        sql = "SELECT rowid, torra_key, record FROM journal WHERE rowid > ? ORDER BY rowid"
        for number, key, record in self.world.rows(sql, self.read):
            self.read = number
            for told in json.loads(record)["signals"]:
                row = signals.get(told["sid"])
                assert row is not None, f"{key} decided {told['sid']}, and there is no such signal"
                same = all(row[name] == told[name] for name in TOLD)
                assert same, f"{told['sid']} is not what {key} decided"
                self.parents[told["sid"]] = key
        orphans = signals.keys() - self.parents.keys()
        for row in self.world.rows("SELECT sid, drafts, state FROM proposals"):
            if row["state"] == "APPROVED":
                orphans = {
                    sid for sid in orphans if not self._by(row["sid"], signals[sid], signals)
                }
        assert not orphans, f"signals that no tick and no person decided: {orphans}"

    def _by(self, proposal: str, row: Row, signals: dict[str, Row]) -> bool:
        """Return whether a signal came from a proposal: it has its id, or is the close before."""
        sid = row["sid"]
        first = signals.get(proposal)
        mine = sid == proposal or (first is not None and first["after"] == sid)
        if mine:
            self.parents[sid] = f"proposal {proposal}"
        return mine

    # --- D4 ---------------------------------------------------------------------------------------

    def orders_are_single(self) -> None:
        self.out |= set() if self.halted else self.world.published()
        rows = self.world.rows("SELECT * FROM signals")
        bars = Counter(
            (row["instance"], row["timeframe"], row["bar_time"], row["kind"]) for row in rows
        )
        assert not bars or max(bars.values()) == 1, f"a bar with two signals: {bars.most_common(1)}"
        executed = Counter(deal["comment"] for deal in self.world.ea.deals() if deal["comment"])
        known = {row["sid"]: row for row in rows}
        for comment, times in executed.items():
            if comment.startswith("["):
                continue  # a stop or a target
            assert times == 1, f"{comment} was executed {times} times"
            assert comment in known, f"the broker executed {comment}, and nobody decided it"
            row = known[comment]
            alarmed = self.world.rows("SELECT 1 FROM alarms WHERE key LIKE ?", f"%{comment}%")
            assert row["state"] not in GONE or alarmed, f"{comment} is {row['state']}, and executed"
        for item in ON_CHANNEL.values():
            held = self.world.ea.positions(item.magic)
            assert sum(p["comment"] in known for p in held) <= 1, f"{item.id} holds two positions"

    # --- R1 ---------------------------------------------------------------------------------------

    def tickets_keep_limits(self) -> None:
        """Judge every opening that is new on file."""
        rows = self.world.rows("SELECT * FROM signals WHERE seq > ? ORDER BY seq", self.judged)
        for row in rows:
            self.judged = row["seq"]
            if row["kind"] == "open":
                said = self._objections(row)
                assert not said, f"the opening {row['sid']} breaks {sorted(said)}"
                self.world.seen["openings judged"] += 1
        self.state = self.world.state()
        if self.halted:
            self.last_free = self.judged

    def _objections(self, row: Row) -> set[str]:
        record, approved = self._record(row["sid"])
        as_of = parse(row["bar_time"]) + duration(row["timeframe"])
        told = record["desk"]["exposure"] if record else {}
        settings = self._profile(row["instance"])
        ticket = Ticket(
            side=row["side"],
            lots=row["lots"],
            levels=Levels(row["entry"], row["stop"], row["target"], row["atr"]),
            price=told.get("last_price", row["entry"]),
            bar_age=max(0.0, (parse(record["now"]) - as_of) / duration(row["timeframe"]))
            if record
            else 0.0,
            score_age=0.0,
            veto=bool(record and record["gate"]["veto"]),
            opening_stands=True,
            duplicate=False,
        )
        now = parse(approved["decided_at"]) if approved else as_of
        account = self._account(row, now, told)
        return oracle(ticket, account, settings.symbol(row["symbol"]), settings)

    def _record(self, sid: str) -> tuple[dict[str, Any] | None, Row | None]:
        proposals = self.world.rows("SELECT * FROM proposals WHERE sid = ?", sid)
        if proposals and proposals[0]["state"] == "APPROVED":
            return None, proposals[0]
        key = self.parents[sid]
        record = self.world.rows("SELECT record FROM journal WHERE torra_key = ?", key)[0][0]
        return json.loads(record), None

    def _profile(self, instance: str) -> Profile:
        sql = "SELECT digest FROM trading_config WHERE instance = ? ORDER BY id DESC LIMIT 1"
        digest = self.world.rows(sql, instance)[0][0]
        return next(item for item in PROFILES.values() if item.digest() == digest)

    def _account(self, row: Row, as_of: datetime, told: dict[str, Any]) -> Account:
        """Count the account as it was when a signal was written, from the steps before it."""
        born = self.world.rows("SELECT min(id) FROM signal_events WHERE sid = ?", row["sid"])[0][0]
        last = {
            event["sid"]: event["to_state"]
            for event in self.world.rows(
                "SELECT sid, to_state FROM signal_events WHERE id < ? ORDER BY id", born
            )
        }
        before = [r for r in self.world.rows("SELECT * FROM signals") if r["sid"] in last]
        opened = [r for r in before if r["kind"] == "open" and last[r["sid"]] in HELD]
        places = sorted(opened, key=lambda r: HELD.index(last[r["sid"]]))
        held = {r["instance"]: r for r in reversed(places) if r["sid"] != row["closes"]}
        ours = [r for r in before if r["instance"] == row["instance"]]
        hour = [
            r for r in ours if as_of - timedelta(hours=1) < parse(r["decided_at"]) <= as_of
        ]  # fmt: skip
        ended = [r for r in before if r["kind"] == "open" and last[r["sid"]] == "CLOSED"]
        midnight = as_of.replace(hour=0, minute=0, second=0, microsecond=0)
        lost = math.fsum(r["profit"] for r in ended if parse(r["closed_at"]) >= midnight)
        losses = [
            r for r in ended
            if (r["instance"], r["profit"] < 0) == (row["instance"], True)
            and parse(r["closed_at"]) < as_of
        ]  # fmt: skip
        step = duration(row["timeframe"])
        same = Counter(r["side"] for r in hour if r["kind"] == "open")
        return Account(
            positions_open=len(held),
            gross_notional=math.fsum(self._worth(r, last[r["sid"]]) for r in held.values()),
            day_loss=-lost,
            signals_last_hour=len(hour),
            same_side_last_hour=dict(same),
            bars_since_loss={
                side: min(
                    (as_of - parse(r["closed_at"])) / step for r in losses if r["side"] == side
                )
                for side in {r["side"] for r in losses}
            },
            trading_state=self._state_for(row),
            **{
                name: told[name]
                for name in ("free_margin", "leverage", "live_spread", "market_open", "clock_ok")
                if name in told
            },
        )

    def _state_for(self, row: Row) -> str:
        """Return the trading state that a signal was written in."""
        halted = self.last_free is not None and row["seq"] > self.last_free
        return "HALTED" if halted else self.state

    def _worth(self, row: Row, state: str) -> float:
        """Return what a position is worth at its entry, in account currency."""
        spec = self._profile(row["instance"]).symbol(row["symbol"])
        known = state in ("FILLED", "PARTIAL")
        lots = row["filled_lots"] if known and row["filled_lots"] is not None else row["lots"]
        price = row["price"] if known and row["price"] is not None else row["entry"]
        return float(lots * price / spec.tick_size * spec.tick_value)

    # --- R4 ---------------------------------------------------------------------------------------

    def halt_holds(self) -> None:
        halts = self.world.halts()
        if self.halted:
            assert halts, "the halt has gone, and nobody resumed"
            new = self.world.published() - self.out
            assert not new, f"let out after the halt: {sorted(new)}"
            marked = self._marked()
            late = [sid for sid in marked - self.marked if not (self.booking and self._waited(sid))]
            assert not late, f"sent on paper after the halt: {late}"
            self.marked, self.booking = marked, False
        elif halts:
            self.note_halt()
        sent = self._sent_by_advisor()
        if "main" not in halts:
            self.down = None
        elif self.down is None:
            self.down = sent
        else:
            assert sent == self.down, "the Advisor traded past control/HALT"

    def note_halt(self, *, decided: bool = False, booking: bool = False) -> None:
        """From now on nothing may go out.

        `decided`: a tick is storing what it decided before. `booking`: it is booking what the paper
        bridge did at the open of a past bar, where an opening follows its close.
        """
        if not self.halted:
            last = self.world.rows("SELECT coalesce(max(seq), 0) FROM signals")[0][0]
            self.last_free = None if decided else int(last)
            self.halted, self.out, self.marked = True, self.world.published(), self._marked()
            self.booking = booking
            self.world.seen["halts"] += 1

    def note_resume(self) -> None:
        """A person lets trading go on."""
        self.halted, self.last_free, self.down = False, None, None

    def _marked(self) -> set[str]:
        """Return the signals that were sent on paper."""
        sql = (
            "SELECT DISTINCT sid FROM signal_events JOIN signals USING (sid) "
            "WHERE bridge = 'paper' AND to_state = 'PUBLISHED'"
        )
        return {row[0] for row in self.world.rows(sql)}

    def _waited(self, sid: str) -> bool:
        return self.world.rows("SELECT after FROM signals WHERE sid = ?", sid)[0][0] is not None

    def _sent_by_advisor(self) -> int:
        return sum(deal["reason"] == EXPERT for deal in self.world.ea.deals())

    # --- R7 ---------------------------------------------------------------------------------------

    def books_agree(self) -> None:
        """Compare positions on file with the broker's; to be asked when both are at rest."""
        alarms = {row["key"]: row for row in self.world.rows("SELECT * FROM alarms")}
        for item in ON_CHANNEL.values():
            theirs = {str(p["ticket"]): p for p in self.world.ea.positions(item.magic)}
            rows = self.world.rows(
                "SELECT * FROM signals WHERE instance = ? AND kind = 'open' AND state IN "
                "('FILLED', 'PARTIAL', 'UNKNOWN')", item.id,
            )  # fmt: skip
            for row in rows:
                position = theirs.pop(row["ticket"] or "", None)
                if row["state"] == "UNKNOWN":
                    assert f"UNKNOWN {row['sid']}" in alarms, f"{row['sid']} is in doubt in silence"
                    continue
                assert position is not None, f"{row['sid']} is a position that the broker has not"
                side = {"LONG": "BUY", "SHORT": "SELL"}[position["side"]]
                assert (side, position["volume"]) == (row["side"], held_lots(row)), row["sid"]
            self._strangers(theirs, alarms)

    def _strangers(self, positions: Iterable[str], alarms: dict[str, Row]) -> None:
        for ticket in positions:
            told = [key for key, row in alarms.items() if ticket in f"{key} {row['detail']}"]
            assert told, f"the position {ticket} is explained by nothing, and nobody was told"
            assert self.world.state() != "ACTIVE", f"a stranger {ticket}, and openings go on"
            self.world.seen["strangers found"] += 1

    # --- the end ----------------------------------------------------------------------------------

    def everything_is_accounted_for(self) -> None:
        """Compare every signal with the broker's orders when nothing is under way any more."""
        executed = Counter(deal["comment"] for deal in self.world.ea.deals() if deal["comment"])
        for row in self.world.rows("SELECT * FROM signals WHERE bridge <> 'paper'"):
            sid, state = row["sid"], row["state"]
            self.world.seen[f"{row['kind']} {state}"] += 1
            if state in ("FILLED", "PARTIAL", "CLOSED"):
                assert executed[sid] == 1, f"{sid} is {state}, and was never executed"
            elif state not in GONE:
                alarms = self.world.rows("SELECT 1 FROM alarms WHERE key LIKE ?", f"%{sid}%")
                assert alarms, f"{sid} has no end ({state}), and nobody was told"

    def every_close_has_a_row(self, begin: datetime) -> None:
        """See that no bar was passed over since the first row of its stream."""
        now = self.world.clock.now()
        for item in INSTANCES.values():
            for name in item.timeframes:
                sql = "SELECT bar_time FROM ticks WHERE instance = ? AND timeframe = ?"
                there = {parse(row[0]) for row in self.world.rows(sql, item.id, name)}
                step, moment = duration(name), min(there, default=now)
                while moment + 4 * step < now:
                    assert moment in there, f"{item.id} {name} {moment} has no row"
                    moment += step

    def dump(self, tables: Iterable[str] = DUMPED) -> dict[str, list[tuple[Any, ...]]]:
        """Return everything that stands in tables."""
        return {
            name: [tuple(r) for r in self.world.rows(f"SELECT * FROM {name}")] for name in tables
        }


def held_lots(row: Row) -> float:
    return float(row["lots"] if row["filled_lots"] is None else row["filled_lots"])
