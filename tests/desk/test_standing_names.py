"""A setting keeps its looks whatever its profile is called and whichever instances run with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from instance_database import Database, TickKey
from tests.worlds import desks, observed
from tests.worlds.busy_desk import trading
from torra.clock import Simulated, duration
from torra.config import Instance, Profile
from torra.desk import promotion
from torra.desk.promotion import Promotions, PromotionSubject, fingerprint
from torra.evaluation import promotion_evidence
from torra.evaluation.promotion_rule import PromotionEvidence, Rule
from torra.providers.rules.provider import RulesProvider
from torra.store import standings as standing_table
from torra.tick.bar_window import HistoryWindow, LiveWindow

FIRST = Instance(symbol="BTCUSD", timeframes=("M15",))
SECOND = Instance(name="btc-two", symbol="BTCUSD", timeframes=("M15",))
OTHER = Instance(symbol="EURUSD", timeframes=("H1",))
EARNED = trading("earned")
EDITED = EARNED.model_copy(update={"thresholds": Profile().thresholds})
MARK, EDITS = fingerprint(EARNED), fingerprint(EDITED)
SHORT = Rule(looks=(8, 16, 30, 100), later=100, least_blocks=1, least_flips=0)
OPEN = 4
"""Ticks at the end of a stretch whose four bars are not over."""


def live(folder: Path, instance: Instance, profile: Profile, first: int, bars: int) -> None:
    """Let an instance live through so many bars of a profile, from bar `first` of the story on."""
    desk = desks.open_desk(folder, (instance,), profile=profile, provider=RulesProvider())
    begin = desks.START + first * desks.QUARTER
    end = begin + bars * desks.QUARTER
    moved: Any = desk.clock
    moved.set(end)
    desks.open_for_work(desk)
    setup = desk.setups[instance.id]
    frames = {name: setup.feed.bars("BTCUSD", name, end, None) for name in instance.timeframes}
    LiveWindow(instance, setup.feed, desk.database).fill(end)
    edges = desk._edges(setup, HistoryWindow(frames), clock := Simulated(begin))
    for name, bar_time in desks.closes_of(instance, begin, end):
        clock.set(bar_time + duration(name))
        key = TickKey(instance.id, name, bar_time)
        (outcome,) = desk._run(setup, {key: clock.monotonic()}, edges)
        assert outcome.state == "done"
    desk.close()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """11 bars of a setting, 11 after an edit, 11 after its undo."""
    folder = tmp_path_factory.mktemp("story")
    live(folder, FIRST, EARNED, 0, 11)
    live(folder, FIRST, EDITED, 11, 11)
    live(folder, FIRST, EARNED, 22, 11)
    return folder


@pytest.fixture
def database(story: Path, tmp_path: Path) -> Iterator[Database]:
    Database.copy(story / "torra.db", tmp_path / "torra.db")
    with closing(desks.open_database(tmp_path)) as found:
        yield found


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float, int]]:
    """What each look went by: its number, its level and its ticks; all of them fail."""
    found: list[tuple[int, float, int]] = []

    def seen(pool: Any, look: Any, chance: Any) -> PromotionEvidence:
        found.append((look.number, look.level, int(pool.within(look).sum())))
        return PromotionEvidence(look.upto, 30, 0.0, -0.1, 0.1, 30, 0.0, 0.0, 0.5)

    monkeypatch.setattr(promotion_evidence, "evidence", seen)
    return found


def subject(name: str, profile: Profile = EARNED, *instances: Instance) -> PromotionSubject:
    return PromotionSubject(name, profile, instances or (FIRST,))


def look(
    database: Database, *subjects: PromotionSubject, rule: Rule = SHORT
) -> list[tuple[str, int]]:
    taken = Promotions(database, lambda: subjects, rule).look()
    return [(name, standing.look) for name, standing in taken]


# --- names and instances ---


@pytest.mark.journey
@pytest.mark.parametrize(
    "other",
    [
        pytest.param(subject("renamed"), id="renamed"),
        pytest.param(subject("copied", EARNED, OTHER), id="copied for another instance"),
        pytest.param(subject("default", EARNED, OTHER), id="its instance dropped"),
        pytest.param(subject("default", EARNED, FIRST, OTHER), id="an instance added"),
        pytest.param(
            subject("default", EARNED.model_copy(update={"symbols": {}}), OTHER),
            id="its symbol dropped",
        ),
    ],
)
def test_a_setting_goes_on_where_it_was(
    database: Database, looked: Any, other: PromotionSubject
) -> None:
    early = Rule(looks=(8, 100), later=100)
    assert look(database, subject("default"), rule=early) == [("default", 1)]
    before = promotion.account(database, subject("default"), SHORT)
    assert look(database, other, rule=early) == [], "no look is taken twice"
    after = promotion.account(database, other, SHORT)
    assert (after.ticks, after.standing, after.trial, after.next_look, after.looks) == (
        before.ticks, before.standing, 1, 16, before.looks,
    )  # fmt: skip
    assert look(database, other, subject("default")) == [(other.name, 2)], "nor left out"
    assert [(number, ticks) for number, _, ticks in looked] == [(1, 8), (2, 16)]


@pytest.mark.journey
def test_a_promotion_holds_under_every_name(database: Database) -> None:
    row: dict[str, Any] = {"trial": 1, "look": 1, "promoted": True, "reason": "told", "figures": {}}
    standing_table.write_standing(database, "default", MARK, **row)
    mine = Promotions(database, list)
    assert mine.promoted("renamed", EARNED) and not mine.promoted("default", EDITED)


def test_an_edit_and_its_undo_leave_each_setting_its_own_ticks(database: Database) -> None:
    """Of the edit 11 bars, of the rest 22, of which the last four are waited for."""
    counts = [promotion.pooled(database, subject("x", one)).count for one in (EARNED, EDITED)]
    assert counts == [22 - OPEN, 11]


@pytest.mark.journey
def test_settings_share_alpha_over_all_names(database: Database, looked: Any) -> None:
    """Whoever edits and renames begins with the ticks of the edit, and at a stricter level."""
    assert look(database, subject("default")) == [("default", 1), ("default", 2)]
    assert look(database, subject("better", EDITED)) == [("better", 1)]
    assert look(database, subject("default"), subject("better", EDITED)) == []
    assert [(number, level) for number, level, _ in looked] == [
        (1, SHORT.level(1)), (2, SHORT.level(1)), (1, SHORT.level(2)),
    ]  # fmt: skip
    assert [promotion.standing_of(database, m)[1] for m in (MARK, EDITS, "new")] == [1, 2, 3]


@pytest.mark.journey
def test_two_desks_that_look_at_once_give_no_number_twice(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one's look, of another setting, comes while this one computes: it looks again."""
    levels: list[float] = []

    def meanwhile(pool: Any, due: Any, chance: Any) -> PromotionEvidence:
        levels.append(due.level)
        row: dict[str, Any] = {
            "trial": 1,
            "look": 1,
            "promoted": False,
            "reason": "told",
            "figures": {},
        }
        standing_table.write_standing(database, "theirs", EDITS, **row)
        return PromotionEvidence(8, 30, 0.0, -0.1, 0.1, 30, 0.0, 0.0, 0.5)

    monkeypatch.setattr(promotion_evidence, "evidence", meanwhile)
    assert look(database, subject("default"), rule=Rule(looks=(8, 99, 99, 99))) == [("default", 1)]
    assert levels == [SHORT.level(1), SHORT.level(2)]
    assert promotion.standing_of(database, MARK)[1] == 2


