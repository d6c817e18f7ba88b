"""`torra cost`: sums a person can check against the ledger."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import instance_database
from instance_database import Database
from tests.worlds.hands import torra
from tests.worlds.homes import desk_file, profile_file
from torra.clock import System, iso, parse
from torra.config import Profile
from torra.desk import looking_desk
from torra.store import ledger as ledger_table
from torra.store.ledger import Booking, Settlement

NOW = parse("2026-11-21T18:00:00Z")
HOUR = timedelta(hours=1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a profile that pays and one that does not; the time is NOW."""

    class Stopped(System):
        def real_now(self) -> datetime:
            return NOW

    for module in (looking_desk, instance_database):
        monkeypatch.setattr(module, "System", Stopped)
    paying = {"agents": {"provider": "anthropic", "max_api_cost_per_hour": 0.5}}
    return desk_file(
        profile_file(tmp_path, paying, "paying"),
        {"name": "A", "symbol": "BTCUSD", "profile": "paying"},
        {"name": "B", "symbol": "BTCUSD", "profile": "default"},
    )


def call(
    database: Database,
    ago: timedelta,
    usd: float | None = None,
    *,
    profile: str = "paying",
    role: str = "technical",
    model: str = "claude-haiku-5-5",
    tokens: tuple[int, int, int] = (4000, 400, 1000),
) -> None:
    """Book a call at a worst case of 0.05 and settle it, or keep it when `usd` is None."""
    row = Booking("analysts", role, 1, 1, "anthropic", model, 0.05)
    moment = NOW - ago
    (number,) = database.book(profile, "tick", [row], at=moment, until=moment)
    if usd is None:
        database.keep(number)
    else:
        read, written, cached = tokens
        database.settle(number, Settlement(usd, moment, read, written, cached))


def fill(home: Path) -> Database:
    database = Database.open(home / "torra.db", now=lambda: NOW)
    call(database, 0.2 * HOUR, 0.001)
    call(database, 0.5 * HOUR, role="bull_researcher", model="claude-sonnet-5-5")
    call(database, 2 * HOUR, 0.012, role="bull_researcher", model="claude-sonnet-5-5")
    call(database, 20 * HOUR, 0.1, profile="gone")
    call(database, 30 * HOUR, 9.0)
    return database


