"""The pages in a browser: figures refresh in place, the chart draws, nothing breaks the policy.

Needs Chromium (or its kin) on this machine; TORRA_CHROMIUM names another binary. Skipped without.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading

import pytest
from demo_view import ScriptedView
from flask import Response, request
from visitors import open_app

from torra.dashboard.server import open_server

NAMES = ("chromium-headless-shell", "chromium", "google-chrome", "msedge")
BROWSER = os.environ.get("TORRA_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
SWITCHES = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--virtual-time-budget=12000", "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")


class ChangingView(ScriptedView):
    """Shows one state to the first question and another from then on."""

    def __init__(self, first, later):
        super().__init__(first)
        self.later = later
        self.asked = 0

    def desk(self):
        self.asked += 1
        if self.asked > 1:
            self.state = self.later
        return super().desk()


@pytest.fixture
def look(tmp_path):
    """Return the DOM and the console of a page of a view, some seconds after it was opened."""
    running = []

    def open_page(view, address, change=None, width=1366):
        app = open_app(view)
        if change:
            app.after_request(change)
        server = open_server(app, "127.0.0.1", 0)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        running.append((server, thread))
        url = f"http://127.0.0.1:{server.effective_port}{address}"
        done = subprocess.run(
            [BROWSER, *SWITCHES, f"--user-data-dir={tmp_path}", "--dump-dom",
             f"--window-size={width},900", url],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    yield open_page
    for server, thread in running:
        server.trigger.pull_trigger(server.close)
        thread.join(10)
        server.task_dispatcher.shutdown()


def text_of(dom, key):
    found = re.search(rf'<(\w+)[^>]*data-live="{re.escape(key)}"[^>]*>([^<]*)</\1>', dom)
    assert found, key
    return found[2]


def test_figures_change_in_place_while_the_page_is_open(look):
    dom, console = look(ChangingView("live", "halted"), "/")
    assert console == []
    assert "● live" in dom
    assert text_of(dom, "desk.trading") == "⊘ halted"
    assert re.search(r'data-live="desk.trading" data-tone="alert"', dom)
    assert re.search(r'<p class="banner alert" role="alert" data-live="banner.halted">', dom)
    assert not re.search(r'<button[^>]*id="live-pause"[^>]*hidden', dom)
    assert text_of(dom, "i0.s0.next") in ("due", *(f"0:0{n}" for n in range(6)))


def test_a_desk_that_no_longer_answers_is_said_to_be_stale(look):
    dom, _ = look(ChangingView("live", "broken"), "/")
    assert "stale: no answer from the desk" in dom
    assert 'data-connection="lost"' in dom
    assert text_of(dom, "i0.verdict") == "■ HOLD"


def test_the_chart_draws_under_the_strict_policy(look):
    dom, console = look(ScriptedView(), "/symbol/BTCUSD/M15")
    assert console == []
    assert dom.count("<canvas") > 3
    assert "standin" not in dom
    assert "tradingview.com" in dom


PROBE = """
const facts = [...document.querySelectorAll(".newest > div")];
document.body.dataset.rows = new Set(facts.map((fact) => fact.offsetTop)).size;
const { createChart, createSeriesMarkers, ...others } = window.LightweightCharts;
const watchedChart = (holder, options) => {
  document.body.dataset.scale = JSON.stringify(options.rightPriceScale);
  return createChart(holder, options);
};
const watchedMarkers = (...given) => {
  const markers = createSeriesMarkers(...given);
  const set = markers.setMarkers.bind(markers);
  markers.setMarkers = (list) => {
    const arrows = list.filter((marker) => marker.shape.startsWith("arrow"));
    document.body.dataset.bare = arrows.filter((marker) => !marker.text).length;
    document.body.dataset.told = arrows.filter((marker) => marker.text).length;
    set(list);
  };
  return markers;
};
window.LightweightCharts = {
  ...others, createChart: watchedChart, createSeriesMarkers: watchedMarkers,
};
"""
"""Goes before the chart's module and watches what that asks of the library."""


def test_the_newest_tick_is_one_row_and_nothing_of_the_chart_is_cut(look):
    def probe(response: Response) -> Response:
        if request.path.endswith("/chart.js"):
            response.direct_passthrough = False
            response.set_data(PROBE.encode() + response.get_data())
        return response

    dom, console = look(ScriptedView("weekend"), "/symbol/BTCUSD/M15", probe, width=1280)
    assert console == []
    found = dict(re.findall(r'data-(rows|scale|bare|told)="([^"]*)"', dom))
    assert found["rows"] == "1"
    assert "&quot;entireTextOnly&quot;:true" in found["scale"]
    assert int(found["told"]) > 3  # in the middle of the chart
    assert int(found["bare"]) > 0  # at its left edge or beyond


def test_the_browser_would_tell_of_a_breach(look):
    """The console is read rightly: a page that breaks the policy is seen to."""

    def spoil(response: Response) -> Response:
        if response.mimetype == "text/html":
            response.set_data(response.get_data() + b"<script>document.title = 'in'</script>")
        return response

    dom, console = look(ScriptedView(), "/help", spoil)
    assert console
    assert "<title>in</title>" not in dom


def test_a_model_cannot_run_a_script(look):
    view = ScriptedView()
    newest = view.symbol("BTCUSD", "M15", 5)["latest"]["bar_time"]
    dom, console = look(view, f"/symbol/BTCUSD/M15/{newest}")
    assert console == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in dom
