"""A trade as a journal: its chart, what made it, a note and tags, and the sums by tag."""

from __future__ import annotations

import csv
import io
import itertools
import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from numpy.random import default_rng

from tests.cases import cases
from tests.doubles.page_reader import Page
from tests.worlds import desks
from tests.worlds.busy_desk import VOICES, run
from tests.worlds.demo_orders import text_of, visit
from tests.worlds.records import shown_tick
from torra.clock import parse
from torra.config import DeskSettings
from torra.dashboard.trade import journal
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_view import DatabaseView
from torra.store import audit as audit_chain
from torra.store.audit import seal
from torra.store.trade import notes as note_table
from torra.store.trade import signals as signal_table
from torra.store.trade.notes import TradeNote
from torra.tick.marks import SHADOW

JSON = {"Accept": "application/json"}


@pytest.fixture
def backing(traded: PageContext) -> PageContext:
    return traded


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageContext]:
    """A desk that opened and closed positions itself, on its own bars."""
    folder = tmp_path_factory.mktemp("lived")
    desk = run(folder, VOICES["wild"](), "full", 48)
    with closing(desk.database):
        yield PageContext(folder, desk.database, DeskSettings(instances=(desks.BTC,)), desk)


def trades(backing: PageContext) -> list[dict[str, Any]]:
    found = [row.as_json() for row in signal_table.closed_trades(backing.database, limit=100)]
    assert len(found) > 1
    return found


def write(backing: PageContext, sid: str, scope: str = "approve", **told: str) -> tuple[int, Any]:
    answer = visit(backing, scope).post(f"/api/v1/trades/{sid}/note", json=told, headers=JSON)
    return answer.status_code, answer.json


def test_a_note_is_kept_shown_and_on_record(backing: PageContext) -> None:
    sid = trades(backing)[0]["sid"]
    code, told = write(backing, sid, note=" Came late.\nWait. ", tags="Late, breakout late")
    assert (code, told["status"], told["revision"]) == (200, "done", 1)
    kept = note_table.trade_note(backing.database, sid)
    assert (kept.note, kept.tags, kept.revision) == ("Came late.\nWait.", ("late", "breakout"), 1)
    page = text_of(backing, f"/orders/{sid}", "approve")
    assert "Came late.\nWait.</textarea>" in page and 'value="late breakout"' in page
    assert "Came late." in text_of(backing, "/orders?stage=closed")
    entry = audit_chain.audit_entries(backing.database, limit=1)[0]
    assert (entry["action"], entry["target"], entry["outcome"]) == ("note", sid, "done")
    assert seal(entry) == entry["hash"]
    assert "Came late." in entry["after"] and "Came late." not in entry["before"]
    # a reader sees it and cannot write
    assert "Came late." in text_of(backing, f"/orders/{sid}", "read")
    assert write(backing, sid, "read", note="x", revision="1")[0] == 403
    assert note_table.trade_note(backing.database, sid) == kept


def test_who_saw_an_older_note_does_not_overwrite_the_newer_one(backing: PageContext) -> None:
    sid = trades(backing)[0]["sid"]
    outcomes, gate = list[int](), threading.Barrier(6)

    def one(number: int) -> None:
        gate.wait()
        wrote = note_table.write_trade_note(
            backing.database, sid, f"note {number}", ["race"], revision=0, actor=str(number)
        )
        outcomes.append(wrote)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 5 + [True]
    code, told = write(backing, sid, note="mine", revision="0")
    assert code == 409 and "Somebody wrote to this trade" in told["reason"]
    assert note_table.trade_note(backing.database, sid).note.startswith("note ")
    assert write(backing, sid, note="", tags="", revision="1")[0] == 200
    assert note_table.tag_names(backing.database) == []


