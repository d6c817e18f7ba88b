"""The files of ticks and of calls: every row once, as stored, and nothing a sheet would run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from agents.contracts import VECTORS
from tests.doubles.visitors import open_app
from tests.worlds import desks
from tests.worlds.busy_desk import VOICES, run
from tests.worlds.demo_view import ScriptedView
from torra.config import DeskSettings
from torra.dashboard.screens import files
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView


@pytest.fixture(scope="module")
def backing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageContext]:
    folder = tmp_path_factory.mktemp("lived")
    desk = run(folder, VOICES["wild"](), "full", 24)
    with closing(desk.database):
        yield PageContext(folder, desk.database, DeskSettings(instances=(desks.BTC,)), desk)


@pytest.fixture
def get(backing: PageContext, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(files, "AT_ONCE", 3)
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    return open_app(view, "read", backing=backing).test_client().get


def rows(answer: Any) -> list[dict[str, str]]:
    assert answer.status_code == 200 and answer.mimetype == "text/csv"
    return list(csv.DictReader(io.StringIO(answer.text)))


def stored(backing: PageContext, sql: str) -> list[dict[str, Any]]:
    return list(backing.database.connection().query(sql))


def test_every_tick_stands_once_and_as_it_is_stored(backing: PageContext, get: Any) -> None:
    found = rows(get("/ticks.csv"))
    every = stored(backing, "SELECT * FROM chains ORDER BY timeframe, close_time DESC")
    assert len(every) > 24
    assert tuple(found[0]) == files.TICKS
    by_key = {(row["timeframe"], row["bar_time"]): row for row in found}
    assert len(by_key) == len(found) == len(every)
    for row in every:
        told = by_key[row["timeframe"], row["bar_time"]]
        assert float(told["consensus"]) == row["consensus"] and told["verdict"] == row["verdict"]
        record = backing.database.tick_without_calls(row["torra_key"])
        assert record is not None and told["action"] == record["action"]
        for vector in VECTORS:
            assert float(told[vector]) == record["scores"][vector]["score"]


@pytest.mark.journey
def test_a_stream_and_days_are_chosen(backing: PageContext, get: Any) -> None:
    hours = rows(get("/ticks.csv?instance=BTCUSD&timeframe=H1"))
    assert {row["timeframe"] for row in hours} == {"H1"}
    assert [row["close_time"] for row in hours] == sorted(
        (row["close_time"] for row in hours), reverse=True
    )
    every = rows(get("/ticks.csv"))
    day = every[0]["close_time"][:10]
    want = [row for row in every if row["close_time"][:10] == day]
    assert rows(get(f"/ticks.csv?from={day}&to={day}")) == want
    assert rows(get("/ticks.csv?to=2000-01-01")) == []
    assert rows(get("/ticks.csv?from=2999-01-01")) == []
    for wrong in ("from=today", "to=9999-12-31", "to=2026-02-30"):
        assert get(f"/ticks.csv?{wrong}").status_code == 400, wrong
    for unknown in ("instance=XXX", "timeframe=M7", "instance=BTCUSD&timeframe=D1"):
        assert get(f"/ticks.csv?{unknown}").status_code == 404, unknown
    del backing


def test_every_call_stands_once_without_its_texts(backing: PageContext, get: Any) -> None:
    found = rows(get("/calls.csv"))
    every = stored(backing, "SELECT *, rowid FROM calls ORDER BY rowid DESC")
    assert len(every) > 50 and tuple(found[0]) == files.CALLS
    assert [(row["torra_key"], row["role"], row["round"], row["attempt"]) for row in found] == [
        (row["torra_key"], row["role"], str(row["round"]), str(row["attempt"])) for row in every
    ]
    assert sum(float(row["cost_usd"]) for row in found) == pytest.approx(
        sum(row["cost_usd"] for row in every)
    )
    text = get("/calls.csv").text
    assert not any(row["user"] and row["user"][:40] in text for row in every)
    day = found[0]["at"][:10]
    assert rows(get(f"/calls.csv?from={day}")) == [row for row in found if row["at"] >= day]
    assert rows(get("/calls.csv?to=2000-01-01")) == []


@pytest.mark.journey
def test_the_pages_lead_to_them(get: Any) -> None:
    assert 'href="/ticks.csv?instance=BTCUSD&amp;timeframe=M15"' in get("/symbol/BTCUSD/M15").text
    assert 'href="/calls.csv"' in get("/costs").text


def test_a_view_without_a_desk_has_none() -> None:
    client = open_app(ScriptedView(), "read").test_client()
    for address in ("/ticks.csv", "/calls.csv"):
        assert client.get(address).status_code == 404
    assert "ticks.csv" not in client.get("/symbol/BTCUSD/M15").text
