"""Watching debates: the list, one debate as far as its events tell, its tick's page, the chart."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flask.testing import FlaskClient

from agent_config import MODES
from agents.contracts import VECTORS, ModelUnavailable
from tests.cases import cases
from tests.conftest import Scale
from tests.doubles.browser import (
    DESK,
    PHONE,
    Site,
    Visit,
    chromium,
    findings,
    needs_browser,
    only_nightly,
)
from tests.doubles.page_reader import Page, check_policy
from tests.doubles.visitors import ACCESS, LoggedIn, open_app
from tests.worlds import desks
from tests.worlds.demo_full_desk import ATTACK
from tests.worlds.demo_view import ScriptedView
from torra.clock import iso
from torra.config import DeskSettings, Profile
from torra.dashboard.app import create_app
from torra.dashboard.screens import watching
from torra.dashboard.view import debate_state
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.desk.event_stream import EventStream
from torra.desk.schedule import Desk
from torra.exhibits import figures
from torra.harmless_text import HOSTILE
from torra.providers.rules.provider import RulesProvider
from torra.store import envelopes
from torra.store import streams as stream_table
from torra.store.trade.rows import DeskEvent
from torra.words.ticks import BADGES

NOW = datetime(2026, 11, 22, 10, 0, 30, tzinfo=UTC)
KEY = "BTCUSD|M15|2021-11-10T10:00:00Z"
SEATS = MODES["budget"].seats
PATIENCE = 20.0


def start(key: str = KEY) -> Any:
    instance, timeframe, bar_time = key.split("|")
    return ("tick_start", {"torra_key": key, "instance": instance, "timeframe": timeframe,
                           "bar_time": bar_time, "close_time": "2021-11-10T10:15:00Z"})  # fmt: skip


def begins(agent: str, phase: str = "analysts", number: int = 1) -> tuple[str, dict[str, Any]]:
    return ("agent_start", {"agent": agent, "phase": phase, "round": number})


def says(agent, words="The trend holds.", phase="analysts", number=1, **more):
    told = {"agent": agent, "phase": phase, "round": number, "summary": words, "abstained": False,
            "confidence": "high", "adjustments": dict.fromkeys(VECTORS, 0.1), "evidence": [],
            "ms": 1240.0}  # fmt: skip
    return ("agent_complete", {**told, **more})


def fails(agent: str, error: str = "timeout") -> tuple[str, dict[str, Any]]:
    return ("agent_error", {"agent": agent, "phase": "analysts", "round": 1, "error": error,
                            "ms": 6750.0})  # fmt: skip


SYNTHESIS = ("synthesis", {"phase": "decision", "source_type": "AGENT_BUDGET", "adjustments": {},
                           "multiplier": 0.8, "veto": False})  # fmt: skip
DECISION = ("decision", {"phase": "decision", "verdict": "BUY", "l1_verdict": "HOLD",
                         "consensus": 0.512, "action": "OPEN_BUY", "reason": "VERDICT",
                         "sentence": "Buys 0.06 lots of BTCUSD on M15.",
                         "denied": [], "source_type": "AGENT_BUDGET", "cost_usd": 0.0123,
                         "elapsed_ms": 3120.5, "signals": []})  # fmt: skip
WHOLE = (
    start(), begins("technical"), says("technical"),
    begins("bull_researcher", "debate"), begins("bear_researcher", "debate"),
    says("bull_researcher", phase="debate"), says("bear_researcher", phase="debate"),
    ("debate_round", {"round": 1, "phase": "debate", "statements": [{"agent": "bull_researcher"}]}),
    begins("risk_gate", "gate"), says("risk_gate", "Nothing to add.", "gate", adjustments={}),
    SYNTHESIS, DECISION,
)  # fmt: skip


def told(*events, step=1.0, seats=SEATS, now=NOW):
    """Return the debate of some events, the newest `step` seconds before now."""
    rows = [
        DeskEvent(seq=n, event=kind, payload=json.dumps(payload),
                  at=iso(now - timedelta(seconds=step * (len(events) - n + 1))))
        for n, (kind, payload) in enumerate(events, 1)
    ]  # fmt: skip
    return debate_state.follow(rows, seats, now)


def states(picture: Any) -> dict[str, str]:
    return {agent["name"]: agent["state"] for agent in picture["agents"]}


# --- a debate as far as it is told ---


def test_everybody_waits_until_asked() -> None:
    picture = told(start())
    assert states(picture) == dict.fromkeys(SEATS, "pending")
    assert (picture["over"], picture["counts"]) == (False, "4 pending")
    assert (
        "BTCUSD M15 began, on the bar that closed 2021-11-10 10:15 UTC"
        in picture["log"][0]["words"]
    )


def test_who_is_at_work_has_a_clock_and_who_is_done_a_time() -> None:
    picture = told(start(), begins("technical"), begins("sentiment"), says("technical"), step=3.0)
    one = {agent["name"]: agent for agent in picture["agents"]}
    assert (one["technical"]["state"], one["technical"]["took"]) == ("done", "1.2 s")
    assert (one["sentiment"]["state"], one["sentiment"]["elapsed"]) == ("running", 6.0)
    assert one["technical"]["elapsed"] is None
    assert picture["stage"] == "analysts"
    assert picture["elapsed"] == 12.0


@pytest.mark.parametrize(
    ("events", "state", "about"),
    [
        ([says("technical")], "done", "high"),
        ([says("technical", "no news evidence: off", abstained=True)], "abstained", ""),
        ([fails("technical")], "failed", "timeout"),
        ([fails("technical", None)], "failed", "no reason is told"),
        ([fails("technical"), begins("technical"), says("technical")], "done", "high"),
    ],
)
def test_each_way_to_end_has_its_state(events: list[Any], state: str, about: str) -> None:
    picture = told(start(), begins("technical"), *events)
    one = picture["agents"][0]
    assert (one["state"], one["about"]) == (state, about)
    assert one["mark"] == BADGES[state].text
    assert {line["who"] for line in picture["log"]} == {"", "Technical"}


def test_a_whole_debate_has_one_line_for_each_who_spoke() -> None:
    picture = told(*WHOLE)
    assert picture["over"]
    assert states(picture) == dict.fromkeys(SEATS, "done")
    who = [line["who"] for line in picture["log"]]
    assert who == [
        "", "Technical", "Bull researcher", "Bear researcher", "", "Risk gate", "Gate", "Verdict"
    ]  # fmt: skip
    end = picture["end"]
    assert (end["kind"], end["verdict"].word, end["consensus"]) == ("decision", "BUY", "+0.512")
    assert end["reason"] == "VERDICT: the verdict opens a position"
    assert end["sentence"] == "Buys 0.06 lots of BTCUSD on M15."
    assert (end["cost"], end["took"]) == ("$0.0123", "3,120")
    assert picture["log"][1]["votes"][0] == {
        "name": "Price action", "text": "+0.100", "tone": "up", "title": "",
    }  # fmt: skip
    assert "debate, round 1" in [line["where"] for line in picture["log"]]


def test_stages_are_named_while_they_run() -> None:
    asked = {
        "research_manager": ("decision", "manager and gate"),
        "trader": ("thesis", "trader, on the opening"),
        "regime_reader": ("experts", "experts and reader, at once"),
        "judge": ("judgement", "judge"),
    }
    picture = told(*(begins(name, phase) for name, (phase, _) in asked.items()), seats=["judge"])
    stages = {agent["name"]: agent["where"] for agent in picture["agents"]}
    assert stages == {name: where for name, (_, where) in asked.items()}
    assert picture["stage"] == "judge"


@cases(
    ("code", "recoverable", "words"),
    [
        ("skipped:stale", False, "The tick was skipped."),
        ("producer_lost", True, "The desk ended while it ran."),
        ("failed", True, "The tick failed."),
        ("store", True, "The database could not be used."),
        ("odd", False, "It ended without a result."),
    ],
)
def test_an_error_says_what_happens_next(code: str, recoverable: bool, words: str) -> None:
    error = (
        "error",
        {"phase": "decision", "code": code, "message": "m", "recoverable": recoverable},
    )
    picture = told(start(), begins("technical"), error)
    assert picture["over"]
    assert picture["end"]["what"] == words
    assert (picture["end"]["again"], picture["end"]["message"]) == (recoverable, "m")
    assert bool(picture["end"]["then"]) == (code != "odd")
    named = states(picture)
    assert (named["technical"], named["risk_gate"]) == ("failed", "not asked")


def test_a_silent_debate_is_not_called_live() -> None:
    assert not told(start(), begins("technical"), step=30.0)["silent"]
    silent = told(start(), begins("technical"), step=61.0)
    assert (silent["silent"], silent["silence"]) == (True, "1 min")
    assert not told(*WHOLE, step=600.0)["silent"]


def test_a_part_of_the_events_is_the_beginning_of_the_whole() -> None:
    whole = told(*WHOLE)["log"]
    for upto in range(1, len(WHOLE)):
        log = told(*WHOLE[:upto])["log"]
        assert log == whole[: len(log)]


def test_strangers_words_are_cleaned_and_odd_events_passed_over() -> None:
    picture = told(
        start(), ("agent_token", {"agent": "technical"}), ("changed", {}), ("__init__", {}),
        says("technical", ATTACK), says(None, None, adjustments="x", confidence=[], ms="soon"),
        fails("technical", ATTACK), ("debate_round", {"statements": "x", "round": "y"}),
        ("synthesis", {}), ("error", {"code": None, "message": ATTACK}),
    )  # fmt: skip
    text = json.dumps(picture, ensure_ascii=False)
    assert not HOSTILE.search(text)
    assert "<script>alert(" in text  # text stays text: the page escapes it
    assert picture["over"]


# --- the pages ---


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    made = desks.open_desk(tmp_path_factory.mktemp("desk"), (desks.BTC,))
    made.events = EventStream(made.database, gather=0.0)
    desks.open_for_work(made)
    yield made
    made.events.close()
    made.close()


def app_of(desk: Any, folder: Any) -> Any:
    settings = DeskSettings(instances=(desks.BTC,))
    backing = PageContext(
        Path(folder), desk.database, settings, desk, environment={}, events=desk.events
    )
    view = DatabaseView(desk.database, settings, desk)
    return create_app(view, access=ACCESS, backing=backing)


@pytest.fixture(scope="module")
def client(desk: Desk) -> FlaskClient:
    app = app_of(desk, "home")
    app.wsgi_app = LoggedIn(app.wsgi_app, "read")
    return app.test_client()


BARS = count(1000)


@pytest.fixture
def key() -> str:
    """Return the key of a tick that no other test uses."""
    moment = desks.START + next(BARS) * timedelta(minutes=15)
    return f"BTCUSD|M15|{iso(moment)}"


def write(desk, events, key, attempt=1):
    """Append to the stream of an attempt at a tick; return the stream's address."""
    stream_id = f"tick_{key[11:].replace(':', '')}_{attempt}"
    if stream_table.stream(desk.database, stream_id) is None:
        stream_table.open_stream(desk.database, stream_id, "tick", key, "we")
    rows = [
        envelopes.StreamEvent(kind, json.dumps(payload), kind in ("decision", "error"))
        for kind, payload in events
    ]
    stream_table.append_events(desk.database, stream_id, "we", rows)
    return f"/watch/{stream_id}"


