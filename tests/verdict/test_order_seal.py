"""The seal of an order by a known answer: which fields it has, how each is written, and joined."""

from __future__ import annotations

from hashlib import sha256

import pytest

from torra.verdict import order_seal

ROW = {
    "sid": "T1", "kind": "open", "symbol": "XAUUSD", "side": "BUY", "lots": 0.10, "entry": 2635.40,
    "stop": 2630.0, "target": 2645.123456789, "decided_at": "2021-12-01T12:00:00Z",
    "expires": "2021-12-01T12:03:00Z", "timeframe": "M15", "bar_time": "2021-12-01T11:45:00Z",
    "closes": None, "after": None, "instance": "GOLD", "bridge": "paper", "authority": "tick",
    "atr": 5.0,
}  # fmt: skip

OPENING = (
    "1|T1|open|XAUUSD|BUY|0.1|2635.4|2630|2645.12345679|1638360000|1638360180|M15|1638359100|"
    "{closes}|tick GOLD paper 5 {origin}"
)
CLOSE = (
    "1|T1|close|XAUUSD|BUY|0.1|0|0|0|1638360000|1638360180|M15|1638359100|T0|"
    "tick GOLD paper 0 T0 T9"
)
UNPRICED = {"kind": "close", "entry": None, "stop": None, "target": None, "atr": None}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (ROW, OPENING.format(closes="", origin="- -")),
        # An opening that follows a close shows it in its origin alone.
        (ROW | {"closes": "T0", "after": "T9"}, OPENING.format(closes="", origin="T0 T9")),
        (ROW | UNPRICED | {"closes": "T0", "after": "T9"}, CLOSE),
    ],
)
def test_a_seal_is_the_hash_of_these_words(row: dict[str, object], text: str) -> None:
    assert order_seal.of_row(row) == sha256(text.encode()).hexdigest()
    assert not order_seal.altered(row | {"seal": order_seal.of_row(row)})


@pytest.mark.parametrize("odd", [{"authority": "host"}, {"lots": "much"}, {"expires": "soon"}])
def test_a_row_that_is_no_order_is_altered(odd: dict[str, object]) -> None:
    assert order_seal.altered(ROW | {"seal": order_seal.of_row(ROW)} | odd)
