"""A replay reads the calendar and the headlines of its profile, or says what nobody knows now."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import technical_calculator
from instance_database import open_home
from tests.worlds import company_reports, desks, outside_series
from tests.worlds.price_series import sample
from tests.worlds.tables_once import tables_once
from torra.clock import iso
from torra.commands.command_line import main
from torra.config import ROOT, Instance, Profile, validate
from torra.errors import ConfigError
from torra.evidence.news_digest import NewsItem, NewsStatus
from torra.evidence.outside_numbers import SeriesRow
from torra.replay import folders
from torra.replay.outlook_then import NOTHING, SHIFT, PointInTimeData, read_outlook
from torra.replay.shards.history import History, spread_digest

BEGIN = desks.START
END = BEGIN + timedelta(days=2)
BARS = [str(ROOT / "sample_data" / f"BTCUSD_{name}.csv") for name in ("M15", "H1")]


def a_profile(**changes: Any) -> Profile:
    return validate(Profile, changes, "a test")


def every_half_hour(home: Path) -> None:
    moments = [BEGIN - timedelta(days=1) + timedelta(minutes=30 * number) for number in range(200)]
    rows = [f"{iso(moment)},USD,high,event" for moment in moments]
    (home / "events.csv").write_text("\n".join(["time,currency,impact,name", *rows]))


def replayed(home: Path, settings: dict[str, Any], *words: str) -> Result:
    (home / "ev.json").write_text(json.dumps(settings))
    bars = [part for file in BARS for part in ("--bars", file)]
    period = ("--from", iso(BEGIN), "--to", iso(BEGIN + timedelta(hours=6)))
    told = ["replay", "BTCUSD", *bars, *period, "--profile", str(home / "ev.json"), *words]
    return CliRunner().invoke(main, ["--home", str(home), *told], catch_exceptions=False)


def headline(number: int, topic: str = "finnhub:crypto") -> NewsItem:
    seen = BEGIN + timedelta(hours=number)
    return NewsItem(str(number), "a source", topic, f"Bitcoin rises, {number}", seen, seen)


def keep(home: Path, *items: NewsItem) -> None:
    database = open_home(home)
    with database.transaction():
        database.store_news(items)
    database.close()


# --- the calendar ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of two replays: `free` of any calendar, and `held` by an event every half hour."""
    home = tmp_path_factory.mktemp("both")
    every_half_hour(home)
    free = {"thresholds": {"buy": 0.05, "sell": 0.05}}
    held = free | {"events": {"calendar": "events.csv"}}
    with tables_once(technical_calculator):
        for name, settings in (("free", free), ("held", held)):
            told = replayed(home, settings, "--arms", "l1,budget", "--name", name)
            assert told.exit_code == 0, told.output
    return home


def test_no_arm_of_a_replay_opens_inside_the_window_of_an_event(both: Path) -> None:
    """With an event every half hour every moment is inside one."""
    arms = {}
    for name in ("free", "held"):
        plan = folders.made_of(both, name)
        arms[name] = [folders.seen_of(both, plan, arm) for arm in ("l1", "budget")]
    assert all(arm.trades for arm in arms["free"])
    for arm in arms["held"]:
        assert not arm.trades and all(tick.rule_veto for tick in arm.ticks)
        assert "GATE_VETO" in {tick.reason for tick in arm.ticks}


@pytest.mark.journey
def test_a_recomposition_heeds_the_calendar_of_its_replay(both: Path) -> None:
    words = ("--home", str(both), "ablate", "held", "--arm", "budget", "--json")
    told = CliRunner().invoke(main, words, catch_exceptions=False)
    assert told.exit_code == 0, told.output
    arms = next(table for table in json.loads(told.stdout)["tables"] if table["name"] == "arms")
    trades = arms["columns"].index("trades") if "trades" in arms["columns"] else 2
    assert {row[0]: row[trades] for row in arms["rows"]} == dict.fromkeys(
        ("l1", "budget", "recomposed"), 0
    )