def read(client: Any, address: str, status: int = 200) -> Any:
    answer = client.get(address)
    assert answer.status_code == status, answer.text[:300]
    page = Page(answer.text)
    check_policy(page)
    return page


def test_a_running_debate_is_listed_and_shown_as_far_as_it_is(
    desk: Desk, client: FlaskClient, key: str
) -> None:
    address = write(desk, WHOLE[:4], key)
    page = read(client, "/watch")
    bar = figures.moment(key.split("|")[2])
    assert f"BTCUSD M15 bar of {bar}: watch" in page.text
    assert address in [a.get("href") for a in page.all("a")]
    page = read(client, address)
    rows = {a["data-agent"]: a["data-state"] for a in page.all("li") if "data-agent" in a}
    assert rows == {"technical": "done", "bull_researcher": "running",
                    "bear_researcher": "pending", "risk_gate": "pending"}  # fmt: skip
    assert "The trend holds." in page.text
    (log,) = [a for a in page.all("div") if a.get("role") == "log"]
    assert (log["aria-live"], log["tabindex"]) == ("polite", "0")
    (debate,) = [a for a in page.all("div") if a.get("id") == "debate"]
    assert debate["data-end"] == ""


def test_a_debate_that_ended_leads_to_its_tick(desk: Desk, client: FlaskClient, key: str) -> None:
    address = write(desk, WHOLE, key)
    page = read(client, address)
    (link,) = [a for a in page.all("a") if a.get("id") == "to-tick"]
    assert link["href"] == f"/symbol/BTCUSD/M15/{key.split('|')[2]}"
    assert "hidden" not in link
    assert "Verdict ▲ BUY" in page.text
    assert "▲ BUY" in read(client, "/watch").text
    answer = client.get(f"/api/v1{address}").json
    assert answer["end"]["verdict"] == [*BADGES["BUY"]]
    listed = {f"/watch/{d['stream_id']}": d for d in client.get("/api/v1/watch").json["debates"]}
    assert (listed[address]["kind"], listed[address]["ended"]) == ("decision", True)


