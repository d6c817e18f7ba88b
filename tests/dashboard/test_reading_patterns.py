"""The eight patterns by which a tick is read: found by rules, told in the numbers of the rules."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agents.contracts import VECTORS
from tests.cases import cases
from tests.doubles.page_reader import Page, get
from tests.doubles.visitors import bearer
from tests.worlds.demo_full_desk import CASES, FullDeskView
from tests.worlds.demo_view import bars
from tests.worlds.records import tick_record
from tests.worlds.screens import desk_app
from torra.dashboard.record import reading_patterns
from torra.tick.tick_record import TickRecord

ANALYSTS = ("technical", "sentiment", "news", "momentum")
NAMES = {one.slug: one.name for one in reading_patterns.patterns()}


def said(agent: str, push: float | None, confidence: str = "high") -> dict[str, Any]:
    """Return a report that pushes so on every score; None abstains."""
    return {
        "agent_id": agent,
        "adjustments": {} if push is None else dict.fromkeys(VECTORS, push),
        "confidence": confidence,
        "claim": "The trend holds at 27.1.",
        "abstained": push is None,
    }


def tick(
    pushes: dict[str, float | None],
    conviction: float = 0.6,
    confidence: str = "high",
    rank: float = 50.0,
    **more: Any,
) -> TickRecord:
    """Return a BUY whose agents push so."""
    side = {"conviction": conviction, "raw": 0.9}
    told = {
        "verdict": "BUY",
        "consensus": 0.6,
        "regime": {"name": "range", "reads": {"technical.volatility_percentile": rank}},
        "deliberation": {
            "reports": [said(name, push, confidence) for name, push in pushes.items()],
            "panel": {"pushes": {n: p for n, p in pushes.items() if p is not None}, "buy": side},
        },
        **more,
    }
    return tick_record(told)


def found(record: TickRecord) -> list[str]:
    return [one.slug for one in reading_patterns.holding(record)]


SURE = dict.fromkeys(ANALYSTS, 0.1)
QUIET: dict[str, Any] = {"pushes": {"technical": 0.1}, "confidence": "medium"}
"""A tick of which nothing is worth a word."""

OPEN = [{"kind": "open", "side": "BUY", "lots": 0.1}]
ONE_EACH: dict[str, dict[str, Any]] = {
    "all-agree": {"pushes": SURE},
    "split": {"pushes": {"technical": 0.1, "sentiment": -0.1}},
    "abstained": {"pushes": {"technical": 0.1, "news": None}},
    "clean": {**QUIET, "conviction": 0.75, "signals": OPEN},
    "weak": {**QUIET, "conviction": 0.44},
    "refused": {**QUIET, "denied": ["MAX_POSITIONS"]},
    "levels": {**QUIET, "rank": 25.0, "signals": OPEN},
    "news": {"pushes": {"technical": 0.0, "news": -0.1}},
}
"""A tick for each pattern that has this one and no other."""


def test_there_are_eight_and_each_has_a_tick_of_its_own() -> None:
    assert found(tick(**QUIET)) == []
    assert list(ONE_EACH) == list(NAMES)
    assert {slug: found(tick(**told)) for slug, told in ONE_EACH.items()} == {
        slug: [slug] for slug in NAMES
    }


def mirrored(record: TickRecord) -> TickRecord:
    """Return a tick upside down: a SELL of the mirrored market."""
    told = record.model_dump(exclude_unset=True)
    heard = told["deliberation"]
    panel = heard["panel"]
    panel["pushes"] = {name: -push for name, push in panel["pushes"].items()}
    panel["sell"] = panel.pop("buy")
    for report in heard["reports"]:
        report["adjustments"] = {v: -moved for v, moved in report["adjustments"].items()}
    return tick_record({**told, "verdict": "SELL", "consensus": -told["consensus"]})


@cases("slug", list(ONE_EACH))
def test_the_mirrored_tick_has_the_same_pattern(slug: str) -> None:
    assert found(mirrored(tick(**ONE_EACH[slug]))) == [slug]


@cases(
    ("told", "has"),
    [
        # one analyst agrees with nobody, and a neutral one is neither for nor against
        ({"pushes": {"technical": 0.1}}, False),
        ({"pushes": {"technical": 0.1, "momentum": 0.0}}, False),
        ({"pushes": {"technical": 0.1, "momentum": 0.1, "news": 0.0}}, True),
        # the researchers differ by office
        ({"pushes": {**SURE, "bull_researcher": 0.1, "bear_researcher": -0.1}}, True),
        ({"pushes": SURE, "confidence": "medium"}, False),
        # all of them against the trade are no consensus for it
        ({"pushes": dict.fromkeys(ANALYSTS, -0.1)}, False),
        # a hold is read by the way of its consensus
        ({"pushes": SURE, "verdict": "HOLD", "consensus": 0.2}, True),
        ({"pushes": SURE, "verdict": "HOLD", "consensus": -0.2}, False),
    ],
)
def test_a_consensus_is_of_two_and_sure_and_the_trades_way(told: dict[str, Any], has: bool) -> None:
    assert ("all-agree" in found(tick(**told))) is has


@cases(
    ("told", "slug", "has"),
    [
        ({"conviction": 0.7499, "signals": OPEN}, "clean", False),
        ({"conviction": 0.75, "proposed": OPEN}, "clean", True),
        ({"conviction": 0.9}, "clean", False),
        ({"conviction": 0.9, "signals": [{"kind": "close"}]}, "clean", False),
        ({"conviction": 0.9, "proposed": OPEN, "denied": ["MARGIN"]}, "clean", False),
        ({"denied": ["GATE_VETO"]}, "refused", False),
        ({"denied": ["TRADER_DECLINED"]}, "refused", False),
        ({"denied": ["TRADER_DECLINED", "MARGIN"]}, "refused", True),
        ({"pushes": {"technical": 0.1, "bear_researcher": None}}, "abstained", False),
        ({"pushes": {"technical": 0.1, "research_manager": None}}, "abstained", False),
        ({"conviction": 0.45}, "weak", False),
        ({"conviction": 0.2, "verdict": "HOLD"}, "weak", False),
        ({"rank": 25.01, "signals": OPEN}, "levels", False),
        ({"rank": 89.99, "signals": OPEN}, "levels", False),
        ({"rank": 90.0, "signals": OPEN}, "levels", True),
        ({"rank": 99.0}, "levels", False),
    ],
)
def test_a_pattern_ends_at_its_number(told: dict[str, Any], slug: str, has: bool) -> None:
    assert (slug in found(tick(**{**QUIET, **told}))) is has


def test_the_analysts_that_had_nothing_to_read_are_named() -> None:
    record = tick({"technical": 0.1, "news": None, "fundamental": None, "bear_researcher": None})
    (pattern,) = reading_patterns.holding(record)
    assert (pattern.slug, pattern.who) == ("abstained", "News, Fundamental")


def test_what_agents_said_is_not_read_where_it_did_not_count() -> None:
    told: dict[str, Any] = {
        "pushes": {**SURE, "news": -0.1, "key_levels": None},
        "conviction": 0.1,
    }
    assert found(tick(**told)) == ["split", "abstained", "weak", "news"]
    record = tick(**told)
    shadow = record.deliberation.model_copy(update={"flags": ("shadow",)})
    assert found(record.model_copy(update={"deliberation": shadow})) == []


def test_a_proposal_is_read_by_its_checks_of_now() -> None:
    record = tick(**{**QUIET, "conviction": 0.9, "proposed": OPEN})
    slugs = [one.slug for one in reading_patterns.on_approval(record, ["SPREAD"])]
    assert slugs == ["refused"]
    assert [one.slug for one in reading_patterns.on_approval(record, [])] == ["clean"]


def test_every_number_in_the_words_is_that_of_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constants are set to numbers that nobody would write: no other one may be left."""
    told = {
        "OPPOSITION_COST": (0.31, "31 %"), "LEANING_SHARE": (0.37, "37 %"),
        "ESCALATION_AT": (0.83, "0.83"), "WEAK_CONVICTION": (0.29, "0.29"), "STOP_ATR": (7, "7"),
        "TARGET_R": (11, "11"), "FARTHEST_STOP_ATR": (13, "13"), "QUIET_UPTO": (17.0, "17 %"),
        "VOLATILE_FROM": (81.0, "19 %"),
    }  # fmt: skip
    for name, (value, _) in told.items():
        monkeypatch.setattr(reading_patterns, name, value)
    words = " ".join(f"{one.means} {one.do} {one.firm}" for one in reading_patterns.patterns())
    words = words.replace("\u00a0", " ")
    assert set(re.findall(r"\d(?:[\d.]*\d)?(?: %)?", words)) == {
        shown for _, shown in told.values()
    }
    # and the rules that find them follow the same numbers
    assert found(tick(**{**QUIET, "conviction": 0.8, "signals": OPEN})) == []
    assert found(tick(**{**QUIET, "conviction": 0.3})) == []
    assert found(tick(**{**QUIET, "rank": 20.0, "signals": OPEN})) == []


