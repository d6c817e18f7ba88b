"""A tick that is told of its seats' past: by value in its record, to each seat its own share."""

from __future__ import annotations

import re

import pytest

from tests.tick.test_ticks_with_lessons import Heard, records
from tests.worlds import remembering, swarm_calls
from torra.config import Profile
from torra.evaluation.standing.past_calls import SEATS
from torra.evaluation.standing.track_record import (
    LATE,
    NO_RECORD,
    TOO_LATE,
    TrackRecord,
    TrackRecordOf,
    TrackRecordQuery,
)
from torra.store.memory import MemoryStore
from torra.tick.tick_record import JournalRecord
from torra_trader import TickOutcome

NUMBERS: dict[str, float | None] = {
    **{f"{name}_hit_share": 0.51 + number / 100 for number, name in enumerate(SEATS)},
    "judge_hit_share": None,
    **{f"win_share_{k}": None for k in range(10)},
    "win_share_6": 0.4821,
}


def ticks(
    past: TrackRecordOf | None, settings: Profile, count: int = 4
) -> tuple[list[TickOutcome], Heard]:
    heard = Heard()
    found = swarm_calls.run(
        MemoryStore({remembering.BTC: settings}, remembering.ranges),
        remembering.keys(count), past, settings, debater=None, submit=heard.submit,
    )  # fmt: skip
    return found, heard


@pytest.mark.journey
def test_while_nothing_is_known_not_one_byte_changes() -> None:
    for mode in ("budget", "swarm"):
        settings = swarm_calls.profile(mode=mode)
        asked, told = ticks(lambda _: NO_RECORD, settings)
        unasked, untold = ticks(None, settings)
        assert told.plain == untold.plain and told.plain
        assert records(asked) == records(unasked)
        assert all("standing" not in record for record in records(asked))


def test_what_is_told_stands_in_the_record_by_value() -> None:
    seen: list[TrackRecordQuery] = []

    def past(asked: TrackRecordQuery) -> TrackRecord:
        seen.append(asked)
        return TrackRecord(NUMBERS)

    outcomes, _ = ticks(past, swarm_calls.profile())
    (*_, record), asked = records(outcomes), seen[-1]
    assert record["standing"] == {"numbers": NUMBERS, "flags": []}
    features = {one["id"]: one["value"] for one in record["features"]}
    assert {name: features[f"standing.{name}"] for name in NUMBERS} == NUMBERS
    assert (asked.instance, asked.timeframe, asked.regime, asked.close) == (
        record["instance"], record["timeframe"], record["regime"]["name"], record["close"],
    )  # fmt: skip
    assert JournalRecord.parse({**record, "elapsed_ms": 0.0, "profile": ""}).standing == (
        TrackRecord(NUMBERS)
    )


def test_each_seat_is_shown_its_own_share_and_nobody_elses() -> None:
    _, heard = ticks(lambda _: TrackRecord(NUMBERS), swarm_calls.profile())
    prompts = dict(heard.plain)
    assert len(prompts) >= 5
    for role, text in prompts.items():
        shown = {*re.findall(r"standing\.\w+", text)}
        assert shown <= {f"standing.{role}_hit_share"}, (role, shown)
    assert "standing.liquidity_hit_share = 0.52" in prompts["liquidity"]


@pytest.mark.journey
def test_shares_alone_decide_nothing() -> None:
    plain, _ = ticks(None, swarm_calls.profile())
    shares = {name: one for name, one in NUMBERS.items() if name.endswith("hit_share")}
    told, _ = ticks(lambda _: TrackRecord(shares), swarm_calls.profile())
    for name in ("scores", "verdict", "action", "gate"):
        assert [one[name] for one in records(told)] == [one[name] for one in records(plain)]


def test_a_past_that_is_not_counted_yet_is_a_flag_and_no_number() -> None:
    outcomes, _ = ticks(lambda _: TOO_LATE, swarm_calls.profile())
    record = records(outcomes)[-1]
    assert record["standing"] == {"numbers": {}, "flags": [LATE]}
    assert not any(one["id"].startswith("standing.") for one in record["features"])
    assert outcomes[-1].result is not None
    assert LATE in outcomes[-1].result.debated.deliberation.flags
