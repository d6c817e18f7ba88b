"""The pages in a browser: figures refresh in place, the chart draws, nothing breaks the policy.

Time within a page is the browser's own and is moved on where a test waits for a later refresh.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Response, request
from playwright.sync_api import Browser

from tests.doubles.browser import Site, Visit, needs_browser
from tests.doubles.visitors import open_app
from tests.worlds.demo_view import ScriptedView, bars

pytestmark = needs_browser

REFRESH = 3_000
"""Milliseconds between two refreshes of a page."""


class ChangingView(ScriptedView):
    """Shows one state until the first page is there, and another from then on."""

    def __init__(self, first, later) -> None:
        super().__init__(first)
        self.later = later
        self.asked = 0

    def desk(self):
        self.asked += 1
        if self.asked > 2:  # the server was asked once before the page
            self.state = self.later
        return super().desk()


@pytest.fixture
def look(browser: Browser) -> Iterator[Callable[..., Any]]:
    """Open a page of a view; what goes wrong on it fails the test."""
    with contextlib.ExitStack() as open_things:

        def open_page(view, address, change=None, width=1366):
            app = open_app(view)
            if change:
                app.after_request(change)
            site = open_things.enter_context(Site(app))
            screen = {"width": width, "height": 900}
            visit = open_things.enter_context(Visit(browser, screen=screen))
            visit.page.clock.install()
            visit.page.goto(site.url + address)
            return visit

        yield open_page


TRADING = ".chip [data-current]"
"""The trading state, above every page."""


def test_figures_change_in_place_while_the_page_is_open(look: Callable[..., Any]) -> None:
    page = look(ChangingView("live", "halted"), "/").page
    page.wait_for_selector(f"{TRADING}[data-tone='alert']")
    assert page.inner_text("#live-state") == "● live"
    assert page.inner_text(TRADING) == "⊘ halted"
    assert page.is_visible("#trading-halted[role='alert']")
    assert page.is_hidden("#live-freeze")
    page.click("#more summary")
    assert page.inner_text("#live-freeze") == "Freeze page"
    assert page.inner_text(".frames [data-countdown]") in ("due", *(f"0:0{n}" for n in range(6)))


HOLD_ON = """() => {
  document.addEventListener("torra:renewed", () => (document.body.dataset.renewed = "yes"));
  const scores = document.getElementById("scores-i0");
  scores.open = true;
  scores.querySelector("summary").focus();
  window.scrollTo(0, 200);
  window.place = scores.getBoundingClientRect().top;
  window.before = [...document.querySelectorAll("#i0 *")];
  window.changed = 0;
  const count = (changes) => (window.changed += changes.length);
  new MutationObserver(count).observe(document.querySelector("#i0 .candles"), {
    attributes: true, childList: true, subtree: true,
  });
  document.dispatchEvent(new CustomEvent("torra:command"));
}"""


def test_a_refresh_changes_only_what_changed_and_keeps_the_rest(look: Callable[..., Any]) -> None:
    view = ScriptedView("live")
    page = look(view, "/").page
    page.wait_for_selector("[data-connection=live]")
    view.state = "halted"
    page.evaluate(HOLD_ON)
    page.wait_for_selector("[data-renewed]")
    assert page.inner_text(TRADING) == "⊘ halted"
    assert page.evaluate("document.activeElement.parentElement.id") == "scores-i0"
    assert page.evaluate("document.getElementById('scores-i0').open")
    place = "document.getElementById('scores-i0').getBoundingClientRect().top"
    assert abs(page.evaluate(f"{place} - window.place")) < 1, "it is read where it was"
    assert page.evaluate("window.changed") == 0, "the small chart is the same"
    assert page.evaluate("window.before.every((one) => one.isConnected)")


def test_a_desk_that_no_longer_answers_is_said_to_be_stale(look: Callable[..., Any]) -> None:
    visit = look(ChangingView("live", "broken"), "/")
    page = visit.page
    for _ in range(4):
        page.clock.run_for(REFRESH)
        page.wait_for_timeout(50)
    page.wait_for_selector("[data-connection='lost']")
    assert "stale: no answer from the desk" in page.inner_text("#live-state")
    assert page.inner_text("#i0 .pill") == "■ HOLD"
    assert visit.forgive("503", "/")


def test_the_chart_draws_under_the_strict_policy(look: Callable[..., Any]) -> None:
    page = look(ScriptedView(), "/symbol/BTCUSD/M15").page
    page.wait_for_selector("#chart canvas")
    assert page.locator("canvas").count() > 3
    assert page.locator(".standin").count() == 0
    assert page.locator("a[href='https://www.tradingview.com/']").count() > 0


PROBE = """
const seen = { rows: new Set() };
window.seen = seen;
const facts = [...document.querySelectorAll(".newest > div")];
seen.rows = new Set(facts.map((fact) => fact.offsetTop)).size;
const { createChart, createSeriesMarkers, ...others } = window.LightweightCharts;
const watchedChart = (holder, options) => {
  seen.scale = options.rightPriceScale;
  return createChart(holder, options);
};
const watchedMarkers = (...given) => {
  const markers = createSeriesMarkers(...given);
  const set = markers.setMarkers.bind(markers);
  markers.setMarkers = (list) => {
    const arrows = list.filter((marker) => marker.shape.startsWith("arrow"));
    seen.bare = arrows.filter((marker) => !marker.text).length;
    seen.told = arrows.filter((marker) => marker.text).length;
    set(list);
  };
  return markers;
};
window.LightweightCharts = {
  ...others, createChart: watchedChart, createSeriesMarkers: watchedMarkers,
};
"""
"""Goes before the chart's module and watches what that asks of the library."""


