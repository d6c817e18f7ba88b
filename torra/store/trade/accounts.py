"""What the accounts behind the bridges were worth: balance and equity as heartbeats told them.

Append-only. A mark is added when an account, its currency, its balance or the number of Torra's
positions there has changed, and every 15 minutes besides. What of it is Torra's doing is
torra.money.account's part. Times are real time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from torra.clock import parse
from torra.store.connection import RowDict, Store
from torra.verdict.signal_states import EXECUTED, SENT

EVERY: Final = timedelta(minutes=15)
"""After this long an account that has not changed is marked again."""

MOST: Final = 1e15
"""No account is worth more, in any currency: what says so is no number."""

CHANGES: Final = ("account", "currency", "balance", "held")
"""What is marked at once where it has changed; the equity moves all the time."""


AT_ONCE: Final = 10_000
"""Marks that are read at once."""


class AccountFacts(BaseModel):
    """What a heartbeat must tell of an account, within what can be one."""

    model_config = ConfigDict(strict=True, extra="ignore")

    account: int = Field(gt=0, lt=1 << 62)
    currency: Annotated[str, Field(pattern="^[A-Za-z0-9]{1,8}$"), AfterValidator(str.upper)]
    balance: float = Field(ge=-MOST, le=MOST)
    equity: float = Field(ge=-MOST, le=MOST)


def mark_account(store: Store, bridge: str, facts: Mapping[str, object]) -> bool:
    """Add a mark of a bridge's account by what it told; False where nothing is to be added.

    `facts` are those of its health. Needs account, currency, balance and equity; what tells
    less, or no numbers, is left out.
    """
    try:
        values = AccountFacts.model_validate(dict(facts)).model_dump()
    except ValidationError:
        return False
    last = store.row(
        "SELECT * FROM account_marks WHERE bridge = ? ORDER BY id DESC LIMIT 1", bridge
    )
    states = (*SENT, *EXECUTED)
    marks = ", ".join("?" * len(states))
    openings = store.value(
        "SELECT count(*) FROM signals "  # noqa: S608 - marks
        f"WHERE kind = 'open' AND state IN ({marks}) AND bridge = ?",
        *states, bridge,
    )  # fmt: skip
    row: RowDict = {"bridge": bridge, "at": store.moment(), **values, "held": openings}
    if last is not None:
        same = all(last[name] == row[name] for name in CHANGES)
        # Of a clock that was set back nothing is known: then it is marked again.
        if same and timedelta(0) <= parse(row["at"]) - parse(last["at"]) < EVERY:
            return False
    store.add("account_marks", row)
    return True


def newest_mark(store: Store) -> int:
    """Return the number (id) of the newest mark, 0 before the first."""
    return int(store.value("SELECT max(id) FROM account_marks") or 0)


def account_marks(store: Store, bridge: str, after: int, upto: int) -> Iterator[tuple[Any, ...]]:
    """Yield the marks of a bridge with a number (id) in (after, upto], in their order.

    Each is at, account, currency, balance, equity, held and id.
    """
    while rows := store.tuples(
        "SELECT at, account, currency, balance, equity, held, id FROM account_marks "
        "WHERE bridge = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?",
        bridge, after, upto, AT_ONCE,
    ):  # fmt: skip
        yield from rows
        after = rows[-1][-1]


def account_holders(store: Store, bridge: str, since: int, upto: int) -> list[tuple[Any, ...]]:
    """Return the first mark of each account that stood behind a bridge, in their order.

    Looks at the marks with a number in [since, upto], and tells of each what `account_marks`
    does. An account is another one where its number or its currency is.
    """
    return store.tuples(
        "SELECT at, account, currency, balance, equity, held, id FROM ("
        "SELECT *, lag(account) OVER before AS other, lag(currency) OVER before AS money "
        "FROM account_marks WHERE bridge = ? AND id >= ? AND id <= ? "
        "WINDOW before AS (ORDER BY id)"
        ") WHERE other IS NULL OR other != account OR money != currency ORDER BY id",
        bridge, since, upto,
    )  # fmt: skip


def marked_bridges(store: Store) -> list[str]:
    """Return the bridges whose accounts may have been marked: those that ever reported."""
    return store.column("SELECT name FROM bridges ORDER BY name")
