"""The folder that DWX Connect's Expert Advisor and this side share, and how its files are read.

The Expert Advisor writes its files in place, so any reading may be empty, cut or older than the
last. Its texts are in an unknown Windows code page, and it does not escape comments. A reading that
is not whole changes nothing: the last good one stands, with the time at which its file was written.
Whatever the files hold, nothing here raises; only a folder that cannot be written to does. Each
step in the folder has the folder's time limit: a step that hangs, as on a share whose server is
gone, is an error like any other.

Towards the Expert Advisor there is one file, DWX_Commands_0.txt. The Expert Advisor looks at index
0 first and stops at the first index that is missing, so a single file is the only way to keep
commands in order. The file appears whole: a finished file gets the name by a step that refuses to
replace another, and only when the command before it is gone. Each command carries a number that was
never used before. The newest number is kept in a small file of this side, which is replaced as a
whole before the command is handed over.
"""

from __future__ import annotations

import codecs
import errno
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from torra.bridges.plausible import MOST_LOTS, MOST_PRICE, amount_fault
from torra.clock import Clock
from torra.errors import MALFORMED, BridgeUnavailable, bounded
from torra.failpoints import failpoint
from torra.owner_only import make_folder
from torra.regular_files import read_regular
from torra.time_limit import Run, TimeLimit, at_once, of_folder
from torra.whole_files import name_once, write_whole

ORDERS: Final = "DWX_Orders.txt"
MESSAGES: Final = "DWX_Messages.txt"
QUOTES: Final = "DWX_Market_Data.txt"
TRADES: Final = "DWX_Historic_Trades.txt"
COMMANDS: Final = "DWX_Commands_0.txt"
NUMBER: Final = "dwx_command_number.txt"
"""Ours: the number of the newest command."""

COMMAND: Final = re.compile(r"<:(\d+)\|([A-Z_]+)\|(.*):>", re.DOTALL)
LARGEST_NUMBER: Final = 2**31 - 1
"""The Expert Advisor reads numbers into an int."""

TRADE_KINDS: Final = ("buy", "sell")
"""Kinds of rows that bought or sold something; the others wait, or are money paid in and out."""

LONGEST_NAME: Final = 40
"""Characters of a ticket's number that a message shows."""

MAX_BYTES: Final = 16_000_000
LOOSE_TEXT: Final = re.compile(
    r'("(?:comment|name|message|description)": ")(.*?)("(?:\}|, "number":))', re.DOTALL
)
"""Texts that the Expert Advisor does not escape, with what follows them."""

SHARING: Final = 10
SHARING_PAUSE: Final = 0.05
"""How often, and after how many seconds, a name that Windows keeps busy is tried again."""

NOT_DONE: Final = frozenset(
    {
        errno.EPERM,
        errno.EACCES,
        errno.ENOTSUP,
        errno.EOPNOTSUPP,
        errno.ENOSYS,
        errno.EXDEV,
        errno.EMLINK,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EROFS,
        errno.ENOSPC,
    }
)
"""Errors after which a file surely has no second name."""

Parsed = TypeVar("Parsed")


class OddRow(ValueError):
    """A row that is whole and tells what cannot be (torra.bridges.plausible)."""


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One position or pending order.

    `kind` is buy, sell, buylimit and so on, `time` the server's wall clock as text.
    """

    ticket: str
    magic: int
    symbol: str
    lots: float
    kind: str
    price: float
    time: str
    stop: float
    target: float
    profit: float
    comment: str


@dataclass(frozen=True, slots=True)
class DwxAccount:
    """The account in DWX_Orders.txt, with every position and pending order."""

    number: int
    currency: str
    balance: float
    equity: float
    free_margin: float
    leverage: int
    rows: tuple[OrderRow, ...]

    @property
    def positions(self) -> tuple[OrderRow, ...]:
        """The rows that are positions."""
        return tuple(row for row in self.rows if row.kind in TRADE_KINDS)


@dataclass(frozen=True, slots=True)
class DealRow:
    """One deal of the account's history; it does not say which position it belongs to."""

    deal: str
    magic: int
    symbol: str
    lots: float
    kind: str
    entry: str
    time: str
    price: float
    profit: float
    comment: str


@dataclass(frozen=True, slots=True)
class Message:
    """What the Expert Advisor said; `error` is its kind of error, "" for an information."""

    error: str
    text: str


