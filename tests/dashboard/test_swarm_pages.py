"""A tick of a swarm: regime, board, conflicts, the judge and its expected value, and their sums."""

from __future__ import annotations

import copy
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from agents.debate.swarm import ExpectedValue
from tests.cases import cases
from tests.doubles.page_reader import Page, tick_text
from tests.worlds import firm_ticks, swarm_ticks
from tests.worlds.desk_pages import Pages
from tests.worlds.hostile_texts import MARKUP
from tests.worlds.records import shown_tick, tick_record
from torra.dashboard.record import (
    agreement,
    arithmetic,
    citations,
    reading_patterns,
    story_cards,
    swarm,
    vetoes,
    waterfall,
)
from torra.dashboard.record.story_cards import who
from torra.dashboard.record.thesis import objection
from torra.dashboard.trade import journal, why
from torra.tick.tick_record import TickRecord
from torra.tick.words import swarm_words
from torra.words import glossary

SCRIPT = MARKUP["script"]
ENDS = "the last low, in the next 12 bars"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return swarm_ticks.lived(tmp_path_factory.mktemp("swarm"))


def stored(case: str = "decided", **changes: Any) -> TickRecord:
    return tick_record({**swarm_ticks.record(case), **changes})


def with_swarm(case: str = "decided", **changes: Any) -> dict[str, Any]:
    """A record whose swarm has something else in it."""
    known = swarm_ticks.record(case)
    spoken = known["deliberation"]
    return {**known, "deliberation": {**spoken, "swarm": {**spoken["swarm"], **changes}}}


@pytest.mark.parametrize("case", ["decided", "disputed", "thin"])
def test_every_sum_of_a_swarm_comes_out_as_stored(case: str) -> None:
    assert arithmetic.failed_checks(stored(case)) == []


def test_every_sum_comes_out_without_judge_or_reader_and_where_it_vetoes_or_holds() -> None:
    for case in ("vetoed", "held", "judgeless", "blind", "agreed", "closing"):
        assert arithmetic.failed_checks(stored(case)) == [], case


@cases(
    ("part", "value", "name"),
    [
        ("trust", {"liquidity": 0.5}, "analyst average of price action"),
        ("budget", 0.9, "budget"),
        ("thin", True, "conviction, buy"),
    ],
)
def test_a_sum_that_does_not_come_out_is_named(part: str, value: Any, name: str) -> None:
    # thin bounds the conviction at 0.5: a desk that was surer tells it
    known = with_swarm("agreed" if part == "thin" else "decided", **{part: value})
    assert name in arithmetic.failed_checks(tick_record(known))


def test_a_wrong_expected_value_and_a_wrong_lean_are_named() -> None:
    known = swarm_ticks.record()["deliberation"]["swarm"]
    worth = {**known["judgement"], "value_r": 0.9}
    board = {**known["board"], "lean": 0.3}
    failed = arithmetic.failed_checks(tick_record(with_swarm(judgement=worth, board=board)))
    assert {"lean of the board", "expected value"} <= set(failed)


def test_the_steps_name_what_each_expert_counts_and_the_judges_bound() -> None:
    rows = {row.name: row.note for row in arithmetic.steps(stored())}
    assert rows["Liquidity"].endswith("counts 1.00")
    assert rows["Geometry"].endswith("counts 0.32")
    assert "a within ±0.15" in rows["Judge"]
    assert rows["Debate"] == "average + k judge"
    assert "Regime reader" not in rows
    names = [row.name for chart in waterfall.score_charts(stored()) for row in chart.steps]
    assert {"Liquidity × 1.00", "Geometry × 0.32", "Judge"} <= set(names)
    assert not {"Side left out", "Cut at a bound", "Fallback"} & set(names)


def test_the_board_draws_who_stands_where_and_the_conflict_between_them() -> None:
    board = swarm.board(stored())
    assert board is not None
    long, short, *silent = board.rows
    assert [row.name for row in (long, short)] == ["liquidity", "geometry"]
    middle = board.axis[1][0]
    assert short.x < middle < long.x
    assert long.r > short.r, "a word that counts more is drawn larger"
    assert [row.stand for row in silent] == [None, None]
    assert board.lines == [(long, short)]
    assert board.mean is not None and short.x < board.mean < long.x


