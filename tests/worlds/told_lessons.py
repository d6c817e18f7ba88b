"""Lessons of a scripted desk: trades that won, lost and came out even, a veto, a model's words.

`desk(folder)` lends the backing of a desk without a tick, whose database has their orders;
`write(database)` adds the lessons, oldest first, and returns their numbers by what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.worlds import desks, stores
from torra.config import DeskSettings
from torra.dashboard.view.backing import PageContext
from torra.lessons.lesson import LessonFacts, LessonText, Situation
from torra.store import lessons as lesson_table

CLOSED = datetime(2021, 11, 10, 13, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MODEL = "gpt-6.1-mini"
TICK = "BTCUSD|M15|2021-11-10T13:45:00Z"
"""The tick that was told of a lesson."""

MARKET = Situation({"adx14": 17.0}, regime="range", session="LONDON", triage=("thin_volume",))

LOST = LessonFacts(
    sid="TLOST000000", kind="trade", instance="EURUSD", symbol="EURUSD", asset="fx",
    timeframe="H1", side="LONG", bar_time=CLOSED - 5 * HOUR, opened_at=CLOSED - 4 * HOUR,
    closed_at=CLOSED, known_at=CLOSED, outcome="loss", evolution="Falsified", reason="STOPPED",
    r=-1.02, planned_r=2.0, slipped_r=0.02, mae_r=-1.02, mfe_r=0.41, hours_held=4.0,
    surprise=1.02, profit=-31.0, situation=MARKET,
)  # fmt: skip
WON = replace(
    LOST, sid="TWON0000000", closed_at=CLOSED + HOUR, known_at=CLOSED + HOUR, outcome="win",
    evolution="Realized", reason="TARGET", r=2.0, mae_r=-0.3, mfe_r=2.05, slipped_r=-0.01,
    surprise=2.0, profit=61.5, situation=replace(MARKET, regime="trend_up", session="NEW_YORK"),
)  # fmt: skip
VETOED = replace(
    LOST, sid="TVETO000000", kind="vetoed", instance="BTCUSD", symbol="BTCUSD", asset="crypto",
    side="SHORT", closed_at=CLOSED + 2 * HOUR, known_at=CLOSED + 2 * HOUR, r=-1.0, profit=None,
    situation=None,
)  # fmt: skip
GUARDED = "<script>alert(1)</script> \u202ewide spread"


@contextmanager
def desk(folder: Path) -> Iterator[PageContext]:
    made = desks.open_desk(folder, (desks.BTC, desks.EUR))
    for facts in (LOST, WON):
        about = {"symbol": facts.symbol, "timeframe": facts.timeframe, "bar_time": facts.bar_time}
        levels = {"entry": 1.16, "stop": 1.155, "target": 1.17, "atr": 0.0025}
        row = stores.opening(facts.sid, instance=facts.instance, **about, **levels)
        made.database.enqueue_signal({**row, "state": "PENDING"})
        made.database.move_signal(facts.sid, "CANCELLED", detail="")
    yield PageContext(
        folder, made.database, DeskSettings(instances=(desks.BTC, desks.EUR)), made, {}
    )
    made.close()


def words(facts: LessonFacts, rule: str = "One trade, not a rule.") -> LessonText:
    setup = f"{facts.side} in a range, thin volume."
    return LessonText(setup, f"Ended by {facts.reason.lower()}.", rule, "rules", facts.known_at)


def reviewed(facts: LessonFacts, **more: Any) -> LessonText:
    known = facts.known_at + HOUR
    return LessonText(
        "A breakout on thin volume.", "It ended at the stop.", GUARDED, MODEL, known,
        cost_usd=0.0012, flags=("number_unknown",), **more,
    )  # fmt: skip


def write(database: Any) -> dict[str, int]:
    numbers = {
        name: database.write_lesson(facts, words(facts))
        for name, facts in (("lost", LOST), ("won", WON), ("vetoed", VETOED))
    }
    lesson_table.write_words(database, numbers["lost"], reviewed(LOST))
    with database.transaction():
        database.note_lesson_uses(TICK, [numbers["lost"]])
    return numbers
