"""`torra doctor` on numbers from beyond the chart: who is asked where, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest

from instance_database import open_home
from tests.worlds import desks
from tests.worlds.homes import desk_file, profile_file
from torra.clock import System, floor
from torra.desk.checks import outside, stored, table
from torra.desk.checks.finding import Context, Finding

OUTSIDE: Final = next(check for check in table.CHECKS if check.name == "outside")
HOUR: Final = timedelta(hours=1)
DESK = ["technical", "bull_researcher", "bear_researcher", "risk_gate"]


def findings(
    home: Path,
    sources: list[str] | None,
    agents: Mapping[str, Any] | None = None,
    *,
    symbol: str = "EURUSD",
    environment: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Return what the check says of a desk of one symbol with these settings."""
    timeframe = "H1" if symbol == "EURUSD" else "M15"
    desk_file(home, {"symbol": symbol, "timeframes": [timeframe], "profile": "own"})
    profile: dict[str, Any] = {"agents": dict(agents or {})}
    if sources is not None:
        profile["outside"] = {"sources": sources}
    profile_file(home, profile, "own")
    found = list(outside.outside(Context(home, environment or {})))
    assert {one.name for one in found} <= {"outside"}
    return found


def test_it_is_one_of_the_quick_checks(tmp_path: Path) -> None:
    assert OUTSIDE.quick and OUTSIDE.run == outside.outside


@pytest.mark.parametrize("sources", [None, ["file"], []])
def test_a_desk_that_asks_nobody_is_told_nothing(tmp_path: Path, sources: list[str]) -> None:
    assert findings(tmp_path, sources) == []


@pytest.mark.parametrize(
    ("source", "host", "analyst"),
    [
        ("fred", "fred.stlouisfed.org", "fundamental"),
        ("cftc", "publicreporting.cftc.gov", "sentiment"),
    ],
)
def test_who_is_asked_is_told_with_its_host(
    tmp_path: Path, source: str, host: str, analyst: str
) -> None:
    (one,) = findings(tmp_path, [source], {"active_agents": [analyst, *DESK]})
    assert one.level == "ok" and one.detail.endswith(f"{source} is asked at {host}")
    said, lacking = findings(tmp_path, [source], {"active_agents": DESK})
    assert said == one and lacking.level == "warn"
    assert "no seated analyst reads" in lacking.detail and f'"{analyst}"' in lacking.remedy


def test_another_server_is_told_and_a_wrong_address_is_an_error(tmp_path: Path) -> None:
    seat = {"active_agents": ["fundamental", *DESK]}
    mine = {"TORRA_FRED_BASE_URL": "https://mirror.example.com/graph"}
    (one,) = findings(tmp_path, ["fred"], seat, environment=mine)
    assert one.detail.endswith("mirror.example.com, a server of yours")
    findings(tmp_path, ["fred"], seat)
    wrong = table.findings(Context(tmp_path, {"TORRA_FRED_BASE_URL": "ftp://x"}), [OUTSIDE])
    assert [one.level for one in wrong] == ["alert"] and "TORRA_FRED_BASE_URL" in wrong[0].detail


def test_a_publisher_that_no_symbol_reads_is_told(tmp_path: Path) -> None:
    seat = {"active_agents": ["sentiment", *DESK]}
    (one,) = findings(tmp_path, ["fred"], seat, symbol="BTCUSD")
    assert one.level == "warn" and "no symbol of it reads" in one.detail
    assert "outside.sources" in one.remedy
    (read,) = findings(tmp_path, ["cftc"], seat, symbol="BTCUSD")
    assert read.level == "ok"


