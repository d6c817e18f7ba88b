"""The list of symbols and the sign of life that an Expert Advisor has written into its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from torra.bridges.protocol import Quote, SymbolTerms
from torra.bridges.torra.messages import Heartbeat, Symbols, encode
from torra.clock import EPOCH

AT = datetime(2026, 3, 10, 12, tzinfo=UTC)


def write(
    folder: Path,
    terms: Iterable[SymbolTerms],
    key: str,
    *,
    account: int = 12345678,
    offset: int = 7200,
    balance: str = "3000",
    change: Callable[[str], str] = str,
) -> None:
    """Write both files of channel `main`; `change` alters each row of the list."""
    (folder / "state").mkdir(parents=True, exist_ok=True)
    gmt, money = int(AT.timestamp()), Decimal(balance)
    rows = tuple(change(symbol_row(item)) for item in terms)
    symbols = Symbols(n=1, gmt=gmt, channel="main", account=account, rows=rows)
    pulse = Heartbeat(
        n=1, gmt=gmt, server_offset_s=offset, account=account, trade_mode="demo",
        margin_mode="hedging", connected=True, algo_allowed=True, trade_allowed=True, kill=False,
        ea_version="1.0", last_seq=0, inbox=0, work=0, balance=money, equity=money,
        free_margin=money, leverage=30, currency="EUR", channel="main",
    )  # fmt: skip
    (folder / "state" / "symbols.json").write_bytes(encode(symbols, key))
    (folder / "state" / "ea.json").write_bytes(encode(pulse, key))


def symbol_row(terms: SymbolTerms) -> str:
    """Return a row as the Advisor writes it; without a quote its columns are zeros."""
    names = [field.name for field in fields(terms) if field.name != "quote"]
    quote = terms.quote or Quote(0.0, 0.0, EPOCH)
    values = [*(getattr(terms, name) for name in names), quote.bid, quote.ask]
    # Never 1e-05: the format of a decimal has no exponent.
    columns = [f"{Decimal(repr(x)):f}" if isinstance(x, float) else str(x) for x in values]
    return "|".join([*columns, str(int(quote.at.timestamp()))])