def calendar(home: Path, *rows: str) -> PointInTimeData:
    (home / "events.csv").write_text("\n".join(["time,currency,impact,name", *rows]))
    profile = a_profile(events={"calendar": "events.csv"})
    return read_outlook(home, desks.BTC, profile, BEGIN, END)


def test_events_of_other_days_make_no_other_replay(tmp_path: Path) -> None:
    own = f"{iso(BEGIN + timedelta(hours=5))},USD,high,rates"
    before = "2019-03-01T10:00:00Z,USD,high,old"
    later = "2026-03-01T10:00:00Z,USD,high,new", "2027-03-01T10:00:00Z,USD,high,newer"
    ended, goes_on = calendar(tmp_path, own), calendar(tmp_path, own, later[0])
    assert calendar(tmp_path, before, own) == ended != goes_on
    assert calendar(tmp_path, before, own, *later) == goes_on
    profile = a_profile(events={"calendar": "events.csv"})
    seen = {}
    for name, outlook in (("ended", ended), ("goes on", goes_on)):
        events = outlook.events_of(desks.BTC, profile)
        assert events is not None
        seen[name] = events(END, END)
    assert [one.status for one in seen.values()] == ["ended", "available"]
    assert seen["ended"].events == seen["goes on"].events


def test_figures_that_came_later_make_no_other_replay(tmp_path: Path) -> None:
    keep(tmp_path, headline(3))
    stock = Profile().symbol("BTCUSD").model_dump() | {"ticker": "AAPL"}
    profile = a_profile(
        agents={"include_news": True},
        news={"sources": ["finnhub"]},
        symbols={"BTCUSD": stock},
    )
    digests = []
    for hours in (5, 100):
        database = open_home(tmp_path)
        with database.transaction():
            database.store_fundamentals("AAPL", {"beta": hours}, BEGIN + timedelta(hours=hours))
        database.close()
        outlook = read_outlook(tmp_path, desks.BTC, profile, BEGIN, END)
        digests.append(outlook.digest)
        assert [one.values["beta"] for one in outlook.figures] == [5]
    assert digests[0] == digests[1]


def test_a_calendar_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("when,what\n2021-11-10T10:00:00Z,x\n")
    told = replayed(tmp_path, {"events": {"calendar": "events.csv"}})
    assert told.exit_code == 2
    assert "write time,currency,impact,name" in told.stderr
    assert not (tmp_path / "replays").exists()


# --- headlines ------------------------------------------------------------------------------------


def with_news(*sources: str, **more: Any) -> Profile:
    return a_profile(agents={"include_news": True}, news={"sources": list(sources), **more})


def test_a_file_that_a_tick_refuses_a_replay_refuses_too(tmp_path: Path) -> None:
    early = {"published": iso(BEGIN), "first_seen": iso(BEGIN - timedelta(hours=1))}
    (tmp_path / "news.jsonl").write_text(json.dumps({"headline": "Bitcoin rises", **early}))
    with pytest.raises(ConfigError, match="first_seen"):
        read_outlook(tmp_path, desks.BTC, with_news("file", file="news.jsonl"), BEGIN, END)


def test_of_a_file_only_the_days_of_the_replay_are_kept(tmp_path: Path) -> None:
    """So a file that grows makes no other replay of what is past; an empty one is no fault."""
    file, profile = tmp_path / "news.jsonl", with_news("file", file="news.jsonl")
    file.write_text("")
    assert read_outlook(tmp_path, desks.BTC, profile, BEGIN, END).filed == ()

    def told(*hours: int) -> PointInTimeData:
        rows = [
            {"headline": f"Bitcoin rises, {hour}", "published": iso(BEGIN + timedelta(hours=hour))}
            for hour in hours
        ]
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return read_outlook(tmp_path, desks.BTC, profile, BEGIN, END)

    short, long = told(-300, -20, 3, 48), told(-300, -20, 3, 48, 49, 400)
    assert [item.headline[-3:].strip(" ,") for item in short.filed or ()] == ["-20", "3", "48"]
    assert long == short and long.digest == short.digest


