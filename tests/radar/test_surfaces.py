"""The radar where people and programs meet it: job, command, page, addresses, notice, health."""

from __future__ import annotations

import html
import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from docs import radar_page
from tests.doubles.vendor_line import environment
from tests.doubles.vendor_server import OPENAI, Reply, VendorServer
from tests.doubles.visitors import bearer
from tests.radar.test_scan import reader_of
from tests.worlds import radar_runs as made_up
from tests.worlds.desk_pages import Pages, open_pages
from tests.worlds.hands import torra
from tests.worlds.homes import profile_file
from tests.worlds.jobs import done_here
from tests.worlds.told import Pager, ToldDesk
from torra.clock import iso
from torra.commands import research as radar_command
from torra.committee.job import KINDS
from torra.config import DeskSettings, NoticeSettings, load_desk
from torra.dashboard.answers import adapters
from torra.desk_lock import DeskLock
from torra.errors import ConfigError
from torra.jobs import asking
from torra.jobs import at_home as jobs_at_home
from torra.radar import job as radar_job
from torra.radar import ladder
from torra.radar.agents import fallback
from torra.radar.demotions import worth_of
from torra.radar.job import RADAR
from torra.radar.result import RadarRun
from torra.radar.scan import scan
from torra.store import jobs as job_table
from torra.store import radar_runs
from torra.trading.commanding import COMMAND_LINE
from torra.words.radar import CODES, mode_sentence, words_of

JSON = {"Accept": "application/json"}
RUN = "/api/v1/radar/run"


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    found = open_pages(tmp_path / "home")
    (found.backing.home / "desk.json").write_text(
        json.dumps({"instances": [{"symbol": "BTCUSD"}], "radar": {"near": 1.0}})
    )
    yield found
    found.desk.close()


def post(pages: Pages, address: str, status: int, **asked: Any) -> Any:
    answer = pages.client().post(address, json=asked, headers=JSON)
    assert answer.status_code == status, answer.text
    return answer.get_json()


def store(pages: Pages, run: RadarRun) -> None:
    radar_runs.add_run(pages.database, {
        "universe": "u", "as_of": run.as_of, "mode": "rules", "trigger_code": "",
        "document": run.model_dump_json(),
    })  # fmt: skip


def scanned(pages: Pages) -> int:
    """Ask for a scan as a program does, do it, and return the number of its run."""
    told = post(pages, RUN, 202)
    done_here(pages.database, pages.backing.home, RADAR, told["job"])
    return int((job_table.job(pages.database, told["job"]) or {})["made"])


def test_a_program_asks_for_a_scan_and_reads_it(pages: Pages) -> None:
    assert pages.json("/api/v1/radar/latest", 404)["status"] == 404
    told = post(pages, RUN, 202)
    assert post(pages, RUN, 202)["job"] == told["job"], "the same request is one job"
    status = pages.json(f"/api/v1/radar/status/{told['job']}")
    assert (status["state"], status["run"], status["session_id"]) == ("queued", None, "")
    named = post(pages, RUN, 202, session_id="tab 7")
    assert named["session_id"] == "tab 7" and named["job"] != told["job"]
    assert pages.json(f"/api/v1/radar/status/{named['job']}")["session_id"] == "tab 7"
    done_here(pages.database, pages.backing.home, RADAR, told["job"])
    latest = pages.json("/api/v1/radar/latest")
    assert latest["run"] == pages.json(f"/api/v1/radar/status/{told['job']}")["run"]
    found = RadarRun.model_validate_json(json.dumps(latest["result"]))
    assert found.coverage.streams == 2 and found.mode == "rules" and found.watch
    audit = pages.json(f"/api/v1/radar/audit/{latest['run']}")
    for name, answer in (("latest", latest), ("status", status), ("audit", audit)):
        adapters()[f"api_radar_{name}"].validate_json(json.dumps(answer))
    assert len(audit["reasoning_log"]) == len((*found.act, *found.watch, *found.exit_radar))
    assert pages.json("/api/v1/radar/audit/77", 404) and pages.json("/api/v1/radar/status/9", 404)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"symbols": "GOLD"}, "GOLD is not scanned; there are BTCUSD"),
        ({"odd": "x"}, "odd: a scan has no such parameter"),
        ({"symbols": "x" * 401}, "symbols: write a text of 400 characters at most"),
    ],
)
def test_a_bad_request_leaves_no_job(pages: Pages, asked: dict[str, str], why: str) -> None:
    assert why in post(pages, RUN, 409, **asked)["reason"]
    assert job_table.jobs(pages.database) == []


