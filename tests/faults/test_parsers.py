"""Every parser of outside data, fed what a disk, a broker, a vendor or a stranger made of it.

Good samples are damaged in one to six ways: bits, cuts, doubled parts, numbers that are none, words
of another type, nesting without end, half characters. Whatever comes, a parser gives a value or its
own error, never another one: an error that nobody expects would take a tick or a start with it.
Signed texts are also damaged before they are signed, so that the signature does not shield what
lies behind it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.contracts import ModelUnavailable, Shape
from agents.debate import replies
from agents.registry import AGENTS
from agents.texts import door
from tests.doubles import edgar_payloads as edgar
from tests.doubles.finnhub_server import quarter, rating
from tests.doubles.outside_server import week
from tests.worlds import flow_files
from tests.worlds.channels import ORDER
from tests.worlds.mt5_bars import GOLD
from torra.backup import copies as backup_store
from torra.backup import files as backup_files
from torra.backup import restore as backup_restore
from torra.bridges.order_journal import OrderEntry, OrderJournal
from torra.bridges.torra import book_rows, messages
from torra.chart.screenshot import MOST_BYTES, Picture, read_picture
from torra.collecting.line import SourceError
from torra.config import ROOT, DeskSettings, Profile, read
from torra.dashboard.doors import access_file
from torra.errors import ConfigError
from torra.evidence.outside_numbers import SeriesRow
from torra.exhibits import documents as replay_files
from torra.feeds.csv_file import read_bars
from torra.feeds.flow_files import read_flow
from torra.feeds.mt5_files import HEADER, read_sheet
from torra.market.broker_clock import ServerClock
from torra.news import company_reading, public_calendars
from torra.news.event_file import read_events
from torra.news.reading import listed, of_alpha_vantage, of_finnhub, read_lines
from torra.outside import cftc, filings, fred, tables
from torra.outside.answers import RowTally
from torra.outside.concepts import CHAINS
from torra.providers.prices import PriceList
from torra.replay.shards.checkpoints import read_arm

KEY = "0123456789abcdef0123456789abcdef"
EXAMPLES = ROOT / "examples"
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)

WORDS = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"0x10", b"1_000", b"1e-400", b"null",
    b"true", b'""', b"{}", b"[]", b'"\\ud800"', b'"\\u0000"', b"\xef\xbb\xbf", b"\xff\xfe", b"\x00",
    b"\xff", b"\r", b"\n\n", b",,,", b";", b"|", b'"', b"\\", b"9" * 400, b"9" * 5000, b"-1",
    b"3.5", b"[" * 3000, b'{"a":' * 3000, "１２".encode(), "\u202e".encode(), b"=cmd()",
    b"0001-01-01T00:00:00Z",
    b"9999-12-31T23:59:59Z", b"2026-02-30", b"1e18", b"99999999999999999999", b"'",
)  # fmt: skip
"""What is put into a text, or in the place of one of its numbers or words."""

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
WORD = re.compile(rb'"[^"\n]{0,40}"')


@dataclass(frozen=True)
class Parser:
    """A parser: good samples, how bytes are handed to it, and the errors that are its own."""

    name: str
    samples: tuple[bytes, ...]
    parse: Callable[[bytes, Path], object]
    errors: tuple[type[Exception], ...]


# --- damage ---------------------------------------------------------------------------------------

damage = st.tuples(
    st.sampled_from(("flip", "cut", "drop", "double", "insert", "number", "word", "swap")),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(WORDS),
)


def damaged(raw: bytes, how: list[tuple[str, float, float, bytes]]) -> bytes:
    for kind, first, second, word in how:
        at = int(first * len(raw))
        end = min(len(raw), at + 1 + int(second * 40))
        if kind == "flip" and raw:
            raw = raw[:at] + bytes([raw[at] ^ (1 << int(second * 8))]) + raw[at + 1 :]
        elif kind == "cut":
            raw = raw[:at]
        elif kind == "drop":
            raw = raw[:at] + raw[end:]
        elif kind == "double":
            raw = raw[:end] + raw[at:end] + raw[end:]
        elif kind == "insert":
            raw = raw[:at] + word + raw[at:]
        elif kind == "swap":
            raw = (
                raw[end:] + raw[:end] if second > 0.9 else raw[:at] + raw[at:end][::-1] + raw[end:]
            )
        elif found := list((NUMBER if kind == "number" else WORD).finditer(raw)):
            one = found[int(first * len(found))]
            raw = raw[: one.start()] + word + raw[one.end() :]
    return raw


# --- parsers --------------------------------------------------------------------------------------


def in_a_file(name: str, parse: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    """Hand the bytes over as a file that only its owner can read."""

    def handed(raw: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(raw)
        path.chmod(0o600)
        return parse(path)

    return handed


def named(body: bytes) -> bytes:
    """Put the first line of GOLD's bars above columns and rows."""
    bars = body.count(b"\n") - 1
    first = '{"v":2,"msg":"bars","channel":"main","account":1001,"broker_symbol":"XAUUSD.m",'
    return f'{first}"tf":"M15","count":{bars},"server_offset_s":7200}}\n'.encode() + body


