"""The screens of the profiles: every setting as a form, checked, compared, saved, tried, undone."""

from __future__ import annotations

import html
import json
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.doubles.page_reader import Page
from tests.doubles.visitors import bearer
from tests.worlds import desks
from tests.worlds.desk_pages import behind_a_new_app
from torra.clock import System
from torra.config import DeskSettings, Profile
from torra.dashboard.doors.limits import RateLimits
from torra.dashboard.settings import profile_form
from torra.dashboard.view.backing import PageContext
from torra.desk.roster import ProfileReload
from torra.desk.schedule import Desk
from torra.profiles.book import ProfileBook
from torra.profiles.fields import DEFAULT, changed, settings
from torra.profiles.idle import idle
from torra.providers.registry import open_provider
from torra.replay.changed import last_days
from torra.replay.changed.last_days import NOTE
from torra.store import audit as audit_chain

SETTINGS = DeskSettings(instances=(desks.BTC, desks.EUR))
API = "/api/v1/profiles/default"
OURS = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
JSON = {"Accept": "application/json"}
MOMENTUM = "sentiment_weights.momentum"
HOSTILE = '"><script>alert(1)</script>\u202e'


class Form:
    """The fields of the form of a page, by name: what a browser would send."""

    def __init__(self, text: str) -> None:
        form = text.partition('id="profile-form"')[2].partition("</form>")[0]
        page = Page(form)
        texts = dict(
            re.findall(r'<textarea[^>]* name="([^"]*)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL)
        )
        self.fields: list[tuple[str, str]] = []
        self.labels = {label["for"] for label in page.all("label") if "for" in label}
        self.ids: dict[str, str] = {}
        name = ""
        for tag, known in page.tags:
            if "selected" in known:
                self.fields.append((name, known["value"]))
            if "name" not in known or known.get("type") == "checkbox":
                continue
            name = known["name"]
            self.ids[name] = known.get("id", "")
            if tag == "input":
                self.fields.append((name, known.get("value", "")))
            if tag == "textarea":
                self.fields.append((name, html.unescape(texts[name])))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def ran(home: Path) -> Iterator[Desk]:
    """A desk after some closes."""
    (home / "desk.json").write_text(SETTINGS.model_dump_json())
    made = desks.open_desk(home, SETTINGS.instances)
    desks.open_for_work(made)
    made.roster.refit = ProfileReload(
        lambda setup, profile: replace(
            setup, profile=profile, provider=open_provider(profile.agents)
        )
    )
    for _ in range(4):
        desks.step(made)
    yield made
    made.close()


@pytest.fixture
def desk(ran: Desk, home: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(RateLimits, "wait", lambda *_: 0.0)
    shutil.rmtree(home / "profiles", ignore_errors=True)
    ran.roster.setups = {
        name: replace(setup, profile=Profile()) for name, setup in ran.setups.items()
    }
    return ran


@pytest.fixture(scope="module")
def backing(ran: Desk, home: Path) -> PageContext:
    return PageContext(home, ran.database, SETTINGS, ran, {}, ran.adopt)


@pytest.fixture(scope="module")
def app(ran: Desk, backing: PageContext) -> Flask:
    """One app for most tests: its templates are compiled once."""
    return behind_a_new_app(ran, backing).app


@pytest.fixture
def client(app: Flask, desk: Desk) -> FlaskClient:
    return app.test_client()


def with_backing(desk: Any, backing: Any) -> Any:
    return behind_a_new_app(desk, backing).client()


def fields(client: Any, address: str = "/profiles/default") -> dict[str, Any]:
    return dict(Form(client.get(address).text).fields)


def post(client: Any, what: str, json_body: Any = None, **more: Any) -> Any:
    if json_body is None:
        more.setdefault("headers", {"Accept": "text/html"})  # a browser without scripts
    return client.post(f"{API}/{what}", json=json_body, **more)


def digest(client: Any) -> str:
    return client.get(API).json["digest"]


def save(client: Any, places: Any, **more: Any) -> Any:
    body = {"digest": digest(client), "settings": places}
    return post(client, "save", body, **more)


# --- the pages ------------------------------------------------------------------------------------


def test_a_channels_key_is_shown_only_as_set_or_not(desk: Desk, home: Path) -> None:
    with_channel = DeskSettings.model_validate(
        {"channels": {"main": {"account": 7, "key_variable": "TORRA_CHANNEL_KEY"}}}
    )
    secret = {"TORRA_CHANNEL_KEY": "canary-4711"}
    backing = PageContext(home, desk.database, with_channel, desk, secret, desk.adopt)
    client = with_backing(desk, backing)
    for address in ("/profiles", "/api/v1/profiles"):
        text = client.get(address).text
        assert "canary-4711" not in text
        assert "TORRA_CHANNEL_KEY" in text
    assert client.get("/api/v1/profiles").json["desk"]["channels"][0]["key_set"] is True


@pytest.mark.parametrize("name", ["nobody", "CON", "a%00b"])
def test_a_profile_that_cannot_be_is_not_here(client: FlaskClient, name: str) -> None:
    assert client.get(f"/profiles/{name}").status_code == 404
    assert client.get(f"/api/v1/profiles/{name}").status_code == 404
    for what in ("check", "save", "undo", "try", "adopt"):
        assert client.post(f"/api/v1/profiles/{name}/{what}", json={}).status_code == 404


def test_every_setting_is_in_the_form_once_with_its_label(client: FlaskClient) -> None:
    form = Form(client.get("/profiles/default").text)
    names = [name for name, _ in form.fields if name not in profile_form.COMMANDS]
    assert sorted(names) == sorted(item.name for item in settings(DEFAULT))
    assert {form.ids[name] for name in names} <= form.labels
    assert len({form.ids[name] for name in names}) == len(names)


def test_a_form_that_comes_back_untouched_changes_nothing(client: FlaskClient, home: Path) -> None:
    book = ProfileBook(home, SETTINGS, now=System().real_now)
    rich = {
        ("agents", "role_models"): {"technical": "mine:8b"},
        ("symbols", "XAU.m"): {**DEFAULT["symbols"]["XAUUSD"], "news_terms": ["a\nb", HOSTILE]},
        ("timeframe_weights",): {"H1": 0.6, "D1": 1e-7, "M15": 0.4},
    }
    book.save("default", lambda v: changed(v, rich), digest=None, may="loosen", actor="me")
    sent = fields(client)
    told = post(client, "check", data=sent, headers=JSON).json
    assert (told["ok"], told["changes"], told["faults"]) == (True, [], [])
    answer = post(client, "save", data=sent, headers=JSON)
    assert answer.json["reason"] == "Nothing differs from what is saved."
    assert answer.json["digest"] == sent["digest"] == book.read("default").digest


def test_a_broken_file_is_shown_with_its_fault_and_the_last_good_one(
    client: FlaskClient, home: Path
) -> None:
    good = save(client, {"risk.max_positions": 2}).json["digest"]
    (home / "profiles" / "default.json").write_text('{"risk": {"max_position": 2}}')
    text = client.get("/profiles/default").text
    assert "did you mean max_positions?" in text
    assert "Put entry 2 back" in text
    assert "✕ broken" in client.get("/profiles").text
    assert post(client, "undo", {"number": 2}).json["status"] == "done"
    assert digest(client) == good


# --- check and save -------------------------------------------------------------------------------


def test_a_check_tells_the_difference_and_who_may_and_stores_nothing(
    client: FlaskClient, home: Path, desk: Desk
) -> None:
    entries = len(audit_chain.audit_entries(desk.database))
    body = {"settings": {"risk.max_positions": 2, MOMENTUM: 0.6}}
    told = post(client, "check", body).json
    assert [(row["place"], row["before"], row["after"], row["way"]) for row in told["changes"]] == [
        (MOMENTUM, "0.25", "0.6", ""),
        ("risk.max_positions", "3", "2", "tightens"),
    ]
    assert told["refused"] == ""
    refused = post(client, "check", body, headers=bearer("approve")).json["refused"]
    assert refused == "Only an administrator may change Positions at once (risk.max_positions)."
    assert len(audit_chain.audit_entries(desk.database)) == entries
    assert not (home / "profiles").exists()


def test_a_check_tells_what_changed_agents_are_expected_to_cost(client: FlaskClient) -> None:
    paid = {"agents.mode": "swarm", "agents.provider": "google", "agents.influence": "full"}
    told = post(client, "check", {"settings": paid}).json["warnings"]
    (line,) = [text for text in told if "is expected to cost" in text]
    assert line.startswith("a tick is expected to cost 0.0") and "the 3,000 ticks" in line
    free = post(client, "check", {"settings": {"risk.max_positions": 2}}).json
    assert not any("expected to cost" in text for text in free["warnings"])


def test_the_last_days_stand_beside_what_a_page_may_not_change_of_the_agents(
    client: FlaskClient,
) -> None:
    # What a desk runs with is on record from its start; this one began without.
    for places in ({MOMENTUM: 0.7}, {MOMENTUM: 0.25}):
        assert save(client, places).status_code == 200
    last_days._lines.cache_clear()
    told = post(client, "check", {"settings": {"agents.influence": "shadow"}}).json
    assert "agents.influence" in told["refused"]
    assert told["command"] == "torra profile set default agents.influence=shadow --yes"
    *days, note = told["warnings"]
    assert note == NOTE
    assert [line.split(",")[0] for line in days] == ["BTCUSD", "EURUSD"]
    assert all("; L1 alone " in line for line in days)
    # A browser without scripts is shown the same.
    sent = fields(client) | {"agents.influence": "shadow"}
    page = post(client, "check", data=sent).text
    assert all(html.escape(line) in page for line in days)
    tighter = post(client, "check", {"settings": {"agents.outage_size": 0.1}}).json
    assert tighter["warnings"] == [] and tighter["refused"] == ""


def test_a_save_reaches_the_desk_the_history_and_the_record(
    client: FlaskClient, desk: Desk
) -> None:
    answer = save(client, {"risk.max_positions": 2})
    assert (answer.status_code, answer.json["status"]) == (200, "done")
    assert "BTCUSD and EURUSD run with it" in answer.json["reason"]
    assert desk.setups["EURUSD"].profile.risk.max_positions == 2
    entry = audit_chain.audit_entries(desk.database, limit=1)[0]
    assert (entry["action"], entry["target"], entry["actor"]) == (
        "profile.save", "default", "token:admin",
    )  # fmt: skip
    assert json.loads(entry["before"])["risk.max_positions"] == 3
    assert json.loads(entry["after"])["risk.max_positions"] == 2
    told = client.get(API).json
    assert [row["action"] for row in told["history"]] == ["save", "shipped"]
    assert told["waiting"] == []


@pytest.mark.parametrize(
    ("scope", "places", "code"),
    [
        ("read", {MOMENTUM: 0.6}, 403),
        ("approve", {MOMENTUM: 0.6}, 200),
        ("approve", {"risk.max_positions": 2}, 403),
        ("admin", {"risk.max_positions": 2}, 200),
        ("admin", {"risk.max_positions": 4}, 403),
        ("admin", {"agents.influence": "shadow"}, 403),
        ("admin", {"risk.capital": 0}, 422),
    ],
)
def test_who_may_save_what(
    client: FlaskClient, scope: str, places: dict[str, Any], code: int
) -> None:
    before = digest(client)
    assert save(client, places, headers=bearer(scope)).status_code == code
    assert (digest(client) != before) == (code == 200)


def test_loosening_is_refused_with_the_command_and_goes_on_record(
    client: FlaskClient, desk: Desk
) -> None:
    answer = save(client, {"risk.max_positions": 5})
    assert answer.json["command"] == "torra profile set default risk.max_positions=5 --yes"
    assert answer.json["command"] in answer.json["reason"]
    entry = audit_chain.audit_entries(desk.database, limit=1)[0]
    assert entry["outcome"].startswith("failed: Loosening Positions at once (risk.max_positions)")
    assert json.loads(entry["after"]) == {"wish": {"risk.max_positions": 5}}
    assert desk.setups["BTCUSD"].profile.risk.max_positions == 3


def test_what_a_running_desk_cannot_take_waits_for_its_next_start(
    client: FlaskClient, desk: Desk
) -> None:
    answer = save(client, {"agents.include_news": True})
    assert (answer.status_code, answer.json["status"]) == (202, "accepted")
    assert "agents.include_news takes effect at the next start" in answer.json["reason"]
    assert not desk.setups["BTCUSD"].profile.agents.include_news
    assert client.get(API).json["waiting"] == ["BTCUSD", "EURUSD"]
    assert "◐ saved, not running yet" in client.get("/profiles").text


def test_pages_without_a_running_desk_say_when_it_takes_effect(
    desk: Desk, backing: PageContext
) -> None:
    client = with_backing(desk, replace(backing, adopt=None))
    answer = save(client, {MOMENTUM: 0.6})
    assert answer.json["status"] == "accepted"
    assert desk.setups["BTCUSD"].profile.sentiment_weights.momentum == 0.25


def from_the_command_line(home: Any, places: Any) -> None:
    book = ProfileBook(home, SETTINGS, now=System().real_now)
    wanted = {tuple(name.split(".")): value for name, value in places.items()}
    book.save("default", lambda v: changed(v, wanted), digest=None, may="loosen", actor="cli")


WAITING = [
    ("approve", {"risk.max_positions": 9}, "an administrator must let the desk take it"),
    ("approve", {"risk.max_positions": 1}, "an administrator must let the desk take it"),
    ("approve", {"agents.deep_think_model": "m"}, "an administrator must let the desk take it"),
    ("admin", {"risk.max_positions": 9}, "by its own button"),
]


@pytest.mark.by_day(4)
@pytest.mark.parametrize(("scope", "places", "reason"), WAITING)
@pytest.mark.parametrize("what", ["save", "undo"])
def test_a_save_hands_over_nothing_that_its_visitor_may_not_change(
    client: FlaskClient,
    desk: Desk,
    home: Path,
    scope: str,
    places: dict[str, Any],
    reason: str,
    what: str,
) -> None:
    before = desk.setups["BTCUSD"].profile.digest()
    from_the_command_line(home, places)
    from_the_command_line(home, {"sentiment_weights.structure": 0.7})
    if what == "save":
        answer = save(client, {MOMENTUM: 0.7}, headers=bearer(scope))
    else:
        answer = post(client, "undo", {"number": 2}, headers=bearer(scope))
    assert (answer.status_code, answer.json["status"]) == (202, "accepted")
    assert answer.json["reason"].startswith("Saved. ")
    assert reason in answer.json["reason"]
    assert {item.profile.digest() for item in desk.setups.values()} == {before}
    entry = audit_chain.audit_entries(desk.database, limit=1)[0]
    ((name, value),) = places.items()
    assert json.loads(entry["after"])["file"]["BTCUSD"][name] == value
    assert name in json.loads(entry["before"])["running"]["EURUSD"]
    assert post(client, "adopt", {}).json["status"] == "done"
    assert desk.setups["BTCUSD"].profile.digest() == digest(client)


@pytest.mark.parametrize(
    ("scope", "places"),
    [("approve", {"sentiment_weights.structure": 0.7}), ("admin", {"risk.max_positions": 1})],
)
def test_what_waits_goes_along_where_its_visitor_may_change_it(
    client: FlaskClient, desk: Desk, home: Path, scope: str, places: dict[str, Any]
) -> None:
    from_the_command_line(home, places)
    assert save(client, {MOMENTUM: 0.7}, headers=bearer(scope)).json["status"] == "done"
    assert desk.setups["BTCUSD"].profile.digest() == digest(client)
    entry = audit_chain.audit_entries(desk.database, limit=1)[0]
    assert json.loads(entry["before"])["running"]["BTCUSD"].keys() == {MOMENTUM, *places}


def test_a_desk_that_lost_its_lock_takes_nothing_and_says_so(
    client: FlaskClient, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk.database, "fence", lambda: False)
    answer = save(client, {MOMENTUM: 0.7})
    assert answer.json["status"] == "accepted"
    assert "at the next start of the desk: this desk has lost the lock" in answer.json["reason"]
    assert desk.setups["BTCUSD"].profile.sentiment_weights.momentum == 0.25


def test_a_save_during_a_tick_says_that_it_runs_yet(
    client: FlaskClient, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torra.desk.roster.PATIENCE", 0.0)
    told = threading.Event()
    monkeypatch.setattr(desk.roster, "refit", replace(desk.roster.refit, tell=lambda _: told.set()))
    with desk.setups["BTCUSD"].lock:
        told.clear()
        answer = save(client, {MOMENTUM: 0.6})
        assert (answer.status_code, answer.json["status"]) == (202, "running")
        assert answer.json["reason"] == (
            "Saved. EURUSD runs with it from its next tick. "
            "BTCUSD takes it when its tick has ended."
        )
        told.clear()
    assert told.wait(5)
    assert desk.setups["BTCUSD"].profile.sentiment_weights.momentum == 0.6


@pytest.mark.parametrize("number", ["", "x", "99", "-1", "1" * 12])
def test_an_undo_to_nothing_fails_with_the_reason(client: FlaskClient, number: str) -> None:
    answer = post(client, "undo", {"number": number})
    assert (answer.status_code, answer.json["status"]) == (409, "failed")


# --- without scripts ------------------------------------------------------------------------------


@pytest.mark.journey
def test_the_form_works_without_scripts(client: FlaskClient) -> None:
    sent = fields(client) | {"risk.max_positions": "-2", MOMENTUM: "0.6"}
    wrong = post(client, "check", data=sent).text
    assert "✕ 1 to mend before it can be saved." in wrong
    assert "must be 0 or more (found -2)" in wrong
    assert Form(wrong).fields  # what was entered stands there still
    assert dict(Form(wrong).fields)[MOMENTUM] == "0.6"
    refused = post(client, "save", data=sent)
    assert refused.status_code == 422
    assert dict(Form(refused.text).fields)["risk.max_positions"] == "-2"
    sent["risk.max_positions"] = "2"
    shown = post(client, "check", data=sent).text
    assert "● 2 changed." in shown
    assert "▼ tighter: administrator" in shown
    done = post(client, "save", data=sent)
    assert done.status_code == 200
    assert "Saved. BTCUSD and EURUSD run with it from their next tick." in done.get_data(
        as_text=True
    )
    late = post(client, "save", data=sent)
    assert late.status_code == 409
    assert "Somebody was faster" in late.text


def test_a_script_gets_the_outcome_alone_with_what_stands_beside_each_setting(
    client: FlaskClient,
) -> None:
    def outcome(what: str, **sent: str) -> tuple[int, Page, dict[str, str]]:
        headers = {"Accept": "text/html", "X-Torra-Part": "outcome"}
        answer = post(client, what, data=fields(client) | sent, headers=headers)
        assert answer.text.startswith("<section") and "<form" not in answer.text
        page = Page(answer.text)
        marks = {
            known["data-of"]: known["data-says"] for _, known in page.tags if "data-of" in known
        }
        return answer.status_code, page, marks

    code, page, marks = outcome("check", **{"risk.max_positions": "9", "risk.capital": "0"})
    assert (code, [*marks]) == (200, ["risk.capital"]) and "✕ 1 to mend" in page.text
    code, page, marks = outcome("save", **{"risk.max_positions": "9"})
    assert (code, marks) == (403, {"risk.max_positions": "▲ looser: command line"})
    assert "✕ Not saved." in page.text
    code, page, marks = outcome("save", digest="of an older page", **{"risk.max_positions": "1"})
    assert (code, marks) == (409, {}) and "Load the page again" in page.text


def test_every_setting_without_effect_says_so_beside_it(client: FlaskClient) -> None:
    def marks(**more: Any) -> dict[str, str]:
        page = post(client, "check", data=fields(client) | more).text
        rows = re.findall(r'data-name="([^"]+)"(.*?)data-fault', page, re.DOTALL)
        return {name: said[1] for name, row in rows if (said := re.search("◌ ([^<]+)<", row))}

    assert marks() == idle(Profile())
    told = marks(**{"agents.mode": "swarm"})
    assert told["agents.quorum"] == "no effect in mode swarm, without a debate"
    assert "agents.trust" not in told
    assert marks(**{"agents.mode": "no mode"}) == {}
