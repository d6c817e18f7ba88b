"""The tick's own sentence: one for every kind of tick, short, in words, and true to its record."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.contracts import SourceType
from tests.cases import cases
from tests.worlds.records import tick_record
from torra.tick.marks import OrderPhrase
from torra.tick.sentence import (
    MOST_ON_PAGE,
    MOST_WORDS,
    Finished,
    in_page_words,
    number,
    page_text,
    sentence,
)
from torra.verdict.vetoed import REFUSERS
from torra.words.deny_reasons import DenyReason
from torra.words.ticks import GATE_REASONS

BUY: Final = Finished(
    symbol="BTCUSD",
    timeframe="M15",
    verdict="BUY",
    l1_verdict="BUY",
    consensus=0.534,
    l1_consensus=0.527,
    buy=0.5,
    sell=0.5,
    reason="VERDICT",
    orders=(OrderPhrase("open", "BUY", 0.06),),
    source="AGENT_BUDGET",
    push=0.04,
)
HOLD: Final = replace(
    BUY, verdict="HOLD", l1_verdict="HOLD", consensus=0.124, l1_consensus=0.11,
    reason="THRESHOLD", orders=(),
)  # fmt: skip
HELD: Final = replace(BUY, orders=())
TURN: Final = (OrderPhrase("close", "SELL", 0.02), OrderPhrase("open", "SELL", 0.03))
SELL: Final = replace(
    BUY, verdict="SELL", l1_verdict="SELL", consensus=-0.61, l1_consensus=-0.6, push=-0.1,
    reason="OPPOSITE_VERDICT", orders=TURN,
)  # fmt: skip

LONG: Final = replace(
    SELL, reason="AWAITS_APPROVAL", orders=TURN[:1], l1_verdict="HOLD",
    l1_consensus=-0.49, denied=("DAILY_LOSS_CAP", "MARGIN"),
)  # fmt: skip

REACHED: Final = "the consensus +0.53 reaches the buy threshold +0.50"
FALLEN: Final = "the consensus -0.61 reaches the sell threshold -0.50"
INSIDE: Final = "the consensus +0.12 is between the thresholds -0.50 and +0.50"

CASES: Final[dict[str, tuple[Finished, str]]] = {
    "opened": (BUY, f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; L1 and the agents agree."),
    "against": (
        replace(BUY, against=True, push=-0.04),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; L1 carries the buy, and the agents "
        "lean against it.",
    ),
    "no side": (
        replace(BUY, push=0.0),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; L1 carries the buy, and the agents "
        "take no side.",
    ),
    "made from a hold": (
        replace(BUY, l1_verdict="HOLD", l1_consensus=0.4996),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; the agents made the buy verdict; without "
        "agents (+0.4996) it would hold.",
    ),
    "made from the other side": (
        replace(BUY, l1_verdict="SELL", l1_consensus=-0.52),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; the agents made the buy verdict; without "
        "agents (-0.52) it would sell.",
    ),
    "prevented": (
        replace(HOLD, l1_verdict="SELL", consensus=-0.499, l1_consensus=-0.503, push=0.02),
        "Does nothing in BTCUSD on M15: the consensus -0.499 is between the thresholds -0.50 and "
        "+0.50; the agents prevented the sell verdict; without agents (-0.503) it would sell.",
    ),
    "nothing": (
        HOLD,
        f"Does nothing in BTCUSD on M15: {INSIDE}; the agents lean up, and without them it "
        "would hold too.",
    ),
    "nobody heard": (
        replace(HOLD, source="L1_ONLY"),
        f"Does nothing in BTCUSD on M15: {INSIDE}; no agent answered.",
    ),
    "nobody heard, an opening": (
        replace(BUY, source="L1_ONLY", push=0.0, flags=("outage",), outage=0.25),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; no agent answered, and its size is cut to "
        "25 %.",
    ),
    "nobody could be paid": (
        replace(BUY, source="L1_ONLY", push=0.0, flags=("budget", "outage"), outage=1 / 6),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; no agent was asked, and its size is cut to "
        "17 %.",
    ),
    "all abstained": (
        replace(BUY, source="L1_ONLY", push=0.0, flags=("all_abstained",)),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; every agent abstained.",
    ),
    "one model in an outage": (
        replace(BUY, source="LEGACY", push=0.0, flags=("outage",), outage=0.25),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; L1 and the one model in the agents' place "
        "agree, and its size is cut to 25 %.",
    ),
    "nothing in an outage": (
        replace(HOLD, source="L1_ONLY", flags=("outage",), outage=0.25),
        f"Does nothing in BTCUSD on M15: {INSIDE}; no agent answered.",
    ),
    "nobody to ask": (
        replace(HOLD, source="L1_ONLY", flags=("not_asked",)),
        f"Does nothing in BTCUSD on M15: {INSIDE}; no agent was asked.",
    ),
    "skipped": (
        replace(HOLD, source="AGENT_SKIPPED"),
        f"Does nothing in BTCUSD on M15: {INSIDE}; no agent was asked, as no answer could change "
        "it.",
    ),
    "shadow": (
        replace(BUY, flags=("shadow",), push=-0.2),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; the agents only looked on.",
    ),
    "earlier answers": (
        replace(BUY, source="L1_ONLY", l1_verdict="HOLD", l1_consensus=0.49),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; no agent answered, yet agents' earlier "
        "answers made the buy verdict.",
    ),
    "one model": (
        replace(BUY, source="LEGACY", push=0.0),
        f"Buys 0.06 lots of BTCUSD on M15: {REACHED}; L1 and the one model in the agents' place "
        "agree.",
    ),
    "reversed": (
        SELL,
        f"Turns short in BTCUSD on M15, closing 0.02 lots and selling 0.03 lots: {FALLEN}; L1 and "
        "the agents agree.",
    ),
    "closed": (
        replace(SELL, orders=TURN[:1]),
        f"Closes the long of 0.02 lots in BTCUSD on M15: {FALLEN}; L1 and the agents agree.",
    ),
    "closed and not turned": (
        replace(SELL, orders=TURN[:1], denied=("DAILY_LOSS_CAP", "MARGIN")),
        "Closes the long of 0.02 lots in BTCUSD on M15 without turning short, as the day's loss "
        f"limit is reached (and 1 more): {FALLEN}; L1 and the agents agree.",
    ),
    "position held": (
        replace(HELD, reason="POSITION_HELD"),
        f"Keeps the open position in BTCUSD on M15: {REACHED}; L1 and the agents agree.",
    ),
    "execution off": (
        replace(HELD, reason="EXECUTION_OFF"),
        f"Sends no order for BTCUSD on M15, as execution is off: {REACHED}; L1 and the agents "
        "agree.",
    ),
    "proposed": (
        replace(BUY, reason="AWAITS_APPROVAL"),
        f"Wants to buy 0.06 lots of BTCUSD on M15, if approved: {REACHED}; L1 and the "
        "agents agree.",
    ),
    "proposed to turn": (
        replace(SELL, reason="AWAITS_APPROVAL"),
        f"Wants to turn short in BTCUSD on M15 with 0.03 lots, if approved: {FALLEN}; L1 "
        "and the agents agree.",
    ),
    "proposed, orders not recorded": (
        replace(HELD, reason="AWAITS_APPROVAL"),
        f"Has an order for BTCUSD on M15 and asks for approval: {REACHED}; L1 and the agents "
        "agree.",
    ),
    "denied": (
        replace(HELD, reason="SPREAD", denied=("SPREAD",)),
        f"Does not buy BTCUSD on M15, as the spread is too wide: {REACHED}; L1 and the agents "
        "agree.",
    ),
    "vetoed": (
        replace(HELD, reason="GATE_VETO", denied=("GATE_VETO",), vetoed=True),
        f"Does not buy BTCUSD on M15, as the gate vetoes it: {REACHED}; L1 and the agents agree.",
    ),
    "vetoed before": (
        replace(HELD, reason="GATE_VETO", denied=("GATE_VETO",)),
        f"Does not buy BTCUSD on M15, as the gate's veto of this side holds: {REACHED}; L1 and the "
        "agents agree.",
    ),
    "too long for the threshold": (
        LONG,
        "Wants to close the long of 0.02 lots in BTCUSD on M15 without turning short, as the day's "
        "loss limit is reached, if approved: consensus -0.61; the agents made the sell verdict; "
        "without agents it would hold.",
    ),
    "too long for the consensus": (
        replace(LONG, against=True),
        "Wants to close the long of 0.02 lots in BTCUSD on M15 without turning short, as the day's "
        "loss limit is reached, if approved: the agents made the sell verdict, though their words "
        "lean against it.",
    ),
}  # fmt: skip


@cases("kind", CASES)
def test_each_kind_of_tick_has_its_sentence(kind: str) -> None:
    tick, expected = CASES[kind]
    assert sentence(tick) == expected
    check(expected)


def test_every_deny_reason_has_its_words() -> None:
    assert all(reason.cause and len(reason.cause.split()) <= 7 for reason in DenyReason)


def check(text: str, most: int = MOST_WORDS) -> None:
    """Require one short sentence without any code."""
    # a page has a few words more for L1 than the record
    longer = 2 * text.count("the bars alone carry") + text.count("the bars and")
    assert len(text.split()) - longer <= most, text
    assert text.endswith(".") and not re.search(r"\.\s|\n|[!?]", text), text
    assert "_" not in text and not re.search(r"[\u0370-\u03ff]", text), text
    capitals = set(re.findall(r"\b[A-Z][A-Z0-9]+\b", text))
    assert capitals <= {"BTCUSD", "EURUSD", "XAUUSD", "M15", "H1", "H4", "L1", "UTC"}, text


scores = st.floats(-1, 1) | st.sampled_from((0.5, -0.5, 0.49999999, -0.00000001))
sizes = st.sampled_from((1.0, 0.01, 1234.56, 0.1 + 0.2))
verdicts = st.sampled_from(("BUY", "SELL", "HOLD"))
words = st.sampled_from(("", "odd_word", "VERDICT", "POSITION_HELD", "AWAITS_APPROVAL"))
any_finished = st.builds(
    Finished,
    symbol=st.just("BTCUSD"),
    timeframe=st.sampled_from(("M15", "H1")),
    verdict=verdicts,
    l1_verdict=verdicts,
    consensus=scores,
    l1_consensus=scores,
    buy=st.sampled_from((0.5, 0.02, 0.123456)),
    sell=st.sampled_from((0.5, 0.3)),
    reason=words | st.sampled_from(["EXECUTION_OFF", *(str(one) for one in DenyReason)]),
    denied=st.lists(st.sampled_from([*map(str, DenyReason), "NEW_CHECK"]), max_size=4),
    orders=st.lists(
        st.builds(
            OrderPhrase,
            kind=st.sampled_from(("open", "close")),
            side=st.sampled_from(("BUY", "SELL")),
            lots=sizes,
        ),
        max_size=3,
    ),
    vetoed=st.booleans(),
    against=st.booleans(),
    source=st.sampled_from([*map(str, SourceType), "", "ODD_ONE"]),
    flags=st.lists(st.sampled_from(("shadow", "budget", "late:bull")), max_size=2),
    push=st.none() | scores,
)
other_facts = st.fixed_dictionaries(
    {
        "composites": st.dictionaries(
            st.sampled_from(("M15", "H1", "H4")),
            st.fixed_dictionaries(
                {
                    "composite": st.floats(-1, 1),
                    "close_time": st.just("2021-10-27T05:00:00Z"),
                    "fresh": st.booleans(),
                }
            ),
        ),
        "memory": st.fixed_dictionaries(
            {
                "position": st.sampled_from(("LONG", "SHORT", "FLAT", 3)),
                "open_positions": st.lists(
                    st.fixed_dictionaries(
                        {
                            "direction": st.sampled_from(("LONG", "SHORT", None)),
                            "age_ticks": st.sampled_from((0, 1, 120, 0.5, True)),
                        }
                    ),
                    max_size=2,
                ),
            }
        ),
    }
)


@pytest.mark.journey
def test_any_tick_has_one_short_sentence_in_words(scaled: Callable[..., int]) -> None:
    @settings(max_examples=scaled(10_000, least=100), deadline=None)
    @given(any_finished, other_facts)
    def short(tick: Finished, facts: dict[str, Any]) -> None:
        said = sentence(tick)
        check(said)
        record = tick_record(facts, sentence=said, timeframe=tick.timeframe)
        check(page_text(record), MOST_ON_PAGE)

    short()


def test_a_stored_sentence_is_told_as_it_is() -> None:
    assert page_text(tick_record({"sentence": "Said then."})) == "Said then."


@given(st.floats(-1, 1), st.floats(-1, 1).map(lambda value: round(value, 2)))
def test_a_written_score_stays_on_its_side_of_a_limit(value: float, limit: float) -> None:
    value = round(value, 8)
    shown = float(number(value, (limit,)))
    assert (shown > limit, shown < limit) == (value > limit, value < limit)


# --- the facts of real ticks ----------------------------------------------------------------------


"""So that a desk turns within a few hours."""

"""Who speaks, under what profile, what sentences must speak of, and within how many bars."""


def kept(**more: Any) -> str:
    """Return what is told of a tick that kept its position."""
    tick = {
        "reason": "POSITION_HELD",
        "verdict": "BUY",
        "sentence": "Keeps the open position in BTCUSD on M15: x.",
        "memory": {
            "position": "LONG",
            "open_positions": [{"direction": "LONG", "pnl": 4.1, "age_ticks": 3}],
        },
    }
    return page_text(tick_record(tick | more)).removesuffix(" in BTCUSD on M15: x.")


def test_a_kept_position_is_told_with_its_side_and_age() -> None:
    assert kept() == "Keeps the long in BTCUSD on M15, open for 3 bars: x."
    short = [{"direction": "SHORT", "age_ticks": age} for age in (1, 4)]
    memory = {"position": "SHORT", "open_positions": short}
    once = "Keeps the short in BTCUSD on M15, open for 1 bar: x."
    assert kept(verdict="SELL", memory=memory) == once
    # a profile may keep what stands against the verdict
    assert kept(memory=memory) == once
    # a timeframe of the same close may have turned it meanwhile
    assert kept(memory=memory, together={"H1": 0.2}) == "Keeps the open position"
    assert kept(memory={"position": "FLAT", "open_positions": []}) == "Keeps the open position"
    new = {"position": "LONG", "open_positions": [{"direction": "LONG", "age_ticks": 0}]}
    assert kept(memory=new) == "Keeps the long in BTCUSD on M15, opened within this bar: x."
    for odd in ([], [{"direction": "LONG"}], [{"direction": "LONG", "age_ticks": -1}], ["x"], 3):
        assert kept(memory={"position": "LONG", "open_positions": odd}) == "Keeps the long"
    assert page_text(tick_record({"sentence": "Keeps the open position: x."})).startswith(
        "Keeps the open position"
    )


PULLED: Final[dict[str, Any]] = {
    "sentence": "Does nothing in BTCUSD on M15: x.",
    "timeframe": "M15",
    "as_of": "2021-10-27T05:45:00Z",
    "verdict": "HOLD",
    "source_type": "AGENT_BUDGET",
    "composite": 0.2,
    "consensus": -0.1,
    "thresholds": {"buy": 0.5, "sell": 0.5},
    "deliberation": {"panel": {"push": 0.03}},
}
AN_HOUR: Final = {
    "composite": -0.3, "close_time": "2021-10-27T05:00:00Z", "fresh": True, "weight": 0.6,
}  # fmt: skip


def pulled(**more: Any) -> str:
    """Return what is told of a tick whose bar and agents lean up, while H1's composite is below."""
    own = {"composite": 0.2, "close_time": PULLED["as_of"], "fresh": True, "weight": 0.4}
    of = {"M15": own, "H1": AN_HOUR}
    return page_text(tick_record({**PULLED, "composites": of, **more}))


