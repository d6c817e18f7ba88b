"""A committee as a job: what may be asked, its card, and the command beside a desk."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from instance_database import open_home
from tests.worlds import desk_pages, screens
from torra.commands.command_line import main
from torra.committee import job
from torra.errors import ConfigError
from torra.store.research import cards as card_table


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose desk has ticked and ended."""
    folder = tmp_path_factory.mktemp("committee") / "home"
    desk_pages.open_pages(folder).desk.close()
    return folder


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"symbol": "GOLD"}, "no symbol 'GOLD' at the desk; known symbols: BTCUSD"),
        ({"symbol": "BTCUSD", "as_of": "2099-01-01"}, "as_of: 2099-01-01T00:00:00Z is not yet"),
        ({"symbol": "BTCUSD", "hindsight": "yes"}, "hindsight: it is of the past; name its moment"),
        ({}, "known symbols"),
        ({"symbol": "BTCUSD", "risk": "bold"}, "risk: choose one of conservative"),
        ({"symbol": "BTCUSD", "votes": "3"}, "votes: a committee has no such parameter"),
        ({"symbol": "x" * 65}, "64 characters at most"),
        ({"symbol": ["BTCUSD"]}, "write texts"),
        ({"symbol": "BTCUSD", "again": "1"}, "again: write yes"),
        ({"symbol": "BTCUSD", "as_of": "noon"}, "as_of: write a moment such as"),
        ({"symbol": "BTCUSD", "as_of": "0001-01-01T00:00+14:00"}, "as_of: write a moment"),
    ],
)
def test_a_bad_request_names_its_field(home: Path, asked: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        job.check(home, asked)


def test_the_work_makes_a_card_and_says_what_it_comes_to(home: Path) -> None:
    told: list[str] = []
    request = job.check(home, {"symbol": "BTCUSD"})
    assert request.title == "BTCUSD" and request.parameters["risk"] == "balanced"
    done = job.run(home, request.parameters, lambda stage, *_: told.append(stage))
    assert done.says == "BTCUSD: no quorum, fewer than two seats voted. Decision: hold."
    assert told == ["reads the evidence"]
    with closing(open_home(home)) as database:
        row = card_table.card(database, done.made)
    assert row is not None and json.loads(row["document"])["source_type"] == "NO_QUORUM"


def test_a_moment_before_all_records_knows_nothing(home: Path) -> None:
    request = job.check(home, {"symbol": "BTCUSD", "as_of": "0001-01-01"})
    assert "no quorum" in job.run(home, request.parameters, lambda *_: None).says


def test_a_hosted_symbol_is_refused(tmp_path: Path) -> None:
    screens.hosted_app(tmp_path)
    with pytest.raises(ConfigError, match=r"BTCUSD is hosted: name a symbol of the desk"):
        job.check(tmp_path / "home", {"symbol": "host:scorer:BTCUSD"})


def test_the_command_names_what_is_missing(home: Path) -> None:
    done = CliRunner().invoke(main, ["--home", str(home), "committee", "BTCUSD"])
    assert done.exit_code == 0, done.output
    assert "no quorum" in done.stdout
    assert "Not known: the change of broad dollar index over 60 trading days" in done.stdout
    assert "Too little is known to vote: 0 of the 2 numbers it reads." in done.stdout
    assert "counts in a later card" in done.stdout


def test_a_committee_is_a_light_job_of_the_desk() -> None:
    assert job.COMMITTEE.light and job.KINDS["committee"] is job.COMMITTEE
