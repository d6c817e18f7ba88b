"""Order flow goes from the feed through store, record, journal and replay, and moves no score."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_config import MODES
from instance_database import Database
from tests.worlds import desks, flows, journals
from tests.worlds.flows import Flowing
from torra.clock import parse
from torra.config import OutsideSettings
from torra.evidence.flow_readings import NAMES
from torra.providers.rules.provider import RulesProvider
from torra.replay.arms import ARMS
from torra.replay.outlook_then import SHIFT, PointInTimeData, read_outlook
from torra.replay.rerun import futures, lookahead
from torra.replay.rerun.journal_replay import replay
from torra.replay.runner import AgentSource, Schedule, run_arm
from torra.replay.shards.history import History
from torra.store import flow as flow_table
from torra.store import replay_queries

PROFILE = journals.a_profile()


def live(
    folder: Path, feed: Any, closes: int, profile: Any = PROFILE
) -> tuple[Database, list[dict[str, Any]]]:
    """Run a desk from close to close; return its store and the records of its ticks."""
    desk = desks.open_desk(folder, (desks.BTC,), profile=profile, feed=feed)
    desks.open_for_work(desk)
    for _ in range(closes):
        desks.step(desk)
    keys = replay_queries.journalled(desk.database, desks.BTC.id)
    return desk.database, [replay_queries.journal_row(desk.database, key)[0] for key in keys]


@pytest.fixture(scope="module")
def lived(
    tmp_path_factory: pytest.TempPathFactory, scaled: Callable[..., int]
) -> Iterator[tuple[Database, list[dict[str, Any]]]]:
    database, records = live(tmp_path_factory.mktemp("flow"), Flowing(), scaled(240, least=20))
    yield database, records
    database.close()


def features(record: dict[str, Any], begin: str = "flow.") -> dict[str, Any]:
    return {
        item["id"]: item["value"] for item in record["features"] if item["id"].startswith(begin)
    }


@pytest.mark.journey
def test_a_tick_has_the_row_of_its_own_bar_by_value(
    lived: tuple[Database, list[dict[str, Any]]],
) -> None:
    _, records = lived
    there = 0
    for record in records:
        row = flows.row_of(parse(record["bar_time"]), record["timeframe"])
        told, found = record["outside"], features(record)
        assert set(found) == {f"flow.{name}" for name in NAMES}
        if row is None:
            assert set(found.values()) == {None} and told["statuses"]["flow"] == "not_yet"
            continue
        there += 1
        assert told["statuses"]["flow"] == "available"
        assert found["flow.ticks"] == told["numbers"]["flow.ticks"] == row.ticks
        assert found["flow.spread_mean_atr"] == round((row.spread_mean or 0) / record["atr"], 4)
        assert (found["flow.book_levels"] is None) == (row.levels is None)
        assert (found["flow.slippage_atr"] is None) == (row.slippage is None)
        seen = told["seen"]["flow"]
        assert (seen["at"], seen["known_at"]) == (record["bar_time"], record["as_of"])
    assert there > len(records) * 0.8
    ratios = [features(record)["flow.ticks_ratio"] for record in records]
    assert any(value is not None for value in ratios) and None in ratios


@pytest.mark.journey
def test_no_score_and_no_word_of_an_agent_changes_by_it(
    lived: tuple[Database, list[dict[str, Any]]], tmp_path: Path
) -> None:
    """Beside the same desk on the sample itself, which has no order flow."""
    _, records = lived
    closes = len({record["as_of"] for record in records})
    database, plain = live(tmp_path, desks.sample(), closes)
    names = (
        *("bar_time", "timeframe", "close", "l1", "components", "l1_consensus", "composite"),
        *("consensus", "verdict", "action", "bars", "memory", "regime", "sentence"),
    )
    assert len(plain) >= len(records) - 2 > 20
    for one, other in zip(plain, records, strict=False):
        assert {name: one.get(name) for name in names} == {name: other.get(name) for name in names}
        assert features(one) == features(one, "source.flow") == {}
    both = min(len(plain), len(records))
    was, now = (_said(store, both) for store in (database, lived[0]))
    assert was == now and len(was) > both
    database.close()


def _said(database: Database, ticks: int) -> list[Any]:
    """Return what the agents said on the first ticks."""
    told = [
        database.tick_without_calls(key)
        for key in replay_queries.journalled(database, desks.BTC.id)[:ticks]
    ]
    return [one for tick in told if tick is not None for one in tick["deliberation"]["reports"]]


@pytest.mark.journey
def test_the_store_keeps_the_rows_that_the_feed_had(
    lived: tuple[Database, list[dict[str, Any]]],
) -> None:
    database, records = lived
    for timeframe in desks.BTC.timeframes:
        last = max(
            parse(record["bar_time"]) for record in records if record["timeframe"] == timeframe
        )
        bars = database.load_bars(desks.BTC.id, timeframe, as_of=parse(records[-1]["as_of"])).index
        stored = flow_table.flow_rows(
            database, desks.BTC.id, timeframe, bars[0].to_pydatetime(), last
        )
        times = [at.to_pydatetime() for at in bars if at.to_pydatetime() <= last]
        assert stored == list(flows.rows(times, timeframe))[-len(stored) :]
        assert len(stored) > 20


@pytest.mark.journey
def test_the_journal_runs_each_tick_again_without_the_rows(
    lived: tuple[Database, list[dict[str, Any]]], tmp_path: Path
) -> None:
    database, records = lived
    into = desks.open_database(tmp_path)
    found = list(replay(database, into, desks.BTC.id))
    assert flow_table.flow_summary(into) == []
    into.close()
    assert {one.state for one in found} == {"same"}, [one for one in found if one.state != "same"]
    assert len(found) == len(records)


@pytest.fixture
def home(lived: tuple[Database, list[dict[str, Any]]], tmp_path: Path) -> Path:
    Database.copy(lived[0].path, tmp_path / "torra.db")
    return tmp_path


def history(records: list[dict[str, Any]]) -> History:
    end = parse(records[-1]["as_of"])
    frames = {name: desks.sample().bars("BTCUSD", name, end, 1200) for name in desks.BTC.timeframes}
    return History("BTCUSD", frames, {})


def outlook_of(home: Path, records: list[dict[str, Any]]) -> PointInTimeData:
    begin, end = parse(records[0]["bar_time"]), parse(records[-1]["as_of"])
    told = read_outlook(home, desks.BTC, PROFILE, begin, end)
    assert set(told.flow) == set(desks.BTC.timeframes)
    # As a worker on another machine gets it.
    again = PointInTimeData.of(json.loads(json.dumps(told.as_json())))
    assert again == told and again.digest == told.digest != ""
    return again


def replayed(
    outlook: PointInTimeData, records: list[dict[str, Any]], arm: str
) -> list[dict[str, Any]]:
    """Return what each tick of an arm saw of the order flow, by value."""
    seen: list[Any] = []

    class Watched(RulesProvider):
        def submit(self, request: Any) -> Any:
            seen.append(request)
            return super().submit(request)

    told = history(records)
    course = Schedule.of(told, outlook=outlook)
    first = parse(records[0]["as_of"])
    keys = tuple(key for key in course.keys if key.close_time >= first)
    voice = Watched()
    run_arm(
        dataclasses.replace(course, keys=keys),
        ARMS[arm],
        PROFILE,
        AgentSource(voice.submit, "rules"),
    )
    found = [
        {"bar_time": one.bar_time, "timeframe": one.timeframe, **_flow(one.features)}
        for one in seen
        if one.role.id == "sentiment"
    ]
    return sorted(found, key=lambda one: (one["bar_time"], one["timeframe"]))


def _flow(shown: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one.value for name, one in shown.items() if name.startswith("flow.")}


def test_a_replay_reads_what_the_live_desk_read(
    lived: tuple[Database, list[dict[str, Any]]], home: Path
) -> None:
    _, records = lived
    outlook = outlook_of(home, records)
    then = {
        (one["bar_time"], one["timeframe"]): {
            name: value for name, value in features(one).items() if value is not None
        }
        for one in records
    }
    met = 0
    for one in replayed(outlook, records, "outside"):
        key = one.pop("bar_time"), one.pop("timeframe")
        if key in then:
            assert one == then[key]
            met += bool(one)
    assert met > len(records) * 0.7


@pytest.mark.journey
def test_the_arm_without_outside_numbers_has_none_and_the_placebo_other_ones(
    lived: tuple[Database, list[dict[str, Any]]], home: Path
) -> None:
    _, records = lived
    outlook = outlook_of(home, records)
    assert all(len(one) == 2 for one in replayed(outlook, records, "no_outside"))
    assert outlook.short_series == tuple(
        f"order flow of {name}" for name in sorted(desks.BTC.timeframes)
    )
    assert outlook.with_older_series().flow == {}, "too short: left out, and named"
    long = dataclasses.replace(
        outlook,
        flow={
            name: (*(row._replace(bar_time=row.bar_time - SHIFT, ticks=row.ticks + 1)
                     for row in rows), *rows)
            for name, rows in outlook.flow.items()
        },
    )  # fmt: skip
    assert long.short_series == ()
    true, placebo = (
        [one.get("flow.ticks") for one in replayed(long, records, arm)]
        for arm in ("outside", "outside_shifted")
    )
    there = [(one, other) for one, other in zip(true, placebo, strict=True) if one is not None]
    assert there and all(other == one + 1 for one, other in there)


def test_a_feed_that_has_no_rows_says_why_and_ticks_go_on(tmp_path: Path) -> None:
    for status in ("no_file", "broken", "unreachable"):
        database, records = live(tmp_path / status, Flowing(status), 2)
        assert records
        for record in records:
            assert record["outside"]["statuses"] == {"flow": status}
            assert set(features(record).values()) == {None}
            assert features(record, "source.flow") == {"source.flow": status}
        assert flow_table.flow_summary(database) == []
        database.close()


def test_a_profile_without_any_source_reads_none(tmp_path: Path) -> None:
    profile = PROFILE.model_copy(update={"outside": OutsideSettings(sources=())})
    database, records = live(tmp_path, Flowing(), 2, profile)
    assert all(record["outside"] is None for record in records)
    assert not flow_table.flow_summary(database)
    database.close()


@pytest.mark.journey
def test_no_later_row_moves_a_tick(
    lived: tuple[Database, list[dict[str, Any]]], home: Path, scaled: Callable[..., int]
) -> None:
    _, records = lived
    subject = lookahead.LookaheadSubject.of(history(records), PROFILE, outlook_of(home, records))
    how: dict[str, Any] = {"seed": 3, "kinds": [*futures.KINDS][:1], "modes": [*MODES][:1]}
    found = lookahead.probe(subject, points=scaled(30), **how)
    assert found.clean, found.moved
    leaking = dataclasses.replace(subject, outlook=_Leaking(**_fields(subject.outlook)))
    # A planted leak: the row of the bar that has only just begun.
    assert not lookahead.probe(leaking, points=scaled(30, least=2), **how).clean


def _fields(outlook: PointInTimeData) -> dict[str, Any]:
    return {one.name: getattr(outlook, one.name) for one in dataclasses.fields(outlook)}


class _Leaking(PointInTimeData):
    """An outlook whose ticks read the order flow a bar too early."""

    def flow_of(self, profile: Any) -> Any:
        known = super().flow_of(profile)
        assert known is not None

        def early(timeframe: str, times: Any) -> Any:
            step = times[-1] - times[-2]
            then = known(timeframe, [time + step for time in times])
            rows = {time - step: row for time, row in then.rows.items()}
            return then._replace(rows=rows)

        return early