def test_the_sentence_of_a_page_stays_as_it_is() -> None:
    """Home keeps records with the sentence that their page has."""
    for more in ({}, {"composite": 0.6, "consensus": 0.2}, {"consensus": 0.1}):
        sentence = pulled(**more)
        assert pulled(sentence=sentence, **more) == sentence


def test_an_earlier_composite_against_this_bar_is_told() -> None:
    whole = (
        "Does nothing in BTCUSD on M15: x; H1 of 2021-10-27 05:00 UTC (−0.30) pulls the other way."
    )
    assert pulled() == whole
    # this bar alone would reach the threshold
    assert pulled(composite=0.6, consensus=0.2) == whole
    silent: tuple[dict[str, Any], ...] = (
        {"consensus": 0.1},
        {"composite": -0.1},
        {"composites": {"H1": {**AN_HOUR, "composite": 0.1}}},
        {"composites": {"H1": {**AN_HOUR, "fresh": False}}},
        {"composites": {"H1": {**AN_HOUR, "close_time": PULLED["as_of"]}}},
        {"composites": {"H1": AN_HOUR, "H4": AN_HOUR}},
        {"deliberation": {"panel": {"push": -0.03}}},
        {"deliberation": {"panel": {"push": 0.03}, "flags": ["shadow"]}},
        {"deliberation": {}},
        {"source_type": "LEGACY"},
    )
    for more in silent:
        assert pulled(**more) == PULLED["sentence"], more


