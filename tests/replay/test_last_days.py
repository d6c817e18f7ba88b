"""The last 30 days with agents that count and by L1 alone, beside a question about agents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from agents.contracts import SourceType
from tests.cases import cases
from tests.worlds import desks, stores
from tests.worlds.busy_desk import VOICES, run, trading
from tests.worlds.observed import plain_tick
from torra.clock import System
from torra.config import DeskSettings, Instance, Profile
from torra.desk.promotion import PromotionSubject, ticks_of
from torra.evaluation.observations import ArmObservation, SwarmObservation, TickObservation
from torra.profiles.book import ProfileBook
from torra.profiles.fields import canonical, changed
from torra.profiles.guard import Change, compare
from torra.replay.changed import last_days as comparison
from torra.replay.changed.last_days import NO_TICK, NOTE, last_days
from torra.replay.l1.sweep import L1Backtest
from torra.verdict.order_levels import Levels, levels
from torra.verdict.position_size import size

GOLD = Instance(symbol="XAUUSD", timeframes=("M15",))
QUARTER = timedelta(minutes=15)
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
BARS = 40 * 96
"""Forty days of quarters."""

SPIKES = (BARS - 31 * 96, BARS - 20 * 96, BARS - 10 * 96)
"""Bars after which the price leaps to the target of a long: 31, 20 and 10 days before the end."""

ROW = re.compile(r"(\d+) openings?, ([\d.]+) lots and ([+−]?[\d.]+) R on average")


def free_of_costs() -> Profile:
    """The default profile, for which gold costs neither spread nor slippage."""
    values = canonical(Profile())
    places = [("symbols", "XAUUSD", name) for name in ("spread", "slippage")]
    return Profile.model_validate(changed(values, dict.fromkeys(places, 0.0)))


def market() -> pd.DataFrame:
    """Bars at 100 whose range is 1, and three that reach 104.5 and come back."""
    index = pd.date_range(BEGIN, periods=BARS, freq="15min")
    bars = pd.DataFrame(
        {"open": 100.0, "high": 100.5, "low": 99.5, "close": 100.0, "volume": 100.0}, index=index
    )
    bars.iloc[list(SPIKES), bars.columns.get_loc("high")] = 104.5
    return bars


def shelf_of(home: Path, profile: Profile | None = None, *instances: Instance) -> ProfileBook:
    desk = DeskSettings(instances=instances or (GOLD,))
    shelf = ProfileBook(home, desk, now=System().real_now)
    if profile is not None:
        shelf.save("default", lambda _: canonical(profile), digest=None, may="loosen", actor="ann")
    return shelf


def to_shadow(shelf: ProfileBook) -> tuple[Change, ...]:
    loaded = shelf.read("default").profile
    assert loaded is not None
    influence = "full" if loaded.agents.influence == "shadow" else "shadow"
    values = canonical(loaded)
    return compare(values, changed(values, {("agents", "influence"): influence}))


def figures(text: str) -> Any:
    """Return openings, mean lots and mean R of a side."""
    found = ROW.search(text)
    assert found is not None, text
    return int(found[1]), float(found[2]), float(found[3].replace("−", "-"))


def sides(lines: tuple[str, ...]) -> tuple[str, str]:
    assert lines[-1] == NOTE
    (line,) = lines[:-1]
    assert re.match(r"XAUUSD, \d+ ticks? in [\d.]+ of the last 30 days on paper: with agents", line)
    full, alone = line.split("; L1 alone ")
    return full, alone


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Plant a journal: at the close before each spike one tick, with these fields."""
    with closing(stores.open_database(tmp_path, now=System().real_now)) as database:
        database.store_bars("XAUUSD", "M15", market())

    def plant(**fields: Any) -> tuple[str, str]:
        comparison._lines.cache_clear()
        ticks = [plain_tick(BEGIN + at * QUARTER, **fields) for at in SPIKES]

        def asked(_: Any, __: Any, start: datetime, end: datetime) -> list[TickObservation]:
            return [tick for tick in ticks if start <= tick.close_time <= end]

        monkeypatch.setattr(comparison, "ticks_of", asked)
        shelf = shelf_of(tmp_path, free_of_costs())
        return sides(last_days(shelf, "default", to_shadow(shelf)))

    return plant


