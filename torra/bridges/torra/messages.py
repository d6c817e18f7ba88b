"""The seven messages between Torra and the Expert Advisor as text: writing and reading them.

A message is one line of flat JSON in UTF-8 whose keys stand in one order, each once. All is
printable ASCII but the broker's names of symbols, and no string needs an escape. The line ends with
an HMAC-SHA256 over the bytes before it, under the channel's key, and an end mark. The dataclasses
here are the schema: their fields are the keys, in that order, with their bounds. A reader believes
nothing before the signature fits. A message has one text: what would be written in another way is
none. Each names its channel, for channels may share a key; whoever reads one compares it. Whatever
is wrong raises MessageError with a reason that is also a guard's (torra.bridges.guards): auth,
version or schema, in that order. A writer refuses what a reader would refuse. `drop_folder` has the
files, `bridge` decides what a message means.
"""

from __future__ import annotations

import codecs
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, TypeVar

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator, StringConstraints, TypeAdapter, ValidationError, ValidationInfo

from torra.advisor_protocol import PROTOCOL
from torra.bridges.plausible import MOST_LOTS, MOST_PRICE
from torra.bridges.protocol import Order, OrderReport
from torra.errors import LONGEST_TEXT, TorraError, bounded, in_words
from torra.verdict import order_seal
from torra.verdict.signal_states import EXECUTED

Reason = Literal["auth", "version", "schema"]

LIMIT: Final = 4096
"""Most characters of a signal, an ack or a heartbeat."""

LIST_LIMIT: Final = 262_144
"""Most characters of positions, deals or symbols."""

TAIL: Final = re.compile(r',"mac":"([0-9a-f]{64})","end":"1"\}')
TAIL_LENGTH: Final = len(',"mac":""') + 64 + len(',"end":"1"}')

HEAD: Final = re.compile(r'\{"v":([0-9]{1,9}),"msg":"([a-z]+)"')
INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")
DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,20})?")

NAMED: Final = re.compile(r'^[^\x00-\x1f"\\\x7f]*$')
"""What may name a symbol of the broker: whatever needs no escape in JSON."""

LATEST: Final = 10**11
"""Times are epoch seconds below this: the year 5138."""

LOT_DIGITS: Final = (2, 8)
"""Fewest and most decimals of a volume."""


def _quote(price: Decimal, message: ValidationInfo) -> Decimal:
    """Refuse a quote that no execution can have.

    A refusal may name a quote below zero, as oil had in 2020: the Advisor trades at none, and says
    so by it.
    """
    if message.data.get("status") in EXECUTED and not 0 <= price <= MOST_PRICE:
        raise ValueError("can be no quote")
    return price


def _row(text: Any) -> Any:
    if not isinstance(text, str) or not NAMED.fullmatch(text):
        raise ValueError("has a row that is no text")
    return text


Whole = Annotated[int, Gt(-(10**18)), Lt(10**18)]
Count = Annotated[int, Ge(0), Lt(10**18)]
"""A number of the broker's, or a count."""

Time = Annotated[int, Ge(0), Lt(LATEST)]
Price = Annotated[Decimal, Ge(0), Le(Decimal(MOST_PRICE))]
Lots = Annotated[Decimal, Ge(0), Le(Decimal(MOST_LOTS))]
Quoted = Annotated[Decimal, AfterValidator(_quote)]

Word = Annotated[str, StringConstraints(pattern=r"^[ !#-\[\]-~]*$", max_length=LONGEST_TEXT)]
"""Printable ASCII without the quote and the backslash."""

Name = Annotated[str, StringConstraints(pattern=NAMED.pattern, max_length=LONGEST_TEXT)]
"""What names a symbol of the broker."""

