"""Tokens of persons: each has a name, which the audit log tells, and is taken back alone."""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.doubles.entrance import OURS
from tests.worlds import demo_orders, stores
from tests.worlds.demo_view import ScriptedView
from torra.commands import access as access_commands
from torra.dashboard.app import create_app
from torra.dashboard.doors import access_file
from torra.dashboard.doors.access import Access
from torra.dashboard.doors.access_file import Owner
from torra.dashboard.view.desk_view import DatabaseView
from torra.errors import ConfigError
from torra.home import ACCESS, ACCESS_LOCK
from torra.store import audit as audit_chain
from torra.whole_files import alone, write_whole


def command(home: Path, *words: str) -> Any:
    return CliRunner().invoke(access_commands.token, words, obj=home)


def test_a_person_has_a_token_by_name_and_the_audit_log_names_them(tmp_path: Path) -> None:
    backing = demo_orders.build(tmp_path)
    home = backing.home
    one = command(home, "--name", "Anna", "--json")
    assert one.exit_code == 0, one.output
    (row,) = json.loads(one.output)["tokens"]
    assert (row["name"], row["scope"]) == ("Anna", "approve")
    again = command(home, "--name", "Anna", "--json")
    assert json.loads(again.output)["tokens"] == [row]  # one person, one token
    access, _ = Access.of_home(home)
    view = DatabaseView(backing.database, backing.settings, backing.desk)
    client = create_app(view, access=access, backing=backing).test_client()
    client.post("/login", data={"token": row["token"]}, headers=OURS)
    bearer = {"Authorization": f"Bearer {row['token']}"}
    answer = client.post("/api/v1/halt", json={}, headers=bearer)
    assert answer.json["status"] in ("done", "failed"), answer.text
    actors = [entry["actor"] for entry in audit_chain.audit_entries(backing.database, limit=9)]
    assert any(re.fullmatch(r"Anna:[0-9a-f]{6}:approve", one) for one in actors)
    assert "Anna:token:approve" in actors
    assert ("command line", "token given", "Anna") in [
        (entry["actor"], entry["action"], entry["target"])
        for entry in audit_chain.audit_entries(backing.database, limit=9)
    ]


def test_a_token_that_is_taken_back_ends_its_sessions_and_no_others(tmp_path: Path) -> None:
    access, _ = Access.of_home(tmp_path)
    found, made = access_file.name_person(tmp_path, "Bo", "read")
    assert made
    assert found.by_scope == access.tokens
    token = found.of_persons[Owner("read", "Bo")]
    clients = {}
    app = create_app(ScriptedView(), access=access)
    for name, given in (("Bo", token), ("admin", access.tokens["admin"])):
        clients[name] = app.test_client()
        clients[name].post("/login", data={"token": given}, headers=OURS)
        assert clients[name].get("/").status_code == 200
    access_file.revoke(tmp_path, "Bo")
    assert clients["Bo"].get("/").status_code == 401
    assert clients["admin"].get("/").status_code == 200
    assert access.owner_of(token) is None
    # the same name again is another person's token: old cookies stay out with the old one
    access_file.name_person(tmp_path, "Bo", "read")
    assert clients["Bo"].get("/").status_code == 401


@pytest.mark.parametrize("name", ["", "session", "Token", "a:b", "x" * 41, "-x", "a\n", "<b>"])
def test_a_name_that_could_be_mistaken_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no name for a token"):
        access_file.name_person(tmp_path, name, "read")


def test_a_person_of_another_scope_and_an_unknown_one_are_told_the_remedy(tmp_path: Path) -> None:
    access_file.name_person(tmp_path, "Anna", "read")
    with pytest.raises(ConfigError, match="torra token --revoke 'Anna'"):
        access_file.name_person(tmp_path, "Anna", "admin")
    with pytest.raises(ConfigError, match="there is one of: Anna"):
        access_file.revoke(tmp_path, "Bo")
    both = command(tmp_path, "--new", "--name", "Bo")
    assert both.exit_code == 2
    assert "one of --new, --name and --revoke" in both.output
    access_file.replace(tmp_path)  # every token is new, those of persons end
    assert not access_file.read(tmp_path / ACCESS).of_persons