@dataclass(slots=True)
class LastGood(Generic[Parsed]):
    """One file of the Expert Advisor's, and the newest reading of it that was whole.

    `at` is when the file of that reading was written, seconds since 1970 by the clock of the disk.
    `odd` says what the newest file tells that cannot be, "" for nothing: then it changed nothing.
    """

    path: Path
    parse: Callable[[Any], Parsed]
    run: Run = at_once
    value: Parsed | None = None
    at: float = 0.0
    odd: str = ""
    _seen: tuple[int, int] = field(default=(0, 0))

    def read(self) -> Parsed | None:
        """Return the newest whole reading, None while there is none or the file is not there."""
        try:
            found, raw = self.run(self._look)
            if raw is not None:
                value = self.parse(_json(_text(raw)))
                seen = (found.st_mtime_ns, found.st_size)
                # Noted with the reading only: a cut file is read again though it does not change.
                self.value, self.at, self._seen, self.odd = value, found.st_mtime, seen, ""
        except FileNotFoundError:
            # Gone is not half-written: what the file said is over.
            self.value, self._seen = None, (0, 0)
        except OddRow as error:
            self.odd = bounded(str(error))
        except (OSError, *MALFORMED):
            pass
        return self.value

    def _look(self) -> tuple[os.stat_result, bytes | None]:
        """Return the file's times and its bytes; None for the bytes if they were read already."""
        found = self.path.stat()
        if (found.st_mtime_ns, found.st_size) == self._seen and self.value is not None:
            return found, None
        return found, read_regular(self.path, MAX_BYTES)