def sheet(body: bytes) -> bytes:
    """Sign lines as the Expert Advisor signs bars."""
    mac = hmac.new(KEY.encode(), body, hashlib.sha256).hexdigest()
    return body + f"end,{mac}\n".encode()


def flow_of(write: Callable[[bytes], bytes]) -> Callable[[bytes, Path], object]:
    """Read what is written of the bytes."""
    clock = ServerClock.parse("new_york+7")
    return lambda raw, _: read_flow(write(raw), KEY, GOLD, clock)


FLOW_ROWS = [
    f"{1770984000 + 900 * n},9{n},2{n},1{n},2{n}.25,6{n},10,12.50,7.50,0.2500,4.50,31{n}"
    for n in range(1, 9)
]
FLOW = flow_files.text(FLOW_ROWS).rpartition("end,")[0].encode()


def bars_of(write: Callable[[bytes], bytes]) -> Callable[[bytes, Path], object]:
    """Read what is written of the bytes."""
    return lambda raw, _: read_sheet(write(raw), KEY, GOLD)


BARS = (ROOT / "sample_data" / "BTCUSD_M15.csv").read_bytes()[:1500].rpartition(b"\n")[0] + b"\n"
SHEET = f"{HEADER}\n".encode() + b"".join(
    f"{1770984000 + 900 * n},1.10{n},1.11{n},1.09{n},1.10{n},{n}{extra}\n".encode()
    for n in range(1, 9)
    for extra in [",0" * (HEADER.count(",") - 5)]
)


EXAMPLE = {int: 1770984000, str: "text", bool: True, Decimal: Decimal("1.5")}


def message(kind: Any) -> bytes:
    """Return a good message of a kind."""
    values = {
        name: ("12|BTCUSD|0.10|x",) if name == "rows" else EXAMPLE.get(hint) or get_args(hint)[0]
        for name, hint in get_type_hints(kind).items()
    }
    return messages.encode(kind(**values), KEY)


def signed(kind: Any) -> Callable[[bytes, Path], object]:
    """Hand bytes over under a right signature."""

    def handed(raw: bytes, folder: Path) -> object:
        body = raw[: -messages.TAIL_LENGTH].decode("ascii", "replace").replace("\ufffd", "?")
        return messages.decode(messages.seal(body, KEY), kind, KEY)

    return handed


def news(read_row: Callable[..., Any]) -> Callable[[bytes, Path], object]:
    """Hand the payload over as the vendors' clients do: as what JSON made of it."""

    def handed(raw: bytes, folder: Path) -> object:
        try:
            payload = json.loads(raw)
        except (ValueError, RecursionError):
            return None
        rows = payload.get("feed") if isinstance(payload, dict) else payload
        return listed(payload, rows, lambda row: read_row(row, "BTCUSD")), company_reading.metrics(
            payload
        )

    return handed


JSON = (SourceError, ValueError, RecursionError)
"""What a reader of JSON may raise; the line makes a word of it."""

