"""What arms came to: R a trade first, money at one size, and why more wins may earn less."""

from __future__ import annotations

from typing import Any

import pytest

from torra.evaluation.exhibits import ReportTable
from torra.exhibits.outcome import ArmsConclusion, outcome

MINUS = "\N{MINUS SIGN}"


def arm(name: str, result: float, trades: int = 54, **more: float | None) -> dict[str, Any]:
    """Return the figures of an arm as the table of arms has them."""
    told: dict[str, float | None] = {
        "return": result, "trades": trades, "drawdown": 0.025, "hit_rate": 0.4, "expectancy": 0.1,
        "low": -0.2, "high": 0.4, "model_cost": 0.0, "size": 0.86, **more,
    }  # fmt: skip
    return {f"{name}.{key}": value for key, value in told.items()}


def told(*arms: dict[str, Any], enough: bool = False, **figures: dict[str, Any]) -> ArmsConclusion:
    """Return what arms came to; `figures` are those of further tables, by name."""
    names = [next(iter(one)).partition(".")[0] for one in arms]
    known = {name: value for one in arms for name, value in one.items()}
    tables = [table("arms", known, enough=enough)]
    tables += [table(name, own) for name, own in figures.items()]
    found = outcome(tables, names)
    assert found is not None
    return found


def table(name: str, figures: dict[str, Any], *, enough: bool = True) -> ReportTable:
    return ReportTable(
        title="t", name=name, figures=figures, enough=enough, columns=("a",), rows=(("x",),)
    )


def test_the_sentence_says_r_a_trade_first_and_then_money_at_one_size() -> None:
    budget = arm("budget", 0.0295, trades=50, expectancy=0.08, beside=-0.0125)
    assert told(arm("l1", 0.0421), budget).sentence == (
        "The bars alone +0.100 R a trade, the budget desk +0.080 R: the budget desk cost 1.2 % "
        "of the capital beside the bars alone, each at its own mean size, and 54 trades cannot "
        "tell skill from luck."
    )


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        (
            (0.02,),
            "the budget desk brought 2.0 % of the capital beside the bars alone, each at its own "
            "mean size",
        ),
        ((0.0002,), "agents made no difference"),
        (
            (-0.02, -0.01),
            "the budget desk cost 2.0 % and the full desk cost 1.0 % of the capital beside",
        ),
        (
            (-0.01, 0.02),
            "the budget desk cost 1.0 % and the full desk brought 2.0 % of the capital "
            "beside the bars alone, each at its own mean size",
        ),
        ((0.0, 0.02), "the budget desk made no difference and the full desk brought 2.0 %"),
    ],
)
def test_what_agents_brought_or_cost(beside: tuple[float, ...], said: str) -> None:
    desks = zip(("budget", "full"), beside, strict=False)
    # The smaller loss in money is that of a smaller order, and no headline tells it as a gain.
    arms = [arm("l1", -0.3), *(arm(name, -0.1, beside=share) for name, share in desks)]
    sentence = told(*arms).sentence
    assert said in sentence
    assert "%" not in sentence.replace(said, "") or "made no difference and" in said


def test_a_file_of_before_says_nothing_of_money() -> None:
    assert told(arm("l1", -0.3), arm("budget", -0.1)).sentence == (
        "The bars alone +0.100 R a trade, the budget desk +0.100 R: 54 trades cannot tell skill "
        "from luck."
    )


@pytest.mark.parametrize(
    ("trades", "buys", "said"),
    [
        (50, 40, "Of the trades of the bars alone 80 % are buys: one side is tested."),
        (50, 5, "Of the trades of the bars alone 90 % are sells: one side is tested."),
        (50, 39, ""),
        (50, 11, ""),
        (19, 19, ""),
        (50, None, ""),
    ],
)
def test_bars_that_test_one_side_are_named(trades: int, buys: int | None, said: str) -> None:
    found = told(arm("l1", 0.01, trades=trades, buys=buys), arm("budget", 0.01)).sentence
    assert found.endswith(f"from luck. {said}" if said else "from luck.")