def test_the_newest_tick_is_one_row_and_nothing_of_the_chart_is_cut(
    look: Callable[..., Any],
) -> None:
    def probe(response: Response) -> Response:
        if request.path.endswith("/chart.js"):
            response.direct_passthrough = False
            response.set_data(PROBE.encode() + response.get_data())
        return response

    page = look(ScriptedView("weekend"), "/symbol/BTCUSD/M15", probe, width=1280).page
    page.wait_for_selector("#chart canvas")
    page.clock.run_for(REFRESH)
    found = page.evaluate("window.seen")
    assert found["rows"] == 1
    assert found["scale"]["entireTextOnly"]
    assert found["bare"] > 3
    assert found["told"] == 0  # a text would lie on candles and on other markers


def test_the_browser_would_tell_of_a_breach(look: Callable[..., Any]) -> None:
    """The console is read rightly: a page that breaks the policy is seen to."""

    def spoil(response: Response) -> Response:
        if response.mimetype == "text/html":
            response.set_data(response.get_data() + b"<script>document.title = 'in'</script>")
        return response

    visit = look(ScriptedView(), "/help", spoil)
    assert visit.page.title() != "in"
    assert visit.forgive("console: *script-src*", "/help", "")


def test_a_browser_would_tell_of_a_request_elsewhere_and_of_an_exception(
    look: Callable[..., Any],
) -> None:
    visit = look(ScriptedView(), "/help")
    visit.page.evaluate(
        """() => {
          addEventListener("spoil", () => { throw new Error("spoilt"); });
          dispatchEvent(new Event("spoil"));
        }"""
    )
    visit.page.evaluate("fetch('http://elsewhere.test/').catch(() => {})")
    visit.page.wait_for_timeout(50)
    assert visit.forgive("exception: spoilt")
    assert visit.forgive("console: *http://elsewhere.test/*", "/help", "")


def test_what_is_forgiven_is_forgiven_at_its_address_alone_and_whenever_it_comes(
    look: Callable[..., Any],
) -> None:
    visit = look(ScriptedView(), "/help")
    visit.forgive("404", "/none-*", "/nothing")
    for address in ("/none-at-all", "/nothing", "/nothing/else", "/healthz?none"):
        visit.page.evaluate("(address) => fetch(address)", address)
    with pytest.raises(AssertionError, match=r"^404 http://127\.0\.0\.1:\d+/nothing/else$"):
        visit.judge()
    visit.page.evaluate("fetch('/nothing')")
    assert visit.forgive("405", "/nothing") == []
    (told,) = visit.forgive("404", "/nothing")
    assert told.startswith("404 http://127.0.0.1:")


def test_a_browser_that_asks_for_an_icon_by_itself_gets_ours(look: Callable[..., Any]) -> None:
    visit = look(ScriptedView(), "/help")
    icon = """(async () => {
      const answer = await fetch("/favicon.ico");
      return [answer.status, answer.headers.get("Content-Type").split(";")[0]];
    })()"""
    assert visit.page.evaluate(icon) == [200, "image/svg+xml"]


