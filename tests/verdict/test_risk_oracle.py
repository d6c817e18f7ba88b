"""A hundred thousand random tickets and sizes against rules that were written down a second time.

By day the seed is fixed, at night it is a new one, which a failure names with the number of the
case.
"""

from __future__ import annotations

import decimal
import math
import secrets
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import pytest

from tests.conftest import Scale
from tests.worlds.random_tickets import PLAIN, random_case, random_spec
from tests.worlds.risk_oracle import UNROUNDED, exactly, fits, oracle
from torra.config import Profile, Risk, SymbolSpec
from torra.verdict.risk_engine import (
    Account,
    Decision,
    DenyReason,
    Levels,
    Ticket,
    check,
    levels,
    review,
    size,
)

SEED = 20_260_825

ELSEWHERE = {
    DenyReason.BRIDGE_DEAD, DenyReason.VERSION_MISMATCH, DenyReason.SIGNAL_EXPIRED,
    DenyReason.ORDER_ALTERED,
}  # fmt: skip
"""Reasons that no ticket has: they are about handing it over."""


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    return secrets.randbelow(2**32) if request.config.getoption("--nightly") else SEED


def test_no_ticket_is_let_through_or_held_back_wrongly(
    scaled: Scale, seed: int, record_property: Any
) -> None:
    count, passed = scaled(100_000, least=1_000), 0
    told: Counter[DenyReason] = Counter()
    alone: Counter[DenyReason] = Counter()
    for number in range(count):
        found = random_case(Random(f"{seed}-{number}"))
        reasons = check(*found)
        said = oracle(*found)
        in_order = [reason for reason in DenyReason if reason in said]
        assert [*reasons] == in_order, (seed, number, found)
        passed += not reasons
        told.update(reasons)
        alone.update(reasons if len(reasons) == 1 else ())
    rarest = f"each of {len(told)} reasons at least {min(alone.values()):,} times alone"
    record_property("seen", f"{count:,} tickets, {passed:,} passed, {rarest}; seed {seed}")
    assert set(told) == set(alone) == set(DenyReason) - ELSEWHERE
    assert min(told.values()) > count * 0.004
    assert count * 0.2 < passed < count * 0.6


# --- sizes ----------------------------------------------------------------------------------------


class Question(NamedTuple):
    """A market that has levels, and an account whose means are about right for it."""

    spec: SymbolSpec
    side: str
    price: float
    atr: float
    risk: Risk
    share: float


def question(chance: Random) -> Question:
    spec, side = random_spec(chance), chance.choice(("BUY", "SELL"))
    at: Levels | DenyReason = DenyReason.BAD_NUMBER
    while isinstance(at, DenyReason):
        price = spec.tick_size * 10 ** chance.uniform(2, 6)
        atr = price * 10 ** chance.uniform(-4, -0.7)
        at = levels(side, price, atr, spec)
    wanted = spec.lot_min / 2 * (4 * spec.lot_max / spec.lot_min) ** chance.random()
    worth = spec.tick_value / spec.tick_size * wanted
    percent = round(10 ** chance.uniform(-2, 1), 3)
    capital = max(1.0, round(worth * 2 * atr * 100 / percent, 2))
    most = worth * price / capital * 100 * chance.choice((0.3, 1, 10, 10))
    risk = Risk(
        capital=capital,
        risk_per_trade_pct=percent,
        max_notional_pct=max(0.001, round(most, 3)),
        exposure_cap_pct=1e12,
        daily_loss_cap_pct=1e12,
        account_leverage_cap=1e12,
    )
    share = chance.choice((1.0, 1.0, 0.75, 0.5, 0.7 * 0.8, chance.random(), 0.0))
    return Question(spec, side, price, atr, risk, share)


def test_the_loss_at_the_stop_stays_in_its_budget(
    scaled: Scale, seed: int, record_property: Any
) -> None:
    """Realised risk after rounding is never above its share, and no step is given away."""
    count, sized = scaled(100_000), 0
    for number in range(count):
        spec, side, price, atr, risk, share = question(Random(f"{seed}-size-{number}"))
        at = levels(side, price, atr, spec)
        assert isinstance(at, Levels)
        lots, full = size(at, spec, risk, share), size(at, spec, risk)
        told = (seed, number, lots)
        assert 0 <= lots <= full, told
        with decimal.localcontext(UNROUNDED):
            assert not exactly(lots) % exactly(spec.lot_step), told
            assert lots == 0 or lots >= spec.lot_min, told
            assert fits(exactly(lots), at, spec, risk, Decimal(1)), told
            assert fits(exactly(lots), at, spec, risk, exactly(share)), told
            larger = max(exactly(lots) + exactly(spec.lot_step), exactly(spec.lot_min))
            assert not fits(larger, at, spec, risk, exactly(share)), told
        sized += lots > 0
    record_property("seen", f"{count:,} sizes, {sized:,} above zero; seed {seed}")
    assert sized > count * 0.4


# --- plans ----------------------------------------------------------------------------------------


