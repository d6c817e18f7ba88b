"""Whatever comes after a tick changes nothing that it said: bars, spreads, news, fundamentals.

A world is a history of bars and a database of headlines and figures, those of the future among
them, read as a desk reads them: HistoryWindow, Collector.latest, feature_bundle, and a full desk of
the rules provider. A case cuts it at a random close, replaces everything after the cut by noise and
asks again: every feature, the scores, the regime, every prompt and every report at the cut and
before it must be the same, bit for bit. Leaks that are planted here must be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import news_collector
from agent_framework import deliberate
from agents.contracts import EVENT_CLASSES
from agents.debate.deliberation import Deliberation
from agents.features import ids_of
from ath_calculator import Records
from instance_database import Database
from news_collector import Collector
from technical_calculator import WARM_UP
from tests.doubles.scripted import context, settings
from tests.evidence.test_feature_bundle import MEMORY, bundle
from tests.scores.test_causality import early_swings
from tests.worlds.desks import open_database
from tests.worlds.price_series import sample, walk
from torra.clock import iso
from torra.config import NewsSettings
from torra.evidence.feature_bundle import Bundle
from torra.evidence.news_digest import NewsItem, NewsStatus, NewsSubject, view
from torra.evidence.scheduled_events import ScheduledEvent, around
from torra.market import structure as market_structure
from torra.market.bar_view import BarView
from torra.providers.rules.provider import RulesProvider
from torra.store.news import NewsStore
from torra.tick.bar_window import HistoryWindow

QUARTER = timedelta(minutes=15)
SUBJECT = NewsSubject("ACME", asset="stock", ticker="ACME", currencies=("USD",), terms=("acme",))
SETTINGS = NewsSettings(max_age_hours=24.0, half_life_hours=6.0, max_items=5)
FULL = settings(mode="full", include_news=True)
WORDS = (
    *("profit", "rises", "falls", "outlook", "cut", "record", "lawsuit", "supply", "deal", "bank"),
    *("shares", "growth", "warning", "upgrade", "tariff", "mine", "strike", "quarter", "forecast"),
)
ITEMS_A_BAR = 0.35
"""Headlines for a bar: some thirty are younger than a day."""

Texts = dict[str, str]
"""Everything that a tick came to, by part, as text that is equal only bit for bit."""


SILENT: Any = SimpleNamespace(
    spacing=1.0,
    topics=lambda subject: (f"company.{subject.ticker}",),
    every=lambda _: 60.0,
)
"""A vendor that is never asked."""


@dataclass(frozen=True)
class World:
    """Bars, and the store of what was said meanwhile."""

    bars: pd.DataFrame
    database: Database

    def closes(self, at: int) -> datetime:
        moment: datetime = self.bars.index[at].to_pydatetime() + QUARTER
        return moment


def headline(chance: np.random.Generator, number: str, first_seen: datetime) -> NewsItem:
    """Return a headline about the company; one in four says that it is some hours older."""
    age = timedelta(seconds=float(chance.choice([30.0, 30.0, 30.0, chance.uniform(3e3, 4e4)])))
    words = chance.choice(WORDS, int(chance.integers(3, 9)))
    return NewsItem(
        id=number,
        source="finnhub",
        topic="finnhub:company.ACME",
        headline=" ".join(["Acme", *words]),
        published=first_seen - age,
        first_seen=first_seen,
        score=round(float(chance.uniform(-1, 1)), 8),
        event=str(chance.choice(EVENT_CLASSES)),
        tickers=("ACME",),
    )


def figures(chance: np.random.Generator) -> dict[str, float]:
    names = chance.choice(
        [name.partition(".")[2] for name in ids_of("fundamentals")[1:]], 3, replace=False
    )
    return {str(name): round(float(chance.uniform(-50, 50)), 4) for name in names}


def moments(
    chance: np.random.Generator, start: datetime, end: datetime, count: int
) -> list[datetime]:
    """Return whole seconds in (start, end], a quarter of them just after a bar's close."""
    seconds = chance.integers(1, int((end - start).total_seconds()) + 1, count)
    grid = chance.random(count) < 0.25
    seconds = np.where(grid, seconds // 900 * 900 + chance.integers(1, 3, count), seconds)
    return [start + timedelta(seconds=int(second)) for second in seconds]


def tell(world: World, chance: np.random.Generator, start: int, end: int, name: str) -> None:
    """Store headlines and figures first seen after bar `start` closed, up to the close of `end`."""
    first, last = world.closes(start), world.closes(end)
    count = int(ITEMS_A_BAR * (end - start)) + 2
    seen = moments(chance, first, last, count)
    seen[0] = first + timedelta(seconds=1)
    made = [headline(chance, f"{name}{number}", at) for number, at in enumerate(seen)]
    world.database.store_news(made)
    for at in moments(chance, first, last, 1 + (end - start) // 60):
        world.database.store_fundamentals(SUBJECT.ticker, figures(chance), at)


def with_spreads(bars: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the bars with the spread that a broker may have had; one in forty is not known."""
    chance = np.random.default_rng(seed)
    spreads = np.round(bars["close"].to_numpy() * chance.uniform(1e-5, 1e-3, len(bars)), 2)
    return bars.assign(spread=np.where(chance.random(len(bars)) > 0.025, spreads, np.nan))


SERIES: dict[str, Callable[[], pd.DataFrame]] = {
    "BTCUSD_M15": lambda: with_spreads(sample("BTCUSD_M15").iloc[4000:4700], 3),
    "walk": lambda: with_spreads(walk(700, 31, flat=(400, 425)), 4),
}


@pytest.fixture(scope="module", params=list(SERIES))
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("world")
    made = World(SERIES[request.param](), open_database(folder))
    tell(made, np.random.default_rng(1), 0, len(made.bars) - 1, "true")
    yield made
    made.database.close()


one_world = pytest.mark.parametrize("world", ["BTCUSD_M15"], indirect=True)


# --- what a tick says -----------------------------------------------------------------------------


def ask(world: World, window: HistoryWindow, at: int) -> Texts:
    """Return what the full desk says at the close of bar `at`."""
    as_of = world.closes(at)
    bars = window.bars("M15", as_of)
    collector = Collector(
        {"finnhub": SILENT},
        {},
        world.database,
        now=lambda: as_of,
        monotonic=lambda: 0.0,
        score=lambda _: 0.0,
    )
    news = collector.latest(SUBJECT, as_of, SETTINGS)
    assert news.status in (NewsStatus.AVAILABLE, NewsStatus.NOT_YET), news
    calendar = [
        ScheduledEvent(world.closes(0) + n * 90 * QUARTER, "USD", "high", "x") for n in range(8)
    ]
    evidence = bundle(
        window.l1_row("M15", as_of, bars),
        symbol=SUBJECT.symbol,
        bar_time=as_of - QUARTER,
        as_of=as_of,
        spread=0.0,
        digits=2,
        bars=bars,
        news=news,
        events=around(calendar, SUBJECT.currencies, as_of),
        spreads=window.spreads(bars),
    )
    return texts(evidence, debate(evidence, as_of), window.records("M15", as_of))


def debate(evidence: Bundle, as_of: datetime) -> Deliberation:
    about = context(
        symbol=evidence.symbol,
        timeframe=evidence.timeframe,
        bar_time=iso(as_of - QUARTER),
        as_of=iso(as_of),
        scores=evidence.scores,
        notes=evidence.notes,
        memory=MEMORY,
        asset="stock",
    )
    about = replace(about, features=evidence.features)
    return deliberate(about, FULL, RulesProvider().submit, monotonic=lambda: 0.0, deadline=60.0)


def texts(evidence: Bundle, spoken: Deliberation, records: Records) -> Texts:
    assert not spoken.failures
    assert len(spoken.reports) == 8
    calls = [(c.role_id, c.round, c.attempt, c.system, c.user, c.reply) for c in spoken.calls]
    return {
        "features": repr(dict(evidence.features)),
        "scores": repr((evidence.scores, evidence.notes, records)),
        "regime": repr(evidence.regime),
        "spoken": repr(replace(spoken, calls=(), stages=())),
        "prompts": repr(calls),
    }


# --- cases ----------------------------------------------------------------------------------------


def noised(bars: pd.DataFrame, cut: int, chance: np.random.Generator) -> pd.DataFrame:
    """Return the bars with noise after the cut; one time in eight there is nothing after it."""
    if chance.random() < 0.125:
        return bars.iloc[: cut + 1]
    noise = walk(len(bars), int(chance.integers(1 << 30))) * float(chance.choice([0.01, 1, 50]))
    noise = with_spreads(noise, int(chance.integers(1 << 30)))
    changed = bars.copy()
    changed.iloc[cut + 1 :] = noise.iloc[cut + 1 :].to_numpy()
    return changed


class Undone(Exception):
    """Takes the noise back."""


@contextmanager
def another_future(world: World, cut: int, chance: np.random.Generator) -> Iterator[World]:
    """The world with noise for everything after a cut; what was first seen before is seen again."""
    after = iso(world.closes(cut))
    database = world.database
    try:
        with database.transaction():
            again = database.news(since=world.closes(0), as_of=world.closes(cut))[-3:]
            for table in ("news", "fundamentals"):
                database.connection().conn.execute(
                    f"DELETE FROM {table} WHERE first_seen > ?",
                    [after],
                )
            other = World(noised(world.bars, cut, chance), database)
            if cut + 1 < len(world.bars) - 1:
                tell(World(world.bars, database), chance, cut, len(world.bars) - 1, "noise")
            later = world.closes(cut) + timedelta(seconds=1)
            database.store_news(
                replace(item, headline="Acme is no more", score=-1.0, first_seen=later)
                for item in again
            )
            yield other
            raise Undone  # noqa: TRY301 - so the transaction takes it back
    except Undone:
        return


def violations(world: World, cases: int, seed: int) -> Iterator[tuple[int, int, str]]:
    """Yield (cut, bar, what) where something at or before a cut changed with what comes after."""
    window = HistoryWindow({"M15": world.bars})
    for case in range(cases):
        chance = np.random.default_rng([seed, case])
        cut = int(chance.integers(WARM_UP, len(world.bars) - 1))
        asked = {cut, max(WARM_UP, cut - int(chance.integers(0, 40)))}
        before = {at: ask(world, window, at) for at in asked}
        with another_future(world, cut, chance) as other:
            changed = HistoryWindow({"M15": other.bars})
            now = {at: ask(other, changed, at) for at in asked}
        for at in asked:
            yield from (
                (cut, at, name) for name, text in before[at].items() if now[at][name] != text
            )


@pytest.mark.journey
def test_whatever_comes_later_changes_nothing(world: World, scaled: Callable[..., int]) -> None:
    assert list(violations(world, scaled(1000, 16) // len(SERIES), 7)) == []


@one_world
def test_the_cases_see_news_fundamentals_and_all_eight_agents(world: World) -> None:
    """Else nothing could leak."""
    window = HistoryWindow({"M15": world.bars})
    ticks = [ask(world, window, at) for at in (300, 450, 600)]
    assert len({tick["features"] for tick in ticks}) == 3
    for tick in ticks:
        assert "id='news.item.5', value='Acme" in tick["features"]
        assert "id='fundamentals.available', value=1.0" in tick["features"]
        assert "id='sentiment.up_bars', value=0." in tick["features"]
        assert "id='spread.percentile', value=None" not in tick["features"]
        assert "abstained=True" not in tick["spoken"]


@one_world
def test_the_noise_is_seen_after_the_cut(world: World) -> None:
    """The other side: the futures differ, in bars, news and figures, one bar after the cut."""
    chance = np.random.default_rng(5)
    window = HistoryWindow({"M15": world.bars})
    was = ask(world, window, 420)
    with another_future(world, 400, chance) as other:
        frame = other.bars.reindex(world.bars.index).fillna(world.bars * 1.5)
        now = ask(replace(other, bars=frame), HistoryWindow({"M15": frame}), 420)
    assert all(now[name] != was[name] for name in ("features", "scores", "spoken"))
    assert ask(world, window, 420) == was


# --- planted leaks --------------------------------------------------------------------------------


def unfiltered(self: NewsStore, *, since: datetime, as_of: datetime) -> list[NewsItem]:
    return stored_news(self, since=since, as_of=as_of + timedelta(days=365))


stored_news, stored_figures, store_news = (
    NewsStore.news,
    NewsStore.fundamentals,
    NewsStore.store_news,
)
honest_view, l1_row = view, HistoryWindow.l1_row


def by_published(items: Any, subject: NewsSubject, *, as_of: datetime, **more: Any) -> Any:
    """A view that goes by what items say of themselves."""
    claimed = [replace(item, first_seen=min(item.first_seen, item.published)) for item in items]
    return honest_view(claimed, subject, as_of=as_of, **more)


def keeps(items: Any, subject: NewsSubject, *, as_of: datetime, **more: Any) -> Any:
    """A view that keeps later headlines."""
    later = as_of + timedelta(days=2)
    return honest_view(items, subject, as_of=later, **{**more, "max_age_hours": 96.0})


def newest(self: NewsStore, ticker: str, *, as_of: datetime) -> dict[str, float]:
    return stored_figures(self, ticker, as_of=as_of + timedelta(days=365))


def overwrite(self: Database, items: Any) -> int:
    """A store that overwrites what it has would change the past."""
    some = list(items)
    with self.transaction():
        for item in some:
            self.connection().conn.execute(
                "UPDATE news SET headline = ?, score = ? WHERE id = ?",
                [item.headline, item.score, item.id],
            )
        return store_news(self, some)


def next_row(self: HistoryWindow, timeframe: str, as_of: datetime, bars: Any) -> Any:
    here = l1_row(self, timeframe, as_of, bars)
    try:
        return {**here, "adx14": l1_row(self, timeframe, as_of + QUARTER, bars)["adx14"]}
    except Exception:  # noqa: BLE001 - the last bar has no next one
        return here


@one_world
@pytest.mark.parametrize(
    ("leaks", "changed"),
    [
        pytest.param(
            [(market_structure, "swings", early_swings)], {"features"}, marks=pytest.mark.journey
        ),
        (
            [(NewsStore, "news", unfiltered), (news_collector, "view", by_published)],
            {"features", "spoken", "prompts"},
        ),
        ([(NewsStore, "fundamentals", newest)], {"features", "prompts"}),
        ([(NewsStore, "store_news", overwrite)], {"features"}),
        (
            [(BarView, "spreads", property(lambda view: view._shelf.spreads))],
            {"features", "prompts"},
        ),
        ([(HistoryWindow, "l1_row", next_row)], {"regime"}),
    ],
    ids=["swings", "published", "figures", "overwrites", "spreads", "regime"],
)
def test_a_leak_is_found(
    world: World,
    leaks: list[tuple[Any, str, Any]],
    changed: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for place, name, leak in leaks:
        monkeypatch.setattr(place, name, leak)
    missing = set(changed)
    for *_, name in violations(world, 60, 11):
        missing.discard(name)
        if not missing:
            return
    raise AssertionError(missing)


@one_world
def test_a_view_that_keeps_later_headlines_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NewsStore, "news", unfiltered)
    assert list(violations(world, 2, 12)) == []  # the view filters too
    monkeypatch.setattr(news_collector, "view", keeps)
    with pytest.raises(ValueError, match="was first seen at"):
        list(violations(world, 1, 13))
