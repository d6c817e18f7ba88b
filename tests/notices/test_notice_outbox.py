"""What waits is bounded, is tried again with pauses, survives restarts and is told once."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.cases import cases
from tests.worlds.told import REFUSED, Pager, ToldDesk, end, fill
from torra.config import NoticeSettings
from torra.errors import StoreUnavailable
from torra.notices import watching
from torra.notices.listing import LONGEST, document, table
from torra.notices.sending import pause
from torra.store import notices as notice_table


@pytest.fixture
def pager() -> Pager:
    return Pager()


@pytest.fixture
def desk(tmp_path: Path, pager: Pager) -> ToldDesk:
    found = ToldDesk(tmp_path, pager)
    found.look()
    return found


def test_a_notice_goes_to_every_service_once(tmp_path: Path) -> None:
    one, two = Pager("1 one"), Pager("2 two")
    desk = ToldDesk(tmp_path, one, two)
    desk.look()
    fill(desk.database)
    desk.look()
    desk.send_all()
    desk.send_all()
    assert one.titles == two.titles == ["EURUSD: bought 0.20 lots at 1.18340"]
    assert notice_table.notices(desk.database, 1)[0]["sent"] == [
        {"service": "1 one", "state": "sent", "tries": 1, "detail": ""},
        {"service": "2 two", "state": "sent", "tries": 1, "detail": ""},
    ]


def test_a_service_that_refuses_is_asked_again_after_growing_pauses(
    desk: ToldDesk, pager: Pager
) -> None:
    pager.answers = [REFUSED, ConnectionError("https://secret@host/token")]
    fill(desk.database)
    desk.look()
    desk.send_all()
    desk.send_all()
    assert pager.tries == 1
    desk.later(seconds=5)
    desk.send_all()
    assert pager.tries == 2
    (row,) = notice_table.notices(desk.database, 1)[0]["sent"]
    assert row["state"] == "waiting" and row["detail"] == "it failed (ConnectionError)"
    assert notice_table.notice_services(desk.database)[0]["detail"] == "it failed (ConnectionError)"
    desk.later(seconds=9)
    desk.send_all()
    assert pager.tries == 2
    desk.later(seconds=1)
    desk.send_all()
    assert pager.titles == ["EURUSD: bought 0.20 lots at 1.18340"]
    assert notice_table.notice_services(desk.database)[0]["detail"] == ""
    assert [pause(tries, 900) for tries in (1, 2, 3, 8, 9, 99)] == [5, 10, 20, 640, 900, 900]


def test_a_trade_is_given_up_after_an_hour_and_an_alarm_never(
    desk: ToldDesk, pager: Pager, caplog: pytest.LogCaptureFixture
) -> None:
    pager.answers = [REFUSED] * 500
    fill(desk.database)
    desk.database.halt("by a person")
    desk.look()
    with caplog.at_level(logging.WARNING):
        for _ in range(90):
            desk.send_all()
            desk.later(minutes=1)
    assert desk.states() == {"fill:T1": "failed", "state:1": "waiting"}
    assert len(caplog.messages) == 1 and "did not take the fill of" in caplog.messages[0]
    tries = pager.tries
    desk.later(days=30)
    desk.send_all()
    assert pager.tries == tries + 1
    pager.answers = []
    desk.later(hours=1)
    desk.send_all()
    assert pager.titles == ["Torra: trading is HALTED"]


def test_what_another_wrote_of_a_service_is_cleaned_too(desk: ToldDesk, pager: Pager) -> None:
    desk.database.halt("by a person")
    desk.look()
    pager.answers = [REFUSED]
    desk.send_all()
    for name in ("notice_outbox", "notice_services"):
        desk.database.change(f"UPDATE {name} SET detail = ?", "a\x1b[2J\u202eb" + 700 * "c")
    listed = document(desk.database)
    details = [listed["notices"][0]["sent"][0]["detail"], listed["services"][0]["failed"]]
    assert details == [("a[2Jb" + 700 * "c")[:LONGEST]] * 2


def test_one_notice_that_is_refused_holds_up_no_other(desk: ToldDesk, pager: Pager) -> None:
    desk.database.halt("by a person")
    desk.look()
    pager.answers = [REFUSED]
    desk.send_all()
    fill(desk.database)
    desk.look()
    desk.later(seconds=3)
    desk.send_all()
    assert pager.titles == ["EURUSD: bought 0.20 lots at 1.18340"]
    desk.later(seconds=2)
    desk.send_all()
    assert pager.titles[1:] == ["Torra: trading is HALTED"]


def many(desk: ToldDesk, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        fill(desk.database, f"T{number}")
        end(desk.database, f"T{number}")


def test_beyond_the_limit_the_oldest_that_is_no_alarm_is_dropped_and_that_is_told(
    desk: ToldDesk, pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_WAITING", 6)
    desk.database.halt("first")
    many(desk, 2)
    desk.look()
    assert set(desk.states().values()) == {"waiting"}
    many(desk, 2, 2)
    desk.database.raise_alarm("k", "BRIDGE", "x")
    desk.look()
    states = desk.states()
    dropped = [key for key, state in states.items() if state == "dropped"]
    assert sorted(dropped) == ["close:T0", "close:T1", "fill:T0", "fill:T1"]
    (told,) = [row for row in notice_table.notices(desk.database, 99) if row["kind"] == "dropped"]
    assert told["title"] == "Torra: 4 notices were dropped"
    desk.send_all()
    assert {notice.level for notice in pager.taken[:2]} == {"alarm"}
    assert len(pager.taken) == 7
    assert [notice.key for notice in pager.taken[2:6]] == [
        "fill:T2", "close:T2", "fill:T3", "close:T3",
    ]  # fmt: skip


def test_alarms_alone_may_exceed_the_limit(
    desk: ToldDesk, pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_WAITING", 3)
    for number in range(9):
        desk.database.raise_alarm(f"k{number}", "BRIDGE", "x")
    many(desk, 1)
    desk.look()
    states = desk.states()
    assert [state for key, state in states.items() if key.startswith("alarm")] == ["waiting"] * 9
    assert states["fill:T0"] == states["close:T0"] == "dropped"
    desk.send_all()
    assert len(pager.taken) == 10


@cases(
    ("hours", "at", "quiet"),
    [
        ("22:00-07:00", "21:59", False), ("22:00-07:00", "22:00", True),
        ("22:00-07:00", "06:59", True), ("22:00-07:00", "07:00", False),
        ("09:00-10:00", "09:30", True), ("09:00-10:00", "08:59", False), ("", "03:00", False),
    ],
)  # fmt: skip
def test_quiet_hours_begin_and_end_to_the_minute(hours: str, at: str, quiet: bool) -> None:
    moment = datetime.fromisoformat(f"2026-07-13T{at}:00+00:00")
    assert NoticeSettings(quiet_hours=hours).quiet_at(moment) == quiet
    zone = NoticeSettings(quiet_hours=hours, zone="Europe/Zurich")
    assert zone.quiet_at(moment - timedelta(hours=2)) == quiet


def test_in_quiet_hours_alarms_alone_go_out(tmp_path: Path, pager: Pager) -> None:
    desk = ToldDesk(tmp_path, pager, settings=NoticeSettings(quiet_hours="13:00-14:00"))
    desk.look()
    pager.answers = [REFUSED]
    fill(desk.database)
    desk.look()
    desk.send_all()
    desk.later(hours=1)
    end(desk.database)
    desk.database.halt("x")
    desk.look()
    desk.send_all()
    assert pager.titles == ["Torra: trading is HALTED"]
    rows = {row["key"]: row for row in notice_table.notices(desk.database, 9)}
    assert rows["close:T1"]["silent"] and not rows["close:T1"]["sent"]
    assert rows["fill:T1"]["sent"][0]["detail"] == "quiet hours"
    assert not rows["state:1"]["silent"]
    assert "listed only: quiet hours" in table(document(desk.database))


def test_below_the_least_level_nobody_is_called(tmp_path: Path, pager: Pager) -> None:
    desk = ToldDesk(tmp_path, pager, settings=NoticeSettings(least="decision"))
    desk.look()
    fill(desk.database)
    desk.database.halt("x")
    assert len(desk.look()) == 2
    desk.send_all()
    assert pager.titles == ["Torra: trading is HALTED"]


def restarted(desk: ToldDesk, folder: Path, *services: Pager) -> ToldDesk:
    """The same home under a new desk, as a start finds it."""
    desk.database.close()
    again = ToldDesk(folder, *services, clock=desk.clock)
    notice_table.keep_services(again.database, [one.name for one in services])
    return again


@pytest.mark.parametrize("dies", ["before the look", "after the look", "as it sends", "after it"])
def test_a_restart_at_each_point_keeps_alarms_and_tells_nothing_twice(
    tmp_path: Path, dies: str
) -> None:
    pager = Pager()
    desk = ToldDesk(tmp_path, pager)
    desk.look()
    fill(desk.database)
    desk.database.halt("x")
    if dies != "before the look":
        desk.look()
    if dies == "as it sends":
        for row in notice_table.notices(desk.database, 9):
            notice_table.mark_notice(desk.database, row["id"], pager.name, "sending", tries=1)
    if dies == "after it":
        desk.send_all()
    desk = restarted(desk, tmp_path, pager)
    desk.look()
    desk.send_all()
    desk.look()
    titles = ["Torra: trading is HALTED", "EURUSD: bought 0.20 lots at 1.18340"]
    # What was being sent may have arrived: an alarm is sent all the same.
    assert pager.titles == titles[: 1 if dies == "as it sends" else 2]
    assert len(notice_table.notices(desk.database, 9)) == 2


def test_what_waits_for_a_service_that_is_gone_waits_no_more(tmp_path: Path) -> None:
    desk = ToldDesk(tmp_path, Pager("1 json"))
    desk.look()
    desk.database.halt("x")
    desk.look()
    desk = restarted(desk, tmp_path, Pager("1 mailto"))
    (row,) = notice_table.notices(desk.database, 1)[0]["sent"]
    assert (row["state"], row["detail"]) == ("dropped", "this service is not set any more")


def test_a_desk_that_lost_its_lock_writes_and_sends_nothing(desk: ToldDesk, pager: Pager) -> None:
    fill(desk.database)
    desk.look()
    asked = iter([True, False, False])
    desk.database.fence = lambda: next(asked)
    with pytest.raises(StoreUnavailable):
        desk.senders[0].send_due()
    assert pager.tries == 0 and desk.states() == {"fill:T1": "waiting"}
    end(desk.database)
    answers = iter([True, False])
    desk.database.fence = lambda: next(answers)
    with pytest.raises(StoreUnavailable):
        desk.watcher.look()
    desk.database.fence = lambda: True
    assert len(desk.look()) == 1


def test_what_could_not_be_booked_is_booked_later(
    desk: ToldDesk, pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(desk.database)
    desk.look()

    def away(*_: object) -> None:
        raise StoreUnavailable("locked")

    with monkeypatch.context() as patch:
        patch.setattr("torra.store.notices.note_service", away)
        with pytest.raises(StoreUnavailable):
            desk.senders[0].send_due()
    assert desk.states() == {"fill:T1": "sending"}
    assert desk.senders[0].send_due() is False
    assert desk.states() == {"fill:T1": "sent"} and pager.tries == 1


def test_the_table_of_notices_stays_short(
    desk: ToldDesk, pager: Pager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torra.store.notices.KEPT", 10)
    desk.database.halt("first")
    desk.look()
    pager.answers = [REFUSED] * 999
    desk.send_all()
    for turn in range(6):
        many(desk, 5, 5 * turn)
        desk.look()
        desk.later(hours=2)
        desk.send_all()
        desk.later(minutes=2)  # the alarm was tried; now the others are given up
        desk.send_all()
    kept = [row["key"] for row in notice_table.notices(desk.database, 999)]
    assert kept[-1] == "state:1", "an alarm stays while it waits"
    assert len(kept) <= 11 + 10, "what is given up goes, ten newest stay"


def test_a_look_for_what_is_due_reads_no_table_through(desk: ToldDesk) -> None:
    said: list[str] = []
    connection = desk.database.connection().conn
    connection.set_trace_callback(said.append)
    desk.senders[0].send_due()
    desk.later_look()
    connection.set_trace_callback(None)
    looked = [one for one in dict.fromkeys(said) if one.lstrip().startswith("SELECT")]
    assert any("notice_outbox" in one for one in looked) and len(looked) > 8
    plans = [row[-1] for one in looked for row in connection.execute(f"EXPLAIN QUERY PLAN {one}")]
    scans = {plan for plan in plans if plan.startswith("SCAN") and "CONSTANT ROW" not in plan}
    few = {"SCAN alarms USING INDEX alarms_standing"}
    assert {one for one in scans if "json_each" not in one} <= few, "few rows each"


def test_settings_that_cannot_be_meant_are_refused_with_the_remedy() -> None:
    for words in ({"quiet_hours": "22-7"}, {"quiet_hours": "07:00-07:00"}, {"zone": "Mars/Base"}):
        with pytest.raises(ValueError, match="write"):
            NoticeSettings.model_validate(words)
    with pytest.raises(ValueError, match="apprise"):
        NoticeSettings.model_validate({"services": ["pigeon"]})
