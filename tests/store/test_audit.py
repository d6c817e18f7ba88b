"""The audit log: a chain that shows every change of it, a page, a file, JSON and a command."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask import Flask
from flask.testing import FlaskClient

from instance_database import Database
from tests.cases import cases
from tests.doubles.entrance import OURS, TOKENS, bearer, csrf_of, desk_app, log_in, scripted_app
from tests.doubles.page_reader import Page, check_structure
from tests.worlds import desks
from torra.commands import access as access_commands
from torra.dashboard.screens.audit_log import COLUMNS
from torra.errors import StoreUnavailable
from torra.exhibits.figures import guarded as cell
from torra.store import audit as audit_chain
from torra.store.audit import PROVES, PROVES_NOT, SEALED, Break, first_break, seal

MARKUP = "<img src=x onerror=alert(1)>\u202e"


def fill(database: Database, count: int, **more: Any) -> None:
    for number in range(count):
        named = {"actor": "session:abc:admin", "action": "halt", "target": f"t{number}", **more}
        database.audit(**named, before={"n": number}, after={"n": number + 1})


def tamper(database, sql, *values) -> None:
    """Change the log as somebody with the file in his hands would, and leave no other trace."""
    db = database.connection()
    guards = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'audit'"
    with database.transaction():
        found = db.execute(guards).fetchall()
        for name, _ in found:
            db.execute(f"DROP TRIGGER {name}")
        assert db.execute(sql, values).rowcount
        for _, made in found:
            db.execute(made)


# --- the chain ------------------------------------------------------------------------------------


def test_a_log_that_nobody_touched_holds(database: Database) -> None:
    assert audit_chain.broken_entry(database) is None
    fill(database, 7)
    assert audit_chain.broken_entry(database) is None
    assert audit_chain.broken_entry(database, page=2) is None
    rows = audit_chain.audit_entries(database)
    assert [row["seq"] for row in rows] == [7, 6, 5, 4, 3, 2, 1]
    assert rows[-1]["previous"] == ""
    assert all(new["previous"] == old["hash"] for new, old in itertools.pairwise(rows))


@pytest.mark.parametrize("column", [name for name in SEALED if name != "seq"])
def test_a_changed_entry_is_found(database: Database, column: str) -> None:
    fill(database, 5)
    tamper(database, f"UPDATE audit SET {column} = 'x' WHERE seq = 3")
    for page in (1, 2, 3, 500):
        assert audit_chain.broken_entry(database, page) == Break(
            3, "it was changed: its hash is another"
        )


@pytest.mark.parametrize("seq", [1, 2, 4])
def test_an_entry_that_is_gone_is_found(database: Database, seq: int) -> None:
    fill(database, 5)
    tamper(database, "DELETE FROM audit WHERE seq = ?", seq)
    assert audit_chain.broken_entry(database, 2) == Break(
        seq + 1, f"entry {seq} is missing before it"
    )


def test_an_entry_that_was_sealed_anew_breaks_the_one_after_it(database: Database) -> None:
    fill(database, 5)
    row = {**audit_chain.audit_entries(database)[2], "outcome": "never happened"}
    tamper(
        database, "UPDATE audit SET outcome = ?, hash = ? WHERE seq = 3", row["outcome"], seal(row)
    )
    assert audit_chain.broken_entry(database) == Break(4, "it does not follow the entry before it")


def test_entries_that_changed_places_are_found(database: Database) -> None:
    fill(database, 4)
    tamper(database, "UPDATE audit SET seq = 9 WHERE seq = 2")
    tamper(database, "UPDATE audit SET seq = 2 WHERE seq = 3")
    tamper(database, "UPDATE audit SET seq = 3 WHERE seq = 9")
    assert audit_chain.broken_entry(database) == Break(2, "it was changed: its hash is another")


def test_the_whole_log_is_never_in_memory(database: Database) -> None:
    fill(database, 7)
    pages = [len(rows) for rows in audit_chain.every_audit_entry(database, page=3)]
    assert pages == [3, 3, 1]
    assert first_break([], {"seq": 0, "hash": ""}) is None


def test_entries_are_found_by_action_and_by_actor(database: Database) -> None:
    fill(database, 3)
    fill(database, 2, action="resume", actor="token:admin")
    fill(database, 1, action="resume")
    seqs = lambda **asked: [row["seq"] for row in audit_chain.audit_entries(database, **asked)]  # noqa: E731
    assert seqs(action="resume") == [6, 5, 4]
    assert seqs(action="resume", actor="token:admin") == [5, 4]
    assert seqs(action="resume", before=6, limit=1) == [5]
    assert seqs(action="' OR 1=1 --") == []
    assert seqs(before=-5) == []
    assert len(seqs(before=1 << 70)) == 6


# --- the pages ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Flask, Database]]:
    home = tmp_path_factory.mktemp("desk")
    desk = desks.working_desk(home)
    yield desk_app(desk, home), desk.database
    desk.close()


@pytest.fixture
def client(place: tuple[Flask, Database]) -> FlaskClient:
    return place[0].test_client()


def get(client, address, scope="read"):
    answer = client.get(address, headers=bearer(scope))
    assert answer.status_code == 200, answer.get_data(as_text=True)[:300]
    return answer


def page_of(client, address):
    read = Page(get(client, address).get_data(as_text=True))
    check_structure(read)
    return read


def test_the_page_shows_who_did_what_and_leads_on(
    client: FlaskClient, place: tuple[Flask, Database]
) -> None:
    _, database = place
    fill(database, 60, action="page", target=MARKUP)
    text = get(client, "/audit?action=page").get_data(as_text=True)
    assert "<img" not in text
    assert "\u202e" not in text
    assert "&lt;img src=x" in text
    page = page_of(client, "/audit?action=page")
    assert len([row for row in page.rows if len(row) == 7]) == 51
    (older,) = [link["href"] for link in page.all("a") if link.get("rel") == "next"]
    assert "action=page" in older
    rest = page_of(client, older)
    assert len([row for row in rest.rows if len(row) == 7]) == 11
    assert [link["href"] for link in rest.all("a") if link.get("rel") == "prev"] == [
        "/audit?action=page"
    ]
    assert "n" in [row[6] for row in page.rows][1] and "59 → 60" in text
    assert "Nobody has changed anything yet" not in text
    assert "No entry is like that" in page_of(client, "/audit?actor=nobody").text


def test_a_page_checks_its_own_entries_and_the_whole_when_asked(
    place: tuple[Flask, Database], client: FlaskClient
) -> None:
    _, database = place
    fill(database, 3, action="held")
    newest = audit_chain.audit_entries(database, limit=1)[0]["seq"]
    assert f"to {newest} hold" in page_of(client, "/audit").text
    assert "not checked here" in page_of(client, "/audit?action=held").text
    text = page_of(client, "/audit/check").text
    assert f"entries 1 to {newest} hold" in text and PROVES_NOT in text
    assert audit_chain.audit_entries(database, limit=1)[0]["hash"] in text
    assert get(client, "/api/v1/audit?limit=2").get_json()["broken"] is None


def test_a_login_a_logout_and_their_address_are_on_record(place: tuple[Flask, Database]) -> None:
    app, database = place
    client = app.test_client()
    log_in(client, "approve", environ_overrides={"REMOTE_ADDR": "127.0.0.9"})
    client.post("/logout", data={"csrf": csrf_of(client)}, headers=OURS)
    out, into = audit_chain.audit_entries(database, limit=2)
    assert (into["action"], into["target"], into["address"]) == ("login", "approve", "127.0.0.9")
    assert (out["action"], out["actor"]) == ("logout", into["actor"])
    assert TOKENS["approve"] not in json.dumps([into, out])


def test_a_login_does_not_need_the_record(
    place: tuple[Flask, Database], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app, database = place

    def broken(**_: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(database, "audit", broken)
    there = {"REMOTE_ADDR": "127.0.0.8"}
    assert log_in(app.test_client(), "admin", environ_overrides=there).status_code == 303
    assert "not on record" in caplog.text


def test_the_api_pages_through_all_of_it(
    place: tuple[Flask, Database], client: FlaskClient
) -> None:
    _, database = place
    fill(database, 5, action="walk")
    seen, before = [], ""
    while True:
        told = get(client, f"/api/v1/audit?action=walk&limit=2{before}").get_json()
        seen += told["entries"]
        if told["next"] is None:
            break
        before = f"&before={told['next']}"
    assert [row["after"]["n"] for row in seen] == [5, 4, 3, 2, 1]
    assert {*seen[0]} == set(COLUMNS)


@pytest.mark.parametrize("asked", ["limit=0", "limit=501", "limit=x", "limit=-1", "before=1e3"])
def test_a_wrong_parameter_of_the_api_is_told(client: FlaskClient, asked: str) -> None:
    answer = client.get(f"/api/v1/audit?{asked}", headers=bearer("read"))
    assert answer.status_code == 400
    why = "limit is 1 to 500" if "limit" in asked else "before is the `next` of an earlier answer"
    assert why in answer.get_json()["error"]


FORMULAS = (
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "\uff1d1",
    "=cmd|' /C calc'!A0",
)


@cases("text", FORMULAS, ids=[f"formula {n}" for n in range(len(FORMULAS))])
def test_a_cell_cannot_start_a_formula(text: str) -> None:
    assert cell(text) == f"'{text}"


@cases("text", ["", "halt", "127.0.0.1", '{"a":1}', "a=b", "1", "2026-02-13"])
def test_other_cells_are_as_they_are(text: str) -> None:
    assert cell(text) == text


def test_the_file_has_every_entry_and_can_be_checked_elsewhere(
    place: tuple[Flask, Database], client: FlaskClient
) -> None:
    _, database = place
    fill(database, 2, action="=HYPERLINK()", target='quote " and\nline, comma')
    answer = get(client, "/audit.csv")
    assert answer.mimetype == "text/csv"
    assert 'attachment; filename="torra-audit.csv"' in answer.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.get_data(as_text=True), newline="")))
    stored = audit_chain.audit_entries(database, limit=10_000)[::-1]
    assert [int(row["seq"]) for row in rows] == [row["seq"] for row in stored]
    assert rows[-1]["action"] == "'=HYPERLINK()"
    assert rows[-1]["target"] == 'quote " and\nline, comma'
    assert [row["hash"] for row in rows] == [row["hash"] for row in stored]
    back = [{name: as_stored(row[name]) for name in COLUMNS} for row in rows]
    assert all(seal({**row, "seq": int(row["seq"])}) == row["hash"] for row in back)


def as_stored(cell: str) -> str:
    """Return what a cell stands for: without the guard, its escapes as the characters they name."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), cell.removeprefix("'"))