class DwxFolder:
    """The folder, and the numbers of our commands; `limit` is the folder's own by default."""

    def __init__(
        self, folder: Path, state: Path, clock: Clock, limit: TimeLimit | None = None
    ) -> None:
        self._folder = folder
        self._run = run = (limit or of_folder(folder)).run
        self._number_file = state / NUMBER
        self._clock = clock
        self.account: LastGood[DwxAccount] = LastGood(folder / ORDERS, parse_account, run)
        self.messages: LastGood[dict[str, Message]] = LastGood(
            folder / MESSAGES, parse_messages, run
        )
        self.quotes: LastGood[dict[str, tuple[float, float]]] = LastGood(
            folder / QUOTES, parse_quotes, run
        )
        self.trades: LastGood[tuple[DealRow, ...]] = LastGood(folder / TRADES, parse_trades, run)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._folder

    def age(self) -> float | None:
        """Return seconds since the Expert Advisor wrote its orders, which it does every second.

        None: the file is not there. Negative: the disk's clock is ahead of this side's.
        """
        try:
            written = self._run((self._folder / ORDERS).stat).st_mtime
        except OSError:
            return None
        return self._clock.real_now().timestamp() - written

    def account_age(self) -> float:
        """Return seconds since the newest whole reading of the orders was written."""
        return self._clock.real_now().timestamp() - self.account.at

    def waiting(self) -> str | None:
        """Return the command that nobody has taken yet, "" when it cannot be read; None: none."""
        try:
            return _text(self._run(partial(read_regular, self._folder / COMMANDS)))
        except FileNotFoundError:
            return None
        except OSError:
            return ""

    def next_command(self, name: str, content: str) -> str:
        """Return the text of a command under a number of its own, which is used up by that.

        Raises BridgeUnavailable when the number cannot be kept.
        """
        # Begin at 1 again rather than overflow the Expert Advisor's int.
        number = max(self._newest(), 0) % LARGEST_NUMBER + 1
        try:
            make_folder(self._number_file.parent)
            # On the disk before the command is: no number may come twice after a power cut.
            write_whole(self._number_file, str(number).encode())
        except OSError as error:
            raise BridgeUnavailable(f"cannot keep {self._number_file}: {error}") from error
        return f"<:{number}|{name}|{content}:>"

    def publish(self, text: str) -> None:
        """Lay a command down; raises BridgeUnavailable when that was surely not done.

        An error that leaves it open, as on a share, passes for done: nothing is sent twice. Text
        and name are two steps for that, each with its own time limit: only the second is in doubt.
        """
        body = text.encode("ascii")
        temporary = self._folder / f"torra_{os.getpid()}.tmp"
        try:
            self._run(partial(_write_in_parts, temporary, body))
            failpoint("tmp_done")
        except OSError as error:
            self._discard(temporary)
            raise BridgeUnavailable(f"cannot write into {self._folder}: {error}") from error
        try:
            self._place(temporary)
        except OSError as error:
            self._judge(error, text)
        finally:
            self._discard(temporary)
        failpoint("renamed")

    def withdraw(self, text: str) -> bool:
        """Remove a command that still waits. That is no proof that it was not read before."""
        # Another text is another command, perhaps not ours.
        if self.waiting() != text:
            return False
        try:
            self._run((self._folder / COMMANDS).unlink)
        except OSError:
            return False
        return True

    def forget_trades(self) -> bool:
        """Remove the answer to an earlier question; False when it stays."""
        self._discard(self._folder / TRADES)
        return self.trades.read() is None

    def tidy(self) -> None:
        """Remove what an earlier life left unfinished."""
        with suppress(OSError):
            for left in self._run(lambda: list(self._folder.glob("torra_*.tmp"))):
                self._discard(left)

    def _newest(self) -> int:
        """Return the newest number; where there is none the time, which is beyond any used."""
        now = int(self._clock.real_now().timestamp())
        try:
            return int(self._number_file.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return now

    def _place(self, temporary: Path) -> None:
        """Give a finished file its name, unless the name is taken; the name alone may be busy."""
        for turn in range(SHARING):
            try:
                self._run(partial(name_once, temporary, self._folder / COMMANDS))
            except PermissionError:
                if turn == SHARING - 1:
                    raise
                self._clock.sleep(SHARING_PAUSE)
            else:
                return

    def _judge(self, error: OSError, text: str) -> None:
        """Raise BridgeUnavailable when an error proves that the command has not got its name."""
        # Our own text under the name, or none any more, may mean that the step was done.
        if error.errno == errno.EEXIST and self.waiting() not in (None, text):
            raise BridgeUnavailable("the command before this one has not been taken yet") from error
        if error.errno in NOT_DONE:
            raise BridgeUnavailable(
                f"cannot lay commands into {self._folder}: {error}; the folder must be on a disk "
                "that can give a file a second name (hard links)"
            ) from error

    def _discard(self, path: Path) -> None:
        try:
            self._run(partial(path.unlink, missing_ok=True))
        except OSError:
            return


def parse_account(told: Any) -> DwxAccount:
    """Return what DWX_Orders.txt says; raises on anything that is missing or of another kind."""
    info, orders = told["account_info"], told["orders"]
    return DwxAccount(
        number=int(info["number"]),
        currency=str(info["currency"]),
        balance=_number(info["balance"]),
        equity=_number(info["equity"]),
        free_margin=_number(info["free_margin"]),
        leverage=int(info["leverage"]),
        rows=tuple(_order_row(str(ticket), row) for ticket, row in orders.items()),
    )


def parse_quotes(told: Any) -> dict[str, tuple[float, float]]:
    """Return bid and ask of each symbol of DWX_Market_Data.txt."""
    return {str(name): (_number(row["bid"]), _number(row["ask"])) for name, row in told.items()}


def parse_messages(told: Any) -> dict[str, Message]:
    """Return the messages of DWX_Messages.txt by their number."""
    return {
        str(key): Message(
            str(row["error_type"]) if row["type"] == "ERROR" else "",
            str(row["description"] if row["type"] == "ERROR" else row["message"]),
        )
        for key, row in told.items()
    }


def parse_trades(told: Any) -> tuple[DealRow, ...]:
    """Return the deals of DWX_Historic_Trades.txt that are trades, the oldest first."""
    rows = [_deal_row(str(deal), row) for deal, row in told.items()]
    trades = [row for row in rows if row.kind in TRADE_KINDS]
    return tuple(sorted(trades, key=lambda row: (row.time, int(row.deal))))


def _order_row(ticket: str, row: Mapping[str, Any]) -> OrderRow:
    found = OrderRow(
        ticket=ticket,
        magic=int(row["magic"]),
        symbol=str(row["symbol"]),
        lots=_number(row["lots"]),
        kind=str(row["type"]),
        price=_number(row["open_price"]),
        time=str(row["open_time"]),
        stop=_number(row["SL"]),
        target=_number(row["TP"]),
        profit=_number(row["pnl"]) + _number(row["swap"]),
        comment=str(row["comment"]),
    )
    fault = (
        amount_fault("lots", found.lots, MOST_LOTS, zero=False)
        or amount_fault("open_price", found.price, MOST_PRICE, zero=False)
        or amount_fault("SL", found.stop, MOST_PRICE, zero=True)
        or amount_fault("TP", found.target, MOST_PRICE, zero=True)
    )
    if fault:
        raise OddRow(f"order {ticket[:LONGEST_NAME]}: {fault}")
    return found


def _deal_row(deal: str, row: Mapping[str, Any]) -> DealRow:
    found = DealRow(
        deal=deal,
        magic=int(row["magic"]),
        symbol=str(row["symbol"]),
        lots=_number(row["lots"]),
        kind=str(row["type"]),
        entry=str(row["entry"]),
        time=str(row["deal_time"]),
        price=_number(row["deal_price"]),
        profit=_number(row["pnl"]) + _number(row["commission"]) + _number(row["swap"]),
        comment=str(row["comment"]),
    )
    # Deposits, credits and corrections have neither lots nor a price.
    fault = found.kind in TRADE_KINDS and (
        amount_fault("lots", found.lots, MOST_LOTS, zero=False)
        or amount_fault("deal_price", found.price, MOST_PRICE, zero=False)
    )
    if fault:
        raise OddRow(f"deal {deal[:LONGEST_NAME]}: {fault}")
    return found


def _number(told: Any) -> float:
    number = float(told)
    # JSON in Python takes NaN and Infinity for numbers.
    if not math.isfinite(number):
        raise ValueError(f"{told} is no number")
    return number


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        # A quotation mark in somebody's comment must not blind the whole account.
        return json.loads(LOOSE_TEXT.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    before, inner, after = found.groups()
    return before + json.dumps(inner)[1:-1] + after


def _text(raw: bytes) -> str:
    """Decode a text of any Windows code page: only ASCII parts of it are ever used."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace").strip()
    try:
        return raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace").strip()


def _write_in_parts(path: Path, body: bytes) -> None:
    with path.open("wb") as file:
        # In two halves for the failpoint only: the name comes when the file is whole.
        file.write(body[: len(body) // 2])
        failpoint("tmp_half")
        file.write(body[len(body) // 2 :])
        file.flush()
        os.fsync(file.fileno())
