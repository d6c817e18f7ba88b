"""What stands above a replay: bars that its costs do not fit, desks that were not whole and why."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pandas as pd
import pytest

from tests.feeds.broken_histories import split
from tests.worlds.arm_trades import trade
from tests.worlds.observed import quiet_ticks
from tests.worlds.price_series import sample, times_of
from torra.clock import parse
from torra.config import Profile, validate
from torra.evaluation.observations import ArmObservation
from torra.evidence.flow_readings import FlowRow
from torra.evidence.news_digest import NewsItem
from torra.evidence.scheduled_events import ScheduledEvent
from torra.replay import arms
from torra.replay.caveats import caveats, unheard
from torra.replay.outlook_then import PointInTimeData
from torra.replay.replaying import ReplayPlan, TradingCosts
from torra.replay.shards.companion_tracks import CompanionTrack
from torra.replay.shards.history import History

BEGIN = parse("2026-01-05")


def plan(spread: float, provider: str = "rules") -> ReplayPlan:
    """Return a plan over bars of which each has a range of 1.5."""
    index = pd.DatetimeIndex([BEGIN + n * timedelta(minutes=15) for n in range(8)])
    bars = pd.DataFrame({"open": 10.0, "high": 11.0, "low": 9.5, "close": 10.0}, index=index)
    history = History("BTCUSD", {"M15": bars}, {"M15": "bars.csv"})
    profile = validate(Profile, {"agents": {"provider": provider}}, "a test")
    return ReplayPlan(
        "told", history, profile, arms.chosen(("l1",)), TradingCosts(spread, 0.0, 0.0)
    )


def warned(spread: float) -> list[str]:
    return [line for line in caveats(plan(spread), ()) if "times the range" in line]


def test_a_spread_beyond_the_bars_own_range_is_called_out() -> None:
    (told,) = warned(15.0)
    assert told == (
        "The spread of 15 is 10 times the range of the median M15 bar (1.5): are these bars of "
        "BTCUSD?"
    )
    assert not warned(1.5)


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        pytest.param("rules", "no money, no time, or no answer", id="rules"),
        pytest.param("recorded", "the journal holds no reply for these requests", id="recorded"),
    ],
)
def test_why_a_desk_was_not_whole_goes_by_who_was_to_answer(provider: str, why: str) -> None:
    arm = ArmObservation("budget", quiet_ticks(4, source_type="AGENT_SKIPPED"), ())
    assert why in unheard(arm, provider)
    (told,) = (line for line in caveats(plan(1.0, provider), (arm,)) if "not whole" in line)
    assert f"its desk was not whole (4 AGENT_SKIPPED): {why}." in told


def test_a_companion_without_stored_bars_is_named_apart() -> None:
    tracks = tuple(
        CompanionTrack(name, name.upper(), timeframe, times, tuple(map(float, times)))
        for name, timeframe, times in (("dxy", "M15", ()), ("dxy", "H1", (1,)), ("vix", "M15", ()))
    )
    told = " ".join(
        caveats(dataclasses.replace(plan(1.0), outlook=PointInTimeData(companions=tracks)), ())
    )
    assert "Companions (dxy) are the bars that this desk has stored" in told
    assert "No bars of companions (vix) are stored: no tick knew them." in told
    beside = dataclasses.replace(plan(1.0), arms=arms.chosen(("beside",)))
    for these, nothing in ((tracks, False), (tracks[2:], True)):
        known = dataclasses.replace(beside, outlook=PointInTimeData(companions=these))
        assert any("No outside number" in line for line in caveats(known, ())) is nothing


def test_ticks_without_an_earlier_day_to_read_are_told() -> None:
    known = dataclasses.replace(plan(1.0), arms=arms.chosen(("swarm", arms.EVIDENCE)))
    assert any(
        "the placebo of the evidence has no earlier day" in one for one in caveats(known, ())
    )
    other = dataclasses.replace(known, arms=arms.chosen(("swarm",)))
    assert not any("earlier day" in one for one in caveats(other, ()))
    late = dataclasses.replace(known, begin=BEGIN + timedelta(days=3650))
    assert not any("earlier day" in one for one in caveats(late, ()))


def test_what_was_known_of_events_and_headlines_is_told() -> None:
    moment = BEGIN + timedelta(hours=1)
    event = ScheduledEvent(moment, "USD", "high", "rates")
    item = NewsItem("1", "s", "finnhub:x", "Bitcoin rises", moment, moment)
    outlook = PointInTimeData((event,), (item, item), (item,))
    known = dataclasses.replace(plan(1.0), outlook=outlook)
    told = " ".join(caveats(known, []))
    other = [
        dataclasses.replace(event, currency="EUR"),
        dataclasses.replace(event, impact="low"),
        dataclasses.replace(event, time=parse("2026-11-10T10:00:00Z")),
    ]
    none = dataclasses.replace(known, outlook=PointInTimeData(tuple(other)))
    assert "has no event of high impact for BTCUSD in these days" in " ".join(caveats(none, []))
    assert "away from 1 event of high impact of the calendar" in told
    assert "2 headlines of" in told
    assert "1 headline of vendors, as this desk first saw them, the first at 2026-01-05T01" in told
    assert "calendar" not in " ".join(caveats(plan(1.0), []))


def test_from_when_order_flow_counts_is_told() -> None:
    outlook = PointInTimeData(flow={"M15": (FlowRow(BEGIN, 5, 1, 1),)}, begin=BEGIN)
    told = " ".join(caveats(dataclasses.replace(plan(1.0), outlook=outlook), []))
    assert (
        "Order flow (M15) counts from the close of its bar; a live tick may have looked before it "
        "was there, or before a bar that was left out was counted."
    ) in told
    assert "Order flow" not in " ".join(caveats(plan(1.0), []))


def test_trades_across_a_jump_are_counted_with_their_results() -> None:
    bars = split(sample("BTCUSD_M15").iloc[:600], 10.0)
    jump = times_of(bars)[300].to_pydatetime()
    known = plan(1.0)
    history = dataclasses.replace(known.history, frames={"M15": bars})
    known = dataclasses.replace(known, history=history)
    hour = timedelta(hours=1)
    trades = (trade(jump - hour, -110.0), trade(jump - 5 * hour, 2.0), trade(jump + hour, -1.5))
    (said,) = (one for one in caveats(known, [ArmObservation("l1", (), trades)]) if "jump" in one)
    assert said == (
        "The bars alone: 1 trade across a jump of the price, with \u2212110.00 R of \u2212109.50 R "
        "in all: mend the bars first."
    )
    clean = dataclasses.replace(history, frames={"M15": sample("BTCUSD_M15").iloc[:600]})
    known = dataclasses.replace(known, history=clean)
    assert not [one for one in caveats(known, [ArmObservation("l1", (), trades)]) if "jump" in one]
