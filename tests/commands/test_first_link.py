"""The link of the first start is written where a person reads it, and into no file that is kept."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.worlds import desks
from torra.commands import run as running
from torra.commands import terminal
from torra.commands.command_line import main
from torra.config import load_desk
from torra.dashboard.doors.access import Access


def told(home: Path) -> str:
    """Return what a start says of its pages."""
    with closing(desks.open_desk(home)) as desk:
        address = running.PagesAddress("127.0.0.1", 0)
        listener, shown = running._listen(desk, load_desk(home), home, address)
        listener.close()
        return shown


def test_a_person_at_a_terminal_is_given_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "read_by_a_person", lambda: True)
    shown = told(tmp_path)
    admin = Access.of_home(tmp_path)[0].tokens["admin"]
    assert shown.startswith("http://127.0.0.1:") and shown.endswith(f"/login#token={admin}")
    assert admin not in told(tmp_path), "the second start has no new token to show"


def test_a_file_gets_the_command_that_shows_the_link_and_no_token(tmp_path: Path) -> None:
    """Standard output is a file here, as under nohup, in a service or in a container."""
    home = tmp_path / "a home"
    shown = told(home)
    tokens = Access.of_home(home)[0].tokens
    assert not [token for token in tokens.values() if token in shown]
    words = shlex.split(shown.partition("to log in: ")[2])
    assert words[:1] == ["torra"], shown
    result = CliRunner().invoke(main, words[1:], catch_exceptions=False)
    assert f"login#token={tokens['admin']}" in result.output
    assert shown.partition(";")[0] in result.output, "with the port that is served"