def test_what_a_vendor_said_then_is_what_the_desk_stored(tmp_path: Path) -> None:
    keep(tmp_path, headline(-300), headline(3), headline(9), headline(60), headline(4, "other:x"))
    profile = with_news("finnhub")
    outlook = read_outlook(tmp_path, desks.BTC, profile, BEGIN, END)
    assert [item.id for item in outlook.stored or ()] == ["3", "4", "9"], "not before, not after"
    news = outlook.news_of(desks.BTC, profile)
    assert news is not None
    seen = [news(BEGIN + timedelta(hours=number)) for number in (2, 3, 8, 9)]
    assert [one.unique for one in seen] == [0, 1, 1, 2], "each from the moment of its first sight"
    assert [one.status for one in seen[:2]] == [NewsStatus.EMPTY, NewsStatus.AVAILABLE]


@pytest.mark.parametrize("there", [False, True], ids=["no desk", "another vendor's"])
def test_a_vendor_of_whom_nothing_is_stored_is_refused(tmp_path: Path, there: bool) -> None:
    if there:
        keep(tmp_path, headline(3, "alpha_vantage:x"))
    with pytest.raises(ConfigError, match=r"finnhub said .*include_news false"):
        read_outlook(tmp_path, desks.BTC, with_news("finnhub"), BEGIN, END)
    assert there or not (tmp_path / "torra.db").exists(), "looking makes no database"


def test_who_wants_neither_gets_nothing(tmp_path: Path) -> None:
    assert read_outlook(tmp_path, desks.BTC, a_profile(), BEGIN, END) == NOTHING
    assert (NOTHING.digest, NOTHING.news_of(desks.BTC, a_profile())) == ("", None)
    assert NOTHING.events_of(desks.BTC, a_profile()) is None


def test_it_goes_through_json_and_its_digest_tells_it_apart(tmp_path: Path) -> None:
    every_half_hour(tmp_path)
    keep(tmp_path, headline(3), headline(9))
    profile = a_profile(
        agents={"include_news": True},
        news={"sources": ["finnhub"]},
        events={"calendar": "events.csv"},
    )
    outlook = read_outlook(tmp_path, desks.BTC, profile, BEGIN, END)
    again = PointInTimeData.of(json.loads(json.dumps(outlook.as_json())))
    assert again == outlook and again.digest == outlook.digest != ""
    others = [
        dataclasses.replace(outlook, events=(outlook.events or ())[1:]),
        dataclasses.replace(outlook, stored=(outlook.stored or ())[1:]),
    ]
    assert len({outlook.digest, *(one.digest for one in others)}) == 3


def test_screenshots_of_then_are_refused_where_somebody_pays_for_them(tmp_path: Path) -> None:
    agents = {"provider": "anthropic", "picture": "file", "picture_file": "x.png"}
    told = replayed(tmp_path, {"agents": agents}, "--max-cost", "1")
    assert told.exit_code == 2
    assert "nobody has screenshots of then" in told.stderr


# --- outside numbers ------------------------------------------------------------------------------


def of_yields(days_before: int) -> PointInTimeData:
    """Return a replay from desks.START on with yields that begin so many days before."""
    begin = desks.START.replace(hour=0, minute=0) - timedelta(days=days_before)
    rows = outside_series.rows(["DGS2"], begin, days_before + 30)
    return PointInTimeData(series=tuple(outside_series.stored(rows)), begin=desks.START)


def test_older_series_keep_their_weekday_and_their_values() -> None:
    found = of_yields(400)
    older = found.with_older_series()
    for one, other in zip(found.series, older.series, strict=True):
        assert other.row.at - one.row.at == other.row.known_at - one.row.known_at == SHIFT
        assert other.row.at.weekday() == one.row.at.weekday()
        assert other.row.value == one.row.value