Row = Annotated[Any, AfterValidator(_row)]
"""A row of a list: a text as it is sent, what it says once it is read."""


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

    kind: Literal["open", "modify", "close", "close_all", "ping"]
    sid: Word
    seq: Whole
    channel: Word
    account: Whole
    created: Time
    expires: Time
    symbol: Word
    broker_symbol: Name
    side: Literal["BUY", "SELL", ""]
    type: Literal["market"] = "market"
    entry: Decimal
    sl: Decimal
    tp: Decimal
    lots: Decimal
    magic: Whole
    comment: Word
    max_spread_pts: Whole
    max_dev_pts: Whole
    policy: Literal["reject_if_open"] = "reject_if_open"
    bar_time: Time
    tf: Word
    ref: Word
    ticket: Whole
    origin: Word
    seal: Word

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
    written as epoch seconds, `gmt` epoch seconds UTC. An ack of an illegible signal has no kind.
    """

    sid: Word
    seq: Count
    channel: Word
    kind: Literal["open", "modify", "close", "close_all", "ping", ""]
    status: Literal[
        "PLACED", "FILLED", "PARTIAL", "REJECTED", "EXPIRED", "UNKNOWN", "UNKNOWN_NOT_SENT"
    ]
    reason: Word = ""
    retcode: Count = 0
    ticket: Count = 0
    deal: Count = 0
    position: Count = 0
    price: Price = Decimal(0)
    volume: Lots = Decimal(0)
    bid: Quoted = Decimal(0)
    ask: Quoted = Decimal(0)
    server_time: Time
    gmt: Time
    adopted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """state/ea.json: that the Expert Advisor lives, and on which account."""

    n: Whole
    gmt: Time
    server_offset_s: Whole
    account: Whole
    trade_mode: Literal["demo", "contest", "real"]
    margin_mode: Literal["hedging", "netting", "exchange"]
    connected: bool
    algo_allowed: bool
    trade_allowed: bool
    kill: bool
    ea_version: Word
    last_seq: Whole
    inbox: Whole
    work: Whole
    balance: Decimal
    equity: Decimal
    free_margin: Decimal
    leverage: Whole
    currency: Word
    channel: Word


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """state/positions.json: every open position of the account (torra.bridges.torra.book_rows)."""

    n: Whole
    gmt: Time
    channel: Word
    account: Whole
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deals:
    """state/deals.json: the executions since `since` that concern Torra."""

    n: Whole
    gmt: Time
    since: Time
    channel: Word
    account: Whole
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbols(Positions):
    """state/symbols.json: what the broker trades, as far as it is in Market Watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskState:
    """state/torra.json: that Torra lives."""

    n: Whole
    gmt: Time
    channel: Word
    state: Literal["ACTIVE", "REDUCING", "HALTED"]


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

SCHEMAS: Final[Mapping[type, TypeAdapter[Any]]] = {kind: TypeAdapter(kind) for kind in NAMES}


def limit_of(kind: type) -> int:
    """Return how many characters a message of this kind may have."""
    return LIST_LIMIT if kind in LISTS else LIMIT


# --- writing --------------------------------------------------------------------------------------


def encode(message: Message, key: str, *, version: int = PROTOCOL) -> bytes:
    """Return a message as signed bytes; raises MessageError(schema) for what no reader takes."""
    kind: type[Message] = type(message)
    body = _body(message, version)
    try:
        sealed = seal(body, key)
    except UnicodeEncodeError as error:
        raise MessageError("schema", f"{NAMES[kind]} has half a character") from error
    if len(sealed) > limit_of(kind):
        raise MessageError("schema", f"{len(sealed)} characters are too many for {NAMES[kind]}")
    # A float for a Decimal is written like one, and is another number.
    if _parsed(body, kind, version) != message:
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


def _body(message: Message, version: int) -> str:
    """Return the text of a message up to its signature."""
    head = f'{{"v":{version},"msg":"{NAMES[type(message)]}"'
    return head + "".join(f',"{name}":{_text_of(value)}' for name, value in _pairs(message))


def _pairs(message: Message) -> Iterator[tuple[str, Any]]:
    for field in fields(message):
        value = getattr(message, field.name)
        if field.name == "rows":
            yield "count", len(value)
            letter = LISTS[type(message)]
            yield from ((f"{letter}{number}", row) for number, row in enumerate(value))
        else:
            yield field.name, value


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
        detail = f"version {head[1]}, this side speaks {version}"
        raise MessageError("version", detail, versions=(int(head[1]), version))
    if not head or head[2] != NAMES[kind]:
        raise MessageError("schema", f"no message {NAMES[kind]}")
    return _parsed(body, kind, version)


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


def _parsed(body: str, kind: type[M], version: int) -> M:
    """Return the message of a text; MessageError(schema) unless it would be written just so."""
    try:
        values = json.loads(
            f"{body}}}".encode(), parse_int=_number, parse_float=_number, parse_constant=_number
        )
        row = re.compile(rf"{LISTS.get(kind, '')}[0-9]+")
        values["rows"] = tuple(text for name, text in values.items() if row.fullmatch(name))
        message: M = SCHEMAS[kind].validate_python(values)
    except ValidationError as error:
        fault = error.errors()[0]
        raise MessageError("schema", f"{fault['loc'][0]} {in_words(fault)}") from None
    except (ValueError, RecursionError) as error:
        raise MessageError("schema", str(error)) from None
    if _body(message, version) != body:
        raise MessageError("schema", f"the keys are not those of {NAMES[kind]} in their order")
    return message


def _number(text: str) -> Decimal:
    if not DECIMAL.fullmatch(text):
        raise ValueError(f"{text[:40]} is no number")
    return Decimal(text)


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
        status=ack.status,
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
