"""The messages' text: one way to write each, and nothing else can be read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.worlds.channels import KEY, ORDER
from torra.bridges.protocol import BrokerDeal, BrokerPosition, Quote, SymbolTerms
from torra.bridges.torra import messages
from torra.bridges.torra.book_rows import read_deal, read_position, read_symbol
from torra.bridges.torra.messages import (
    LIMIT,
    LIST_LIMIT,
    NAMES,
    TAIL_LENGTH,
    Ack,
    Message,
    MessageError,
    Positions,
    Signal,
    decode,
    encode,
    fixed,
    report_of,
    seal,
    signal_of,
    volume,
)

SIGNAL = signal_of(
    replace(ORDER, origin="tick EURUSD main 0.0011 - -"), channel="main", account=12345678
)
GOLDEN = (
    b'{"v":2,"msg":"signal","kind":"open","sid":"T7K3Q9ZB2M4XA","seq":1042,"channel":"main",'
    b'"account":12345678,"created":1770984000,"expires":1770984180,"symbol":"EURUSD",'
    b'"broker_symbol":"EURUSD.m","side":"BUY","type":"market","entry":1.10012,"sl":1.09512,'
    b'"tp":1.11012,"lots":0.10,"magic":220114000,"comment":"T7K3Q9ZB2M4XA","max_spread_pts":40,'
    b'"max_dev_pts":30,"policy":"reject_if_open","bar_time":1770983100,"tf":"M15","ref":"",'
    b'"ticket":0,"origin":"tick EURUSD main 0.0011 - -",'
    b'"seal":"cffe35da7bdec3ceaf390d5896d05685a95e8015b0737f7bf627d90afde02310",'
    b'"mac":"175e01c50d2c42e71b9bdcf3d1868f25e7f488dcfe70877011b65b56495fdfbd",'
    b'"end":"1"}'
)
"""The signature is what `openssl dgst -sha256 -hmac` says of everything before it."""

ACK = Ack(
    sid=ORDER.sid,
    seq=1042,
    channel="main",
    kind="open",
    status="FILLED",
    retcode=10009,
    ticket=10,
    deal=11,
    position=10,
    price=Decimal("1.10013"),
    volume=Decimal("0.10"),
    bid=Decimal("1.10000"),
    ask=Decimal("1.10012"),
    server_time=1770994801,
    gmt=1770984001,
)
LIST = Positions(n=1, gmt=1, channel="main", account=1, rows=("a",))

TEXT = st.text(
    st.sampled_from([chr(c) for c in range(32, 127) if chr(c) not in '"\\']), max_size=31
)
NUMBER = st.integers(-(10**18) + 1, 10**18 - 1)
PRICE = st.decimals(-(10**12), 10**12, places=8, allow_nan=False)
AMOUNT = st.decimals(0, 10**9, places=8, allow_nan=False)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    messages.Whole: NUMBER,
    messages.Count: st.integers(0, 10**18 - 1),
    messages.Time: st.integers(0, 10**11 - 1),
    messages.Word: TEXT,
    messages.Name: TEXT,
    tuple[messages.Row, ...]: st.lists(TEXT, max_size=5).map(tuple),
    Decimal: PRICE,
    **dict.fromkeys((messages.Price, messages.Lots, messages.Quoted), AMOUNT),
    bool: st.booleans(),
}
"""What a field may hold, by its type; a choice has its own words."""


def any_of(kind: type[Message]) -> st.SearchStrategy[Any]:
    """Return messages of a kind with whatever its fields may hold."""
    types = get_type_hints(kind, include_extras=True)
    values = {
        name: VALUES[hint] if hint in VALUES else st.sampled_from(get_args(hint))
        for name, hint in types.items()
    }
    return st.builds(kind, **values)


def refused(raw: bytes, kind: type[Message] = Signal) -> str:
    with pytest.raises(MessageError) as caught:
        decode(raw, kind, KEY)
    return caught.value.reason


def body(raw: bytes = GOLDEN) -> str:
    return raw.decode()[:-TAIL_LENGTH]


def test_a_signal_is_these_bytes() -> None:
    assert encode(SIGNAL, KEY) == GOLDEN
    assert len(GOLDEN) <= LIMIT
    assert decode(GOLDEN, Signal, KEY) == SIGNAL


@cases("kind", NAMES)
def test_what_is_written_is_read(kind: type[Message], scaled: Callable[..., int]) -> None:
    @settings(max_examples=scaled(2_000, 10))
    @given(any_of(kind))
    def check(message: Any) -> None:
        raw = encode(message, KEY)
        assert decode(raw, kind, KEY) == message
        assert raw.isascii()
        assert b"\n" not in raw
        assert encode(decode(raw, kind, KEY), KEY) == raw

    check()


@cases("kind", NAMES)
def test_a_single_changed_byte_is_refused(kind: type[Message], scaled: Callable[..., int]) -> None:
    @settings(max_examples=scaled(2_000, 10))
    @given(any_of(kind), st.data())
    def check(message: Any, data: st.DataObject) -> None:
        raw = bytearray(encode(message, KEY))
        at = data.draw(st.integers(0, len(raw) - 1))
        new = data.draw(st.integers(0, 255).filter(lambda byte: byte != raw[at]))
        what = data.draw(st.sampled_from(["change", "insert", "remove"]))
        if what == "remove":
            del raw[at]
        else:
            raw[at : at + (what == "change")] = bytes([new])
        assert refused(bytes(raw), kind) == "auth"

    check()


def test_every_beginning_of_a_message_is_refused_as_unfinished() -> None:
    for length in range(len(GOLDEN)):
        with pytest.raises(MessageError) as caught:
            decode(GOLDEN[:length], Signal, KEY)
        assert (caught.value.reason, caught.value.whole) == ("auth", False)


def test_another_key_is_a_forgery() -> None:
    with pytest.raises(MessageError, match="another channel key") as caught:
        decode(GOLDEN, Signal, KEY + "x")
    assert (caught.value.reason, caught.value.whole) == ("auth", True)


WRONG = {
    "a key twice": ('"seq":1042', '"seq":1042,"seq":1042'),
    "an unknown key": ('"ticket":0', '"ticket":0,"colour":"red"'),
    "a missing key": (',"ticket":0', ""),
    "another order": ('"ref":"","ticket":0', '"ticket":0,"ref":""'),
    "a space": ('"seq":1042', '"seq": 1042'),
    "a word for a number": ('"seq":1042', '"seq":"1042"'),
    "a number for a word": ('"tf":"M15"', '"tf":15'),
    "null": ('"ref":""', '"ref":null'),
    "nesting": ('"ref":""', '"ref":{"a":"b"}'),
    "a list": ('"ref":""', '"ref":["b"]'),
    "NaN": ('"sl":1.09512', '"sl":NaN'),
    "infinity": ('"sl":1.09512', '"sl":Infinity'),
    "an exponent": ('"sl":1.09512', '"sl":1e5'),
    "a capital exponent": ('"sl":1.09512', '"sl":1.0E5'),
    "a plus": ('"sl":1.09512', '"sl":+1.09512'),
    "no digit before the point": ('"sl":1.09512', '"sl":.09512'),
    "no digit after the point": ('"sl":1.09512', '"sl":1.'),
    "two points": ('"sl":1.09512', '"sl":1.09.5'),
    "a leading zero": ('"seq":1042', '"seq":01042'),
    "a decimal for an integer": ('"seq":1042', '"seq":1042.0'),
    "more than an integer holds": ('"seq":1042', '"seq":9223372036854775808'),
    "a backslash": ('"tf":"M15"', '"tf":"M\\u0031"'),
    "a control character": ('"tf":"M15"', '"tf":"M\x00"'),
    "true for a number": ('"seq":1042', '"seq":true'),
    "an unknown kind": ('"kind":"open"', '"kind":"opening"'),
    "an unknown side": ('"side":"BUY"', '"side":"LONG"'),
    "an unknown type": ('"type":"market"', '"type":"limit"'),
    "an unknown policy": ('"policy":"reject_if_open"', '"policy":"add"'),
    "no time": ('"expires":1770984180', '"expires":-1'),
    "a time beyond all times": ('"expires":1770984180', '"expires":177098418000'),
    "another message": ('"msg":"signal"', '"msg":"ack"'),
    "no version": ('{"v":2,"msg"', '{"msg"'),
    "a version that is a word": ('{"v":2,', '{"v":"2",'),
    "a comma too many": ('"ticket":0', '"ticket":0,'),
    "a bracket": ('"ticket":0', '"ticket":0}'),
}


@cases("what", WRONG)
def test_a_signed_text_that_is_no_message_is_refused(what: str) -> None:
    found, put = WRONG[what]
    assert body().count(found) == 1
    assert refused(seal(body().replace(found, put), KEY)) == "schema"


def test_a_key_behind_the_last_is_refused() -> None:
    assert refused(seal(body() + ',"new":1', KEY)) == "schema"


@pytest.mark.parametrize("other", [0, 1, 3, 999_999_999])
def test_another_version_is_told_before_anything_else(other: int) -> None:
    text = body().replace('"v":2', f'"v":{other}')
    assert refused(seal(text, KEY)) == "version"
    assert refused(seal(text + ',"new":1', KEY)) == "version"
    assert refused(seal(text, "another key")) == "auth"
    assert decode(seal(text, KEY), Signal, KEY, version=other) == SIGNAL


def test_a_message_of_another_kind_is_refused() -> None:
    for kind in NAMES:
        if kind is not Signal:
            assert refused(GOLDEN, kind) == "schema"


@cases("raw", [b"", b"\0" * 600, b"{}", b"\xff\xfe", GOLDEN + b"\n", b" " + GOLDEN])
def test_no_message_at_all(raw: bytes) -> None:
    assert refused(raw) == "auth"


def test_a_message_that_is_too_long_is_neither_written_nor_read() -> None:
    rows = ("x" * 100,) * 3_000
    for long in (replace(SIGNAL, symbol="X" * LIMIT), replace(LIST, rows=rows)):
        with pytest.raises(MessageError, match="too many"):
            encode(long, KEY)
    text = body().replace('"symbol":"EURUSD"', f'"symbol":"{"X" * LIMIT}"')
    assert refused(seal(text, KEY)) == "auth"
    assert LIMIT < len(encode(replace(LIST, rows=rows[:2_300]), KEY)) <= LIST_LIMIT


def test_half_a_character_is_written_in_no_message() -> None:
    with pytest.raises(MessageError, match="half a character"):
        encode(replace(SIGNAL, symbol="EUR\ud800"), KEY)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_harm(encoding: str) -> None:
    assert decode(GOLDEN.decode().encode(encoding), Signal, KEY) == SIGNAL
    swapped = "\ufeff".encode("utf-16-be") + GOLDEN.decode().encode("utf-16-be")
    assert decode(swapped, Signal, KEY) == SIGNAL
    assert refused(GOLDEN.decode().encode("utf-16-le")) == "auth"
    assert refused(GOLDEN.decode().encode("utf-16")[:-1]) == "auth"


@cases(
    "wrong",
    [
        {"sl": Decimal("NaN")},
        {"sl": Decimal("Infinity")},
        {"lots": 0.1},
        {"seq": True},
        {"symbol": None},
        {"kind": "opening"},
        {"expires": -1},
    ],
)
def test_a_writer_refuses_what_a_reader_would(wrong: dict[str, Any]) -> None:
    with pytest.raises(MessageError) as caught:
        encode(replace(SIGNAL, **wrong), KEY)
    assert caught.value.reason == "schema"


@cases(
    ("part", "wrong"),
    [
        *(('"count":1', f'"count":{count}') for count in ("0", "2", "-1", '"1"', "1.0", "true")),
        ('"count":1,"p0":"a"', '"count":1,"p1":"a"'),
        ('"count":1,"p0":"a"', '"count":2,"p0":"a","p2":"b"'),
        ('"count":1,"p0":"a"', '"count":2,"p0":"a","p0":"a"'),
        ('"p0":"a"', '"d0":"a"'),
        ('"p0":"a"', '"p0":1'),
        ('"p0":"a"', '"p0":"a\x7f"'),
    ],
)
def test_a_list_says_how_long_it_is_and_numbers_its_rows(part: str, wrong: str) -> None:
    text = body(encode(LIST, KEY))
    assert part in text
    assert refused(seal(text.replace(part, wrong), KEY), Positions) == "schema"


def test_lots_have_the_decimals_that_they_need() -> None:
    told = {0.1: "0.10", 1.0: "1.00", 0.00000001: "0.00000001", 0.123: "0.123", 12.5: "12.50"}
    assert {lots: format(volume(lots), "f") for lots in told} == told


def test_prices_have_the_symbols_decimals() -> None:
    assert str(fixed(2345.1, 2)) == "2345.10"
    assert str(fixed(0.0, 5)) == "0.00000"
    assert str(fixed(-0.00001, 2)) == "0.00"
    assert str(fixed(38_123.6, 0)) == "38124"
    close = replace(ORDER, kind="close", entry=0.0, stop=0.0, target=0.0, closes="T1", ticket="77")
    signal = signal_of(close, channel="main", account=1)
    assert (str(signal.sl), signal.ref, signal.ticket) == ("0.00000", "T1", 77)
    assert b'"entry":0.00000,"sl":0.00000,"tp":0.00000' in encode(signal, KEY)


def test_an_ack_becomes_a_report() -> None:
    report = report_of(ACK)
    assert (report.sid, report.status, report.at.timestamp()) == (ORDER.sid, "FILLED", ACK.gmt)
    assert (report.ticket, report.deal, report.position) == ("10", "11", "10")
    assert (report.price, report.volume, report.adopted) == (1.10013, 0.1, False)
    assert report_of(replace(ACK, ticket=0)).ticket == ""


AT = datetime(2026, 2, 13, 12, tzinfo=UTC)
EURO = SymbolTerms(
    "EUR.m",
    5,
    1e-05,
    1.0,
    100_000.0,
    0.01,
    0.01,
    50.0,
    12,
    "long_only",
    "USD",
)
SYMBOL = "EUR.m|5|0.00001|1.00|100000.00|0.01|0.01|50.00|12|long_only|USD"
ROWS: dict[str, tuple[Callable[[str], object], object]] = {
    "10|EUR.m|LONG|0.10|1.1|1.09|1.12|-22|T1|-3.5|1770984000": (
        read_position,
        BrokerPosition("10", "EUR.m", "LONG", 0.1, 1.1, 1.09, 1.12, -22, "T1", -3.5, AT),
    ),
    "11|10|EUR.m|out|SELL|0.1|1.1|-3.5|22||1770984000|other": (
        read_deal,
        BrokerDeal("11", "10", "EUR.m", "out", "SELL", 0.1, 1.1, -3.5, 22, "", AT),
    ),
    "11|10|EUR.m|in|BUY|0.1|1.1|0.00|22|T1|1770984000|sl": (
        read_deal,
        BrokerDeal("11", "10", "EUR.m", "in", "BUY", 0.1, 1.1, 0.0, 22, "T1", AT, "sl"),
    ),
    f"{SYMBOL}|1.1|1.2|1770984000": (read_symbol, replace(EURO, quote=Quote(1.1, 1.2, AT))),
    f"{SYMBOL}|0.00|0.00|0": (read_symbol, EURO),
}


@cases("text", ROWS)
def test_a_row_says_this_and_is_whole_or_none(text: str) -> None:
    read, row = ROWS[text]
    assert read(text) == row
    columns = text.split("|")
    for wrong in (text + "|", text.rpartition("|")[0]):
        with pytest.raises(ValueError, match="columns instead of"):
            read(wrong)
    numbers = [at for at, column in enumerate(columns) if re.fullmatch(r"-?[0-9.]+", column)]
    words = [at for at, column in enumerate(columns) if column in WORDS]
    assert len(numbers) > 5 and words
    for at, wrong in itertools.product([*numbers, *words], ("", "x", "1e5", "nan", "1_0", " 1")):
        with pytest.raises(ValueError, match=r"is no(ne of| integer| decimal| number)"):
            read("|".join([*columns[:at], wrong, *columns[at + 1 :]]))


WORDS = ("LONG", "in", "out", "BUY", "SELL", "other", "sl", "long_only")
