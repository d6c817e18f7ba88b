"""What reaches a person who is not looking: every notice as text, and what a web hook gets of it.

full.txt and short.txt have every kind of notice with all words that it knows, demo.txt the mark of
a desk that replays the past. hook.json is what a web hook gets, a notice of each level.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.doubles.notice_server import WebHook
from tests.golden.frozen import PATIENCE
from tests.golden.projection import projected
from tests.worlds.calls import store
from tests.worlds.stores import opening, save
from tests.worlds.told import PAID, Pager, ToldDesk, end, fill, propose
from torra.config import NoticeSettings
from torra.notices.apprise_service import AppriseAddress
from torra.notices.words import MEANINGS
from torra.store import notices as notice_table
from torra.store.ledger import Booking, Settlement
from torra.store.trade import proposals_and_alarms as execution_table
from torra.words.orders import ALARMS

CLOSE: Final = {"kind": "close", "side": "SELL", "lots": 0.1, "levels": None, "closes": "T1"}
OPEN: Final = {"kind": "open", "side": "SELL", "lots": 0.2, "levels": None, "closes": "T1"}
ENDS: Final[tuple[Mapping[str, Any], ...]] = (
    {"reason": "TARGET"},
    {"reason": "STOPPED", "profit": -1200.5, "r_multiple": -1.0},
    {"reason": "CLOSED", "profit": 0.0, "r_multiple": 0.0},
    {"reason": "BY_HAND", "profit": 1.0, "r_multiple": 0.01},
)
MANY: Final = 520
"""More notices than may wait for one service."""


def make(folder: Path) -> dict[str, str]:
    """Return the notices of three desks, and what the web hook of a fourth was sent."""
    texts = {}
    for name, settings in (("full", NoticeSettings()), ("short", NoticeSettings(detail="short"))):
        desk = ToldDesk(folder / name, Pager(), settings=settings, profile=PAID)
        desk.look()
        _trade(desk)
        _worry(desk)
        texts[f"{name}.txt"] = _text(desk)
    demo = ToldDesk(folder / "demo", Pager())
    demo.clock.accelerated = True
    demo.look()
    _each_level(demo)
    for number in range(MANY):
        demo.database.set_trading_state(("REDUCING", "ACTIVE")[number % 2], "")
    demo.look()
    demo.look()
    texts["demo.txt"] = _text(demo)
    return {**texts, "hook.json": json.dumps(_hook(folder / "hook"), indent=1, sort_keys=True)}


def _trade(desk: ToldDesk) -> None:
    """Let proposals wait, positions begin and end in every way, and orders be refused for all."""
    database = desk.database
    propose(database)
    propose(database, "P2", drafts=[CLOSE, OPEN])
    facts = {"currency": "CHF", "account": 48151623}
    execution_table.note_bridge(database, "torra_files main", deny="", detail="", facts=facts)
    for number, how in enumerate(ENDS):
        fill(database, f"T{number}", side=("BUY", "SELL")[number % 2])
        desk.look()
        end(database, f"T{number}", **how)
        desk.look()
    fill(database, "TCHF", bridge="torra_files main")
    end(database, "TCHF")
    for state, details in (("EXPIRED", ["SIGNAL_EXPIRED", ""]), ("REJECTED", sorted(MEANINGS))):
        for detail in details:
            sid = f"T{state}{detail}"
            assert database.enqueue_signal(opening(sid, instance="EURUSD", symbol="EURUSD"))
            database.move_signal(sid, "PUBLISHED")
            database.move_signal(sid, state, detail=detail)
    desk.look()


def _worry(desk: ToldDesk) -> None:
    """Let alarms stand, trading stop, models cost too much and fail, and bars fail to come."""
    database = desk.database
    for kind in (*sorted(ALARMS), "NEVER_HEARD_OF"):
        database.raise_alarm(f"{kind} T1", kind, "position 4711471 of /home/x")
        desk.look()
    reasons = {"HALTED": "lunch at <b>noon</b>", "REDUCING": "/home/x", "ACTIVE": ""}
    for state, reason in reasons.items():
        database.set_trading_state(state, reason)
        desk.look()
    now = desk.clock.now()
    booking = Booking("analysts", "technical", 1, 1, "anthropic", "m", 0.81)
    (row,) = database.book("default", "k", [booking], at=now, until=now)
    database.settle(row, Settlement(0.81, now))
    desk.later_look()
    for statuses in (["garbage"] * 5, ["ok"] * 30):
        store(database, statuses)
        desk.later_look()
    save(database, desk.clock.now(), instance="EURUSD")
    for _ in range(60):
        desk.later(seconds=60)
        desk.look()


def _each_level(desk: ToldDesk) -> None:
    desk.database.halt("lunch")
    propose(desk.database)
    fill(desk.database)
    desk.database.set_trading_state("ACTIVE", "back")
    desk.look()


def _text(desk: ToldDesk) -> str:
    """Return the notices, oldest first; of several with the same words one."""
    rows = reversed(notice_table.notices(desk.database, 2000))
    lines = (
        f"{row['kind']}, {row['level']}{', silent' if row['silent'] else ''}\n"
        f"{row['title']}\n{row['text']}\n"
        for row in rows
    )
    return "\n".join(dict.fromkeys(lines))


def _hook(folder: Path) -> Any:
    """Return what a web hook is sent: a notice of each level."""
    pager = Pager()
    desk = ToldDesk(folder, pager)
    desk.look()
    _each_level(desk)
    desk.send_all()
    with WebHook() as hook:
        service = AppriseAddress("1 json", hook.address(), PATIENCE)
        for notice in pager.taken:
            service.send(notice)
    return projected(sorted(hook.got, key=lambda got: str(got["title"])), "api")
