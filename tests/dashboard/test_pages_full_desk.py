"""The full desk on the pages: regime, events, news, abstentions, a degraded desk, the panel."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest
from pydantic import TypeAdapter

from agents.contracts import VECTORS
from agents.debate.scoring import Panel
from instance_database import Database
from tests.cases import cases
from tests.doubles.page_reader import Page, client, get
from tests.worlds.demo_full_desk import (
    ATTACK,
    ATTACKS,
    CASES,
    address_of,
    debate,
    record_of,
)
from tests.worlds.records import shown_tick, tick_record
from tests.worlds.values import view_value
from torra.clock import iso
from torra.config import DeskSettings, Instance, Profile
from torra.dashboard.record import agreement, arithmetic, reasoning, surroundings, vetoes
from torra.dashboard.record.shown import ListedTick
from torra.dashboard.streams import sources
from torra.dashboard.streams.tick_words import reason
from torra.dashboard.trade import why
from torra.dashboard.view.desk_values import OverviewSymbol
from torra.dashboard.view.desk_view import DatabaseView
from torra.dashboard.view.stream_reading import LISTED, OWN, StreamReading
from torra.evidence.news_digest import NewsItem, NewsStatus, NewsView, Weighted
from torra.evidence.scheduled_events import EventView, ScheduledEvent
from torra.exhibits import figures
from torra.harmless_text import HOSTILE
from torra.market.bar_anomalies import ANOMALIES
from torra.market.regime import REGIME_READS, TRIAGE_FLAGS
from torra.tick.record import _news
from torra.tick.tick_record import DebateRecord
from torra.words import market
from torra.words.ticks import CALENDAR


def page_of(case):
    return get(address_of(case), "desk")


@cases("case", CASES)
def test_every_step_and_the_panel_recompute(case: str) -> None:
    record = record_of(case)
    assert arithmetic.failed_checks(shown_tick(record)) == []
    assert "every step comes out as stored" in page_of(case).text


# --- regime and triage ---


def test_every_word_of_the_desk_has_its_meaning() -> None:
    assert set(CALENDAR) == set(get_args(get_type_hints(EventView)["status"]))
    assert set(market.TRIAGE) == {*TRIAGE_FLAGS, *ANOMALIES}
    assert set(record_of("whole")["regime"]["reads"]) == set(REGIME_READS)


# --- scheduled events ---


EVENTS = TypeAdapter(EventView)


def test_events_of_the_record_are_those_of_the_view() -> None:
    moment = datetime(2021, 12, 1, 10, 15, tzinfo=UTC)
    event = ScheduledEvent(moment.replace(hour=12, minute=0), "EUR", "high", "Rate decision")
    told = EVENTS.dump_python(EventView("available", to_next=105.0, events=(event,)), mode="json")

    def around(**events: Any) -> tuple[str, str]:
        record = shown_tick({"as_of": iso(moment), "events": {**told, **events}})
        return surroundings.next_event(record), surroundings.last_event(record)

    assert around() == ("in 1 h 45 min, EUR Rate decision", "none within a day")
    assert around(events=[])[0] == "in 1 h 45 min"
    told["events"][0]["time"], told["since_last"] = iso(moment), 0.0
    assert around(to_next=None) == ("none within a day", "at the close, EUR Rate decision")


# --- news ---


def test_why_there_is_no_news_is_told_in_plain_words() -> None:
    assert all(len(surroundings.NEWS[s]) > 12 for s in NewsStatus if s is not NewsStatus.AVAILABLE)


def test_news_of_the_record_are_those_of_the_store(tmp_path: Path) -> None:
    seen = datetime(2021, 12, 1, 10, 3, tzinfo=UTC)
    items = [
        NewsItem(str(n), "finnhub", "finnhub:forex", f"Headline <{n}>", seen, seen, 0.5, "macro")
        for n in range(3)
    ]
    found = tuple(Weighted(item, 0.25, 0.75) for item in items)
    record = {"news": _news(NewsView(NewsStatus.AVAILABLE, found, 3, 0.5, {"macro": (3, 0.5)}))}
    database = Database.open(tmp_path / "torra.db", now=lambda: seen)
    try:
        database.store_news(items[:2])
        desk = SimpleNamespace(setups={}, clock=None, active=True)
        view = DatabaseView(
            database, DeskSettings(instances=(Instance(symbol="EURUSD", timeframes=("H1",)),)), desk
        )
        record["headlines"] = json.loads(json.dumps(view._headlines(shown_tick(record))))
        assert view._headlines(shown_tick()) == []
    finally:
        database.close()
    assert record["headlines"][0] == json.loads(
        json.dumps({**asdict(items[0]), "published": "2021-12-01T10:03:00Z",
                    "first_seen": "2021-12-01T10:03:00Z"})
    )  # fmt: skip
    assert list(surroundings.headlines(shown_tick(record))) == ["0", "1"]


@pytest.mark.parametrize(
    "address",
    [
        "https://news.example.com/a?b=1&c=2#d",
        "https://NEWS.example.com:443/a",
        "https://xn--bcher-kva.example/x",
        "https://example.co",
    ],
)
def test_a_plain_https_address_is_linked(address: str) -> None:
    assert surroundings.linked_host(address) == re.match(r"https://([^/:]+)", address)[1].lower()


@cases(
    "address",
    [
        None, "", "http://news.example.com/", "javascript:alert(1)", "JAVASCRIPT:alert(1)",
        " https://news.example.com/", "https://news.example.com/\n", "https://a b.example.com/",
        "https:news.example.com", "https:///news.example.com", "https://",
        "data:text/html,<script>", "vbscript:x", "//news.example.com/x", "/symbol/BTCUSD",
        "https://good.example.com@evil.test/", "https://user:word@evil.test/",
        "https://good.example.com\\@evil.test/", "https://evil.test\\.good.example.com/",
        "https://127.0.0.1/", "https://[::1]/", "https://2130706433/", "https://0x7f.1/",
        "https://192.168.0.1/reboot", "https://localhost/", "https://localhost:5000/",
        "https://router.local/", "https://desk.internal/", "https://news.example.com:8443/",
        "https://news.example.com:99999/", "https://b\u00fccher.example/", "https://ex\u0430mple.com/",
        "https://news.example.com/\u202eexe", "https://-bad.example.com/", "https://a..example/",
        "https://example.com./", "https://news.example.com/" + "a" * 2000, "https://[bad/",
    ],
)  # fmt: skip
def test_anything_else_is_not_linked(address: str | None) -> None:
    assert surroundings.linked_host(address) == ""


def test_an_attack_in_a_headline_stays_text() -> None:
    raw = client("desk").get(address_of("attack")).text
    page = Page(raw)
    assert "<script>alert" not in raw
    assert "<img" not in raw
    assert not any(name.startswith("on") for _, a in page.tags for name in a)
    assert "&lt;script&gt;alert(&#34;headline&#34;)" in raw
    assert "{{ 7*7 }}" in raw
    assert not HOSTILE.search(raw)
    shown = figures.sanitize(ATTACK)
    # the headline; what each agent said and feared, and argued with; and what stands first of it
    first = page.text.split("Who took part")[0].count(shown)
    assert 0 < first <= 2 * why.BULLETS
    assert page.text.count(shown) == 1 + 2 * 8 + 2 * 7 + first
    outside = [a for a in page.all("a") if not a.get("href", "").startswith(("/", "#"))]
    assert outside == [{"href": ATTACKS[-1][6], "rel": "noopener noreferrer nofollow"}]
    assert not any("javascript" in str(value).lower() for _, a in page.tags for value in a.values())
    long = next(row[6] for row in page.rows if len(row) == 7 and "Ignore all" in row[6])
    assert len(long) == surroundings.HEADLINE_CHARS


# --- who spoke, and who did not ---


# --- the panel ---


@pytest.mark.parametrize("verdict", ["BUY", "SELL"])
def test_the_size_is_what_the_tick_multiplied(verdict: str) -> None:
    panel = {"buy": {"conviction": 0.7}, "sell": {"conviction": 0.3}}
    record = shown_tick(
        {"verdict": verdict, "gate": {"multiplier": 0.5}, "deliberation": {"panel": panel}}
    )
    conviction = record.deliberation.panel.agreement(verdict).conviction
    assert agreement.size_share(record, verdict) == 0.5 * conviction


@cases(
    ("side", "name", "told"),
    [
        ("buy", "conviction", ["conviction, buy"]),
        ("sell", "raw", ["raw conviction, sell"]),
        ("buy", "opposition", ["opposition to buy"]),
        ("sell", "dissent", ["dissent to sell"]),
        ("", "push", ["push of the desk"]),
    ],
)
def test_a_panel_that_does_not_come_out_is_named(side: str, name: str, told: list[str]) -> None:
    record = record_of("whole")
    panel = record["deliberation"]["panel"]
    (panel[side] if side else panel)[name] += 0.01
    assert arithmetic.failed_checks(shown_tick(record)) == told


def test_a_panel_is_recomputed_from_the_reports_and_from_who_failed() -> None:
    record = record_of("silent")
    less = {**record["deliberation"], "failures": {}}
    assert arithmetic.failed_checks(shown_tick({**record, "deliberation": less})) == [
        f"{name}, {side}" for side in ("buy", "sell") for name in ("raw conviction", "conviction")
    ]
    record["deliberation"]["panel"]["pushes"]["technical"] = 0.1
    told = arithmetic.failed_checks(shown_tick(record))
    assert told == ["push of technical"]


def test_nobody_heard_is_no_conviction() -> None:
    page = page_of("mute")
    assert "No agent was heard, so only risk and the gate's rules set the size." in page.text
    assert not re.search(r"Conviction\s+in a", page.text)
    record = record_of("whole")
    gate = [r for r in record["deliberation"]["reports"] if r["agent_id"] == "risk_gate"]
    silent = [{**r, "abstained": True} for r in record["deliberation"]["reports"][:2]]
    for reports in ([], gate, [*gate, *silent]):
        record["deliberation"]["reports"] = reports
        assert not agreement.has_opinions(shown_tick(record).deliberation)


# --- what blinds the desk, and what is ahead ---


@pytest.mark.journey
def test_a_broken_calendar_and_missing_news_show_on_the_overview_and_the_symbol_page() -> None:
    calendar = "! The calendar cannot be read; the last good one is used (BTCUSD M15)."
    for address in ("/", "/symbol/BTCUSD/M15"):
        page = get(address, "desk:degraded")
        assert calendar in page.text
        assert "! News rate limited" in page.text
        for warning in (calendar, "News rate limited"):
            assert warning not in get(address, "desk").text


def warned(told, tick):
    streams = [{"timeframe": "H1", "tick": tick}]
    return told([view_value(OverviewSymbol, {"instance": "EURUSD", "streams": streams})])


@pytest.mark.parametrize("status", ["broken", "ended", "broken_ended"])
def test_a_calendar_warns_by_its_flag_and_by_the_ticks_events(status: str) -> None:
    expected = f"{sources.CALENDAR_WARNINGS[status]} (EURUSD H1)"
    flags = [f"events:{word}" for word in status.split("_")]
    flagged = tick_record(deliberation={"flags": ["late:news", *flags]})
    assert warned(sources.calendar_warning, flagged) == expected
    assert warned(sources.calendar_warning, tick_record(events={"status": status})) == expected


def test_one_warning_names_every_stream_and_nothing_warns_of_nothing() -> None:
    broken = tick_record(news=_news(NewsView(NewsStatus.BROKEN)))
    streams = [{"timeframe": t, "tick": broken} for t in ("M15", "H1")]
    told = sources.news_warning(
        [view_value(OverviewSymbol, {"instance": "EURUSD", "streams": streams})]
    )
    assert told == f"{sources.NEWS_WARNINGS['broken']} (EURUSD M15, EURUSD H1)"
    for tick in (None, tick_record(), tick_record(news=_news(NewsView(NewsStatus.NO_KEY)))):
        assert warned(sources.news_warning, tick) == warned(sources.calendar_warning, tick) == ""


@pytest.mark.journey
def test_the_overview_tells_a_near_event_of_each_symbol() -> None:
    assert get("/", "desk").texts("changes", "i0") == [
        "Next event: USD Non-farm payrolls <b>revised</b> in 7 min (10:25 UTC)"
    ]
    assert "USD Non-farm payrolls" in get("/symbol/BTCUSD/M15", "desk").text
    assert get("/").texts("changes", "i0") == []
    tick = record_of("vetoed")
    known = shown_tick(tick)
    near = sources.near_event([known, known, None], tick["as_of"])
    assert near == (
        "Next event: USD US core PCE prices in 15 min "
        f"({figures.moment(tick['events']['events'][1]['time'])[11:]}); "
        f"Last event: USD US ISM services PMI now ({figures.moment(tick['as_of'])[11:]})"
    )


# --- which veto ---

EVENTS_NAMED = (
    "SCHEDULED_EVENT, USD US ISM services PMI at the close, USD US core PCE prices in 15 min"
)


@pytest.mark.journey
def test_a_veto_names_its_rule_and_its_event() -> None:
    page = page_of("vetoed")
    box = re.split(r"\bSignal\b", page.text)[0]
    assert f"WIDE_SPREAD, the spread is 0.082 ATR; {EVENTS_NAMED}" in box
    assert "or a veto of this side still holds" not in page.text
    assert "latched by an earlier veto" in re.split(r"\bSignal\b", page_of("latched").text)[0]
    rows = get("/symbol/BTCUSD/M15", "desk").rows
    reasons = [row[5] for row in rows if len(row) == 7]
    assert f"WIDE_SPREAD; {EVENTS_NAMED}" in reasons
    assert any(text.startswith("Latched by an earlier veto") for text in reasons)
    assert f"{EVENTS_NAMED} M15 tick of" in get("/", "desk:vetoed").text


def test_a_listed_tick_is_told_by_its_own_record_which_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = []

    def words_of(_, keys, names):
        assert names == OWN
        read.extend(keys)
        known = {"thresholds": {"buy": 0.2, "sell": 0.3}, "denied": []}
        return {key: known for key in keys if key != "k0"}

    rows = [{"torra_key": f"k{number}"} for number in range(LISTED + 5)]
    database: Any = SimpleNamespace()
    monkeypatch.setattr("torra.store.tick_queries.tick_summaries", lambda *_: rows)
    monkeypatch.setattr("torra.store.tick_queries.words_of", words_of)
    reading = StreamReading(database, lambda _: Profile())
    first, second = (reading.listed(("EURUSD", "H1"), 300, "k0", 45) for _ in range(2))
    assert read == [f"k{number}" for number in range(LISTED)]
    assert first == second
    own = {"thresholds": {"buy": 0.2, "sell": 0.3}, "denied": []}
    assert first[1] == ListedTick.read(own)
    assert first[0] == first[LISTED] == ListedTick()


def test_a_veto_without_a_verdict_is_told_too() -> None:
    record = record_of("vetoed") | {"verdict": "HOLD", "reason": "THRESHOLD", "denied": []}
    shown = shown_tick(record)
    veto = f"WIDE_SPREAD, the spread is 0.082 ATR; {EVENTS_NAMED}"
    assert (reasoning.why(shown), vetoes.cause(shown)) == ("", veto)
    assert reason(shown).endswith(f"⊘ VETO of openings: {veto}.")


@cases(
    ("gate", "words"),
    [
        ({"veto": True, "rule": {"veto": True, "reasons": ["THIN_DATA"]}}, "THIN_DATA"),
        ({"veto": True, "rule": {"veto": True, "reasons": []}}, "the gate's rules"),
        (
            {"veto": True, "reasons": ["DISAGREEMENT", "WEAK_CASE"],
             "rule": {"veto": False, "reasons": ["DISAGREEMENT"]}},
            "the gate agent's own veto, WEAK_CASE",
        ),
        ({"veto": False}, ""),
    ],
)  # fmt: skip
def test_who_vetoed_is_told_from_the_record_alone(gate, words: str) -> None:
    assert vetoes.cause(shown_tick({"gate": gate})) == words


def test_of_two_events_the_far_one_is_left_out() -> None:
    events = [
        {"time": f"2021-12-01T{t}:00Z", "currency": "USD", "impact": "high", "name": t}
        for t in ("08:00", "10:20")
    ]
    record = {"as_of": "2021-12-01T10:15:00Z", "events": {"events": events}}
    assert surroundings.nearest_events(shown_tick(record)) == ["USD 10:20 in 5 min"]


# --- layout that a test can hold ---


# --- one glance ---


def test_the_made_up_desk_has_the_shape_of_a_real_one() -> None:
    _, told = debate("whole", "BTCUSD", "M15", dict.fromkeys(VECTORS, 0.1), "AGENT_FULL", 99)
    assert set(told) <= set(DebateRecord.model_fields)
    assert set(told["panel"]) == set(Panel.__dataclass_fields__)