def test_who_may_only_read_starts_no_scan_and_sets_no_watch_list(pages: Pages) -> None:
    for address, scope in ((RUN, "read"), ("/api/v1/radar/watch", "approve")):
        answer = pages.app.test_client().post(address, json={}, headers=bearer(scope))
        assert answer.status_code == 403


def test_a_failed_run_is_told_as_one(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "scan", lambda *_: 1 / 0)
    told = post(pages, RUN, 202)
    with pytest.raises(ladder.RadarError):
        done_here(pages.database, pages.backing.home, RADAR, told["job"])
    failed = radar_runs.newest_run(pages.database, failed=True)
    assert failed is not None
    answer = pages.json(f"/api/v1/radar/audit/{failed['id']}", 409)
    assert answer["error"].startswith("CORE_FAILED")
    assert "and no run was fresh enough" in pages.text("/radar")
    assert "error 100%" in pages.text("/health")


def test_the_page_and_home_show_the_newest_run(pages: Pages) -> None:
    assert "No scan yet" in pages.text("/radar") and "Deserves a look" not in pages.text("/")
    number = scanned(pages)
    said = RadarRun.model_validate_json(
        (radar_runs.run(pages.database, number) or {})["document"]
    ).portfolio_brief[0]
    page = pages.text("/radar")
    assert said in page and "BTCUSD M15" in page and said in pages.text("/")
    assert pages.text(f"/radar?run={number}").count("<tr>") == page.count("<tr>")
    pages.text("/radar?run=99", 404)
    assert "1 scans: ai 0%, rules 100%" in pages.text("/health")
    assert "0 s ago" in page and "of an earlier close" not in page
    meanings = html.unescape(page.partition('id="meanings"')[2])
    assert all(words_of(code).meaning in meanings for code in CODES["act"] | CODES["watch"])


