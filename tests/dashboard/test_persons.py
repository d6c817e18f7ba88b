"""Tokens of persons: each has a name, which the audit log tells, and is taken back alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.doubles.entrance import OURS
from tests.worlds import demo_orders
from tests.worlds.demo_view import ScriptedView
from torra.commands import access as access_commands
from torra.dashboard.app import create_app
from torra.dashboard.doors import access_file
from torra.dashboard.doors.access import Access
from torra.dashboard.doors.access_file import Owner
from torra.dashboard.view.desk_view import DatabaseView
from torra.errors import ConfigError
from torra.home import ACCESS


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
    assert answer.get_json()["status"] in ("done", "failed"), answer.text
    actors = [entry["actor"] for entry in backing.database.audit_entries(limit=9)]
    assert any(re.fullmatch(r"Anna:[0-9a-f]{6}:approve", one) for one in actors)
    assert "Anna:token:approve" in actors
    assert ("command line", "token given", "Anna") in [
        (entry["actor"], entry["action"], entry["target"])
        for entry in backing.database.audit_entries(limit=9)
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
