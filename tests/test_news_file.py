"""A file of headlines: read by line, refused by line, read again when it changes."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from news_collector import Collector
from tests.stores import Hand, open_database
from torra.clock import parse
from torra.config import NewsSettings
from torra.errors import ConfigError
from torra.news_digest import NewsStatus, Subject
from torra.news_lexicon import score
from torra.news_source import HeadlineFile, open_sources, read_file

ROOT = Path(__file__).resolve().parent.parent
NOON = datetime(2026, 2, 13, 12, tzinfo=UTC)
GOOD = {"headline": "Gold rises", "published": "2026-02-13T11:00:00Z"}
GOLD = Subject("XAUUSD", "gold")
SETTINGS = NewsSettings(sources=("file",), file="news.jsonl")


def written(path: Path, *rows: object) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.utime(path, ns=(before + 10**9, before + 10**9))
    return path


def collector(folder: Path) -> Collector:
    return Collector(
        open_sources(SETTINGS, {}, folder), open_database(folder),
        now=Hand(NOON), monotonic=lambda: 0.0, score=score,
    )  # fmt: skip


def test_the_example_is_read() -> None:
    rows = read_file(ROOT / "examples" / "headlines.jsonl")
    assert len(rows) == 12 and len({row.id for row in rows}) == 12
    assert rows[2].first_seen - rows[2].published == timedelta(seconds=20)
    assert rows[0].first_seen == rows[0].published and rows[0].source == "example"
    assert rows[1].source == "file" and rows[9].tickers == ("EXMPL",)
    assert all(row.topic == "file:headlines.jsonl" for row in rows)


def test_the_documented_example_is_that_of_the_file() -> None:
    page = (ROOT / "docs" / "news.md").read_text(encoding="utf-8")
    example = (ROOT / "examples" / "headlines.jsonl").read_text(encoding="utf-8")
    shown = page.split("```json\n", 1)[1].split("```", 1)[0].strip().split("\n")
    assert shown and all(line in example.split("\n") for line in shown)


def test_the_page_explains_every_status_and_every_setting() -> None:
    page = (ROOT / "docs" / "news.md").read_text(encoding="utf-8")
    for name in (*NewsStatus, *NewsSettings.model_fields):
        assert f"| `{name}` |" in page, name


def test_times_are_utc_and_a_first_sight_is_rounded_up(tmp_path: Path) -> None:
    row = {
        "headline": "x", "published": "2026-02-13T12:00:00.9+01:00",
        "first_seen": "2026-02-13 11:00:00.1",
    }  # fmt: skip
    found = read_file(written(tmp_path / "n", "", row, "  "))[0]
    assert found.published == NOON - timedelta(hours=1)
    assert found.first_seen == NOON - timedelta(hours=1) + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not an object"),
        ("null", "not an object"),
        ({**GOOD, "headline": None}, "headline"),
        ({**GOOD, "headline": " \u200b"}, "headline"),
        ({"published": GOOD["published"]}, "headline"),
        ({"headline": "x"}, "published is not a time"),
        ({**GOOD, "published": 1770000000}, "published is not a time"),
        ({**GOOD, "published": "2026-02-13"}, "published is not a time"),
        ({**GOOD, "published": "1999-12-31T00:00:00Z"}, "published is not a time"),
        ({**GOOD, "first_seen": None}, "first_seen is not a time"),
        ({**GOOD, "first_seen": "2026-02-13T10:54:59Z"}, "first_seen is before published"),
        ({**GOOD, "firstseen": "2026-02-13T11:00:00Z"}, "unknown key 'firstseen'"),
        ({**GOOD, "summary": 5}, "summary is not text"),
        ({**GOOD, "url": []}, "url is not text"),
        ({**GOOD, "tickers": 5}, "tickers is no list"),
        ({**GOOD, "symbols": [5]}, "symbols is no list"),
    ],
)
def test_a_broken_line_is_refused_with_its_number(tmp_path: Path, line, problem: str) -> None:
    path = written(tmp_path / "news.jsonl", GOOD, line)
    with pytest.raises(ConfigError) as refused:
        open_sources(SETTINGS, {}, tmp_path)
    assert f"{path}, line 2: " in str(refused.value) and problem in str(refused.value)


def test_a_missing_file_or_another_encoding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        open_sources(SETTINGS, {}, tmp_path)
    (tmp_path / "news.jsonl").write_bytes(b'\n{"headline": "\xff"}')
    with pytest.raises(ConfigError, match="line 2: not UTF-8"):
        open_sources(SETTINGS, {}, tmp_path)


def test_what_is_seen_by_then_is_shown_and_can_be_stored(tmp_path: Path) -> None:
    rows = [{**GOOD, "headline": f"Gold {n} rises", "first_seen": f"2026-02-13T11:0{n}:00Z"}
            for n in range(5)]  # fmt: skip
    written(tmp_path / "news.jsonl", *rows)
    desk = collector(tmp_path)
    for n in range(5):
        found = desk.latest(GOLD, parse(f"2026-02-13T11:0{n}:00Z"), SETTINGS)
        assert found.unique == n + 1 and found.status is NewsStatus.AVAILABLE
        assert found.items[0].item.score == 0.5
    store = desk._store
    assert store.store_news([one.item for one in found.items]) == 5
    assert desk.latest(GOLD, NOON, SETTINGS) == replaced_status(desk, NOON)
    assert store.news_items([found.items[0].item.id]) == [found.items[0].item]


def replaced_status(desk: Collector, moment: datetime):
    """What the file alone says: storing what was seen changes nothing."""
    fresh = Collector(
        open_sources(SETTINGS, {}, desk._store.path.parent), _Empty(),
        now=Hand(NOON), monotonic=lambda: 0.0, score=score,
    )  # fmt: skip
    return fresh.latest(GOLD, moment, SETTINGS)


class _Empty:
    def news(self, **_):
        return []


def test_it_is_read_again_when_it_changes_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "news.jsonl", GOOD)
    desk = collector(tmp_path)
    assert desk.latest(GOLD, NOON, SETTINGS).unique == 1
    written(path, GOOD, {**GOOD, "headline": "Bullion falls"})
    assert desk.latest(GOLD, NOON, SETTINGS).unique == 2
    written(path, GOOD, "{")
    found = desk.latest(GOLD, NOON, SETTINGS)
    assert found.unique == 2 and found.status is NewsStatus.AVAILABLE
    assert desk.latest(GOLD, NOON - timedelta(days=9), SETTINGS).status is NewsStatus.BROKEN
    assert "line 2" in desk.status()[-1].detail
    path.unlink()
    assert desk.latest(GOLD, NOON, SETTINGS).unique == 2
    assert desk.latest(GOLD, NOON - timedelta(days=9), SETTINGS).status is NewsStatus.NO_FILE
    written(path, GOOD)
    assert desk.latest(GOLD, NOON, SETTINGS).unique == 1
    assert desk.latest(GOLD, NOON - timedelta(days=9), SETTINGS).status is NewsStatus.EMPTY
    assert desk.status()[-1].status is NewsStatus.AVAILABLE


def test_only_a_changed_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = HeadlineFile(written(tmp_path / "n", GOOD))
    monkeypatch.setattr("torra.news_source.read_file", lambda path: pytest.fail("read again"))
    for _ in range(3):
        assert len(file.between(NOON - timedelta(days=1), NOON)[0]) == 1
    assert file.between(NOON - timedelta(hours=1), NOON)[0] == []
