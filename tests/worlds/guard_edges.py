"""Openings below, at and above the limit of a guard, for everyone who asks the guards.

An opening is that of tests.doubles.advisor_channel: gold at 2345.00 to 2345.20, a spread of 40
points and a deviation of 30 at most, and 0.10 lots as the largest order.
"""

from __future__ import annotations

from typing import Any

from tests.doubles.advisor_channel import NOW

EDGES: dict[str, list[tuple[dict[str, Any], dict[str, Any], bool]]] = {
    "clock": [({"created": NOW + seconds}, {}, seconds > 5) for seconds in (4, 5, 6)],
    "stale": [({"expires": NOW + seconds}, {}, seconds <= 0) for seconds in (-1, 0, 1)],
    "symbol": [
        ({}, {"mode": "disabled"}, True),
        ({}, {"mode": "close_only"}, True),
        ({}, {"mode": "short_only"}, True),
        ({}, {"mode": "long_only"}, False),
    ],
    "quote": [
        ({}, {"quote": (2345.00, 2345.00)}, False),
        ({}, {"quote": (2345.00, 2344.99)}, True),
        ({}, {"quote": (0.0, 2345.20)}, True),
    ],
    "spread": [({"max_spread_pts": points}, {}, points < 20) for points in (19, 20, 21)],
    "deviation": [
        ({"entry": entry, "side": side}, {}, objects)
        for side, entry, objects in (
            ("BUY", "2344.89", True),
            ("BUY", "2344.90", False),
            ("BUY", "2345.50", False),
            ("BUY", "2345.51", True),
            ("SELL", "2345.30", False),
            ("SELL", "2345.31", True),
        )
    ],
    "side": [
        ({"side": side, key: price}, {}, objects)
        for side, key, price, objects in (
            ("BUY", "sl", "2345.19", False),
            ("BUY", "sl", "2345.20", True),
            ("BUY", "sl", "0.00", True),
            ("BUY", "tp", "2345.20", True),
            ("BUY", "tp", "0.00", True),
            ("SELL", "sl", "2345.01", False),
            ("SELL", "sl", "2345.00", True),
            ("SELL", "sl", "0.00", True),
            ("SELL", "tp", "2345.00", True),
            ("SELL", "tp", "0.00", True),
        )
    ],
    "stops": [
        ({"side": side, key: price}, {"stops_level": 30}, objects)
        for side, key, price, objects in (
            ("BUY", "sl", "2344.70", False),
            ("BUY", "sl", "2344.71", True),
            ("BUY", "tp", "2345.30", False),
            ("BUY", "tp", "2345.29", True),
            ("SELL", "sl", "2345.50", False),
            ("SELL", "sl", "2345.49", True),
            ("SELL", "tp", "2344.90", False),
            ("SELL", "tp", "2344.91", True),
        )
    ],
    "volume": [
        ({"lots": lots}, {"lot_min": 0.03, "lot_step": 0.02, "lot_max": 0.08}, objects)
        for lots, objects in (
            ("0.02", True),
            ("0.03", True),
            ("0.04", False),
            ("0.05", True),
            ("0.08", False),
            ("0.10", True),
            ("0.00", True),
        )
    ],
    "max_lots": [({"lots": lots}, {}, lots == "0.11") for lots in ("0.09", "0.10", "0.11")],
}
"""By guard: what to change in the signal, what in the symbol or its quote, whether it objects."""
