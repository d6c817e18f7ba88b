"""The seal of an order: a hash of what was decided, so that what is sent is what was decided.

Whoever decides an order (a tick, the approval of a proposal, a command of a person) seals it in the
transaction that writes it. The outbox, the bridge and the Expert Advisor each compute the seal
again from what they are about to send. An order whose seal does not fit is not sent, and the desk
halts. So a trigger, a foreign program or a defect that changes an order on its way stops it.

The seal is the SHA-256, in hex, of fields joined by "|": what an order shows on its whole way, and
last its `origin`, which says who decided it and what else belongs to the decision. A number is
written with DECIMALS places at most and without trailing zeros, a time as whole epoch seconds, and
what there is not as "". It needs no key: the seal guards against change, the signature of a channel
against forgery. Whoever can write the database and compute a hash can seal an order too, and leave
no trace but the audit log's (docs/security.md).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal, get_args

from torra.clock import time_of

Authority = Literal["tick", "approval", "person"]
"""Who decides: a tick, a person by the proposal of a tick, or a person by a command."""

AUTHORITIES: Final = get_args(Authority)

VERSION: Final = "1"
"""Which fields are hashed, and how they are written; the first field."""

FIELDS: Final = (
    "sid", "kind", "symbol", "side", "lots", "entry", "stop", "target", "created", "expires",
    "timeframe", "bar_time", "closes", "origin",
)  # fmt: skip
"""What is hashed behind the version, in this order, by its names in torra.bridges.protocol.Order.
"""

NUMBERS: Final = ("lots", "entry", "stop", "target")
TIMES: Final = ("created", "expires", "bar_time")

DECIMALS: Final = 8
"""Most decimals of a price or of lots, as in the messages (torra.bridges.torra.messages)."""

ID_LENGTH: Final = 12
"""Characters of base32 in an id: 60 bits."""

NONE: Final = "-"
"""Stands in an origin for what an order does not have."""


def order_id(*words: str) -> str:
    """Return the id of the order that these words name: T and ID_LENGTH characters of base32."""
    digest = hashlib.sha256("|".join(words).encode()).digest()
    return "T" + base64.b32encode(digest).decode()[:ID_LENGTH]


def seal(order: Mapping[str, Any]) -> str:
    """Return the seal of an order, 64 characters of hex.

    `order` has FIELDS: prices in units of price, times as datetimes, ISO text or epoch seconds;
    `closes` names the opening that a close ends or whose stop is moved, "" in an opening.
    """
    words = (_written(name, order[name]) for name in FIELDS)
    return hashlib.sha256("|".join((VERSION, *words)).encode()).hexdigest()


def of_row(row: Mapping[str, Any]) -> str:
    """Return the seal that a row of the outbox must have (columns of torra.store.trade.signals)."""
    closes = (row["closes"] or "") if row["kind"] != "open" else ""
    decided = {"created": row["decided_at"], "closes": closes, "origin": origin_of(row)}
    return seal({**row, **decided})


def origin_of(row: Mapping[str, Any]) -> str:
    """Return who decided a row, and what a message does not show: words with a space between.

    They are authority, instance, bridge, ATR, the opening that it ends or follows, and the close
    that it waits for.
    """
    known = (row["authority"], row["instance"], row["bridge"], number(row["atr"]))
    return " ".join(str(word) if word else NONE for word in (*known, row["closes"], row["after"]))


def altered(row: Mapping[str, Any]) -> bool:
    """Return whether a row is not the order that was decided, or is one that nobody did."""
    try:
        return row["authority"] not in AUTHORITIES or row["seal"] != of_row(row)
    # What was altered may be no number, no time and no text any more.
    except (ArithmeticError, TypeError, ValueError, AttributeError):
        return True


def number(value: float | Decimal | None) -> str:
    """Return a number as it is hashed: 2635.4 for 2635.40; 0 for none."""
    return f"{value or 0:.{DECIMALS}f}".rstrip("0").removesuffix(".")


def _written(name: str, value: Any) -> str:
    if name in NUMBERS:
        return number(value)
    if name in TIMES:
        value = f"{value if isinstance(value, int) else _seconds(value)}"
    return value  # type: ignore[no-any-return]  # what is no text does not join


def _seconds(moment: str | datetime | None) -> int:
    return int(time_of(moment).timestamp()) if moment else 0
