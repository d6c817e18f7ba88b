"""The Expert Advisor's source compiles as C++, and what it reads is signed, whole and its own.

What runs here is mql5/TorraBridge.mq5 itself, compiled against tests/doubles/ea_shim
(tests.doubles.compiled_ea).
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from typing import Any

from tests.doubles.advisor_channel import (
    AdvisorChannel,
    body_of,
    mac,
    seal,
)
from tests.doubles.compiled_ea import (
    SOURCE,
    decoded,
    names_called,
    without_texts,
)

# --- the text -------------------------------------------------------------------------------------

MQL5 = re.findall(
    r"\w+",
    """
    AccountInfoDouble AccountInfoInteger AccountInfoString ArrayResize ArraySize CharArrayToString
    Comment CopyRates CopyTicksRange CryptEncode DoubleToString EventKillTimer
    EventSetMillisecondTimer FileClose FileDelete FileFindClose FileFindFirst FileFindNext
    FileFlush FileIsExist FileMove FileOpen
    FileReadArray FileSize FileWriteArray FolderCreate GetTickCount64 HistoryDealGetDouble
    HistoryDealGetInteger HistoryDealGetString HistoryDealGetTicket HistoryDealsTotal
    HistoryOrderGetInteger HistoryOrderGetString HistoryOrderGetTicket HistoryOrdersTotal
    HistorySelect HistorySelectByPosition IntegerToString MQLInfoInteger MarketBookAdd
    MarketBookGet MarketBookRelease MathAbs MathFloor MathMin
    NormalizeDouble OrderCheck OrderGetInteger OrderGetString OrderGetTicket OrderSend OrdersTotal
    PeriodSeconds PositionGetDouble PositionGetInteger PositionGetString PositionGetTicket
    PositionSelectByTicket PositionsTotal Print StringCompare StringFind StringGetCharacter
    StringLen StringReplace StringSetCharacter StringSplit StringSubstr StringToCharArray
    StringToDouble StringToInteger StringToUpper StringTrimLeft StringTrimRight SymbolInfoDouble
    SymbolInfoInteger SymbolInfoSessionTrade SymbolInfoString SymbolInfoTick SymbolName
    SymbolSelect SymbolsTotal TerminalInfoInteger TimeGMT TimeTradeServer
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


SPOILT = (
    *(
        ('"lots":0.10', f'"lots":{wrong}')
        for wrong in ("1e-1", "-0.10", ".10", "0.", "00.10", '"0.10"', "null")
    ),
    ('"seq":', '"seq":0'), ('"sl":', ' "sl":'), ('"sl":', '"sl": '), ('"M15"', '"M\\15"'),
    ('"msg":"signal"', '"msg":"ack"'), ('"v":2', '"v":2.0'), ('"v":2', '"v":02'),
)  # fmt: skip
"""What makes an authentic text no message."""


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
    yield whole + ',"more":1'
    yield whole + "}"
    for old, new in SPOILT:
        yield whole.replace(old, new)
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
