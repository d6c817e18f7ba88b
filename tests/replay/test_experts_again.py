"""What the experts of a swarm read runs again from the journal, and knows no future."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from instance_database import Database
from tests.conftest import Scale
from tests.replay.test_lookahead_command import subject
from tests.replay.test_spreads_again import features, records
from tests.worlds import desks, journals
from tests.worlds.flows import Flowing
from tests.worlds.price_series import times_of, walk
from torra.evidence import flow_readings
from torra.market.bar_view import BarView
from torra.market.spreads import HOUR_LEAST
from torra.replay.rerun.journal_replay import replay
from torra.replay.rerun.lookahead import probe

BLOCKS = ("liquidity.", "micro.", "geometry.")


class Seen(Flowing):
    """The sample with order flow, and with a spread on each bar."""

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        found = super().bars(symbol, timeframe, as_of, limit)
        minutes = times_of(found).as_unit("s").asi8 // 60
        return found.assign(spread=1.0 + minutes * 7919 % 1000 / 100)


def lived(folder: Path, mode: str, closes: int) -> Database:
    agents = {"mode": mode, "provider": "rules"}
    profile = journals.a_profile(agents=agents)
    desk = desks.open_desk(folder, (desks.BTC,), profile=profile, feed=Seen())
    desks.open_for_work(desk)
    for _ in range(closes):
        desks.step(desk)
    return desk.database


@pytest.fixture(scope="module")
def swarm(
    tmp_path_factory: pytest.TempPathFactory, scaled: Callable[..., int]
) -> Iterator[Database]:
    database = lived(tmp_path_factory.mktemp("swarm"), "swarm", scaled(500, 10))
    yield database
    database.close()


@pytest.mark.journey
def test_a_tick_keeps_the_spread_of_the_hour_and_the_delta_by_value(swarm: Database) -> None:
    told = records(swarm)
    assert any(features(record)["liquidity.delta20"] is not None for record in told)
    for record in told:
        found, hour = features(record), record["spreads"]["hour"]
        assert found["micro.spread_count"] == hour["count"]
        assert (
            (hour["percentile"] is None) == (hour["jump"] is None) == (hour["count"] < HOUR_LEAST)
        )
        assert found["micro.spread_percentile"] == rounded(hour["percentile"], 2)
        assert found["micro.spread_jump"] == rounded(hour["jump"], 2)
        delta = record["outside"]["numbers"][flow_readings.DELTA]
        assert found["liquidity.delta20"] == rounded(delta, 4)
    assert any(features(record)["micro.spread_jump"] is not None for record in told)


def rounded(value: float | None, decimals: int) -> float | None:
    return None if value is None else round(value, decimals)


@pytest.mark.journey
def test_it_runs_again_from_the_journal(swarm: Database, tmp_path: Path) -> None:
    into = desks.open_database(tmp_path)
    found = list(replay(swarm, into, desks.BTC.id))
    into.close()
    assert {one.state for one in found} == {"same"}, [one for one in found if one.state != "same"]


def test_a_desk_of_another_mode_keeps_nothing_of_it(tmp_path: Path) -> None:
    database = lived(tmp_path, "budget", 2)
    for record in records(database):
        assert not any(name.startswith(BLOCKS) for name in features(record))
        assert set(record["spreads"]) == {"last", "mean", "percentile"}
        assert flow_readings.DELTA not in record["outside"]["numbers"]
    database.close()


# --- no future ------------------------------------------------------------------------------------

FEW = walk(1000, 41).iloc[:300]


@pytest.mark.journey
def test_the_blocks_know_no_future(scaled: Scale) -> None:
    found = probe(subject(FEW), points=scaled(100, 1), modes=("swarm",), seed=3)
    assert found.clean, found.moved[:3]
    told = found.columns["tick"]
    assert {f"features.{name}.value" for name in ("geometry.level.1", "liquidity.poc_atr")} <= told


def test_a_block_that_reads_a_later_bar_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five bars on stand those that would confirm the newest swing."""
    newest = BarView.newest

    def early(self: BarView, name: str, count: int) -> list[Any]:
        end = min(self._end + 5, len(self._shelf.numbers))
        # The row of the tick stays what it was.
        own = self if count < 500 else BarView(self._shelf, self._start, end)
        return newest(own, name, count)

    monkeypatch.setattr(BarView, "newest", early)
    found = probe(subject(FEW), points=1, modes=("swarm",), kinds=("reversed",), seed=3)
    moved = {one.column.split(".")[1] for one in found.moved if one.column.startswith("features.")}
    assert {"liquidity", "geometry"} <= moved
    assert not probe(subject(FEW), points=1, modes=("budget",), kinds=("reversed",), seed=3).moved
