"""Names that brokers give to symbols go through the whole of Torra: EURUSD.£, @ES, BTC/USD, US 30.

The names come from `torra init` or the page, and lie in desk.json as they are. The Expert Advisor
itself (compiled) lists them, writes their bars and order flow under escaped file names, and
executes signals that name them. Pages escape them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner

from tests.doubles.advisor_channel import KEY, NOW, OFFSET, AdvisorChannel, in_a_path
from tests.doubles.compiled_ea import ACCOUNT
from tests.doubles.page_reader import Page, check_policy, check_structure
from tests.worlds import channels, desks
from tests.worlds.desk_pages import Pages, open_pages
from torra.bridges.protocol import Order
from torra.bridges.torra.book_rows import read_deal, read_position, read_symbol
from torra.bridges.torra.messages import Ack, Deals, Positions, Symbols, decode, encode, signal_of
from torra.commands import init as first_steps
from torra.commands.command_line import ChapterGroup
from torra.config import Instance, is_broker_symbol, load_desk
from torra.feeds.mt5_files import BarFileOwner, FlowFiles, Mt5FilesFeed, file_of
from torra.market.broker_clock import ServerClock

NAMES = {
    "EURUSD": "EURUSD.£",
    "ES": "@ES",
    "EURUSDX": "EURUSD$",
    "BTCUSD": "BTC/USD",
    "SP500": "[SP500]",
    "US30": "US 30",
    "MARKUP": "<b>&'%41",
    "ROUBLE": "Доллар=Рубль",
}
"""The broker's name of each symbol."""

TERMS = {
    "digits": 2, "tick_size": 0.01, "tick_value": 1.0, "contract_size": 100.0, "lot_min": 0.01,
    "lot_step": 0.01, "lot_max": 50.0, "bid": 2345.0, "ask": 2345.2,
}  # fmt: skip
ODD = ("", " ES", "ES ", "A,B", "A|B", 'A"B', "A\\B", "A\tB", "A\nB", "A\u202eB", "A\u200bB",
       "A\u00a0B", "A\ud800", "A\x7f", "A" * 32, "€" * 22)  # fmt: skip
RESERVED = ("CON", "PRN", "AUX", "NUL", "COM1", "LPT9", "con", "CON.r", "NUL.", "COM¹")


# --- the rule -------------------------------------------------------------------------------------


def test_a_broker_may_call_a_symbol_what_breaks_no_format() -> None:
    good = [*NAMES.values(), *RESERVED, "A" * 31, "€" * 21, "XAUUSD.m", "#AAPL", "EURUSD+", "^!&_-"]
    assert [name for name in good if not is_broker_symbol(name)] == []
    assert [name for name in ODD if is_broker_symbol(name)] == []
    for name in ODD[1:]:
        with pytest.raises(ValueError, match="use printable characters"):
            Instance(symbol="XAUUSD", broker_symbol=name)
        with pytest.raises(ValueError, match="the companion dxy"):
            Instance(symbol="XAUUSD", companions={"dxy": name})


def test_no_two_names_share_a_file(tmp_path: Path) -> None:
    names = [*NAMES.values(), *RESERVED, "BTC_USD", "BTC%2FUSD", "US_30", "EURUSD.", "EURUSD",
             "EURUSD.¤", "../../x", "x_M15", "é", "e\u0301"]  # fmt: skip
    files = [file_of(tmp_path, BarFileOwner("main", 1, name, "M15")) for name in names]
    assert len(set(files)) == len(names)
    for name, file in zip(names, files, strict=True):
        assert file == tmp_path / f"{in_a_path(name)}_M15.csv"
        assert file.name.isascii() and not set(file.name) & set('<>:"/\\|?* ')
        # Windows reserves a name whatever its ending is.
        assert file.name.split(".")[0].upper() not in RESERVED
    longest = file_of(tmp_path, BarFileOwner("main", 1, "€" * 21, "M15"))
    longest.write_text("", encoding="ascii")


# --- from the first question to desk.json ---------------------------------------------------------


def test_init_takes_them_and_proposes_a_name_of_ones_own(tmp_path: Path) -> None:
    terms = tmp_path / "terms.json"
    terms.write_text(json.dumps(dict.fromkeys(NAMES.values(), TERMS)), encoding="utf-8")
    group = ChapterGroup("torra")
    group.add_command(first_steps.init)

    def init(symbols: str) -> tuple[int, str]:
        words = ["init", "--yes", "--feed", "mt5_files", "--bridge", "torra_files", "--folder",
                 str(tmp_path / "main"), "--account", "1", "--server-clock", "new_york+7",
                 "--terms", str(terms), "--symbols", symbols]  # fmt: skip
        done = CliRunner().invoke(group, words, obj=tmp_path / "home", catch_exceptions=False)
        return done.exit_code, done.output

    for broker, own in (("US 30", "US30"), ("BTC/USD", "BTCUSD"), ("[SP500]", "SP500"),
                        ("EURUSD.£", "EURUSD"), ("@ES", "ES")):  # fmt: skip
        code, said = init(broker)
        assert code == 2 and f"({own}={broker})" in said, said
    code, said = init(",".join(f"{own}={broker}" for own, broker in NAMES.items()))
    assert code == 0, said
    assert f"bar_symbols {','.join(NAMES.values())}" in said
    instances = load_desk(tmp_path / "home").instances
    assert {item.symbol: item.broker_name for item in instances} == NAMES