def test_a_fundamental_analyst_without_anything_to_read_is_told(tmp_path: Path) -> None:
    seat = {"active_agents": ["fundamental", *DESK]}
    (one,) = findings(tmp_path, ["file"], seat, symbol="BTCUSD")
    assert one.level == "warn" and "will abstain" in one.detail and "BTCUSD" in one.detail
    assert "symbols.*.asset" in one.remedy and "agents.active_agents" in one.remedy
    (none,) = findings(tmp_path, [], seat)
    assert none.level == "warn" and none.remedy.startswith("name a source in outside.sources")
    assert findings(tmp_path, ["file"], seat) == []


# --- EDGAR ----------------------------------------------------------------------------------------

CONTACT = {"TORRA_EDGAR_CONTACT": "canary@example.org"}
STOCK = {"EURUSD": {"asset": "stock", "ticker": "AAPL"}}


def of_edgar(home: Path, environment: Mapping[str, str], symbols: Any = STOCK) -> list[Finding]:
    """Return what the check says of a desk that names EDGAR, its fundamental analyst seated."""
    desk_file(home, {"symbol": "EURUSD", "timeframes": ["H1"], "profile": "own"})
    agents = {"active_agents": ["fundamental", *DESK], "include_news": True}
    profile = {"outside": {"sources": ["edgar"]}, "symbols": symbols, "agents": agents}
    profile_file(home, profile, "own")
    return list(outside.outside(Context(home, environment)))


def test_edgar_is_asked_with_a_contact_that_is_not_told(tmp_path: Path) -> None:
    (one,) = of_edgar(tmp_path, CONTACT)
    assert one.level == "ok" and one.detail.endswith(
        "edgar is asked at data.sec.gov, with your contact"
    )
    assert "canary" not in repr(one)
    mirror = {**CONTACT, "TORRA_EDGAR_BASE_URL": "https://mirror.example.com"}
    (other,) = of_edgar(tmp_path, mirror)
    assert "mirror.example.com, a server of yours" in other.detail


def test_edgar_without_a_contact_or_a_company_is_told(tmp_path: Path) -> None:
    (one,) = of_edgar(tmp_path, {})
    assert one.level == "warn" and "not asked" in one.detail
    assert one.remedy.startswith("set TORRA_EDGAR_CONTACT to an e-mail address or a URL")
    nobody, *_ = of_edgar(tmp_path, CONTACT, {"EURUSD": {"asset": "stock"}})
    assert nobody.level == "warn" and "no symbol of it is a company" in nobody.detail
    bad = table.findings(Context(tmp_path, {"TORRA_EDGAR_CONTACT": "canary"}), [OUTSIDE])
    assert [result.level for result in bad] == ["alert"] and "canary" not in repr(bad)


def test_a_companion_without_bars_is_told_with_what_to_do(tmp_path: Path) -> None:
    instance = desks.EUR.model_copy(
        update={"feed": "store", "companions": {"gold": "XAUUSD", "dxy": "USDX"}}
    )
    desk_file(tmp_path, instance.model_dump(mode="json", exclude_defaults=True))
    newest = floor(System().now(), "H1")
    bars = desks.sample().bars("EURUSD", "H1", desks.START, 30)
    moved = bars.set_axis(pd.date_range(end=newest - HOUR, periods=30, freq=HOUR, name="time"))
    with closing(open_home(tmp_path)) as database:
        database.store_bars("XAUUSD", "H1", moved)
        found = [
            one
            for one in stored.streams(Context(tmp_path, {}), database)
            if one.name == "companion"
        ]
    assert [(one.level, one.detail) for one in found] == [
        ("ok", "EURUSD: gold (XAUUSD) H1: fresh bars"),
        ("warn", "EURUSD: dxy (USDX) H1: no bars of it: 0 bars where 1 are needed"),
    ]
    assert found[1].remedy == stored.COMPANION and not found[0].remedy


def test_a_desk_without_companions_is_told_of_none(tmp_path: Path) -> None:
    with closing(open_home(tmp_path)) as database:
        assert not [
            one
            for one in stored.streams(Context(tmp_path, {}), database)
            if one.name == "companion"
        ]
