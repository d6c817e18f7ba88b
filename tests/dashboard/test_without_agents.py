"""The approval page says what L1 alone would do in the place of a proposal."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.worlds.records import tick_record
from torra.config import Profile, Risk
from torra.dashboard.trade.order import Terms
from torra.dashboard.trade.without_agents import line
from torra.store.trade.rows import ProposalRow
from torra.tick.tick_record import TickRecord
from torra.trading_terms import SYMBOLS
from torra.verdict.order_levels import Levels, levels

SPEC: Final = SYMBOLS["BTCUSD"]
PROFILE: Final = Profile(risk=Risk(capital=10_000.0))
ATR: Final = 200.0
LONG: Final = {"kind": "open", "side": "BUY", "lots": 0.03, "closes": None}
CLOSE: Final = {"kind": "close", "side": "BUY", "lots": 0.02, "closes": "T1"}


def row(*drafts: dict[str, Any]) -> ProposalRow:
    stored = json.dumps(drafts or [LONG])
    return ProposalRow.load({"verdict": "BUY", "price": 60_000.0, "drafts": stored})


def record(verdict: str | None, consensus: float = 0.52, **rule: Any) -> TickRecord:
    return tick_record(
        {
            "l1_verdict": verdict,
            "l1_consensus": consensus,
            "thresholds": {"buy": 0.5, "sell": 0.45},
            "gate": {"multiplier": 0.1, "rule": {"multiplier": 0.8, **rule}},
        }
    )


def told(
    of: ProposalRow, known: TickRecord, profile: Profile | None = PROFILE, price: float = 60_000.0
) -> tuple[str, str]:
    at = levels("BUY", price, ATR, SPEC)
    assert isinstance(at, Levels)
    return line(of, known, at, Terms(None, profile, SPEC))


def test_analysts_that_disagree_have_lowered_nothing_of_it() -> None:
    """The rules' multiplier counts how far they lie apart; with none of them there is no spread."""
    scale = PROFILE.gate.disagreement_scale
    apart = tick_record(
        record("BUY", multiplier=0.5).model_dump(exclude_unset=True)
        | {"deliberation": {"panel": {"spread": {"momentum": scale / 2, "structure": 0.01}}}}
    )
    assert told(row(), apart)[0] == "the same trade, 0.12 lots", "x 1.00"
    assert told(row(), record("BUY", multiplier=0.5))[0] == "the same trade, 0.06 lots"


@pytest.mark.parametrize(
    ("consensus", "shown"),
    [(0.12, "bars +0.12"), (0.4996, "bars +0.4996"), (-0.4499, "bars \u22120.4499")],
)
def test_no_trade_shows_both_thresholds(consensus: float, shown: str) -> None:
    trade, why = told(row(), record("HOLD", consensus))
    assert trade == "no trade"
    assert why == f"{shown}, BUY from +0.50, SELL from \u22120.45"


SELL: Final = record("SELL", -0.61)


@pytest.mark.parametrize(
    ("of", "known", "price", "trade"),
    [
        # 0.5 % of 10,000 over a stop 400 away are 0.125 lots; x 0.80 of the rules, not x 0.10
        (row(), record("BUY"), 60_000.0, "the same trade, 0.10 lots"),
        # 10,000 buy 0.166 at 60,000 and 0.055 at 180,000
        (row(), record("BUY", multiplier=1.0), 180_000.0, "the same trade, 0.05 lots"),
        (row(), SELL, 60_000.0, "a sell instead, 0.10 lots"),
        # a long of 600 stops at 200; a short would have its target at -200
        (row(), record("BUY"), 600.0, "the same trade, 0.10 lots"),
        (row(), SELL, 600.0, "no trade, it could have no stop and target"),
        # where the proposal closes, the other side keeps the position
        (row(CLOSE), SELL, 60_000.0, "no trade, what is open stays open"),
        (row(CLOSE, LONG), SELL, 60_000.0, "no trade, what is open stays open"),
        (row(CLOSE), record("BUY"), 60_000.0, "the same close, 0.02 lots"),
        (row(), record("BUY", veto=True), 60_000.0, "no trade, the gate's rules veto it"),
        (
            row(), record("BUY", multiplier=0.01), 60_000.0,
            "no trade, its size is below the smallest order",
        ),
    ],
)  # fmt: skip
def test_the_trade_of_l1_alone(
    of: ProposalRow, known: TickRecord, price: float, trade: str
) -> None:
    assert told(of, known, price=price)[0] == trade


def test_the_consensus_stands_beside_the_threshold_that_it_reaches() -> None:
    assert told(row(), record("BUY"))[1] == "bars +0.52, BUY from +0.50"
    assert told(row(), SELL)[1] == "bars \u22120.61, SELL from \u22120.45"


def test_what_is_not_stored_is_not_made_up() -> None:
    unknown = ("not known: the tick behind this proposal is not stored", "")
    assert told(row(), None) == unknown
    unsized = "the same trade, its size is not known"
    assert told(row(), record("BUY"), None)[0] == unsized
