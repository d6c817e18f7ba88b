"""Apps over homes in the states that a person meets, each in a folder of its own.

`opened(name, folder)` lends the app of a state: the same one each time, in frozen time. What a
state consists of is told by its function.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Final
from unittest.mock import patch

from flask import Flask

from tests.doubles import compiled_rules, scripted
from tests.doubles.compiled_templates import CompiledTemplates, NobodyGave
from tests.doubles.visitors import bearer, new_access
from tests.golden.frozen import NOW
from tests.worlds import (
    arm_trades,
    cards,
    demo_orders,
    desk_pages,
    desks,
    firm_ticks,
    hands,
    hostile_home,
    journals,
    radar_runs,
    replay_exhibits,
    screens,
    stored_days,
    swarm_ticks,
    told_lessons,
)
from tests.worlds.channels import ENVIRONMENT, EUR, Realtime
from tests.worlds.demo_view import ScriptedView
from torra.config import Channel, DeskSettings, Profile, validate
from torra.dashboard.app import create_app
from torra.dashboard.view.backing import PageContext, context_of
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk.event_stream import EventStream
from torra.desk.looking_desk import look_at
from torra.desk_lock import DeskLock
from torra.exhibits import report, trade_file
from torra.radar import ladder
from torra.radar.agents import fallback
from torra.store import ledger as ledger_table
from torra.store import ticks as claim_table
from torra.tools.desk_reader import DeskReader

BOTH: Final = (desks.BTC, desks.EUR)
CLOSES: Final = 8
"""Closes of 15 minutes that the demo lived through."""

"""Seconds for which a desk of a state works."""


class Instant(journals.Moody):
    """A model whose thinking takes none of the desk's time: else each thread adds its share."""

    clock = property(lambda _: None, lambda _, clock: None)


def demo(home: Path, end: ExitStack) -> Flask:
    """The demo after two hours with all: four instances, headlines, skips, two replays, a scan."""
    with patch.object(stored_days, "WARM_UP", 2), patch.object(journals, "Moody", Instant):
        stored_days.live(home, CLOSES)
    replay = replay_exhibits.demo_document()
    report.write(home, replay)
    trades = trade_file.as_csv([arm_trades.arm_of([-1.0, 2.0])])
    (home / "replays" / replay.name).mkdir()
    (home / "replays" / replay.name / trade_file.FILE).write_text(trades)
    (home / "replays" / "broken.json").write_text("{")
    named = (stored_days.BUDGET, stored_days.FULL, stored_days.LOOKS_ON, stored_days.ASKS)
    settings = {"instances": [one.model_dump(mode="json", exclude_defaults=True) for one in named]}
    (home / "desk.json").write_text(json.dumps(settings))
    context = replace(context_of(look_at(home)), environment={})
    end.callback(context.database.close)
    lock = DeskLock(home)
    assert lock.acquire()
    end.callback(lock.release)
    claim_table.begin_run(context.database, "run 77", 77)
    desk = context.desk
    ladder.run(DeskReader.of_desk(home, context.settings, desk, context.database))
    return _app(context)


def crowded(_home: Path, _end: ExitStack) -> Flask:
    """A desk of eight whose newest ticks are of every kind, with proposals, alarms and debates."""
    return screens.view_app("busy")


def empty(home: Path, end: ExitStack) -> Flask:
    """A fresh home whose desk has no tick yet."""
    return _of_pages(desk_pages.open_pages(home, BOTH, steps=0), end)


def halted(home: Path, end: ExitStack) -> Flask:
    """A desk that a person has halted from a page."""
    app = _of_pages(desk_pages.open_pages(home, BOTH, steps=2), end)
    body = {"reason": "a person looks at it"}
    halt = app.test_client().post("/api/v1/halt", json=body, headers=bearer("admin"))
    assert halt.status_code == 200, halt.text
    return app


def degraded(home: Path, end: ExitStack) -> Flask:
    """A desk of eight whose models do not answer, with a late stream, an alarm and a block."""
    lost = dict.fromkeys(("technical", "momentum", "news", "key_levels"), "no JSON")
    desk = desks.open_desk(
        home, BOTH, profile=validate(Profile, desk_pages.PAYING, "a test"),
        provider=scripted.Scripted(lost),
    )  # fmt: skip
    end.callback(desk.close)
    desk.events = EventStream(desk.database, gather=0.0)
    desks.open_for_work(desk)
    for _ in range(3):
        last = desks.step(desk)
    desk.events.close(within=60.0)
    desks.clock_of(desk).set(last + timedelta(hours=5))
    now = desk.clock.real_now()
    ledger_table.block_provider(
        desk.database, "anthropic", "401: the key was refused", now + timedelta(hours=1)
    )
    desk.database.raise_alarm("a key", "UNKNOWN_ORDER", "an order that nobody sent")
    desk.database.set_trading_state("REDUCING", "the books differ")
    told = fallback("AUTH_REFUSED")
    rules = radar_runs.run_of(radar_runs.row("BTCUSD|M15", "watch", ("NEAR_THRESHOLD",)))
    radar_runs.stored(desk.database, rules.model_copy(update=told))
    return _app(PageContext(home, desk.database, DeskSettings(instances=BOTH), desk, {}))


