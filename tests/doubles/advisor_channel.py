"""A channel between a test and the compiled Expert Advisor, and a reader of what it writes.

Signals are written here, and messages read, by code of its own: it shares no line with
torra.bridges.torra.messages, so that both are held against the text of the protocol.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import pytest

from tests.doubles.compiled_ea import ACCOUNT, CompiledEa, Died

KEY = "the channel's key: grüße, 64 bytes or less"
NOW = 1_771_065_900
"""2026-02-14 is a Saturday; the simulated session is always open."""

OFFSET = 10_800
PATIENCE = 15
"""Seconds of connected time that an order is looked for."""

GOLD = "XAUUSD.m"
MAGIC = 220_000_114
BID, ASK = 2345.00, 2345.20

VERSION = 2
"""Of the protocol."""

KEYS = {
    "signal": "kind sid seq channel account created expires symbol broker_symbol side type entry "
    "sl tp lots magic comment max_spread_pts max_dev_pts policy bar_time tf ref ticket origin "
    "seal",
    "ack": "sid seq channel kind status reason retcode ticket deal position price volume bid ask "
    "server_time gmt adopted",
    "ea": "n gmt server_offset_s account trade_mode margin_mode connected algo_allowed "
    "trade_allowed kill ea_version last_seq inbox work balance equity free_margin leverage "
    "currency channel",
    "positions": "n gmt channel account count",
    "deals": "n gmt since channel account count",
    "symbols": "n gmt channel account count",
}
DECIMALS = re.findall(r"\w+", "entry sl tp lots price volume bid ask balance equity free_margin")
ROWS = {"positions": ("p", 11), "deals": ("d", 12), "symbols": ("s", 14)}

SIGNAL: dict[str, Any] = {
    "kind": "open",
    "sid": "",
    "seq": 0,
    "channel": "main",
    "account": ACCOUNT,
    "created": NOW - 10,
    "expires": NOW + 170,
    "symbol": "XAUUSD",
    "broker_symbol": GOLD,
    "side": "BUY",
    "type": "market",
    "entry": "2345.20",
    "sl": "2338.40",
    "tp": "2361.20",
    "lots": "0.10",
    "magic": MAGIC,
    "comment": "",
    "max_spread_pts": 40,
    "max_dev_pts": 30,
    "policy": "reject_if_open",
    "bar_time": NOW - 900,
    "tf": "M15",
    "ref": "",
    "ticket": 0,
    "origin": "tick GOLD torra_files 4.2 - -",
}
LEVELS = {"BUY": ("2345.20", "2338.40", "2361.20"), "SELL": ("2345.00", "2351.60", "2329.20")}


def in_a_path(symbol: str) -> str:
    """Return a symbol's name as part of the name of a file."""
    return quote(symbol, safe="").replace(".", "%2E").replace("~", "%7E")


def mac(text: str, key: str = KEY) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def seal(body: str, key: str = KEY) -> str:
    return f'{body},"mac":"{mac(body, key)}","end":"1"}}'


def decision(fields: dict[str, Any]) -> str:
    """Return the seal of what a signal orders: a SHA-256 over its decision."""
    numbers = [
        re.sub(r"(\.\d*?)0+$", r"\1", str(fields[name])).rstrip(".")
        for name in ("lots", "entry", "sl", "tp")
    ]
    words = [fields[name] for name in ("sid", "kind", "symbol", "side")]
    rest = [fields[name] for name in ("created", "expires", "tf", "bar_time", "ref", "origin")]
    text = "|".join(map(str, ["1", *words, *numbers, *rest]))
    return hashlib.sha256(text.encode()).hexdigest()


def body_of(fields: dict[str, Any], version: int = VERSION, message: str = "signal") -> str:
    pairs = [("v", version), ("msg", message), *fields.items()]
    return "{" + ",".join(f'"{key}":{_text(key, value)}' for key, value in pairs)


def _text(key: str, value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) and key not in DECIMALS else str(value)


VALUE = r'"[^\x00-\x1f"\\\x7f]*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|true|false'


def check(raw: bytes, message: str, key: str = KEY) -> dict[str, Any]:
    """Return the fields of a message after holding every byte of it against the protocol."""
    text = raw.decode()
    assert text.isascii() or message in ROWS, "only the rows name symbols"
    assert len(raw) <= (262_144 if message in ROWS else 4096)
    body, tail = text[:-84], text[-84:]
    assert re.fullmatch(r',"mac":"[0-9a-f]{64}","end":"1"\}', tail), tail
    assert tail[8:72] == mac(body, key), "the signature does not fit"
    head = f'{{"v":{VERSION},"msg":"{message}"'
    assert body.startswith(head)
    rest = body[len(head) :]
    assert re.fullmatch(rf'(,"[a-z0-9_]+":({VALUE}))*', rest), rest
    pairs = re.findall(rf',"([a-z0-9_]+)":({VALUE})', rest)
    names = KEYS[message].split()
    assert [name for name, _ in pairs[: len(names)]] == names
    fields = {name: _value(name, text) for name, text in pairs}
    assert len(fields) == len(pairs), "a key stands twice"
    if message in ROWS:
        _check_rows(fields, *ROWS[message])
    else:
        assert len(pairs) == len(names)
    return fields