def test_help_lists_them_and_a_tick_leads_to_those_that_hold() -> None:
    page = get("/help")
    rows = {row[0].strip(): row for row in page.rows if len(row) == 3}
    for one in reading_patterns.patterns():
        assert [text.strip() for text in rows[one.name][1:]] == [one.means, one.do]
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    newest = bars("BTCUSD", "M15")[-1 - CASES.index("vetoed")]["time"]
    shown = get(f"/symbol/BTCUSD/M15/{newest}", "desk")
    linked = [a["href"] for a in shown.all("a") if "#pattern-" in a.get("href", "")]
    told = FullDeskView().tick("BTCUSD", "M15", newest)
    expected = found(tick_record(told))
    assert "weak" in expected
    assert "refused" not in expected, "a veto breaks no rule of the desk"
    assert [href.partition("#pattern-")[2] for href in linked] == expected
    assert {f"pattern-{slug}" for slug in expected} <= ids
    assert f"How to read it: {NAMES[expected[0]]}" in " ".join(shown.text.split())


def test_a_manager_is_named_where_one_sits() -> None:
    words = " ".join(get("/help").text.split())
    section = words.partition("Eight patterns, read at a glance")[2].partition("The life of")[0]
    assert section and not re.search(r"manager|trader", section)
    assert {one.slug for one in reading_patterns.patterns() if one.firm} == {"split", "clean"}


def test_help_tells_of_a_manager_where_a_desk_seats_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = desk_app(tmp_path)
    told = [one.firm for one in reading_patterns.patterns() if one.firm]
    for seat in ("nobody", "bull_researcher"):
        monkeypatch.setattr(reading_patterns, "FIRM_SEAT", seat)
        page = Page(app.test_client().get("/help", headers=bearer("read")).text)
        words = " ".join(page.text.split())
        assert [firm in words for firm in told] == [seat != "nobody"] * 2
