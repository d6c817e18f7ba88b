"""Stores headlines and fundamentals as they were first seen. A part of instance_database.Database.

A row is written once and never changed: an item that is seen again keeps the moment of its first
sight. Times are whole seconds; the collector rounds a first sight up, so rounding never makes
anything known earlier than it was. Texts are strangers' words: pages escape them, prompts fence
them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from torra.clock import parse
from torra.evidence.news_digest import READ_ITEMS, NewsItem
from torra.store.connection import Store, to_json

SECOND: Final = timedelta(seconds=1)
PLAIN: Final = ("id", "source", "topic", "headline", "summary", "url", "score", "event")
"""Columns that are fields of an item as they stand."""


class NewsStore(Store):
    """The tables news and fundamentals."""

    def store_news(self, items: Iterable[NewsItem]) -> int:
        """Store the items that are not known yet; return how many those were."""
        with self.transaction():
            return sum(
                self.change(
                    "INSERT INTO news (id, source, topic, headline, summary, url, tickers, "
                    "published, first_seen, score, event, at) "
                    # An item that is seen again keeps the moment of its first sight.
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                    item.id, item.source, item.topic, item.headline, item.summary, item.url,
                    to_json(list(item.tickers)), item.published, item.first_seen,
                    item.score, item.event, self.moment(),
                )
                for item in items
            )  # fmt: skip

    def news(
        self, *, since: datetime, as_of: datetime, limit: int | None = READ_ITEMS
    ) -> list[NewsItem]:
        """Return what was first seen after `since` and up to `as_of`, oldest first.

        Of more than `limit` those that were seen last; None: all.
        """
        rows = self.rows(
            "SELECT * FROM news WHERE first_seen > ? AND first_seen <= ? "
            "ORDER BY first_seen DESC, id DESC LIMIT ?",
            since, as_of, -1 if limit is None else limit,
        )  # fmt: skip
        return [_item(row) for row in reversed(rows)]

    def store_fundamentals(
        self, ticker: str, figures: Mapping[str, float], first_seen: datetime, part: str = ""
    ) -> bool:
        """Store a company's figures if they differ from the last ones; return whether they did.

        They are those of a part: of names with `part` before the first dot, "" for names without a
        dot. What is known of other parts stays. Two parts of one second count one after the other.
        """
        with self.transaction():
            moment = first_seen
            while True:
                known = self.fundamentals(ticker, as_of=moment)
                kept = {name: one for name, one in known.items() if _part(name) != part}
                whole = {**kept, **figures}
                if whole == known:
                    return False
                if self.change(
                    "INSERT INTO fundamentals (ticker, first_seen, figures) VALUES (?, ?, ?) "
                    "ON CONFLICT (ticker, first_seen) DO NOTHING",
                    ticker, moment, to_json(dict(sorted(whole.items()))),
                ):  # fmt: skip
                    return True
                moment += SECOND

    def fundamentals(self, ticker: str, *, as_of: datetime) -> dict[str, float]:
        """Return a company's figures as they were known at `as_of`; empty when none were."""
        figures = self.value(
            "SELECT figures FROM fundamentals WHERE ticker = ? AND first_seen <= ? "
            "ORDER BY first_seen DESC LIMIT 1",
            ticker, as_of,
        )  # fmt: skip
        return json.loads(figures) if figures else {}


def news_items(store: Store, ids: Sequence[str]) -> list[NewsItem]:
    """Return the items of these ids that are stored, in their order."""
    rows = store.rows(
        "SELECT n.* FROM json_each(?) k JOIN news n ON n.id = k.value ORDER BY k.key",
        to_json([*ids]),
    )
    return [_item(row) for row in rows]


def prune_news(store: Store, before: datetime, *, limit: int) -> int:
    """Remove headlines that were stored before a real moment; return how many went."""
    return store.change(
        "DELETE FROM news WHERE id IN (SELECT id FROM news WHERE at < ? ORDER BY at LIMIT ?)",
        before, limit,
    )  # fmt: skip


def figures_of(store: Store, ticker: str) -> list[tuple[datetime, dict[str, float]]]:
    """Return all that was ever known of a company's figures, with its moments, oldest first."""
    rows = store.tuples(
        "SELECT first_seen, figures FROM fundamentals WHERE ticker = ? ORDER BY first_seen", ticker
    )
    return [(parse(moment), json.loads(figures)) for moment, figures in rows]


def _part(name: str) -> str:
    return name.partition(".")[0] if "." in name else ""


def _item(row: Mapping[str, Any]) -> NewsItem:
    # As tuples: the cache takes nothing that can change.
    return _made(tuple(row), tuple(row.values()))


@lru_cache(maxsize=2 * READ_ITEMS)
def _made(names: tuple[str, ...], values: tuple[Any, ...]) -> NewsItem:
    """Return the item of a row; kept, because the next tick reads most rows again."""
    row = dict(zip(names, values, strict=True))
    return NewsItem(
        **{name: row[name] for name in PLAIN},
        published=parse(row["published"]),
        first_seen=parse(row["first_seen"]),
        tickers=tuple(json.loads(row["tickers"])),
    )