def test_an_instance_that_begins_later_adds_its_ticks_and_moves_none(
    database: Database, tmp_path: Path
) -> None:
    """Of the same symbol too: each tick's outcome is that of its own instance's bars."""
    before = promotion.pooled(database, subject("default"))
    live(tmp_path, SECOND, EARNED, 60, 3)
    for one in (subject("default"), subject("mine", EARNED, SECOND)):
        after = promotion.pooled(database, one)
        first = after.stream == 0
        assert after.forward[first][: before.count].tolist() == (
            before.forward[: before.count].tolist()
        )
        assert len(after.stream) == len(before.stream) + 3
        assert after.count == before.count, "the last ones of the first are waited for"


# --- outcomes that come too late ---


def test_what_comes_after_a_long_gap_is_no_outcome() -> None:
    ticks = observed.random_arm(1, closes=12).ticks
    own = [tick for tick in ticks if tick.timeframe == "M15"][:4]
    bars = pd.DatetimeIndex([own[0].close_time + n * desks.QUARTER for n in range(20)])
    frame = pd.DataFrame({"open": 1.0, "close": 1.0}, index=bars)
    assert promotion_evidence.in_time(own, frame).all()
    assert not promotion_evidence.in_time(own, frame.shift(freq=timedelta(days=11))).any()
    assert not promotion_evidence.in_time(own, frame[:3]).any(), "four bars it takes"
