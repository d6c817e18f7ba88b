"""A question that was debated is answered from the record; another one is a revision of its bar."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.doubles.scripted import Scripted
from tests.worlds import scorers
from torra.errors import StoreUnavailable
from torra.store import hosted as hosted_table
from torra.store import tick_queries


def test_the_same_question_is_answered_at_no_cost(tmp_path: Path) -> None:
    provider = Scripted()
    overlay = scorers.overlay(tmp_path, provider, strict=True)
    first = scorers.asked(overlay, scores=scorers.L1)
    asked = len(provider.requests)
    again = scorers.asked(overlay, scores=scorers.L1)
    assert asked == 4 and len(provider.requests) == asked
    assert again.chart == first.chart and again.debated and again.cost_usd == 0.0
    assert again.again and not first.again and again.record == first.record
    assert overlay.health()["answers"] == {"debated": 1, "from_the_record": 1}
    assert (again.veto, again.multiplier, again.l1) == (first.veto, first.multiplier, first.l1)
    assert again.record["sentence"] == first.record["sentence"]
    other = scorers.overlay(tmp_path, provider, strict=True)
    assert scorers.asked(other, scores=scorers.L1).chart == first.chart, "of another process, too"


CHANGES: dict[str, dict[str, Any]] = {
    "scores": {"scores": {**scorers.L1, "momentum": 0.3}},
    "one bit of a score": {
        "scores": {**scorers.L1, "momentum": float(np.nextafter(0.31234567, 1))}
    },
    "no scores": {"scores": None},
    "extra": {"extra": {"rsi": 61.0}},
    "headlines": {"headlines": ["Bitcoin falls"]},
    "bars": {"frame": scorers.bars(400, start=0).mul(1.0000001)},
    "more history": {"frame": scorers.bars(399, start=1)},
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_is_debated_anew_as_a_revision(tmp_path: Path, change: str) -> None:
    provider = Scripted()
    overlay = scorers.overlay(tmp_path, provider, strict=True)
    first = scorers.asked(overlay, scorers.bars(400), scores=scorers.L1)
    asked = len(provider.requests)
    told = {"scores": scorers.L1, "frame": scorers.bars(400), **CHANGES[change]}
    second = scorers.asked(overlay, told.pop("frame"), **told)
    assert second.revision == 2 and second.key == first.key
    assert len(provider.requests) == 2 * asked
    for table, rows in (("journal", 1), ("chains", 1), ("sentiment", 1), ("hosted", 2)):
        assert scorers.count(tmp_path, table) == rows
    back = scorers.asked(overlay, scorers.bars(400), scores=scorers.L1)
    assert (back.chart, back.revision, back.debated) == (first.chart, 1, True)
    assert len(provider.requests) == 2 * asked, "the first answer stands"
    assert back.record["l1"] == dict(first.l1) and back.record["hosted"]["revision"] == 1
    with closing(scorers.stored(tmp_path)) as database:
        record = database.tick_without_calls(first.key)
        assert record is not None and record["hosted"]["revision"] == 2
        assert (
            tick_queries.verdict_tallies(database, ["host:scorer:BTCUSD"])[
                ("host:scorer:BTCUSD", "M15")
            ][1]
            == 1
        )


def test_a_feed_that_stands_still_is_not_answered_as_if_it_were_fresh(tmp_path: Path) -> None:
    """Whatever was asked first: the veto of an old bar depends on its age alone."""
    frame = scorers.bars(400)
    close = scorers.closed_at(frame)
    for folder, order in (("one", (0, 3, 30)), ("two", (30, 0, 3))):
        overlay = scorers.overlay(tmp_path / folder, strict=True)
        vetoes = {}
        for hours in order:
            moment = close + timedelta(hours=hours)
            answer = scorers.asked(overlay, frame, scores=scorers.L1, as_of=moment)
            vetoes[hours] = (answer.veto, "STALE_DATA" in answer.reasons)
        assert vetoes == {0: (False, False), 3: (True, True), 30: (True, True)}
        assert scorers.count(tmp_path / folder, "hosted") == 2


def test_another_profile_is_another_question(tmp_path: Path) -> None:
    provider = Scripted()
    scorers.asked(scorers.overlay(tmp_path, provider, strict=True), scores=scorers.L1)
    other = scorers.profile(tmp_path, thresholds={"buy": 0.4})
    mine = scorers.overlay(tmp_path, provider, profile=other, strict=True)
    assert scorers.asked(mine, scores=scorers.L1).revision == 2


def test_two_overlays_on_one_home_are_two_streams(tmp_path: Path) -> None:
    one = scorers.overlay(tmp_path, strict=True, name="alpha")
    two = scorers.overlay(tmp_path, strict=True, name="beta")
    assert scorers.asked(one).revision == scorers.asked(two).revision == 1
    with closing(scorers.stored(tmp_path)) as database:
        assert list(hosted_table.hosted_streams(database)) == [
            "host:alpha:BTCUSD",
            "host:beta:BTCUSD",
        ]


def test_a_claim_that_was_lost_stores_nothing(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    desk = overlay._opened

    class Thief(Scripted):
        def submit(self, request: Any) -> Any:
            with desk.database.transaction():
                desk.database.change("UPDATE hosted SET owner = 'another'")
            return super().submit(request)

    scorers.answered_by(overlay, Thief())
    with pytest.raises(StoreUnavailable, match="claim lost"):
        scorers.asked(overlay, scores=scorers.L1)
    for table in ("journal", "chains", "sentiment", "calls", "bars", "trading_config"):
        assert scorers.count(tmp_path, table) == 0


def test_outcomes_are_told_once(tmp_path: Path) -> None:
    overlay = scorers.overlay(tmp_path, strict=True)
    key = scorers.asked(overlay, scores=scorers.L1).key
    assert overlay.outcome(key, verdict="BUY", r=1.25)
    assert not overlay.outcome(key, verdict="BUY", r=1.25), "told before"
    with pytest.raises(ValueError, match="was told as BUY"):
        overlay.outcome(key, verdict="SELL", r=1.25)
    with pytest.raises(ValueError, match="use BUY, SELL or HOLD"):
        overlay.outcome(key, verdict="LONG")
    with pytest.raises(ValueError, match="finite"):
        overlay.outcome(key, verdict="BUY", r=float("nan"))
    with pytest.raises(LookupError, match="no tick that is on record"):
        overlay.outcome(key.replace("M15", "H1"), verdict="HOLD")
    with pytest.raises(LookupError, match="no bar of the overlay"):
        overlay.outcome("BTCUSD|M15|2021-10-01T00:00:00Z", verdict="HOLD")
    with closing(scorers.stored(tmp_path)) as database:
        told = hosted_table.hosted_outcome(database, key)
        assert told is not None and (told["verdict"], told["r"]) == ("BUY", 1.25)