def of_a_company(first: datetime) -> PointInTimeData:
    """Return a replay from desks.START on with a company whose reports begin at a moment."""
    rows = [
        row for row in company_reports.reports(company_reports.grown(1)) if row.known_at >= first
    ]
    return PointInTimeData(facts=tuple(company_reports.stored(rows)), begin=desks.START)


@pytest.mark.parametrize(
    ("found", "names"),
    [
        (of_yields(SHIFT.days - 5), ("DGS2",)),
        (of_yields(SHIFT.days + 10), ()),
        (of_a_company(desks.START - SHIFT + timedelta(days=100)), ("ACME",)),
        (of_a_company(desks.START - SHIFT - timedelta(days=200)), ()),
    ],
    ids=["series short", "series", "reports short", "reports"],
)
def test_what_is_shorter_than_the_shift_is_left_out_of_the_placebo(
    found: PointInTimeData, names: tuple[str, ...]
) -> None:
    assert found.short_series == names
    older = found.with_older_series()
    assert bool(older.series or older.facts) != bool(names)
    assert PointInTimeData.of(json.loads(json.dumps(found.as_json()))) == found
    assert found.digest != PointInTimeData(begin=desks.START).digest


@pytest.mark.journey
def test_older_reports_are_the_company_as_it_was_then() -> None:
    found = of_a_company(desks.START - timedelta(days=600))
    for one, other in zip(found.facts, found.with_older_series().facts, strict=True):
        assert other.row.value == one.row.value
        for name in ("begins", "ends", "known_at"):
            assert getattr(other.row, name) - getattr(one.row, name) == SHIFT


def test_other_spreads_are_another_replay() -> None:
    frame = sample("EURUSD_H1").iloc[:300]
    plain = History("EURUSD", {"H1": frame}, {})
    narrow, wide = (
        History("EURUSD", {"H1": frame.assign(spread=spread)}, {}) for spread in (1e-5, 2e-5)
    )
    assert plain.digest == narrow.digest == wide.digest
    assert spread_digest(plain) == ""
    assert len({spread_digest(one) for one in (plain, narrow, wide)}) == 3


# --- numbers from beside the chart ----------------------------------------------------------------


@pytest.mark.parametrize("asset", ["", "gold", "index", "oil", "fx", "crypto", "stock"])
def test_where_nothing_is_stored_every_close_sees_what_a_shelf_would_show(asset: str) -> None:
    """It is worked out once: a replay beside a series that nobody reads asks the shelf each time.

    Own closes, which gold and stocks read, do not change that.
    """
    terms = {
        "asset": asset, "digits": 2, "tick_size": 0.01, "tick_value": 0.01, "spread": 0.1,
        "contract_size": 1.0, "lot_min": 0.01, "lot_step": 0.01, "lot_max": 100.0,
        **({"ticker": "EXMPL"} if asset == "stock" else {}),
    }  # fmt: skip
    profile = a_profile(symbols={"SYM": terms})
    instance = Instance(symbol="SYM", timeframes=("H1",))
    nobodys = SeriesRow("nobodys", BEGIN, BEGIN, 1.0, "file")
    beside = PointInTimeData(series=tuple(outside_series.stored([nobodys])))
    once, each = (one.outside_of(instance, profile) for one in (PointInTimeData(), beside))
    assert once is not None and each is not None
    days = [(BEGIN + timedelta(days=number)).date() for number in range(900)]
    closes = [(day, 100.0 + day.day) for day in days]
    for later in (timedelta(0), timedelta(hours=7), timedelta(days=800)):
        as_of = BEGIN + later
        shown = [one(as_of, lambda _: closes) for one in (once, each)]
        assert shown[0] == shown[1]
        assert list(shown[0].numbers) == list(shown[1].numbers)
