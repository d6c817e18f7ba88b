"""The pages: every state shown, nothing invented, nothing changed, hostile text stays text."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agents.contracts import VECTORS
from tests.cases import cases
from tests.doubles.page_reader import Page, client, get, page_of, tick_text
from tests.doubles.visitors import ACCESS, open_app
from tests.worlds.demo_view import SOURCES, ScriptedView, bars
from tests.worlds.records import quiet, shown_tick
from tests.worlds.values import made_symbol
from torra.config import ROOT
from torra.dashboard.app import HEADERS, create_app
from torra.dashboard.record import arithmetic, reasoning
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.streams import chart_data, skips
from torra.dashboard.view.desk_values import ChartBars, Skip
from torra.exhibits import figures
from torra.words.ticks import BADGES

TICK_TIMES = [bar["time"] for bar in bars("BTCUSD", "M15")]
TICKS = {source: TICK_TIMES[-1 - back] for back, source in enumerate(SOURCES)}


# --- every page is a sound document ---


@cases(
    "address",
    ["/", "/healthz", "/api/v1/overview", "/nope", "/assets/torra.css", "/favicon.ico"],
)
def test_every_answer_has_the_security_headers(address: str) -> None:
    answer = client().get(address, buffered=True)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    kept = "no-cache" if address.startswith(("/assets", "/favicon")) else "no-store"
    assert answer.headers["Cache-Control"] == kept
    assert "Set-Cookie" not in answer.headers


# --- read-only, this machine only ---


@cases("address", ["/assets/live.js", "/favicon.ico"])
def test_a_file_is_read_alone_and_by_our_own_names(address: str) -> None:
    assert client().get(address, headers={"Host": "evil.test"}, buffered=True).status_code == 400
    for method in ("POST", "DELETE", "OPTIONS"):
        assert client().open(address, method=method, buffered=True).status_code == 405


def test_a_configured_name_may_ask() -> None:
    app = open_app(ScriptedView(), trusted_hosts=["desk.internal"]).test_client()
    assert app.get("/", headers={"Host": "desk.internal:8443"}).status_code == 200
    assert app.get("/", headers={"Host": "other.internal"}).status_code == 400


def test_anybody_gets_the_icon_and_it_is_sent_once() -> None:
    stranger = create_app(ScriptedView(), access=ACCESS).test_client()
    answer = stranger.get("/favicon.ico", buffered=True)
    assert (answer.status_code, answer.mimetype) == (200, "image/svg+xml")
    assert answer.data == (ROOT / "static" / "torra.svg").read_bytes()
    known = {"If-None-Match": answer.headers["ETag"]}
    assert stranger.get("/favicon.ico", headers=known, buffered=True).status_code == 304
    assert stranger.get("/assets/torra.svg", buffered=True).data == answer.data


# --- the same figures with and without scripts ---


@pytest.mark.parametrize(
    ("address", "live"), [("/", True), ("/symbols", True), ("/symbol/EURUSD/H1", True),
                          ("/help", False)],
)  # fmt: skip
def test_a_page_renews_itself_or_what_surrounds_it(address: str, live: bool) -> None:
    def parts(page: Page) -> set[str | None]:
        return {tag["data-part"] for _, tag in page.tags if "data-part" in tag}

    page, frame = get(address), get("/frame")
    (main,) = page.all("main")
    assert main.get("data-frame") == (None if live else "/frame")
    assert parts(page) - parts(frame) == ({"main"} if live else set())
    assert parts(frame) <= parts(page)


def test_a_page_can_be_frozen_and_their_state_is_announced() -> None:
    page = get("/")
    (button,) = [one for one in page.all("button") if one.get("class") != "term"]
    assert button["id"] == "live-freeze"
    assert button["aria-pressed"] == "false"
    assert any(a.get("id") == "live-state" and a.get("role") == "status" for a in page.all("span"))


# --- states of the desk ---


STATES = ("stopped", "reducing", "halted", "busy", "unheard", "blocked")
"""States of the desk that have a banner on every page, in the order of the banners."""


@pytest.mark.parametrize("state", [*STATES, "demo", "live"])
def test_a_banner_tells_the_state(state: str) -> None:
    """The frame is what surrounds every page."""
    page = get("/frame", state)
    banners = [one for one in page.all("p") if str(one.get("class")).startswith("banner ")]
    shown = [name for name, one in zip(STATES, banners, strict=True) if "hidden" not in one]
    assert shown == ([state] if state in STATES else [])
    (chip,) = [one for one in page.all("span") if one.get("class") == "chip demo"]
    assert ("hidden" in chip) == (state != "demo")
    assert ("DEMO" in page.text.split("Skip to the figures")[0]) == (state == "demo")


def test_the_reason_of_an_action_is_a_sentence() -> None:
    reasons = {row[5] for row in get("/symbol/BTCUSD/M15").rows if len(row) == 7}
    assert "THRESHOLD" not in reasons
    assert any(
        re.fullmatch(r"0\.\d{3} short of the SELL threshold −0\.50", text) for text in reasons
    )
    assert reasoning.why(shown_tick({"reason": "POSITION_HELD"})) == "The open position stays"
    assert reasoning.why(shown_tick({"reason": "a host's own words"})) == "a host's own words"


def test_a_listed_tick_is_judged_by_its_own_thresholds() -> None:
    newest: dict[str, Any] = {"instance": "BTCUSD", "thresholds": {"buy": 0.1, "sell": 0.1}}
    tick = {"bar_time": TICK_TIMES[-1], "consensus": -0.34, "verdict": "HOLD", "action": "HOLD",
            "reason": "THRESHOLD", "thresholds": {"buy": 0.5, "sell": 0.5}}  # fmt: skip
    ticks = [tick, {**tick, "bar_time": TICK_TIMES[-2], "thresholds": None}]
    page = page_of("/symbol/BTCUSD/M15", symbol=made_symbol(**newest, ticks=ticks))
    assert [row[5] for row in page.rows if len(row) == 7][1:] == [
        "0.160 short of the SELL threshold −0.50",
        "between the thresholds of its time",
    ]


@cases(
    ("consensus", "words"),
    [
        (0.31, "+0.310 is 0.190 short of the BUY threshold +0.50"),
        (-0.2, "−0.200 is 0.300 short of the SELL threshold −0.50"),
        (0.4999, "+0.49990 is 0.00010 short of the BUY threshold +0.50"),
        (0.5, "+0.50000 reaches the BUY threshold +0.50"),
        (-0.71, "−0.710 reaches the SELL threshold −0.50"),
    ],
)
def test_the_headline_tells_which_side_of_a_threshold(consensus: float, words: str) -> None:
    record = {"consensus": consensus, "thresholds": {"buy": 0.5, "sell": 0.5}}
    assert words in reasoning.headline(shown_tick(record))


def test_a_closed_market_is_no_failure() -> None:
    page = get("/", "weekend")
    badge = {"class": "badge", "data-tone": "flat", "title": skips.NO_BARS}
    assert badge in page.all("span")
    run = "6 closes skipped, no_bar: from 2021-12-01 10:30 UTC to 2021-12-01 11:45 UTC"
    note = "M15: no new bars since 2021-12-01 10:30 UTC, market closed or a gap"
    assert page.texts("skipnote", "i0") == [note]
    symbol = get("/symbol/BTCUSD/M15", "weekend")
    assert note in symbol.text
    first, second = [row for row in symbol.rows if len(row) == 7][1:3]
    assert (first[0], first[5]) == ("2021-12-01 11:45 UTC", run)
    assert second[1] == "■ HOLD"


def test_health_is_well_while_the_market_is_closed() -> None:
    class Weekend(ScriptedView):
        def overview(self) -> Any:
            data = super().overview()
            instances = [
                replace(
                    one,
                    streams=[
                        replace(stream, stale=stream.stale and stream.timeframe == "M15")
                        for stream in one.streams
                    ],
                )
                for one in data.instances
            ]
            return data._replace(instances=instances)

    answer = open_app(Weekend("weekend")).test_client().get("/healthz").json
    assert answer["status"] == "ok"
    assert [(s["stale"], s["no_bars"]) for s in answer["streams"]][:2] == [
        (False, True),
        (False, False),
    ]


def test_only_runs_of_one_reason_are_folded() -> None:
    reasons = ["no_bar", "no_bar", "stale", None, "no_bar", None, None]
    events = [
        Skip(bar_time, reason) if reason else ListedTick(bar_time=bar_time)
        for n, reason in enumerate(reasons)
        for bar_time in (f"2021-12-01T{20 - n}:00:00Z",)
    ]
    folded = skips.fold(events)
    assert [getattr(event, "count", None) for event in folded] == [2, 1, None, 1, None, None]
    first, second, *_ = folded
    assert isinstance(first, Skip) and isinstance(second, Skip)
    assert skips.text(first, "H1") == (
        "2 closes skipped, no_bar: from 2021-12-01 20:00 UTC to 2021-12-01 21:00 UTC"
    )
    assert skips.text(second, "H1") == "skipped, stale"
    ticks = [event for event in events if isinstance(event, ListedTick)]
    assert [event for event in folded if isinstance(event, ListedTick)] == ticks


def test_a_close_tells_the_profit_of_what_it_closed() -> None:
    trade = {
        "sid": "T1", "kind": "open", "state": "CLOSED", "price": 12.0, "opened_at": None,
        "detail": "", "close_price": 9.0, "closed_at": None, "close_reason": "", "profit": -3.0,
        "r_multiple": -1.0,
    }  # fmt: skip
    row = {**trade, "sid": "C1", "kind": "close", "state": "FILLED", "profit": None}
    row |= {"closed": trade}
    for state, profit in (("FILLED", "−3.00"), ("CANCELLED", "—")):
        record = {"signals": [{"sid": "C1"}], "outcomes": {"C1": {**row, "state": state}}}
        page = Page(tick_text(quiet(record)))
        (told,) = [r for r in page.rows if r[:2] == ["C1", state]]
        assert told[7] == profit


def test_a_skipped_tick_has_its_row_and_its_page() -> None:
    page = get("/symbol/BTCUSD/M15")
    _, first, *_ = [row for row in page.rows if len(row) == 7]
    assert first[1:3] == [figures.DASH] * 2
    assert first[4] == "· skipped"
    links = [str(a.get("href")) for a in page.all("a")]
    # the newest tick of all has a link above the list
    _, link, *_ = [link for link in links if link.startswith("/symbol/BTCUSD/M15/")]
    own = get(link)
    assert "This tick was skipped" in own.text
    assert "the newest bar closed 3 bars ago" in own.text


@cases("source", SOURCES)
def test_each_source_type_explains_itself(source: str) -> None:
    page = get(f"/symbol/BTCUSD/M15/{TICKS[source]}")
    assert BADGES[source].text in page.text
    assert BADGES[source].meaning in page.text
    assert "every step comes out as stored" in page.text
    expected = {
        "AGENT_PARTIAL": "Failed: timeout: no answer within 6.75 s",
        "L1_ONLY": "did not answer; the rules stand",
        "AGENT_SKIPPED": "No agent was asked on this tick",
        "AGENT_FULL": "Abstained: nothing speaks against it",
        "LEGACY": "Chart scorer",
        "AGENT_BUDGET": "Its own ruling: multiplier 0.560",
    }
    assert expected[source] in page.text


def test_errors_are_our_own_pages_and_tell_nothing_away(caplog: pytest.LogCaptureFixture) -> None:
    assert "There is no such page" in get("/nope", status=404).text
    for address in ("/symbol/NOPE", "/symbol/BTCUSD/M7", "/symbol/BTCUSD/M15/yesterday"):
        get(address, status=404)
    get("/symbol/BTCUSD/M15/2019-01-01T00:00:00Z", status=404)
    get("/symbol/BTCUSD/M15/0001-01-01T00:00:00+14:00", status=404)
    with caplog.at_level(logging.ERROR, "torra.dashboard"):
        assert "torra doctor" in get("/", "broken", status=503).text
        page = get("/", "failing", status=500)
    assert "nobody foresaw" not in page.text
    assert "Traceback" not in page.text
    assert "nobody foresaw" in caplog.text
    answer = client("broken").get("/api/v1/overview")
    assert (answer.status_code, answer.json["status"]) == (503, 503)
    assert client("broken").get("/healthz").status_code == 503
    assert client().get("/api/v1/nope").json["status"] == 404


# --- the reasoning of a tick ---


def numbers(row):
    return [
        float(text.replace(figures.MINUS, "-")) if text.strip() not in ("", "—") else None
        for text in row
    ]


def rows_named(page, name):
    return [row for row in page.rows if row and row[0].strip().startswith(name)]


@pytest.mark.parametrize("source", ["AGENT_BUDGET", "AGENT_PARTIAL", "AGENT_FULL"])
def test_a_person_can_recompute_the_tick_from_the_page(source: str) -> None:
    page = get(f"/symbol/BTCUSD/M15/{TICKS[source]}")
    step = {
        name: numbers(rows_named(page, f"{name} ")[-1][1:])
        for name in (
            "L1 score", "Analyst average", "Debate", "Gate multiplier", "Adjustment", "Agent score",
            "Blended score", "Weight", "Contribution",
        )
    }  # fmt: skip
    bull = [row for row in rows_named(page, "Bull researcher") if "k a" in row[0]]
    bear = [row for row in rows_named(page, "Bear researcher") if "k a" in row[0]]
    for index, _ in enumerate(VECTORS):
        average, debate = step["Analyst average"][index], step["Debate"][index]
        shift = 0.0
        if bull and bear:
            shift = (numbers(bull[0][1:])[index] + numbers(bear[0][1:])[index]) / 2
        assert debate == pytest.approx(average + shift, abs=2e-5)
        adjusted = debate * step["Gate multiplier"][index]
        assert step["Adjustment"][index] == pytest.approx(adjusted, abs=2e-5)
        moved = step["L1 score"][index] + step["Adjustment"][index]
        assert step["Agent score"][index] == pytest.approx(moved, abs=2e-5)
        blend = 0.8 * step["L1 score"][index] + 0.2 * step["Agent score"][index]
        assert step["Blended score"][index] == pytest.approx(blend, abs=2e-5)
    weights = step["Weight"]
    composite = sum(w * s for w, s in zip(weights, step["Blended score"], strict=True)) / sum(
        weights
    )
    assert sum(step["Contribution"]) == pytest.approx(composite, abs=5e-5)
    assert numbers(rows_named(page, "Composite sum of")[0][1:]) == [
        pytest.approx(composite, abs=5e-5)
    ]
    final = [row for row in page.rows if row and row[0].strip() == "Consensus"]
    shares = [
        numbers([row[4]])[0] for row in page.rows if len(row) == 6 and row[5].strip() == "fresh"
    ]
    assert sum(shares) == pytest.approx(numbers([final[0][1]])[0], abs=3e-5)


@cases(
    ("damage", "named"),
    [
        (lambda r: r["agents"].update(momentum=0.9), "agent score of momentum"),
        (lambda r: r["scores"]["structure"].update(score=0.9), "blend of structure"),
        (lambda r: r["adjustments"].update(key_levels=0.2), "adjustment of key levels"),
        (lambda r: r["deliberation"]["debate"].update(momentum=0.29), "debate of momentum"),
        (lambda r: r.update(composite=0.9), "composite"),
        (lambda r: r.update(consensus=0.9), "consensus"),
    ],
)
def test_a_step_that_does_not_come_out_is_named(damage: Callable[..., Any], named: str) -> None:
    record = ScriptedView().tick("BTCUSD", "M15", TICKS["AGENT_BUDGET"])
    assert arithmetic.failed_checks(shown_tick(record)) == []
    damaged = json.loads(json.dumps(record))
    damage(damaged)
    assert named in arithmetic.failed_checks(shown_tick(damaged))


def test_nobody_heard_is_a_dash_and_no_zero() -> None:
    page = get(f"/symbol/BTCUSD/M15/{TICKS['L1_ONLY']}")
    for name in ("Analyst average", "Debate"):
        assert numbers(rows_named(page, f"{name} ")[0][1:5]) == [None] * 4
    page = get(f"/symbol/BTCUSD/M15/{TICKS['AGENT_BUDGET']}")
    assert numbers(rows_named(page, "Technical k a")[0][1:5])[1] is None


# --- the chart ---


def test_verdicts_that_were_held_back_are_marked_once() -> None:
    ticks = [
        {"bar_time": f"2021-12-01T0{hour}:00:00Z", "verdict": verdict, "action": "HOLD"}
        for hour, verdict in enumerate(["HOLD", "BUY", "BUY", "HOLD", "SELL"])
    ]
    markers = chart_data.chart(made_symbol("H1", ticks=ticks), ChartBars())["markers"]
    assert [marker["kind"] for marker in markers] == ["BUY", "SELL"]


# --- hostile text ---


def test_python_never_switches_escaping_off() -> None:
    for path in (ROOT / "torra" / "dashboard").rglob("*.py"):
        assert not re.search(r"Markup|autoescape|render_template_string", path.read_text("utf-8"))


def test_one_glance_is_light() -> None:
    sheet = ROOT / "static" / "torra.css"
    assert sheet.stat().st_size < 18_000
    assert "prefers-reduced-motion" in sheet.read_text(encoding="utf-8")
    assert len(client().get("/").data) < 60_000
