"""A file of headlines: read by line, refused by line, read again when it changes."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import ROOT
from tests.cases import cases
from tests.tries import until
from tests.worlds.news_desks import GOLD, NewsDesk
from tests.worlds.stores import NOON, open_database
from torra.clock import parse
from torra.commands.command_line import main
from torra.config import NewsSettings
from torra.errors import ConfigError
from torra.evidence.news_digest import (
    COUNTED,
    NewsItem,
    NewsStatus,
    NewsSubject,
    NewsView,
    concerns,
)
from torra.evidence.news_shelf import LATE_FILE_S
from torra.news.lexicon import score
from torra.news.source import HeadlineFile, open_sources, read_file
from torra.store import news as news_table

GOOD = {"headline": "Gold rises", "published": "2026-02-13T11:00:00Z"}
SETTINGS = NewsSettings(sources=("file",), file="news.jsonl")
S = NewsStatus


def written(path: Path, *rows: object) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.utime(path, ns=(before + 10**9, before + 10**9))
    return path


def desk_of(folder: Path, *rows: object, scorer: Callable[[str], float] = score) -> NewsDesk:
    """Return a desk on a file of these rows."""
    written(folder / "news.jsonl", *rows)
    files = open_sources(SETTINGS, {}, folder).files
    return NewsDesk(files=files, store=open_database(folder), settings=SETTINGS, scorer=scorer)


def at(desk: NewsDesk, moment: datetime = NOON, subject: NewsSubject = GOLD) -> NewsView:
    """Return what a tick would know at a moment."""
    return desk.collector.latest(subject, moment, SETTINGS)


def test_the_example_is_read() -> None:
    rows = read_file(ROOT / "examples" / "headlines.jsonl")
    assert len(rows) == 12 and len({row.id for row in rows}) == 12
    assert rows[2].first_seen - rows[2].published == timedelta(seconds=20)
    assert rows[0].first_seen == rows[0].published and rows[0].source == "example"
    assert rows[1].source == "file" and rows[9].tickers == ("EXMPL",)
    assert all(row.topic == "file:headlines.jsonl" for row in rows)


def test_the_documented_commands_show_headlines_and_events(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "news.md").read_text(encoding="utf-8")
    *made, last = page.split("```sh\n", 1)[1].split("```", 1)[0].strip().split("\n")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    subprocess.run(["sh", "-e", "-c", "\n".join(made)], cwd=tmp_path, check=True)
    ran = CliRunner().invoke(main, ["--home", str(tmp_path / "torra_home"), *last.split()[1:]])
    assert ran.exit_code == 0, ran.output
    for said in ("news  available, 4 headlines", "events  available, next in 15 min"):
        assert said in page and " ".join(said.split()) in " ".join(ran.output.split())
    assert "veto yes (SCHEDULED_EVENT" in ran.output


def test_the_page_shows_the_example_and_explains_every_status_and_setting() -> None:
    page = (ROOT / "docs" / "news.md").read_text(encoding="utf-8")
    example = (ROOT / "examples" / "headlines.jsonl").read_text(encoding="utf-8")
    lines = page.split("```json\n", 1)[1].split("```", 1)[0].strip().split("\n")
    assert lines and all(line in example.split("\n") for line in lines)
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


AT = '"published":"2026-02-13T11:00:00Z"'
BROKEN_LINES = f"""
{{ | not JSON
{"[" * 100_000} | not JSON
{{"headline":"x","headline":"y",{AT}}} | not JSON
[] | not an object
null | not an object
{{"headline":null,{AT}}} | headline
{{"headline":" \u200b",{AT}}} | headline
{{{AT}}} | headline
{{"headline":"x"}} | published is not a time
{{"headline":"x","published":1770000000}} | published is not a time
{{"headline":"x","published":"2026-02-13"}} | published is not a time
{{"headline":"x","published":"1999-12-31T00:00:00Z"}} | published is not a time
{{"headline":"x","first_seen":null,{AT}}} | first_seen is not a time
{{"headline":"x","first_seen":"2026-02-13T10:54:59Z",{AT}}} | first_seen is before published
{{"headline":"x","firstseen":"2026-02-13T11:00:00Z",{AT}}} | unknown key 'firstseen'
{{"headline":"x","summary":5,{AT}}} | summary is not text
{{"headline":"x","url":[],{AT}}} | url is not text
{{"headline":"x","tickers":5,{AT}}} | tickers is no list
{{"headline":"x","symbols":[5],{AT}}} | symbols is no list
"""


@cases("row", BROKEN_LINES.strip().split("\n"))
def test_a_broken_line_is_refused_with_its_number(tmp_path: Path, row: str) -> None:
    line, problem = row.split(" | ")
    path = written(tmp_path / "news.jsonl", GOOD, line)
    with pytest.raises(ConfigError) as refused:
        open_sources(SETTINGS, {}, tmp_path)
    assert f"{path}, line 2: " in str(refused.value) and problem in str(refused.value)


def test_a_missing_file_or_another_encoding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not there"):
        open_sources(SETTINGS, {}, tmp_path)
    (tmp_path / "news.jsonl").write_bytes(b'\n{"headline": "\xff"}')
    with pytest.raises(ConfigError, match="line 2: not UTF-8"):
        open_sources(SETTINGS, {}, tmp_path)


def test_what_is_seen_by_then_is_shown_and_can_be_stored(tmp_path: Path) -> None:
    moments = [f"2026-02-13T11:0{n}:00Z" for n in range(5)]
    rows = [{**GOOD, "headline": f"Gold {n} rises", "first_seen": moments[n]} for n in range(5)]
    desk = desk_of(tmp_path, *rows)
    for count, moment in enumerate(moments, start=1):
        view = at(desk, parse(moment))
        assert view.unique == count and view.status is S.AVAILABLE
        assert view.items[0].item.score == 0.5
    assert desk.store.store_news([row.item for row in view.items]) == 5
    assert news_table.news_items(desk.store, [view.items[0].item.id]) == [view.items[0].item]


def test_it_is_read_again_when_it_changes_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    desk, path = desk_of(tmp_path, GOOD), tmp_path / "news.jsonl"
    written(path, GOOD, {**GOOD, "headline": "Bullion falls"})
    assert at(desk).unique == 1, "a tick looks at no file"
    assert at(desk.later(0)).unique == 2
    for change, count, status in (
        (lambda: written(path, GOOD, "{"), 2, S.BROKEN),
        (path.unlink, 2, S.NO_FILE),
        (lambda: written(path, GOOD), 1, S.EMPTY),
    ):
        change()
        desk.later(0)
        view = at(desk)
        assert (view.unique, view.status) == (count, S.AVAILABLE)
        assert at(desk, NOON - timedelta(days=9)).status is status
        if status is S.BROKEN:
            assert "line 2" in desk.collector.status()[-1].detail
    assert desk.collector.status()[-1].status is S.AVAILABLE


# --- a tick waits for no file ---------------------------------------------------------------------


def test_a_tick_touches_no_file_and_scores_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{**GOOD, "headline": f"{what} up {n}"} for what in ("Gold", "Wheat") for n in range(20)]
    scored: list[str] = []
    desk = desk_of(tmp_path, *rows, scorer=lambda text: scored.append(text) or 0.25).later(0)
    assert len(scored) == 20, "only what concerns somebody is scored"
    written(tmp_path / "news.jsonl", *rows, {**GOOD, "headline": "Gold down"})
    for name in ("stat", "open", "read_bytes"):
        monkeypatch.setattr(Path, name, lambda *a, **k: pytest.fail("a tick touches a file"))
    assert at(desk).unique == 20 and len(scored) == 20
    assert desk.collector.status()[-1].items == 40
    monkeypatch.undo()
    assert at(desk.later(0)).unique == 21
    assert scored[20:] == ["Gold down. "], "what was scored stays scored"


def test_a_look_at_an_unchanged_file_is_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{**GOOD, "headline": f"Wheat {n}"} for n in range(30)]
    desk, judged = desk_of(tmp_path, *rows), []

    def counted(item: NewsItem, subject: NewsSubject) -> bool:
        judged.append(item.headline)
        return concerns(item, subject)

    monkeypatch.setattr("torra.evidence.news_shelf.concerns", counted)
    desk.later(0).later(0).later(0)
    assert len(judged) == 30
    written(tmp_path / "news.jsonl", *rows, {**GOOD, "headline": "Gold and wheat"})
    desk.later(0)
    assert judged[30:] == ["Gold and wheat"]
    wheat = replace(GOLD, terms=("wheat",))
    desk.collector.watch(wheat, SETTINGS)
    assert at(desk.later(0), subject=wheat).unique == 31


def test_a_tick_before_the_first_look_is_over_has_nothing_yet(tmp_path: Path) -> None:
    """With threads: the dictionary takes seconds to read."""
    gate = threading.Event()
    desk = desk_of(tmp_path, GOOD, scorer=lambda _: float(gate.wait(10)))
    desk.collector.start()
    assert at(desk).status is S.NOT_YET
    gate.set()
    until(lambda: at(desk).unique == 1)
    assert at(desk).status is S.AVAILABLE
    desk.collector.close()


def test_a_single_tick_scores_few(tmp_path: Path) -> None:
    rows = [{**GOOD, "headline": f"Gold up {n}"} for n in range(COUNTED + 100)]
    scored: list[str] = []
    desk = desk_of(tmp_path, *rows, scorer=lambda text: scored.append(text) or 0.0)
    assert at(desk).unique == at(desk).unique == len(scored) == COUNTED


def test_a_file_that_nobody_can_look_at_grows_old(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, {**GOOD, "headline": "Wheat is late"}).later(0)
    desk.collector._thread = threading.current_thread()  # as if a thread looked, and hung
    assert at(desk).status is S.EMPTY
    desk.seconds += LATE_FILE_S + 1
    assert at(desk).status is S.UNREACHABLE
    assert desk.collector.status()[-1].detail == "nobody could look at it for 121 s"


# --- which lines are the same item ----------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"headline": "Gold falls"}, {"published": "2026-02-13T11:00:01Z"}, {"summary": "It falls."},
        {"first_seen": "2026-02-13T11:30:00Z"}, {"url": "https://example.org/2"},
        {"source": "b"}, {"tickers": ["XAUUSD"]},
    ],
)  # fmt: skip
def test_an_edited_line_is_another_item(tmp_path: Path, change: dict[str, object]) -> None:
    row = {**GOOD, "url": "https://example.org/1", "source": "a", "summary": "It rises."}
    one, two, three = read_file(written(tmp_path / "n", row, {**row, **change}, row))
    assert one.id == three.id != two.id
    assert len(HeadlineFile(tmp_path / "n").reading.items) == 2


def test_a_line_that_was_edited_is_stored_as_it_counted(tmp_path: Path) -> None:
    """A record names items by id: what it names must be what the tick saw."""
    desk = desk_of(tmp_path, {**GOOD, "summary": "it rises and gains"})
    for summary in ("it falls and drops", "it says nothing"):
        item = at(desk).items[0].item
        desk.store.store_news([item])
        assert news_table.news_items(desk.store, [item.id]) == [item]
        written(tmp_path / "news.jsonl", {**GOOD, "summary": summary})
        desk.later(0)


def test_a_name_that_is_no_text_can_be_stored(tmp_path: Path) -> None:
    name = os.fsdecode(b"x\xff.jsonl")
    written(tmp_path / name, GOOD)
    file = HeadlineFile(tmp_path / name)
    assert open_database(tmp_path).store_news(file.reading.items) == 1
    assert file.reading.items[0].topic == file.topic == "file:x?.jsonl"