@pytest.mark.parametrize(("edge", "said"), [(1.0, True), (0.0, False)])
def test_an_edge_of_the_bars_says_what_its_days_come_to(edge: float, said: bool) -> None:
    entries = {"claims": {"l1.edge": edge}, "random-entries": {"l1.delayed": 0.07}}
    found = told(arm("l1", 0.01), enough=True, **entries).sentence
    after = "; random entries of the same side soon after each come to +0.070 R."
    assert found.endswith(after) == said


@pytest.mark.parametrize(
    ("enough", "edge", "high", "said"),
    [
        (False, 0.0, 0.4, "54 trades cannot tell skill from luck."),
        (True, 0.0, 0.4, "54 trades show no skill beyond luck."),
        (True, 0.0, -0.1, "the bars alone lose beyond bad luck."),
        (True, 1.0, 0.4, "the result of the bars alone stands out from luck on these bars."),
        (False, 1.0, 0.4, "the result of the bars alone stands out from luck on these bars."),
    ],
)
def test_luck_is_what_the_tables_say(enough: bool, edge: float, high: float, said: str) -> None:
    arms = (arm("l1", 0.01, high=high), arm("budget", 0.01, beside=0.0))
    assert told(*arms, enough=enough, claims={"l1.edge": edge}).sentence.endswith(f", and {said}")


def test_one_alone_and_nobody_at_all() -> None:
    assert told(arm("l1", -0.0021, trades=1)).sentence == (
        f"The bars alone +0.100 R a trade, {MINUS}0.21 % with 1 trade: 1 trade cannot tell skill "
        "from luck."
    )
    assert told(arm("l1", 0.0, trades=0), arm("full", 0.0, trades=0)).sentence == (
        "Nobody traded here, with agents or without: there is nothing to compare."
    )


def test_a_placebo_is_in_the_table_and_not_in_the_sentence() -> None:
    found = told(arm("l1", 0.01), arm("budget", 0.01), arm("placebo_flipped", 0.09))
    assert "9.00" not in found.sentence
    assert [line.called for line in found.lines] == [
        "bars alone",
        "budget desk",
        "budget desk with its answers turned around (placebo)",
    ]
    assert found.lines[0].cells == (
        "+1.00 %", "2.5 %", "54", "40 %", f"+0.10 ({MINUS}0.20 to +0.40)", "$0.00",
    )  # fmt: skip


def test_what_is_not_known_is_a_dash() -> None:
    found = told(arm("l1", 0.0, trades=0, expectancy=None, low=None, high=None, hit_rate=None))
    assert found.lines[0].cells[3:5] == ("—", "—")


def test_more_wins_that_earned_less_are_explained_by_size() -> None:
    arms = (arm("l1", 0.04), arm("budget", 0.03, size=0.54))
    found = told(*arms, discordant={"budget.wins": 19, "budget.losses": 7})
    assert found.why == (
        "Where the budget desk changed the verdict, 19 changes were better than the verdict of "
        "the bars and 7 worse. It still earned less, because it traded smaller: 54 % of a full "
        "order on average, "
        "the bars alone 86 %."
    )


def test_without_more_wins_size_is_told_alone_and_without_it_nothing() -> None:
    small, same = arm("budget", 0.03, size=0.54), arm("budget", 0.03)
    lost = {"budget.wins": 3, "budget.losses": 7}
    assert told(arm("l1", 0.04), small, discordant=lost).why.startswith(
        "The budget desk traded smaller: 54 % of a full order"
    )
    assert told(arm("l1", 0.04), same, discordant=lost).why == ""
    won = {"budget.wins": 9, "budget.losses": 7}
    assert "a change counts the same" in told(arm("l1", 0.04), same, discordant=won).why


@pytest.mark.parametrize("name", ["other", "arms"])
def test_another_programs_tables_say_nothing_of_money(name: str) -> None:
    assert outcome([table(name, {})], ["l1", "budget"]) is None
    assert outcome([table(name, arm("budget", 0.1))], ["budget"]) is None
    assert outcome([], []) is None
