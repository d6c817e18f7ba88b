"""The seven messages between Torra and the Expert Advisor as text: writing and reading them.

A message is one line of flat JSON in UTF-8 whose keys stand in one order, each once. All is
printable ASCII but the broker's names of symbols, and no string needs an escape. The line ends with
an HMAC-SHA256 over the bytes before it, under the channel's key, and an end mark. The dataclasses
here are the schema: their fields are the keys, in that order. A reader believes nothing before the
signature fits, and no field before all of them have the right name, place and type. Each names its
channel, for channels may share a key; whoever reads one compares it. Whatever is wrong raises
MessageError with a reason that is also a guard's (torra.bridges.guards): auth, version or schema,
in that order. A writer refuses what a reader would refuse. `drop_folder` has the files, `bridge`
decides what a message means.
"""

from __future__ import annotations

import codecs
import functools
import hashlib
import hmac
import math
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Literal, TypeVar, get_args

from torra.advisor_protocol import PROTOCOL
from torra.bridges.guards import KINDS
from torra.bridges.plausible import MOST_LOTS, MOST_PRICE
from torra.bridges.protocol import Order, OrderReport, Status
from torra.errors import LONGEST_TEXT, TorraError, bounded
from torra.verdict import order_seal
from torra.verdict.signal_states import EXECUTED

Reason = Literal["auth", "version", "schema"]

LIMIT: Final = 4096
"""Most characters of a signal, an ack or a heartbeat."""

LIST_LIMIT: Final = 262_144
"""Most characters of positions, deals or symbols."""

TAIL: Final = re.compile(r',"mac":"([0-9a-f]{64})","end":"1"\}')
TAIL_LENGTH: Final = len(',"mac":""') + 64 + len(',"end":"1"}')

PLAIN: Final = re.compile(r'"[ !#-\[\]-~]*"')
"""A string: printable ASCII without the quote and the backslash."""

NAMED: Final = re.compile(r'"[^\x00-\x1f"\\\x7f\ud800-\udfff]*"')
"""A string that names a symbol of the broker: what needs no escape in JSON."""

NAMING: Final = re.compile(r"broker_symbol|[pds][0-9]+")
"""Fields that name a symbol of the broker: that of a signal, and the rows of the lists."""

PAIR: Final = re.compile(rf'"([a-z][a-z0-9_]*)":({NAMED.pattern}|-?[0-9][0-9.]*|true|false)')
HEAD: Final = re.compile(r'\{"v":([0-9]{1,9}),"msg":"([a-z]+)"')
INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,20})?")

FORMS: Final[Mapping[Any, tuple[re.Pattern[str], Callable[[str], Any]]]] = {
    bool: (re.compile("true|false"), "true".__eq__),
    int: (INTEGER, int),
    Decimal: (DECIMAL, Decimal),
    str: (NAMED, lambda text: text[1:-1]),
}
"""How a field of a type is written, and what reads it."""

LATEST: Final = 10**11
"""Times are epoch seconds below this: the year 5138."""

TIMES: Final = frozenset({"created", "expires", "bar_time", "gmt", "since", "server_time"})

AMOUNTS: Final[Mapping[str, float]] = {
    "price": MOST_PRICE,
    "volume": MOST_LOTS,
    **dict.fromkeys(("seq", "retcode", "ticket", "deal", "position"), math.inf),
}
"""Numbers of an ack that are not negative, and how big they may be."""

QUOTES: Final[Mapping[str, float]] = {"bid": MOST_PRICE, "ask": MOST_PRICE}
"""Those of an ack of an execution too. A refusal may name a quote below zero, as oil had in 2020:
the Advisor trades at none, and says so by it.
"""

LOT_DIGITS: Final = (2, 8)
"""Fewest and most decimals of a volume."""


