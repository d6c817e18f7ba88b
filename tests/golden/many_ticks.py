"""Blocks of ticks: a desk of one mode lives through some closes of the sample, from some moment on.

Mode, evidence and settings follow from the number of the block. The evidence is the bars alone, the
demo's invention, or stored series, reports, headlines, events, companion and order flow. The rules
answer, on the caller's thread or behind a line; in one world a script does.
"""

from __future__ import annotations

import json
import random
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pandas as pd

from agent_config import MODES
from tests.doubles.scripted import Distant, Scripted
from tests.golden import bytes_debates
from tests.golden.frozen import frozen
from tests.worlds import company_reports, desks, flows, outside_series
from torra.clock import Simulated, iso
from torra.config import ROOT, Instance, Profile, validate
from torra.desk.outlook import ContextFeeds
from torra.desk.roster import InstanceRuntime
from torra.desk.schedule import Desk
from torra.evidence.companion_readings import CompanionBars, CompanionsThen
from torra.evidence.flow_readings import FlowThen
from torra.feeds.sample import SampleFeed
from torra.market.bar_view import BarView
from torra.providers.rules.provider import RulesProvider

CLOSES: Final = 34
"""Quarters of an hour of a block: 34 ticks of M15, 8 or 9 of each stream of H1."""

WORLDS: Final = ("bars", "invented", "stored", "threads", "script")
FIRST: Final = datetime.fromisoformat("2021-11-01T00:00:00+00:00")
DAYS: Final = 50
"""Days after FIRST in which a block may begin."""

CHOICES: Final[Mapping[str, tuple[Any, ...]]] = {
    "debate_rounds": (1, 1, 2, 3),
    "rebuttal": ("auto", "always", "never"),
    "second_look": ("auto", "always", "never"),
    "influence": ("full", "full", "full", "shadow"),
    "call_policy": ("always", "always", "pivotal"),
    "pivotal_sample": (0.05, 0.5),
    "gate_call": ("always", "openings"),
    "judge_hold": ("size", "veto"),
    "judge_close": ("off", "propose"),
    "trust": ("prior", "flat"),
    "standing": ("off", "on"),
    "quorum": (0, 2, 3),
    "none_cost": (0.3, 0.5),
    "include_markov_context": (True, True, False),
    "include_sentiment_history": (True, True, False),
    "history_lookback": (10, 3),
    "memory": ({"use": "auto"}, {"use": "on"}, {"use": "on", "notes": 1}),
}
TRADES: Final[Mapping[str, tuple[Any, ...]]] = {
    "execution": ("auto", "auto", "approve"),
    "on_opposite": ("close", "reverse", "hold"),
    "record_score": ("both", "high"),
}
LEVELS: Final = (0.02, 0.05, 0.1, 0.2, 0.35)

HEADLINES: Final = "headlines.jsonl"
CALENDAR: Final = "events.csv"
STORED: Final[Mapping[str, Any]] = {
    "news": {"sources": ["file"], "file": HEADLINES, "max_age_hours": 48},
    "events": {"calendar": CALENDAR},
}
STOCK: Final = {"asset": "stock", "ticker": "ACME", "currencies": ["USD"]}
SERIES: Final = (
    *("DGS2", "DGS10", "yield_2y.EUR", "DTWEXBGS", "VIXCLS", "NASDAQCOM", "fear_greed"),
    *("derivs.funding.BTCUSD", "cot.eur.long", "cot.eur.short", "cot.eur.open_interest"),
    *("cot.btc.long", "cot.btc.short", "cot.btc.open_interest"),
)

BITCOIN: Final = Instance(symbol="BTCUSD", timeframes=("M15", "H1"), companions={"euro": "EURUSD"})
CASES: Final = ("varied", "vetoed", "silent", "refused")
"""Scripts in which nobody is asked twice: threads would decide whom the request cap still lets."""

COLUMNS: Final = {"versions", "profile"}
"""What a record says of the program and not of the tick."""

QUERIES: Final[Mapping[str, str]] = {
    "signals": "select * from signals order by seq",
    "events": "select * from signal_events order by id",
    "lessons": "select * from lesson_facts order by number",
    "uses": "select * from lesson_uses order by number",
    "vetoed": "select * from vetoed_openings order by sid",
}


class Feed(SampleFeed):
    """The sample with order flow of the last 60 bars."""

    def flow(self, symbol: str, timeframe: str, times: Any) -> FlowThen:
        """Return the order flow of bars."""
        return flows.Flowing().flow(symbol, timeframe, times)


class Companion:
    """The companions of a tick, read as it asks for them: no thread may be late."""

    def __init__(self, feed: Any, symbols: Mapping[str, str]) -> None:
        self._feed = feed
        self._symbols = symbols

    def begin(self, timeframe: str, as_of: datetime) -> None:
        """Nothing is read before it is asked for."""

    def known(self, timeframe: str, as_of: datetime, bars: BarView) -> Any:
        """Return what is known of them."""
        held = {}
        for name, symbol in self._symbols.items():
            view = BarView.of(self._bars(symbol, timeframe, as_of))
            held[name, timeframe] = CompanionBars(symbol, view.times, view.numbers[:, 3])
        return CompanionsThen(self._symbols, held).known(timeframe, as_of, bars)

    def close(self) -> None:
        """Nothing is open."""

    def _bars(self, symbol: str, timeframe: str, as_of: datetime) -> pd.DataFrame:
        hours = self._feed.bars(symbol, "H1", as_of, 400)
        if timeframe == "H1":
            return hours
        fresh = as_of - hours.index[-1] < timedelta(hours=3)
        end = as_of - desks.QUARTER if fresh else hours.index[-1]
        return hours.reindex(pd.date_range(hours.index[0], end, freq="15min"), method="ffill")


