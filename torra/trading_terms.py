"""Trading conditions: what may be risked, and how a symbol is quoted and traded.

Part of a profile (torra.config); the values here are the shipped defaults. A number outside its
limits is refused by pydantic with its place.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, field_validator

from agent_config import Section
from torra.clock import TIMEFRAMES

CURRENCY: Final = re.compile(r"[A-Z]{3}")
TICKER: Final = re.compile(r"[A-Z0-9][A-Z0-9.:_-]{0,23}")

ACCOUNT: Final = "account"
CAPPED: Final = (*TIMEFRAMES, ACCOUNT)
"""What `risk.leverage_caps` may name: the openings of a timeframe, and all of an account."""

MOST_LEVERAGE: Final = 10_000
"""No broker lends more times the capital."""


class Risk(Section):
    """How much may be lost, held and sent. Percentages are of `capital`."""

    capital: float = Field(10_000.0, gt=0, description="account capital in account currency")
    risk_per_trade_pct: float = Field(
        0.5, gt=0, le=10, description="loss at the stop, percent of capital"
    )
    max_positions: int = Field(3, ge=0, description="open positions of the whole desk")
    max_notional_pct: float = Field(
        100.0, gt=0, description="one position's notional value, percent of capital"
    )
    exposure_cap_pct: float = Field(
        200.0, gt=0, description="gross notional of the desk, percent of capital"
    )
    daily_loss_cap_pct: float = Field(
        2.0, gt=0, description="loss of a UTC day after which nothing opens"
    )
    account_leverage_cap: float = Field(2.0, gt=0, description="gross notional over capital")
    leverage_caps: dict[str, float] = Field(
        {},
        description="most gross notional at one account of what a timeframe opened, such as M15, "
        "and of all (account): times the capital, or the account's equity where that is lower; "
        "none = those of the mode",
    )
    max_signals_per_hour: int = Field(
        6,
        ge=1,
        description="signals an instance may send in a sliding hour; one more halts the desk",
    )
    max_same_openings_per_hour: int = Field(
        3,
        ge=1,
        description="openings of one side that an instance may send in a sliding hour; one more "
        "halts the desk",
    )
    cooldown_bars: int = Field(
        0, ge=0, le=100, description="bars after a losing trade in which its side stays closed"
    )
    price_collar_atr: float = Field(
        1.0, gt=0, description="farthest entry from the last price, ATRs"
    )
    max_deviation_atr: float = Field(
        0.25,
        gt=0,
        le=2,
        description="how far the price may have moved when a broker gets the order, ATRs; on "
        "paper, where it fills at the next bar's open, `price_collar_atr` holds",
    )
    min_trades_for_ev: int = Field(
        30, ge=1, description="replayed trades from which a win rate counts"
    )

    @field_validator("leverage_caps")
    @classmethod
    def _known_caps(cls, value: dict[str, float]) -> dict[str, float]:
        for name, times in value.items():
            if name not in CAPPED:
                raise ValueError(f"unknown cap {name!r}; known: {', '.join(CAPPED)}")
            if not 0 < times <= MOST_LEVERAGE:
                raise ValueError(f"the cap {name} must be above 0 and at most {MOST_LEVERAGE:,}")
        return value


class SymbolSpec(Section):
    """How a symbol is quoted and traded; `spread` is in price units."""

    digits: int = Field(ge=0, le=10, description="decimals of a price")
    tick_size: float = Field(gt=0, description="smallest price step")
    tick_value: float = Field(gt=0, description="value of one tick for one lot, account currency")
    contract_size: float = Field(gt=0, description="units of the symbol in one lot")
    lot_min: float = Field(gt=0, description="smallest order")
    lot_step: float = Field(gt=0, description="order sizes are multiples of this")
    lot_max: float = Field(gt=0, description="largest order")
    spread: float = Field(ge=0, description="assumed ask minus bid, price units")
    slippage: float = Field(
        0.0, ge=0, description="paper only: how much worse than the quote a fill is, price units"
    )
    fill_lots: float = Field(
        0.0, ge=0, description="paper only: most lots that are filled at once; 0 = all"
    )
    stops_level: int = Field(
        0, ge=0, description="points that stop and target keep from the price at least"
    )
    asset: Literal["", "gold", "index", "oil", "fx", "crypto", "stock"] = Field(
        "", description="asset class: what the agents are told about its kind in general"
    )
    currencies: tuple[str, ...] = Field(
        (),
        strict=False,
        max_length=8,
        description="currencies whose scheduled events concern it, such as USD",
    )
    news_terms: tuple[str, ...] = Field(
        (),
        strict=False,
        max_length=40,
        description="words of which one must stand in a headline about it; empty = by asset class",
    )
    ticker: str = Field(
        "",
        description="what news vendors and EDGAR call it, such as AAPL; a company's news and "
        "figures need it",
    )

    @field_validator("currencies")
    @classmethod
    def _currency(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not CURRENCY.fullmatch(name):
                raise ValueError(f"{name!r} is no currency; write three capitals, such as USD")
        return value

    @field_validator("ticker")
    @classmethod
    def _vendors_ticker(cls, value: str) -> str:
        if value and not TICKER.fullmatch(value):
            raise ValueError("use capitals, digits, dot, colon, dash and underscore, 24 at most")
        return value

    @field_validator("news_terms")
    @classmethod
    def _terms(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for term in value:
            if not (term.strip() and len(term) <= 40):
                raise ValueError("a term has 1 to 40 characters")
        return value


def _shipped() -> Iterator[tuple[str, SymbolSpec]]:
    with Path(__file__).with_name("symbols.csv").open(encoding="ascii") as file:
        for row in csv.DictReader(file):
            values = {**row, "currencies": row["currencies"].split()}
            del values["symbol"]
            yield row["symbol"], SymbolSpec.model_validate(values, strict=False)


SYMBOLS: Final = dict(_shipped())
"""The shipped conditions, by canonical symbol."""