def test_a_failed_attempt_leads_to_the_next(desk: Desk, client: FlaskClient, key: str) -> None:
    lost = ("error", {"code": "producer_lost", "message": "", "recoverable": True})
    first = write(desk, [start(), lost], key)
    page = read(client, first)
    assert "The desk ended while it ran." in page.text
    assert [a for a in page.all("a") if a.get("id") == "to-next" and "hidden" in a]
    second = write(desk, WHOLE[:2], key, attempt=2)
    (onward,) = [a for a in read(client, first).all("a") if a.get("id") == "to-next"]
    assert (onward["href"], "hidden" in onward) == (second, False)


def test_a_tick_that_is_worked_on_leads_to_its_debate(
    desk: Desk, client: FlaskClient, key: str
) -> None:
    address = f"/symbol/BTCUSD/M15/{key.split('|')[2]}"
    assert client.get(address).status_code == 404
    watch = write(desk, WHOLE[:2], key)
    answer = client.get(address)
    assert (answer.status_code, answer.headers["Location"]) == (302, watch)
    write(desk, WHOLE[2:], key)
    assert client.get(address).status_code == 404  # it has ended, and the tick is not stored here


@pytest.mark.parametrize("address", ["/watch/none", "/watch/desk", "/api/v1/watch/none"])
def test_what_is_no_debate_is_not_here(desk: Desk, client: FlaskClient, address: str) -> None:
    stream_table.open_stream(desk.database, "desk", "desk", "", "we")
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    ("agents", "brief"),
    [
        ({}, True),
        ({"provider": "anthropic"}, False),
        ({"role_models": {"risk_gate": "anthropic:claude-x"}}, False),
    ],
    ids=["rules", "vendor", "one role"],
)
def test_only_a_desk_that_asks_no_model_is_over_in_a_blink(
    agents: dict[Any, Any], brief: bool
) -> None:
    profile = Profile.model_validate({"agents": agents})
    behind: Any = SimpleNamespace(
        desk=SimpleNamespace(setups={"A": SimpleNamespace(profile=profile),
                                       "B": SimpleNamespace(profile=Profile())})
    )  # fmt: skip
    assert watching.asks_rules_only(behind) is brief
    assert not watching.asks_rules_only(None)