NO_TRADE = "It takes no side: there is no trade to weigh and nothing to prove wrong. What would "
WHOLE = swarm_ticks.record()["deliberation"]["swarm"]
NOBODY: dict[str, Any] = {"stands": [], "conflicts": [], "abstained": [], "agreed": {}}


def chance(said: float, calibrated: float | None) -> dict[str, Any]:
    return {"judgement": {**WHOLE["judgement"], "said": said, "calibrated": calibrated}}


@cases(
    ("case", "changes", "says"),
    [
        ("agreed", {}, "None: no two experts stand clearly on opposite sides."),
        ("disputed", {}, "The reader reads a volatile market: the lower budget counts where"),
        ("disputed", {}, "30 %; the lower row of the two regimes leaves 40 %: the lower one"),
        ("blind", {}, "Nobody read it beside the code."),
        ("vetoed", {}, "= −0.44 R By this chance a long trade loses 0.44 R, so every BUY is"),
        ("held", {}, "■ no side high confidence"),
        ("vetoed", {}, "⊘ VETO of BUY"),
        ("held", {}, f"{NO_TRADE}settle it: a close beyond the nearest level, 66,833.11."),
        ("judgeless", {}, "■ no side It gave no answer: its word counts as a low one."),
        ("closing", {}, "▼ SHORT"),
        ("thin", {}, "Fewer than two experts spoke: conviction is 0.50 at most."),
        ("decided", chance(0.48, 0.4), "such chances 40 % came true: the lower counts (came)"),
        ("decided", chance(0.48, 0.6), "such chances 60 % came true: the lower counts (said)"),
        ("decided", {"storm": 0.5}, "The gate took × 0.50 for the same storm: only the smallest"),
        (
            "decided",
            {"board": {**WHOLE["board"], **NOBODY}, "judgement": None, "trust": {}},
            "What the regime left Regime",
        ),
    ],
)
def test_a_page_says_what_a_swarm_came_to(case: str, changes: dict[str, Any], says: str) -> None:
    assert says in Page(tick_text(with_swarm(case, **changes))).text


def test_an_expert_tells_how_often_it_was_right_where_a_tick_was_told() -> None:
    known = {"numbers": {"liquidity_hit_share": 0.54}}
    text = tick_text({**swarm_ticks.record(), "standing": known})
    assert text.count("right 54 % of the time in this regime") == 1


@pytest.mark.by_day(8)
@pytest.mark.parametrize(
    ("used", "reward_r", "cost_r"),
    [
        (0.408, 2.0, 0.06),
        (0.48, 2.0, 0.04),
        (0.4083, 1.9871, 0.0412),
        (0.2, 1.5049, 0.0049),
        *((0.01 + n * 0.0173, 1.0 + n * 0.0371, n * 0.0033) for n in range(50)),
    ],
)
def test_the_printed_terms_of_an_expected_value_add_up(
    used: float, reward_r: float, cost_r: float
) -> None:
    value_r = used * reward_r - (1.0 - used) - cost_r
    worth = ExpectedValue("LONG", used, None, used, reward_r, cost_r, value_r)
    found = swarm_words.terms(worth)
    assert found is not None
    shown = [Decimal(f"{one:.{found.decimals}f}") for one in found[2:6]]
    won, lost, cost, value = shown
    assert won - lost - cost == value
    assert float(value) == pytest.approx(value_r, abs=0.0051)
    assert float(cost) == pytest.approx(cost_r, abs=0.0051)
    # where two decimals do, there are no more
    sums = round(used, 2) * round(reward_r, 2), round(1.0 - used, 2), round(cost_r, 2)
    plain = round(round(sums[0], 2) - sums[1] - sums[2], 2) == round(value_r, 2)
    assert (found.decimals == 2) == plain
    text = swarm_words.worth(worth)
    numbers = [Decimal(one) for one in re.findall(r"[+-]?\d+\.\d+", text.partition(";")[0])]
    chance, reward, lost, cost, total = numbers
    assert round(chance * reward, 3 - plain) - lost - cost == total


@cases(
    ("case", "says"),
    [
        ("agreed", "no conflict"),
        ("disputed", "disputed by the reader (a volatile market)"),
        ("judgeless", "no judge was heard"),
    ],
)
def test_the_line_of_a_swarm(case: str, says: str) -> None:
    assert says in swarm.brief(stored(case))


def test_a_tick_of_another_desk_has_no_swarm() -> None:
    firm = tick_record(firm_ticks.record())
    assert (swarm.board(firm), swarm.brief(firm)) == (None, "")


