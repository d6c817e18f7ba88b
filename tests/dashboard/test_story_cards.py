"""What stands first on a tick's page, and the chart of its moment."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.cases import cases
from tests.doubles.page_reader import Page, client, get, tick_text
from tests.worlds.demo_view import ScriptedView, bars
from tests.worlds.records import quiet, shown_tick, tick_record
from torra.config import Profile
from torra.dashboard.record import arithmetic, citations, story_cards, transcript
from torra.dashboard.record.shown import TickView
from torra.dashboard.streams import price_lines
from torra.dashboard.view import bar_reading
from torra.verdict.order_levels import Levels

NEWEST = bars("BTCUSD", "M15")[-1]["time"]
TICK = f"/symbol/BTCUSD/M15/{NEWEST}"


def record(**more: Any) -> TickView:
    stored = ScriptedView("full").tick("BTCUSD", "M15", NEWEST)
    assert stored is not None
    return shown_tick({**stored, **more})


def facts(shown: TickView, **more: Any) -> dict[str, story_cards.Fact]:
    spec = more.get("spec", Profile().symbol("BTCUSD"))
    return {
        "Size": story_cards.size(shown, spec, "USD"),
        "At risk": story_cards.risk(shown, spec, "USD", more.get("levels")),
        "Proved wrong by": story_cards.refuting(shown, ["a close below 1"]),
    }


def test_the_side_is_the_verdicts_or_the_nearer_one() -> None:
    assert story_cards.side_of(record(verdict="SELL", consensus=0.9)) == "SELL"
    assert story_cards.side_of(record(verdict="HOLD", consensus=-0.1)) == "SELL"
    assert story_cards.side_of(record(verdict="HOLD", consensus=0.1)) == "BUY"


def test_the_facts_are_those_of_the_order() -> None:
    order = {"kind": "open", "side": "BUY", "lots": 0.05, "entry": 60_000.0, "stop": 59_000.0}
    found = facts(record(signals=[order], proposed=[]))
    assert found["Size"][0] == "0.05 lots"
    assert found["At risk"][0] == "50.00 USD"
    assert "1,000.00 away" in found["At risk"][1]
    assert found["Proved wrong by"][0] == "a close below 1"
    bought = facts(record(verdict="BUY", signals=[order], proposed=[]))
    assert bought["Proved wrong by"][1] == ""
    held = facts(record(verdict="HOLD", consensus=-0.2, signals=[], proposed=[]))
    assert held["Proved wrong by"][0] == "a close below 1"
    assert held["Proved wrong by"][1] == "the case for a sell"
    unknown = facts(record(signals=[order]), spec=None)
    assert unknown["At risk"][0] == "stop 1,000.00 away"
    none = facts(record(signals=[], signal=None, proposed=[]))
    assert (none["Size"][0], none["At risk"][0]) == ("No order", "Nothing")
    asked = facts(record(signals=[], signal=None, proposed=[{"kind": "open", "lots": 0.03}]))
    assert (asked["Size"][0], asked["At risk"][0]) == ("0.03 lots", "—")
    levels = Levels(entry=60_000.0, stop=61_000.0, target=58_000.0, atr=500.0)
    shown = record(signals=[], signal=None, proposed=[{"kind": "open", "lots": 0.03}])
    assert facts(shown, levels=levels)["At risk"][0] == "30.00 USD"


def test_evidence_is_counted_as_the_table_below_counts_it() -> None:
    shown = record()
    cited = transcript.conversation(shown).cited
    assert story_cards.evidence(cited, [])[0] == f"{len(cited)} facts cited"
    right = sum(row.is_true for row in cited)
    all_true = "all" if right == len(cited) else right
    told = story_cards.evidence(cited, [])[1]
    assert told.startswith(f"{all_true} true to the record: ")
    names = [citations.feature_name(row.id).removeprefix("the ") for row in cited]
    for row, name in zip(cited, names, strict=True):
        told = story_cards.evidence(cited, [row.id])[1]
        assert told.startswith(f"{all_true} true to the record: {name}")


def test_beside_a_verdict_without_an_order_stands_that_there_is_none() -> None:
    bare: dict[str, Any] = {"signals": [], "signal": None, "proposed": [], "action": "HOLD"}
    bare["memory"] = {"position": "SHORT"}
    for verdict, reason, says in (
        ("BUY", "SIZE_ZERO", "no order"),
        ("SELL", "POSITION_HELD", "short kept"),
        ("HOLD", "THRESHOLD", ""),
        ("BUY", "AWAITS_APPROVAL", ""),
    ):
        shown = record(**bare, verdict=verdict, reason=reason)
        assert story_cards.no_order(shown) == says
    kept = facts(record(**bare, verdict="SELL", reason="POSITION_HELD"))
    assert (kept["Size"][0], kept["At risk"][0]) == ("No new order", "Nothing new")
    assert kept["Size"][1] == "the short stays"
    unknown = record(**{**bare, "memory": {}}, verdict="SELL", reason="POSITION_HELD")
    assert story_cards.no_order(unknown) == "position kept"
    assert facts(unknown)["Size"][1] == "the open position stays"
    same = record(**bare, verdict="SELL", l1_verdict="SELL", reason="POSITION_HELD")
    assert story_cards.without(same, None)[0] == "The same: short kept"
    order = {"kind": "open", "side": "BUY", "lots": 0.05, "entry": 60_000.0, "stop": 59_000.0}
    assert not story_cards.no_order(record(verdict="BUY", signals=[order]))


def test_who_disagreed_names_the_score_where_no_point_is_shown() -> None:
    report = {"agent_id": "technical", "adjustments": {"momentum": -0.2, "structure": 0.1}}
    shown = record(
        verdict="BUY", deliberation={"reports": [report], "panel": {"pushes": {"technical": -0.3}}}
    )
    assert story_cards.who(shown, "BUY") == "Disagreed: Technical on momentum."
    assert story_cards.who(shown, "BUY", ["Technical"]) == "Disagreed: Technical."
    held = record(
        verdict="HOLD", deliberation={"reports": [report], "panel": {"pushes": {"technical": -0.3}}}
    )
    assert story_cards.who(held, "BUY") == "Against buying: Technical on momentum."


@pytest.mark.parametrize(
    ("l1", "verdict", "told", "word"),
    [
        ("HOLD", "HOLD", None, "No trade either"),
        ("HOLD", "BUY", None, "No trade"),
        ("BUY", "BUY", {"did": "Buy 0.07 lots", "came": "x", "done": "y"}, "Buy 0.07 lots"),
    ],
)
def test_without_agents_is_told_in_a_word(
    l1: str, verdict: str, told: dict[str, str] | None, word: str
) -> None:
    shown = record(l1_verdict=l1, verdict=verdict, l1_consensus=0.2)
    assert story_cards.without(shown, told)[0] == word


# --- the chart of a moment ------------------------------------------------------------------------


def test_cited_lines_are_those_of_the_points() -> None:
    report = {
        "agent_id": "technical",
        "points_for": [{"id": "component.kl_cloud"}, {"id": "technical.rsi14"}],
        "points_against": [{"id": "technical.resistance_distance_atr"}],
        "evidence": [{"id": "technical.sma200"}, {"id": "component.st_long"}],
    }
    found = price_lines.cited(tick_record({"deliberation": {"reports": [report]}}))
    assert found == ["mean50", "mean200", "cloud", "levels"]
    assert price_lines.cited(tick_record()) == []


def test_the_level_that_would_prove_a_case_wrong_is_drawn() -> None:
    for words, line in (
        ("a close below 1.17930, the support, in the next 12 bars", ["levels"]),
        ("a close above 60,912.71, the resistance, in the next 12 bars", ["levels"]),
        ("a close below 1.17, the last swing low, in the next 12 bars", ["swings"]),
        ("a close above 58,898.64, one average range from here, in the next 12 bars", []),
    ):
        assert price_lines.cited(tick_record(), words) == line


@pytest.mark.parametrize(
    ("milliseconds", "took"), [(0.0, "under 0.1 s"), (40.0, "under 0.1 s"), (99.0, "0.1 s")]
)
def test_questions_that_took_no_time_are_not_said_to_take_none(
    milliseconds: float, took: str
) -> None:
    text = Page(tick_text(quiet(elapsed_ms=milliseconds))).text
    assert f"Paid for the agents Nothing 0 questions in {took} " in text


def test_older_bars_are_told_page_by_page_without_a_gap() -> None:
    every = bars("EURUSD", "H1")
    before, seen = "", list[float]()
    while True:
        query = f"limit=50{f'&before={before}' if before else ''}"
        answer = client("full").get(f"/api/v1/bars/EURUSD/H1?{query}")
        assert answer.status_code == 200
        candles = answer.json["candles"]
        if not candles:
            break
        seen = [one["close"] for one in candles] + seen
        first = every[len(every) - len(seen)]
        before = first["time"]
    assert seen == [bar["close"] for bar in every]


@cases("query", ["limit=0", "limit=2001", "limit=x", "limit=-1", "before=soon", "before=%00"])
def test_a_question_that_means_nothing_is_refused(query: str) -> None:
    answer = client("full").get(f"/api/v1/bars/EURUSD/H1?{query}")
    assert answer.status_code == 400
    assert answer.json["error"]


def test_bars_of_no_stream_are_none() -> None:
    assert client("full").get("/api/v1/bars/NOBODY/H1").status_code == 404
    assert client("full").get("/api/v1/bars/EURUSD/M1").status_code == 404


def test_lines_are_the_values_that_l1_saw() -> None:
    rows = bars("BTCUSD", "M15")
    found = bar_reading.columns(rows, 100)
    assert set(found) == set(bar_reading.COLUMNS)
    closes = [row["close"] for row in rows]
    assert found["sma50"][-1] == pytest.approx(sum(closes[-50:]) / 50)
    assert found["sma200"][-1] == pytest.approx(sum(closes[-200:]) / 200)
    few = bar_reading.columns(rows[:20], 20)
    assert all(values == [None] * 20 for values in few.values())


LIMITS = {"capital": 10_000.0, "risk_per_trade_pct": 0.5, "max_notional_pct": 100.0}
DENIED = {"verdict": "BUY", "denied": ["SIZE_ZERO"], "signals": [], "proposed": [], "signal": None}
SPEC = Profile().symbol("BTCUSD")


def too_small(left: float, **more: Any) -> story_cards.Fact:
    """Return the size of a denied opening, whose smallest order loses 10 and is worth 600."""
    told = {"close": 60_000.0, "atr": 500.0, "gate": {"multiplier": left}, "deliberation": {}}
    return facts(record(**{**DENIED, "limits": LIMITS, **told, **more}), spec=SPEC)["Size"]


def test_an_opening_that_was_too_small_says_what_the_smallest_order_takes() -> None:
    assert (SPEC.lot_min, SPEC.tick_value / SPEC.tick_size) == (0.01, 1.0)
    found = too_small(0.1)
    assert found[0] == "Too small"
    assert found[1] == (
        "the smallest order, 0.01 lots, would lose 10.00 USD at its stop; allowed are 5.00 USD: "
        "0.5 % of 10,000 × 0.10 (gate 10 %, conviction 100 %)"
    )
    worth = too_small(0.1, atr=5.0)
    assert "would be worth 600.00 USD; allowed are 1,000.00" not in worth[1]
    dear = too_small(0.1, limits={**LIMITS, "risk_per_trade_pct": 50.0, "max_notional_pct": 20.0})
    assert "would be worth 600.00 USD; allowed are 200.00 USD: 20 % of 10,000 × 0.10" in dear[1]


@cases(
    "more",
    [
        {"denied": ["COOLDOWN"]},
        {"limits": {}},
        {"atr": 0.0},
        {"verdict": "HOLD"},
    ],
)
def test_nothing_is_reckoned_of_what_is_not_known(more: dict[str, Any]) -> None:
    assert too_small(0.1, **more)[0] == "No order"


def test_the_consensus_names_its_timeframes() -> None:
    of = {
        "M15": {"composite": 0.6, "weight": 1.0, "fresh": True},
        "H1": {"composite": -0.2, "weight": 3.0, "fresh": True},
    }
    line = arithmetic.consensus_line(record(consensus=0.0, composites=of))
    assert line == "Consensus 0.00: M15 +0.60 (25 %) and H1 −0.20 (75 %)."
    of["H1"]["fresh"] = False
    line = arithmetic.consensus_line(record(consensus=0.6, composites=of))
    assert line == "Consensus +0.60: M15 +0.60 (100 %); H1 is too old and left out."
    del of["H1"]
    assert not arithmetic.consensus_line(record(consensus=0.6, composites=of))
    assert re.search(r"Consensus .\d\.\d\d: .*M15 .*H1 ", get(TICK, "full").text)


def test_a_damaged_record_has_no_share_beyond_the_whole() -> None:
    panel = {"buy": {"conviction": 1e308, "raw": -7.0}, "sell": {"conviction": 0.5, "raw": 1e308}}
    broken = record(verdict="BUY", deliberation={"panel": panel})
    assert story_cards.conviction(broken)[1] == "—"
    of = {name: {"composite": 0.1, "weight": 1.0, "fresh": True} for name in ("M15", "H1")}
    for weight in (-0.5, 1e308, -1.0, 0.0):
        of["H1"]["weight"] = weight
        line = arithmetic.consensus_line(record(consensus=0.1, composites=of))
        assert "inf" not in line and "−" not in line and len(line) < 60, line
