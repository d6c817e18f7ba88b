"""What concerns a symbol, what is said twice, what it weighs; nothing later than as_of counts."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.contracts import EVENT_CLASSES
from tests.cases import cases
from tests.conftest import Scale
from torra.evidence import news_digest
from torra.evidence.news_digest import (
    COUNTED,
    TERMS,
    NewsItem,
    NewsStatus,
    NewsSubject,
    NewsView,
    concerns,
    counting,
    event_class,
    unique,
    view,
)

NOON = datetime(2026, 2, 13, 12, tzinfo=UTC)
GOLD = NewsSubject("XAUUSD", "gold", currencies=("USD",))
EURUSD = NewsSubject("EURUSD", "fx", currencies=("EUR", "USD"))
APPLE = NewsSubject("AAPL", "stock", ticker="AAPL")


def item(headline: str, hours: float = 1.0, **changes: object) -> NewsItem:
    """An item of so many hours before noon, seen when it was published."""
    moment = NOON - timedelta(hours=hours)
    made = NewsItem(f"id of {headline} {hours}", "t", "finnhub:forex", headline, moment, moment)
    return replace(made, **changes)  # type: ignore[arg-type]


def seen(items: list[NewsItem], subject: NewsSubject = GOLD, **how: object) -> NewsView:
    settings_: dict[str, object] = {
        "as_of": NOON, "status": NewsStatus.AVAILABLE, "max_age_hours": 24.0,
        "half_life_hours": 6.0, "max_items": 12, **how,
    }  # fmt: skip
    return view(items, subject, **settings_)  # type: ignore[arg-type]


def headlines(found: NewsView) -> list[str]:
    return [one.item.headline for one in found.items]


@cases(
    ("subject", "about", "not_about"),
    [
        (GOLD, "GOLD steady before data", "Golden years of a goldfish"),
        (GOLD, "Safe-haven demand grows", "A safe house for havens"),
        (EURUSD, "EUR/USD at parity", "Europe votes"),
        (EURUSD, "ECB holds", "Bank of Japan holds"),
        (NewsSubject("BTCUSD", "crypto"), "Bitcoin halves", "A bit of coin"),
        (NewsSubject("US500", "index"), "S&P 500 closes", "A sp 500 thing"),
        (NewsSubject("WTI", "oil"), "OPEC+ meets", "Turmoil at the spa"),
        (NewsSubject("X", terms=("rate  cut",)), "A rate-cut is near", "crates cut down"),
        (NewsSubject("X", terms=("a.b",)), "an A.B case", "an aXb case"),
    ],
)
def test_a_headline_concerns_a_symbol_by_its_words(
    subject: NewsSubject, about: str, not_about: str
) -> None:
    assert concerns(item(about), subject)
    assert concerns(item("Something", summary=about), subject)
    assert not concerns(item(not_about), subject)


def test_a_company_is_known_by_its_ticker_or_by_having_been_asked_about() -> None:
    assert concerns(item("x", topic="finnhub:company.AAPL"), APPLE)
    assert concerns(item("x", tickers=("aapl",)), APPLE)
    assert concerns(item("x", tickers=("CRYPTO:BTC",)), NewsSubject("BTCUSD", "crypto"))
    for other in (
        item("AAPL in the headline alone", tickers=("MSFT",)),
        item("x", topic="finnhub:company.AAPLE"),
    ):
        assert not concerns(other, APPLE)
    assert not concerns(item("x", topic="finnhub:company."), NewsSubject("S", "stock"))
    # Terms of a profile take the place of ours.
    assert not concerns(item("Gold up"), replace(GOLD, terms=("palladium",)))


def test_what_is_seen_later_or_too_old_does_not_count() -> None:
    rows = [
        item("gold one", 1),
        item("gold two", 24),
        item("gold three", 24.01),
        item("gold four", 1, first_seen=NOON),
        item("gold five", 1, first_seen=NOON + timedelta(seconds=1)),
        item("gold six", -0.05, first_seen=NOON),
    ]
    found = seen(rows)
    assert set(headlines(found)) == {"gold one", "gold two", "gold four", "gold six"}
    assert found.items[0].age_hours == 0.0 and found.items[0].weight == 1.0


def test_of_many_headlines_those_published_last_count() -> None:
    rows = [
        item(f"gold n{n}", n / 100, first_seen=NOON - timedelta(hours=n % 7))
        for n in range(COUNTED + 50)
    ]
    rows += [item(f"wheat n{n}", 0) for n in range(COUNTED)]
    found = seen(rows[::-1])
    assert found.unique == sum(row.first_seen <= NOON for row in rows[:COUNTED])
    assert max(one.age_hours for one in found.items) < COUNTED / 100
    kept = counting(rows, GOLD, as_of=NOON, max_age_hours=24)
    assert sorted(kept, key=lambda one: one.id) == sorted(rows[:COUNTED], key=lambda one: one.id)


def test_a_story_that_many_tell_counts_once() -> None:
    told = [item("Gold climbs to a record", n, id=str(n), score=0.9) for n in range(1, 6)]
    found = seen([*told, item("Gold miners strike", 2.0, id="6", score=-0.9)])
    assert found.unique == 2 and found.events["other"][0] == 2


@given(
    st.lists(
        st.tuples(st.floats(0, 24), st.floats(-1, 1), st.sampled_from(EVENT_CLASSES)), max_size=12
    ),
    st.floats(0.01, 720),
)
def test_the_arithmetic_of_a_view(rows: list[tuple[float, float, str]], half_life: float) -> None:
    made = [
        item(f"gold n{n}", age, id=str(n), score=score, event=event)
        for n, (age, score, event) in enumerate(rows)
    ]
    found = seen(made, half_life_hours=half_life, max_items=5)
    assert found.unique == len(made) and len(found.items) == min(5, len(made))
    weights = [one.weight for one in found.items]
    assert weights == sorted(weights, reverse=True) and all(0 < w <= 1 for w in weights)

    def mean(some: list[NewsItem]) -> Any:
        ages = [(NOON - one.published) / timedelta(hours=1) for one in some]
        parts = [0.5 ** (age / half_life) for age in ages]
        total = math.fsum(w * one.score for w, one in zip(parts, some, strict=True))
        return pytest.approx(total / max(1.0, math.fsum(parts)), abs=1e-7) if some else None

    assert found.score == mean(made)
    by_class = {name: [one for one in made if one.event == name] for name in EVENT_CLASSES}
    assert found.events == {
        name: (len(some), mean(some)) for name, some in by_class.items() if some
    }


def plainly_unique(rows: list[NewsItem]) -> list[NewsItem]:
    """The rule as it reads: compare with everything that was kept before."""
    kept: list[tuple[NewsItem, set[str]]] = []
    for row in sorted(rows, key=lambda one: (one.first_seen, one.published, one.id)):
        mine = {*re.findall(r"\w+", row.headline.casefold())}
        if not any(
            len(mine & other) / len(mine | other) >= 0.8 and not {"1", "2"} & (mine ^ other)
            for _, other in kept
        ):
            kept.append((row, mine))
    return [row for row, _ in kept]


def test_unique_agrees_with_the_definition(scaled: Scale) -> None:
    """Whatever is written in capitals or with other marks, and whatever one word is changed."""
    chance = random.Random(7)
    words = ["gold", "dollar", "rises", "falls", "fed", "after", "data", "today", "1", "2"]
    for _ in range(scaled(2000, 60)):
        some = words + [f"w{chr(97 + n)}" for n in range(chance.choice((0, 4, 12)))]
        rows = [
            item(" ".join(chance.sample(some, chance.randint(1, len(some)))), chance.randint(0, 9))
            for _ in range(40)
        ]
        variants = [
            item(headline, chance.randint(0, 9))
            for words_of in (row.headline.split() for row in rows)
            for headline in (
                " ".join([*words_of[1:], chance.choice(some)]),
                f"{' - '.join(words_of).upper()}!",
            )
        ]
        found = {row.id: row for row in rows + variants}
        assert unique(found.values()) == plainly_unique(list(found.values()))
        # Whatever the order in which they are handed in.
        assert seen([*found.values()]) == seen([*found.values()][::-1])


def test_few_headlines_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work, not time: words come as often as in language, and each is compared with a few."""
    chance = random.Random(3)
    letters = str.maketrans("0123456789", "abcdefghij")
    words = [f"w{n}".translate(letters) for n in range(3000)]
    often = [1 / (n + 1) for n in range(len(words))]
    near = Mock(side_effect=news_digest._near)
    monkeypatch.setattr(news_digest, "_near", near)
    rows = [item(" ".join(chance.choices(words, often, k=9)), n, id=str(n)) for n in range(2000)]
    assert len(unique(rows)) > 1900
    assert near.call_count < 20 * len(rows), "every pair would be 1000 a headline"
    near.reset_mock()
    assert len(unique([item("Gold is up again", n, id=str(n)) for n in range(500)])) == 1
    assert near.call_count < 1000


def test_the_classes_are_those_of_the_contract() -> None:
    assert {*TERMS["event"], "other"} == set(EVENT_CLASSES)
    for name, words in TERMS["event"].items():
        assert event_class(words[0]) == name
    # Most words win, and they are whole words.
    assert event_class("Fed lifts interest rates after attack") == "macro"
    assert event_class("Prefederal sectarian warden") == event_class("") == "other"