def document(home: Path, *words: str) -> dict[str, Any]:
    result = torra(home, "cost", *words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_sums_are_those_of_the_ledger(home: Path) -> None:
    fill(home).close()
    told = document(home)
    assert told["last_hour"] == {
        "usd": 0.051,
        "calls": 2,
        "input_tokens": 4000,
        "cached_tokens": 1000,
        "output_tokens": 400,
        "kept_usd": 0.05,
        "kept_calls": 1,
        "kept_share": 0.9804,
    }
    assert (told["today"]["usd"], told["last_24_hours"]["usd"]) == (0.063, 0.163)
    assert told["projected_day_usd"] == pytest.approx(0.063 + 6 * 0.051)
    assert [(row["role"], row["usd"]) for row in told["roles"]] == [
        ("technical", 0.101),
        ("bull_researcher", 0.062),
    ]
    assert [(row["model"], row["calls"]) for row in told["models"]] == [
        ("anthropic:claude-haiku-5-5", 2),
        ("anthropic:claude-sonnet-5-5", 2),
    ]


def test_each_profile_stands_against_its_ceiling(home: Path) -> None:
    database = fill(home)
    ledger_table.set_degradation_level(database, "paying", "L1_ONLY")
    database.close()
    default, gone, paying = document(home)["profiles"]
    assert (paying["spent_usd"], paying["left_usd"], paying["degradation_level"]) == (
        0.051,
        0.449,
        "L1_ONLY",
    )
    assert 0.2 < paying["worst_tick_usd"] < 0.3 and paying["free_at"] == iso(NOW)
    assert default["worst_tick_usd"] == 0 and default["degradation_level"] == "budget"
    assert gone["ceiling_usd"] is None and gone["spent_usd"] == 0


def test_it_says_when_a_tick_fits_again(home: Path) -> None:
    database = Database.open(home / "torra.db", now=lambda: NOW)
    call(database, 0.9 * HOUR, 0.2)
    call(database, 0.6 * HOUR, 0.2)
    call(database, 0.1 * HOUR, 0.1)
    database.close()
    (row,) = document(home, "--profile", "paying")["profiles"]
    assert row["left_usd"] == 0 and 0.2 < row["worst_tick_usd"] < 0.4
    assert row["free_at"] == iso(NOW + 0.4 * HOUR)
    assert "which fits from 2026-11-21T18:24:00Z" in torra(home, "cost").stdout


def test_it_says_when_no_tick_ever_fits(home: Path) -> None:
    poor = {"agents": {"provider": "google", "quick_think_model": "x", "deep_think_model": "y"}}
    poor["agents"]["max_api_cost_per_hour"] = 1.0  # type: ignore[assignment]
    profile_file(home, poor, "paying")
    (row,) = document(home, "--profile", "paying")["profiles"]
    assert row["free_at"] is None
    assert "more than the ceiling: raise agents.max_api_cost_per_hour" in torra(home, "cost").stdout
    own = {"x": {"input": 0.1, "output": 0.5}, "google:y": {"input": 0.1, "output": 0.5}}
    (home / "prices.json").write_text(json.dumps(own), encoding="utf-8")
    assert document(home, "--profile", "paying")["profiles"][0]["free_at"] == iso(NOW)


def test_the_table_shows_small_money_and_what_is_blocked(home: Path) -> None:
    database = fill(home)
    ledger_table.block_provider(database, "anthropic", "401: the key was refused", NOW + HOUR)
    database.close()
    text = torra(home, "cost").stdout
    assert "anthropic is not asked until 2026-11-21T19:00:00Z: 401: the key was refused" in text
    assert "0.051000" in text and "(98%)" in text and "0.449000 left" in text


@pytest.mark.parametrize("command", ["cost", "models", "effect"])
def test_a_broken_profile_file_is_named_though_another_one_ran_last(
    home: Path, command: str
) -> None:
    database = fill(home)
    for name in ("A", "B"):
        database.apply_profile(name, Profile().model_dump_json(), "d")
    database.close()
    profile_file(home, {"risk": {"max_positions": "many"}}, "paying")
    result = torra(home, command)
    assert result.exit_code == 2, result.output
    assert "paying.json" in result.stderr and "max_positions" in result.stderr


def test_results_of_a_home_that_never_ran_need_no_profile(home: Path) -> None:
    profile_file(home, {"risk": {"max_positions": "many"}}, "paying")
    result = torra(home, "results")
    assert result.exit_code == 0 and "No desk has run here yet" in result.stdout


@pytest.mark.parametrize("name", ["nobody", "../default", ""])
def test_a_profile_that_is_not_there_is_a_mistake(home: Path, name: str) -> None:
    result = torra(home, "cost", "--profile", name)
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.count("\n") == 1 and "profile" in result.stderr


def test_a_profile_that_was_a_file_with_an_odd_name_is_no_trouble(home: Path) -> None:
    database = Database.open(home / "torra.db", now=lambda: NOW)
    for name in ("**", "../profiles/paying", "My profile", "a" * 300):
        call(database, 0.2 * HOUR, 0.001, profile=name)
    database.close()
    told = document(home)["profiles"]
    assert sorted(row["profile"][:9] for row in told if row["ceiling_usd"] is None) == [
        "**", "../profil", "My profil", "a" * 9,
    ]  # fmt: skip
    assert torra(home, "cost").exit_code == 0


def test_a_clock_that_ran_ahead_is_told(home: Path) -> None:
    database = Database.open(home / "torra.db", now=lambda: NOW)
    call(database, -30 * 24 * HOUR, 0.4)
    database.close()
    (row,) = document(home, "--profile", "paying")["profiles"]
    assert (row["booked_ahead"], row["left_usd"]) == (1, 0.1)
    assert "booked by a clock ahead" in torra(home, "cost").stdout


@pytest.mark.parametrize(
    ("agents", "role", "proposed"),
    [
        ({}, "risk_gate", True),
        ({}, "technical", False),
        ({"gate_call": "openings"}, "risk_gate", False),
        ({"call_policy": "pivotal"}, "risk_gate", False),
    ],
)
def test_a_gate_that_is_paid_on_every_tick_is_proposed_to_be_asked_where_a_position_can_open(
    home: Path, agents: dict[str, str], role: str, proposed: bool
) -> None:
    profile_file(home, {"agents": {"provider": "anthropic", **agents}}, "paying")
    database = Database.open(home / "torra.db", now=lambda: NOW)
    call(database, 2 * HOUR, 0.0123, role=role)
    database.close()
    (line,) = json.loads(torra(home, "cost", "--json").output)["proposals"] if proposed else ("",)
    said = torra(home, "cost").output
    assert ("agents.gate_call openings" in said) == proposed
    assert line in said
    if proposed:
        assert line.startswith("The gate's model cost 0.012300 USD in the last 24 hours.")
        assert "torra profile set paying agents.gate_call openings" in line