def lots(share: float) -> float:
    """Return the lots of a long at 100 with that share of its size."""
    profile = free_of_costs()
    spec = profile.symbol("XAUUSD")
    found = levels("BUY", 100.0, 1.0, spec)
    assert isinstance(found, Levels)
    return size(found, spec, profile.risk, share)


def test_known_days_come_to_known_figures_and_older_ticks_do_not_count(planted: Any) -> None:
    full, alone = planted(verdict="BUY", l1_verdict="SELL", multiplier=0.8, conviction=0.5)
    assert figures(full) == (2, pytest.approx(lots(0.4), abs=5e-4), 2.0)
    assert figures(alone) == (2, pytest.approx(lots(1.0), abs=5e-4), -1.0)
    assert lots(0.4) < lots(1.0)


SWARM = SwarmObservation(budget=1.0, plain=1.0, storm=1.0, veto_sides=("BUY",))
HELD: dict[str, dict[str, Any]] = {
    "the gate": {"veto": True},
    "the trader": {"consulted": "BUY", "declined": True},
    "a side of the swarm": {"swarm": SWARM},
    "no size": {"conviction": 0.0},
}


@cases("who", HELD)
def test_what_agents_hold_back_opens_by_l1_alone(planted: Any, who: str) -> None:
    full, alone = planted(verdict="BUY", l1_verdict="BUY", **HELD[who])
    assert full.endswith("count no opening")
    assert figures(alone)[0] == 2 and figures(alone)[2] == 2.0


def test_the_rules_own_veto_holds_for_both(planted: Any) -> None:
    full, alone = planted(verdict="BUY", l1_verdict="BUY", veto=True, rule_veto=True)
    assert full.endswith("count no opening") and alone == "no opening."