def block(number: int) -> Iterator[Any]:
    """Yield the ticks of a block, each with its row, its record and its calls; then its tables."""
    chance = random.Random(f"ticks {number}")
    mode = list(MODES)[number % len(MODES)]
    world = WORLDS[number // len(MODES) % len(WORLDS)]
    begin = FIRST + timedelta(hours=chance.randrange(24 * DAYS), minutes=15 * chance.randrange(4))
    profile = _profile(chance, mode, world)
    with tempfile.TemporaryDirectory() as folder, frozen():
        home = Path(folder)
        desk = _desk(home, world, profile, begin, chance)
        desks.open_for_work(desk)
        desks.step(desk, CLOSES)
        desk.close()
        yield from _artefacts(home, f"{mode} {world} {iso(begin)}")


def _profile(chance: random.Random, mode: str, world: str) -> Profile:
    agents = {name: chance.choice(values) for name, values in CHOICES.items()}
    trades = {name: chance.choice(values) for name, values in TRADES.items()}
    level = chance.choice(LEVELS)
    stored = world in ("stored", "threads")
    if world == "script":
        agents["second_look"] = "never"
    return validate(
        Profile,
        {
            **trades,
            **(STORED if stored else {}),
            "thresholds": {"buy": level, "sell": level},
            "risk": {"capital": 1e6, "exposure_cap_pct": 90.0, "max_signals_per_hour": 30},
            "agents": {**agents, "mode": mode, "include_news": stored},
            **({"symbols": {"EURUSD": STOCK}} if stored and chance.random() < 0.5 else {}),
        },
        "a block",
    )


def _desk(home: Path, world: str, profile: Profile, begin: datetime, chance: random.Random) -> Desk:
    feed = (Feed if world in ("stored", "threads") else SampleFeed)(
        ROOT / "sample_data", invents=world == "invented"
    )
    provider: Any = Distant() if world == "threads" else RulesProvider()
    if world == "script":
        provider = Scripted(bytes_debates.script(profile.agents.mode, chance.choice(CASES)))
    desk = desks.open_desk(
        home,
        (BITCOIN, desks.EUR),
        profile=profile,
        provider=provider,
        feed=feed,
        make_clock=lambda stood: Simulated(stood or begin),
    )
    if world in ("stored", "threads"):
        _know(home, desk, profile, begin)
    for name in desk.setups:
        desk.database.apply_profile(name, profile.model_dump_json(), profile.digest())
    return desk


def _know(home: Path, desk: Desk, profile: Profile, begin: datetime) -> None:
    """Store and write what a desk knows beside its bars, and let its instances read it."""
    day = begin.replace(hour=0, minute=0)
    before = begin - timedelta(days=1)
    desk.database.store_series(outside_series.rows(SERIES, day - timedelta(days=400), 420), before)
    later = begin + timedelta(hours=2) - company_reports.known(38)
    reports = company_reports.moved(company_reports.reports(company_reports.grown(1)), later)
    desk.database.store_facts([row._replace(source="made.csv") for row in reports], before)
    (home / HEADLINES).write_text("".join(_headlines(begin)), encoding="utf-8")
    (home / CALENDAR).write_text("".join(_events(begin)), encoding="utf-8")
    outlook = ContextFeeds(home, desk.database, {}, [profile], now=desk.clock.now)
    desk.roster.setups = {
        name: replace(
            setup,
            news=outlook.news(setup.instance, profile),
            events=outlook.events(setup.instance, profile),
            outside=outlook.outside(setup.instance, profile),
            companions=_companion(setup),
        )
        for name, setup in desk.setups.items()
    }


def _companion(setup: InstanceRuntime) -> Any:
    symbols = dict(setup.instance.companions)
    return Companion(setup.feed, symbols) if symbols else None


def _headlines(begin: datetime) -> Iterator[str]:
    moods = ("surges on record inflows", "slides on a regulator's warning", "trades sideways")
    for hour in range(-40, 10, 2):
        time = begin + timedelta(hours=hour, minutes=3)
        who = ("Bitcoin", "The euro", "Acme Corp (ACME)")[hour // 2 % 3]
        line = {"headline": f"{who} {moods[hour // 6 % 3]}, hour {hour}", "published": iso(time)}
        yield json.dumps(line) + "\n"


def _events(begin: datetime) -> Iterator[str]:
    yield "time,currency,impact,name\n"
    for hour in range(-4, 14, 5):
        yield f"{iso(begin + timedelta(hours=hour, minutes=30))},USD,high,Invented release\n"


def _artefacts(home: Path, title: str) -> Iterator[Any]:
    with closing(sqlite3.connect(home / "torra.db")) as database:
        database.row_factory = sqlite3.Row
        calls: dict[str, list[Any]] = {}
        asked = "select calls.*, text as system from calls join instructions on hash = instructions"
        for row in _rows(database, f"{asked} order by torra_key, calls.rowid"):
            calls.setdefault(row.pop("torra_key"), []).append(row)
        records = {
            row["torra_key"]: {
                name: value for name, value in row["record"].items() if name not in COLUMNS
            }
            for row in _rows(database, "select * from journal")
        }
        yield title
        for row in _rows(database, "select * from sentiment order by id"):
            key = row["torra_key"]
            yield {"sentiment": row, "record": records[key], "calls": calls.get(key, [])}
        for name, query in QUERIES.items():
            yield {name: list(_rows(database, query))}


def _rows(database: sqlite3.Connection, query: str) -> Iterable[dict[str, Any]]:
    for row in database.execute(query):
        yield {name: _read(row[name]) for name in row.keys()}  # noqa: SIM118 - a Row has values


def _read(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value.startswith(("{", "[")) else value