def test_earlier_answers_are_told_with_their_timeframe() -> None:
    said = "Does nothing: agents' earlier answers prevented the sell verdict."
    named = (
        "Does nothing: the H1 agents' answers of 2021-10-27 05:00 UTC prevented the sell verdict."
    )
    assert pulled(sentence=said) == named
    assert pulled(sentence=said, composites={"H1": AN_HOUR, "H4": AN_HOUR}) == said
    long = said.replace("nothing", "nothing " * MOST_ON_PAGE)
    assert pulled(sentence=long) == long


def test_a_page_writes_sizes_alike_and_a_veto_as_that_of_whoever_made_it() -> None:
    assert in_page_words("Buys 0.1 lots of X-Y at -0.5") == "Buys 0.10 lots of X-Y at −0.5"
    for said in ("Buys 0.12 lots of X", "Buys 1 lot of X", "Sells 0.1 R"):
        assert in_page_words(said) == said
    for code, who in REFUSERS.items():
        stored = f"Does not buy X, as the gate vetoes it ({GATE_REASONS[code]}): the consensus"
        assert in_page_words(stored) == stored.replace("the gate", f"the {who}")
    of_the_gate = f"as the gate vetoes it ({GATE_REASONS['WIDE_SPREAD']})"
    assert in_page_words(of_the_gate) == of_the_gate


def test_a_minus_is_written_as_one() -> None:
    assert page_text(tick_record(sentence="Sells XAU-USD on M15 at -0.5.")).endswith(
        "XAU-USD on M15 at −0.5."
    )


@cases(
    ("judge", "says"),
    [
        ("", "L1 and the agents agree."),
        ("LONG", "L1 and the agents agree."),
        ("NONE", "L1 and the experts agree, and the judge takes no side."),
        ("SHORT", "L1 and the experts agree, and the judge is against it."),
    ],
)
def test_a_judge_that_does_not_go_along_is_told(judge: str, says: str) -> None:
    text = sentence(replace(BUY, judge=judge))
    assert text.endswith(f"; {says}") and len(text.split()) <= MOST_WORDS
    assert in_page_words(text).count("on balance") == 1
