"""The newest closed trades in the memory context: what was known then, and nothing later."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.registry import AGENTS
from scoring_rubric import build_interpretive_prompt
from tests.doubles.scripted import MEMORY, context
from tests.evidence.test_feature_bundle import bundle
from tests.worlds.stores import NOON, open_database, opening
from torra.clock import iso
from torra.config import Markov
from torra.store.trade import signals as signal_table
from torra.verdict.sentiment_rules import markov, memory_view
from torra.verdict.trade_outcome import remembered

HOUR = timedelta(hours=1)


def trade(hours: float = 2.0, **more: Any) -> dict[str, Any]:
    """A row of the table signals: a long that was stopped so many hours before NOON."""
    row: dict[str, Any] = {
        "side": "BUY",
        "profit": -51.5,
        "r_multiple": -1.03456789,
        "outcome": "loss",
        "evolution": "Falsified",
        "closed_at": iso(NOON - hours * HOUR),
    }
    return {**row, **more}


def told(*trades: dict[str, Any], as_of: datetime = NOON) -> list[dict[str, Any]]:
    view = memory_view(
        markov([], "M15", Markov()), as_of=as_of, timeframe="M15", trend=[], verdicts=[],
        open_positions=[], open_elsewhere=0, trades=trades,
    )  # fmt: skip
    found: list[dict[str, Any]] = view["recent_trades"]
    return found


def test_a_closed_trade_is_told() -> None:
    assert told(trade()) == [
        {
            "side": "LONG",
            "outcome": "loss",
            "r_multiple": -1.03,
            "evolution": "Falsified",
            "hours_ago": 2.0,
        }
    ]
    with pytest.raises(ValueError, match="r_multiple must be a finite number"):
        told(trade(r_multiple=math.nan))
    assert told(trade(0.3333, side="SELL"))[0] | {"outcome": ""} == {
        "side": "SHORT",
        "outcome": "",
        "r_multiple": -1.03,
        "evolution": "Falsified",
        "hours_ago": 0.33,
    }


def test_no_later_trade_changes_what_was_known(scaled: Callable[..., int]) -> None:
    """Cut a random history at a random close: what follows may be anything."""
    for seed in range(scaled(5_000, least=100)):
        chance = random.Random(seed)
        ages = sorted(round(chance.uniform(-40, 40) * 4) / 4 for _ in range(chance.randint(0, 12)))
        rows = [trade(age, r_multiple=round(chance.uniform(-2, 3), 8)) for age in ages]
        past = [row for row, age in zip(rows, ages, strict=True) if age > 0]
        found = told(*rows)
        assert found == told(*past[:3]) and len(found) == min(3, len(past))
        assert [row["hours_ago"] for row in found] == [age for age in ages if age > 0][:3]


def test_what_the_database_kept_is_remembered(tmp_path: Path) -> None:
    database = open_database(tmp_path)
    for number, price in enumerate((90.0, 121.0, 100.2)):
        sid, at = f"T{number}", NOON + number * HOUR
        database.enqueue_signal(opening(sid, decided_at=at))
        database.move_signal(sid, "PUBLISHED")
        database.move_signal(sid, "FILLED", fields={"price": 100.0, "opened_at": at})
        money, r = (price - 100.0) * 0.5, (price - 100.0) / 10
        end: dict[str, Any] = {
            "time": at + HOUR,
            "profit": money,
            "r_multiple": r,
            "reason": "CLOSED",
        }
        database.close_position(sid, price=price, **end)
    then = NOON + 3 * HOUR
    found = remembered(
        [row.as_json() for row in signal_table.closed_trades(database, "BTCUSD", as_of=then)], then
    )
    assert [(row["outcome"], row["hours_ago"]) for row in found] == [("win", 1.0), ("loss", 2.0)]
    later = then + HOUR
    found = remembered(
        [row.as_json() for row in signal_table.closed_trades(database, "BTCUSD", as_of=later)],
        later,
    )
    assert [row["outcome"] for row in found] == ["scratch", "win", "loss"]
    assert [row["r_multiple"] for row in found] == [0.02, 2.1, -1.0]
    database.close()


# --- who is shown it ------------------------------------------------------------------------------


def test_who_is_shown_the_memory_is_shown_the_last_three_trades() -> None:
    more = {**MEMORY, "recent_trades": told(*(trade(hours) for hours in (2, 3, 4, 5)))}
    assert bundle(memory=more).features == bundle(memory=MEMORY).features
    remember = set()
    for name, agent in AGENTS.items():
        asked = build_interpretive_prompt(context(memory=more), agent.role).user
        if "recent_trades" in asked:
            remember.add(name)
            (line,) = [one for one in asked.splitlines() if one.startswith("recent_trades")]
            assert line.count("LONG loss -1.03 R") == 3
            assert line.endswith("LONG loss -1.03 R 4.00 h ago"), "no fourth one"
        else:
            assert asked == build_interpretive_prompt(context(memory=MEMORY), agent.role).user
    assert remember == {
        *("sentiment", "bull_researcher", "bear_researcher", "regime_reader", "judge"),
        *("research_manager", "risk_gate"),
    }
