"""What a manager or a judge leaves of conviction: NONE, the side, and a debate that was not held.

Document 000 leaves a case without opponents unchanged. A quorum that is missed never makes an
opening larger, whatever the analysts that failed would have said.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from agent_config import MODES
from agents.contracts import SIDES, VECTORS, AgentReport, ModelUnavailable, Winner
from agents.debate.scoring import DIRECTIONS, UNHELD, UNJUDGED, CountedReport, Panel, panel_of
from agents.registry import AGENTS
from tests.doubles.scripted import (
    FULL_FEATURES,
    Scripted,
    abstaining,
    context,
    debate,
    reporting,
    settings,
)

Scaled = Callable[..., int]
FIRM: Final = MODES["firm"].seats
ANALYSTS: Final = FIRM[:4]
NAMES: Final[tuple[Winner, ...]] = ("LONG", "SHORT", "NONE")
OWN: Final[dict[str, Winner]] = {"BUY": "LONG", "SELL": "SHORT"}
ABOUT: Final = context(features={**FULL_FEATURES, "company.pe": 20.0})


def report(rng: random.Random, name: str) -> CountedReport:
    """Return a drawn opinion; a researcher's is never against its own side."""
    way = SIDES.get(name)
    moves = {v: rng.choice([None, 0.0, rng.uniform(-0.3, 0.3)]) for v in VECTORS}
    if way:
        moves = {v: None if a is None else way * abs(a) / 2 for v, a in moves.items()}
    return CountedReport(
        AGENTS[name].role,
        AgentReport(
            name, moves, rng.choice(["high", "medium", "low"]),
            flags=rng.choice([(), (), ("ungrounded",)]),
            abstained=rng.random() < 0.15,
        ),
    )  # fmt: skip


def manager(rng: random.Random) -> AgentReport:
    """Return a drawn ruling of a manager, or that it failed or abstained."""
    ruling = AgentReport(
        "research_manager", dict.fromkeys(VECTORS), rng.choice(["high", "medium", "low"]),
        flags=rng.choice([(), ("ungrounded",)]), winner=rng.choice(NAMES),
    )  # fmt: skip
    return rng.choice([ruling, ruling, UNJUDGED, AgentReport.abstain("research_manager", "a test")])


def without_debate(answers: list[CountedReport], failed: list[str]) -> Panel:
    return panel_of(answers, (*failed, *SIDES), judged=UNHELD)


def test_a_missed_quorum_never_raises_a_conviction(scaled: Scaled) -> None:
    rng, less = random.Random("quorum"), 0
    for _ in range(scaled(10_000, 1_000)):
        failed = rng.sample(ANALYSTS, rng.choice([2, 3, 4]))
        heard = [report(rng, name) for name in ANALYSTS if name not in failed]
        would = [report(rng, name) for name in (*failed, *SIDES) if rng.random() < 0.8]
        missing = [name for name in failed if name not in {one.role.id for one in would}]
        missed = without_debate(heard, failed)
        held = panel_of([*heard, *would], missing, judged=manager(rng))
        for side in DIRECTIONS:
            one, other = missed.agreement(side), held.agreement(side)
            if not any(not answer.report.abstained for answer in heard):
                continue  # nobody was heard: the share of an outage (test_failures.py)
            assert one.raw <= 0.15 and one.conviction <= 0.06
            assert one.conviction <= other.conviction + 1e-12, (heard, would)
            less += one.conviction < other.conviction
    assert less


def test_without_opponents_conviction_is_left_as_it_is(scaled: Scaled) -> None:
    rng, met = random.Random("unopposed"), 0
    for _ in range(scaled(10_000, 1_000)):
        answers = [report(rng, name) for name in FIRM[:6]]
        if rng.random() < 0.8:  # markets in which analysts agree are rare among drawn ones
            answers = [one_sided(one) for one in answers]
        for side, own in OWN.items():
            ruling = replace(manager(rng), winner=rng.choice((own, NAMES[2])), abstained=False)
            found = panel_of(answers, judged=ruling).agreement(side)
            if found.opposition == 0.0 and found.dissent < 0.05:
                met += found.raw > 0.0
                assert found.conviction >= 0.7 * found.raw
    assert met > 50


def one_sided(answer: CountedReport) -> CountedReport:
    moves = {
        name: None if value is None else abs(value) * (0.01 if answer.role.id == "bear" else 1.0)
        for name, value in answer.report.adjustments.items()
    }
    if answer.role.kind == "researcher":
        moves = {
            name: None if value is None else SIDES[answer.role.id] * value
            for name, value in moves.items()
        }
    if answer.role.id == "bear_researcher":
        moves = dict.fromkeys(VECTORS, 0.0)
    return CountedReport(answer.role, replace(answer.report, adjustments=moves))


@pytest.mark.parametrize("winner", ["NONE", "SHORT"])
@pytest.mark.parametrize("none_cost", [0.0, 0.3, 0.6])
def test_no_side_costs_its_setting_and_never_more_than_the_other_side(
    winner: Any, none_cost: float
) -> None:
    def drawn(value: float, name: str) -> CountedReport:
        return CountedReport(
            AGENTS[name].role, AgentReport(name, dict.fromkeys(VECTORS, value), "high")
        )

    answers = [drawn(0.2, name) for name in ANALYSTS[:3]] + [drawn(-0.02, ANALYSTS[3])]
    ruling = AgentReport("research_manager", {}, "high", winner=winner)
    found = panel_of(answers, judged=ruling, none_cost=none_cost).buy
    cost = max(0.6 * 0.25, none_cost if winner == "NONE" else 0.6)
    assert found.raw == 0.75 and found.conviction == pytest.approx(0.75 * (1 - cost), abs=1e-8)


# --- the desk -------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", [ANALYSTS[:2], ANALYSTS[1:], ANALYSTS])
def test_below_its_quorum_a_firm_keeps_little(failing: tuple[str, ...]) -> None:
    down = ModelUnavailable("error", "503", again=False)
    script: dict[str, Any] = {name: reporting(value=0.1) for name in ANALYSTS}
    record = debate(
        Scripted({**script, **dict.fromkeys(failing, down)}),
        about=ABOUT, config=settings(mode="firm", second_look="never"),
    )  # fmt: skip
    assert record.not_asked == dict.fromkeys(SIDES, "quorum")
    assert f"degraded:{4 - len(failing)}_of_4" in record.flags
    for side in DIRECTIONS:
        agreed = record.panel.agreement(side)
        assert agreed.raw <= 0.15 and agreed.conviction <= 0.06


def test_an_analyst_that_abstains_counts_for_the_quorum() -> None:
    script: dict[str, Any] = {name: reporting(value=0.1) for name in ANALYSTS}
    script[ANALYSTS[0]] = ModelUnavailable("error", "503", again=False)
    agents = {**AGENTS, ANALYSTS[1]: abstaining(AGENTS[ANALYSTS[1]])}
    config = settings(mode="firm", second_look="never")
    record = debate(Scripted(script), about=ABOUT, config=config, agents=agents)
    assert not record.not_asked and not [one for one in record.flags if "degraded" in one]
