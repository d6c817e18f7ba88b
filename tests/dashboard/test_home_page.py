"""Home: money, risk, agents, models, what waits, and a tile for each symbol."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.cases import cases
from tests.doubles.page_reader import Page, check_policy, get, page_of
from tests.worlds import demo_orders
from tests.worlds.records import tick_record
from tests.worlds.stores import NOON
from tests.worlds.values import made_symbol, view_value
from torra.dashboard.screens import home
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_values import Overview, OverviewSymbol, PositionValue
from torra.exhibits import figures
from torra.money.book import AccountMoney, DayCap, Money
from torra.money.open_positions import LinePoint, OpenNow
from torra.money.results import TradeTotals
from torra.verdict.risk_engine import OPENS, Position
from torra.verdict.trade_outcome import CloseValue

LEVELS = {"buy": 0.5, "sell": 0.5}


def read(traded: PageContext, query: str = "") -> Page:
    page = Page(demo_orders.visit(traded, "approve").get(f"/{query}").text)
    check_policy(page)
    return page


@pytest.fixture
def home_with(
    traded: PageContext, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Money, dict[str, Any]], Page]:
    """Read Home of a desk with this money and these lines of it."""

    def page(money: Money, lines: dict[str, Any]) -> Page:
        monkeypatch.setattr(PageContext, "money", lambda *_, **__: money)
        monkeypatch.setattr(PageContext, "money_lines", lambda *_: lines)
        return read(traded)

    return page


HomeWith = Callable[..., Page]


# --- money ----------------------------------------------------------------------------------------


def account_of(money: Money, **more: Any) -> AccountMoney:
    """Return an account without a trade, but for `more`."""
    known: dict[str, Any] = {"today": TradeTotals(), "week": TradeTotals(), "whole": TradeTotals()}
    known |= {"warm_up": TradeTotals(), "open": OpenNow(), "currency": "USD"}
    return replace(money.accounts[0], **{**known, **more})


LOST = TradeTotals(3, 1, 2, profit=-105.0)


@cases(
    ("held", "says"),
    [
        (OpenNow(1, 1, 1, result=-67.0),
         "−172.00 USD −105.00 USD closed −67.00 USD open, in 1 position"),
        (OpenNow(2, 1, 2, result=-67.0, warm_up=-50.0),
         "−122.00 USD + ? −105.00 USD closed "
         "−67.00 USD open, in 2 positions; −50.00 USD of the warm-up is not counted"),
        (OpenNow(), "−105.00 USD"),
    ],
)  # fmt: skip
def test_equity_is_what_was_closed_today_and_what_is_open(
    traded: PageContext, home_with: HomeWith, held: OpenNow, says: str
) -> None:
    one = account_of(traded.money(), today=LOST, week=LOST, whole=LOST, open=held)
    page = home_with(Money(NOON, (one,), 0.0, ()), {})
    assert page.texts("hero-number") == [says]
    assert "3 trades closed today; 7 days: −105.00 USD" in page.text
    assert {part.tone for part in page.elements("beside-hero")} <= {"down"}


def test_the_line_begins_at_zero_and_its_end_is_labelled(
    traded: PageContext, home_with: HomeWith
) -> None:
    """Of a span in which 20 of the 100 that stood before were won, after 30 were lost."""
    one = account_of(traded.money(), whole=TradeTotals(1, 1, profit=100.0))
    points = [LinePoint(NOON, 0.0, value) for value in (None, 100.0, 70.0, 120.0, 110.0)]
    page = home_with(Money(NOON, (one,), 0.0, ()), {one.account: points})
    assert page.texts("high") + page.texts("low") == ["+20.00 USD", "−30.00 USD"]
    (end,) = page.elements("text")
    assert (end.text, end.tone, end.attributes["y"]) == ("+10.00 USD", "up", "20.0%")
    (zero,) = page.elements("zero")
    assert str(zero.attributes["d"]).startswith("M0 72H")
    # an end at the top takes the place of the amount there
    rising = home_with(Money(NOON, (one,), 0.0, ()), {one.account: points[:4]})
    assert rising.texts("high") + rising.texts("text") == ["+20.00 USD"]


@cases(
    ("before", "says"),
    [
        (TradeTotals(), "No trade is closed yet."),
        (TradeTotals(5, 3, profit=20.0),
         "No trade is closed since the warm-up, whose 5 trades came to +20.00 USD."),
    ],
)  # fmt: skip
def test_an_account_without_a_trade_is_one_line(
    traded: PageContext, home_with: HomeWith, before: TradeTotals, says: str
) -> None:
    page = home_with(Money(NOON, (account_of(traded.money(), warm_up=before),), 0.0, ()), {})
    assert not page.elements("hero-number") and not page.elements("money-line")
    assert f"{says} All results" in page.text


@pytest.mark.parametrize("query", ["today", "week", "all", "<b>"])
def test_the_line_is_the_one_of_the_account(traded: PageContext, query: str) -> None:
    page = read(traded, f"?line={query}")
    period = query if query in home.PERIODS else "today"
    account = home.accounts_shown(traded.money())[0]
    (line,) = page.elements("result")
    points = traded.money_lines(period)[account.account]
    assert str(line.attributes["d"]).count("L") == len(points) - 1
    chosen = [a.attributes["href"] for a in page.elements("a") if a.attributes.get("aria-current")]
    assert f"/?line={period}" in chosen


def test_an_order_that_is_out_is_at_risk(traded: PageContext, home_with: HomeWith) -> None:
    out = account_of(traded.money(), open=OpenNow(orders=1, risk=47.0, risk_r=1.0))
    empty = account_of(traded.money(), account="torra_files main")
    page = home_with(Money(NOON, (empty, out), 0.0, ()), {})
    assert page.texts("tile-number")[0] == (
        "47.00 USD 1.00 R, if every stop is hit at its price; 1 order out included"
    )
    unknown = replace(out, open=OpenNow(orders=1))
    page = home_with(Money(NOON, (unknown,), 0.0, ()), {})
    assert page.texts("tile-number")[0].startswith(figures.DASH)


@cases(
    ("lost", "width", "says"),
    [
        (0.0, "0.0", "Day's loss cap: 200.00 of 200.00 left."),
        (-50.0, "0.0", "Day's loss cap: 200.00 of 200.00 left."),
        (50.0, "25.0", "Day's loss cap: 150.00 of 200.00 left."),
        (200.0, "100.0", "The day's loss cap of 200.00 is reached: nothing opens until midnight"),
        (350.0, "100.0", "The day's loss cap of 200.00 is reached"),
    ],
)
@cases("warmed", [0.0, -48.57])
def test_the_room_is_what_the_smallest_cap_leaves(
    home_with: HomeWith, lost: float, width: str, says: str, warmed: float
) -> None:
    caps = (DayCap("default", 200.0), DayCap("wide", 900.0))
    page = home_with(Money(NOON, (), lost, caps, warmed), {})
    assert says in page.text
    assert page.elements("meter", "main") and page.elements("fill", "main")[0].attributes[
        "width"
    ] == width  # fmt: skip
    assert ("The warm-up's −48.57 of today counts." in page.text) == bool(warmed)
    assert "Nothing" in page.texts("tile-number")[0] and not page.elements("money")


@pytest.mark.journey
def test_pages_over_a_view_know_no_money_and_show_none() -> None:
    page = get("/")
    assert not page.elements("money")
    assert "Result today" not in page.text and "At risk now" not in page.text


# --- a symbol -------------------------------------------------------------------------------------


def symbol(**more: Any) -> OverviewSymbol:
    known = {"instance": "BTCUSD", "timeframes": ["M15", "H1"], "digits": 2, "thresholds": LEVELS}
    return view_value(OverviewSymbol, {**known, **more})


def tile(**more: Any) -> Page:
    return page_of(overview=Overview(instances=(symbol(**more),)))


@cases(
    ("consensus", "says"),
    [
        (0.23, "0.27 short of buy"),
        (-0.1, "0.40 short of sell"),
        (0.58, "past buy by 0.08"),
        (-0.5, "past sell by 0.00"),
        (None, ""),
    ],
)
def test_a_tile_tells_how_far_a_verdict_is(consensus: float | None, says: str) -> None:
    tick = None if consensus is None else tick_record(consensus=consensus, thresholds=LEVELS)
    assert tile(latest=tick).texts("scale") == [" ".join(f"sell {says} buy".split())]


def test_a_distance_is_by_the_thresholds_of_the_tick_on_every_page() -> None:
    """The profile asks for 0.5 since; the tick ran with 0.35 and 0.2."""
    tick = tick_record(consensus=-0.11, thresholds={"buy": 0.35, "sell": 0.2})
    known: dict[str, Any] = {"latest": tick, "thresholds": LEVELS}
    pages = {
        "home": tile(**known),
        "row": page_of("/symbols", overview=Overview(instances=(symbol(**known),))),
        "symbol": page_of(
            "/symbol/BTCUSD/M15", symbol=made_symbol(instance="BTCUSD", **known)
        ),
    }  # fmt: skip
    assert pages["home"].texts("scale") == ["sell 0.09 short of sell buy"]
    for page in pages.values():
        assert "0.090 short of the SELL threshold −0.20" in page.text
    for name in ("home", "symbol"):
        assert ends(pages[name]) == [(67.5, 32.5), (0.0, 40.0)]
    assert ends(tile()) == [(75.0, 25.0), (0.0, 25.0)]
    assert sum(width for _, width in ends(tile(thresholds=None))) == 0.0


def ends(page: Page) -> list[tuple[float, float]]:
    """Return where the ends of a bar begin that lie past a threshold, and their widths."""
    zones = [zone.attributes for zone in page.elements("zone")]
    return [(float(str(zone["x"])), float(str(zone["width"]))) for zone in zones]


@cases(
    ("side", "profit", "tone"),
    [("BUY", -23.34, "down"), ("SELL", 23.34, "up"), ("BUY", 0.0, "flat"), ("SELL", None, "")],
)
@cases("address", ["/", "/symbols"])
def test_money_has_the_colour_of_its_sign_and_the_side_has_none(
    side: str, profit: float | None, tone: str, address: str
) -> None:
    position = Position(
        "BTCUSD", "BTCUSD", OPENS[side], 0.1, 100.0, 90.0, 120.0, NOON, "T1", "FILLED"
    )
    held = PositionValue(position, None if profit is None else CloseValue(100.0, profit, 0.0))
    page = page_of(address, overview=Overview(instances=(symbol(holding=held, currency="USD"),)))
    glyph = "▲ LONG" if side == "BUY" else "▼ SHORT"
    (shown,) = [
        one for tag in ("strong", "span") for one in page.elements(tag, "i0")
        if one.text == f"{glyph} 0.10 at 100.00"
    ]  # fmt: skip
    assert shown.tone is None
    gains = [one for one in page.elements("num", "i0") if "USD" in one.text]
    written = f"{figures.format_signed(profit, 2)}\u00a0USD, 0.00\u00a0R"
    assert [(one.text, one.tone) for one in gains] == [(written, tone)] * (profit is not None)


def test_no_side_of_a_trade_has_a_colour_on_any_page(traded: PageContext) -> None:
    pages = demo_orders.visit(traded, "read")
    for address, side in (
        ("/symbol/EURUSD/H1", "▲ LONG"), ("/orders?stage=closed", "▲ BUY"), ("/orders", "▲ LONG"),
    ):  # fmt: skip
        text = pages.get(address).text
        assert re.findall(rf'data-tone="(\w*)">{side}</span>', text), address
        assert not any(re.findall(rf'class="mark" data-tone="(\w*)">{side}</span>', text)), address


def test_price_and_change_are_since_the_day_before() -> None:
    price, change, *_ = tile(price=102.0, day_close=100.0).elements("num", "i0")
    assert (price.text, change.text, change.tone) == ("102.00", "+2.00 %", "up")
    assert "%" not in "".join(tile(price=102.0).texts("num", "i0"))
    assert tile().texts("price") == [figures.DASH]


def test_trades_are_marked_at_the_bar_in_which_they_were_made() -> None:
    bars = [
        {"time": f"2026-05-01T10:{minute:02d}:00Z", "open": 1.0, "high": 3.0, "low": 0.5,
         "close": 2.0}
        for minute in (0, 15, 30)
    ]  # fmt: skip
    marks = [
        {"at": "2026-05-01T10:16:30Z", "side": "BUY", "what": "open"},
        {"at": "2026-05-01T10:30:00Z", "side": "BUY", "what": "close"},
        {"at": "2026-05-01T09:00:00Z", "side": "SELL", "what": "open"},
        {"at": "no time", "side": "SELL", "what": "open"},
    ]
    drawn = home.candles(symbol(bars=bars, marks=marks))
    assert drawn.bought.startswith("M15 ") and drawn.left.startswith("M22 ")
    assert drawn.sold == ""


def test_the_five_words_lead_to_every_page() -> None:
    page = get("/help")
    current = [a["href"] for a in page.all("a") if a.get("aria-current") == "true"]
    assert current == ["/health"], "the room of the page, by its first one"
    (here,) = [a for a in page.all("a") if a.get("aria-current") == "page"]
    assert here["href"] == "/help"
