"""The page History and its API: every tick by what it was, with counts, cursors and the file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from numpy.random import default_rng

from tests.cases import cases
from tests.dashboard.test_query_plans import open_pages
from tests.doubles.browser import Site, Visit, chromium, needs_browser
from tests.doubles.page_reader import Page
from tests.doubles.visitors import bearer
from tests.worlds import demo_orders, swarm_ticks
from torra.clock import iso, parse
from torra.dashboard.screens import history
from torra.dashboard.view import refusers
from torra.dashboard.view.backing import PageContext
from torra.exhibits import figures
from torra.store import tick_listing
from torra.store.connection import TickKey
from torra.words.deny_reasons import DenyReason

Get = Callable[..., Any]


@pytest.fixture
def get(traded: PageContext) -> Get:
    return demo_orders.visit(traded, "read").get


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Get]]:
    database, client, _ = open_pages(tmp_path_factory.mktemp("many"), 1_200, 3)
    yield database, client.get
    database.close()


def stored(database: Any) -> list[dict[str, Any]]:
    return list(
        database.connection().query(
            "SELECT c.instance, c.timeframe, c.bar_time, c.close_time, c.l1_verdict, c.verdict, "
            "coalesce(j.action, '') AS action, coalesce(j.reason, '') AS reason, "
            "coalesce(s.source_type, '') AS source "
            "FROM chains c JOIN sentiment s ON s.id = c.sentiment_id "
            "LEFT JOIN journal j ON j.torra_key = c.torra_key "
            "ORDER BY c.close_time DESC, c.sentiment_id DESC"
        )
    )


def has(row: dict[str, Any], mark: str) -> bool:
    return {
        "": True,
        "opened": row["action"] in ("OPEN_BUY", "OPEN_SELL", "REVERSE"),
        "proposed": row["reason"] == "AWAITS_APPROVAL",
        "changed": row["verdict"] != row["l1_verdict"],
        "vetoed": row["reason"] in ("GATE_VETO", "GATE_CANNOT_OPEN"),
        # the desk of this file has no swarm
        "judge": False,
        "officer": False,
        "declined": row["reason"] == "TRADER_DECLINED",
        "denied": row["reason"] in set(DenyReason),
        "degraded": row["source"] in ("AGENT_PARTIAL", "LEGACY", "L1_ONLY"),
    }[mark]


def wanted(every: list[dict[str, Any]], asked: dict[str, str]) -> list[dict[str, Any]]:
    only = {name: asked[name] for name in history.LABELS if name in asked}
    return [
        row
        for row in every
        if has(row, asked.get("only", ""))
        and all(row[name] == word.replace("-", "", word == "-") for name, word in only.items())
        and asked.get("from", "") <= row["close_time"][:10] <= asked.get("to", "~")
    ]


@pytest.mark.journey
def test_any_filter_finds_its_ticks_once_in_order_and_counts_them(
    many: tuple[Any, Get], scaled: Any
) -> None:
    database, get = many
    every, rng = stored(database), default_rng(5)
    assert len(every) > 1_000
    for _ in range(scaled(1_000, least=4)):
        asked: dict[str, str] = {}
        for name in history.LABELS:
            if rng.random() < 0.25:
                asked[name] = every[rng.integers(len(every))][name] or "-"
        if rng.random() < 0.5:
            asked["only"] = str(rng.choice([*history.MARKS]))
        if rng.random() < 0.4:
            days = sorted(every[rng.integers(len(every))]["close_time"][:10] for _ in "12")
            asked |= dict(zip(("from", "to"), days, strict=True))
        want = wanted(every, asked)
        found, place = [], None
        for _ in range(3):
            query = urlencode({**asked, "limit": 90, "before": place or ""})
            told = get(f"/api/v1/history?{query}")
            assert told.status_code == 200, told.text
            answer = told.json
            found += answer["ticks"]
            place = answer["next"]
            if place is None:
                break
        keys = ("instance", "timeframe", "bar_time")
        assert [[row[k] for k in keys] for row in found] == [
            [row[k] for k in keys] for row in want[: len(found)]
        ]
        assert place is not None or len(found) == len(want)
        searched = asked.get("only") in refusers.WHO
        assert answer["count"] == (None if searched else len(want))
        for name in history.LABELS:
            others = {key: word for key, word in asked.items() if key != name}
            for word, number in answer["counts"][name].items():
                assert searched or number == len(wanted(every, {**others, name: word})), (
                    name,
                    word,
                )
        others = {key: word for key, word in asked.items() if key != "only"}
        for word, number in answer["counts"]["only"].items():
            assert searched or number == len(wanted(every, {**others, "only": word})), word


def test_a_page_has_a_line_for_each_tick_and_leads_to_it(get: Get, traded: PageContext) -> None:
    text = get("/history").text
    every = stored(traded.database)
    for row in every[: history.SHOWN]:
        address = f"/symbol/{row['instance']}/{row['timeframe']}/{row['bar_time']}"
        assert f'href="{address}"' in text
    opened = [row for row in every if has(row, "proposed")]
    text = get("/history?only=proposed").text
    assert text.count("<tr data-row>") == len(opened) > 0
    assert f"{len(opened)} ticks of {len(every)}." in " ".join(Page(text).words)


def test_pages_go_on_by_their_links(many: tuple[Any, Get]) -> None:
    database, get = many
    address, seen = "/history?verdict=HOLD", 0
    while True:
        told = get(address).text
        seen += told.count("<tr data-row>")
        if 'rel="next" href="' not in told:
            break
        address = told.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
        assert "verdict=HOLD" in address
    assert seen == len(wanted(stored(database), {"verdict": "HOLD"}))


@pytest.mark.journey
def test_the_file_has_what_the_page_is_narrowed_to(many: tuple[Any, Get]) -> None:
    database, get = many
    told = get("/history?only=changed&timeframe=M15").text
    address = told.split(" download>")[0].rsplit('href="', 1)[1].split('"')[0]
    answer = get(address.replace("&amp;", "&"))
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    want = wanted(stored(database), {"only": "changed", "timeframe": "M15"})
    assert [row["bar_time"] for row in rows] == [row["bar_time"] for row in want]


def test_closes_without_a_tick_are_told_with_the_ticks_of_their_time(
    get: Get, traded: PageContext
) -> None:
    newest, *_, oldest = stored(traded.database)
    assert "without a tick" not in get("/history").text
    after = parse(newest["close_time"])
    quarter, before = timedelta(minutes=15), parse(oldest["close_time"]) - timedelta(days=1)
    skipped = [after + quarter, after + 2 * quarter, before]
    keys = [TickKey("BTCUSD", "M15", close - quarter) for close in skipped]
    reasons = [("no_bar", "x"), ("no_bar", "x"), ("missed", "y")]
    told = dict(zip(keys, reasons, strict=True))
    assert traded.database.skip_ticks(told) == 3
    text = get("/history").text
    words = " ".join(Page(text).words)
    assert "3 closes without a tick in this time" in words
    last = f"from {figures.moment(iso(skipped[0]))} to {figures.moment(iso(skipped[1]))}"
    assert f"2 closes skipped, no_bar: {last}" in words
    assert f"1 close skipped, missed: {figures.moment(iso(before))}" in words
    page = get(text.split('details class="missing">')[1].split('href="')[1].split('"')[0])
    assert "This tick was skipped" in page.text
    for query, number in (("instance=BTCUSD", 3), ("timeframe=H1", 0), ("only=opened", 0),
                          ("verdict=HOLD", 0), (f"from={newest['close_time'][:10]}", 2),
                          ("limit=1", 2)):  # fmt: skip
        answer = get(f"/api/v1/history?{query}").json
        assert sum(row["count"] for row in answer["skipped"]) == number, query
    seen, place = 0, ""
    while place is not None:
        answer = get(f"/api/v1/history?limit=3&before={place}").json
        seen, place = seen + sum(row["count"] for row in answer["skipped"]), answer["next"]
    assert seen == 3


def test_the_closes_of_a_page_are_looked_at_up_to_a_bound(
    get: Get, traded: PageContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    found = tick_listing.closes_without_tick

    def look(self: Any, first: str, last: str, *, most: int) -> Any:
        asked.append(most)
        return found(self, first, last, most=most)

    monkeypatch.setattr(tick_listing, "closes_without_tick", look)
    get("/history?instance=nobody&from=2000-01-01")
    assert asked == [history.MOST_CLOSES]


@pytest.mark.journey
@cases(
    ("gate", "mark", "words"),
    [
        ("", "judge", "the judge's veto: the judge's odds do not pay"),
        (
            '{"veto": true, "reasons": ["HIGH_VOLATILITY", "JUDGE_HOLD"]}',
            "judge",
            "the judge's veto: the judge takes no side",
        ),
        (
            '{"veto_sides": ["BUY"], "reasons": ["CROWDED"]}',
            "officer",
            "the risk officer's veto: too many hold this side already",
        ),
    ],
)
def test_a_veto_of_a_judge_and_one_of_an_officer_are_found_by_who_made_them(
    tmp_path: Path, gate: str, mark: str, words: str
) -> None:
    pages = swarm_ticks.lived(tmp_path / mark / str(len(gate)), swarm_ticks.SCRIPTS["vetoed"])
    with pytest.MonkeyPatch.context() as patch, closing(pages.desk):
        if gate:
            ruling = {"multiplier": 1.0, "veto": False, "reasons": ["NONE"]}
            whole = json.dumps({**ruling, "rule": ruling, **json.loads(gate)})
            told = lambda _, numbers: dict.fromkeys(numbers, whole)  # noqa: E731
            patch.setattr(tick_listing, "gates_of", told)
        found = Page(pages.text(f"/history?only={mark}"))
        every = Page(pages.text("/history?only=vetoed"))
        assert words in found.text and words in every.text
        listed = pages.json(f"/api/v1/history?only={mark}")["ticks"]
        assert listed == pages.json("/api/v1/history?only=vetoed")["ticks"]
        (other,) = set(refusers.WHO) - {mark}
        assert not pages.json(f"/api/v1/history?only={other}")["ticks"]
        assert pages.text(f"/ticks.csv?only={mark}").count("GATE_VETO") == len(listed) > 0
        assert "GATE_VETO" not in pages.text(f"/ticks.csv?only={other}")


def test_a_page_looks_through_a_bounded_number_of_vetoes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"sentiment_id": n, "close_time": f"2026-01-01T{n:02}:00:00Z", "reason": "GATE_VETO",
         "verdict": "BUY"}
        for n in range(20, 0, -1)
    ]  # fmt: skip

    def every_tick_of_kinds(*_: Any, before: Any, **__: Any) -> Iterator[Any]:
        return iter([row for row in rows if (row["close_time"], row["sentiment_id"]) < before])

    def gates_of(_: Any, numbers: Any) -> dict[int, str]:
        whole = {"multiplier": 1.0, "veto": True, "reasons": [], "rule": {}}
        own = {**whole, "veto": False, "veto_sides": ["BUY"], "reasons": ["CROWDED"]}
        return {n: json.dumps(own if n == 2 else whole) for n in numbers}

    monkeypatch.setattr(tick_listing, "every_tick_of_kinds", every_tick_of_kinds)
    monkeypatch.setattr(tick_listing, "gates_of", gates_of)
    monkeypatch.setattr(refusers, "SEARCHED", 8)
    monkeypatch.setattr(refusers, "AT_ONCE", 4)
    database: Any = None
    place: Any = ("~", 2**62)
    found = []
    while place:
        some, place = refusers.searched(database, "risk officer", (), "", place, 1)
        found.append([row["sentiment_id"] for row in some])
    assert found == [[], [], [2]]


@pytest.mark.journey
def test_too_many_ticks_of_some_days_are_listed_and_not_counted(
    many: tuple[Any, Get], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, get = many
    monkeypatch.setattr(history, "COUNTED", 100)
    told = get("/api/v1/history?from=2000-01-01").json
    assert len(told["ticks"]) == history.SHOWN and told["count"] is None
    assert set(told["counts"]["verdict"].values()) == {None}
    text = " ".join(Page(get("/history?from=2000-01-01").text).words)
    assert "More than 100 ticks closed in these days: choose fewer days to count them." in text


LONG_CELLS = """() => {
  const write = (part, text) => document.querySelectorAll(`.ticks-of td${part}`).forEach(
    (cell) => { cell.textContent = text; });
  write("[data-label*='ame to']", "\u221212,345.67 USD");
  write(".why", "the consensus is near its threshold");
  const box = document.querySelector(".scroll");
  return box.scrollWidth - box.clientWidth;
}"""


@pytest.mark.journey
@needs_browser
def test_changed_verdicts_and_their_amounts_fit_into_1280_pixels(many: tuple[Any, Get]) -> None:
    _, get = many
    screen = {"width": 1280, "height": 800}
    with (
        Site(get.__self__.application) as site,  # type: ignore[attr-defined]
        chromium() as browser,
        Visit(browser, screen=screen, extra_http_headers=bearer("read")) as visit,
    ):
        visit.page.goto(f"{site.url}/history?only=changed")
        assert visit.page.evaluate(LONG_CELLS) <= 0


@pytest.mark.parametrize(
    "wrong", ["only=x", "from=x", "to=2026-13-01", "limit=0", "limit=201", "before=x", "before=a|b"]
)
def test_words_that_mean_nothing_are_refused(wrong: str, get: Get) -> None:
    answer = get(f"/api/v1/history?{wrong}")
    assert answer.status_code == 400 and answer.json["error"]
    assert get(f"/history?{wrong}").status_code == 400


def test_a_filter_without_a_tick_says_so_and_leads_back(get: Get) -> None:
    text = get("/history?instance=%3Cb%3Enobody").text
    assert "No tick is like that." in text and "<b>nobody" not in text
    assert 'value="&lt;b&gt;nobody" selected' in text


def test_words_of_any_type_are_listed_and_fail_no_page(get: Get, traded: PageContext) -> None:
    keys = [row["torra_key"] for row in traded.database.ticks("BTCUSD", "M15", 3)]
    for key, verdict in zip(keys, (b"\xff", 7, "<b>x"), strict=True):
        traded.database.change("UPDATE chains SET verdict = ? WHERE torra_key = ?", verdict, key)
        traded.database.change(
            "UPDATE tick_history SET kind = kind WHERE sentiment_id = "
            "(SELECT sentiment_id FROM chains WHERE torra_key = ?)", key,
        )  # fmt: skip
    traded.database.change(
        "INSERT INTO tick_kinds (instance, timeframe, l1_verdict, verdict, action, reason, source, "
        "ticks) VALUES (?, 'M15', 'HOLD', ?, ?, 5, '', 1)", b"\xfe", b"\xff", b"<b>",
    )  # fmt: skip
    for address in ("/history", "/api/v1/history", "/history?only=changed", "/ticks.csv"):
        answer = get(address)
        assert answer.status_code == 200, address
        if answer.mimetype == "text/html":
            assert "<b>x" not in answer.text


@pytest.mark.parametrize("address", ["history", "trades", "changed", "bars/BTCUSD/M15"])
def test_every_list_refuses_a_number_of_rows_that_is_none(address: str, get: Get) -> None:
    for wrong in ("0", "-1", "x", "1e3", "99999", "٣"):
        answer = get(f"/api/v1/{address}?limit={wrong}")
        assert answer.status_code == 400 and answer.json["error"].startswith("limit is 1 to ")
    assert get(f"/api/v1/{address}?limit=1").status_code == 200
