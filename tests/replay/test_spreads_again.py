"""Spreads go from the feed through store and journal, and a tick runs again without the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from instance_database import Database
from tests.examples import examples
from tests.worlds import desks, journals
from tests.worlds.journals import again
from tests.worlds.price_series import sample, times_of
from torra.clock import duration, parse
from torra.feeds.protocol import COLUMNS
from torra.market.bar_view import BarView
from torra.market.longer_bars import aggregate
from torra.market.spreads import SPREAD, spread_view
from torra.replay.rerun import futures, lookahead
from torra.replay.rerun.futures import KINDS
from torra.replay.shards.history import History
from torra.replay.shards.packed_bars import pack, unpack
from torra.store import replay_queries
from torra.tick.bar_window import HistoryWindow

CLOSES = examples(24, 12)


def with_spreads(frame: pd.DataFrame) -> pd.DataFrame:
    """Return bars with a spread that follows from time and price; one in thirteen is not known."""
    minutes = times_of(frame).as_unit("s").asi8 // 60
    spreads = frame["close"].to_numpy() * (minutes * 7919 % 1000) / 3e6
    return frame.assign(spread=np.where(minutes // 15 % 13 == 4, np.nan, np.round(spreads, 2)))


class Quoted:
    """The sample with spreads."""

    def bars(
        self, symbol: str, timeframe: str, as_of: datetime, limit: int | None = None
    ) -> pd.DataFrame:
        return with_spreads(desks.sample().bars(symbol, timeframe, as_of, limit))

    def period(self) -> tuple[datetime, datetime]:
        return desks.sample().period()


def live(folder: Path, feed: Any = None) -> Database:
    """Run a desk of the rules provider from close to close."""
    desk = desks.open_desk(folder, (desks.BTC,), profile=journals.a_profile(), feed=feed)
    desks.open_for_work(desk)
    for _ in range(CLOSES):
        desks.step(desk)
    return desk.database


@pytest.fixture(scope="module")
def quoted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = live(tmp_path_factory.mktemp("quoted"), Quoted())
    yield database
    database.close()


def records(database: Database) -> list[dict[str, Any]]:
    return [
        replay_queries.journal_row(database, key)[0]
        for key in replay_queries.journalled(database, desks.BTC.id)
    ]


def features(record: dict[str, Any]) -> dict[str, Any]:
    return {item["id"]: item["value"] for item in record["features"]}


# --- live -----------------------------------------------------------------------------------------


def test_a_tick_says_what_it_saw_by_value(quoted: Database) -> None:
    told = records(quoted)
    assert len(told) > CLOSES
    for record in told:
        bars = Quoted().bars("BTCUSD", record["timeframe"], parse(record["as_of"]), 750)
        view, found = spread_view(bars[SPREAD].to_numpy()), features(record)
        if view.last is None:
            assert record["spreads"] is None and found["spread.available"] == 0
            assert [found[f"spread.{name}"] for name in ("last", "mean_atr", "percentile")] == [
                *(None, None, None)
            ]
        else:
            assert record["spreads"] == {
                "last": view.last, "mean": view.mean, "percentile": view.percentile,
            }  # fmt: skip
            assert found["spread.last"] == pytest.approx(view.last, abs=1e-9)
            assert found["spread.last_atr"] == round(view.last / record["atr"], 4)
            assert found["spread.percentile"] == round(view.percentile or 0.0, 2)
    assert 0 < sum(record["spreads"] is None for record in told) < len(told) / 4


@pytest.mark.journey
def test_no_score_changes_by_it(quoted: Database, tmp_path: Path) -> None:
    """Beside the same desk whose feed has none: bars, their hashes, scores and L1's verdicts."""
    plain = live(tmp_path)
    both = list(zip(records(plain), records(quoted), strict=True))
    names = (
        *("bar_time", "timeframe", "close", "atr", "ath", "ath_price", "l1", "components", "notes"),
        *("l1_composite", "l1_consensus", "l1_verdict", "regime", "bars", "spread_atr"),
    )
    for one, other in both:
        assert {name: one.get(name) for name in names} == {name: other.get(name) for name in names}
        assert one["spreads"] is None
        was, now = (
            {name: value for name, value in features(record).items() if SPREAD + "." not in name}
            for record in (one, other)
        )
        market = [name for name in was if not name.startswith("memory.")]
        assert {name: was[name] for name in market} == {name: now[name] for name in market}
    plain.close()