def test_a_scope_that_is_none_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    access_file.read_or_make(tmp_path)
    before = (tmp_path / ACCESS).read_bytes()
    with pytest.raises(ConfigError, match="'root' is no scope of a token"):
        access_file.name_person(tmp_path, "Anna", "root")
    assert (tmp_path / ACCESS).read_bytes() == before


@pytest.mark.parametrize("option", ["--name", "--revoke"])
@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_shows_no_token(tmp_path: Path, option: str, name: str) -> None:
    access_file.name_person(tmp_path, "Anna", "read")
    told = command(tmp_path, option, name)
    assert told.exit_code == 2
    assert told.output == f"torra: {option} is empty: give a person's name, as in {option} Anna\n"
    assert command(tmp_path, "--new", option, name).exit_code == 2


def test_the_case_of_a_name_makes_no_other_person(tmp_path: Path) -> None:
    first, _ = access_file.name_person(tmp_path, "Anna", "approve")
    again = command(tmp_path, "--name", "anna", "--json")
    (row,) = json.loads(again.output)["tokens"]
    assert (row["name"], row["token"]) == ("Anna", first.of_persons[Owner("approve", "Anna")])
    with pytest.raises(ConfigError, match="torra token --revoke 'Anna'"):
        access_file.name_person(tmp_path, "ANNA", "admin")
    found, whose = access_file.revoke(tmp_path, "aNNa")
    assert (found.of_persons, whose) == ({}, "Anna")


def test_all_who_share_a_name_in_an_older_file_lose_their_tokens(tmp_path: Path) -> None:
    access_file.name_person(tmp_path, "Anna", "read")
    path = tmp_path / ACCESS
    told = json.loads(path.read_text())
    told["persons"].append({"name": "anna", "scope": "admin", "token": "x" * 40})
    path.write_text(json.dumps(told))
    found, _ = access_file.revoke(tmp_path, "anna")
    assert not found.of_persons


@pytest.mark.parametrize(
    "change",
    [lambda home: access_file.revoke(home, "Anna"), access_file.replace],
    ids=["revoke", "replace"],
)
def test_a_token_that_is_taken_back_does_not_come_back_with_another_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    held, _ = access_file.name_person(tmp_path, "Anna", "approve")
    token = held.of_persons[Owner("approve", "Anna")]
    other = threading.Thread(target=change, args=(tmp_path,))

    def meanwhile(path: Path, content: bytes, **more: Any) -> None:
        if threading.current_thread() is not other:
            other.start()
            other.join(0.3)  # without a lock it has written by then
        write_whole(path, content, **more)

    monkeypatch.setattr(access_file, "write_whole", meanwhile)
    access_file.name_person(tmp_path, "Bo", "read")
    other.join(10)
    assert access_file.read(tmp_path / ACCESS).owner_of(token) is None


def test_of_processes_at_once_none_loses_its_person(tmp_path: Path) -> None:
    def add(number: int) -> bool:
        for turn in range(5):
            access_file.name_person(tmp_path, f"P{number} {turn}", "read")
        return True

    assert all(stores.forked(add, 4))
    assert len(access_file.read(tmp_path / ACCESS).of_persons) == 20


def test_a_lock_that_is_held_for_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / ACCESS_LOCK
    monkeypatch.setattr(access_file, "alone", partial(alone, patience=0.05))
    access_file.replace(tmp_path)
    with alone(lock), pytest.raises(ConfigError, match=r"holds .*access\.lock: try again"):
        access_file.replace(tmp_path)
    access_file.replace(tmp_path)
    assert not lock.read_bytes()
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600 or os.name != "posix"


def test_a_token_file_with_an_odd_person_is_refused(tmp_path: Path) -> None:
    access_file.name_person(tmp_path, "Anna", "read")
    path = tmp_path / ACCESS
    told = json.loads(path.read_text())
    for odd in ({"name": "a:b"}, {"scope": "root"}, {"token": "short"}):
        broken = {**told, "persons": [{**told["persons"][0], **odd}]}
        path.write_text(json.dumps(broken))
        path.chmod(0o600)
        with pytest.raises(ConfigError):
            access_file.read(path)
