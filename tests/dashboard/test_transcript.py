"""The conversation on a tick's page: order, rounds, citations and the evidence, what was read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.contracts import AgentReport, DebateContext, Evidence, Feature
from agents.evidence import grounded
from scoring_rubric import visible
from tests.cases import cases
from tests.doubles.page_reader import Page, get, tick_text
from tests.worlds.demo_full_desk import CASES, SAYS, address_of, record_of
from tests.worlds.records import CALL, debate_record, shown_tick
from torra.dashboard.record import agreement, citations, inputs
from torra.dashboard.record import transcript as transcripts
from torra.exhibits import figures
from torra.tick.tick_record import StoredCall


@pytest.mark.parametrize("case", CASES)
def test_every_link_inside_a_page_leads_somewhere(case: str) -> None:
    page = get(address_of(case), "desk")
    ids = {a["id"] for _, a in page.tags if "id" in a}
    inside = [a["href"][1:] for a in page.all("a") if a.get("href", "").startswith("#")]
    assert len(inside) > 4
    assert set(inside) <= ids
    for _, attributes in page.tags:
        assert set(attributes.get("aria-describedby", "").split()) <= ids


# --- order ---


@cases(
    ("words", "reports", "expected"),
    [
        (["answered"], 1, {1: 0}),
        (["answered", "answered"], 2, {1: 0, 2: 1}),
        (["timeout", "answered"], 1, {2: 0}),
        (["answered", "timeout"], 1, {1: 0}),
        (["answered", "abstained"], 1, {1: 0}),
        (["abstained", "answered"], 2, {1: 0, 2: 1}),
        (["answered", "timeout", "answered"], 2, {1: 0, 3: 1}),
        (["answered"], 3, {1: 2}),
        (["timeout", "timeout"], 0, {}),
    ],
)
def test_each_report_finds_the_round_in_which_it_was_given(
    words: list[str], reports: int, expected: dict[Any, Any]
) -> None:
    told = [{"agent_id": "bull_researcher", "reasoning": str(n)} for n in range(reports)]
    found = transcripts._reports_by_place(
        debate_record(
            {
                "stages": [
                    {"name": "research", "round": n, "agents": {"bull_researcher": word}}
                    for n, word in enumerate(words, 1)
                ],
                "earlier": told[:-1],
                "reports": told[-1:],
            }
        )
    )
    assert {place[1]: int(str(row.reasoning)) for place, row in found.items()} == expected


@pytest.mark.parametrize("reply", ["[", "[1]", '{"adjustments": 3}', "[" * 100_000])
def test_a_reply_that_is_no_document_has_no_votes(reply: str) -> None:
    assert transcripts.raw_votes([StoredCall.parse({**CALL, "reply": reply})]) == {}


def test_the_scorer_that_stood_in_speaks_in_its_own_stage() -> None:
    record = record_of("mute")
    reply = {"momentum": {"score": 0.4, "note": ""}, "summary": "A plain reading."}
    call = {**record["calls"][0], "role_id": "chart_scorer", "stage": "fallback", "round": 1}
    record["calls"].append({**call, "status": "ok", "reply": json.dumps(reply)})
    stage = {"name": "fallback", "round": 1, "agents": {"chart_scorer": "answered"}, "ms": 9.0}
    record["deliberation"]["stages"].append(stage)
    shown = shown_tick(record | {"source_type": "LEGACY"})
    stages = transcripts.conversation(shown).stages
    (fallback,) = [one for one in stages if one.record.name == "fallback"]
    (entry,) = fallback.entries
    assert (entry.mark.word, entry.text) == ("answered", "A plain reading.")
    assert entry.votes == {"momentum": 0.4}
    note = agreement.note(shown)
    assert note is not None and note.word == "one model"


# --- citations ---

FEATURES = {
    "a.number": Feature("a.number", 50.0),
    "a.zero": Feature("a.zero", 0.0),
    "a.word": Feature("a.word", "range"),
    "a.gap": Feature("a.gap", None),
}


@cases(
    ("name", "value", "state"),
    [
        ("a.number", 50.0, "equal"),
        ("a.number", 50.5, "equal"),
        ("a.number", 50.51, "off"),
        ("a.number", -50.0, "off"),
        ("a.number", "50", "off"),
        ("a.number", True, "off"),
        ("a.number", None, "off"),
        ("a.zero", 0.0, "equal"),
        ("a.zero", 0.001, "off"),
        ("a.word", "range", "equal"),
        ("a.word", "trend", "off"),
        ("a.gap", 1.0, "absent"),
        ("a.none", 1.0, "absent"),
    ],
)
def test_a_citation_is_judged_as_the_overlay_judges_it(name: str, value: Any, state: str) -> None:
    assert citations.judge(name, value, FEATURES) == state
    if not isinstance(value, bool):
        assert grounded([Evidence(name, value)], FEATURES) == (state == "equal")


def test_what_the_sitting_adds_to_the_evidence_is_known() -> None:
    record = record_of("whole")
    told = record["deliberation"]
    known = citations.evidence(shown_tick(record))
    assert known["scores.momentum"].value == record["l1"]["momentum"]
    assert known["gate.multiplier"].value == told["rule_ruling"]["multiplier"]
    assert known["gate.analyst_spread"].value == max(told["panel"]["spread"].values())
    silent = shown_tick({**record, "deliberation": {**told, "reports": []}})
    assert "gate.multiplier" not in citations.evidence(silent)
    assert "gate.multiplier" not in citations.shown_to("technical", known)
    assert "gate.multiplier" in citations.shown_to("risk_gate", known)


def test_anchors_are_readable_and_never_twice() -> None:
    names = ("technical.rsi14", 'a"b<c', "a-b-c-3", "a'b c", "", "x" * 99, "technical.rsi14")
    told = [*citations.anchors(names).values()]
    assert told[:2] == ["feature-technical.rsi14", "feature-a-b-c"]
    assert len(set(told)) == len(told) == len(set(names))
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-") for name in told)


def test_nobody_is_shown_a_headline_but_the_news_agent() -> None:
    words = Feature("news.item.n1", "Central bank cuts")
    features = {"news.item.n1": words, "news.score": Feature("news.score", 0.2)}
    shown = {name: citations.shown_to(name, features) for name in SAYS}
    assert [name for name, seen in shown.items() if words.id in seen] == ["news"]


# --- what each was given ---


def test_prose_of_others_is_told_as_it_was_shown() -> None:
    record = record_of("whole")
    shown = shown_tick(record)
    rows = {row.who: row for row in inputs.quotations(shown, transcripts.conversation(shown))}
    (report,) = [r for r in record["deliberation"]["reports"] if r["agent_id"] == "technical"]
    context = DebateContext("", "", "", "", {}, nonce=citations.NONCE)
    known = AgentReport("technical", claim=report["claim"])
    assert rows["Technical"].prose.startswith(visible(known, context).reasoning)
    assert rows["News"].prose == ""
    assert rows["News"].numbers.startswith("price action +0.10")
    assert rows["Key levels"].numbers == "abstained"


def test_a_call_is_a_page_with_its_whole_prompt_and_reply() -> None:
    page = get(address_of("whole"), "desk")
    links = [a["href"] or "" for a in page.all("a") if "/calls/" in (a.get("href") or "")]
    calls = shown_tick(record_of("whole")).stored_calls
    assert sorted(int(link.rpartition("/")[2]) for link in links) == [*range(1, len(calls) + 1)]
    for link in links:
        call = calls[int(link.rpartition("/")[2]) - 1]
        text = get(link, "desk").text
        for whole in (call.system, call.user, call.reply):
            assert " ".join(figures.sanitize(whole).split()) in text


# --- the strip ---


def test_cost_and_time_stand_against_their_limits() -> None:
    record = record_of("whole")
    over = Page(tick_text(record | {"elapsed_ms": 15_300.0}))
    assert "102 % of the 15 s it had ! over the deadline" in over.text
    assert widths(over)[1] == 100.0
    bare = Page(tick_text(record | {"limits": None}))
    assert "the hour's ceiling is not known" in bare.text
    assert not widths(bare)


def widths(page: Page) -> list[float]:
    """Return how wide the bars of cost and time are."""
    bars = [a for tag, a in page.tags if tag in ("svg", "rect")]
    shares = [n for n, a in enumerate(bars) if a.get("class") == "share"]
    return [float(str(bars[n + 2]["width"])) for n in shares]


@cases(
    ("source", "flags", "words"),
    [
        ("AGENT_FULL", [], ""),
        ("AGENT_PARTIAL", [], "Some agents gave no answer"),
        ("L1_ONLY", [], "No agent was heard"),
        ("L1_ONLY", ["budget"], "the hour's ceiling left nothing"),
        ("L1_ONLY", ["not_asked"], "this desk has nobody to ask"),
        ("LEGACY", [], "one model scored the chart"),
        ("AGENT_SKIPPED", [], "no answer could have changed this verdict"),
    ],
)
def test_a_state_says_what_it_means_and_what_to_do(
    source: str, flags: list[Any], words: str
) -> None:
    told = agreement.note(shown_tick({"source_type": source, "deliberation": {"flags": flags}}))
    assert (told is None) == (words == "")
    if told:
        assert words in told.meaning
        assert len(told.advice) > 20