def test_a_model_cannot_run_a_script(look: Callable[..., Any]) -> None:
    view = ScriptedView()
    newest = view.symbol("BTCUSD", "M15", 5).latest.bar_time
    page = look(view, f"/symbol/BTCUSD/M15/{newest}").page
    assert "<script>alert(1)</script>" in page.inner_text("main")
    call = page.locator("[data-load]").first
    call.evaluate("(one) => { one.parentElement.open = one.open = true; }")
    page.locator("[data-part=call] pre").first.wait_for(state="attached")
    assert not re.search(r"<script>alert", page.content())


def test_the_chart_of_a_tick_draws_what_its_arguments_cite(look: Callable[..., Any]) -> None:
    newest = bars("BTCUSD", "M15")[-1]["time"]
    page = look(ScriptedView("full"), f"/symbol/BTCUSD/M15/{newest}").page
    page.wait_for_selector("#chart canvas")
    assert page.is_visible("#chart-over")
    page.get_by_label("200-bar mean").check()
    page.get_by_label("Volume").check()
    assert page.inner_text("#chart-said") == ""
    assert page.locator("details.fold[open]").count() == 0
    page.click("#fold-debate > summary")
    assert page.is_visible("text=Who said what")


EDGES = """
const drawnLines = [];
window.edges = () => drawnLines.map((series) => {
  const { title, lastValueVisible } = series.options();
  const values = series.data().map((point) => point.value).filter((value) => value !== undefined);
  return [title, lastValueVisible, values.at(-1)];
});
const library = window.LightweightCharts;
window.LightweightCharts = {
  ...library,
  createChart: (...given) => {
    const chart = library.createChart(...given);
    const add = chart.addSeries.bind(chart);
    chart.addSeries = (kind, ...more) => {
      const series = add(kind, ...more);
      if (kind === library.LineSeries) drawnLines.push(series);
      return series;
    };
    return chart;
  },
};
"""
"""Goes before the chart's module and keeps the lines that it draws."""


@pytest.mark.journey
def test_both_edges_of_a_line_say_which_they_are(look: Callable[..., Any]) -> None:
    def probe(response: Response) -> Response:
        if request.path.endswith("/chart.js"):
            response.direct_passthrough = False
            # a block of its own: the module has names of its own
            response.set_data(b"{" + EDGES.encode() + b"}" + response.get_data())
        return response

    newest = bars("BTCUSD", "M15")[-1]["time"]
    page = look(ScriptedView("full"), f"/symbol/BTCUSD/M15/{newest}", probe).page
    page.wait_for_selector("#chart canvas")
    mean = "20-bar exponential mean"
    for line in (mean, "Bollinger bands", "Cloud", "Support, resistance", "Swings"):
        page.get_by_label(line).check()
    found = {title: value for title, shown, value in page.evaluate("window.edges()") if shown}
    assert "20" in found
    for low, high in (
        ("BB low", "BB high"),
        ("cloud bottom", "cloud top"),
        ("support", "resistance"),
        ("swing low", "swing high"),
    ):
        assert found[low] <= found[high], found
    turned = page.evaluate(
        "async () => (await import(new URL('lines.js', "
        "document.querySelector('script[src*=\"chart.js\"]').src))).titlesOf('cloud', "
        "[[1, 3], [2, 2]])"
    )
    assert turned == ["cloud top", "cloud bottom"]
    # the last resistance was broken long ago: it is none, and what is left below is a support
    broken = page.evaluate(
        "async () => (await import(new URL('lines.js', "
        "document.querySelector('script[src*=\"chart.js\"]').src))).titlesOf('levels', "
        "[[1, 3], [2, null]])"
    )
    assert broken == ["support", ""]


@pytest.mark.journey
def test_a_chart_scrolls_back_to_the_first_bar_and_no_farther(look: Callable[..., Any]) -> None:
    page = look(ScriptedView("full"), "/symbol/BTCUSD/M15").page
    page.wait_for_selector("#chart canvas")
    page.focus("#chart")
    for _ in range(2):  # the bars before the 300; then that there are no more
        with page.expect_response(lambda one: "/api/v1/bars/" in one.url):
            page.keyboard.press("Home")
        page.wait_for_selector("#chart:not([aria-busy])")  # a question at a time
    asked: list[str] = []
    page.on("request", lambda one: "/api/v1/bars/" in one.url and asked.append(one.url))
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    first = bars("BTCUSD", "M15")[0]["time"][:16].replace("T", " ")
    page.wait_for_function(
        "(at) => document.getElementById('chart-legend').textContent.includes(at)", arg=first
    )
    assert asked == []