def test_without_a_database_there_is_nothing_to_watch() -> None:
    app = open_app(ScriptedView())
    page = read(app.test_client(), "/watch")
    assert "torra run" in page.text
    assert app.test_client().get("/watch/tick_1").status_code == 404
    assert app.test_client().get("/api/v1/watch").json == {"debates": []}


def test_attacks_in_a_debate_stay_text(desk: Desk, client: FlaskClient, key: str) -> None:
    address = write(desk, [start(), says("technical", ATTACK), fails(ATTACK, ATTACK)], key)
    raw = client.get(address).text
    assert "<script>alert" not in raw
    assert "&lt;script&gt;alert(" in raw
    assert not HOSTILE.search(raw)
    assert not any(name.startswith("on") for _, a in Page(raw).tags for name in a)


# --- the chart that was shown ---

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20
JPEG = b"\xff\xd8\xff\xe0" + b"0" * 20


@cases(
    ("data", "kind"),
    [
        (PNG, "image/png"), (JPEG, "image/jpeg"), (b"<svg xmlns='x'/>", None), (b"<html>", None),
        (b"GIF89a", None), (b"", None), (b"\xff\xd8", None),
    ],
)  # fmt: skip
def test_a_stored_picture_is_shown_as_what_it_is_or_not_at_all(
    desk: Desk, client: FlaskClient, data: bytes, kind: str | None
) -> None:
    name = desk.database.store_picture(data)
    answer = client.get(f"/pictures/{name}.png")
    if kind is None:
        assert answer.status_code == 404
        return
    assert (answer.status_code, answer.mimetype, answer.data) == (200, kind, data)
    assert answer.headers["Content-Disposition"] == "inline"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


@cases("name", ["0" * 64, "0" * 63, "A" * 64, "..", "a/b", "x"])
def test_an_unknown_picture_is_not_here(client: FlaskClient, name: str) -> None:
    assert client.get(f"/pictures/{name}.png").status_code == 404


@pytest.mark.journey
def test_the_page_of_a_real_tick_knows_its_limits(desk: Desk, client: FlaskClient) -> None:
    for _ in range(2):
        desks.step(desk)
    (newest,) = desk.database.ticks("BTCUSD", "M15", 1)
    page = read(client, f"/symbol/BTCUSD/M15/{newest['bar_time']}")
    assert "of the 15 s it had" in page.text
    assert "of the $2.00 of an hour" in page.text
    assert len(client.get(f"/symbol/BTCUSD/M15/{newest['bar_time']}").data) < 160_000


# --- live, in a browser ---


