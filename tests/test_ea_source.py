"""The Expert Advisor's source compiles as C++, speaks the protocol and asks the guards in order.

What runs here is mql5/TorraBridge.mq5 itself, compiled against tests/ea_shim (tests.compiled_ea).
Its lives and deaths are in test_ea_recovery.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.advisor_channel import (
    ASK,
    BID,
    GOLD,
    LEVELS,
    MAGIC,
    NOW,
    AdvisorChannel,
    body_of,
    mac,
    seal,
)
from tests.compiled_ea import (
    ACCOUNT,
    FLAGS,
    SHIM,
    SOURCE,
    CompiledEa,
    CompileError,
    compiled,
    decoded,
    names_called,
    needs_compiler,
    translated,
    without_texts,
)
from torra.bridges import guards
from torra.bridges.guards import REASONS, Ask, View, first_objection

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Iterator[AdvisorChannel]:
    """A channel for many signals: `judged` puts everything back after each."""
    channel = AdvisorChannel(tmp_path_factory.mktemp("guarded"), program=program)
    yield channel
    channel.ea.kill()


@pytest.fixture
def desk(tmp_path: Path, program: Path) -> Iterator[AdvisorChannel]:
    channel = AdvisorChannel(tmp_path, program=program)
    yield channel
    channel.ea.kill()


# --- the text -------------------------------------------------------------------------------------

MQL5 = re.findall(
    r"\w+",
    """
    AccountInfoDouble AccountInfoInteger AccountInfoString ArrayResize ArraySize CharArrayToString
    Comment CopyRates CryptEncode DoubleToString EventKillTimer EventSetMillisecondTimer FileClose
    FileDelete FileFindClose FileFindFirst FileFindNext FileFlush FileIsExist FileMove FileOpen
    FileReadArray FileSize FileWriteArray FolderCreate GetTickCount64 HistoryDealGetDouble
    HistoryDealGetInteger HistoryDealGetString HistoryDealGetTicket HistoryDealsTotal
    HistoryOrderGetInteger HistoryOrderGetString HistoryOrderGetTicket HistoryOrdersTotal
    HistorySelect HistorySelectByPosition IntegerToString MQLInfoInteger MathAbs MathFloor MathMin
    NormalizeDouble OrderCheck OrderGetInteger OrderGetString OrderGetTicket OrderSend OrdersTotal
    PeriodSeconds PositionGetDouble PositionGetInteger PositionGetString PositionGetTicket
    PositionSelectByTicket PositionsTotal Print StringCompare StringFind StringGetCharacter
    StringLen StringReplace StringSetCharacter StringSplit StringSubstr StringToCharArray
    StringToDouble StringToInteger SymbolInfoDouble SymbolInfoInteger SymbolInfoSessionTrade
    SymbolInfoString SymbolInfoTick SymbolName SymbolSelect SymbolsTotal TerminalInfoInteger
    TimeGMT TimeTradeServer
    """,
)
"""Functions of MQL5 that the advisor may call; each is in the MQL5 reference."""

FOREIGN = re.compile(
    r"::|->|\[[&=]?\]\s*\(|\b(?:auto|std|nullptr|NULL|unsigned|size_t|template|typename|namespace|"
    r"static_cast|using|throw|try|catch|goto|constexpr|noexcept|typedef|include)\b"
)
"""What C++ would take and MQL5 would not."""


def test_uses_nothing_that_is_not_mql5() -> None:
    source = decoded(SOURCE.read_bytes())
    bare = without_texts(source)
    own = set(re.findall(r"^\w+ (\w+)\([^;{}]*\) \{$", source, flags=re.MULTILINE))
    assert set(names_called(source)) - own - {"if", "for", "while", "return"} <= set(MQL5)
    assert not FOREIGN.findall(bare)
    assert not re.search(r"\.\w+\(", bare), "values have no methods"
    assert not re.search(r"\b\w+ &\w+ =", bare), "only parameters are references"
    for name in re.findall(r"^struct (\w+)", source, flags=re.MULTILINE):
        by_value = re.search(rf"[(,]\s*(?:const )?{name} \w", bare)
        assert not by_value, f"{name}: a structure is handed over by reference"


def test_is_plain_text_that_says_what_it_is() -> None:
    raw = SOURCE.read_bytes()
    source = raw.decode("ascii")
    lines = source.split("\n")
    assert "\r" not in source
    assert "\t" not in source
    assert not [line for line in lines if line.endswith("\\") or len(line) > 100]
    assert "MetaEditor has not seen it" in source
    assert "MIT licence" in source
    assert source.count("OrderSend(request") == 1, "an order leaves from one place"


BREAKS = {
    "semicolon": ("   EventKillTimer();", "   EventKillTimer()"),
    "undeclared": ("   CreateFolders();\n", "   CreateFolder();\n"),
    "arity": ("FolderCreate(Folder(folders[i]), FILE_COMMON)", "FolderCreate()"),
    "method": ("IsEmpty(channel_key)", "channel_key.empty()"),
    "type": ("int count = PositionsOfMagic", 'int count = "3" + PositionsOfMagic'),
}


def broken(*names: str) -> str:
    source = decoded(SOURCE.read_bytes())
    for name in names:
        good, bad = BREAKS[name]
        assert good in source
        source = source.replace(good, bad, 1)
    return source


def test_a_broken_copy_does_not_compile(scaled: Callable[..., int]) -> None:
    """All at once by day, each by itself at night."""
    chosen = list(BREAKS)[: scaled(len(BREAKS), least=0)]
    for names in [tuple(BREAKS)] + [(name,) for name in chosen]:
        with pytest.raises(CompileError) as error:
            compiled(broken(*names), flags=(*FLAGS, "-fsyntax-only"))
        assert "TorraBridge.mq5:" in str(error.value)


def test_line_numbers_and_encodings_survive_the_translation() -> None:
    source = decoded(SOURCE.read_bytes())
    assert decoded(source.encode("utf-16")) == source
    assert decoded(source.replace("\n", "\r\n").encode("utf-8-sig")) == source
    text = translated("int f(const uchar &a[]) {\n   uchar b[];\n   return 0;\n}\n")
    assert "int f(const Array<uchar> &a);" in text
    assert "Array<uchar> b;" in text


def test_the_shim_has_no_clock_of_its_own() -> None:
    for path in SHIM.iterdir():
        text = path.read_text("utf-8")
        assert not re.search(r"\btime\(|gettimeofday|clock_gettime|chrono|sleep\(|rand\(", text)


# --- signatures -----------------------------------------------------------------------------------


def test_signs_as_python_does(desk: AdvisorChannel) -> None:
    dice = random.Random(5)
    lengths = [1, 2, 31, 32, 63, 64, 65, 66, 100, 128, 129, 200, 300]
    for number in range(20):
        length = lengths[number % len(lengths)]
        letters = 'abc XYZ_+#{}"\\' + ("äß€" if number % 3 == 0 else "")
        key = "k" + "".join(dice.choice(letters) for _ in range(length - 1))
        text = "".join(chr(dice.randrange(33, 127)) for _ in range(dice.choice([1, 55, 64, 500])))
        desk.ea.command("input", "channel_key", key)
        desk.ea.command("init")
        assert desk.ea.hmac(text) == mac(text, key), (length, len(key.encode()))


def test_takes_marked_and_wide_text(desk: AdvisorChannel) -> None:
    for encode in ("utf-8-sig", "utf-16"):
        fields = desk.fields(kind="ping")
        name = desk.put(seal(body_of(fields)).encode(encode), fields["seq"], fields["sid"])
        desk.ea.timer()
        assert desk.ack(name)["status"] == "FILLED"


def damaged() -> list[bytes]:
    text = seal(body_of({**SIGNAL_OF_ONE}))
    middle = len(text) // 2
    return [
        b"",
        text[:-1].encode(),
        text[:middle].encode(),
        (text + "\n").encode(),
        (" " + text).encode(),
        text.replace("BUY", "BUJ").encode(),
        text.replace('"end":"1"', '"end":"2"').encode(),
        text.replace('"mac":"', '"mac":"0')[:-1].encode(),
        seal(body_of(SIGNAL_OF_ONE), "another key").encode(),
        seal(body_of(SIGNAL_OF_ONE), "").encode(),
        text.encode()[:middle] + b"\0" + text.encode()[middle:],
        text.encode()[:middle] + "é".encode() + text.encode()[middle:],
        text.encode("utf-16")[:-1],
        seal(body_of({**SIGNAL_OF_ONE, "tf": "M" * 5000})).encode(),
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ]


SIGNAL_OF_ONE: dict[str, Any] = {"kind": "ping", "sid": "TONE", "seq": 1}


def test_a_damaged_or_forged_file_is_refused_unread(desk: AdvisorChannel) -> None:
    for raw in damaged():
        fields = desk.fields()
        fresh = raw.replace(b"TONE", fields["sid"].encode())
        name = desk.put(fresh, fields["seq"], fields["sid"])
        desk.ea.timer()
        ack = desk.ack(name)
        assert (ack["status"], ack["reason"], ack["kind"]) == ("REJECTED", "auth", "")
        assert (ack["sid"], ack["seq"]) == (fields["sid"], fields["seq"])
    assert desk.ea.broker_state()["sends"] == 0


def illegible(fields: dict[str, Any]) -> Iterator[str]:
    """Yield authentic bodies of which one thing is wrong."""
    whole = body_of(fields)
    keys = list(fields)
    for key in keys:
        yield body_of({k: v for k, v in fields.items() if k != key})
        yield body_of({**fields, key: []})
    for one, other in itertools.pairwise(keys):
        swapped = [other if k == one else one if k == other else k for k in keys]
        yield body_of({k: fields[k] for k in swapped})
    yield whole.replace('"seq":', '"seq":0')
    yield whole.replace('"lots":0.10', '"lots":1e-1')
    yield whole.replace('"lots":0.10', '"lots":-0.10')
    yield whole.replace('"lots":0.10', '"lots":.10')
    yield whole.replace('"lots":0.10', '"lots":0.')
    yield whole.replace('"lots":0.10', '"lots":00.10')
    yield whole.replace('"lots":0.10', '"lots":"0.10"')
    yield whole.replace('"lots":0.10', '"lots":null')
    yield whole.replace('"sl":', ' "sl":')
    yield whole.replace('"sl":', '"sl": ')
    yield whole + ',"more":1'
    yield whole + "}"
    yield whole.replace('"msg":"signal"', '"msg":"ack"')
    yield whole.replace('"v":1', '"v":1.0')
    yield whole.replace('"v":1', '"v":01')
    yield whole.replace('"M15"', '"M\\15"')
    wrong: dict[str, list[object]] = {
        "kind": ["hedge", "", "OPEN"],
        "sid": ["TOTHER", ""],
        "seq": [7, 10**18],
        "side": ["buy", "LONG", ""],
        "type": ["limit", ""],
        "policy": ["add", ""],
        "comment": ["TOTHER", ""],
        "magic": [0, 5, 219_999_999, 1_220_000_000],
        "ref": ["../x", "a b"],
        "created": [10**11],
        "expires": [10**11],
        "bar_time": [10**11],
    }
    for key, values in wrong.items():
        for value in values:
            yield body_of({**fields, key: value})


def test_a_signal_that_is_not_whole_is_refused_with_schema(desk: AdvisorChannel) -> None:
    bodies = list(illegible(desk.fields(seq=2)))
    for seq, body in enumerate(bodies, start=1000):
        sid = f"T{seq:012d}"
        fresh = body.replace("T000000000002", sid).replace('"seq":2,', f'"seq":{seq},')
        name = desk.put(seal(fresh), seq, sid)
        desk.ea.timer()
        ack = desk.ack(name)
        assert (ack["status"], ack["reason"]) == ("REJECTED", "schema"), fresh
        assert (ack["sid"], ack["seq"]) == (sid, seq)
    assert len(bodies) > 100
    assert desk.ea.broker_state()["sends"] == 0


def test_a_file_whose_name_is_no_name_goes_to_bad(desk: AdvisorChannel) -> None:
    names = ["1_TX.json", "0000000001_.json", "0000000001_T X.json", "000000000a_TX.json", "x.json",
             "0000000001_" + "T" * 32 + ".json"]  # fmt: skip
    for name in names:
        (desk.folder / "inbox" / name).write_text(seal(body_of(desk.fields())), encoding="ascii")
    desk.ea.timer()
    assert desk.names("bad") == sorted(names)
    assert desk.names("ack") == []


# --- what it does ---------------------------------------------------------------------------------


@pytest.mark.parametrize("margin_mode", ["hedging", "netting"])
@pytest.mark.parametrize("side", ["BUY", "SELL"])
def test_opens_modifies_and_closes(desk: AdvisorChannel, side: str, margin_mode: str) -> None:
    desk.ea.set(margin_mode=margin_mode)
    opened = desk.order(side=side)
    price = ASK if side == "BUY" else BID
    assert (opened["status"], opened["retcode"], opened["price"]) == ("FILLED", 10009, price)
    assert (opened["volume"], opened["adopted"], opened["kind"]) == (0.1, False, "open")
    assert (opened["bid"], opened["ask"]) == (BID, ASK)
    assert (opened["gmt"], opened["server_time"]) == (NOW, NOW + 10_800)
    (position,) = desk.positions()
    assert position["ticket"] == opened["position"] == opened["ticket"]
    _, stop, target = LEVELS[side]
    assert (position["sl"], position["tp"]) == (float(stop), float(target))
    assert (position["magic"], position["comment"]) == (MAGIC, opened["sid"])

    unused = {"side": "", "lots": "0.00", "entry": "0.00"}
    far = "2300.014" if side == "SELL" else "2400.016"
    moved = desk.order(kind="modify", sl=stop, tp=far, ref=opened["sid"], **unused)
    assert (moved["status"], moved["position"]) == ("FILLED", opened["position"])
    assert desk.positions()[0]["tp"] == (2400.02 if side == "BUY" else 2300.01), "whole ticks"

    back = "SELL" if side == "BUY" else "BUY"
    half = desk.order(kind="close", side=back, lots="0.04", ref=opened["sid"])
    assert (half["status"], half["volume"]) == ("FILLED", 0.04)
    rest = desk.order(kind="close", side=back, lots="0.06", ticket=opened["position"])
    assert (rest["status"], rest["position"]) == ("FILLED", opened["position"])
    assert desk.positions() == []
    assert [deal["entry"] for deal in desk.deals()] == ["in", "out", "out"]
    again = desk.order(kind="close", side=back, lots="0.06", ticket=opened["position"])
    assert (again["status"], again["reason"]) == ("REJECTED", "no_position")
    assert desk.names("work") == desk.names("inbox") == []


def test_a_modify_of_zero_leaves_the_level_as_it_is(desk: AdvisorChannel) -> None:
    opened = desk.order()
    desk.order(kind="modify", sl="2340.00", tp="0.00", ref=opened["sid"])
    assert [(p["sl"], p["tp"]) for p in desk.positions()] == [(2340.0, 2361.2)]
    desk.order(kind="modify", sl="0.00", tp="2362.00", ref=opened["sid"])
    assert [(p["sl"], p["tp"]) for p in desk.positions()] == [(2340.0, 2362.0)]
    sends = desk.ea.broker_state()["sends"]
    same = desk.order(kind="modify", sl="2340.00", tp="2362.00", ref=opened["sid"])
    assert (same["status"], same["adopted"]) == ("FILLED", True)
    assert desk.ea.broker_state()["sends"] == sends, "nothing to change, nothing sent"


def test_close_all_takes_every_position_of_its_magic_and_no_other(desk: AdvisorChannel) -> None:
    mine = [desk.ea.open_by_hand(GOLD, side, 0.1, magic=MAGIC) for side in ("BUY", "SELL", "BUY")]
    other = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC + 1)
    ack = desk.order(kind="close_all", side="", entry="0.00", sl="0.00", tp="0.00", lots="0.00")
    assert (ack["status"], ack["volume"], ack["retcode"]) == ("FILLED", 0.3, 10009)
    assert [position["ticket"] for position in desk.positions()] == [other]
    assert {deal["position"] for deal in desk.deals(ack["sid"])} == set(mine)
    empty = desk.order(kind="close_all", side="", symbol="", broker_symbol="")
    assert (empty["status"], empty["volume"], empty["retcode"]) == ("FILLED", 0.0, 0)


def test_close_all_goes_on_when_one_is_refused(desk: AdvisorChannel) -> None:
    for fault, status, left in ((10006, "PARTIAL", 1), (10012, "UNKNOWN", 1), (10004, "FILLED", 0)):
        for _ in range(3):
            desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC)
        desk.ea.fail(fault)
        name = desk.drop(kind="close_all", side="")
        desk.ea.wait(18)
        ack = desk.ack(name)
        assert (ack["status"], len(desk.positions())) == (status, left), ack
        assert ack["retcode"] == (10009 if status == "FILLED" else fault)
        assert ack["volume"] == (0.3 if left == 0 else 0.2)
        assert desk.ea.broker_state()["sends"] == (4 if fault == 10004 else 3)
        desk.ea.wipe()


def test_close_all_sends_nothing_twice_while_the_list_is_slow(desk: AdvisorChannel) -> None:
    tickets = [desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC) for _ in range(3)]
    desk.ea.set(visible_after=5)
    desk.ea.fail(10004)
    name = desk.drop(kind="close_all", side="")
    desk.ea.run(1)
    ack = desk.ack(name)
    assert (ack["status"], ack["volume"]) == ("FILLED", 0.3)
    assert desk.ea.broker_state()["sends"] == len(tickets) + 1


def test_ping_is_answered_and_moves_nothing(desk: AdvisorChannel) -> None:
    desk.halt()
    desk.ea.set(connected=0, algo=0, trade_mode="real")
    ack = desk.order(kind="ping", side="", comment="", magic=0, broker_symbol="")
    figures = [ack[key] for key in ("retcode", "ticket", "deal", "position", "price", "volume")]
    assert (ack["status"], ack["reason"], figures) == ("FILLED", "", [0] * 6)
    assert desk.ea.broker_state()["sends"] == 0


@pytest.mark.parametrize(("mask", "filling"), [(1, 1), (2, 2), (3, 1), (0, 0)])
def test_fills_as_the_symbol_allows(desk: AdvisorChannel, mask: int, filling: int) -> None:
    """The simulated broker refuses any other filling with 10030."""
    desk.ea.symbol(GOLD, filling=mask)
    assert desk.order()["status"] == "FILLED", filling


def test_closes_find_their_position_and_touch_no_other(desk: AdvisorChannel) -> None:
    stranger = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=0, comment="T000000000001")
    other = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC + 1)
    for target in ({"ticket": stranger}, {"ticket": other}, {"ref": "T000000000001"}, {}):
        ack = desk.order(kind="close", side="SELL", seq=desk.seq + 10, **target)
        assert ack["reason"] == "no_position", target
    mine = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC, comment="T000000000001")
    wrong_way = desk.order(kind="close", side="BUY", ticket=mine)
    assert wrong_way["reason"] == "no_position", "a BUY would add to a long"
    assert desk.order(kind="close", side="SELL", ref="T000000000001")["position"] == mine


# --- the guards -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """How to make one guard object: what to change in the signal and in the world."""

    signal: dict[str, Any] = field(default_factory=dict)
    world: Callable[[AdvisorChannel], None] = lambda desk: None
    text: Callable[[str], str] = seal
    version: int = 1


def _positions(desk: AdvisorChannel, count: int = 3) -> None:
    for number in range(count):
        desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC + 1 + number)


def _trades(desk: AdvisorChannel, count: int = 10) -> None:
    for _ in range(count):
        desk.ea.close_by_hand(desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC + 7))


def _trades_of_yesterday(desk: AdvisorChannel) -> None:
    desk.ea.clock(NOW - NOW % 86_400 - 1)
    _trades(desk, 11)
    desk.ea.clock(NOW)


def _terms(desk: AdvisorChannel, terms: dict[str, Any]) -> None:
    desk.ea.symbol(GOLD, **terms)


def _strangers(desk: AdvisorChannel) -> None:
    for _ in range(11):
        desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=219_999_999)


CASES: dict[str, Case] = {
    "auth": Case(text=lambda body: seal(body, "forged")),
    "version": Case(version=2),
    "schema": Case({"policy": "add"}),
    "channel": Case({"channel": "other"}),
    "account": Case({"account": ACCOUNT + 1}),
    "live": Case(world=lambda desk: desk.ea.set(trade_mode="real")),
    "kill": Case(world=AdvisorChannel.halt),
    "clock": Case({"created": NOW + 6}),
    "stale": Case({"expires": NOW}),
    "not_connected": Case(world=lambda desk: desk.ea.set(connected=0)),
    "autotrading_off": Case(world=lambda desk: desk.ea.set(algo=0)),
    "symbol": Case(world=lambda desk: desk.ea.symbol(GOLD, mode="disabled")),
    "session": Case(world=lambda desk: desk.ea.symbol(GOLD, session="closed")),
    "quote": Case(world=lambda desk: desk.ea.quote(GOLD, 2345.0, 2344.9)),
    "spread": Case({"max_spread_pts": 19}),
    "deviation": Case({"entry": "2344.89"}),
    "side": Case({"sl": "2345.21"}),
    "stops": Case({"sl": "2344.99"}, world=lambda desk: desk.ea.symbol(GOLD, stops_level=2)),
    "no_position": Case({"kind": "close", "side": "SELL", "ref": "TNOTTHERE"}),
    "volume": Case({"lots": "0.115"}),
    "max_lots": Case({"lots": "0.11"}),
    "max_positions": Case(world=_positions),
    "max_trades": Case(world=_trades),
    "policy": Case(world=lambda desk: desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC)),
}


def judged(desk: AdvisorChannel, *cases: Case) -> dict[str, Any]:
    """Return the ack of a signal under all these cases at once, and put the world back.

    Whatever is refused was not sent, and whatever is not refused was sent once.
    """
    try:
        for case in cases:
            case.world(desk)
        changes: dict[str, Any] = {}
        for case in reversed(cases):
            changes |= case.signal
        fields = desk.fields(**changes)
        version = max(case.version for case in cases)
        seals = [case.text for case in cases if case.text is not seal] or [seal]
        name = desk.put(seals[0](body_of(fields, version)), fields["seq"], fields["sid"])
        desk.ea.timer()
        ack = desk.ack(name)
        sends = desk.ea.broker_state()["sends"]
        assert sends == (ack["status"] not in ("REJECTED", "EXPIRED") and ack["retcode"] == 10009)
        return ack
    finally:
        desk.resume()
        desk.ea.wipe()
        desk.calm()


@pytest.mark.parametrize("reason", REASONS)
def test_each_guard_objects(guarded: AdvisorChannel, reason: str) -> None:
    ack = judged(guarded, CASES[reason])
    assert ack["reason"] == reason
    assert ack["status"] == ("EXPIRED" if reason == "stale" else "REJECTED")
    assert judged(guarded, Case())["status"] == "FILLED", "and nothing else stood in the way"


def guard_pairs() -> list[tuple[str, str]]:
    """Return every pair of guards that one signal can meet at once, neighbours first."""
    scopes = {guard.reason: guard.scope for guard in guards.GUARDS}
    pairs = [
        pair
        for pair in itertools.combinations(REASONS, 2)
        if not ("no_position" in pair and "open" in (scopes[pair[0]], scopes[pair[1]]))
        and pair != ("side", "stops")  # a level on the wrong side is not near
    ]
    random.Random(3).shuffle(pairs)
    return sorted(pairs, key=lambda pair: REASONS.index(pair[1]) - REASONS.index(pair[0]) > 2)


def test_of_two_guards_the_earlier_one_speaks(
    guarded: AdvisorChannel, scaled: Callable[..., int]
) -> None:
    pairs = guard_pairs()
    for first, second in pairs[: scaled(len(pairs), least=50)]:
        assert judged(guarded, CASES[first], CASES[second])["reason"] == first, (first, second)


# below, at and above the limit of each guard that counts: what to change, and whether it objects
EDGES: dict[str, list[tuple[dict[str, Any], dict[str, Any], bool]]] = {
    "clock": [({"created": NOW + seconds}, {}, seconds > 5) for seconds in (4, 5, 6)],
    "stale": [({"expires": NOW + seconds}, {}, seconds <= 0) for seconds in (-1, 0, 1)],
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


@pytest.mark.parametrize("reason", EDGES)
def test_the_edge_of_each_guard(guarded: AdvisorChannel, reason: str) -> None:
    for signal, terms, objects in EDGES[reason]:
        ack = judged(guarded, Case(signal, functools.partial(_terms, terms=terms)))
        guarded.ea.symbol(GOLD, lot_min=0.01, lot_step=0.01)
        assert (ack["reason"] == reason) == objects, (signal, ack)
        assert objects or ack["reason"] in ("", "retcode"), (signal, ack)


COUNTS = {("max_positions", 3): _positions, ("max_trades", 10): _trades}


def test_the_edge_of_the_counting_guards(guarded: AdvisorChannel) -> None:
    for (reason, limit), make in COUNTS.items():
        for count in (limit - 1, limit, limit + 1):
            case = Case(world=functools.partial(make, count=count))
            assert judged(guarded, case)["reason"] == (reason if count >= limit else "")
    yesterday = judged(guarded, Case(world=_trades_of_yesterday))
    assert yesterday["reason"] == "", "the day is that of UTC"
    assert judged(guarded, Case(world=_strangers))["reason"] == "", "only Torra's own count"


# NOW is a Saturday, day 6, and 13:45 at the server: second 49,500
SESSIONS = {
    "6:0-86400": True,
    "6:0-49500": False,
    "6:0-49501": True,
    "6:49500-86400": True,
    "6:49501-86400": False,
    "5:0-86400,0:0-86400": False,
    "6:0-3600,6:49499-49501,6:80000-86400": True,
    "6:0-3600,6:80000-86400": False,
}


def test_sessions_are_of_the_servers_day(guarded: AdvisorChannel) -> None:
    for session, opened in SESSIONS.items():
        ack = judged(guarded, Case(world=functools.partial(_terms, terms={"session": session})))
        assert ack["reason"] == ("" if opened else "session"), session


KINDS_ASKED = {"all": guards.KINDS, "trade": guards.SCOPES["trade"], "open": ("open",)}


@pytest.mark.parametrize("guard", [g for g in guards.GUARDS if g.reason in (
    "live", "kill", "not_connected", "autotrading_off", "symbol", "session", "quote", "channel",
    "account", "clock", "stale")], ids=lambda guard: guard.reason)  # fmt: skip
def test_guards_ask_the_kinds_that_they_are_for(
    guarded: AdvisorChannel, guard: guards.Guard
) -> None:
    for kind in guards.KINDS:
        position = guarded.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC + 1)
        side = {"open": "BUY", "close": "SELL"}.get(kind, "")
        magic = MAGIC if kind == "open" else MAGIC + 1
        signal = {"kind": kind, "side": side, "ticket": position, "magic": magic}
        ack = judged(guarded, CASES[guard.reason], Case(signal))
        asked = kind in KINDS_ASKED[guard.scope]
        assert (ack["reason"] == guard.reason) == asked, (kind, ack)


def test_the_inputs_that_no_file_can_loosen(tmp_path: Path, program: Path) -> None:
    refusing = {
        "account": {"account": 0},
        "autotrading_off": {"allow_trading": False},
        "max_lots": {"max_lots": 0.09},
    }
    for reason, inputs in refusing.items():
        desk = AdvisorChannel(tmp_path / reason, program=program, **inputs)
        given = {"account": 0} if reason == "account" else {}
        assert desk.order(**given)["reason"] == reason
        desk.ea.kill()
    free = {"max_lots": 0.0, "max_positions": 0, "max_trades_per_day": 0, "demo_only": False}
    desk = AdvisorChannel(tmp_path / "free", program=program, **free)
    _positions(desk)
    _trades(desk)
    desk.ea.set(trade_mode="real")
    assert desk.order(lots="0.50")["status"] == "FILLED", "0 = no limit"
    desk.ea.set(account=ACCOUNT + 1)
    assert desk.order(magic=MAGIC + 20)["reason"] == "account", "the terminal shows another account"
    desk.ea.kill()
    for inputs in ({"max_lots": -1}, {"max_positions": -1}, {"max_trades_per_day": -1},
                   {"account": -5}, {"channel": "../x"}, {"channel": ".x"}):  # fmt: skip
        with pytest.raises(ValueError, match="refused its inputs"):
            AdvisorChannel(tmp_path / "bad", program=program, **inputs)


def test_without_a_key_it_does_nothing(tmp_path: Path, program: Path) -> None:
    ea = CompiledEa(tmp_path / "main", program=program)
    (tmp_path / "main" / "inbox").mkdir()
    (tmp_path / "main" / "inbox" / "0000000001_TONE.json").write_text("x", encoding="ascii")
    ea.clock(NOW)
    ea.run(2)
    assert "no channel key" in ea.shown()
    assert [path.name for path in (tmp_path / "main").iterdir()] == ["inbox"]
    assert (tmp_path / "main" / "inbox" / "0000000001_TONE.json").exists()
    ea.kill()


def drawn(dice: random.Random) -> tuple[dict[str, Any], dict[str, Any], Ask, View]:
    """Return a signal and a world near the edges of the guards, here and for guards.py."""
    bid = dice.choice([0.0, 2344.9, 2345.0, 2345.0, 2345.0, 2345.1, 2350.0])
    ask = round(bid + dice.choice([-0.01, 0.0, 0.01, 0.2, 0.4, 0.41]), 2)
    side = dice.choice(["BUY", "SELL"])
    way = 1 if side == "BUY" else -1
    price = ask if side == "BUY" else bid
    entry = round(max(0.0, price + dice.choice([-0.31, -0.3, -0.01, 0.0, 0.0, 0.3, 0.31])), 2)
    stop = round(
        max(0.01, price - way * dice.choice([5.0, 5.0, 5.0, 0.5, 0.3, 0.01, 0.0, -1.0])), 2
    )
    target = round(max(0.01, price + way * dice.choice([9.0, 9.0, 9.0, 0.3, 0.0, -1.0])), 2)
    lots = dice.choice(["0.01", "0.10", "0.10", "0.10", "0.11", "0.005", "0.015", "2.00"])
    world = {
        "trade_mode": dice.choice(["demo"] * 9 + ["contest", "real"]),
        "connected": dice.random() > 0.05,
        "algo": dice.random() > 0.05,
        "halted": dice.random() < 0.05,
        "mode": dice.choice(["full"] * 6 + ["long_only", "short_only", "close_only", "disabled"]),
        "session": dice.choice(["always"] * 9 + ["closed"]),
        "stops_level": dice.choice([0, 0, 30, 50, 100]),
        "lot_max": dice.choice([100, 100, 1]),
        "quote": (bid, ask),
        "same": dice.random() < 0.1,
        "others": dice.choice([0, 0, 0, 2, 3]),
    }
    signal = {
        "side": side,
        "entry": f"{entry:.2f}",
        "sl": f"{stop:.2f}",
        "tp": f"{target:.2f}",
        "lots": lots,
        "created": NOW + dice.choice([-10, -10, -10, 5, 6]),
        "expires": NOW + dice.choice([170, 170, 170, 1, 0]),
        "channel": dice.choice(["main"] * 19 + ["other"]),
        "account": dice.choice([ACCOUNT] * 19 + [1]),
    }
    positions = int(world["same"]) + int(world["others"])
    asked = Ask("open", side, float(lots), entry, stop, target, signal["created"],
                signal["expires"], 40, 30, channel=signal["channel"],
                account=signal["account"])  # fmt: skip
    view = View(
        now=NOW,
        bid=bid,
        ask=ask,
        digits=2,
        channel="main",
        account=ACCOUNT,
        real_account=world["trade_mode"] == "real",
        halted=world["halted"],
        connected=world["connected"],
        algo_allowed=world["algo"],
        trade_mode=world["mode"],
        session_open=world["session"] == "always",
        stops_level=world["stops_level"],
        lot_max=world["lot_max"],
        max_lots=0.1,
        positions=positions,
        max_positions=3,
        trades_today=positions,
        max_trades_per_day=10,
        held=world["same"],
    )
    return signal, world, asked, view


def test_judges_as_the_table_of_guards_does(
    guarded: AdvisorChannel, scaled: Callable[..., int]
) -> None:
    dice = random.Random(11)
    seen: dict[str, int] = dict.fromkeys(["", *REASONS], 0)
    for _ in range(scaled(15_000, least=120)):
        signal, world, asked, view = drawn(dice)
        magics = [MAGIC] * world["same"] + [MAGIC + 1] * world["others"]
        for magic in magics:
            guarded.ea.open_by_hand(GOLD, "BUY", 0.01, magic=magic)
        guarded.ea.symbol(GOLD, mode=world["mode"], session=world["session"],
                       stops_level=world["stops_level"], lot_max=world["lot_max"])  # fmt: skip
        guarded.ea.quote(GOLD, *world["quote"])
        guarded.ea.set(trade_mode=world["trade_mode"], connected=int(world["connected"]),
                    algo=int(world["algo"]))  # fmt: skip
        if world["halted"]:
            guarded.halt()
        ack = judged(guarded, Case(signal))
        wanted = first_objection(asked, view)
        assert ack["reason"] == wanted, (signal, world)
        assert (ack["status"] == "FILLED") == (wanted == ""), ack
        seen[wanted] += 1
        for path in (guarded.folder / "done").iterdir():
            path.unlink()
    print({reason: count for reason, count in seen.items() if count})
