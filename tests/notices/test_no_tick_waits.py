"""Whatever a service does, no tick waits for it or enters it; starts and ends are clean."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from instance_database import Database
from tests.tries import until
from tests.worlds import desks
from tests.worlds.told import REFUSED, Pager, ToldDesk, fill, until_watched
from torra.config import NoticeSettings
from torra.desk.schedule import Desk
from torra.notices import desk_notices
from torra.notices.desk_notices import DeskNotices
from torra.notices.protocol import Notice
from torra.notices.sending import Sender
from torra.store import notices as notice_table
from torra.store.notices import PATIENCE_SECONDS

PATIENCE = 30.0
"""Real seconds after which a test gives up: nothing is measured by them."""


class Odd:
    """A service that misbehaves in a way; `entered` are the threads that came."""

    name = "1 odd"

    def __init__(self, how: str) -> None:
        self.how = how
        self.entered: list[str] = []
        self.let_go = threading.Event()

    def send(self, notice: Notice) -> None:
        self.entered.append(threading.current_thread().name)
        if self.how == "hangs":
            self.let_go.wait(PATIENCE)
        elif self.how == "fails":
            raise RuntimeError(notice.text)
        elif self.how == "ends its thread":
            raise SystemExit


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_notices, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(desk_notices, "Sender", partial(Sender, idle=0.02))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    found = desks.working_desk(tmp_path)
    yield found
    found.database.close()


def notices_of(desk: Desk, *services: Any, opened: Any = None) -> DeskNotices:
    return DeskNotices(
        desk.database,
        NoticeSettings(),
        lambda: desks.profiles(desk),
        lambda: desk.clock,
        opened or (lambda: services),
    )


def told(database: Database) -> list[str]:
    return [row["kind"] for row in notice_table.notices(database, 50)][::-1]


@pytest.mark.journey
@pytest.mark.parametrize("how", ["hangs", "fails", "ends its thread"])
def test_ticks_run_while_a_service_misbehaves(desk: Desk, how: str) -> None:
    odd = Odd(how)
    notices = notices_of(desk, odd)
    looked: set[str] = set()
    look = notices.watcher.look

    def watched() -> int:
        looked.add(threading.current_thread().name)
        return look()

    vars(notices.watcher)["look"] = watched
    notices.start()
    try:
        until_watched(desk)
        desk.database.halt("by a person")
        until(lambda: odd.entered)
        ticks = 0
        for _ in range(6):
            desks.step(desk)
            ticks += 1
        stored = desk.database.ticks("BTCUSD", "M15")
        assert len(stored) == ticks, "a tick at each close, whoever hangs"
        if how == "hangs":
            assert odd.entered == ["limited"] and not odd.let_go.is_set()
        fill(desk.database, instance="BTCUSD", symbol="BTCUSD")
        until(lambda: "fill" in told(desk.database))
        assert set(odd.entered) == {"limited"} and looked == {"notices"}
    finally:
        odd.let_go.set()
        notices.close()


def test_a_locked_database_is_waited_for_shortly_since_a_tick_may_queue_behind(
    tmp_path: Path,
) -> None:
    pager = Pager()
    told_desk = ToldDesk(tmp_path, pager)
    waits: list[float | None] = []
    transaction, outer = told_desk.database.transaction, threading.local()

    @contextmanager
    def noted(wait_seconds: float | None = None) -> Iterator[None]:
        if not getattr(outer, "depth", 0):
            waits.append(wait_seconds)
        outer.depth = getattr(outer, "depth", 0) + 1
        try:
            with transaction(wait_seconds):
                yield
        finally:
            outer.depth -= 1

    told_desk.look()
    fill(told_desk.database)
    told_desk.database.halt("x")
    vars(told_desk.database)["transaction"] = noted
    notice_table.keep_services(told_desk.database, [pager.name])
    told_desk.look()
    pager.answers = [REFUSED]
    told_desk.send_all()
    told_desk.later(minutes=1)
    told_desk.send_all()
    assert len(pager.taken) == 2
    assert len(waits) > 6 and set(waits) == {PATIENCE_SECONDS}


def test_one_that_hangs_holds_up_no_other(desk: Desk) -> None:
    hangs, works = Odd("hangs"), Odd("works")
    works.name = "2 works"
    notices = notices_of(desk, hangs, works)
    notices.start()
    try:
        until_watched(desk)
        desk.database.halt("by a person")
        until(lambda: hangs.entered and works.entered)
    finally:
        hangs.let_go.set()
        notices.close()


def test_closing_does_not_wait_for_a_service(desk: Desk) -> None:
    odd = Odd("hangs")
    notices = notices_of(desk, odd)
    notices.start()
    until_watched(desk)
    desk.database.halt("by a person")
    until(lambda: odd.entered)
    notices.close()
    assert not odd.let_go.is_set()

    def state() -> str:
        return str(notice_table.notices(desk.database, 1)[0]["sent"][0]["state"])

    assert state() == "sending", "a desk that died now would leave it so"
    odd.let_go.set()
    until(lambda: state() == "sent")


@pytest.mark.parametrize("error", [ValueError("http://secret"), SystemError("http://secret")])
def test_services_that_cannot_be_opened_keep_notices_in_the_list(
    desk: Desk, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Any:
        raise error

    notices = notices_of(desk, opened=broken)
    notices.start()
    until_watched(desk)
    desk.database.halt("by a person")
    until(lambda: told(desk.database))
    notices.close()
    assert told(desk.database) == ["halt"]
    assert "notices are not sent" in caplog.text and "secret" not in caplog.text
