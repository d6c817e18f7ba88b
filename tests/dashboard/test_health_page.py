"""The page Health: every trouble stands at the top with its remedy, and no key is ever shown."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.doubles import vendor_line
from tests.doubles.page_reader import Page
from tests.doubles.visitors import bearer
from tests.worlds import desks, swarm_ticks
from tests.worlds.desk_pages import PAYING, Pages, open_pages
from tests.worlds.flows import Flowing
from tests.worlds.values import view_value
from torra.clock import iso, parse
from torra.collecting.asking import TopicState
from torra.config import FEEDS, DeskSettings, Profile, validate
from torra.dashboard.screens import health, health_checks, health_outside
from torra.dashboard.screens.health import MARKS
from torra.dashboard.screens.health_checks import START
from torra.dashboard.view import swarm_flags
from torra.dashboard.view.desk_values import Overview
from torra.dashboard.view.health_context import Checkup, HealthContext, checkup
from torra.desk.checks import table
from torra.desk.checks.result import LEVELS, PAUSED, CheckResult, worst
from torra.desk.outlook import ContextFeeds
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import FactRow, SeriesRow
from torra.feeds.companions import CompanionReader
from torra.providers import call_health
from torra.providers.call_health import ModelHealth
from torra.store import ledger as ledger_table
from torra.store import tick_queries
from torra.store import ticks as claim_table
from torra.store.trade import proposals_and_alarms as execution_table

KEY = "sk-ant-fake-0123456789abcdef"
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    found = open_pages(tmp_path_factory.mktemp("health"), (desks.BTC, desks.EUR))
    yield found
    found.desk.close()


@pytest.fixture(scope="module")
def paying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    found = open_pages(
        tmp_path_factory.mktemp("paying"), profile=PAYING, steps=1,
        environment={"ANTHROPIC_API_KEY": KEY},
    )  # fmt: skip
    yield found
    found.desk.close()


def sign(found, group, name):
    (one,) = [item for item in found.json("/api/v1/health")["signs"][group] if item["name"] == name]
    return one


def urgent(found):
    """Return what stands under `Needs a look`, in order."""
    return Page(found.text("/health")).text.partition("Needs a look")[2].partition("Part by")[0]


# --- the page -------------------------------------------------------------------------------------


def test_every_part_of_a_desk_has_a_sign_and_every_trouble_a_remedy(pages: Pages) -> None:
    told = pages.json("/api/v1/health")
    assert [*told["signs"]] == sorted(health_checks.PARTS)
    for name, group in told["signs"].items():
        assert group or name == "lasting", name
        for one in group:
            assert one["level"] in MARKS and one["detail"]
            assert one["remedy"] or one["level"] not in ("alert", "warn"), one


def test_what_is_wrong_stands_on_top_the_worst_first(pages: Pages) -> None:
    real = pages.desk.clock.real_now()
    ledger_table.block_provider(pages.database, "google", "429: <quota>", real + HOUR)
    pages.database.set_trading_state("HALTED", "the disk was full")
    try:
        text = pages.text("/health")
        page = Page(text)
        urgent = page.text.partition("Needs a look")[2].partition("Part by part")[0]
        assert urgent.startswith(" ✕ mend trading") and "torra resume" in urgent
        assert urgent.rindex("✕ mend") < urgent.index("! look")
        assert "429: &lt;quota&gt;" in text
        assert pages.json("/api/v1/health")["status"] == "alert"
    finally:
        ledger_table.clear_blocks(pages.database)
        pages.database.set_trading_state("ACTIVE", "")


def test_a_stale_stream_names_what_to_start(pages: Pages) -> None:
    moment = pages.desk.clock.now()
    try:
        pages.desk.clock.set(moment + timedelta(minutes=23))
        one = sign(pages, "streams", "BTCUSD M15")
        assert one["level"] == "alert" and one["detail"].startswith("stale: the newest tick closed")
        assert one["remedy"] == health_checks.FEEDS["sample"]
        assert "BTCUSD M15" in urgent(pages)
    finally:
        pages.desk.clock.set(moment)


def streamed(row: dict[str, Any], **more: Any) -> list[CheckResult]:
    """Return what is told of an instance with this one stream."""
    instance = {"instance": "X", "streams": [row], **more}
    overview = view_value(Overview, {"instances": [instance]})
    pages: Any = SimpleNamespace(settings=DeskSettings())
    return list(health_checks.streams(HealthContext(pages, NOW, overview)))


QUIET = {"quiet": {"count": 96, "first": "", "last": ""}}


@pytest.mark.parametrize("feed", [None, *FEEDS])
def test_a_stream_without_news_says_why_and_what_to_do(feed: str | None) -> None:
    row = {"timeframe": "M15", "age_seconds": None, "next_in_seconds": 5.0}
    more = {"feed": feed} if feed else {}
    (never,) = streamed({**row, **QUIET}, **more)
    assert never.level == ("note" if feed == "host" else "warn")
    assert never.detail.startswith("no bar yet")
    assert never.remedy == (health_checks.FIRST[feed] if feed else health_checks.WAITS)
    (waits,) = streamed({**row, "bar_age_seconds": 60.0}, **more)
    assert (waits.level, waits.remedy) == ("note", health_checks.WAITS)
    (closed,) = streamed({**row, **QUIET, "age_seconds": 90_000.0}, **more)
    assert closed.level == "note" and "no bars for 96 closes" in closed.detail


def test_what_nobody_can_mend_stands_once_at_the_bottom_and_calls_for_nothing(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = CheckResult("sqlite", "note", "SQLite 3.40.1 has a rare fault", "3.51 ends it")
    monkeypatch.setattr(Checkup, "findings", lambda *_: [old])
    text = pages.text("/health")
    assert text.count("SQLite 3.40.1 has a rare fault") == 1
    assert text.index("Known, and nothing that you must do") > text.index('id="checklist"')
    told = pages.json("/api/v1/health")
    (one,) = told["signs"]["lasting"]
    assert one["name"] == "sqlite"
    assert worst([CheckResult(**{**one, "facts": ()})]) == "note"
    assert not [one for one in told["signs"]["checklist"] if one["name"] == "sqlite"]


def test_the_line_of_a_part_tells_its_worst_signs() -> None:
    levels = {"a": "ok", "b": "warn", "c": "warn", "d": "warn", "e": "note"}
    signs = [CheckResult(name, level, f"{name}!") for name, level in levels.items()]
    assert health.line(signs) == ("warn", "b!; c!; and 1 more")
    assert health.line([]) == ("ok", "nothing to tell")


# --- scheduler ------------------------------------------------------------------------------------


def run(found: Any, locked: bool = True, **changes: Any) -> Any:
    row = {**claim_table.desk_run(found.database), **changes}
    store = SimpleNamespace(row=lambda *_: row, desk_runs=lambda: locked)
    return SimpleNamespace(desk=found.backing.desk, now=found.backing.now, database=store)


def test_whether_a_desk_works(pages: Pages) -> None:
    seen = parse(claim_table.desk_run(pages.database)["seen_at"])

    def told(after: float, locked: bool = True, **changes: Any) -> tuple[str, str, str]:
        moment = seen + timedelta(seconds=after)
        (sign,) = health_checks.desk(HealthContext(run(pages, locked, **changes), moment))
        return sign.level, sign.detail, sign.remedy

    assert told(1.0) == ("ok", f"process {os.getpid()} works, seen 1 s ago", "")
    for after, locked, process, remedy, words in (
        (11.0, True, 77, PAUSED, "the desk of process 77 has shown no life for 11 s"),
        (1.0, False, 77, START, "that of process 77 was killed"),
        (1.0, False, 0, START, "the last one ended"),
    ):
        level, detail, mend = told(after, locked, process=process)
        assert (level, mend) == ("alert", remedy) and words in detail
    nobody: Any = SimpleNamespace(
        database=SimpleNamespace(row=lambda *_: None), desk=pages.desk,
        now=pages.backing.now, settings=pages.backing.settings,
    )  # fmt: skip
    assert next(health_checks.desk(HealthContext(nobody, seen))).level == "warn"
    nobody.settings = SimpleNamespace(instances=())
    found = next(health_checks.desk(HealthContext(nobody, seen)))
    assert (found.level, found.remedy) == ("ok", "") and "other scorers ask" in found.detail


def test_a_clock_that_was_set_back_is_told(pages: Pages) -> None:
    real = pages.desk.clock.real_now()
    far = (real + HOUR).isoformat()
    (clock,) = health_checks.clock(HealthContext(run(pages, seen_at=far), real))
    assert clock.level == "warn"


def test_wakes_are_told_by_a_desk_that_tells_them(pages: Pages) -> None:
    real = pages.desk.clock.real_now()
    behind = run(pages)
    timers = {"BTCUSD": (real + timedelta(seconds=61), real), "EURUSD": (None, None)}
    behind.desk = SimpleNamespace(timers=lambda: timers, active=True, settling=True)
    context = HealthContext(behind, real)
    checks = (health_checks.clock, health_checks.wakes)
    found = {one.name: one for check in checks for one in check(context)}
    assert found["wakes BTCUSD"].detail.startswith("next in 1:01")
    assert (found["wakes EURUSD"].level, found["clock"].level) == ("alert", "warn")


# --- bridges, providers, news ---------------------------------------------------------------------


def test_a_bridge_that_denies_stands_there_with_its_facts(pages: Pages) -> None:
    real = pages.desk.clock.real_now()
    execution_table.note_bridge(pages.database,
        "main", deny="BRIDGE_DEAD", detail="no sign of life for 95 s",
        facts={"account": 7, "ea_version": "1.4", "connected": False, "alarms": {}},
        reconciled_at=real,
    )  # fmt: skip
    one = sign(pages, "bridges", "main")
    assert one["level"] == "alert" and "BRIDGE_DEAD: no sign of life" in one["detail"]
    assert ["connected", "no"] in one["facts"] and ["account", "7"] in one["facts"]
    execution_table.note_bridge(
        pages.database, "main", deny="", detail="", facts={}, reconciled_at=real
    )
    assert sign(pages, "bridges", "main")["level"] == "ok"
    row = pages.database.bridges()[0]
    old = health_checks._bridge(HealthContext(pages.backing, parse(row.at) + 4 * MINUTE), row)
    assert old.level == "warn" and "no desk looks after it" in old.detail
    assert ["Expert Advisor main", "1.4"] not in sign(pages, "versions", "versions")["facts"]


@pytest.mark.parametrize("key", ["", KEY])
def test_a_provider_that_is_used_needs_a_key(paying: Pages, key: str) -> None:
    environment = {"ANTHROPIC_API_KEY": key} if key else {}
    one = health_checks.provider("anthropic", True, None, (), environment)
    assert one.level == ("ok" if key else "alert")
    assert ("ANTHROPIC_API_KEY" in one.remedy) == (not key)
    assert ("key", "set" if key else "not set") in one.facts


def heard(rows: list[tuple[str, float]]) -> tuple[ModelHealth, ...]:
    """Return how the quick model stands after calls of these statuses and milliseconds."""
    calls = [
        {
            "number": number, "at": f"2026-11-21T10:{number:02}:00Z", "provider": "anthropic",
            "model": "claude-haiku-5-5", "status": status, "detail": "", "elapsed_ms": ms,
        }
        for number, (status, ms) in enumerate(rows)
    ]  # fmt: skip
    return call_health.health([vendor_line.agents("anthropic")], lambda _: calls)


def test_a_provider_is_judged_by_its_newest_calls(paying: Pages) -> None:
    rows = [("ok", ms) for ms in (90.0, 110.0, 400.0)]
    good = health_checks.provider("anthropic", True, None, heard(rows), {"ANTHROPIC_API_KEY": KEY})
    assert good.level == "ok"
    assert (
        "claude-haiku-5-5",
        "3 of its newest 3 calls usable, the last at 2026-11-21 10:02 UTC; median 110 ms",
    ) in good.facts
    rows += [("garbage", 100.0)] * 5
    bad = health_checks.provider("anthropic", True, None, heard(rows), {"ANTHROPIC_API_KEY": KEY})
    assert bad.level == "alert" and bad.remedy
    assert "claude-haiku-5-5: 3 of its newest 8 calls usable" in bad.detail


def test_news_are_told_by_the_collector_where_there_is_one(pages: Pages) -> None:
    refused = NewsStatus("refused")
    state = TopicState("finnhub", "crypto", refused, "the key was refused", failures=3, due=30.0)
    collector = SimpleNamespace(status=lambda: (state,))
    outlook = SimpleNamespace(collector=collector)
    desk = SimpleNamespace(roster=SimpleNamespace(outlook=outlook), setups=pages.desk.setups)
    behind: Any = SimpleNamespace(desk=desk, setups=pages.backing.setups)
    _, checks = health_checks.PARTS["news"]
    found = {one.name: one for check in checks for one in check(HealthContext(behind, NOW))}
    assert found["news finnhub crypto"].level == "warn"
    assert found["news"].detail.startswith("no profile reads headlines")
    assert found["calendar"].level == "note"


# --- numbers from beyond the chart ----------------------------------------------------------------


def beyond(found: Any) -> dict[str, Any]:
    return {one["name"]: one for one in found.json("/api/v1/health")["signs"]["beyond"]}


def known(name: str, ago: timedelta, moment: datetime, source: str = "mine.csv") -> SeriesRow:
    """Return a value of a series that was known at once."""
    return SeriesRow(name, moment - ago, moment - ago, 4.25, source)


@pytest.fixture
def knowing(tmp_path: Path) -> Iterator[Pages]:
    """Yield a desk whose EURUSD knew yields and no positions from some tick on."""
    home = tmp_path / "knowing"
    found = open_pages(home, (desks.BTC, desks.EUR))
    outlook = ContextFeeds(home, found.database, {}, [Profile()], now=found.desk.clock.now)
    for name, setup in found.desk.setups.items():
        reads = outlook.outside(setup.instance, setup.profile)
        found.desk.setups[name] = replace(setup, outside=reads)
    now = found.desk.clock.now()
    rows = [known(name, 2 * DAY, now) for name in ("DGS2", "DGS10", "yield_2y.EUR")]
    found.database.store_series(rows, now)
    for _ in range(8):
        desks.step(found.desk)
    yield found
    found.desk.close()


def test_companions_tell_their_newest_bar_or_why_there_is_none(tmp_path: Path) -> None:
    symbols = {"euro": "EURUSD", "dxy": "USDX"}
    own = desks.BTC.model_copy(update={"companions": symbols})
    found = open_pages(tmp_path, (own,), profile={"outside": {"sources": []}}, steps=0)
    told = beyond(found)
    assert told["BTCUSD euro"]["level"] == "note"
    assert told["BTCUSD euro"]["detail"] == "EURUSD: not read yet since this desk started"
    with closing(CompanionReader(own, desks.sample(), wait=20.0)) as reader:
        for name, setup in found.desk.setups.items():
            found.desk.roster.setups = {name: replace(setup, companions=reader)}
        for _ in range(4):
            moment = desks.step(found.desk)
        told = beyond(found)
    closed = iso(moment).replace("T", " ").replace(":00Z", " UTC")
    assert told["BTCUSD euro"]["level"] == "ok"
    assert f"H1 newest bar closed {closed}" in told["BTCUSD euro"]["detail"]
    assert (
        told["BTCUSD dxy"]["level"] == "warn" and "docs/outside.md" in told["BTCUSD dxy"]["remedy"]
    )
    assert (
        "USDX: M15 no bars of it: the sample has no bars of USDX M15"
        in (told["BTCUSD dxy"]["detail"])
    )
    found.desk.close()


def test_each_series_tells_value_age_release_and_source(knowing: Pages) -> None:
    told = beyond(knowing)
    one = told["2-year yield of EUR"]
    assert one["level"] == "ok"
    assert one["detail"].startswith("4.25 % of 20") and "known since 20" in one["detail"]
    assert "from your file mine.csv; 2 d" in one["detail"]
    assert not [name for name in told if name.startswith("positions")]


def test_how_often_the_newest_ticks_knew_each_block(knowing: Pages) -> None:
    told = beyond(knowing)
    ticks = knowing.database.ticks("EURUSD", "H1", 200)
    read = [knowing.database.tick_without_calls(tick["torra_key"]) for tick in ticks]
    late = len([one for one in read if one and one["outside"]])
    assert 0 < late < len(ticks)
    assert told["EURUSD ticks"]["detail"] == (
        f"known in the last {len(ticks)} ticks: economy in {late}, positions in none"
    )
    assert told["EURUSD ticks"]["level"] == "ok"
    assert told["BTCUSD ticks"]["level"] == "note"


@pytest.mark.journey
def test_an_old_series_wants_a_look_with_the_remedy_of_its_source(knowing: Pages) -> None:
    now = knowing.desk.clock.now()
    parts = [f"cot.eur.{part}" for part in ("long", "short", "open_interest")]
    old = [known(name, 30 * DAY, now, "cftc") for name in parts]
    later = [known("DGS10", -DAY, now)]
    knowing.database.store_series([*old, *later, known("fear_greed", 40 * DAY, now)], now)
    told = beyond(knowing)
    one = told["positions of leveraged funds in the euro"]
    assert one["level"] == "warn" and one["detail"].endswith("30 d 0 h old, too old to count")
    assert one["remedy"] == health_outside.OLD_NUMBER and "from the CFTC" in one["detail"]
    assert told["fear and greed index"]["remedy"].endswith("torra data import FILE")
    # what comes to be known tomorrow is not told today
    assert (
        told["10-year US yield"]["level"] == "ok" and "; 2 d" in told["10-year US yield"]["detail"]
    )


APPLE = {
    "outside": {"sources": ["edgar"]},
    "symbols": {"EURUSD": {"asset": "stock", "ticker": "AAPL"}},
}


def asking(pages: Pages, profile: dict[str, Any], **feeds: Any) -> Any:
    """Return what stands behind the pages of a desk of EURUSD that asks these feeds."""
    setup = SimpleNamespace(instance=desks.EUR, profile=validate(Profile, profile, "a test"))
    roster = SimpleNamespace(outlook=SimpleNamespace(**feeds))
    desk = SimpleNamespace(roster=roster, setups={"EURUSD": setup})
    setups = [(setup.instance, setup.profile)]
    database, now = pages.database, pages.backing.now
    return SimpleNamespace(desk=desk, setups=setups, database=database, now=now)


def outside_signs(behind: Any) -> dict[str, CheckResult]:
    return {one.name: one for one in health_outside.numbers(HealthContext(behind, NOW))}


@pytest.mark.parametrize(
    ("status", "level", "said"),
    [
        ("available", "ok", "answers"),
        ("unreachable", "warn", "not reached: no answer"),
        ("not_yet", "note", "not answered yet: no answer"),
    ],
)
def test_a_publisher_tells_how_it_answers(pages: Pages, status: str, level: str, said: str) -> None:
    state = TopicState("fred", "DGS2", NewsStatus(status), "no answer", None, 7, 1, due=90.0)
    collector = SimpleNamespace(
        status=lambda: (state,),
        trouble=lambda _: "" if status == "available" else status,
        status_of=lambda name: status if name == "DGS2" else "off",
    )
    behind = asking(pages, {"outside": {"sources": ["fred", "cftc"]}}, series=collector)
    found = outside_signs(behind)
    assert found["FRED"].level == level and found["FRED"].detail == said
    assert found["FRED"].remedy or level != "warn"
    assert "7 values, 1 dropped, next in 1 min" in dict(found["FRED"].facts)["DGS2"]
    assert found["CFTC"].level == "note" and "no symbol here" in found["CFTC"].detail
    assert found["2-year US yield"].detail == "nothing is stored yet"
    behind.desk.roster = None
    elsewhere = outside_signs(behind)
    assert elsewhere["FRED"].level == elsewhere["CFTC"].level == "unknown"


def test_edgar_tells_why_it_is_not_asked_and_what_is_stored_of_a_company(pages: Pages) -> None:
    missing = "TORRA_EDGAR_CONTACT is not set"
    state = TopicState("edgar", "tickers", NewsStatus("no_key"), missing, due=90.0)
    filings = SimpleNamespace(status=lambda: (state,), trouble=lambda _: "no_key")
    behind = asking(pages, APPLE, series=None, filings=filings)
    first = outside_signs(behind)
    assert first["EDGAR"].level == "warn" and first["EDGAR"].facts == ()
    assert first["EDGAR"].detail == "no key: TORRA_EDGAR_CONTACT is not set"
    ends = datetime(2023, 9, 30, tzinfo=UTC)
    known = datetime(2023, 11, 3, 2, 8, 27, tzinfo=UTC)
    source = "edgar 10-K 0000320193-23-000106"
    row = FactRow("AAPL", "assets", ends, ends, known, 1.0, "USD", source)
    pages.database.store_facts([row, row._replace(ticker="MSFT")], known)
    found = outside_signs(behind)
    assert found["AAPL figures"].detail == (
        "1 value of 1 figure, for periods to 2023-09-30, the newest known since "
        "2023-11-03 02:08 UTC"
    )
    assert "MSFT figures" not in found


def test_of_a_company_s_figures_edgar_tells_in_one_line(pages: Pages) -> None:
    asked = datetime(2026, 2, 13, 12, tzinfo=UTC)
    states = [
        TopicState("edgar", topic, NewsStatus(status), "", asked, items, 1, due=due)
        for topic, status, items, due in (
            ("AAPL assets", "available", 40, 90.0), ("AAPL revenue", "broken", 0, 60.0),
            ("AAPL filings", "available", 0, 3600.0), ("AAPL cash", "empty", 2, 90.0),
            ("tickers", "available", 0, 9000.0),
        )
    ]  # fmt: skip
    filings = SimpleNamespace(status=lambda: states, trouble=lambda _: "")
    behind = asking(pages, APPLE, series=None, filings=filings)
    found = outside_signs(behind)["EDGAR"]
    facts = dict(found.facts)
    assert [*facts] == ["AAPL filings", "tickers", "AAPL figures"] and found.level == "ok"
    assert facts["AAPL figures"] == (
        "cannot be read, asked 2026-02-13 12:00 UTC, 42 values, 3 dropped, next in 1 min"
    )


@pytest.mark.journey
@pytest.mark.parametrize("status", ["", "no_file", "broken", "stale"])
def test_each_stream_tells_its_order_flow_or_why_there_is_none(tmp_path: Path, status: str) -> None:
    found = open_pages(tmp_path, (desks.BTC,), steps=0)
    for name, setup in found.desk.setups.items():
        found.desk.setups[name] = replace(setup, feed=Flowing(status))
    for _ in range(8):
        desks.step(found.desk)
    told = beyond(found)
    names = {f"BTCUSD {timeframe} order flow" for timeframe in desks.BTC.timeframes}
    assert names <= set(told)
    levels = {told[name]["level"] for name in names}
    details = [told[name]["detail"] for name in names]
    if not status:
        assert levels <= {"ok", "note"} and all(
            "counted by the Expert Advisor" in d for d in details
        )
        assert "order flow in" in told["BTCUSD ticks"]["detail"]
    else:
        assert levels == {"note" if status == "no_file" else "warn"}
        assert all(
            one.startswith("none is stored yet; the newest tick had none") for one in details
        )
        assert all(told[name]["remedy"] for name in names)
    found.desk.close()


# --- database, access, checklist ------------------------------------------------------------------


@pytest.mark.journey
@pytest.mark.parametrize(
    ("case", "level", "says"),
    [
        ("decided", "ok", "of the newest 2 ticks of experts: no flag; the risk officer had no"),
        ("thin", "warn", "ticks of experts: fewer than two experts spoke in 2; the risk officer"),
        ("disputed", "ok", "the reader names another regime than the code in 2"),
    ],
)
def test_a_swarm_tells_what_its_newest_ticks_flagged(
    tmp_path: Path, case: str, level: str, says: str
) -> None:
    found = swarm_ticks.lived(tmp_path, swarm_ticks.SCRIPTS[case])
    told = sign(found, "trading", "BTCUSD swarm")
    assert told["level"] == level and says in told["detail"], told
    assert "VIX" in told["detail"] and "macro.vix_rank" not in told["detail"]
    assert told["remedy"]
    found.desk.close()


def test_flags_of_a_swarm_are_counted_by_ticks_and_judged_by_their_share() -> None:
    ticks = [["thin_swarm", "silent:macro.vix_rank"], ["invented", "invented"], [], ["other"]]
    found = swarm_flags.counted(ticks)
    assert found._asdict() == {
        "ticks": 4,
        "flags": {"thin_swarm": 1, "invented": 1},
        "silent": {"macro.vix_rank": 1},
    }
    assert not found.grave(0.5) and found.grave(0.25)
    assert not swarm_flags.counted([]).grave(0.5)
    assert not swarm_flags.counted([["regime_disputed"]] * 9).grave(0.5), "that is its office"


def test_a_damaged_debate_fails_no_row_of_a_swarm(tmp_path: Path) -> None:
    found = swarm_ticks.lived(tmp_path)
    connection = found.database.connection().conn
    for damage in ("'no JSON'", "'[1]'", """'{"flags": 3, "reports": [4, {"flags": {}}]}'"""):
        with found.database.transaction():
            connection.execute(f"UPDATE sentiment SET agent_deliberation = {damage}")
        assert isinstance(tick_queries.debate_flags(found.database, "BTCUSD", ("M15",), 5), list)
    found.desk.close()


def test_the_database_is_read_through_on_demand(pages: Pages) -> None:
    assert sign(pages, "database", "sound")["level"] == "unknown"
    asked = pages.client().post("/api/v1/health/check", json={}, headers=bearer("approve"))
    assert (asked.status_code, asked.json["status"]) == (202, "accepted")
    assert checkup(pages.backing).wait(10)
    assert pages.json("/api/v1/health")["check"]["answer"] == "ok"
    assert sign(pages, "database", "sound")["level"] == "ok"
    refused = pages.client().post("/api/v1/health/check", json={}, headers=bearer("read"))
    assert refused.status_code == 403


def test_a_check_under_way_is_not_begun_twice_and_damage_is_told(tmp_path: Path) -> None:
    waited, one = threading.Event(), Checkup()
    held: Any = SimpleNamespace(
        database=SimpleNamespace(value=lambda *_: waited.wait(5) and "row 3 is broken"),
        desk=SimpleNamespace(clock=SimpleNamespace(real_now=lambda: parse("2026-11-21T10:00:00Z"))),
    )
    assert one.start(held) and not one.start(held)
    context = HealthContext(held, NOW, memory=one)
    (running,) = health_checks.sound(context)
    assert (one.database_check().state, running.level) == ("running", "note")
    waited.set()
    assert one.wait(5)
    (told,) = health_checks.sound(context)
    assert told.level == "alert" and "row 3 is broken" in told.detail and "backup" in told.remedy


@pytest.mark.skipif(os.name != "posix", reason="file modes are of POSIX")
def test_tokens_that_others_can_read_are_told(pages: Pages) -> None:
    path = pages.backing.home / "access.json"
    path.write_text("{}", encoding="utf-8")
    try:
        path.chmod(0o644)
        assert sign(pages, "access", "tokens")["level"] == "alert"
        path.chmod(0o600)
        assert sign(pages, "access", "tokens")["level"] == "ok"
    finally:
        path.unlink()
    (reach,) = health_checks.reach(HealthContext(pages.backing, NOW, remote=True))
    assert reach.level == "warn"


def test_the_checklist_is_what_doctor_finds_without_the_database(pages: Pages) -> None:
    glance = [(item.name, item.level) for item in table.quick(pages.backing.home, {})]
    whole = [(item.name, item.level) for item in table.doctor(pages.backing.home)]
    assert whole[: len(glance)] == glance
    assert whole[len(glance)] == ("database", "ok")
    told = sign(pages, "checklist", "python")
    assert told["level"] in ("ok", "warn")


def test_the_checklist_is_looked_at_once_a_minute(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    place = "torra.desk.checks.table.quick"
    monkeypatch.setattr(place, lambda *_: looks.append(1) or [])
    memory, now = type(checkup(pages.backing))(), parse("2026-11-21T10:00:00Z")
    for seconds in (0, 1, 59, 60, 61):
        memory.findings(pages.backing, now + timedelta(seconds=seconds))
    assert len(looks) == 2


def test_levels_and_marks_agree() -> None:
    assert tuple(MARKS) == LEVELS