FILED = edgar.submissions(
    edgar.PG, (edgar.PG_2014, "10-K", "2014-08-08", "2014-08-08T11:00:00.000Z")
)


def reply_of(*rows: Any) -> bytes:
    return json.dumps(rows).encode()


def figures(read: Callable[[Any], Any]) -> Callable[[bytes, Path], object]:
    def handed(raw: bytes, folder: Path) -> object:
        found = read(json.loads(raw))
        for name, value in (found.figures or {}).items():
            assert isinstance(value, float) and abs(value) < 1e300 and len(name) < 60
        return found

    return handed


def known_after(rows: Any) -> None:
    """Assert that no row was known before the end of what it is about, or has no number."""
    for row in rows:
        about = row.at if isinstance(row, SeriesRow) else row.ends
        assert about <= row.known_at and abs(row.value) <= 1e15


def outside(read: Callable[[bytes], Any]) -> Callable[[bytes, Path], object]:
    def handed(raw: bytes, folder: Path) -> object:
        found = read(raw)
        known_after(found.items)
        assert found.items or found.status != "available"
        return found

    return handed


def revenue(raw: bytes) -> Any:
    payload, tally = json.loads(raw), RowTally()
    chain = {one.name: one for one in CHAINS["revenue"]}
    asked = next((chain[name] for name in chain if name.encode() in raw), CHAINS["revenue"][0])
    values = filings.read_concept("revenue", asked, edgar.PG, payload, tally)
    return filings.reported("PG", "revenue", values, {}, NOW, tally)


def table(path: Path) -> object:
    found = tables.read(path)
    known_after(found.rows)
    assert all(fault.reason and "\n" not in fault.reason for fault in found.faults)
    return found


def decoded(kind: Any, raw: bytes, folder: Path) -> object:
    return messages.decode(raw, kind, KEY)


def read_row(read: Callable[[str], object], raw: bytes, folder: Path) -> object:
    return read(raw.decode("latin-1"))


def replied(raw: bytes, folder: Path) -> object:
    reply = door.load(raw.decode("utf-8", "replace"), "BTCUSD")
    found = []
    shapes: tuple[tuple[Shape, str], ...] = (
        ("report", "technical"), ("case", "bull_researcher"), ("news", "news"),
    )  # fmt: skip
    for shape, agent in shapes:
        try:
            found.append(replies.read(shape, reply, AGENTS[agent].role, {}))
        except ModelUnavailable:
            continue
    return found


def picture(raw: bytes, folder: Path) -> object:
    path = folder / "BTCUSD-M15.png"
    path.write_bytes(raw)
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    found = read_picture(
        str(folder / "{symbol}-{timeframe}.png"),
        symbol="BTCUSD",
        timeframe="M15",
        close_time=NOW,
        now=NOW,
    )
    assert isinstance(found, Picture)
    assert found.data is None or len(found.data) <= MOST_BYTES
    return found


def checkpoint(path: Path) -> object:
    (path.parent / "l1.jsonl.gz").write_bytes(b"")
    return read_arm(path.parent, "l1", {})


