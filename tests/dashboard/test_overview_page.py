"""The overview: one glance tells what wants a look, and fifty symbols are rows of one table."""

from __future__ import annotations

from typing import Any

from tests.cases import cases
from tests.doubles.page_reader import Page, check_policy, client, get, page_of
from tests.worlds.demo_view import INSTANCES
from tests.worlds.records import tick_record
from tests.worlds.values import view_value
from torra.config import ROOT
from torra.dashboard.streams import attention
from torra.dashboard.view.desk_values import DeskStatus, Overview, OverviewSymbol, SymbolStatus
from torra.exhibits import figures
from torra.feeds.sample import SHIFT, TRUE_YEARS
from torra.words.ticks import SOURCES

MANY = "many"


def order_of(page: Page) -> list[str]:
    return [str(a["id"]) for _, a in page.tags if "data-row" in a]


@cases(("cost", "tone"), [(1.59, ""), (1.6, "warn"), (2.0, "alert"), (2.5, "alert")])
def test_the_cost_warns_near_the_ceiling(cost: float, tone: str) -> None:
    assert figures.share_tone(DeskStatus(cost_hour=cost, ceiling=2.0).used) == tone


# --- what wants a look first ---


def instance(**changes: Any) -> OverviewSymbol:
    stream = {"timeframe": "M15", "skipped": None, "quiet": None, "stale": False}
    stream |= changes.pop("stream", {})
    stream["tick"] = tick_record({"source_type": "AGENT_FULL", **changes.pop("tick", {})})
    latest = stream["tick"]
    return view_value(
        OverviewSymbol, {"instance": "A", "streams": [stream], "latest": latest, **changes}
    )


SKIP = {"bar_time": "2021-12-01T10:15:00Z", "reason": "stale", "detail": ""}
CLOSED = {"quiet": {"count": 3, "first": "", "last": ""}}


@cases(
    ("changes", "told"),
    [
        ({}, []),
        ({"stream": {"stale": True}}, ["◷ stale M15"]),
        ({"tick": {"reason": "GATE_VETO"}}, ["⊘ VETO"]),
        ({"tick": {"denied": ["GATE_VETO"]}}, ["⊘ VETO"]),
        ({"tick": {"reason": "TRADER_DECLINED"}}, ["⊘ DECLINED"]),
        ({"stream": {"skipped": SKIP}}, ["· skipped M15"]),
        ({"stream": {"skipped": {**SKIP, "reason": "no_bar"}}}, []),
        ({"tick": {"source_type": "L1_ONLY"}}, [SOURCES["L1_ONLY"].text]),
        ({"tick": {"source_type": "LEGACY"}}, [SOURCES["LEGACY"].text]),
        ({"tick": {"source_type": "AGENT_PARTIAL"}}, [SOURCES["AGENT_PARTIAL"].text]),
        ({"tick": {"deliberation": {"flags": ["degraded:2_of_5"]}}}, ["◍ DEGRADED"]),
        ({"latest": None}, ["○ no tick yet"]),
        ({"stream": CLOSED}, ["◦ no bars"]),
        ({"tick": {"reason": "GATE_VETO"}, "stream": {"stale": True}}, ["◷ stale M15", "⊘ VETO"]),
        ({"instance": "B", "stream": {"stale": True}}, ["◔ approval waits", "◷ stale M15"]),
    ],
)
def test_each_reason_to_look_has_its_words(changes: dict[Any, Any], told: list[Any]) -> None:
    desk = DeskStatus(waiting_by={"B": 1})
    assert [item.text for item in attention.notices(instance(**changes), desk)] == told


def test_a_symbol_whose_market_is_closed_comes_last() -> None:
    (notice,) = attention.notices(instance(stream=CLOSED), DeskStatus())
    assert notice.rank > attention.CALM
    stale, *_ = attention.notices(instance(stream={**CLOSED, "stale": True}), DeskStatus())
    assert stale.rank < attention.CALM


def test_an_opening_that_is_too_small_is_told_beside_no_position() -> None:
    small = instance(tick={"verdict": "SELL", "denied": ["SIZE_ZERO"], "reason": "SIZE_ZERO"})
    for one, says in ((small, "no position: too small"), (instance(), "no position")):
        for address in ("/", "/symbols"):
            page = page_of(address, overview=Overview(instances=(one,)))
            assert says in [*page.texts("strong", "i0"), *page.texts("span", "i0")]


def test_symbols_come_in_the_order_that_was_asked_for() -> None:
    assert order_of(get("/")) == ["i2", "i0", "i1"]  # XAUUSD has no tick
    assert order_of(get("/?sort=desk")) == ["i0", "i1", "i2"]
    assert order_of(get("/?sort=name")) == ["i0", "i1", "i2"]
    assert order_of(get("/?sort=<script>")) == ["i2", "i0", "i1"]
    current = [a["href"] for a in get("/?sort=name").all("a") if "aria-current" in a]
    assert "/?sort=name" in current


# --- fifty symbols ---


def test_a_large_desk_is_one_table_with_a_row_for_each_symbol() -> None:
    page = get("/", MANY)
    check_policy(page)
    assert len(order_of(page)) == INSTANCES
    assert "i0-name" not in ids(page)
    assert len(client(MANY).get("/").data) < 250_000
    assert order_of(page)[0] == "i1"  # its approval waits
    assert len(order_of(get("/", "full"))) == 3
    assert "i0-name" in ids(get("/", "full"))
    assert len(order_of(get("/symbols"))) == 3 and "i0-name" not in ids(get("/symbols"))


def ids(page: Page) -> set[str | None]:
    return {attributes.get("id") for _, attributes in page.tags}


def test_the_filter_is_there_for_scripts_alone() -> None:
    page = get("/", MANY)
    (field,) = [a for a in page.all("input") if "data-filter" in a]
    assert field["type"] == "search"
    (label,) = [a for a in page.all("label") if a.get("class") == "filter"]
    assert "hidden" in label
    script = (ROOT / "static" / "overview.js").read_text("utf-8")
    assert "activeElement" in script  # rows do not move while somebody is among them


def test_the_moved_bars_of_the_sample_are_told_where_the_price_is_read() -> None:
    assert SymbolStatus(symbol="EURUSD", feed="sample").true_year == "2017"
    assert not SymbolStatus(symbol="BTCUSD", feed="sample").true_year
    assert not SymbolStatus(symbol="EURUSD", feed="mt5_files").true_year
    assert set(TRUE_YEARS) == set(SHIFT)
    for page in (get("/"), get("/symbol/EURUSD/H1")):
        assert "prices of 2017, dated 2021" in page.text