def test_execution_that_sends_nothing_is_compared_all_the_same(
    planted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = free_of_costs().model_copy(update={"execution": "off"})
    monkeypatch.setattr(f"{__name__}.free_of_costs", lambda: silent)
    full, _ = planted(verdict="BUY", l1_verdict="HOLD")
    assert figures(full)[0] == 2


# --- without figures ------------------------------------------------------------------------------


def test_without_a_tick_it_says_so_and_makes_no_database(tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path)
    assert last_days(shelf, "default", to_shadow(shelf)) == (NO_TICK,)
    assert [path.name for path in tmp_path.iterdir()] == []
    stores.open_database(tmp_path, now=System().real_now).close()
    assert last_days(shelf, "default", to_shadow(shelf)) == (NO_TICK,)


@pytest.mark.parametrize(
    ("place", "value", "compared"),
    [
        (("agents", "influence"), "shadow", True),
        (("agents", "mode"), "firm", True),
        (("agents", "active_agents"), ["technical"], True),
        (("agents", "outage_size"), 0.5, True),
        (("agents", "none_cost"), 0.1, True),
        (("agents", "quorum"), 2, True),
        (("agents", "outage_size"), 0.1, False),
        (("agents", "quorum"), 4, False),
        (("risk", "max_positions"), 4, False),
    ],
)
def test_it_is_asked_for_what_loosens_the_agents(
    tmp_path: Path, place: tuple[str, ...], value: Any, compared: bool
) -> None:
    comparison._lines.cache_clear()
    shelf, values = shelf_of(tmp_path), canonical(Profile())
    changes = compare(values, changed(values, {place: value}))
    assert bool(last_days(shelf, "default", changes)) == compared


def test_more_ticks_than_a_question_waits_for_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = shelf_of(tmp_path)
    monkeypatch.setattr(comparison, "MOST", 30 * 96 - 1)
    assert last_days(shelf, "default", to_shadow(shelf)) == ()
    monkeypatch.setattr(comparison, "MOST", 30 * 96)
    assert last_days(shelf, "default", to_shadow(shelf)) == (NO_TICK,)


def test_what_cannot_be_worked_out_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(stores.open_database(tmp_path, now=System().real_now)) as database:
        database.store_bars("XAUUSD", "M15", market())

    def broken(*_: Any) -> Any:
        raise ValueError("a row of another program")

    monkeypatch.setattr(comparison, "ticks_of", broken)
    shelf = shelf_of(tmp_path)
    assert last_days(shelf, "default", to_shadow(shelf)) == ()


def test_it_is_worked_out_once_an_hour(
    planted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted(verdict="BUY", l1_verdict="BUY")
    monkeypatch.setattr(comparison, "open_home", None)
    shelf = shelf_of(tmp_path)
    assert len(last_days(shelf, "default", to_shadow(shelf))) == 2
    shelf.now = lambda: System().real_now() + timedelta(hours=1)
    assert last_days(shelf, "default", to_shadow(shelf)) == ()


# --- a desk's own journal -------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["full", "shadow"])
def lived(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """A desk that lived a day, with agents that say anything but never veto."""
    desk = run(tmp_path_factory.mktemp(request.param), VOICES["rules"](), request.param, 60)
    with closing(desk.database):
        yield request.param, desk


def lines_of(desk: Any, influence: str) -> tuple[str, str]:
    home = Path(desk.database.path).parent
    shelf = shelf_of(home, trading(influence), desks.BTC)
    (line, note) = last_days(shelf, "default", to_shadow(shelf))
    assert note == NOTE
    full, alone = line.split("; L1 alone ")
    return full, alone


@pytest.mark.by_day(1)
def test_the_side_in_force_is_what_the_books_say_and_l1_is_a_sweep(lived: Any) -> None:
    influence, desk = lived
    full, alone = lines_of(desk, influence)
    opened = [
        one
        for one in desk.database.signals(("CLOSED", "FILLED"), limit=500)
        if one["kind"] == "open"
    ]
    assert len(opened) >= 3
    number, mean, _ = figures(full if influence == "full" else alone)
    assert number == len(opened)
    assert mean == pytest.approx(np.mean([one["lots"] for one in opened]), abs=6e-4)
    subject = PromotionSubject("default", trading(influence), (desks.BTC,))
    ticks = ticks_of(desk.database, subject)
    frames = {
        name: desk.database.load_bars("BTCUSD", name, as_of=ticks[-1].close_time)
        for name in desks.BTC.timeframes
    }
    begin = ticks[0].close_time - timedelta(microseconds=1)
    twin = L1Backtest(desks.BTC, frames, begin=begin).run(trading("full")).trades
    number, mean, r = figures(alone)
    assert number == len(twin)
    assert mean == pytest.approx(np.mean([one.lots for one in twin]), abs=6e-4)
    assert r == pytest.approx(np.mean([one.r for one in twin]), abs=6e-3)


def test_days_in_shadow_have_the_verdicts_of_agents_that_count(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    found = {}
    for influence in ("full", "shadow"):
        desk = run(tmp_path_factory.mktemp(influence), VOICES["wild"](), influence, 24)
        with closing(desk.database):
            profile = trading(influence)
            subject = PromotionSubject("default", profile, (desks.BTC,))
            arm = ArmObservation("full", tuple(ticks_of(desk.database, subject)), ())
            assert {tick.shadow for tick in arm.ticks} == {influence == "shadow"}
            ticks = [t for t in comparison._ticks_if_counted(arm, profile) if t.verdict != "HOLD"]
            found[influence] = [(t.key, t.verdict, t.veto, t.conviction) for t in ticks]
    assert found["shadow"] == found["full"]
    assert len({row[3] for row in found["full"]}) > 3


def test_a_tick_on_which_nobody_was_asked_has_the_size_of_l1(planted: Any) -> None:
    asked = planted(verdict="BUY", l1_verdict="BUY", multiplier=0.5)
    nobody = planted(
        verdict="BUY", l1_verdict="BUY", multiplier=0.5, source_type=SourceType.L1_ONLY
    )
    assert figures(asked[0])[1] == pytest.approx(lots(0.5), abs=5e-4)
    assert figures(nobody[0]) == figures(nobody[1]) == (2, pytest.approx(lots(1.0), abs=5e-4), 2.0)