# --- the Expert Advisor ---------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[AdvisorChannel]:
    inputs: dict[str, Any] = {
        "bar_symbols": " , ".join(NAMES.values()), "bar_timeframes": "M15",
        "max_trades_per_day": 0, "max_positions": 0,
    }  # fmt: skip
    with AdvisorChannel(tmp_path, **inputs) as channel:
        for name in NAMES.values():
            channel.ea.symbol(name, digits=2, tick_size=0.01)
            channel.ea.quote(name, 2345.00, 2345.20)
        yield channel


def order(number: int, symbol: str) -> Order:
    return channels.order(
        number, symbol=symbol, instance=symbol, broker_symbol=NAMES[symbol], digits=2, entry=2345.2,
        stop=2338.4, target=2361.2, created=datetime.fromtimestamp(NOW, UTC),
        expires=datetime.fromtimestamp(NOW + 180, UTC), origin="tick GOLD torra_files 4.2 - -",
    )  # fmt: skip


def send(desk: AdvisorChannel, sent: Order) -> Ack:
    raw = encode(signal_of(sent, channel="main", account=ACCOUNT), KEY)
    name = desk.put(raw, sent.seq, sent.sid)
    desk.ea.timer()
    return decode((desk.folder / "ack" / name).read_bytes(), Ack, KEY)


def test_the_advisor_opens_lists_and_closes_them(desk: AdvisorChannel) -> None:
    state = desk.folder / "state"
    for number, symbol in enumerate(NAMES):
        sent = order(2 * number + 2, symbol)
        opened = send(desk, sent)
        assert (opened.status, opened.reason) == ("FILLED", ""), symbol
        desk.ea.run(6)
        (row,) = decode((state / "positions.json").read_bytes(), Positions, KEY).rows
        assert read_position(row).broker_symbol == NAMES[symbol]
        desk.ea.clock(NOW)
        close = channels.closing(sent, 2 * number + 3, ticket=str(opened.position))
        assert send(desk, close).status == "FILLED", symbol
        assert desk.positions() == []
    desk.ea.run(6)
    deals = decode((state / "deals.json").read_bytes(), Deals, KEY).rows
    assert {read_deal(row).broker_symbol for row in deals} == {*NAMES.values()}
    listed = decode((state / "symbols.json").read_bytes(), Symbols, KEY).rows
    assert {read_symbol(row).broker_symbol for row in listed} >= {*NAMES.values()}


def test_their_bars_and_their_order_flow_are_read(desk: AdvisorChannel) -> None:
    first = NOW + OFFSET - 1800
    for at, name in enumerate(NAMES.values()):
        for number in range(3):
            prices = (2000 + at, 2002 + at, 1999 + at, 2001 + at)
            desk.ea.bar(name, 900, first + 900 * number, prices, 2, 20)
        ticks = [((first + 900) * 1000 + 1000 * n, 2000.0, 2000.2, 0.0, 6) for n in range(2)]
        desk.ea.ticks(name, ticks)
    desk.ea.wait(15)
    expected = sorted(f"{in_a_path(name)}_M15.csv" for name in NAMES.values())
    assert desk.names("bars") == desk.names("flow") == expected
    sources = (desk.folder, dict(NAMES), ServerClock.parse("+03:00"), KEY)
    bars = Mt5FilesFeed(*sources, channel="main", account=ACCOUNT)
    flow = FlowFiles(*sources, channel="main", account=ACCOUNT)
    closed = datetime.fromtimestamp(NOW, UTC)
    for at, symbol in enumerate(NAMES):
        frame = bars.bars(symbol, "M15", closed)
        assert frame["open"].tolist() == [2000.0 + at] * 2, symbol
        told = flow.flow(symbol, "M15", [closed - timedelta(minutes=15)])
        assert (told.status, len(told.rows)) == ("available", 1), symbol


# --- pages ------------------------------------------------------------------------------


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    found = open_pages(tmp_path / "home", (desks.BTC,), steps=1)
    instances = tuple(Instance(symbol=own, broker_symbol=name) for own, name in NAMES.items())
    settings = found.backing.settings.model_copy(update={"instances": instances})
    vars(found.backing)["settings"] = settings
    yield found
    found.desk.close()


def test_the_pages_show_and_take_them(pages: Pages) -> None:
    page = Page(pages.text("/profiles"))
    check_structure(page)
    for broker in NAMES.values():
        assert f"({broker})" in page.text
        query = urlencode({"source": "files", "symbol": "GBPJPY", "broker": broker})
        asked = Page(pages.text(f"/add-symbol?{query}"))
        check_structure(asked)
        check_policy(asked, forms=True)
        assert "can be no broker" not in asked.text
    odd = urlencode({"source": "files", "symbol": "GBPJPY", "broker": "A|B"})
    assert "can be no broker" in Page(pages.text(f"/add-symbol?{odd}")).text