def asked_of_review(chance: Random) -> tuple[dict[str, Any], Account]:
    """Return what `review` is asked, less the account."""
    spec, side, price, atr, risk, share = question(chance)
    tight = {"exposure_cap_pct": risk.max_notional_pct * chance.uniform(0, 3)}
    told = {"cooldown_bars": 2, "leverage_caps": {"M15": 3.0}}
    risk = risk.model_copy(update={**chance.choice(({}, {}, {}, tight)), **told})
    maybe = chance.random
    account = Account(
        positions_open=chance.choice((0,) * 9 + (3,)),
        gross_notional=chance.choice((0.0, 0.0, chance.uniform(0, risk.capital))),
        day_loss=chance.uniform(-1, 1) * risk.capital,
        signals_last_hour=chance.choice((0,) * 9 + (5, 6)),
        same_side_last_hour={side: chance.choice((0, 0, 2, 3))} if maybe() < 0.3 else {},
        win_rates={side: (chance.randint(8, 30), 30)} if maybe() < 0.3 else {},
        bars_since_loss={side: chance.uniform(1, 9)} if maybe() < 0.3 else {},
        free_margin=chance.uniform(0, risk.capital) if maybe() < 0.3 else None,
        leverage=100.0 if maybe() < 0.7 else None,
        live_spread=atr * chance.uniform(0, 0.2) if maybe() < 0.2 else None,
        levered={"M15": chance.uniform(0, 3 * risk.capital)} if maybe() < 0.1 else {},
        equity=risk.capital * chance.uniform(0, 2) if maybe() < 0.1 else None,
        sides=chance.choice(("both",) * 30 + ("long_only", "short_only")),
        most_notional=chance.uniform(0, 2 * risk.capital) if maybe() < 0.05 else None,
        trading_state=chance.choice(("ACTIVE",) * 18 + ("REDUCING", "HALTED")),
        market_open=maybe() < 0.95,
        clock_ok=maybe() < 0.95,
    )
    moment = {
        "bar_age": 3.0 if maybe() < 0.05 else 0.1,
        "score_age": 1.5 if maybe() < 0.05 else 0.1,
        "veto": maybe() < 0.05,
        "opening_stands": maybe() < 0.95,
        "duplicate": maybe() < 0.05,
        "declined": maybe() < 0.05,
    }
    asked = {
        "verdict": side,
        "price": price,
        "atr": chance.choice((math.nan, spec.tick_size / 2)) if maybe() < 0.05 else atr,
        "last_price": price + atr * chance.uniform(-2, 2) if maybe() < 0.2 else None,
        "spec": spec,
        "profile": PLAIN.model_copy(update={"risk": risk}),
        "multiplier": share,
        **moment,
    }
    return asked, account


def said_of(
    asked: dict[str, Any], account: Account, spec: SymbolSpec, profile: Profile
) -> tuple[set[str], float, Levels | None]:
    """Ask the oracle about the plan in both sizes, the one that is sent last."""
    names = ("bar_age", "score_age", "veto", "opening_stands", "duplicate", "declined")
    told = {name: asked[name] for name in names}
    price = asked["price"] if asked["last_price"] is None else asked["last_price"]
    at = levels(asked["verdict"], asked["price"], asked["atr"], spec)
    if isinstance(at, DenyReason):
        bare = Ticket(asked["verdict"], math.nan, Levels(*[math.nan] * 4), price, **told)
        return oracle(bare, account, spec, profile) - {"BAD_NUMBER"} | {str(at)}, 0.0, None
    shares = (1.0, asked["multiplier"])
    sizes = [size(at, spec, profile.risk, share) for share in shares]
    ticket = Ticket(asked["verdict"], 0.0, at, price, **told)
    looks = (oracle(replace(ticket, lots=lots), account, spec, profile) for lots in sizes)
    return set().union(*looks), sizes[1], at


def test_a_plan_is_looked_at_like_any_other_ticket(
    scaled: Scale, seed: int, record_property: Any
) -> None:
    """`review` opens what the oracle lets through, and denies for the oracle's reasons."""
    count = scaled(20_000, least=300)
    opened = halted = 0
    for number in range(count):
        asked, account = asked_of_review(Random(f"{seed}-plan-{number}"))
        spec, profile = asked.pop("spec"), asked.pop("profile")
        action = review(Decision(**asked), None, account, spec, profile)
        said, lots, at = said_of(asked, account, spec, profile)
        assert {*map(str, action.denied)} == said, (seed, number)
        assert [(draft.lots, draft.levels) for draft in action.drafts] == [(lots, at)] * (not said)
        only = bool(said) and said <= {"MESSAGE_RATE", "REPEATED_EXECUTION"}
        assert (action.halt is not None) is only, (seed, number)
        opened, halted = opened + (not said), halted + only
    record_property("seen", f"{count:,} plans, {opened:,} opened, {halted:,} halted; seed {seed}")
    assert opened > count * 0.1
    assert halted > count * 0.01
