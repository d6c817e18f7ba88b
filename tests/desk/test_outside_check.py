"""`torra doctor` on numbers from beyond the chart: who is asked where, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd
import pytest

from instance_database import open_home
from tests.worlds import desks
from tests.worlds.homes import desk_file, profile_file
from torra.clock import System, floor
from torra.desk.checks import stored, table
from torra.desk.checks.result import CheckResult, Context

OUTSIDE: Final = next(check for check in table.CHECKS if check.name == "outside")
HOUR: Final = timedelta(hours=1)
DESK = ["technical", "bull_researcher", "bear_researcher", "risk_gate"]
CONTACT = {"TORRA_EDGAR_CONTACT": "canary@example.org"}
APPLE = {"EURUSD": {"asset": "stock", "ticker": "AAPL"}}
UNREAD = ("warn", "no seated analyst reads", "agents.active_agents")
ABSTAINS = "will abstain, for it reads nothing of "


class Case(NamedTuple):
    """A desk of one symbol, and the findings of the check: level, detail and remedy in part."""

    sources: list[str] | None
    analyst: str
    findings: Sequence[tuple[str, str, str]]
    environment: Mapping[str, str] = {}
    symbol: str = "EURUSD"
    symbols: Mapping[str, Any] = {}


CASES = {
    "no-section": Case(None, "", ()),
    "a-file": Case(["file"], "", ()),
    "nobody": Case([], "", ()),
    "fred": Case(["fred"], "fundamental", [("ok", "fred is asked at fred.stlouisfed.org", "")]),
    "cftc": Case(["cftc"], "sentiment", [("ok", "cftc is asked at publicreporting.cftc.gov", "")]),
    "fred-unread": Case(["fred"], "", [("ok", "fred is asked", ""), UNREAD]),
    "cftc-unread": Case(["cftc"], "", [("ok", "cftc is asked", ""), UNREAD]),
    "a-mirror": Case(
        ["fred"], "fundamental", [("ok", "mirror.example.com, a server of yours", "")],
        {"TORRA_FRED_BASE_URL": "https://mirror.example.com/graph"},
    ),
    "no-address": Case(
        ["fred"], "fundamental", [("alert", "TORRA_FRED_BASE_URL", "mend")],
        {"TORRA_FRED_BASE_URL": "ftp://x"},
    ),
    "no-symbol-reads-it": Case(
        ["fred"], "sentiment", [("warn", "no symbol of it reads", "outside.sources")],
        symbol="BTCUSD",
    ),
    "read-by-bitcoin": Case(["cftc"], "sentiment", [("ok", "cftc", "")], symbol="BTCUSD"),
    "nothing-to-read": Case(
        ["file"], "fundamental", [("warn", f"{ABSTAINS}BTCUSD", "symbols.*.asset")],
        symbol="BTCUSD",
    ),
    "no-source": Case(
        [], "fundamental", [("warn", ABSTAINS, "name a source in outside.sources")]
    ),
    "a-file-to-read": Case(["file"], "fundamental", ()),
    "edgar": Case(
        ["edgar"], "fundamental",
        [("ok", "edgar is asked at data.sec.gov, with your contact", "")], CONTACT, symbols=APPLE,
    ),
    "edgar-mirror": Case(
        ["edgar"], "fundamental", [("ok", "mirror.example.com, a server of yours", "")],
        {**CONTACT, "TORRA_EDGAR_BASE_URL": "https://mirror.example.com"}, symbols=APPLE,
    ),
    "no-contact": Case(
        ["edgar"], "fundamental",
        [("warn", "not asked", "set TORRA_EDGAR_CONTACT to an e-mail address or a URL")],
        symbols=APPLE,
    ),
    "no-company": Case(
        ["edgar"], "fundamental", [("warn", "no symbol of it is a company", "symbols.*.ticker")],
        CONTACT, symbols={"EURUSD": {"asset": "stock"}},
    ),
    "an-odd-contact": Case(
        ["edgar"], "fundamental", [("alert", "TORRA_EDGAR_CONTACT", "mend")],
        {"TORRA_EDGAR_CONTACT": "canary"}, symbols=APPLE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_who_is_asked_and_read_is_told_with_what_to_do(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    timeframe = "H1" if case.symbol == "EURUSD" else "M15"
    desk_file(tmp_path, {"symbol": case.symbol, "timeframes": [timeframe], "profile": "own"})
    news = bool(case.symbols)
    agents = {"active_agents": [*filter(None, [case.analyst]), *DESK], "include_news": news}
    profile: dict[str, Any] = {"agents": agents, "symbols": dict(case.symbols)}
    if case.sources is not None:
        profile["outside"] = {"sources": case.sources}
    profile_file(tmp_path, profile, "own")
    findings = table.findings(Context(tmp_path, case.environment), [OUTSIDE])
    assert OUTSIDE.quick and "canary" not in repr(findings)
    assert [finding.level for finding in findings] == [row[0] for row in case.findings]
    for finding, (_, detail, remedy) in zip(findings, case.findings, strict=True):
        assert finding.name == "outside" and detail in finding.detail and remedy in finding.remedy


def companions(home: Path) -> list[CheckResult]:
    with closing(open_home(home)) as database:
        findings = stored.streams(Context(home, {}), database)
        return [finding for finding in findings if finding.name == "companion"]


def test_a_companion_without_bars_is_told_with_what_to_do(tmp_path: Path) -> None:
    assert companions(tmp_path) == [], "a desk without companions"
    instance = desks.EUR.model_copy(
        update={"feed": "store", "companions": {"gold": "XAUUSD", "dxy": "USDX"}}
    )
    desk_file(tmp_path, instance.model_dump(mode="json", exclude_defaults=True))
    newest = floor(System().now(), "H1")
    bars = desks.sample().bars("EURUSD", "H1", desks.START, 30)
    moved = bars.set_axis(pd.date_range(end=newest - HOUR, periods=30, freq=HOUR, name="time"))
    with closing(open_home(tmp_path)) as database:
        database.store_bars("XAUUSD", "H1", moved)
    assert companions(tmp_path) == [
        CheckResult("companion", "ok", "EURUSD: gold (XAUUSD) H1: fresh bars"),
        CheckResult(
            "companion",
            "warn",
            "EURUSD: dxy (USDX) H1: no bars of it: 0 bars where 1 are needed",
            stored.COMPANION,
        ),
    ]
