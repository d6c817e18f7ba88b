"""What closing a position now would bring, and what keeping it may cost: asked before a close.

A page, a dialog and the command line read the same quote. It decides nothing, and a position whose
price is not known has a quote too: it has no end now, and `why` says what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from torra.config import SymbolSpec
from torra.errors import ConfigError, DataUnavailable
from torra.money.book import known_currencies
from torra.money.open_positions import PAPER
from torra.trading.by_hand import market_now
from torra.trading.commanding import CommandContext
from torra.verdict.risk_engine import Position
from torra.verdict.trade_outcome import CloseValue, leaving, value_at

PRICES: Final = ("stop", "entry", "target")
UNFILLED: Final = "not filled yet"


@dataclass(frozen=True, slots=True)
class CloseQuote:
    """A position with its ends: `stop`, `entry`, `target`, and `now` where its price is known.

    A gap beyond the stop may cost more. `ends` is empty without the symbol's terms, and has no
    `now` while the opening is not filled; `why` says what is missing. `bid` is the price of now,
    `currency` is "" where nobody has told it. `real`: with real money.
    """

    held: Position
    route: str
    currency: str
    spec: SymbolSpec | None = None
    bid: float | None = None
    ends: Mapping[str, CloseValue] = field(default_factory=dict)
    real: bool = False
    why: str = ""

    @property
    def filled(self) -> bool:
        """Whether the opening is known to be filled."""
        return self.why != UNFILLED


def quote(desk: CommandContext, held: Position) -> CloseQuote:
    """Return a position with its end now and at its stop; a price that is missing is told."""
    opening = desk.database.signal(held.signal_id) or {}
    route = opening.get("bridge") or PAPER
    currency = known_currencies(desk.database, desk.settings.paper_currency).get(route, "")
    found = CloseQuote(held, route, currency, why=UNFILLED if opening.get("price") is None else "")
    try:
        instance = desk.settings.instance(held.instance)
        found = replace(found, real=desk.settings.trades_real_money(instance))
        spec = desk.profile(instance).symbol(held.symbol)
        ends = {name: value_at(held, getattr(held, name), spec) for name in PRICES}
        found = replace(found, spec=spec, ends=ends)
        bid, figures = market_now(desk, instance, desk.now())
    except (ConfigError, DataUnavailable) as error:
        return replace(found, why=found.why or str(error))
    if found.why:
        return replace(found, bid=bid)
    # a long leaves at the bid, a short pays the spread
    leave = leaving(held.side, bid, figures.get("live_spread", spec.spread))
    return replace(found, bid=bid, ends={**ends, "now": value_at(held, leave, spec)})