def _value(name: str, text: str) -> Any:
    if text.startswith('"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    assert ("." in text) == (name in DECIMALS), f"{name}: {text}"
    return float(text) if "." in text else int(text)


def _check_rows(fields: dict[str, Any], letter: str, columns: int) -> None:
    rows = [value for name, value in fields.items() if re.fullmatch(rf"{letter}\d+", name)]
    assert list(fields)[-len(rows) or len(fields) :] == [f"{letter}{i}" for i in range(len(rows))]
    assert fields["count"] == len(rows)
    fields["rows"] = [row.split("|") for row in rows]
    assert all(len(row) == columns for row in fields["rows"])


class AdvisorChannel:
    """A folder, the compiled advisor on it, gold at 2345.00 to 2345.20, and signals to write."""

    def __init__(self, folder: Path, **inputs: Any) -> None:
        self.folder = folder / str(inputs.get("channel", "main"))
        chosen: dict[str, Any] = {"bar_symbols": GOLD, "bar_timeframes": "M15,H1", **inputs}
        self.ea = CompiledEa(self.folder, key=str(chosen.pop("key", KEY)), **chosen)
        self.seq = 0
        self.calm()
        self.ea.timer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ea.kill()

    def calm(self) -> None:
        """Bring market and clock to where every signal of `drop` passes the guards."""
        self.ea.clock(NOW)
        self.ea.symbol(GOLD, digits=2, stops_level=0, mode="full", session="always", lot_max=100)
        self.ea.quote(GOLD, BID, ASK)

    def fields(self, **changes: Any) -> dict[str, Any]:
        """Return a signal's fields; levels follow the side, comment and sid the number."""
        seq = changes.get("seq") or self.seq + 1
        sid = changes.get("sid", f"T{seq:012d}")
        entry, stop, target = LEVELS[changes.get("side") or "BUY"]
        given = {"sid": sid, "seq": seq, "comment": sid, "entry": entry, "sl": stop, "tp": target}
        told = {**SIGNAL, **given, **changes}
        return {**told, "seal": changes.get("seal") or decision(told)}

    def put(self, text: str | bytes, seq: int, sid: str) -> str:
        """Let a file of these bytes appear in inbox/, whole; return its name."""
        self.seq = max(self.seq, seq)
        name = f"{seq:010d}_{sid}.json"
        aside = self.folder / "tmp" / f"torra.{name}"
        aside.write_bytes(text if isinstance(text, bytes) else text.encode())
        aside.rename(self.folder / "inbox" / name)
        return name

    def drop(self, **changes: Any) -> str:
        """Write a signal into inbox/; return the name of its file."""
        fields = self.fields(**changes)
        return self.put(seal(body_of(fields)), fields["seq"], fields["sid"])

    def order(self, **changes: Any) -> dict[str, Any]:
        """Write a signal, run one round and return its ack."""
        name = self.drop(**changes)
        self.ea.timer()
        return self.ack(name)

    def ack(self, name: str) -> dict[str, Any]:
        """Return the ack of a signal, checked."""
        return check((self.folder / "ack" / name).read_bytes(), "ack")

    def answered(self, name: str) -> bool:
        return (self.folder / "ack" / name).exists()

    def state(self, message: str) -> dict[str, Any]:
        """Return a state file, checked."""
        return check((self.folder / "state" / f"{message}.json").read_bytes(), message)

    def names(self, folder: str) -> list[str]:
        return sorted(path.name for path in (self.folder / folder).iterdir())

    def empty(self) -> bool:
        """Return whether nothing is left to do."""
        return self.names("inbox") == self.names("work") == []

    def halt(self) -> None:
        (self.folder / "control" / "HALT").write_text("a test", encoding="ascii")

    def resume(self) -> None:
        (self.folder / "control" / "HALT").unlink(missing_ok=True)

    def deals(self, sid: str = "", entry: str = "") -> list[dict[str, Any]]:
        """Return the broker's deals, of one comment and of one entry."""
        return self.ea.deals(sid, entry)

    def positions(self) -> list[dict[str, Any]]:
        return self.ea.positions()


def opened(desk: AdvisorChannel) -> dict[str, Any]:
    return desk.order(sid="TOPENED")


def given(desk: AdvisorChannel, kind: str) -> str:
    """Write a signal of a kind, with a position for it to act on; return its name."""
    if kind == "open":
        return desk.drop()
    ref = opened(desk)["sid"]
    changes: dict[str, Any] = {
        "close": {"side": "SELL"},
        "modify": {"side": "", "sl": "2340.00"},
        "close_all": {"side": ""},
    }[kind]
    return desk.drop(kind=kind, ref=ref, **changes)


def live_on(desk: AdvisorChannel, point: str) -> None:
    """Run until the point kills the advisor, then start its next life."""
    with pytest.raises(Died):
        desk.ea.wait(PATIENCE + 2)
    desk.ea.restart(crash_at=point or None)
