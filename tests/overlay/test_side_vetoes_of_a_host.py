"""A host whose profile is a swarm is told of a veto of one side, anew and from the record."""

from __future__ import annotations

import json
from pathlib import Path

from tests.doubles.scripted import Scripted
from tests.worlds import scorers, swarm_ticks

CHANCE = 0.1
"""At this chance no trade of the sample pays."""


def test_a_veto_of_the_judges_side_reaches_a_host(tmp_path: Path) -> None:
    profiles = tmp_path / "home" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "mine.json").write_text(json.dumps({"agents": swarm_ticks.SWARM["agents"]}))
    provider = Scripted(
        {
            "regime_reader": swarm_ticks.read,
            **dict.fromkeys(swarm_ticks.LEANS, swarm_ticks.found),
            "judge": lambda request: swarm_ticks.decided(request, win_share=CHANCE),
        }
    )
    overlay = scorers.overlay(tmp_path, provider, profile="mine", strict=True)
    answer = scorers.asked(overlay, scores=scorers.L1)
    assert answer.debated and "NEGATIVE_EV" in answer.reasons
    assert (answer.veto, answer.veto_sides) == (False, ("BUY",)), "the other side stays free"
    again = scorers.asked(overlay, scores=scorers.L1)
    assert again.again and again.veto_sides == ("BUY",)