def test_a_file_that_cannot_be_read_is_refused_before_it_begins(
    place: tuple[Flask, Database], client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StoreUnavailable("the disk is gone")

    monkeypatch.setattr(place[1], "rows", broken)
    assert client.get("/audit.csv", headers=bearer("read")).status_code == 503


def test_without_a_database_there_is_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    client = scripted_app().test_client()
    assert "No log here" in page_of(client, "/audit").text
    assert client.get("/audit/check", headers=bearer("read")).status_code == 200
    assert client.get("/audit.csv", headers=bearer("read")).status_code == 404
    assert client.get("/api/v1/audit", headers=bearer("read")).status_code == 404


# --- the command line -----------------------------------------------------------------------------


def command(home, *words):
    return CliRunner().invoke(access_commands.audit, words, obj=home, catch_exceptions=False)


def test_the_command_shows_and_checks_the_log(tmp_path: Path, database: Database) -> None:
    assert "Nothing was done yet" in command(tmp_path).output
    fill(database, 3, target=MARKUP + "\x1b[2J")
    shown = command(tmp_path, "--limit", "2").output
    assert shown.count("halt") == 2
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    good = command(tmp_path, "--verify", "--json")
    assert good.exit_code == 0
    assert json.loads(good.output)["verified"] is True
    tamper(database, "UPDATE audit SET before = '{' WHERE seq = 2")
    bad = command(tmp_path, "--verify")
    assert bad.exit_code == 1
    assert "BROKEN at entry 2" in bad.output
    assert json.loads(command(tmp_path, "--verify", "--json").output)["broken"]["seq"] == 2


def test_the_command_says_what_a_whole_chain_proves_and_what_it_does_not(
    tmp_path: Path, database: Database
) -> None:
    assert "nothing to check" in command(tmp_path, "--verify").output
    fill(database, 3)
    newest = audit_chain.audit_entries(database, limit=1)[0]
    shown = command(tmp_path, "--verify").output
    assert f"from entry 1 to entry 3: {PROVES}" in shown
    assert newest["hash"] in shown and PROVES_NOT in shown
    told = json.loads(command(tmp_path, "--verify", "--json").output)
    assert told["newest"] == {name: newest[name] for name in ("seq", "at", "hash")}
    assert (told["proves"], told["proves_not"]) == (PROVES, PROVES_NOT)
    tamper(database, "UPDATE audit SET before = '{' WHERE seq = 2")
    assert json.loads(command(tmp_path, "--verify", "--json").output)["proves"] == ""


def test_the_newest_entry_rewritten_with_a_hash_that_fits_shows_only_beside_an_export(
    tmp_path: Path, database: Database
) -> None:
    """What the sentence of the command says: its hash is another than it was."""
    fill(database, 3)
    before = audit_chain.audit_entries(database, limit=1)[0]
    row = {**before, "outcome": "never happened"}
    tamper(
        database, "UPDATE audit SET outcome = ?, hash = ? WHERE seq = 3", row["outcome"], seal(row)
    )
    assert audit_chain.broken_entry(database) is None
    assert before["hash"] not in command(tmp_path, "--verify").output


def test_the_command_wants_a_desk(tmp_path: Path) -> None:
    done = command(tmp_path / "none")
    assert done.exit_code == 2
    assert "no desk has run" in done.output
    assert not (tmp_path / "none").exists()