def test_what_the_judge_cites_of_the_board_is_found_true() -> None:
    seen = citations.evidence(stored())
    assert seen["board.dominant"].value == "LONG"
    assert seen["board.conflict_1"].value == "liquidity:geometry"
    lean = swarm_ticks.record()["deliberation"]["swarm"]["board"]["lean"]
    assert citations.judge("board.lean", lean, seen) == citations.EQUAL
    assert citations.judge("board.lean", -lean, seen) == citations.OFF


def test_a_judge_that_does_not_take_a_side_is_told_as_against_it() -> None:
    assert objection(stored().deliberation, "BUY") == ""
    assert objection(stored().deliberation, "SELL") == "the judge takes the other side"
    held = stored("held")
    assert objection(held.deliberation, "BUY") == "the judge takes no side"
    said = [point.text for point in why.case(held, "BUY").why_not]
    assert any(one.startswith("The judge takes no side: ") for one in said)
    twice = copy.deepcopy(swarm_ticks.record("held"))
    (judge,) = [one for one in twice["deliberation"]["reports"] if one["agent_id"] == "judge"]
    judge["claim"] = "No side: of 2 experts 1 leans up and 1 down."
    said = [point.text for point in why.case(tick_record(twice), "BUY").why_not]
    assert "The judge takes no side: of 2 experts 1 leans up and 1 down." in said
    assert "Judge (takes no side)" in who(shown_tick(swarm_ticks.record("held")), "BUY")


def test_a_hold_names_what_proves_the_judge_wrong_and_whose_sureness_it_shows() -> None:
    known = swarm_ticks.record("closing")
    spoken = known["deliberation"]
    reports = [
        {**one, "falsifiers": [ENDS]} if one["agent_id"] == "judge" else one
        for one in spoken["reports"]
    ]
    known = {**known, "deliberation": {**spoken, "reports": reports}, "consensus": 0.1}
    held = shown_tick({**known, "verdict": "HOLD"})
    ends, whose = story_cards.refuting(held, [])
    assert ENDS in ends and whose == "the judge's short side"
    assert story_cards.conviction(held)[2] == "of a buy: the judge is short"
    bought = shown_tick({**known, "verdict": "BUY"})
    assert story_cards.refuting(bought, [])[0] == "—"


@cases(
    ("case", "says"),
    [("agreed", "Nobody disagreed, of 2 experts and the judge"), ("thin", "of 1 expert and the")],
)
def test_who_was_heard_counts_experts_and_the_judge_alone(case: str, says: str) -> None:
    assert says in who(shown_tick(swarm_ticks.record(case)), "BUY")


def test_what_proves_a_trade_wrong_is_the_judges_where_it_takes_that_side() -> None:
    (first,) = why.case(stored(), "BUY").falsifiers
    assert ENDS in first
    assert why.case(stored(), "SELL").falsifiers == []


def test_only_analysts_are_split_or_abstain() -> None:
    opposed = stored("closing")
    assert set(reading_patterns.abstained(opposed)) == {"microstructure", "macro"}
    both = {"geometry": 0.01, "liquidity": 0.01, "judge": -0.02}
    known = swarm_ticks.record("agreed")["deliberation"]
    panel = {**known["panel"], "pushes": both}
    record = stored("agreed", deliberation={**known, "panel": panel})
    assert "split" not in [one.slug for one in reading_patterns.holding(record)]


def test_a_row_of_the_risk_officer_without_a_source_is_no_fault() -> None:
    for name, word in (("macro.vix_rank", "VIX"), ("derivs.funding_rank", "funding")):
        meaning = agreement.meaning_of(f"silent:{name}")
        assert word in meaning
        assert "no fault" in meaning
    assert "no fault" not in agreement.meaning_of("silent:market.spread_atr")
    assert "0.50" in agreement.meaning_of("thin_swarm")
    assert "lower budget" in agreement.meaning_of("regime_disputed")


