"""Tick and approval of a firm: the thesis, who wrote it, what would end it, the manager's word."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from agent_config import EscalationSettings
from agents.registry import SCORER
from tests.cases import cases
from tests.doubles.page_reader import Page, tick_text
from tests.worlds import firm_ticks
from tests.worlds.desk_pages import Pages
from tests.worlds.desks import START
from tests.worlds.hostile_texts import MARKUP
from tests.worlds.records import shown_tick, tick_record
from tests.worlds.values import made_symbol
from torra.config import Profile, validate
from torra.dashboard.record import arithmetic, story_cards, thesis, waterfall
from torra.dashboard.record.shown import TickView
from torra.dashboard.settings import profile_form
from torra.dashboard.streams import timelines
from torra.dashboard.trade import proposals, why
from torra.desk.models import report
from torra.tick import approval
from torra.tick.marks import UNFORESEEN
from torra.tick.tick_record import TickRecord
from torra.tick.words import thesis_words
from torra.trading import signal_list
from torra.words.orders import SIDES

SCRIPT = MARKUP["script"]
TICK = f"/symbol/{firm_ticks.INSTANCE}/{firm_ticks.TIMEFRAME}/{firm_ticks.BAR}"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return firm_ticks.lived(tmp_path_factory.mktemp("firm"))


def read(pages: Pages, address: str) -> Page:
    return Page(pages.text(address))


def stored(case: str = "written", **changes: Any) -> TickRecord:
    return tick_record({**firm_ticks.record(case), **changes})


def test_the_sums_of_a_firm_come_out_with_the_managers_weights() -> None:
    for case in ("written", "declined", "silent", "alone"):
        assert arithmetic.failed_checks(stored(case)) == []
    rows = {row.name: row.note for row in arithmetic.steps(stored())}
    assert "weight 0.80" in rows["Bull researcher"]
    assert "Research manager" not in rows
    assert "Trader" not in rows
    chart = waterfall.score_charts(stored())[0]
    names = [row.name for row in chart.steps]
    assert "Bull × 0.80" in names
    assert "Side left out" not in names
    assert "Cut at a bound" not in names


def test_without_a_manager_both_cases_count_in_full() -> None:
    told = stored("alone")
    assert thesis.weights(told.deliberation) == {}
    assert "Bull researcher" in [row.name for row in waterfall.score_charts(told)[0].steps]


def test_an_opening_without_a_thesis_says_why() -> None:
    silent = stored("silent")
    assert (thesis.badge(silent), thesis.ends(silent)) == (thesis.SILENT, [])
    assert thesis.why(silent) == "The trader's answer could not be read."
    for failure in ("deadline", "budget", "timeout", "something_new"):
        why = thesis_words.why_without(failure)
        assert why[0].islower()
        assert "_" not in why
    unforeseen = stored(deliberation={}, flags=[UNFORESEEN])
    assert thesis.badge(unforeseen) == thesis.UNASKED
    assert "not foreseen" in thesis.why(unforeseen)
    assert thesis.badge(stored(deliberation={}, flags=[])) is None


def test_a_thesis_of_agents_that_look_on_says_that_it_did_not_count() -> None:
    told = firm_ticks.record("declined")
    shadowed = {**told["deliberation"], "flags": ["shadow"]}
    text = Page(tick_text({**told, "deliberation": shadowed})).text
    section = text.partition("Thesis ")[2].partition("What a thesis is")[0]
    assert "Agents watch only: recorded, not counted." in section
    assert "would decline (shadow)" in section


@cases(
    ("tier", "conviction", "when", "at", "says"),
    [
        ("chief", 0.82, "conviction", 0.75,
         "escalated to the chief tier: conviction 0.82, from 0.75 on"),
        ("chief", 0.5, "pivotal", 0.75,
         "escalated to the chief tier: the agents alone decided the verdict"),
        ("chief", 0.82, None, None, "escalated to the chief tier"),
        ("deep", 0.6, "conviction", 0.75, "not escalated: conviction 0.60, below 0.75"),
        ("deep", 0.7496, "conviction", 0.75, "not escalated: conviction 0.7496, below 0.75"),
        ("deep", 0.6, "off", 0.75, ""),
        ("chief", None, "conviction", None, "escalated to the chief tier: conviction not recorded"),
    ],
)  # fmt: skip
def test_an_escalation_names_its_rule(
    tier: str, conviction: float | None, when: str | None, at: float | None, says: str
) -> None:
    assert thesis_words.escalated(tier, conviction, when, at) == says


def test_what_a_trader_writes_is_text_on_every_page(tmp_path: Path) -> None:
    def attack(request: Any) -> dict[str, Any]:
        return firm_ticks.thesis(request, claim=f"RSI is 61 {SCRIPT}", risks=[SCRIPT])

    hostile = firm_ticks.lived(tmp_path, {"trader": attack})
    (row,) = hostile.database.proposals(limit=5)
    for address in (TICK, f"/approvals/{row.sid}"):
        assert SCRIPT not in hostile.text(address)
        assert "alert(" in hostile.text(address), "the attack stood in the answer"


def test_models_tell_the_traders_seats_and_how_often_it_was_asked(pages: Pages) -> None:
    told = pages.json("/api/v1/models")
    (row,) = told["traders"]
    counted = {
        name: row[name] for name in ("openings", "asked", "escalated", "declined", "without")
    }
    assert counted == {"openings": 1, "asked": 1, "escalated": 1, "declined": 0, "without": 0}
    said = "Of 1 opening the trader was asked about 1: 1 on the chief tier (100 %), 0 declined."
    assert said in pages.text("/models")
    paid = validate(Profile, {"agents": {"mode": "firm", "provider": "anthropic"}}, "a test")
    asked = report.listed("anthropic", {"gold": paid})
    assert asked["claude-opus-5-5"] == ["gold: trader, escalated"]
    assert "gold: trader" in asked["claude-sonnet-5-5"]
    off = validate(
        Profile,
        {"agents": {"mode": "firm", "provider": "anthropic", "escalation": {"when": "off"}}},
        "a test",
    )
    assert "claude-opus-5-5" not in report.listed("anthropic", {"gold": off})
    titles = [role.title for role in profile_form.voices(paid.agents)]
    assert titles[-3:] == ["trader", "trader, escalated", SCORER.title]


def test_a_trader_that_is_seldom_asked_makes_no_tick_fewer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        {"role": "technical", "usd": 0.1, "calls": 9},
        {"role": "trader", "usd": 0.1, "calls": 1},
    ]
    monkeypatch.setattr("torra.store.ledger.ledger_sums", lambda *_: rows)
    usd, ticks = report._day(object(), "gold", START)  # type: ignore[arg-type]
    assert (round(usd, 2), ticks) == (0.2, 9)


def test_a_tick_on_the_terminal_tells_manager_and_thesis() -> None:
    told = stored()
    rule = EscalationSettings(when="pivotal")
    rows = thesis_words.rows(told.deliberation, told.flags, "M15", rule, told.made_calls)
    assert rows["manager"] == (
        f"LONG, high confidence; bear x 0.40, bull x 0.80: {firm_ticks.VERDICT}"
    )
    assert rows["thesis"] == (
        "for the BUY, at most 16 bars (4 hours), escalated to the chief tier: the agents alone "
        f"decided the verdict: {firm_ticks.CLAIM}"
    )
    assert rows["risks"] == firm_ticks.RISK
    assert rows["written by"] == "Trader, scripted-1, chief tier"
    assert rows["ends by"].startswith("a close below")
    declined = stored("declined")
    rows = thesis_words.rows(declined.deliberation, declined.flags, "M15")
    assert rows["thesis"].startswith("the trader declined the BUY, as volatility is high: ")
    assert "ends by" not in rows
    silent = stored("silent")
    rows = thesis_words.rows(silent.deliberation, silent.flags, "M15")
    assert rows["thesis"] == "none, as the trader's answer could not be read"
    alone = stored("alone", deliberation={})
    assert thesis_words.rows(alone.deliberation, [UNFORESEEN], "M15")["thesis"].startswith(
        "the tra"
    )
    assert thesis_words.rows(alone.deliberation, [], "M15") == {}


def test_the_commands_tell_a_proposals_thesis(pages: Pages) -> None:
    (row,) = pages.database.proposals(limit=5)
    told = approval.as_json(row, pages.database)
    assert told["thesis"]["claim"] == firm_ticks.CLAIM
    assert told["thesis"]["bars"] == 16
    assert firm_ticks.CLAIM in signal_list._proposal_line(told)
    del told["thesis"]
    assert "words" not in signal_list._proposal_line(told)


def test_who_is_against_a_side_may_be_the_manager() -> None:
    told = firm_ticks.record()
    reports = [
        {**one, "winner": "SHORT"} if one["agent_id"] == "research_manager" else one
        for one in told["deliberation"]["reports"]
    ]
    record = shown_tick({**told, "deliberation": {**told["deliberation"], "reports": reports}})
    assert "Research manager" in story_cards.who(record, "BUY")
    assert "Research manager" not in story_cards.who(shown_tick(told), "BUY")


@pytest.mark.journey
def test_a_side_that_a_decline_latched_is_nowhere_told_as_the_gates(tmp_path: Path) -> None:
    auto = {**firm_ticks.FIRM, "execution": "auto"}
    pages = firm_ticks.lived(tmp_path, firm_ticks.declining(), steps=2, profile=auto)
    latched = "/symbol/BTCUSD/M15/2021-11-10T10:15:00Z"
    assert "⊘ VETO or decline holds of openings" in read(pages, latched).text
    for address in ("/", "/history", "/symbol/BTCUSD", latched):
        words = " ".join(read(pages, address).text.split())
        assert "the gate's veto of this side" not in words
        assert "an earlier veto," not in words
        assert "a veto or decline of this side holds" in words or address != "/history"


def test_the_lane_of_a_latched_side_is_that_of_what_latched_it() -> None:
    def lane(*reasons: str) -> list[str]:
        ticks = [
            {"bar_time": f"2026-01-05T{10 + hour}:00:00Z", "verdict": "BUY", "reason": reason}
            for hour, reason in enumerate(reasons)
        ]
        events = timelines.verdict_events(made_symbol("H1", ticks=ticks[::-1]))
        return [value for _, value in events]

    assert lane("TRADER_DECLINED", "GATE_VETO", "GATE_VETO") == ["DECLINED"] * 3
    assert lane("GATE_VETO", "GATE_VETO") == ["VETO"] * 2
    assert lane("TRADER_DECLINED", "VERDICT", "GATE_VETO") == ["DECLINED", "BUY", "VETO"]


@pytest.mark.journey
def test_a_trader_that_was_not_heard_has_no_tick_on_an_approval(tmp_path: Path) -> None:
    shadow = {**firm_ticks.FIRM, "agents": {**firm_ticks.FIRM["agents"], "influence": "shadow"}}
    for script, profile, chip, mark in (
        (firm_ticks.declining(), shadow, "· Trader: agents watch only", "would decline (shadow)"),
        ({"trader": "no JSON"}, None, "· Trader: no answer", "no thesis"),
    ):
        pages = firm_ticks.lived(tmp_path / mark[:2], script, profile=profile)
        (row,) = pages.database.proposals(limit=5)
        words = read(pages, f"/approvals/{row.sid}").text
        assert chip in words
        assert mark in words
        assert "✓ Trader" not in words
        assert "The trader declined it" not in words
        pages.desk.close()
    assert proposals._unheard(stored("alone", deliberation={})) == "not asked"
    assert proposals._unheard(stored()) == ""


@cases(
    ("winner", "side", "says"),
    [
        ("NONE", "BUY", "the manager names neither"),
        ("NONE", "SELL", "the manager names neither"),
        ("SHORT", "BUY", "the manager names the other side"),
        ("LONG", "BUY", ""),
        ("LONG", "HOLD", ""),
    ],
)
def test_a_manager_that_does_not_name_a_side_is_told_as_against_it(
    winner: str, side: str, says: str
) -> None:
    told = firm_ticks.record()
    reports = [
        {**one, "winner": winner} if one["agent_id"] == "research_manager" else one
        for one in told["deliberation"]["reports"]
    ]
    panel = copy.deepcopy(told["deliberation"]["panel"])
    if says:
        panel["buy"]["conviction"] = 0.4 * panel["buy"]["raw"]
    spoken = {**told["deliberation"], "reports": reports, "panel": panel}
    record = shown_tick({**told, "deliberation": spoken})
    assert thesis.objection(record.deliberation, side) == says
    if side in SIDES:
        said = [point.text for point in why.case(record, side).why_not]
        assert any("anager names" in one for one in said) is bool(says)
        assert any(says[1:] in one for one in said)
        _, noted = proposals.conviction(record, side)
        assert (says or "panel split") in noted or side == "SELL"
        assert ("Research manager" in story_cards.who(record, side)) is bool(says)


def test_a_manager_that_names_neither_is_told_on_tick_and_approval(tmp_path: Path) -> None:
    def neither(request: Any) -> dict[str, Any]:
        return firm_ticks.judgement(request, winner="NONE")

    pages = firm_ticks.lived(tmp_path, {"research_manager": neither})
    (row,) = pages.database.proposals(limit=5)
    # No analyst objects, so what is lost is lost to the bear.
    assert "−4% panel split" in read(pages, f"/approvals/{row.sid}").text
    tick = read(pages, TICK).text
    assert "Disagreed: Research manager (names neither), Bear." in tick
    assert "down from 100 % by what speaks against it" in tick
    assert f"The manager names neither: {firm_ticks.VERDICT[:40]}" in tick


def test_a_tick_names_one_end_of_its_trade(pages: Pages) -> None:
    told = stored()
    record = shown_tick(firm_ticks.record())
    asked = told.deliberation.consulted
    assert asked and asked.report
    case = ["a close below 1.00 in the next 12 bars"]

    def fact(seen: TickView) -> str:
        return story_cards.refuting(seen, case)[0]

    assert fact(record) == asked.report.falsifiers[0]
    assert fact(shown_tick(firm_ticks.record("declined"))) == case[0]
    assert fact(shown_tick(firm_ticks.record("silent"))) == case[0]
    words = " ".join(read(pages, TICK).text.split())
    assert f"Proved wrong by {asked.report.falsifiers[0]}" in words
    (row,) = pages.database.proposals(limit=5)
    assert read(pages, f"/approvals/{row.sid}").text.count("a close below") == 1


def test_what_a_declined_opening_came_to_without_agents_is_not_known() -> None:
    declined = shown_tick(firm_ticks.record("declined"))
    assert story_cards.without(declined, None)[0] == "Not known"
    for veto, said in ((True, "No trade either"), (False, "Not known")):
        gate = {"veto": True, "rule": {"veto": veto}}
        held = {**firm_ticks.record("declined"), "reason": "GATE_VETO", "gate": gate}
        assert story_cards.without(shown_tick(held), None)[0] == said