FINNHUB = json.dumps([
    {"category": "crypto", "datetime": 1770984000, "headline": "Bitcoin moves", "id": 7,
     "related": "BTC", "source": "x", "summary": "It moved.", "url": "https://x.test/a"},
]).encode()  # fmt: skip
ALPHA = json.dumps({"items": "1", "feed": [
    {"title": "Bitcoin moves", "url": "https://x.test/a", "time_published": "20261102T101500",
     "summary": "It moved.", "source": "x", "ticker_sentiment": [{"ticker": "CRYPTO:BTC"}]},
]}).encode()  # fmt: skip
METRICS = b'{"metric":{"52WeekHigh":1.0,"52WeekLow":0.5,"beta":1.1,"10DayAverageTradingVolume":3}}'
REPLY = json.dumps({
    "symbol": "BTCUSD", "abstained": False, "summary": "up", "adjustments":
    {"price_action": 0.1, "key_levels": 0.0, "momentum": -0.2, "structure": 0.3},
    "confidence": 0.7, "evidence": [{"feature": "rsi_14", "value": 55.1}], "falsifiers": ["a"],
    "flags": [], "ordinals": {"relevance": 1},
}).encode()  # fmt: skip
DESK = b'{"instances": [{"symbol": "BTCUSD", "timeframes": ["M15", "H1"], "feed": "sample"}]}'
PRICES = b'{"anthropic:claude-haiku-5-5": {"input": 1.0, "output": 5.0, "cached": 0.1}}'
TOKENS = json.dumps({
    "tokens": {"read": "r" * 43, "approve": "a" * 43, "admin": "b" * 43}, "key": "k" * 43,
}).encode()  # fmt: skip
DOCUMENT = json.dumps({
    "name": "day", "kind": "replay", "title": "t", "summary": "s",
    "period": {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"},
    "created_at": "2026-01-03T00:00:00Z", "arms": ["l1"], "warnings": [],
    "tables": [{"title": "a", "name": "a", "says": "", "enough": True, "figures": {"x": 1.0},
                "columns": ["a"], "rows": [["1"]]}], "plots": [],
}).encode()  # fmt: skip
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x80\x00\x00\x01\xe0\x08\x06\x00\x00\x00" * 2
STATE = json.dumps({
    "identity": {}, "done": True, "length": 0, "ticks": 0, "trades": 0, "state": {},
}).encode()  # fmt: skip


NOTE = json.dumps({
    "draft": "profiles/mine.json.0a1b2c3d.new", "profile": "profiles/mine.json",
    "kept": "profiles/mine.json.0a1b2c3d.new.kept", "desk": "desk.json.0a1b2c3d.new", "had": True,
}).encode()  # fmt: skip
RESTORING = b'{"again": "torra --home here restore --empty", "kept": "replaced-20261102T120000Z"}'


def backed_up(path: Path, rows: bytes = b'{"sentiment": 1}') -> Path:
    """Write a small backup, of a scorer from before Torra, that tells that it has these rows."""
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("PRAGMA page_size = 512; PRAGMA synchronous = OFF; BEGIN")
        for statement in (
            "CREATE TABLE sentiment (id INTEGER PRIMARY KEY, timestamp TEXT)",
            "INSERT INTO sentiment VALUES (1, '2026-11-02T12:00:00Z')",
            *backup_store.TABLES,
            "INSERT INTO torra_backup VALUES ('made_at', '2026-11-02T12:00:00Z')",
            "INSERT INTO torra_backup_files VALUES ('desk.json', X'7b7d')",
        ):
            db.execute(statement)
        db.execute("INSERT INTO torra_backup VALUES ('rows', CAST(? AS TEXT))", (rows,))
        db.execute("COMMIT")
    return path


def backup() -> bytes:
    """Return the bytes of a small backup."""
    with tempfile.TemporaryDirectory() as folder:
        return backed_up(Path(folder) / "desk.db").read_bytes()


def journal() -> bytes:
    """Return the lines of two orders, one handed over."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        kept = OrderJournal(path, NOW)
        kept.put(OrderEntry(ORDER, intent=NOW, notes={"ticket": "5"}))
        kept.put(OrderEntry(replace(ORDER, sid="T7K3Q9ZB2M4XB")))
        return path.read_bytes()


POSITION = b"5|EURUSD|LONG|0.10|1.1|1.0|1.2|220114000|T1|3.5|1770984000"
DEAL = b"5|6|EURUSD|in|BUY|0.10|1.1|3.5|220114000|T1|1770984000|expert"
SYMBOL = b"EURUSD|5|0.00001|1.0|100000|0.01|0.01|50|10|full|USD|1.1|1.2|1770984000"
KINDS = tuple(messages.NAMES)
PARSERS = (
    Parser(
        "bars", (BARS,), in_a_file("b.csv", lambda p: read_bars(p, clock="utc")), (ConfigError,)
    ),
    Parser("sheet", (sheet(named(SHEET)),), bars_of(bytes), (ValueError,)),
    Parser("signed-sheet", (SHEET,), bars_of(lambda raw: sheet(named(raw))), (ValueError,)),
    Parser("signed-first-line", (named(SHEET),), bars_of(sheet), (ValueError,)),
    Parser("flow", (sheet(FLOW),), flow_of(bytes), (ValueError,)),
    Parser("signed-flow", (FLOW,), flow_of(sheet), (ValueError,)),
    *(
        Parser(
            f"{messages.NAMES[kind]}",
            (message(kind),),
            partial(decoded, kind),
            (messages.MessageError,),
        )
        for kind in KINDS
    ),
    *(
        Parser(
            f"signed-{messages.NAMES[kind]}",
            (message(kind),),
            signed(kind),
            (messages.MessageError,),
        )
        for kind in KINDS
    ),
    *(
        Parser(name, (row,), partial(read_row, read), (ValueError,))
        for name, row, read in (
            ("position", POSITION, book_rows.read_position),
            ("deal", DEAL, book_rows.read_deal),
            ("symbol", SYMBOL, book_rows.read_symbol),
        )
    ),
    Parser(
        "order-journal",
        (journal(),),
        in_a_file("j", lambda p: OrderJournal(p, NOW)),
        (ConfigError,),
    ),
    Parser(
        "profile",
        ((ROOT / "profiles" / "default.json").read_bytes(),),
        in_a_file("p.json", lambda path: read(Profile, path)),
        (ConfigError,),
    ),
    Parser("desk", (DESK,), in_a_file("d.json", lambda p: read(DeskSettings, p)), (ConfigError,)),
    Parser("prices", (PRICES,), in_a_file("p.json", PriceList.read), (ConfigError,)),
    Parser("access", (TOKENS,), in_a_file("a.json", access_file.read), (ConfigError,)),
    Parser(
        "events",
        ((EXAMPLES / "events.csv").read_bytes(),),
        in_a_file("e.csv", read_events),
        (ConfigError,),
    ),
    Parser(
        "events-json",
        ((EXAMPLES / "events.json").read_bytes(),),
        in_a_file("e.json", read_events),
        (ConfigError,),
    ),
    Parser(
        "public-calendar",
        (
            b"Title,Country,Date,Time,Impact,Forecast\nCPI,USD,02-13-2026,1:30pm,High,0.3%\n",
            b'[{"title":"CPI","country":"USD","date":"2026-02-13T08:30:00-05:00","impact":"High"}]',
            b'{"list":[{"time":"2026-02-13 13:30:00","country":"US","event":"CPI","impact":"3"}]}',
        ),
        in_a_file("p.csv", lambda path: public_calendars.read(path, "Europe/Athens")),
        (ConfigError,),
    ),
    Parser(
        "headlines",
        ((EXAMPLES / "headlines.jsonl").read_bytes()[:2000],),
        lambda raw, folder: read_lines(raw, folder / "h.jsonl"),
        (ConfigError,),
    ),
    Parser("finnhub", (FINNHUB, METRICS), news(of_finnhub), ()),
    Parser(
        "finnhub-ratings", (reply_of(rating("2026-02-01")),), figures(company_reading.ratings), JSON
    ),
    Parser(
        "finnhub-earnings",
        (reply_of(quarter("2026-02-01", 2, 1)),),
        figures(company_reading.earnings),
        JSON,
    ),
    Parser(
        "finnhub-peers",
        (b'["AAPL", "MSFT", "BRK.B"]',),
        figures(partial(company_reading.peers, ticker="AAPL")),
        JSON,
    ),
    Parser(
        "fred",
        (b"observation_date,DGS10\n2026-02-05,4.21\n2026-02-06,.\n2026-02-09,-0.5\n",),
        outside(lambda raw: fred.read("DGS10", raw, NOW)),
        (SourceError,),
    ),
    Parser(
        "cftc",
        (reply_of(week("vix", "2026-01-27"), week("vix", "2026-01-20")),),
        outside(lambda raw: cftc.read("vix", raw, NOW)),
        JSON,
    ),
    Parser(
        "edgar-tickers",
        (json.dumps(edgar.tickers()).encode(),),
        lambda raw, _: filings.read_tickers(json.loads(raw)),
        JSON,
    ),
    Parser(
        "edgar-filings",
        (json.dumps(FILED).encode(),),
        lambda raw, _: filings.read_submissions(json.loads(raw), edgar.PG),
        JSON,
    ),
    Parser(
        "edgar-concept",
        tuple(json.dumps(one).encode() for one in edgar.two_revenues("PG")),
        outside(revenue),
        JSON,
    ),
    Parser(
        "series-table",
        (
            b"name,at,known_at,value\nDGS2,2026-02-12,2026-02-13T22:00:00Z,4.25\n",
            b"DATE,DGS2\n02/05/2026,3.5\n",
        ),
        in_a_file("s.csv", table),
        (ConfigError,),
    ),
    Parser(
        "facts-table",
        (
            b"ticker,figure,begins,ends,known_at,value,unit\nACME,net_income,2025-10-01,2025-12-31,2026-02-05T21:30:00Z,1.5e9,USD\n",
        ),
        in_a_file("f.csv", table),
        (ConfigError,),
    ),
    Parser("alpha-vantage", (ALPHA,), news(of_alpha_vantage), ()),
    Parser("reply", (REPLY,), replied, (ModelUnavailable,)),
    Parser("picture", (PNG,), picture, ()),
    Parser(
        "document",
        (DOCUMENT,),
        in_a_file("day.json", lambda path: replay_files.read(path, "day", path.stat())),
        (replay_files.Broken,),
    ),
    Parser("backup", (backup(),), in_a_file("d.db", backup_store.examine), (ConfigError,)),
    Parser(
        "backup-rows",
        (b'{"sentiment": 1}',),
        lambda raw, folder: backup_store.examine(backed_up(folder / "d.db", raw)),
        (ConfigError,),
    ),
    Parser(
        "restore-mark",
        (RESTORING,),
        in_a_file(backup_files.MARK, lambda path: backup_restore.cut_off(path.parent)),
        (),
    ),
    Parser("checkpoint", (STATE,), in_a_file("l1.json", checkpoint), (ConfigError,)),
)

SOUND = {
    "signed-sheet", "checkpoint", "picture", "positions", "deals", "symbols",
    "signed-positions", "signed-deals", "signed-symbols",
}  # fmt: skip
"""Parsers whose sample is a shape to be damaged and need not be taken as it is."""


@pytest.mark.parametrize("parser", PARSERS, ids=lambda one: one.name)
def test_a_parser_gives_a_value_or_its_own_error(
    parser: Parser, tmp_path: Path, scaled: Callable[..., int], record_property: Any
) -> None:
    taken = {"taken": 0, "refused": 0}

    @settings(max_examples=scaled(1000, least=12))
    @given(sample=st.sampled_from(parser.samples), how=st.lists(damage, min_size=1, max_size=6))
    def fed(sample: bytes, how: list[tuple[str, float, float, bytes]]) -> None:
        try:
            parser.parse(damaged(sample, how), tmp_path)
        except parser.errors:
            taken["refused"] += 1
        else:
            taken["taken"] += 1

    fed()
    record_property("seen", f"{parser.name}: {taken['refused']} refused, {taken['taken']} taken")


@pytest.mark.parametrize("parser", PARSERS, ids=lambda one: one.name)
def test_any_of_the_words_alone(parser: Parser, tmp_path: Path) -> None:
    for word in (b"", *WORDS):
        with contextlib.suppress(*parser.errors):
            parser.parse(word, tmp_path)


@pytest.mark.parametrize(
    "parser", [one for one in PARSERS if one.name not in SOUND], ids=lambda one: one.name
)
def test_what_is_damaged_is_sound_before(parser: Parser, tmp_path: Path) -> None:
    for sample in parser.samples:
        assert parser.parse(sample, tmp_path) is not None