def test_a_tick_on_the_terminal_tells_a_swarm_term_by_term() -> None:
    rows = swarm_words.rows(stored().deliberation, "BUY", stored().features)
    assert list(rows)[:2] == ["judge", "size"]
    assert rows["size"] == "x 0.14 = gate 0.42 x conviction 0.47 x budget 0.70"
    assert rows["budget"] == (
        "70 % of an opening's size: the reader alone would leave 100 %; the regime's row leaves "
        "70 %: the lower one counts"
    )
    assert rows["trust"] == "liquidity 1.00, geometry 0.32"
    assert rows["geometry"].startswith(
        "short -0.150, its own confidence high, counts 0.32: The geometry"
    )
    assert rows["board"] == "long; liquidity weighs most here"
    assert rows["conflict"] == (
        "liquidity (long) against geometry (short); would settle it: "
        "a close beyond the nearest level, 66,833.11"
    )
    assert rows["judge"] == f"LONG, high confidence: {swarm_ticks.CLAIM}"
    assert rows["counter"] == swarm_ticks.COUNTER
    assert ENDS in rows["wrong by"]
    assert rows["value"] == "0.48 x 2.00 R - 0.52 x 1 R - 0.04 R = +0.40 R; pays from 35 % on"
    assert "close" not in rows
    assert swarm_words.rows(stored("vetoed").deliberation)["value"].endswith("; vetoes every BUY")
    assert "thin" in swarm_words.rows(stored("thin").deliberation)
    firm = tick_record(firm_ticks.record())
    assert swarm_words.rows(firm.deliberation) == {}


@cases(
    ("reason", "says"),
    [
        ("no micro or flow evidence (spread_percentile, ticks)", swarm_words.NO_SPREADS),
        ("no technical evidence (rsi_14)", "no technical evidence"),
        ("no sentiment evidence: off", "no sentiment evidence: off"),
        (None, ""),
    ],
)
def test_a_silence_on_the_terminal_names_no_id_of_a_feature(reason: str | None, says: str) -> None:
    assert swarm_words.silence(reason) == says


def test_what_a_swarm_writes_is_text_on_the_page(tmp_path: Path) -> None:
    def attack(request: Any) -> dict[str, Any]:
        return swarm_ticks.decided(request, claim=f"RSI is 61 {SCRIPT}", counter=f"2 {SCRIPT}")

    hostile = swarm_ticks.lived(tmp_path, {"judge": attack})
    text = hostile.text(swarm_ticks.TICK)
    assert SCRIPT not in text
    assert "alert(" in text, "the attack stood in the answer"


def test_a_gate_that_was_not_needed_is_told_as_no_failure(tmp_path: Path) -> None:
    agents = {**swarm_ticks.SWARM["agents"], "gate_call": "openings"}
    nothing_opens = {"thresholds": {"buy": 0.95, "sell": 0.95}, "agents": agents}
    pages = swarm_ticks.lived(tmp_path, profile={**swarm_ticks.SWARM, **nothing_opens})
    text = Page(pages.text(swarm_ticks.TICK)).text
    assert "Not asked: no need: nothing can open here, and the gate's rules stand" in text
    assert "was not asked, as nothing can open; the rules stand" in text
    assert "Risk gate: no need: nothing can open here" in text
    assert "did not answer" not in text
    assert "no call was made" not in text


def test_a_trade_tells_what_the_regime_left_of_its_size() -> None:
    made = journal._budget(shown_tick(swarm_ticks.record()))
    assert list(made) == [("Budget", "× 0.70", "a range left 70 % of the size")]
    assert list(journal._budget(shown_tick(firm_ticks.record()))) == []


def test_a_veto_of_one_side_speaks_against_that_side_alone_and_cuts_no_size() -> None:
    said = [point.text for point in why.case(stored("vetoed"), "BUY").why_not]
    assert "Every BUY is vetoed: the judge's odds do not pay." in said
    (size,) = [one for one in said if one.startswith("Size")]
    assert "odds" not in size
    assert not [p for p in why.case(stored("vetoed"), "SELL").why_not if p.who == "Veto"]


def test_a_judge_that_holds_both_sides_is_named_as_why() -> None:
    ruling = {"multiplier": 1.0, "veto": True, "reasons": ["JUDGE_HOLD"]}
    held = stored("held", gate={**ruling, "rule": ruling})
    assert vetoes.cause(held) == "JUDGE_HOLD, the judge takes no side"


def test_help_reads_a_split_by_the_board_where_a_judge_sits(pages: Pages) -> None:
    text = Page(pages.text("/help")).text
    assert "Read the board: who conflicts, on which facts, and what would settle it." in text
    assert "Read whose case the manager found stronger" not in text
    for word in ("Board", "Conflict", "Counter", "Expected value", "Break-even", "Budget"):
        assert glossary.entry(word).line in text, word
