"""Every check of a ticket below, at and above its limit, and what a broken number does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from agent_config import GateSettings
from tests.cases import cases
from torra.config import SYMBOLS, Profile, Risk
from torra.verdict.order_levels import Side
from torra.verdict.risk_engine import Account, Levels, Ticket, check
from torra.words.deny_reasons import DenyReason

BTC = SYMBOLS["BTCUSD"]
PLAIN = Profile()
R = DenyReason


class Case(NamedTuple):
    """What `check` is handed."""

    ticket: Ticket
    account: Account
    spec: Any
    profile: Profile

    def denied(self) -> tuple[DenyReason, ...]:
        return check(*self)


def case(side: Side = "BUY", **changes: Any) -> Case:
    """A ticket of 0.1 bitcoin that nothing speaks against, with changes by field name.

    It loses 40 at its stop (50 are allowed) and is worth 4,800. A price is given as its distance
    from the entry, 48,000, positive towards the target, so that both sides run through one table.
    """
    towards = 1 if side == "BUY" else -1
    entry = changes.pop("entry", 48_000.0)
    away = {"stop": -400.0, "target": 800.0, "price": 0.0}
    at = {name: entry + towards * changes.pop(name, far) for name, far in away.items()}
    levels = Levels(entry, at["stop"], at["target"], changes.pop("atr", 200.0))
    ticket = Ticket(side, changes.pop("lots", 0.1), levels, at["price"])
    account, spec, profile = Account(), BTC, PLAIN
    risk, gate = {}, {}
    for name, value in changes.items():
        if name in Ticket.__slots__:
            ticket = replace(ticket, **{name: value})
        elif name in Account.__slots__:
            by_side = isinstance(getattr(account, name), dict) and name != "levered"
            told: dict[str, Any] = {name: {side: value} if by_side else value}
            account = replace(account, **told)
        elif name in type(spec).model_fields:
            spec = spec.model_copy(update={name: value})
        elif name in Risk.model_fields:
            risk[name] = value
        else:
            assert name in GateSettings.model_fields, name
            gate[name] = value
    update = {"risk": Risk(**risk), "gate": GateSettings(**gate)}
    return Case(ticket, account, spec, profile.model_copy(update=update))


Edge = tuple[DenyReason, Callable[[int], dict[str, Any]], tuple[bool, bool, bool], set[DenyReason]]
"""A reason, what is changed one step below, at and above its limit, where it applies, and what else
may then apply."""

ABOVE, FROM, BELOW, UPTO = (
    (False, False, True), (False, True, True), (True, False, False), (True, True, False),
)  # fmt: skip
TICK = 0.01

EDGES: list[Edge] = [
    (R.COOLDOWN, lambda s: {"cooldown_bars": 3, "bars_since_loss": 3 + s * 0.001}, BELOW, set()),
    (R.STALE_BAR, lambda s: {"bar_age": 2 + s * 0.001}, ABOVE, set()),
    (R.STALE_SCORE, lambda s: {"score_age": 1 + s * 0.001}, FROM, set()),
    (R.BAD_NUMBER, lambda s: {"gross_notional": -s * 5e-324}, ABOVE, set()),
    (R.BAD_NUMBER, lambda s: {"live_spread": -s * 5e-324}, ABOVE, set()),
    (R.BAD_NUMBER, lambda s: {"leverage": -s * 5e-324}, FROM, set()),
    (R.BAD_NUMBER, lambda s: {"win_rates": (10 + s, 10), "min_trades_for_ev": 99}, ABOVE, set()),
    (R.PRICE_COLLAR, lambda s: {"price": 200 + s * TICK}, ABOVE, set()),
    (R.STOP_WRONG_SIDE, lambda s: {"stop": s * TICK}, FROM, {R.STOP_TOO_CLOSE}),
    (R.STOP_TOO_CLOSE, lambda s: {"stop": -15.01 - s * TICK}, BELOW, set()),
    (R.STOP_TOO_CLOSE, lambda s: {"live_spread": 20.0, "stop": -20.01 - s * TICK}, BELOW, set()),
    (R.STOP_TOO_CLOSE, lambda s: {"stops_level": 500, "stop": -20.0 - s * TICK}, BELOW, set()),
    (
        R.STOP_TOO_CLOSE,
        lambda s: {"spread": 0.0, "atr": 0.01 + s * 0.001, "stop": -0.01},
        BELOW,
        set(),
    ),
    (R.STOP_TOO_FAR, lambda s: {"stop": -800 - s * TICK, "lots": 0.01}, ABOVE, set()),
    (R.TARGET_WRONG_SIDE, lambda s: {"target": -s * TICK}, FROM, set()),
    (R.SIZE_ZERO, lambda s: {"lots": -s * 0.01, "lot_min": 0.01}, FROM, set()),
    (R.LOT_BELOW_MIN, lambda s: {"lots": round(0.1 + s * 0.01, 2), "lot_min": 0.1}, BELOW, set()),
    (R.LOT_ABOVE_MAX, lambda s: {"lots": round(0.1 + s * 0.01, 2), "lot_max": 0.1}, ABOVE, set()),
    (R.RISK_PER_TRADE, lambda s: {"stop": -500 - s * TICK}, ABOVE, set()),
    (R.MAX_NOTIONAL, lambda s: {"max_notional_pct": 48 - s * 1e-9}, ABOVE, set()),
    (R.EXPOSURE_CAP, lambda s: {"gross_notional": 15_200 + s * TICK}, ABOVE, {R.MARGIN}),
    (R.MARGIN, lambda s: {"account_leverage_cap": 0.48 - s * 1e-9}, ABOVE, set()),
    (R.MARGIN, lambda s: {"free_margin": 48 - s * TICK, "leverage": 100.0}, ABOVE, set()),
    (
        R.LEVERAGE_CAP,
        lambda s: {"leverage_caps": {"M15": 1.5}, "levered": {"M15": 10_200 + s * TICK}},
        ABOVE,
        set(),
    ),
    (
        R.LEVERAGE_CAP,
        lambda s: {
            "leverage_caps": {"H4": 3.0},
            "levered": {"H4": 0.0},
            "equity": 1_600 - s * TICK,
        },
        ABOVE,
        set(),
    ),
    (
        R.LEVERAGE_CAP,
        lambda s: {"most_leverage": 3.0, "equity": 1_600 - s * TICK},
        ABOVE,
        set(),
    ),
    (R.VENUE_SIDE, lambda s: {"most_notional": 4_800 - s * TICK}, ABOVE, set()),
    (R.MAX_POSITIONS, lambda s: {"positions_open": 3 + s}, FROM, set()),
    (R.DAILY_LOSS_CAP, lambda s: {"day_loss": 200 + s * TICK}, FROM, set()),
    (R.DAILY_LOSS_CAP, lambda s: {"daily_loss_cap_pct": 0.4 - s * 1e-9}, ABOVE, set()),
    (R.MESSAGE_RATE, lambda s: {"signals_last_hour": 6 + s}, FROM, set()),
    (R.REPEATED_EXECUTION, lambda s: {"same_side_last_hour": 3 + s}, FROM, set()),
    (R.NEGATIVE_EV, lambda s: {"spread": 0.0, "win_rates": (10 + s, 30)}, UPTO, set()),
    # with a spread of 40: win 760, lose 440, even at 11 wins of 30
    (
        R.NEGATIVE_EV,
        lambda s: {"live_spread": 40.0, "max_spread_atr": 0.5, "win_rates": (11 + s, 30)},
        UPTO,
        set(),
    ),
    (R.NEGATIVE_EV, lambda s: {"win_rates": (0, 30 + s)}, FROM, set()),
    (R.SPREAD, lambda s: {"live_spread": 30 + s * TICK}, ABOVE, set()),
]


@cases("side", ["BUY", "SELL"])
@cases("edge", EDGES, ids=[f"{number}-{edge[0]}" for number, edge in enumerate(EDGES)])
def test_a_limit_below_at_and_above(edge: tuple[Any, ...], side: Side) -> None:
    reason, change, applies, also = edge
    for step, expected in zip((-1, 0, 1), applies, strict=True):
        found = set(case(side, **change(step)).denied())
        assert (reason in found) is expected, (step, found)
        assert found <= {reason, *also}, step


TICKET_NUMBERS = ("entry", "stop", "target", "atr", "price", "lots", "bar_age", "score_age")
ACCOUNT_NUMBERS = (
    "positions_open", "gross_notional", "day_loss", "signals_last_hour", "same_side_last_hour",
    "bars_since_loss", "free_margin", "leverage", "live_spread", "levered", "equity",
    "most_notional",
)  # fmt: skip
WORSE: dict[str, Any] = {
    "veto": True,
    "gross_notional": 1e6,
    "cooldown_bars": 9,
    "bars_since_loss": 1.0,
}


def with_number(base: Case, name: str, number: float) -> Case:
    """Return the case with one number replaced, whatever it is."""
    if name in ("entry", "stop", "target", "atr"):
        levels = replace(base.ticket.levels, **{name: number})
        return base._replace(ticket=replace(base.ticket, levels=levels))
    if name in Ticket.__slots__:
        changes: dict[str, Any] = {name: number}
        return base._replace(ticket=replace(base.ticket, **changes))
    inner: str = "account" if name == "levered" else base.ticket.side
    value = {inner: number} if name.endswith(("_hour", "_loss", "levered")) else number
    changes = {name: number if name in ("signals_last_hour", "day_loss") else value}
    return base._replace(account=replace(base.account, **changes))


@cases("number", [math.nan, math.inf, -math.inf])
@cases("name", [*TICKET_NUMBERS, *ACCOUNT_NUMBERS])
def test_a_broken_number_denies_by_itself(name: str, number: float) -> None:
    assert R.BAD_NUMBER in with_number(case(), name, number).denied()


@cases("number", [0.0, -1.0, -0.0, 1e12 + 1, 1e308])
@cases("name", TICKET_NUMBERS[:5])
def test_a_price_that_cannot_be_one(name: str, number: float) -> None:
    assert with_number(case(), name, number).denied() == (R.BAD_NUMBER,)


def test_broken_statistics_deny() -> None:
    for pair in [(math.nan, 30), (1, math.nan), (1, math.inf), (31, 30), (-1, 30)]:
        assert case(win_rates=pair).denied() == (R.BAD_NUMBER,), pair


def test_what_is_not_counted_yet_denies_nothing() -> None:
    """No opening of the last hour and no trade that ended: limits of one do not apply."""
    assert case(max_same_openings_per_hour=1, min_trades_for_ev=1).denied() == ()


def test_a_broken_ticket_adds_nothing_to_what_the_desk_holds() -> None:
    """A desk at its cap is not above it, and the loss of the day is not yet its cap."""
    full = case(gross_notional=15_000.0, exposure_cap_pct=150.0, daily_loss_cap_pct=0.005)
    assert with_number(full, "lots", math.nan).denied() == (R.BAD_NUMBER,)


@cases("name", TICKET_NUMBERS[:5])
def test_a_broken_ticket_hides_nothing_that_does_not_need_it(name: str) -> None:
    base = case(**WORSE, signals_last_hour=6)
    assert with_number(base, name, math.nan).denied() == (
        R.GATE_VETO, R.COOLDOWN, R.BAD_NUMBER, R.EXPOSURE_CAP, R.MARGIN, R.MESSAGE_RATE,
    )  # fmt: skip


anything = st.floats() | st.sampled_from((0.0, -0.0, 5e-324, 1e308, 1e12, 48_000.0))


@given(st.sampled_from(("BUY", "SELL")), st.tuples(*[anything] * 20))
def test_no_number_makes_check_raise(side: Side, numbers: tuple[float, ...]) -> None:
    found = case(side, min_trades_for_ev=1, win_rates=(1, 2))
    for name, number in zip((*TICKET_NUMBERS, *ACCOUNT_NUMBERS), numbers, strict=True):
        found = with_number(found, name, number)
    assert found.denied() == found.denied()
