"""What agents want becomes a run by one pure function: a demotion, an order, a choice, no more."""

from __future__ import annotations

import random

import pytest
from pydantic import ValidationError

from tests.conftest import Scale
from tests.worlds.radar_runs import (
    STATES,
    check_held,
    evidence_of,
    odd_run,
    reply,
    row,
    run_of,
    stream_fact,
)
from torra.radar.decisions import (
    BRIEF,
    CARDS,
    Decisions,
    Demotion,
    applied,
    open_rows,
    sentences_about,
)
from torra.radar.turn_prompt import ROLES, Turn, prompt_of

CITED = ("radar.consensus",)
FULL = "A0|H1@2026-01-05T10:00:00Z/radar.consensus"


def test_ten_thousand_replies_promote_lose_and_change_nothing(scaled: Scale) -> None:
    """At night; every sentence that is shown is one of code's, and each demotion has a citation."""
    chance, seen, garbage = random.Random(69), set[str](), 0
    for _ in range(scaled(10_000, least=500)):
        rules = odd_run(chance)
        evidence = evidence_of(chance, rules)
        demotions, said, order = list[Demotion](), {}, tuple[str, ...]()
        for agent in chance.choices(("data", "signal", "signal", "insight"), k=3):
            try:
                turn = Turn.model_validate(reply(chance, rules, evidence))
            except ValidationError:
                garbage += 1
                continue
            demotions += [Demotion(agent, one.row, tuple(one.cites)) for one in turn.demote]
            order = tuple(turn.say)
            said = {"say": turn.say, "because": turn.because}
        run = applied(rules, Decisions((*demotions,), order, said, evidence))
        check_held(rules, run)
        own = {one.text for one in sentences_about(run, evidence)[0]}
        for line in run.portfolio_brief[1:]:
            first, _, reason = line.partition(" The reason: ")
            assert line in rules.portfolio_brief or (first in own and reason in {"", *own})
        texts = {text.partition(": ")[2].lower() for text in own}
        assert all(one.lower() in texts for card in run.cards for one in card.sentences)
        assert len(run.portfolio_brief) <= BRIEF and len(run.cards) <= CARDS
        seen |= {one.code for one in run.watch if one.objections}
        seen |= {one.code for one in run.act if one.objections}
    assert seen >= {"DEMOTED", "OPENED", "PROPOSED"} and garbage


def wanted(*cites: str, by: str = "signal", stream: str = "A0|H1") -> Decisions:
    return Decisions((Demotion(by, stream, cites),))


@pytest.mark.parametrize("code", STATES)
def test_held_back_and_observed_are_demoted_others_keep_their_place(code: str) -> None:
    rules = run_of(row("A0|H1", "act", (code,)), row("B|H1", "watch", ("STALE",)))
    run = applied(rules, wanted("2026-01-05T10:00:00Z/radar.consensus"))
    demoted = code in ("HELD_BACK", "OBSERVED")
    assert [one.stream for one in run.act] == ([] if demoted else ["A0|H1"])
    mine = run.watch[0] if demoted else run.act[0]
    assert mine.objections[0].cites == (FULL,)
    assert mine.objections[0].text == "The signal agent objects and cites the radar.consensus."
    assert (run.coverage.act, run.coverage.watch) == ((0, 2) if demoted else (1, 1))


@pytest.mark.parametrize(
    ("decisions", "why"),
    [
        (wanted(), "no fact of the row was cited"),
        (wanted("B|H1@2026-01-05T10:00:00Z/radar.consensus"), "no fact of the row was cited"),
        (wanted(FULL, by="data"), "only signal may demote"),
        (wanted(FULL, by="insight"), "only signal may demote"),
        (wanted(FULL, stream="B|H1"), "signal on a row: no row of act has the name"),
    ],
)
def test_what_is_refused_says_why_in_codes_words(decisions: Decisions, why: str) -> None:
    rules = run_of(row("A0|H1", "act", ("HELD_BACK",)), row("B|H1", "watch", ("STALE",)))
    run = applied(rules, decisions)
    assert (run.act, run.watch) == (rules.act, rules.watch)
    assert why in run.reasoning_log[-1]


def test_a_fact_that_a_tool_gave_of_the_row_is_a_citation() -> None:
    rules = run_of(row("A0|H1", "act", ("HELD_BACK",)))
    given = {"A0|H1": (stream_fact("A0|H1", "news.items.7", -1.0),)}
    wants = Decisions((Demotion("signal", "A0|H1", (given["A0|H1"][0].id,)),), evidence=given)
    assert applied(rules, wants).watch[0].code == "DEMOTED"


def test_the_brief_is_the_headline_and_the_chosen_sentences_with_their_causes() -> None:
    rules = run_of(
        row("A0|H1", "act", ("HELD_BACK",), deny_reason="GATE_VETO"),
        row("B|H1", "watch", ("NEAR_THRESHOLD",)),
    )
    sentences, causes = sentences_about(rules, {})
    texts = {one.id: one.text for one in sentences}
    assert causes == [("s1", "s2"), ("s6", "s7")]
    say = {"say": ["s7", "s6", "s1", "s2", "s99"], "because": [["s6", "s7"], ["s2", "s1"]]}
    run = applied(rules, Decisions(say=say))
    assert run.portfolio_brief == (
        "Deserves a look now: 1 would open, 1 near.",
        f"{texts['s6']} The reason: {texts['s7']}", texts["s1"], texts["s2"],
    )  # fmt: skip
    assert [(one.stream, len(one.sentences)) for one in run.cards] == [("A0|H1", 2), ("B|H1", 2)]
    assert applied(rules, Decisions()).portfolio_brief[1:] == rules.portfolio_brief[1:]


@pytest.mark.parametrize("most", [2_000, 4_000, 10_000])
@pytest.mark.parametrize("agent", ROLES, ids=lambda one: one.agent)
def test_a_prompt_of_sixteen_streams_is_within_its_cap_and_says_what_it_leaves_out(
    agent: object, most: int
) -> None:
    rows = [row(f"SYMBOL{n}|H1", "act", ("HELD_BACK",)) for n in range(16)]
    given = {
        one.stream: tuple(stream_fact(one.stream, f"news.items.{n}", 1.0) for n in range(30))
        for one in rows
    }
    prompt, left_out = prompt_of(agent, run_of(*rows), given, turn=1, most=most)  # type: ignore[arg-type]
    size = len(f"{prompt.system}{prompt.user}".encode())
    shown = prompt.user.count("SYMBOL")
    assert size <= most or not shown, "without a row it is refused as too long"
    assert "rows" in left_out and left_out in prompt.user
    assert len(open_rows(run_of(*rows))) == 8 and (shown or most < 4_000)


def test_a_prompt_that_holds_all_says_nothing_of_the_kind() -> None:
    run = run_of(row("A0|H1", "act", ("HELD_BACK",)))
    prompt, left_out = prompt_of(ROLES[1], run, {}, turn=4, most=10_000)
    assert left_out == "" and "Turn 4 of 4, your last." in prompt.user
    assert "  2026-01-05T10:00:00Z/radar.consensus = 0.31" in prompt.user