def test_the_page_says_that_bars_have_closed_since(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of `act` is one of the newest closed bar alone, also while nothing scans anew."""
    found = scan(reader_of(pages.desk, near=1.0))
    acts = {"bucket": "act", "code": "OBSERVED", "codes": ("OBSERVED",)}
    rows = tuple(row.model_copy(update=acts) for row in found.watch)
    store(pages, found.model_copy(update={"act": rows, "watch": ()}))
    assert "of an earlier close" not in pages.text("/radar")
    later = pages.backing.now() + timedelta(minutes=15)
    monkeypatch.setattr(type(pages.backing), "now", lambda _: later)
    page = pages.text("/radar")
    assert "15 min ago" in page and "15 min ago" in pages.text("/")
    assert page.count("of an earlier close") == 1, "the hour has not closed"


def test_quiet_streams_are_named_on_the_page_and_by_the_command(pages: Pages) -> None:
    found = scan(reader_of(pages.desk, near=1.0))
    quiet = found.coverage.model_copy(
        update={"watch": 0, "quiet": 2, "quiet_streams": ("BTCUSD|H1", "BTCUSD|M15")}
    )
    calm = found.model_copy(update={"watch": (), "coverage": quiet})
    store(pages, calm)
    page = re.sub(r"<[^>]+>", "", pages.text("/radar"))
    assert "Quiet, the nearest to a threshold first: BTCUSD H1, BTCUSD M15." in page
    lines = [*radar_command._radar_lines(calm)]
    assert lines[-1] == "\n2 of 2 streams are quiet: BTCUSD H1, BTCUSD M15."
    assert lines[0].endswith(f" As of {calm.as_of}.")


def test_who_may_only_read_is_told_of_no_button(pages: Pages) -> None:
    text = pages.app.test_client().get("/radar", headers=bearer("read")).text
    assert "No scan yet" in text and "Scan now" not in text
    assert "The desk scans after each close of H1." in text
    assert "Scan now" in pages.text("/radar")


def test_a_job_lets_the_agents_of_a_paying_profile_go_over_the_scan(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = pages.backing.home
    settings = {"instances": [{"symbol": "BTCUSD"}], "radar": {"near": 1.0, "agents": "on"}}
    (home / "desk.json").write_text(json.dumps(settings))
    profile_file(home, {"agents": {"provider": OPENAI}})
    pages.database.change("DELETE FROM trading_config")  # what was applied last counts first
    with VendorServer() as server:
        said = {"calls": [], "demote": [], "say": ["s1"], "because": [], "done": True}
        server.play({"*": Reply(text=json.dumps(said))})
        for name, value in environment(server).items():
            monkeypatch.setenv(name, value)
        number = scanned(pages)
        assert len(server.exchanges) == 3 and not [one for one in server.exchanges if one.refused]
    row = radar_runs.run(pages.database, number) or {}
    run = RadarRun.model_validate_json(row["document"])
    assert (row["mode"], run.mode, run.fallback_trigger, len(run.cards)) == ("ai", "ai", "", 1)
    assert "1 scans: ai 100%" in pages.text("/health")


def test_page_and_command_say_what_agents_did(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made_up.agents_run()
    made_up.stored(pages.database, run)
    page = pages.text("/radar")
    for text in (
        "Agents went over this scan.", "They made 3 tool calls and cost $0.0123",
        "The signal agent objects and cites the radar.consensus.", "Demoted rows, 24 bars later",
        "-0.20 ATR", run.cards[0].sentences[0],
    ):  # fmt: skip
        assert text in page, text
    audit = pages.json("/api/v1/radar/audit/1")
    assert (audit["tool_calls"], audit["audit_log"]) == (3, [4, 5, 6])
    monkeypatch.setattr(radar_job, "at_home", lambda *_: (1, run.model_dump_json()))
    pages.desk.lock.release()
    told = torra(pages.backing.home, "radar").output
    assert "Agents went over this scan." in told and "demoted" in told
    assert "The signal agent objects and cites the radar.consensus." in told


def test_the_page_says_why_agents_came_to_nothing(pages: Pages) -> None:
    rules = made_up.run_of(made_up.row("BTCUSD|M15", "watch", ("NEAR_THRESHOLD",)))
    for trigger in [one for one in CODES["trigger"] if one != "CORE_FAILED"]:
        told = rules.model_copy(update=fallback(trigger))
        made_up.stored(pages.database, told)
        said = mode_sentence(told.model_dump())
        assert said.endswith("This scan is by the rules alone.")
        assert said in html.unescape(pages.text("/radar"))


def test_the_watch_list_is_written_into_desk_json(pages: Pages) -> None:
    home = pages.backing.home
    before = (home / "desk.json").read_bytes()
    told = post(pages, "/api/v1/radar/watch", 200, symbols="EURUSD, XAUUSD, EURUSD")
    assert told["reason"] == "The radar watches EURUSD, XAUUSD."
    assert load_desk(home).radar.watch == ("EURUSD", "XAUUSD") and load_desk(home).radar.near == 1.0
    assert (home / "desk.json.before").read_bytes() == before
    wrong = post(pages, "/api/v1/radar/watch", 409, symbols="a\\b")
    assert "is no symbol" in wrong["reason"]
    assert load_desk(home).radar.watch == ("EURUSD", "XAUUSD")
    scanned(pages)
    assert "EURUSD H1" in pages.text("/radar")


def test_the_desk_asks_by_itself_once_the_ticks_of_a_close_are_stored(pages: Pages) -> None:
    path = pages.backing.home / "desk.json"
    values = {"instances": [{"symbol": "BTCUSD", "timeframes": ["M15"]}]}

    def asks(every: str) -> int:
        path.write_text(json.dumps({**values, "radar": {"every": every}}))
        radar_job.keep_up(pages.database)
        return len(job_table.jobs(pages.database))

    assert asks("off") == 0
    assert (asks("M15"), asks("M15")) == (1, 1)
    (row,) = job_table.jobs(pages.database)
    now = pages.database.desk_time()
    assert row["asked_by"] == job_table.THE_DESK and now is not None
    assert json.loads(row["parameters"])["close"] == iso(now)
    # a person's scan of the same close, then a clock that was ahead, then a broken file
    job_table.end_job(pages.database, row["id"], "queued", "done", "")
    asking.ask(pages.database, pages.backing.home, RADAR, {"session_id": "s"}, COMMAND_LINE)
    assert asks("M15") == 2
    ahead = json.dumps({"close": "2099-01-01T00:00:00Z"})
    pages.database.change("UPDATE jobs SET parameters = ? WHERE id = ?", ahead, row["id"])
    assert asks("M15") == 3
    pages.database.change("DELETE FROM jobs")
    path.write_text("{")
    radar_job.keep_up(pages.database)
    assert job_table.jobs(pages.database) == []


def test_of_what_the_desk_asked_for_little_is_kept(pages: Pages) -> None:
    """A scan each hour takes no place of what a person asked for."""
    asking.ask(pages.database, pages.backing.home, RADAR, {}, COMMAND_LINE)
    for number in range(30):
        if number:
            job_table.queue_job(
                pages.database, "radar", str(number), title="", parameters="{}",
                actor=job_table.THE_DESK,
            )  # fmt: skip
        newest = job_table.jobs(pages.database)[0]
        job_table.end_job(pages.database, newest["id"], "queued", "done", "")
    kept = job_table.jobs(pages.database)
    assert len(kept) == 1 + job_table.KEPT_OF_DESK and kept[-1]["asked_by"] == "command line"


def test_the_command_scans_under_the_lock_or_hands_a_job_in(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = pages.backing.home
    monkeypatch.setattr(jobs_at_home, "PATIENCE_S", 0.3)
    with pytest.raises(ConfigError, match=r"job 1 is queued: it has made nothing yet"):
        radar_job.at_home(home, {})
    done_here(pages.database, home, RADAR, 1)
    pages.desk.lock.release()
    number, document = radar_job.at_home(home, {"symbols": "BTCUSD"})
    assert number == 2 and RadarRun.model_validate_json(document).coverage.streams == 2
    assert len(job_table.jobs(pages.database)) == 1


def test_the_command_waits_for_no_desk_where_another_command_had_the_lock(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_at_home, "LOOK_S", 0.01)
    threading.Timer(0.1, pages.desk.lock.release).start()
    begun = time.monotonic()
    number, _ = radar_job.at_home(pages.backing.home, {})
    assert time.monotonic() - begun < 30.0
    (job,) = job_table.jobs(pages.database)
    assert (job["state"], job["made"]) == ("done", str(number))


def test_what_the_desk_did_meanwhile_is_not_done_again(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LateLock(DeskLock):
        """The desk does the job and ends just before a command takes its lock."""

        def acquire(self, patience: float = 0.0) -> bool:
            if job_table.jobs(pages.database):
                job_table.end_job(pages.database, 1, "queued", "done", "", "7")
                pages.desk.lock.release()
            return super().acquire(patience)

    monkeypatch.setattr(jobs_at_home, "DeskLock", LateLock)
    assert jobs_at_home.run_at_home(pages.backing.home, RADAR, {}) == "7"
    assert radar_runs.newest_run(pages.database) is None


def test_a_job_that_fails_here_waits_for_no_desk_and_a_dead_desks_process_is_let_end(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking.ask(pages.database, pages.backing.home, RADAR, {}, COMMAND_LINE)
    job_table.begin_job(pages.database, 1, "queued")

    class LateLock(DeskLock):
        """The desk dies once a command has found it at work."""

        def acquire(self, patience: float = 0.0) -> bool:
            taken = super().acquire(patience)
            pages.desk.lock.release()
            return taken

    monkeypatch.setattr(jobs_at_home, "DeskLock", LateLock)
    monkeypatch.setattr(jobs_at_home, "RETRY_SECONDS", 0.5)

    def fails(*_: Any) -> Any:
        raise ladder.RadarError("nothing can be shown")

    monkeypatch.setattr(jobs_at_home, "work_of", lambda _: fails)
    begun = time.monotonic()
    with pytest.raises(ladder.RadarError):
        jobs_at_home.run_at_home(pages.backing.home, RADAR, {})
    assert time.monotonic() - begun >= 0.5
    (job,) = job_table.jobs(pages.database)
    assert (job["state"], job["says"]) == ("error", "nothing can be shown")


def test_a_run_of_another_version_costs_no_page(pages: Pages) -> None:
    made_up.stored(pages.database, made_up.agents_run())
    old = json.dumps({"act": [], "exit_radar": [], "version": 0, "code": "DEMOTED"})
    pages.database.change("UPDATE radar_runs SET document = ?", old.replace(": ", ":"))
    for address in ("/", "/radar", "/ask"):
        pages.text(address)
    for address in ("/film/1", "/api/v1/film/1", "/api/v1/radar/audit/1"):
        assert pages.client().get(address).status_code == 404
    assert worth_of(pages.database, pages.desk.clock.now(), made_up.agents_run()).count == 0


def test_pages_of_research_stand_while_desk_json_is_broken(pages: Pages) -> None:
    (pages.backing.home / "desk.json").write_text("{")
    for address in ("/radar", "/ask", "/committee"):
        pages.text(address)


@pytest.mark.journey
def test_the_command_says_what_deserves_a_look(pages: Pages) -> None:
    pages.desk.lock.release()
    told = torra(pages.backing.home, "radar").output
    assert "streams are quiet" in told and "BTCUSD M15" in told


def test_a_home_without_a_desk_is_a_clear_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no desk has run"):
        radar_job.at_home(tmp_path, {})
    assert RADAR.name in KINDS and not (tmp_path / "torra.db").exists()


def test_a_row_that_enters_is_told_once_in_four_hours(tmp_path: Path) -> None:
    desk = ToldDesk(tmp_path, Pager(), settings=NoticeSettings(radar=True))

    def run(*streams: str) -> list[str]:
        rows = [{"stream": one, "bucket": "act", "codes": ["HELD_BACK"]} for one in streams]
        radar_runs.add_run(desk.database, {
            "universe": "u", "as_of": "2026-01-01T00:00:00Z", "mode": "rules", "trigger_code": "",
            "document": json.dumps({"act": rows, "exit_radar": []}),
        })  # fmt: skip
        return desk.look()

    assert run("A|H1") == [], "what stood at the first look is not told"
    assert run("A|H1", "B|H1") == ["B: would open: held back"]
    assert desk.texts()[-1].endswith("See Radar, or torra radar.")
    assert run("A|H1") == [] and run("A|H1", "B|H1") == []
    run("A|H1")
    desk.later(hours=4, seconds=1)
    assert run("A|H1", "B|H1") == ["B: would open: held back"]
    radar_runs.add_run(desk.database, {
        "universe": "u", "as_of": "2026-01-01T00:00:00Z", "mode": "rules", "trigger_code": "",
        "document": "{}",
    })  # fmt: skip
    assert desk.look() == [], "a run of another version costs no other notice"
    silent = tmp_path / "silent"
    silent.mkdir()
    desk = ToldDesk(silent, Pager())
    assert run("A|H1") == [] and run("B|H1") == []


@pytest.mark.parametrize("symbol", ["a\\b", "\n", "", "x" * 80])
def test_what_is_no_symbol_is_not_watched(symbol: str) -> None:
    with pytest.raises(ValueError, match="is no symbol"):
        DeskSettings.model_validate({"radar": {"watch": [symbol]}})


def test_the_page_has_todays_codes() -> None:
    page = radar_page.PAGE.read_text(encoding="utf-8")
    assert radar_page.with_tables(page, measured=False) == page, "python -m docs.generate"


@pytest.mark.journey
def test_the_page_has_todays_worth_of_each_exit_code() -> None:
    page = radar_page.PAGE.read_text(encoding="utf-8")
    assert radar_page.with_tables(page) == page, "python -m docs.generate"
    assert page.count("not measured |") == 9
