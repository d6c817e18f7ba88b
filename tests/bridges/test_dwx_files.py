"""Files that DWX Connect is still writing, or wrote badly, are never read wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worlds.dwx_channel import SID, Scaled, World
from torra.bridges.dwx.files import LastGood, parse_account


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.journey
def test_half_written_files_change_nothing(world: World, scaled: Scaled) -> None:
    looks = [0]

    def half() -> None:
        looks[0] += 1
        world.bridge.poll()
        health = world.bridge.health()
        assert health.ok, health.detail
        assert world.bridge.quote("XAUUSD.m")

    world.opened()
    world.fake.on_half = half
    wanted = scaled(10_000, least=150)
    turn = 0
    while looks[0] < wanted:
        turn += 1
        world.fake.prices["XAUUSD.m"] = (2345.0 + turn / 100, 2345.2 + turn / 100)
        world.fake.write("Messages", "{}")
        world.fake._written = -1e9
        world.clock.sleep(0.5)
    assert world.bridge.poll() == []
    assert looks[0] >= wanted


def test_no_reading_of_a_file_that_is_being_written_is_ever_wrong(
    tmp_path: Path, scaled: Scaled, record_property: Callable[..., None]
) -> None:
    path = tmp_path / "DWX_Orders.txt"
    row = (
        '"{0}": {{"magic": {0}, "symbol": "X", "lots": 0.1, "type": "buy", "open_price": 1.0, '
        '"open_time": "2026.03.04 12:00:00", "SL": 0, "TP": 0, "pnl": 0, "swap": 0, "comment": ""}}'
    )
    texts = [
        f'{{"account_info": {{"name": "x", "number": {count}, "currency": "USD", "leverage": 1, '
        '"free_margin": 1, "balance": 1, "equity": 1}, "orders": {'
        + ", ".join(row.format(n) for n in range(count))
        + "}}"
        for count in (1, 40, 200)
    ]
    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            for text in texts:
                with path.open("w") as file:
                    for start in range(0, len(text), 4096):
                        file.write(text[start : start + 4096])
                        file.flush()
                ended.wait(0.0005)

    writer = threading.Thread(target=write)
    writer.start()
    good, cut, reads = LastGood(path, parse_account), 0, 0
    wanted = scaled(30_000, least=300)
    try:
        while reads < wanted or not cut or good.value is None:
            reads += 1
            good._seen = (0, 0)
            found = good.read()
            raw = path.read_text() if path.exists() else ""
            cut += not raw.endswith("}}")
            if found is not None:
                assert len(found.rows) == found.number
            assert reads < 100 * wanted
    finally:
        ended.set()
        writer.join()
    record_property("seen", f"{reads:,} readings, {cut:,} of them cut")


@pytest.mark.parametrize(
    "raw",
    [b"", b"\r\n", b"{", b"[]", b"{}", b"null", b"\0\0\0", b"\xff\xfe", b'{"account_info": 1}',
     b'{"account_info": {"number": "x"}, "orders": {}}', b"[" * 100_000,
     b'{"account_info": {"name": "", "number": 1, "currency": "USD", "leverage": 1, '
     b'"free_margin": NaN, "balance": 1, "equity": 1}, "orders": {}}'],
)  # fmt: skip
def test_a_broken_file_leaves_the_last_good_one(world: World, raw: bytes) -> None:
    for name in ("Orders", "Messages", "Market_Data", "Historic_Trades"):
        (world.folder / f"DWX_{name}.txt").write_bytes(raw)
    assert world.bridge.health().facts["account"] == 12345678
    assert world.bridge.poll() == []
    world.bridge.books()


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_names_in_any_code_page_are_read(tmp_path: Path, encoding: str) -> None:
    world = World(tmp_path)
    world.fake.encoding, world.fake.owner = encoding, "Jürgen Müller"
    world.fake.init()
    world.look(6)
    assert world.bridge.health().ok


def test_quotation_marks_in_foreign_comments_do_not_blind_it(world: World) -> None:
    world.fake.owner = 'Jane "J" Trader'
    world.fake.hold("EURUSD", comment='my "best" trade\\')
    world.clock.pass_by(1)
    assert world.bridge.health().ok
    assert world.opened().status == "FILLED"
    books = world.bridge.books()
    assert books is not None
    assert {position.comment for position in books.positions} == {SID, 'my "best" trade\\'}