class MessageError(TorraError):
    """A text that is no message; `reason` is auth, version or schema.

    `whole` means that it ends as a message does; a text that does not may only be half written yet.
    `versions` are those of a message of another version and of this side.
    """

    def __init__(
        self,
        reason: Reason,
        detail: str,
        *,
        whole: bool = True,
        versions: tuple[int, int] = (0, 0),
    ) -> None:
        super().__init__(bounded(f"{reason}: {detail}"))
        self.reason: Reason = reason
        self.whole = whole
        self.versions = versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """An order of Torra's; times are epoch seconds UTC, unused fields zero or empty.

    `comment` is the sid; `ref` names the opening that a close or a modify refers to and `ticket`
    the broker's number of its position, 0 when it is not known. The side of a close is the side of
    the closing order. `origin` and `seal` are those of the decision (torra.verdict.order_seal).
    """

    kind: str
    sid: str
    seq: int
    channel: str
    account: int
    created: int
    expires: int
    symbol: str
    broker_symbol: str
    side: str
    type: str = "market"
    entry: Decimal
    sl: Decimal
    tp: Decimal
    lots: Decimal
    magic: int
    comment: str
    max_spread_pts: int
    max_dev_pts: int
    policy: str = "reject_if_open"
    bar_time: int
    tf: str
    ref: str
    ticket: int
    origin: str
    seal: str

    @property
    def as_decided(self) -> bool:
        """Whether the message is the order that was decided, as the Advisor computes it."""
        named = {"stop": self.sl, "target": self.tp, "timeframe": self.tf, "closes": self.ref}
        computed = order_seal.seal(asdict(self) | named)
        return self.seal == computed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """What became of a signal; numbers that are not known are 0.

    `reason` is the guard that refused it, "retcode" or "". `server_time` is the broker's wall clock
    written as epoch seconds, `gmt` epoch seconds UTC.
    """

    sid: str
    seq: int
    channel: str
    kind: str
    status: str
    reason: str = ""
    retcode: int = 0
    ticket: int = 0
    deal: int = 0
    position: int = 0
    price: Decimal = Decimal(0)
    volume: Decimal = Decimal(0)
    bid: Decimal = Decimal(0)
    ask: Decimal = Decimal(0)
    server_time: int
    gmt: int
    adopted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """state/ea.json: that the Expert Advisor lives, and on which account."""

    n: int
    gmt: int
    server_offset_s: int
    account: int
    trade_mode: str
    margin_mode: str
    connected: bool
    algo_allowed: bool
    trade_allowed: bool
    kill: bool
    ea_version: str
    last_seq: int
    inbox: int
    work: int
    balance: Decimal
    equity: Decimal
    free_margin: Decimal
    leverage: int
    currency: str
    channel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """state/positions.json: every open position of the account (torra.bridges.torra.book_rows)."""

    n: int
    gmt: int
    channel: str
    account: int
    rows: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deals:
    """state/deals.json: the executions since `since` that concern Torra."""

    n: int
    gmt: int
    since: int
    channel: str
    account: int
    rows: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbols:
    """state/symbols.json: what the broker trades, as far as it is in Market Watch."""

    n: int
    gmt: int
    channel: str
    account: int
    rows: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskState:
    """state/torra.json: that Torra lives; `state` is ACTIVE, REDUCING or HALTED."""

    n: int
    gmt: int
    channel: str
    state: str


Message = Signal | Ack | Heartbeat | Positions | Deals | Symbols | DeskState
M = TypeVar("M", bound=Message)

NAMES: Final[Mapping[type, str]] = {
    Signal: "signal",
    Ack: "ack",
    Heartbeat: "ea",
    Positions: "positions",
    Deals: "deals",
    Symbols: "symbols",
    DeskState: "torra",
}
LISTS: Final[Mapping[type, str]] = {Positions: "p", Deals: "d", Symbols: "s"}
"""Messages whose rows, texts as they are sent, follow as p0, p1 and so on."""


ACK_STATUS: Final = tuple(status for status in get_args(Status) if status != "CLAIMED")
SIDES: Final = ("BUY", "SELL")

CHOICES: Final[Mapping[type, Mapping[str, tuple[str, ...]]]] = {
    Signal: {
        "kind": KINDS,
        "side": (*SIDES, ""),
        "type": ("market",),
        "policy": ("reject_if_open",),
    },
    Ack: {"kind": (*KINDS, ""), "status": ACK_STATUS},
    Heartbeat: {
        "trade_mode": ("demo", "contest", "real"),
        "margin_mode": ("hedging", "netting", "exchange"),
    },
    DeskState: {"state": ("ACTIVE", "REDUCING", "HALTED")},
}
"""Fields that hold one of a few words. An ack of an illegible signal has no kind."""