@pytest.mark.journey
def test_the_store_has_what_the_feed_had(quoted: Database) -> None:
    for timeframe in desks.BTC.timeframes:
        newest = parse(records(quoted)[-1]["as_of"])
        stored = quoted.load_bars(desks.BTC.id, timeframe, as_of=newest)
        fed = Quoted().bars("BTCUSD", timeframe, newest).iloc[-len(stored) :]
        np.testing.assert_array_equal(stored[SPREAD].to_numpy(), fed[SPREAD].to_numpy())


# --- again ----------------------------------------------------------------------------------------


@pytest.mark.journey
def test_every_tick_runs_again_the_same_without_the_table_of_spreads(
    quoted: Database, tmp_path: Path
) -> None:
    Database.copy(quoted.path, tmp_path / "torra.db")
    source = desks.open_database(tmp_path)
    connection = source.connection()
    assert connection.execute("SELECT count(*) FROM spreads").fetchone()[0] > 500
    connection.execute("DROP TABLE spreads")
    found = again(source, tmp_path / "again")
    assert {one.state for one in found.values()} == {"same"} and len(found) == len(records(quoted))
    source.close()


# --- replays --------------------------------------------------------------------------------------


def test_a_replay_sees_what_the_desk_saw(quoted: Database) -> None:
    """From the store, and from the feed's own history."""
    newest = parse(records(quoted)[-1]["as_of"])
    frames = {
        name: quoted.load_bars(desks.BTC.id, name, as_of=newest) for name in desks.BTC.timeframes
    }
    fed = {name: Quoted().bars("BTCUSD", name, newest) for name in desks.BTC.timeframes}
    for window in (HistoryWindow(frames), HistoryWindow(fed)):
        for record in records(quoted):
            view = window.spreads(window.bars(record["timeframe"], parse(record["as_of"])))
            told = record["spreads"] or dict.fromkeys(("last", "mean", "percentile"))
            assert (view.last, view.mean, view.percentile) == tuple(told.values())


@pytest.mark.journey
def test_a_shard_and_a_digest_of_bars(quoted: Database) -> None:
    frame = with_spreads(sample("BTCUSD_M15").iloc[:300])
    pd.testing.assert_frame_equal(unpack(pack(frame)), frame, check_freq=False)
    plain = frame[list(COLUMNS)]
    digests = [History("BTCUSD", {"M15": one}, {}).digest for one in (frame, plain)]
    assert digests[0] == digests[1]


def test_a_longer_bar_has_the_spread_of_its_last_part() -> None:
    frame = with_spreads(sample("BTCUSD_M15").iloc[3:500])
    whole = aggregate(frame, "M15", "H1")
    pd.testing.assert_frame_equal(
        whole[list(COLUMNS)], aggregate(frame[list(COLUMNS)], "M15", "H1")
    )
    assert list(whole.columns) == [*COLUMNS, SPREAD]
    for time, spread in whole[SPREAD].items():
        last = frame[SPREAD].loc[time + pd.Timedelta(minutes=45)]
        assert spread == last or (np.isnan(spread) and np.isnan(last))
    assert whole[SPREAD].isna().any()


# --- another future -------------------------------------------------------------------------------


def subject() -> lookahead.LookaheadSubject:
    frame = with_spreads(sample("BTCUSD_M15").iloc[:420])
    return lookahead.LookaheadSubject.of(
        History("BTCUSD", {"M15": frame}, {"M15": "sample"}), journals.a_profile()
    )


@pytest.mark.journey
def test_another_future_has_other_spreads_and_moves_nothing(scaled: Callable[..., int]) -> None:
    whole = subject()
    frame = whole.frames["M15"]
    moment = frame.index[300].to_pydatetime() + duration("M15")
    for kind in ("scaled", "noise", "reversed", "spike"):
        rng = np.random.Generator(np.random.PCG64(1))
        other = futures.changed(frame, "M15", moment, kind, rng)
        pd.testing.assert_frame_equal(other.iloc[:301], frame.iloc[:301])
        assert not other[SPREAD].iloc[301:].equals(frame[SPREAD].iloc[301:])
    kinds = tuple(KINDS) if examples.whole else ("scaled", "removed")
    found = lookahead.probe(whole, points=scaled(60), kinds=kinds, modes=("budget",))
    assert found.clean and {"features.spread.last.value", "spreads.last"} <= found.columns["tick"]


def test_a_spread_of_the_next_bar_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def next_bar(view: BarView) -> Any:
        known = view._shelf.spreads
        return None if known is None else known[view._start : view._end + 1]

    monkeypatch.setattr(BarView, "spreads", property(next_bar))
    found = lookahead.probe(subject(), points=1, kinds=("noise",), modes=("budget",))
    assert any(one.column.startswith("features.spread.") for one in found.moved)
