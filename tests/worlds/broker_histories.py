"""A market with a memory, for the tests of reconciliation: it knows what truly happened.

`History` is drawn from one seed. Its desk sends openings and closes; its broker fills them, in
parts too, cuts comments, closes by stop, target and hand, and takes foreign orders; the way between
them loses and delays acknowledgements; its books lag. `compare` books what reconciliation finds and
checks on the way that nothing in the rows is wrong.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from torra.bridges.protocol import BrokerBooks, BrokerDeal, BrokerPosition
from torra.clock import iso
from torra.trading.reconciliation import Finding, reconcile
from torra.verdict.order_levels import Side
from torra.verdict.signal_states import EXECUTED, SENT, TRANSITIONS

NOON = datetime(2026, 2, 13, 12, tzinfo=UTC)
MAGICS = {"GOLD": 220_000_001, "EURUSD": 220_000_002}
FOREIGN = 77
SID = "T7K3Q9ZB2M4XA"
Row = dict[str, Any]
EMPTY = (
    *("closes", "ticket", "opened_at", "price", "filled_lots", "deal", "missed_at"),
    *("closed_at", "close_price", "profit", "close_reason"),
)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def opening(sid: str = SID, **more: Any) -> Row:
    """The row of an opening in the table of signals, published at NOON."""
    row: Row = {
        "sid": sid,
        "instance": "GOLD",
        "kind": "open",
        "side": "BUY",
        "lots": 0.5,
        "entry": 2000.0,
        "stop": 1990.0,
        "target": 2020.0,
        "decided_at": iso(NOON),
        "expires": iso(NOON + seconds(180)),
        "state": "PUBLISHED",
        "misses": 0,
        "changed_at": iso(NOON),
    }
    return {**row, **dict.fromkeys(EMPTY), **more}


@dataclass
class Truth:
    """What became of one order at the broker; `ticket` is "" while nothing did."""

    ticket: str = ""
    said: bool = False
    """Whether a report has told the number of the position."""


def apply_to_rows(
    rows: Iterable[Row], findings: Iterable[Finding], *, at: datetime
) -> tuple[dict[str, Any], ...]:
    """Return the rows once findings are booked at a time: the model that every booking follows."""
    after = {row["sid"]: dict(row) for row in rows}
    for finding in findings:
        row = after.get(finding.sid, {"state": ""})
        known = finding.columns
        state = known.get("state", row["state"])
        if state != row["state"]:
            assert state in TRANSITIONS[row["state"]], f"{finding.sid}: {row['state']} to {state}"
            known["changed_at"] = iso(at)
        row.update(known)
    return tuple(after.values())


@dataclass
class History:
    """A desk, its broker and the way between them, drawn from one seed."""

    chance: random.Random
    now: datetime = NOON
    rows: dict[str, Row] = field(default_factory=dict)
    truth: dict[str, Truth] = field(default_factory=dict)
    positions: dict[str, BrokerPosition] = field(default_factory=dict)
    deals: list[BrokerDeal] = field(default_factory=list)
    shots: list[BrokerBooks] = field(default_factory=list)
    letters: list[Callable[[], None]] = field(default_factory=list)
    number: int = 500
    window: timedelta = timedelta(days=7)

    # --- the broker -------------------------------------------------------------------------------

    def fresh(self) -> str:
        self.number += self.chance.randint(1, 3)
        return str(self.number)

    def comment(self, text: str) -> str:
        """Return what a broker makes of a comment."""
        cut = text[: self.chance.randint(8, 12)]
        kinds = [text] * 6 + [cut, f"{cut}~{self.chance.randint(0, 9)}", "", "broker", text[:5]]
        return self.chance.choice(kinds)

    def price(self) -> float:
        return round(self.chance.uniform(1980, 2030), 2)

    def money(self) -> float:
        return round(self.chance.uniform(-100, 100), 2)

    def open(
        self,
        magic: int,
        side: Side,
        lots: list[float],
        text: str,
        levels: tuple[float, float] = (1.0, 9e3),
    ) -> str:
        ticket = self.fresh()
        called = self.comment(text)
        fills = [(size, self.price()) for size in lots]
        for size, price in fills:
            self.deals.append(
                BrokerDeal(
                    self.fresh(),
                    ticket,
                    "X",
                    "in",
                    side,
                    size,
                    price,
                    -0.5,
                    magic,
                    called,
                    self.now,
                    "expert",
                )
            )
            self.now += seconds(self.chance.choice([0, 0, 0.2]))
        total = round(sum(lots), 8)
        mean = round(sum(size * price for size, price in fills) / total, 8)
        stop, target = levels
        self.positions[ticket] = BrokerPosition(
            ticket, "X", "LONG" if side == "BUY" else "SHORT", total, mean, stop, target, magic,
            self.comment(text) if self.chance.random() < 0.2 else called, 0.0, self.now,
        )  # fmt: skip
        return ticket

    def end(self, ticket: str, lots: float, reason: str, *, magic: int, text: str = "") -> None:
        """Close a position or a part of it."""
        item = self.positions[ticket]
        side: Side = "SELL" if item.side == "LONG" else "BUY"
        self.deals.append(
            BrokerDeal(
                self.fresh(),
                ticket,
                "X",
                "out",
                side,
                lots,
                self.price(),
                self.money(),
                magic,
                text,
                self.now,
                reason,
            )
        )
        left = round(item.lots - lots, 8)
        if left:
            self.positions[ticket] = replace(item, lots=left)
        else:
            del self.positions[ticket]

    def of(self, kind: str) -> list[Row]:
        return [row for row in self.rows.values() if row["kind"] == kind]

    def look(self) -> BrokerBooks:
        since = self.now - self.window
        recent = tuple(deal for deal in self.deals if deal.time >= since)
        return BrokerBooks(tuple(self.positions.values()), recent, self.now, since)

    # --- the desk ---------------------------------------------------------------------------------

    def say(self, sid: str, status: str, **told: Any) -> None:
        """Deliver a report now, later, twice or never."""

        def deliver() -> None:
            row = self.rows[sid]
            if status in TRANSITIONS[row["state"]]:
                row.update(state=status, changed_at=iso(self.now), **told)
                self.truth[sid].said |= "ticket" in told

        fate = self.chance.random()
        if fate < 0.4:
            deliver()
        elif fate < 0.7:
            self.letters += [deliver] * self.chance.randint(1, 2)

    def write(self, **columns: Any) -> Row:
        sid = "T" + "".join(self.chance.choices(string.ascii_uppercase + "234567", k=12))
        row = opening(sid, decided_at=iso(self.now), expires=iso(self.now + seconds(180)))
        row |= {**columns, "changed_at": iso(self.now)}
        self.rows[sid], self.truth[sid] = row, Truth()
        self.pass_by(0.5)
        return row

    def live(self, instance: str, kind: str, states: Iterable[str]) -> list[Row]:
        return [
            row
            for row in self.rows.values()
            if (row["instance"], row["kind"]) == (instance, kind) and row["state"] in states
        ]

    def do_open(self) -> None:
        instance = self.chance.choice(list(MAGICS))
        if self.live(instance, "open", (*SENT, *EXECUTED)):
            return
        sides: tuple[Side, Side] = ("BUY", "SELL")
        side = self.chance.choice(sides)
        levels = (1990.0, 2020.0) if side == "BUY" else (2020.0, 1990.0)
        row = self.write(instance=instance, side=side, stop=levels[0], target=levels[1])
        sid, fate = row["sid"], self.chance.random()
        if fate < 0.1:
            row["state"] = self.chance.choice(["EXPIRED", "CANCELLED"])
            row["changed_at"] = iso(self.now)
            if self.chance.random() < 0.5:  # the market takes it all the same
                self.pass_by(1)
                self.truth[sid].ticket = self.open(MAGICS[instance], side, [0.5], sid, levels)
        elif fate < 0.2:
            self.say(sid, self.chance.choice(["REJECTED", "EXPIRED", "UNKNOWN_NOT_SENT"]))
        elif fate < 0.35:
            row.update(state="UNKNOWN", changed_at=iso(self.now))
        elif fate > 0.4:
            self.executed(row, levels)

    def executed(self, row: Row, levels: tuple[float, float]) -> None:
        sid = row["sid"]
        self.say(sid, "CLAIMED")
        lots = self.chance.choice([[0.5], [0.5], [0.2, 0.3], [0.1, 0.2], [0.3]])
        ticket = self.open(MAGICS[row["instance"]], row["side"], lots, sid, levels)
        self.truth[sid].ticket = ticket
        if self.chance.random() < 0.3:
            row.update(state="UNKNOWN", changed_at=iso(self.now))
        fill = {
            "ticket": ticket,
            "price": self.positions[ticket].entry,
            "filled_lots": round(sum(lots), 8),
        }
        status = "FILLED" if round(sum(lots), 8) == 0.5 else "PARTIAL"
        self.say(sid, status, opened_at=iso(self.now), **fill)

    def do_close(self) -> None:
        instance = self.chance.choice(list(MAGICS))
        under_way = self.live(instance, "close", SENT)
        for row in [] if under_way else self.live(instance, "open", EXECUTED):
            side = "SELL" if row["side"] == "BUY" else "BUY"
            lots = row["filled_lots"] or row["lots"]
            close = self.write(
                kind="close", instance=instance, side=side, lots=lots, closes=row["sid"]
            )
            self.fate_of_close(close, row)

    def fate_of_close(self, close: Row, row: Row) -> None:
        sid, ticket, fate = close["sid"], self.truth[row["sid"]].ticket, self.chance.random()
        if fate < 0.2 or ticket not in self.positions:
            self.say(sid, "REJECTED")
        elif fate < 0.4:
            close.update(state="UNKNOWN", changed_at=iso(self.now))
        elif fate > 0.5:
            lots, magic = self.positions[ticket].lots, MAGICS[row["instance"]]
            self.end(ticket, lots, "expert", magic=magic, text=self.comment(sid))
            self.truth[sid].ticket = ticket
            last = self.deals[-1]
            if self.chance.random() < 0.3:
                close.update(state="UNKNOWN", changed_at=iso(self.now))
            known = {"price": last.price, "closed_at": iso(last.time), "deal": last.deal}
            self.say(sid, "FILLED", filled_lots=lots, **known)

    def do_market(self) -> None:
        """Let a stop or a target be hit, or a person act, on any position."""
        if not self.positions:
            return
        ticket = self.chance.choice(list(self.positions))
        item = self.positions[ticket]
        steps = round(item.lots / 0.1)
        reason, lots = self.chance.choice(
            [("sl", item.lots), ("tp", item.lots), ("client", item.lots), ("stop_out", item.lots)]
            + [("client", 0.1 * self.chance.randint(1, steps))] * 3
        )
        magic = 0 if reason == "client" else item.magic
        self.end(ticket, round(lots, 8), reason, magic=magic, text=f"[{reason}]")

    def do_levels(self) -> None:
        for ticket, item in self.positions.items():
            if self.chance.random() < 0.5:
                self.positions[ticket] = replace(item, stop=self.chance.choice([0.0, 1985.0]))

    def do_foreign(self) -> None:
        self.open(
            self.chance.choice([0, FOREIGN]), "BUY", [0.3], self.chance.choice(["", *self.rows])
        )

    def do_stranger(self) -> None:
        if self.chance.random() < 0.4:
            self.open(self.chance.choice(list(MAGICS.values())), "BUY", [0.3], "mine")

    def do_letters(self) -> None:
        self.chance.shuffle(self.letters)
        while self.letters and self.chance.random() < 0.7:
            self.letters.pop()()

    def pass_by(self, most: float) -> None:
        self.now += seconds(round(self.chance.uniform(0.1, most), 1))
        self.shots.append(self.look())

    # --- comparing --------------------------------------------------------------------------------

    def compare(self, told: BrokerBooks) -> tuple[Finding, ...]:
        """Compare and book; the same books once more must change nothing, nor any order of rows."""
        before = tuple(dict(row) for row in self.rows.values())
        findings = reconcile(before, told, now=self.now, magics=MAGICS)
        mixed = [dict(row) for row in before]
        self.chance.shuffle(mixed)
        turned = replace(told, positions=told.positions[::-1], deals=told.deals[::-1])
        other = reconcile(mixed, turned, now=self.now, magics=MAGICS)
        assert sorted(map(repr, other)) == sorted(map(repr, findings))
        once = apply_to_rows(before, findings, at=self.now)
        for rows in (once, undated(once, before)):
            again = reconcile(rows, told, now=self.now, magics=MAGICS)
            assert apply_to_rows(rows, again, at=self.now) == rows
            # A stop that was moved is told by every look, with the same place.
            assert all(one.kind == "LEVELS_MOVED" or not one.values for one in again)
        self.rows = {row["sid"]: row for row in once}
        self.never_wrong(findings)
        return findings

    def never_wrong(self, findings: Iterable[Finding]) -> None:
        for row in self.rows.values():
            ticket = self.truth[row["sid"]].ticket
            if row["state"] in (*EXECUTED, "CLOSED"):
                assert ticket, row
            if row["state"] == "NOT_SENT" and row["kind"] == "open":
                assert not ticket, row
            if row["state"] == "CLOSED":
                assert ticket not in self.positions, row
        for finding in findings:
            if ticket := finding.ticket:
                assert self.magic_of(ticket) in MAGICS.values()

    def magic_of(self, ticket: str) -> int:
        return next(deal.magic for deal in self.deals if deal.position == ticket)

    def torn(self) -> BrokerBooks:
        """Return one of the newest books, its positions and deals perhaps not of one moment."""
        one, other = (self.chance.choice(self.shots[-4:]) for _ in range(2))
        if abs(one.at - other.at) > seconds(5):
            return one
        early = min(one, other, key=lambda shot: shot.at)
        return replace(early, positions=one.positions, deals=other.deals)

    def live_through(self) -> None:
        self.window = self.chance.choice([timedelta(days=7)] * 4 + [timedelta(seconds=200)])
        doings = [self.do_open] * 5 + [self.do_close] * 2 + [self.do_market] * 3
        doings += [self.do_levels, self.do_foreign, self.do_stranger] + [self.do_letters] * 2
        for _ in range(self.chance.randint(5, 25)):
            self.chance.choice(doings)()
            self.pass_by(self.chance.choice([2.0, 10.0, 90.0]))
            for _ in range(self.chance.choice([0, 1, 1, 2])):
                self.compare(self.torn())

    def settle(self) -> tuple[Finding, ...]:
        """Let the market rest and look often enough."""
        findings: tuple[Finding, ...] = ()
        for _ in range(12):
            self.now += seconds(30)
            findings = self.compare(self.look())
        return findings


def undated(rows: Iterable[Row], before: Iterable[Row]) -> tuple[Row, ...]:
    """Return rows as if their steps had been taken long ago, so that the same books may speak."""
    return tuple(
        {**row, "changed_at": former["changed_at"]}
        for row, former in zip(rows, before, strict=True)
    )
