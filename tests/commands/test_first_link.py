"""The link of the first start is written where a person reads it, and into no file that is kept."""

from __future__ import annotations

import shlex
import socket
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.doubles.browser import chromium, needs_browser
from tests.worlds import desks
from torra.commands import access as access_commands
from torra.commands import run as running
from torra.commands import terminal
from torra.commands.command_line import main
from torra.config import load_desk
from torra.dashboard import server
from torra.dashboard.doors.access import Access
from torra.errors import ConfigError


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
    assert shown.startswith("http://127.0.0.1:") and ":0/" not in shown
    assert shown.endswith(f"/login#token={admin}")
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


def begin(home: Path, port: int) -> list[str]:
    """Return what a start says before anything long."""
    said: list[str] = []
    running._begin(home, running.PagesAddress("127.0.0.1", port), said.append)
    return said


def test_a_desk_that_ran_before_tells_its_new_port_before_anything_long(tmp_path: Path) -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begin(tmp_path, port)
    # a note without a database would look like a lost one
    assert access_commands.served_at(tmp_path) == "" and not list(tmp_path.iterdir())
    told(tmp_path)
    assert begin(tmp_path, port) == []
    assert access_commands.served_at(tmp_path) == f"http://127.0.0.1:{port}"


def test_a_port_that_is_taken_is_not_told(tmp_path: Path) -> None:
    told(tmp_path)
    before = access_commands.served_at(tmp_path)
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="cannot be opened"):
            begin(tmp_path, taken.getsockname()[1])
    assert access_commands.served_at(tmp_path) == before


@pytest.mark.parametrize("port", [5060, 5061, 6000, 6666, 10080])
def test_a_port_that_browsers_refuse_is_said_with_one_that_they_take(
    tmp_path: Path, port: int
) -> None:
    (said,) = begin(tmp_path, port)
    assert said.startswith(f"warning: no browser opens port {port}")
    other = int(said.rpartition("--port ")[2])
    assert other > port and not server.refused_by_browsers(other)


@needs_browser
def test_those_are_the_ports_that_a_browser_refuses() -> None:
    """A port of which nothing answers is refused otherwise than one that is not asked."""
    of_the_standard_alone = {4190, 6679}
    asked = [*sorted(server.REFUSED_PORTS - of_the_standard_alone), 5000, 5001, 5062, 6001, 8080]
    with chromium() as browser:
        page = browser.new_page()
        for port in asked:
            with pytest.raises(Exception, match="ERR_") as found:
                page.goto(f"http://127.0.0.1:{port}/")
            unsafe = "ERR_UNSAFE_PORT" in str(found.value)
            assert unsafe == bool(server.refused_by_browsers(port)), port