def limit_of(kind: type) -> int:
    """Return how many characters a message of this kind may have."""
    return LIST_LIMIT if kind in LISTS else LIMIT


# --- writing --------------------------------------------------------------------------------------


def encode(message: Message, key: str, *, version: int = PROTOCOL) -> bytes:
    """Return a message as signed bytes; raises MessageError(schema) for what no reader takes."""
    kind: type = type(message)
    pairs = list(_written(message))
    values = _fields(pairs, kind)
    head = f'{{"v":{version},"msg":"{NAMES[kind]}"'
    sealed = seal(head + "".join(f',"{name}":{text}' for name, text in pairs), key)
    if len(sealed) > limit_of(kind):
        raise MessageError("schema", f"{len(sealed)} characters are too many for {NAMES[kind]}")
    _refuse_odd(kind, values)
    # A float for a Decimal is written like one, and is another number.
    if kind(**values) != message:
        raise MessageError("schema", f"a value of {NAMES[kind]} has the wrong type")
    return sealed


def seal(body: str, key: str) -> bytes:
    """Return a body, which begins with {"v":, with its signature and its end."""
    return f'{body},"mac":"{signature(body, key)}","end":"1"}}'.encode()


def fixed(value: float, digits: int) -> Decimal:
    """Return a number with so many decimals, rounded half to even as printf does."""
    # Adding 0 turns -0.00 into 0.00.
    return Decimal(f"{value:.{digits}f}") + 0


def volume(lots: float) -> Decimal:
    """Return lots with as many decimals as they need, LOT_DIGITS."""
    fewest, most = LOT_DIGITS
    whole, _, fraction = f"{lots:.{most}f}".partition(".")
    return Decimal(f"{whole}.{fraction.rstrip('0').ljust(fewest, '0')}")


def signature(text: str, key: str) -> str:
    """Return the HMAC-SHA256 of a text's bytes under a channel's key, in lower-case hex."""
    raw = text.encode("utf-8", "surrogateescape")
    return hmac.new(key.encode(), raw, hashlib.sha256).hexdigest()


