"""From verdict to action: what is asked for, and which leg a check takes away."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torra import risk_engine
from torra.config import SYMBOLS, Profile, Risk
from torra.risk_engine import CLOSING, DenyReason, Leg, Position

BTC = SYMBOLS["BTCUSD"]
REVERSING = Profile(on_opposite="reverse")


def held(side: str, state: str = "FILLED", lots: float = 0.1) -> Position:
    return Position(
        instance="BTCUSD",
        symbol="BTCUSD",
        side=side,
        lots=lots,
        entry=47_000.0,
        stop=46_000.0,
        target=49_000.0,
        opened_at=datetime(2021, 12, 1, tzinfo=UTC),
        signal_id="TOLD",
        state=state,
    )


def review(verdict: str = "BUY", position: Position | None = None, **changes):
    given = {
        "verdict": verdict,
        "position": position,
        "positions_open": 1 if position else 0,
        "gross_notional": 4_700.0 if position else 0.0,
        "day_loss": 0.0,
        "price": 48_000.0,
        "atr": 200.0,
        "spec": BTC,
        "profile": Profile(),
        "trading_state": "ACTIVE",
        "veto": False,
        "opening_stands": True,
        "multiplier": 1.0,
    }
    return risk_engine.review(**{**given, **changes})


@pytest.mark.parametrize(
    ("verdict", "side", "on_opposite", "name", "legs", "reason"),
    [
        ("HOLD", None, "close", "HOLD", (), "THRESHOLD"),
        ("HOLD", "LONG", "reverse", "HOLD", (), "THRESHOLD"),
        ("BUY", None, "close", "OPEN_BUY", (Leg("open", "BUY"),), "VERDICT"),
        ("SELL", None, "close", "OPEN_SELL", (Leg("open", "SELL"),), "VERDICT"),
        ("BUY", "LONG", "reverse", "HOLD", (), "POSITION_HELD"),
        ("SELL", "SHORT", "close", "HOLD", (), "POSITION_HELD"),
        ("SELL", "LONG", "hold", "HOLD", (), "POSITION_HELD"),
        ("SELL", "LONG", "close", "CLOSE", (Leg("close", "SELL"),), "OPPOSITE_VERDICT"),
        ("BUY", "SHORT", "close", "CLOSE", (Leg("close", "BUY"),), "OPPOSITE_VERDICT"),
        (
            "SELL", "LONG", "reverse", "REVERSE",
            (Leg("close", "SELL"), Leg("open", "SELL")), "OPPOSITE_VERDICT",
        ),
        (
            "BUY", "SHORT", "reverse", "REVERSE",
            (Leg("close", "BUY"), Leg("open", "BUY")), "OPPOSITE_VERDICT",
        ),
    ],
)  # fmt: skip
def test_what_verdict_and_position_ask_for(verdict, side, on_opposite, name, legs, reason) -> None:
    position = held(side) if side else None
    assert risk_engine.intent(verdict, position, on_opposite) == (name, legs, reason)


@pytest.mark.parametrize("on_opposite", ["close", "reverse"])
def test_a_position_that_is_being_closed_is_not_closed_twice(on_opposite) -> None:
    profile = Profile(on_opposite=on_opposite)
    action = review("SELL", held("LONG", CLOSING), profile=profile)
    assert (action.name, action.reason, action.drafts) == ("HOLD", "DUPLICATE_SIGNAL", ())
    assert action.denied == (DenyReason.DUPLICATE_SIGNAL,)
    assert review("BUY", held("LONG", CLOSING), profile=profile).reason == "POSITION_HELD"


@pytest.mark.parametrize("state", ["PENDING", "PUBLISHED", "WAITING", "FILLED"])
def test_an_opening_under_way_counts_as_a_position(state) -> None:
    action = review("BUY", held("LONG", state))
    assert (action.name, action.reason, action.drafts) == ("HOLD", "POSITION_HELD", ())


def test_an_opening_carries_levels_and_size() -> None:
    action = review("SELL")
    (draft,) = action.drafts
    assert (action.name, action.reason, action.denied) == ("OPEN_SELL", "VERDICT", ())
    assert (draft.kind, draft.side, draft.lots, draft.closes) == ("open", "SELL", 0.12, None)
    levels = draft.levels
    assert (levels.entry, levels.stop, levels.target) == (48_000.0, 48_400.0, 47_200.0)


def test_a_close_names_its_position_and_all_its_lots() -> None:
    (draft,) = review("SELL", held("LONG", lots=0.37)).drafts
    assert (draft.kind, draft.side, draft.lots) == ("close", "SELL", 0.37)
    assert (draft.closes, draft.levels) == ("TOLD", None)


def test_a_reversal_closes_first_and_its_opening_waits_for_that() -> None:
    action = review("SELL", held("LONG"), profile=REVERSING)
    assert action.name == "REVERSE"
    assert [(draft.kind, draft.side) for draft in action.drafts] == [
        ("close", "SELL"), ("open", "SELL"),
    ]  # fmt: skip
    assert [draft.closes for draft in action.drafts] == ["TOLD", "TOLD"]


DENIED = [
    ({"trading_state": "REDUCING"}, DenyReason.TRADING_REDUCING),
    ({"veto": True}, DenyReason.GATE_VETO),
    ({"opening_stands": False}, DenyReason.GATE_CANNOT_OPEN),
    ({"price": math.nan}, DenyReason.BAD_NUMBER),
    ({"atr": math.nan}, DenyReason.BAD_NUMBER),
    ({"atr": 0.0}, DenyReason.BAD_NUMBER),
    ({"atr": 0.001}, DenyReason.STOP_TOO_CLOSE),
    ({"gross_notional": math.nan}, DenyReason.BAD_NUMBER),
    ({"day_loss": math.inf}, DenyReason.BAD_NUMBER),
    ({"multiplier": 0.0}, DenyReason.SIZE_ZERO),
    ({"multiplier": math.nan}, DenyReason.SIZE_ZERO),
    ({"atr": 5_000.0}, DenyReason.SIZE_ZERO),
    ({"positions_open": 9}, DenyReason.MAX_POSITIONS),
    ({"gross_notional": 19_000.0}, DenyReason.EXPOSURE_CAP),
    ({"day_loss": 200.0}, DenyReason.DAILY_LOSS_CAP),
    ({"signals_last_hour": 6}, DenyReason.MESSAGE_RATE),
]


@pytest.mark.parametrize(("change", "reason"), DENIED)
def test_a_denied_opening_is_a_hold(change, reason) -> None:
    action = review("BUY", **change)
    assert (action.name, action.reason, action.drafts) == ("HOLD", reason.value, ())
    assert action.denied == (reason,)


@pytest.mark.parametrize(("change", "reason"), DENIED)
def test_a_denial_takes_the_opening_of_a_reversal_and_leaves_the_close(change, reason) -> None:
    changed = {
        **change,
        "gross_notional": change.get("gross_notional", 0.0) + 4_700.0,
    }
    action = review("SELL", held("LONG"), profile=REVERSING, **changed)
    assert (action.name, action.reason, action.denied) == ("CLOSE", reason.value, (reason,))
    assert [draft.kind for draft in action.drafts] == ["close"]


@pytest.mark.parametrize(("change", "reason"), DENIED)
def test_nothing_but_a_halt_stops_a_close(change, reason) -> None:
    action = review("SELL", held("LONG"), **change)
    assert (action.name, action.reason, action.denied) == ("CLOSE", "OPPOSITE_VERDICT", ())


@pytest.mark.parametrize("state", ["HALTED", "", "unknown"])
@pytest.mark.parametrize("profile", [Profile(), REVERSING])
@pytest.mark.parametrize("side", [None, "LONG"])
def test_halted_stops_both_legs(state, profile, side) -> None:
    position = held(side) if side else None
    action = review("SELL", position, profile=profile, trading_state=state)
    assert (action.name, action.reason, action.drafts) == ("HOLD", "TRADING_HALTED", ())
    assert action.denied == (DenyReason.TRADING_HALTED,)


def test_a_halt_does_not_hide_a_veto() -> None:
    action = review("BUY", trading_state="HALTED", veto=True)
    assert action.denied == (DenyReason.TRADING_HALTED, DenyReason.GATE_VETO)


def test_every_reason_that_applies_is_recorded_the_gate_first() -> None:
    action = review(
        "BUY", trading_state="REDUCING", veto=True, opening_stands=False, atr=math.nan,
        positions_open=3, gross_notional=20_001.0, day_loss=500.0,
    )  # fmt: skip
    assert [reason.value for reason in action.denied] == [
        "TRADING_REDUCING", "GATE_VETO", "GATE_CANNOT_OPEN", "BAD_NUMBER", "MAX_POSITIONS",
        "EXPOSURE_CAP", "DAILY_LOSS_CAP",
    ]  # fmt: skip
    assert action.reason == "TRADING_REDUCING"


@pytest.mark.parametrize(
    ("change", "opens"),
    [
        ({"positions_open": 2}, True),
        ({"positions_open": 3}, False),
        ({"gross_notional": 14_240.0}, True),  # + 5,760 = 200 % of the capital
        ({"gross_notional": 14_240.01}, False),
        ({"day_loss": 199.99}, True),
        ({"day_loss": 200.0}, False),
        ({"day_loss": -1_000.0}, True),
    ],
)
def test_the_limits_of_the_account_at_their_edges(change, opens) -> None:
    assert (review("BUY", **change).name == "OPEN_BUY") is opens


def test_the_exposure_cap_looks_at_the_full_size() -> None:
    """Half of 0.12 lots would fit below the cap; a lower multiplier must not let it through."""
    for multiplier in (1.0, 0.5):
        action = review("BUY", gross_notional=16_000.0, multiplier=multiplier)
        assert action.denied == (DenyReason.EXPOSURE_CAP,)


def test_the_leverage_cap_is_a_cap_of_exposure_too() -> None:
    profile = Profile(risk=Risk(exposure_cap_pct=900.0, account_leverage_cap=0.5))
    assert review("BUY", profile=profile).denied == (DenyReason.EXPOSURE_CAP,)
    assert review("BUY", profile=Profile(risk=Risk(account_leverage_cap=0.576))).drafts


def test_a_trade_that_alone_could_lose_more_than_the_daily_cap_is_denied() -> None:
    profile = Profile(risk=Risk(risk_per_trade_pct=2.0, daily_loss_cap_pct=0.5))
    assert review("BUY", profile=profile).denied == (DenyReason.DAILY_LOSS_CAP,)


def test_a_reversal_gives_back_its_own_position_first() -> None:
    full = {"positions_open": 3, "gross_notional": 18_900.0}
    assert review("SELL", held("LONG"), profile=REVERSING, **full).name == "REVERSE"
    other = {**full, "gross_notional": 18_950.0}  # 18,950 - 4,700 + 5,760 is above 20,000
    assert review("SELL", held("LONG"), profile=REVERSING, **other).name == "CLOSE"


def test_a_size_that_breaks_the_lot_rules_is_caught_by_the_second_look(monkeypatch) -> None:
    for lots, reason in [(0.001, "LOT_BELOW_MIN"), (99.0, "LOT_ABOVE_MAX"), (0.015, "LOT_STEP")]:
        with monkeypatch.context() as patch:
            patch.setattr(risk_engine, "size", lambda *_args, lots=lots: min(lots, 0.2))
            spec = BTC.model_copy(update={"lot_max": 0.1})
            assert review("BUY", spec=spec).denied[0].value == reason


@given(
    st.sampled_from(("BUY", "SELL", "HOLD")),
    st.sampled_from((None, "LONG", "SHORT")),
    st.sampled_from(("close", "reverse", "hold")),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 20_000),
    st.floats(10, 3_000),
    st.booleans(),
)
def test_a_lower_multiplier_never_adds_an_opening_or_raises_a_size(
    verdict, side, on_opposite, first, second, gross, atr, stands
) -> None:
    """The exposure cap looks at the full size, so a smaller one cannot slip under it."""
    low, high = sorted((first, second))
    runs = [
        review(
            verdict, held(side) if side else None, profile=Profile(on_opposite=on_opposite),
            gross_notional=gross, atr=atr, opening_stands=stands, multiplier=multiplier,
        )
        for multiplier in (low, high)
    ]  # fmt: skip
    lots = [sum(d.lots for d in run.drafts if d.kind == "open") for run in runs]
    closes = [[d for d in run.drafts if d.kind == "close"] for run in runs]
    assert lots[0] <= lots[1]
    assert closes[0] == closes[1]


@given(
    verdict=st.sampled_from(("BUY", "SELL", "HOLD")),
    side=st.sampled_from((None, "LONG", "SHORT")),
    price=st.floats(),
    atr=st.floats(),
    gross=st.floats(),
    loss=st.floats(),
    multiplier=st.floats(),
)
def test_no_number_makes_review_raise(verdict, side, price, atr, gross, loss, multiplier) -> None:
    action = review(
        verdict, held(side) if side else None, profile=REVERSING, price=price, atr=atr,
        gross_notional=gross, day_loss=loss, multiplier=multiplier,
    )  # fmt: skip
    for draft in action.drafts:
        assert 0 < draft.lots <= BTC.lot_max
