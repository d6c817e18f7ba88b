"""A replay as a job: asked for on the page, run by a desk's worker, read on its page."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.page_reader import Page
from tests.doubles.visitors import bearer
from tests.examples import examples
from tests.tries import until
from tests.worlds.desk_pages import Pages, open_pages
from tests.worlds.homes import profile_file
from tests.worlds.jobs import done_here, turned
from torra.config import ROOT
from torra.errors import ConfigError
from torra.home import UPLOADS
from torra.jobs.kinds import parameters_of
from torra.jobs.worker import Worker
from torra.replay import job_kinds, reporting, uploads
from torra.replay.replaying import FOLDER
from torra.replay.shards import trials
from torra.store import audit as audit_chain
from torra.store import jobs as job_table

DAY: dict[str, Any] = {
    "symbol": "BTCUSD",
    "bars": "sample",
    "from": "2021-11-20",
    "to": "2021-11-21",
    "arms": "l1",
}
MONTH = {**DAY, "to": "2021-12-20", "arms": "l1,budget" if examples.whole else "l1"}
JSON = {"Accept": "application/json"}
pages_in = open_pages


def ask(pages: Pages, status: int = 202, **asked: Any) -> Any:
    answer = pages.client().post("/api/v1/jobs/replay", json=asked, headers=JSON)
    assert answer.status_code == status, answer.get_data(as_text=True)
    return answer.get_json()


@pytest.mark.journey
def test_a_replay_is_started_watched_and_read_from_the_pages(pages: Pages, worker: Worker) -> None:
    told = ask(pages, **DAY)
    assert told["new"] and told["address"] == "/jobs/1"
    assert told["reason"].startswith("Job 1: BTCUSD M15, H1, 2021-11-20 to 2021-11-21; bars: ")
    assert ">◌ waits<" in pages.text("/replays")
    turned(pages.database, worker, 1, state="running")
    done = turned(pages.database, worker, 1, state="done")
    assert re.match(r"The bars alone .+ % with \d+ trades?: |Nobody traded", done["says"])
    one = Page(pages.text("/jobs/1"))
    assert f"/replays/{done['made']}" in [link.get("href") for link in one.all("a")]
    assert "BTCUSD M15, H1" in pages.text(f"/replays/{done['made']}")
    assert done["made"] in pages.text("/replays")
    assert trials.count(pages.backing.home, "BTCUSD") == 1, "a run is a look at the symbol"


@pytest.mark.journey
def test_it_comes_to_what_the_command_comes_to(pages: Pages, tmp_path: Path) -> None:
    ask(pages, **DAY, name="day")
    done_here(pages.database, pages.backing.home, job_kinds.REPLAY, 1)
    bars = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("H1", "M15")]
    request = reporting.ReplayRequest(
        bars=bars, begin="2021-11-20", end="2021-11-21", wanted="l1", provider="rules", name="day"
    )
    found = reporting.replayed(
        tmp_path / "other", "BTCUSD", request, say=lambda _: None, progress=quiet
    )
    told = json.loads((pages.backing.home / FOLDER / "day.json").read_text())
    here = found.as_json()
    assert {**told, "created_at": ""} == {**here, "created_at": ""}


def quiet(_total: int, _label: str) -> Any:
    """A progress bar that nobody sees."""
    return nullcontext(lambda _number: None)


@pytest.mark.journey
def test_a_cancelled_replay_goes_on_where_it_stopped(pages: Pages, worker: Worker) -> None:
    """The second job's process is not started: what it would do is done here, and looked at."""
    ask(pages, **MONTH, name="month")
    turned(pages.database, worker, 1, stage="runs the ticks")
    folder = pages.backing.home / FOLDER / "month"

    def has_state() -> bool:
        worker.turn()
        return any(folder.glob("*.state.json"))

    until(has_state, 60.0)
    answer = pages.client().post("/api/v1/jobs/1/cancel", headers=JSON)
    assert answer.status_code == 202
    assert answer.get_json()["reason"].startswith("The job 1 is told to stop.")
    turned(pages.database, worker, 1, state="cancelled")
    assert not (folder.parent / "month.json").exists()
    again = ask(pages, **MONTH, name="month")
    assert again["job"] == 2
    asked = parameters_of(job_table.job(pages.database, 2) or {})
    assert asked is not None
    told: list[tuple[str, int]] = []

    def tell(stage: str, done: int = 0, total: int = 0) -> None:
        told.append((stage, done))
        if total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job_kinds.run(pages.backing.home, asked, tell)
    before = re.search(r", ([\d,]+) of [\d,]+ done", told[-2][0])
    assert before is not None
    assert told[-1][0] == "runs the ticks"
    assert told[-1][1] >= int(before[1].replace(",", "")) > 0