@functools.cache
def _schema(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _written(message: Message) -> Iterator[tuple[str, str]]:
    kind: type = type(message)
    for name in _schema(kind):
        value = getattr(message, name)
        if name != "rows":
            yield name, _text_of(value)
            continue
        yield "count", str(len(value))
        for number, row in enumerate(value):
            yield f"{LISTS[kind]}{number}", _text_of(row)


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    return format(value, "f") if isinstance(value, Decimal) else str(value)


# --- reading --------------------------------------------------------------------------------------


def decode(raw: bytes, kind: type[M], key: str, *, version: int = PROTOCOL) -> M:
    """Read one message of a kind; raises MessageError.

    The text may begin with a byte order mark of UTF-8 or be UTF-16 with one.
    """
    body = _authentic(_text(raw), key, limit_of(kind))
    # The version goes before the kind: another version may have other messages.
    head = HEAD.match(body)
    if head and int(head[1]) != version:
        told = f"version {head[1]}, this side speaks {version}"
        raise MessageError("version", told, versions=(int(head[1]), version))
    if not head or head[2] != NAMES[kind]:
        raise MessageError("schema", f"no message {NAMES[kind]}")
    # The first two, version and kind, are checked above.
    values = _fields(_pairs(body)[2:], kind)
    _refuse_odd(kind, values)
    return kind(**values)


def _text(raw: bytes) -> str:
    encoding, errors = "utf-8-sig", "surrogateescape"
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding, errors = "utf-16", "strict"
    try:
        # Bytes that are no UTF-8 stay what they are, so that the signature is checked before them.
        return raw.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise MessageError("auth", str(error), whole=False) from error


def _authentic(text: str, key: str, limit: int) -> str:
    """Return the body of a text whose end and signature are right."""
    if len(text) > limit:
        raise MessageError("auth", f"{len(text)} characters are more than {limit}", whole=False)
    tail = TAIL.fullmatch(text, len(text) - TAIL_LENGTH) if len(text) > TAIL_LENGTH else None
    if not tail:
        raise MessageError("auth", "it does not end as a message does", whole=False)
    body = text[:-TAIL_LENGTH]
    # compare_digest takes as long for a near miss as for any other: nothing leaks by its time.
    if not hmac.compare_digest(signature(body, key), tail[1]):
        raise MessageError("auth", "the signature does not fit: forged, or another channel key")
    return body


def _pairs(body: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    at = 0
    while at < len(body):
        found = PAIR.match(body, at + 1) if body[at] == ("," if pairs else "{") else None
        if not found:
            raise MessageError("schema", f"no key and value at character {at}")
        pairs.append((found[1], found[2]))
        at = found.end()
    return pairs


def _fields(pairs: list[tuple[str, str]], kind: type) -> dict[str, Any]:
    schema = _schema(kind)
    simple = [name for name in schema if name != "rows"]
    expected = list(simple)
    if "rows" in schema:
        count = len(pairs) - len(simple) - 1
        expected += ["count", *(f"{LISTS[kind]}{number}" for number in range(count))]
    if [name for name, _ in pairs] != expected:
        raise MessageError("schema", f"the keys are not those of {NAMES[kind]} in their order")
    choices = CHOICES.get(kind, {})
    values = {
        name: _value(name, schema[name], text, choices.get(name))
        for name, text in pairs[: len(simple)]
    }
    if "rows" in schema:
        if pairs[len(simple)][1] != str(count):
            raise MessageError("schema", "count and rows do not fit each other")
        values["rows"] = tuple(_value(name, str, text) for name, text in pairs[len(simple) + 1 :])
    return values


def _value(name: str, hint: Any, text: str, choices: tuple[str, ...] | None = None) -> Any:
    form, read = FORMS[hint]
    if hint is str and not NAMING.fullmatch(name):
        form = PLAIN
    if not form.fullmatch(text):
        raise MessageError("schema", f"{name} is no {hint.__name__}: {text[:40]}")
    value = read(text)
    if choices and value not in choices:
        raise MessageError("schema", f"{name} is none of {', '.join(choices)}: {text[:40]}")
    if name in TIMES and not 0 <= value < LATEST:
        raise MessageError("schema", f"{name} is no time: {text}")
    return value


def _refuse_odd(kind: type, values: Mapping[str, Any]) -> None:
    """Raise MessageError(schema) for a text without end, and a number that no ack can have."""
    for name, value in values.items():
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            fault = f"{name} has {len(value)} characters, {LONGEST_TEXT} at most"
            raise MessageError("schema", fault)
    if kind is Ack:
        quotes = QUOTES if values["status"] in EXECUTED else {}
        for name, most in {**AMOUNTS, **quotes}.items():
            if not 0 <= values[name] <= most:
                raise MessageError("schema", f"{name} is {values[name]}")


# --- what Torra means by them ---------------------------------------------------------------------


def moment(seconds: int) -> datetime:
    """Return epoch seconds as a time in UTC; raises ValueError."""
    if not 0 <= seconds < LATEST:
        raise ValueError(f"{seconds} is no time")
    return datetime.fromtimestamp(seconds, UTC)


def signal_of(order: Order, *, channel: str, account: int) -> Signal:
    """Return an order as a signal."""
    return Signal(
        kind=order.kind,
        sid=order.sid,
        seq=order.seq,
        channel=channel,
        account=account,
        created=int(order.created.timestamp()),
        expires=int(order.expires.timestamp()),
        symbol=order.symbol,
        broker_symbol=order.broker_symbol,
        side=order.side,
        entry=fixed(order.entry, order.digits),
        sl=fixed(order.stop, order.digits),
        tp=fixed(order.target, order.digits),
        lots=volume(order.lots),
        magic=order.magic,
        comment=order.sid,
        max_spread_pts=order.max_spread_pts,
        max_dev_pts=order.max_dev_pts,
        bar_time=int(order.bar_time.timestamp()),
        tf=order.timeframe,
        ref=order.closes,
        ticket=int(order.ticket or 0),
        origin=order.origin,
        seal=order.seal,
    )


def report_of(ack: Ack) -> OrderReport:
    """Return an ack as a report."""
    return OrderReport(
        sid=ack.sid,
        status=typing.cast(Status, ack.status),
        at=moment(ack.gmt),
        reason=ack.reason,
        retcode=ack.retcode,
        ticket=str(ack.ticket or ""),
        deal=str(ack.deal or ""),
        position=str(ack.position or ""),
        price=float(ack.price),
        volume=float(ack.volume),
        adopted=ack.adopted,
    )