class Held:
    """A provider that answers an agent when it is let, and fails those that are named."""

    name = "held"

    def __init__(self, failing=()) -> None:
        self.rules = RulesProvider()
        self.failing = failing
        self.asked = {name: threading.Event() for name in SEATS}
        self.free = {name: threading.Event() for name in SEATS}

    def submit(self, request: Any) -> Future[Any]:
        future: Future[Any] = Future()
        threading.Thread(target=self.answer, args=(request, future), daemon=True).start()
        return future

    def answer(self, request: Any, future: Future[Any]) -> None:
        name = request.role.id
        self.asked[name].set()
        self.free[name].wait(PATIENCE)
        if name in self.failing:
            future.set_exception(ModelUnavailable("refused", "no"))
        else:
            future.set_result(self.rules.submit(request).result())

    def close(self) -> None:
        for free in self.free.values():
            free.set()


@needs_browser
def test_a_debate_is_watched_live(tmp_path: Path, scaled: Scale) -> None:
    only_nightly(scaled)
    held = Held(failing=("bear_researcher",))
    profile = Profile.model_validate({"agents": {"timeout_seconds": 60.0}})
    desk = desks.open_desk(tmp_path, (desks.BTC,), profile=profile, provider=held)
    desk.events = EventStream(desk.database, gather=0.0)
    desks.open_for_work(desk)
    work = threading.Thread(target=desks.step, args=(desk,), daemon=True)
    try:
        with (
            Site(app_of(desk, tmp_path)) as site,
            chromium() as browser,
            Visit(browser, screen=DESK) as visit,
        ):
            visit.enter(site)
            watch_it(visit, site, held, work)
            visit.forgive("503", "/api/v1/streams/*")  # for a moment: the stream before the reload
    finally:
        held.close()
        work.join(PATIENCE)
        desk.events.close()
        desk.close()


def watch_it(visit: Any, site: Any, held: Any, work: Any) -> None:
    page = visit.page
    work.start()
    assert held.asked["technical"].wait(PATIENCE)
    page.goto(f"{site.url}/watch")
    page.locator(".running a").first.click()
    of = {name: page.locator(f"[data-agent={name}]") for name in SEATS}
    of["technical"].and_(page.locator("[data-state=running]")).wait_for()
    of["risk_gate"].and_(page.locator("[data-state=pending]")).wait_for()
    held.free["technical"].set()
    of["technical"].and_(page.locator("[data-state=done]")).wait_for()
    assert held.asked["bull_researcher"].wait(PATIENCE)
    held.free["bear_researcher"].set()
    of["bear_researcher"].and_(page.locator("[data-state=failed]")).wait_for()
    before = page.locator("#log > li").all_inner_texts()
    page.reload()
    of["bear_researcher"].and_(page.locator("[data-state=failed]")).wait_for()
    assert page.locator("#log > li").all_inner_texts() == before
    assert findings(page) == []
    page.set_viewport_size(PHONE)
    assert visit.overhang() <= 0
    held.free["bull_researcher"].set()
    held.free["risk_gate"].set()
    page.locator("#to-tick").wait_for()
    assert page.locator("#outcome-name").inner_text() == "What came of it"
    seqs = page.locator("#log > li").evaluate_all("all => all.map(one => Number(one.dataset.seq))")
    assert seqs == sorted(set(seqs))
    page.locator("#to-tick").click()
    page.wait_for_url("**/symbol/BTCUSD/**")
    page.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true")
    page.locator("main .state[data-state=partial]").wait_for()
    cite_it(visit)


def cite_it(visit: Visit) -> None:
    """Point at a citation, pin it, filter and fold the conversation."""
    page = visit.page
    page.set_viewport_size(DESK)
    chip = page.locator("a.cite").first
    name = chip.get_attribute("href")[1:]
    chip.hover()
    assert page.locator(f"[id='{name}']").get_attribute("data-lit") == ""
    assert page.locator("article[data-lit]").count() >= 1
    page.mouse.move(0, 0)
    assert page.locator("[data-lit]").count() == 0
    chip.focus()
    assert page.locator(f"[id='{name}']").get_attribute("data-lit") == ""
    chip.click()
    assert page.evaluate("location.hash") == f"#{name}"
    page.mouse.move(0, 0)
    assert page.locator("[data-lit]").count() > 0
    page.keyboard.press("Escape")
    page.locator(".folding [data-who=technical]").click()
    assert page.locator("article.voice:visible").count() == 1
    page.locator(".folding [data-who='']").click()
    page.locator(".folding [data-fold=close]").click()
    assert page.locator("article.voice details[open]").count() == 0
    page.locator("a.seat").first.click()
    page.locator("article.voice details[open]").first.wait_for()