@pytest.mark.journey
def test_a_second_click_is_the_same_job(pages: Pages) -> None:
    first = ask(pages, **DAY)
    same = ask(pages, **{**DAY, "symbol": " btcusd ", "arms": "l1,l1"})
    assert (same["job"], same["new"]) == (first["job"], False)
    assert same["reason"].startswith("This is asked for already. Job 1:")
    assert ask(pages, **{**DAY, "to": "2021-11-22"})["job"] == 2


def test_the_period_is_fixed_when_it_is_queued(pages: Pages) -> None:
    ask(pages, symbol="BTCUSD", bars="store")
    asked = json.loads((job_table.job(pages.database, 1) or {})["parameters"])
    assert re.fullmatch(r"2021-\d\d-\d\dT\d\d:\d\d:\d\dZ", asked["to"])
    assert asked["name"].startswith("btcusd-") and asked["timeframes"] == "M15,H1"


@pytest.mark.parametrize(
    ("asked", "field", "says"),
    [
        ({"symbol": ""}, "symbol", "symbol: name one, such as BTCUSD"),
        ({"from": "soon"}, "from", "from: soon: write a UTC time as 2024-05-01T10:00Z"),
        ({"from": "2021-11-22"}, "from", "from: 2021-11-22 is not before to 2021-11-21"),
        ({"to": "2021-09-28", "from": ""}, "to", "to: BTCUSD: fewer than 210 bars"),
        ({"symbol": "XAUUSD"}, "bars", "bars: the shipped sample has none of XAUUSD"),
        ({"bars": "../desk.json"}, "bars", "bars: ../desk.json is no file of bars in"),
        ({"bars": "/etc/passwd"}, "bars", "bars: /etc/passwd is no file of bars in"),
        ({"timeframes": "M7"}, "timeframes", "timeframes: unknown timeframe M7"),
        ({"timeframes": "M1"}, "timeframes", "timeframes: no M1 bars of BTCUSD in"),
        ({"arms": "nobody"}, "arms", "arms: nobody: known are l1"),
        ({"profile": "../x"}, "profile", "profile: name one of the home's"),
        ({"name": "a/b"}, "name", "name: a/b: use letters, digits"),
        ({"max_cost": "much"}, "max_cost", "max_cost: much is no sum of USD"),
    ],
)
def test_a_mistake_is_told_beside_its_field_and_nothing_is_queued(
    idle: Pages, asked: dict[str, str], field: str, says: str
) -> None:
    told = ask(idle, 409, **{**DAY, **asked})
    assert (told["status"], told["field"]) == ("failed", field)
    assert told["reason"].startswith(says)
    assert job_table.jobs(idle.database) == []
    assert audit_chain.audit_entries(idle.database, limit=1)[0]["outcome"].startswith(
        f"failed: {field}: "
    )


def test_only_files_of_the_folder_for_them_are_read(pages: Pages) -> None:
    home = pages.backing.home
    (home / UPLOADS).mkdir()
    shutil.copy(ROOT / "sample_data" / "BTCUSD_H1.csv", home / UPLOADS / "btc.csv")
    (home / UPLOADS / "link.csv").symlink_to(ROOT / "sample_data" / "BTCUSD_M15.csv")
    assert uploads.names(home) == ["btc.csv"]
    assert "btc.csv of the folder uploads" in pages.text("/replays")
    found = job_kinds.check(home, {**DAY, "bars": "btc.csv"})
    assert found.parameters["timeframes"] == "H1"
    with pytest.raises(ConfigError, match=r"bars: link\.csv is no file of bars .* are btc\.csv"):
        job_kinds.check(home, {**DAY, "bars": "link.csv"})


MT5 = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\n" + "".join(
    f"2024.01.{1 + at // 24:02}\t{at % 24:02}:00:00\t1.5\t1.6\t1.4\t{1.5 + at % 7 / 100}\t9\t0\t2\n"
    for at in range(300)
)


