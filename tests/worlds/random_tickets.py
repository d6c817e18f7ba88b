"""Random tickets at the limits: what the oracle and the code are both asked about.

A ticket begins as one that nothing speaks against; then a few of its numbers, or of the account's
or the profile's, are put below, at or above a limit, far beyond it, or broken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random
from typing import Any

from agent_config import GateSettings
from tests.worlds.risk_oracle import exactly
from torra.config import SYMBOLS, Profile, Risk, SymbolSpec
from torra.verdict.order_levels import Side
from torra.verdict.risk_engine import Account, Levels, Ticket

PLAIN = Profile()


def dec(value: float | Decimal) -> float:
    return float(value)


def random_spec(chance: Random) -> SymbolSpec:
    if chance.random() < 0.3:
        return chance.choice(list(SYMBOLS.values()))
    digits = chance.randint(0, 5)
    tick = Decimal(chance.choice((1, 1, 1, 5, 25))).scaleb(-digits)
    contract = chance.choice((1, 10, 100, 5_000, 100_000))
    rate = Decimal(chance.choice(("1", "1", "1.13", "0.0067", "31.5")))
    step = Decimal(chance.choice(("0.001", "0.01", "0.05", "0.1", "0.25", "1")))
    least = step * chance.randint(1, 10)
    return SymbolSpec(
        digits=digits,
        tick_size=dec(tick),
        tick_value=dec(tick * contract * rate),
        contract_size=float(contract),
        lot_min=dec(least),
        lot_step=dec(step),
        lot_max=dec(least + step * chance.choice((0, 3, 100, 10_000))),
        spread=dec(tick * chance.choice((0, 1, 3, 12, 40))),
        stops_level=chance.choice((0, 0, 0, 5, 30)),
    )


@dataclass(slots=True)
class Draft:
    """A case while it is being made; prices are decimals."""

    chance: Random
    spec: SymbolSpec
    side: Side
    entry: Decimal
    reach: Decimal
    """From the entry to the stop, against the order."""
    gain: Decimal
    """From the entry to the target, in its favour."""
    atr: Decimal
    lots: Decimal
    away: Decimal = Decimal(0)
    ticket: dict[str, Any] = field(default_factory=dict)
    account: dict[str, Any] = field(default_factory=dict)
    risk: dict[str, Any] = field(default_factory=dict)
    gate: dict[str, Any] = field(default_factory=dict)
    spoilt: list[Callable[[Ticket, Account], tuple[Ticket, Account]]] = field(default_factory=list)

    @property
    def tick(self) -> Decimal:
        return exactly(self.spec.tick_size)

    def worth(self, distance: Decimal) -> Decimal:
        return distance * self.lots * exactly(self.spec.tick_value) / self.tick

    def near(self, limit: Decimal | float, step: Decimal | float | None = None) -> Decimal:
        """Below, at or above a limit; the steps are ticks, or very small."""
        limit = exactly(limit) if isinstance(limit, float) else Decimal(limit)
        by = abs(limit) * Decimal("1e-9") if step is None else Decimal(step)
        return limit + by * self.chance.choice((-1_000, -2, -1, 0, 0, 1, 2, 1_000))

    def capital(self) -> Decimal:
        return exactly(self.risk.setdefault("capital", 10_000.0))

    def done(self) -> tuple[Ticket, Account, SymbolSpec, Profile]:
        towards = 1 if self.side == "BUY" else -1
        stop, target = self.entry - towards * self.reach, self.entry + towards * self.gain
        made = Levels(dec(self.entry), dec(stop), dec(target), dec(self.atr))
        ticket = Ticket(self.side, dec(self.lots), made, dec(self.entry + self.away))
        ticket, account = replace(ticket, **self.ticket), Account(**self.account)
        for spoil in self.spoilt:
            ticket, account = spoil(ticket, account)
        update = {
            "risk": Risk.model_construct(**{**GENEROUS, **self.risk}),
            "gate": GateSettings.model_construct(**{**GATE, **self.gate}),
        }
        return ticket, account, self.spec, PLAIN.model_copy(update=update)


GATE = GateSettings().model_dump()
GENEROUS = Risk(
    capital=1e9, risk_per_trade_pct=10.0, max_notional_pct=1e9, exposure_cap_pct=1e9,
    account_leverage_cap=1e9,
).model_dump()  # fmt: skip


def begin(chance: Random) -> Draft:
    """A ticket that nothing speaks against."""
    spec = random_spec(chance)
    tick = exactly(spec.tick_size)
    atr = tick * chance.randint(40, 4_000)
    least = exactly(spec.spread) + max(tick, Decimal(spec.stops_level).scaleb(-spec.digits))
    reach = max(least, atr * 2 // tick * tick)
    atr = max(atr, reach / 2)
    entry = tick * chance.randint(20_000, 900_000)
    step = exactly(spec.lot_step)
    steps = chance.randint(int(exactly(spec.lot_min) / step), int(exactly(spec.lot_max) / step))
    draft = Draft(
        chance, spec, chance.choice(("BUY", "SELL")), entry, reach, 2 * reach, atr, step * steps
    )
    loss = draft.worth(reach)
    if loss >= 10**6:  # so that capital, 1e9, bears it
        draft.risk["capital"] = dec(loss * 1_000)
    return draft


def own_limits(d: Draft) -> None:
    """Bring a limit of one trade to where the ticket is."""
    share = Decimal(100) / d.capital()
    loss, worth = abs(d.worth(d.reach)), abs(d.worth(d.entry))
    d.risk |= d.chance.choice(
        (
            {"risk_per_trade_pct": dec(d.near(loss * share))},
            {"max_notional_pct": dec(d.near(worth * share))},
            {"daily_loss_cap_pct": dec(d.near(loss * share))},
        )
    )


def limits_of_the_desk(d: Draft) -> None:
    """Bring a limit of the whole desk to where the ticket is, or the desk to the limit."""
    capital, worth = d.capital(), abs(d.worth(d.entry))
    pick = d.chance.randrange(5)
    if pick < 2:
        name, share = (("exposure_cap_pct", 100), ("account_leverage_cap", 1))[pick]
        held = d.account.setdefault("gross_notional", float(d.chance.randint(0, 10**6)))
        d.risk[name] = dec(d.near((exactly(held) + worth) / capital * share))
    elif pick == 2:
        d.risk |= {"exposure_cap_pct": 300.0, "account_leverage_cap": 3.0}
        d.account["gross_notional"] = max(0.0, dec(d.near(capital * 3 - worth)))
    elif pick == 3:
        d.account["leverage"] = float(d.chance.choice((1, 30, 100, 500)))
        d.account["free_margin"] = dec(d.near(worth / exactly(d.account["leverage"])))
    else:
        d.risk["daily_loss_cap_pct"] = 1.5
        d.account["day_loss"] = dec(d.near(capital * Decimal("0.015")))


def limits_of_its_account(d: Draft) -> None:
    """Bring a cap of the account that the order goes to, or what it holds, to where they meet."""
    capital, worth = d.capital(), abs(d.worth(d.entry))
    pick = d.chance.randrange(4)
    if pick == 0:
        d.account["most_notional"] = dec(d.near(worth))
        return
    means = capital
    if pick == 1:
        means = capital * d.chance.choice((Decimal("0.5"), 1, 2))
        d.account["equity"] = dec(means)
        means = min(means, capital)
    name = d.chance.choice(("M15", "H4", "account"))
    held = d.account.setdefault("levered", {})
    d.risk["leverage_caps"] = caps = {**d.risk.get("leverage_caps", {})}
    if pick == 3:
        caps[name] = float(d.chance.choice((1, 2, 3)))
        held[name] = max(0.0, dec(d.near(capital * exactly(caps[name]) - worth)))
        return
    held[name] = float(d.chance.randint(0, 10**6))
    caps[name] = max(1e-12, dec(d.near((exactly(held[name]) + worth) / means)))
    caps |= {"H1": 1e-9} if d.chance.random() < 0.3 else {}  # of another timeframe


def near_the_stop(d: Draft) -> None:
    least = exactly(d.spec.spread) + d.tick
    level = exactly(d.spec.spread) + Decimal(d.spec.stops_level).scaleb(-d.spec.digits)
    place = d.chance.randrange(5)
    if place == 4:
        d.reach = -d.reach
    else:
        d.reach = d.near((least, level, 4 * d.atr, Decimal(0))[place], d.tick)


def tiny_atr(d: Draft) -> None:
    d.atr = max(d.near(d.tick), d.tick / 2)


def far_atr(d: Draft) -> None:
    d.atr = max(d.tick, d.near(abs(d.reach) / 4))


def the_target(d: Draft) -> None:
    d.gain = d.chance.choice((-1, 1)) * d.near(0, d.tick)


def the_collar(d: Draft) -> None:
    d.risk["price_collar_atr"] = d.chance.choice((0.1, 0.5, 1.0, 3.0))
    d.away = d.chance.choice((-1, 1)) * d.near(exactly(d.risk["price_collar_atr"]) * d.atr, d.tick)


def the_lots(d: Draft) -> None:
    low, high, step = exactly(d.spec.lot_min), exactly(d.spec.lot_max), exactly(d.spec.lot_step)
    d.lots = d.chance.choice(
        (
            Decimal(0), -low, low, low - step, low - step / 2, low / 1_000, high, high + step,
            high + step / 2, d.lots + step / 2, d.lots + step / 1_000,
        )
    )  # fmt: skip


def the_record(d: Draft) -> None:
    trades = d.chance.choice((29, 30, 31, 90, 300))
    d.risk["min_trades_for_ev"] = d.chance.choice((30, 90))
    spread = exactly(d.spec.spread)
    lost, won = d.reach + spread, d.gain - spread
    even = int(trades * lost / (lost + won)) if lost + won > 0 else trades // 3
    wins = min(max(0, even + d.chance.choice((-2, -1, 0, 0, 1, 2))), trades)
    if d.chance.random() < 0.3:  # exactly even
        d.spec = d.spec.model_copy(update={"spread": 0.0})
        d.gain, trades, wins = 2 * d.reach, 30, 10
    side = d.side if d.chance.random() < 0.9 else "BUY"
    d.account["win_rates"] = {side: (wins, trades)}


def the_spread(d: Draft) -> None:
    d.gate["max_spread_atr"] = d.chance.choice((0.1, 0.15, 0.5))
    d.account["live_spread"] = max(0.0, dec(d.near(exactly(d.gate["max_spread_atr"]) * d.atr)))


def a_quiet_spread(d: Draft) -> None:
    limit = exactly(0.15) * d.atr
    d.account["live_spread"] = dec(min(limit, abs(d.near(exactly(d.spec.spread), d.tick))))


def the_ages(d: Draft) -> None:
    d.gate["max_bar_age"] = d.chance.choice((1.0, 2.0))
    old, older = d.near(d.gate["max_bar_age"]), d.near(1.0)
    d.ticket[d.chance.choice(("bar_age", "score_age"))] = 0.5
    d.ticket |= d.chance.choice(({"bar_age": dec(old)}, {"score_age": dec(older)}))


def the_pace(d: Draft) -> None:
    pick = d.chance.randrange(4)
    if pick == 0:
        d.account["signals_last_hour"] = 6 + d.chance.choice((-6, -1, 0, 1, 9))
    elif pick == 1:
        side = d.side if d.chance.random() < 0.9 else "SELL"
        d.account["same_side_last_hour"] = {side: 3 + d.chance.choice((-1, 0, 1, 9))}
    elif pick == 2:
        d.account["positions_open"] = 3 + d.chance.choice((-3, -1, 0, 1))
    else:
        d.risk["cooldown_bars"] = bars = d.chance.randint(0, 4)
        side = d.side if d.chance.random() < 0.9 else "BUY"
        d.account["bars_since_loss"] = {side: dec(d.near(float(bars), 0.25))}


def a_flag(d: Draft) -> None:
    pick = d.chance.randrange(9)
    told = ({"veto": True}, {"opening_stands": False}, {"duplicate": True}, {"declined": True})
    if pick < len(told):
        d.ticket |= told[pick]
    elif pick < 6:
        d.account |= ({"clock_ok": False}, {"market_open": False})[pick - len(told)]
    elif pick < 8:
        d.account["trading_state"] = d.chance.choice(("HALTED", "", "REDUCING"))
    else:
        d.account["sides"] = d.chance.choice(("long_only", "short_only", "neither"))


WILD = (math.nan, math.inf, -math.inf, 0.0, -1.0, 5e-324, 1e308, -1e308, 1e12, 1.0000001e12)


def a_broken_number(d: Draft) -> None:
    number, name = d.chance.choice(WILD), d.chance.choice(BREAKABLE)

    def spoil(ticket: Ticket, account: Account) -> tuple[Ticket, Account]:
        if name in ("entry", "stop", "target", "atr"):
            return replace(ticket, levels=replace(ticket.levels, **{name: number})), account
        if name in Ticket.__slots__:
            changes: dict[str, Any] = {name: number}
            return replace(ticket, **changes), account
        inner = {"bars_since_loss": ticket.side, "levered": "account"}.get(name)
        changes = {name: {inner: number} if inner else number}
        return ticket, replace(account, **changes)

    d.spoilt.append(spoil)


BREAKABLE = (
    "entry", "stop", "target", "atr", "price", "lots", "bar_age", "score_age", "gross_notional",
    "day_loss", "free_margin", "leverage", "live_spread", "bars_since_loss", "equity",
    "most_notional", "levered",
)  # fmt: skip
CHANGES: tuple[Callable[[Draft], None], ...] = (
    own_limits, own_limits, limits_of_the_desk, limits_of_the_desk, near_the_stop, tiny_atr,
    limits_of_its_account, far_atr, the_target, the_collar, the_lots, the_lots, the_lots,
    the_record, the_spread, a_quiet_spread, the_ages, the_pace, the_pace, a_flag, a_broken_number,
)  # fmt: skip


def random_case(chance: Random) -> tuple[Ticket, Account, SymbolSpec, Profile]:
    draft = begin(chance)
    for change in chance.choices(CHANGES, k=chance.choice((0, 1, 1, 1, 1, 2, 2, 3, 5))):
        change(draft)
    return draft.done()