@pytest.mark.journey
@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"tags": "a b c d e f g h i"}, "at most 8 tags, these are 9"),
        ({"tags": "=cmd"}, "=cmd is no tag"),
        ({"tags": "x" * 31}, "is no tag"),
        ({"note": "x" * 2_001}, "at most 2,000 characters"),
        ({"note": "x", "revision": "-1"}, "revision is the number"),
    ],
)
def test_what_is_no_note_is_refused_with_its_reason(
    told: dict[str, str], said: str, backing: PageContext
) -> None:
    sid = trades(backing)[0]["sid"]
    code, answer = write(backing, sid, **told)
    assert code == 409 and said in answer["reason"]
    assert note_table.trade_note(backing.database, sid) == TradeNote()


def test_there_are_only_so_many_different_tags(
    backing: PageContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (row["sid"] for row in trades(backing)[:2])
    monkeypatch.setattr(journal, "MOST_KNOWN", 2)
    assert write(backing, first, tags="one two")[0] == 200
    assert write(backing, second, tags="two")[0] == 200
    code, told = write(backing, second, tags="three", revision="1")
    assert code == 409 and "2 are the most" in told["reason"]
    assert note_table.tag_names(backing.database) == ["one", "two"]


def test_tags_narrow_the_list_the_file_and_add_up(backing: PageContext, scaled: Any) -> None:
    rng = default_rng(9)
    every = trades(backing)
    for _ in range(scaled(200, least=8)):
        row = every[rng.integers(len(every))]
        seen = note_table.trade_note(backing.database, row["sid"])
        some = [tag for tag in ("late", "news", "trend") if rng.random() < 0.4]
        assert note_table.write_trade_note(
            backing.database, row["sid"], "", some, revision=seen.revision, actor="a"
        )
    tagged = note_table.trade_notes(backing.database, [row["sid"] for row in every])
    by_tag: dict[str, list[dict[str, Any]]] = {}
    for row in every:
        for tag in tagged.get(row["sid"], TradeNote()).tags:
            by_tag.setdefault(tag, []).append(row)
    assert note_table.tag_names(backing.database) == sorted(by_tag)
    told = next(one for one in backing.money().accounts if one.account == "paper")
    assert {tag: one.trades for tag, one in told.by_tag.items()} == {
        tag: len(rows) for tag, rows in by_tag.items()
    }
    for tag, rows in by_tag.items():
        assert told.by_tag[tag].profit == pytest.approx(sum(row["profit"] for row in rows))
        listed = visit(backing).get(f"/api/v1/trades?tag={tag}").json["trades"]
        assert [row["sid"] for row in listed] == [row["sid"] for row in rows]
        file = visit(backing).get(f"/trades.csv?tag={tag}").text
        read = list(csv.DictReader(io.StringIO(file)))
        assert [row["sid"] for row in read] == [row["sid"] for row in rows]
        assert all(tag in row["tags"].split() and row["currency"] == "USD" for row in read)


@pytest.mark.journey
def test_the_chart_has_the_fill_the_exit_and_the_levels(lived: PageContext) -> None:
    for row in trades(lived):
        told = visit(lived, "read").get(f"/api/v1/signals/{row['sid']}/chart").json
        chart = told["chart"]
        kinds = [one["kind"] for one in chart["markers"]]
        assert kinds == [f"OPEN_{row['side']}", "EXIT"]
        times = [one["time"] for one in chart["candles"]]
        assert all(one["time"] in times for one in chart["markers"])
        assert times[-1] <= parse(row["closed_at"]).timestamp() + 20 * 3_600
        levels = {one["title"]: one["price"] for one in chart["levels"]}
        assert levels == {name: row[name] for name in ("entry", "stop", "target")}
    assert visit(lived, "read").get("/api/v1/signals/TNOTHING/chart").status_code == 404


def test_a_trade_too_long_for_its_own_bars_is_drawn_on_longer_ones_with_its_fill(
    lived: PageContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lasted(row: Mapping[str, Any]) -> float:
        return (parse(row["closed_at"]) - parse(row["opened_at"])) / timedelta(minutes=15)

    row = max((one for one in trades(lived) if one["timeframe"] == "M15"), key=lasted)
    around = journal.BARS_BEFORE + journal.BARS_AFTER
    for most, step in ((math.ceil(lasted(row)), 900), (math.ceil(lasted(row)) - 1, 3_600)):
        monkeypatch.setattr(journal, "MOST", around + most)
        told = visit(lived, "read").get(f"/api/v1/signals/{row['sid']}/chart").json
        times = [one["time"] for one in told["chart"]["candles"]]
        assert min(after - before for before, after in itertools.pairwise(times)) == step
        markers = told["chart"]["markers"]
        assert len(markers) == 2 and all(one["time"] in times for one in markers)


@cases(("raw", "more"), [(0.88, ": 88 % before what speaks against it"), (0.8, "")])
def test_a_conviction_that_nothing_lowered_is_told_once(raw: float, more: str) -> None:
    known = {"conviction": 0.8, "raw": raw}
    told = {"deliberation": {"panel": {"pushes": {"bull": 0.2}, "buy": known}}}
    _, _, sentence = journal._conviction(shown_tick(told), "BUY")
    assert sentence == f"the agents' conviction in the buy was 80 %{more}"


@pytest.mark.journey
def test_a_tick_tells_what_became_of_its_opening(lived: PageContext, backing: PageContext) -> None:
    for row in trades(lived):
        address = f"/symbol/{row['instance']}/{row['timeframe']}/{row['bar_time']}"
        told = " ".join(Page(text_of(lived, address)).words)
        assert "What became of it" in told and f"{row['profit']:+.2f}"[1:] in told
    waiting = {
        f"/symbol/{row.instance}/{row.timeframe}/{row.bar_time}": row
        for row in backing.database.proposals("WAITING")
    }
    stored = (one for one in waiting if visit(backing).get(one).status_code == 200)
    address = next(stored)
    first = waiting[address]
    assert "It waits for your yes." in text_of(backing, address)
    answer = visit(backing, "approve").post(f"/api/v1/proposals/{first.sid}/reject", headers=JSON)
    assert answer.status_code == 200
    assert "A person rejected it." in text_of(backing, address)


@pytest.mark.journey
def test_agents_in_shadow_changed_no_size_and_the_gates_rules_did(lived: PageContext) -> None:
    row = trades(lived)[0]
    told = DatabaseView(lived.database, lived.settings, lived.desk).tick(
        row["instance"], row["timeframe"], row["bar_time"]
    )
    assert told is not None
    record = shown_tick(told)
    for flags in ((), (SHADOW,)):
        debate = record.deliberation.model_copy(update={"flags": flags})
        seen = record.model_copy(update={"deliberation": debate})
        assert (journal._conviction(seen, row["side"])[1] == "nothing") == bool(flags)


DAMAGED = (
    ("timeframe", "M7"), ("bar_time", "soon"), ("opened_at", "soon"), ("closed_at", "never"),
    ("decided_at", "x"), ("price", "abc"), ("close_price", 1e300), ("close_reason", b"\xff"),
    ("instance", "gone"), ("bridge", b"x"),
)  # fmt: skip


BY_NIGHT = ("opened_at", "decided_at")
"""By day two other times that are none."""


@pytest.mark.parametrize(
    ("column", "value"),
    [
        pytest.param(*one, id=one[0], marks=[pytest.mark.nightly] if one[0] in BY_NIGHT else [])
        for one in DAMAGED
    ],
)
def test_a_damaged_row_fails_no_page(column: str, value: object, lived: PageContext) -> None:
    row = trades(lived)[0]
    sid, database = row["sid"], lived.database
    sql = f"UPDATE signals SET {column} = ? WHERE sid = ?"
    database.change(sql, value, sid)
    try:
        for address in (f"/orders/{sid}", "/orders?stage=closed", "/trades.csv", "/"):
            assert visit(lived).get(address).status_code == 200, address
        tick = f"/symbol/{row['instance']}/{row['timeframe']}/{row['bar_time']}"
        assert visit(lived).get(tick).status_code == 200
        assert visit(lived).get(f"/api/v1/signals/{sid}/chart").status_code in (200, 404)
    finally:
        database.change(sql, row[column], sid)
