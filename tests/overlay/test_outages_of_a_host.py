"""A host whose models fail: its fallback is asked, it is told why, and nothing of it is final.

In every mode, with seats that abstain beside those that fail, through the real SDKs too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from agent_config import EXPERTS, MODES
from agents.contracts import OPINIONS, ModelUnavailable
from agents.registry import AGENTS
from tests.doubles.scripted import Scripted, chart, reporting
from tests.worlds import scorers
from torra.overlay import Overlay

"""Seconds of calls that hang, and of those that fail by themselves."""

ABSTAIN: Final = reporting(value=None, abstained=True, abstain_reason="nothing to read")
FAILURES: Final = {
    "500": ModelUnavailable("error", "500"),
    "hang": TimeoutError(),
    "garbage": "I would hold here.",
}


def overlay_of(folder: Path, mode: str, **agents: Any) -> Overlay:
    """Return an overlay whose profile has a mode, and agents that count."""
    told = {"mode": mode, "influence": "full", "second_look": "never", **agents}
    told |= {"max_api_cost_per_hour": 100.0}  # calls that fail are booked at their worst case
    return scorers.overlay(folder, agents=told)


def opinions(mode: str) -> list[str]:
    return [name for name in MODES[mode].seats if AGENTS[name].role.kind in OPINIONS]


def own(*_: Any) -> dict[str, Any]:
    """The host's own scorer."""
    return chart(score=0.5)


def holds(answer: Any, *, fallback: bool) -> None:
    """Nobody was heard and somebody failed: it is told, and not final."""
    assert answer.record["source_type"] == ("LEGACY" if fallback else "L1_ONLY")
    assert not answer.debated and not answer.again
    who = "your fallback" if fallback else "no agent"
    assert answer.why.startswith((f"{who} was heard", "there is no key"))
    assert answer.record["flags"] == ["outage"]
    if fallback:
        assert answer.record["hosted"]["fallback"]["momentum"] == 0.5
    else:
        assert scorers.numbers(answer.chart) == scorers.L1


@pytest.mark.by_day(4)
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("mode", list(MODES))
def test_an_abstention_beside_models_that_fail_answers_nothing(
    tmp_path: Path, mode: str, kind: str
) -> None:
    seats = opinions(mode)
    for number, silent in enumerate(([], seats[:1], seats[1:3])):
        overlay = overlay_of(tmp_path / str(number), mode)
        down = dict.fromkeys((*MODES[mode].seats, "chart_scorer"), FAILURES[kind])
        scorers.answered_by(overlay, Scripted({**down, **dict.fromkeys(silent, ABSTAIN)}))
        holds(scorers.asked(overlay, scores=scorers.L1), fallback=False)
        trouble = overlay.health()["trouble"]
        assert trouble["why"].startswith("no agent was heard")
        holds(scorers.asked(overlay, scores=scorers.L1, fallback=own), fallback=True)
        scorers.answered_by(overlay, Scripted())
        well = scorers.asked(overlay, scores=scorers.L1)
        assert well.debated and not well.why and not well.again and well.revision == 3
        assert scorers.asked(overlay, scores=scorers.L1).again
        overlay.close()


@pytest.mark.parametrize("mode", list(MODES))
def test_where_all_abstain_the_answer_is_final_and_says_so(tmp_path: Path, mode: str) -> None:
    overlay = overlay_of(tmp_path, mode)
    scorers.answered_by(overlay, Scripted(dict.fromkeys(MODES[mode].seats, ABSTAIN)))
    first = scorers.asked(overlay, scores=scorers.L1, fallback=own)
    again = scorers.asked(overlay, scores=scorers.L1, fallback=own)
    assert first.record["source_type"] == "L1_ONLY" and first.debated
    assert "all_abstained" in first.why and again.why == first.why
    assert again.again and scorers.numbers(again.chart) == scorers.L1


def test_a_reader_that_fails_beside_experts_that_abstain_is_asked_again(tmp_path: Path) -> None:
    overlay = overlay_of(tmp_path, "swarm")
    silent = dict.fromkeys(EXPERTS, ABSTAIN)
    scorers.answered_by(overlay, Scripted({**silent, "regime_reader": FAILURES["500"]}))
    assert not scorers.asked(overlay, scores=scorers.L1).debated
    scorers.answered_by(overlay, Scripted())
    assert scorers.asked(overlay, scores=scorers.L1).revision == 2


# --- through the SDKs -----------------------------------------------------------------------------