def test_a_mistake_of_a_file_or_its_clock_is_told_beside_that_field(pages: Pages) -> None:
    home = pages.backing.home
    (home / UPLOADS).mkdir()
    (home / UPLOADS / "bad.csv").write_text("date,price\n1,2\n")
    (home / UPLOADS / "mt5.csv").write_text(MT5)
    plain: dict[str, Any] = {"symbol": "BTCUSD", "arms": "l1"}
    told = ask(pages, 409, **plain, bars="bad.csv")
    assert told["field"] == "bars" and "needs time, open, high, low, close" in told["reason"]
    (home / UPLOADS / "torn.csv.gz").write_bytes(b"\x1f\x8bno gzip")
    told = ask(pages, 409, **plain, bars="torn.csv.gz")
    assert told["field"] == "bars" and "cannot read" in told["reason"]
    told = ask(pages, 409, **plain, bars="mt5.csv")
    assert told["field"] == "clock" and "at most brokers new_york+7" in told["reason"]
    told = ask(pages, 409, **plain, bars="mt5.csv", clock="noon")
    assert told["field"] == "clock"
    assert (
        "bars: mt5.csv; profile default"
        in ask(pages, **plain, bars="mt5.csv", clock="new_york+7")["reason"]
    )


def test_the_form_offers_the_profiles_that_there_are(pages: Pages) -> None:
    profile_file(pages.backing.home, {"thresholds": {"buy": 0.3}}, "bold")
    page = Page(pages.text("/replays"))
    offered = pages.text("/replays")
    assert ">bold<" in offered and ">default<" in offered and "the symbol's own" in page.text
    told = ask(pages, **DAY, profile="bold")
    assert "profile bold (BUY from +0.30, SELL to \u22120.50)" in told["reason"]


def test_nobody_is_paid_without_a_ceiling(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[reporting.ReplayRequest] = []
    planned = reporting.planned

    def note(home: Path, symbol: str, asked: reporting.ReplayRequest) -> Any:
        seen.append(asked)
        return planned(home, symbol, asked)

    monkeypatch.setattr(reporting, "planned", note)
    job_kinds.check(pages.backing.home, DAY)
    job_kinds.check(pages.backing.home, {**DAY, "max_cost": "0.5"})
    assert {(asked.provider, asked.max_cost) for asked in seen} == {("rules", None), (None, 0.5)}


def test_the_scope_read_sees_and_may_not_start(pages: Pages) -> None:
    ask(pages, **DAY)
    client = pages.client()
    for address in ("/api/v1/jobs/replay", "/api/v1/jobs/1/cancel"):
        answer = client.post(address, json=DAY, headers={**bearer("read"), **JSON})
        assert answer.status_code == 403
    page = client.get("/replays", headers=bearer("read")).get_data(as_text=True)
    assert "starting a replay needs a token of the scope approve" in page
    assert "form above" not in page
    assert "Start a replay" not in page and "Cancel" not in page and "BTCUSD M15, H1" in page
    assert (
        client.post("/api/v1/jobs/1/cancel", headers={**bearer("approve"), **JSON}).get_json()[
            "reason"
        ]
        == "The job 1 is cancelled."
    )


def test_the_page_says_how_far_a_job_is(pages: Pages) -> None:
    ask(pages, **DAY)
    job_table.begin_job(pages.database, 1, "queued")
    job_table.note_progress(pages.database, 1, "runs the ticks", 30, 120)
    page = Page(pages.text("/replays"))
    (row,) = [cells for cells in page.rows if cells[0] == "1"]
    assert row[2:5] == ["heavy", "● runs", "runs the ticks, 30 of 120 (25 %)"]
    assert "25" in [bar["width"] for bar in page.all("rect")]


def test_without_a_desk_that_runs_the_page_says_what_waits(pages: Pages) -> None:
    assert "No desk runs" not in ask(pages, **DAY)["reason"]
    pages.desk.lock.release()
    assert "No desk runs." in pages.text("/jobs") and "No desk runs." in pages.text("/replays")
    assert ask(pages, **DAY)["reason"].endswith("What waits begins when one does: torra run.")
    assert pages.json("/api/v1/jobs")["desk_runs"] is False