def hosted(home: Path, end: ExitStack) -> Flask:
    """Another program's scorer that has asked, and no desk."""
    home.mkdir()
    return screens.hosted_app(home, new_access())


def firm(home: Path, end: ExitStack) -> Flask:
    """A firm whose trader wrote, declined, was silent; agents over its radar, a card."""
    trader = [firm_ticks.thesis, firm_ticks.declining()["trader"], "no JSON"]
    pages = firm_ticks.lived(home, {"trader": trader}, steps=3)
    radar_runs.stored(pages.database, radar_runs.agents_run())
    cards.stored(pages.database)
    return _of_pages(pages, end)


def swarm(home: Path, end: ExitStack) -> Flask:
    """A swarm that holds a long whose judge asks for its close."""
    return _of_pages(swarm_ticks.asked_to_close(home), end)


def approve(home: Path, end: ExitStack) -> Flask:
    """A desk that asks a person: proposals, signals in every state, an alarm, jobs."""
    with patch.object(demo_orders, "_ran", demo_orders._ran.__wrapped__):
        backing = demo_orders.build(home)
    end.callback(backing.database.close)
    return _app(backing)


def live(home: Path, end: ExitStack) -> Flask:
    """A channel with an Expert Advisor and real money, on which a position is held."""
    with patch.object(hands, "Realtime", lambda: Realtime(NOW)):
        market = hands.Market(home)
    end.callback(market.database.close)
    market.quoted()
    market.open()
    market.look(8, seconds=2.5)
    way = Channel(folder=str(market.stage.folder), account=1001, live=True)
    settings = DeskSettings(instances=(EUR,), channels={"main": way})
    setups = {EUR.id: SimpleNamespace(instance=EUR, profile=Profile())}
    desk = SimpleNamespace(clock=market.clock, setups=setups, active=True)
    return _app(PageContext(home, market.database, settings, desk, ENVIRONMENT))


def lessons(home: Path, end: ExitStack) -> Flask:
    """Lessons of trades that won, lost and were vetoed, and a model's words about one."""
    backing = end.enter_context(told_lessons.desk(home))
    told_lessons.write(backing.database)
    return _app(backing)


ODD: Final = (
    "[}", "", "null", "7", '"a text"', "[]", "{}", '[1, null, "x", {"kind": 5}]',
    '{"reports": 5, "agents": "none", "drafts": {}, "stages": [7], "action": {}, "l1": []}',
)  # fmt: skip
"""What a document of the database must not be."""


def damaged(home: Path, end: ExitStack) -> Flask:
    """A home whose documents are odd, row by row, whose states are unknown, whose files broken."""
    source = hostile_home.Home(home.with_name("source"))
    end.callback(source.close)
    filled = source.filled(home, (f"word {number}" for number in range(5000)))
    end.callback(filled.close)
    change = filled.database.connection().execute
    columns = [(table, one) for table, names in hostile_home.DOCUMENTS.items() for one in names]
    odd = cycle(ODD)
    with filled.database.transaction():
        for table, column in [*columns, ("proposals", "drafts")]:
            name = hostile_home.KEYED.get(table, "rowid")
            for (key,) in change(f"SELECT {name} FROM {table} ORDER BY 1").fetchall():
                change(f"UPDATE {table} SET {column} = ? WHERE {name} = ?", (next(odd), key))
        change("UPDATE signals SET state = 'STRANGE' WHERE rowid % 5 = 0")
        change("UPDATE bars SET close = 'x', high = 1e308 WHERE bar_time LIKE '%T05:00%'")
    return _app(filled.backing)


def lost(home: Path, end: ExitStack) -> Flask:
    """A database that cannot be read any more."""
    app = _of_pages(desk_pages.open_pages(home, steps=1), end)
    end.close()
    return app


def failing(_home: Path, _end: ExitStack) -> Flask:
    """A fault that nobody foresaw."""
    return create_app(ScriptedView("failing"), access=new_access())


STATES: Final[Mapping[str, Callable[[Path, ExitStack], Flask]]] = {
    make.__name__: make
    for make in (
        *(demo, crowded, empty, halted, degraded, hosted, firm, swarm, approve, live, lessons),
        *(damaged, lost, failing),
    )
}
"""The functions that make them, by name."""


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Flask]:
    """Lend the app of a state whose home is made in a folder."""
    compiled_rules.share()
    options = {"bytecode_cache": TEMPLATES, "undefined": NobodyGave}
    with (
        patch.object(Flask, "jinja_options", options),
        patch.object(logging, "lastResort", None),
        ExitStack() as end,
    ):
        end.callback(os.umask, os.umask(0o077))
        yield STATES[name](folder / name, end)


TEMPLATES: Final = CompiledTemplates()


def _of_pages(pages: desk_pages.Pages, end: ExitStack) -> Flask:
    end.callback(pages.desk.close)
    return _app(pages.backing)


def _app(backing: PageContext) -> Flask:
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    return create_app(view, access=new_access(), backing=backing)
