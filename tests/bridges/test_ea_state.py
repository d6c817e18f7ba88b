"""What the Expert Advisor tells of itself: heartbeat, positions, deals, symbols, bars.

Every file is held against the protocol byte for byte (tests.doubles.advisor_channel).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.advisor_channel import (
    GOLD,
    KEY,
    MAGIC,
    NOW,
    OFFSET,
    VERSION,
    AdvisorChannel,
    body_of,
    in_a_path,
    mac,
    seal,
)
from tests.doubles.compiled_ea import (
    ACCOUNT,
)
from torra.feeds.mt5_files import BarFileOwner, read_sheet

# --- what it tells of itself ----------------------------------------------------------------------


def test_the_heartbeat(desk: AdvisorChannel) -> None:
    beat = desk.state("ea")
    wanted = {"gmt": NOW, "server_offset_s": OFFSET, "account": 12345678, "trade_mode": "demo",
              "margin_mode": "hedging", "connected": True, "algo_allowed": True,
              "trade_allowed": True, "kill": False, "ea_version": "2.2", "last_seq": 0, "inbox": 0,
              "work": 0, "balance": 10_000.0, "leverage": 100, "currency": "USD",
              "channel": "main"}  # fmt: skip
    assert {key: beat[key] for key in wanted} == wanted
    numbers = []
    for _ in range(5):
        desk.ea.run(1)
        numbers.append(desk.state("ea")["n"])
    assert numbers == sorted(set(numbers)), "one a second, each with a number of its own"
    desk.ea.set(connected=0, algo=0, trade=0, margin_mode="exchange", trade_mode="contest")
    desk.halt()
    desk.order()
    desk.ea.restart()
    desk.ea.timer()
    beat = desk.state("ea")
    assert beat["n"] > numbers[-1], "also across a restart"
    shown = [beat[key] for key in ("connected", "algo_allowed", "trade_allowed", "kill")]
    assert shown == [False, False, False, True]
    assert (beat["margin_mode"], beat["trade_mode"]) == ("exchange", "contest")
    assert beat["last_seq"] == 1


def test_the_heart_beats_while_a_slow_broker_is_at_work(desk: AdvisorChannel) -> None:
    desk.ea.set(send_takes=2)
    for number in range(3):
        desk.drop(magic=MAGIC + number)
    desk.ea.wait(1)
    assert len(desk.deals()) == 3
    beat = desk.state("ea")
    assert beat["gmt"] >= NOW + 1 + 3 * 2, "one round of seven seconds, and still alive at its end"
    assert beat["work"] == 0


def test_the_offset_is_whole_quarters_whatever_the_seconds_say(desk: AdvisorChannel) -> None:
    for server, told in ((10_803, 10_800), (7_197, 7_200), (-12_601, -12_600), (19_800, 19_800)):
        desk.ea.set(server_offset=server)
        desk.ea.run(2)
        assert desk.state("ea")["server_offset_s"] == told
        assert desk.order()["status"] == "FILLED", "expiry is told in UTC"
        now = int(desk.ea.broker_state()["gmt"])
        assert desk.order(expires=now)["status"] == "EXPIRED"
        desk.ea.wipe()


def test_positions_and_deals(desk: AdvisorChannel) -> None:
    mine = desk.order()
    manual = desk.ea.open_by_hand(GOLD, "SELL", 0.25, comment='by"hand|ü')
    desk.ea.timer()
    told = desk.state("positions")
    assert told["rows"] == [
        [str(mine["position"]), GOLD, "LONG", "0.10", "2345.20", "2338.40", "2361.20", str(MAGIC),
         mine["sid"], "-2.00", str(NOW)],
        [str(manual), GOLD, "SHORT", "0.25", "2345.00", "0.00", "0.00", "0", "by_hand___", "-5.00",
         str(NOW)],
    ]  # fmt: skip
    before = told["n"]
    desk.ea.run(1)
    assert desk.state("positions")["n"] == before, "unchanged"
    desk.ea.run(5)
    assert desk.state("positions")["n"] > before, "every five seconds"
    desk.ea.quote(GOLD, 2338.0, 2338.2)
    desk.ea.timer()
    assert [row[0] for row in desk.state("positions")["rows"]] == [str(manual)]
    deals = desk.state("deals")
    assert deals["since"] == deals["gmt"] - 7 * 86_400
    assert [row[3:5] + row[-1:] for row in deals["rows"]] == [
        ["in", "BUY", "expert"],
        ["out", "SELL", "sl"],
    ], "the stop's deal has no magic number, but its position is ours; the manual one is not"
    assert deals["rows"][1][1] == str(mine["position"])
    assert (deals["rows"][1][7], deals["rows"][1][8]) == ("-72.00", "0")


def test_deals_end_by_target_hand_and_stop_out(desk: AdvisorChannel) -> None:
    every: list[tuple[Any, str]] = [("tp", "tp"), (0, "client"), (6, "stop_out")]
    for number, (ends, word) in enumerate(every):
        ack = desk.order(magic=MAGIC + number)
        if ends == "tp":
            desk.ea.quote(GOLD, 2361.3, 2361.5)
        else:
            desk.ea.close_by_hand(ack["position"], reason=int(ends))
        desk.calm()
        desk.ea.timer()
        assert desk.state("deals")["rows"][-1][-1] == word


def test_deals_older_than_a_week_belong_to_us_by_their_opening(desk: AdvisorChannel) -> None:
    mine = desk.ea.open_by_hand(GOLD, "BUY", 0.1, magic=MAGIC)
    other = desk.ea.open_by_hand(GOLD, "BUY", 0.1)
    desk.ea.clock(NOW + 20 * 86_400)
    desk.ea.close_by_hand(mine)
    desk.ea.close_by_hand(other)
    desk.ea.timer()
    assert [row[1] for row in desk.state("deals")["rows"]] == [str(mine)]


def test_the_books_stay_below_their_limits(desk: AdvisorChannel) -> None:
    for _ in range(520):
        desk.ea.close_by_hand(desk.ea.open_by_hand(GOLD, "BUY", 0.01, magic=MAGIC))
    desk.ea.timer()
    deals = desk.state("deals")
    assert deals["count"] == 500
    assert deals["rows"][-1][0] == str(max(deal["ticket"] for deal in desk.deals()))


def test_symbols(desk: AdvisorChannel) -> None:
    euro = {"digits": 5, "tick_size": 0.00001, "contract": 100_000, "lot_step": 0.001}
    lots = {"lot_min": 0.001, "lot_max": 50}
    desk.ea.symbol("EURUSD.m", **euro, **lots, stops_level=12, mode="long_only")
    desk.ea.symbol("HIDDEN", watched=0)
    desk.ea.run(6)
    rows = desk.state("symbols")["rows"]
    assert rows == [
        ["EURUSD.m", "5", "0.00001", "1.00", "100000.00", "0.001", "0.001", "50.00", "12",
         "long_only", "USD", "0.00000", "0.00000", "0"],
        [GOLD, "2", "0.01", "1.00", "100.00", "0.01", "0.01", "100.00", "0", "full", "USD",
         "2345.00", "2345.20", str(NOW)],
    ]  # fmt: skip


def sheet(desk: AdvisorChannel, timeframe: str, symbol: str = GOLD) -> list[list[str]]:
    """Return the rows of a bars file, checked: whose they are, how many, and the server's offset.

    Torra's own reader must agree.
    """
    raw = (desk.folder / "bars" / f"{in_a_path(symbol)}_{timeframe}.csv").read_bytes()
    body, _, last = raw.decode("ascii").rpartition("\n")
    first, columns, *rows = body.split("\n")
    assert first == (
        f'{{"v":{VERSION},"msg":"bars","channel":"{desk.folder.name}","account":{ACCOUNT},'
        f'"broker_symbol":"{symbol}","tf":"{timeframe}","count":{len(rows)},'
        f'"server_offset_s":{OFFSET}}}'
    )
    assert columns == "time,open,high,low,close,tick_volume,spread"
    assert last == f"end,{mac(body + chr(10))}"
    read = read_sheet(raw, KEY, BarFileOwner(desk.folder.name, ACCOUNT, symbol, timeframe))
    assert read.wall.tolist() == [int(row.split(",")[0]) for row in rows]
    assert read.offset == OFFSET
    return [row.split(",") for row in rows]


def test_bars_are_closed_ones_and_rewritten_when_one_closes(desk: AdvisorChannel) -> None:
    start = NOW + OFFSET - 4 * 900  # NOW is a quarter
    for number in range(5):
        desk.ea.bar(GOLD, 900, start + 900 * number, (1, 2 + number, 0.5, 1.25), 10 + number, 20)
    desk.ea.run(1)
    rows = sheet(desk, "M15")
    assert [int(row[0]) for row in rows] == [start + 900 * number for number in range(4)]
    assert rows[3] == [str(start + 2700), "1.00", "5.00", "0.50", "1.25", "13", "20"]
    assert desk.names("bars") == [f"{in_a_path(GOLD)}_M15.csv"], "no bars of H1, no file"
    written = (desk.folder / "bars" / f"{in_a_path(GOLD)}_M15.csv").stat().st_mtime_ns
    desk.ea.run(3)
    assert (desk.folder / "bars" / f"{in_a_path(GOLD)}_M15.csv").stat().st_mtime_ns == written
    desk.ea.clock(NOW + 908)
    desk.ea.run(1)
    assert len(sheet(desk, "M15")) == 4, "ten seconds of grace"
    desk.ea.run(2)
    assert len(sheet(desk, "M15")) == 5, "closed by the clock, without a next tick"
    desk.ea.bar(GOLD, 900, start + 4500, (1, 2, 1, 2), 1, 20)
    desk.ea.run(2)
    assert len(sheet(desk, "M15")) == 5, "the new one is forming"


def test_bars_keep_the_newest_thousand(desk: AdvisorChannel, scaled: Callable[..., int]) -> None:
    many = 1000 + 50
    first = NOW + OFFSET - 3600 * many
    for number in range(many):
        desk.ea.bar(GOLD, 3600, first + 3600 * number, (1, 2, 0.5, 1.5), 10, 20)
    desk.ea.clock(NOW + 20)
    desk.ea.run(1)
    rows = sheet(desk, "H1")
    assert len(rows) == 1000
    assert int(rows[-1][0]) == NOW + OFFSET - 3600


def test_bars_of_one_name_are_not_those_of_another(tmp_path: Path) -> None:
    """(F2) What the Expert Advisor signs for one place is refused in every other."""
    files: dict[BarFileOwner, bytes] = {}
    for channel in ("main", "second"):
        inputs = {"bar_symbols": f"{GOLD},EURUSD", "channel": channel}
        with AdvisorChannel(tmp_path, **inputs) as desk:
            desk.ea.symbol("EURUSD", digits=5)
            for symbol, seconds in itertools.product((GOLD, "EURUSD"), (900, 3600)):
                time = NOW + OFFSET - 3600 - (NOW + OFFSET) % 3600
                desk.ea.bar(symbol, seconds, time, (1, 2, 0.5, 1.5), 10, 20)
            desk.ea.wait(1)
            for symbol, timeframe in itertools.product((GOLD, "EURUSD"), ("M15", "H1")):
                sheet(desk, timeframe, symbol)
                raw = (desk.folder / "bars" / f"{in_a_path(symbol)}_{timeframe}.csv").read_bytes()
                files[BarFileOwner(channel, ACCOUNT, symbol, timeframe)] = raw
    assert len(files) == 8
    for wanted, (held, raw) in itertools.product(files, files.items()):
        if wanted == held:
            assert len(read_sheet(raw, KEY, wanted).wall) == 1
        else:
            with pytest.raises(ValueError, match="it holds the bars of"):
                read_sheet(raw, KEY, wanted)


def test_another_account_is_another_name(desk: AdvisorChannel) -> None:
    desk.ea.bar(GOLD, 900, NOW + OFFSET - 900, (1, 2, 0.5, 1.5), 10, 20)
    path = desk.folder / "bars" / f"{in_a_path(GOLD)}_M15.csv"
    desk.ea.set(account=0)
    desk.ea.clock(NOW + 20)
    desk.ea.wait(2)
    assert not path.exists(), "nobody is logged in"
    for account in (ACCOUNT, 7, ACCOUNT):
        desk.ea.set(account=account)
        desk.ea.wait(2)
        assert f'"account":{account},' in path.read_text("ascii")


def test_the_longest_timeframe_is_written_first(tmp_path: Path) -> None:
    """The desk stores it first; here the disk refuses the first files of a round."""
    wanted = " M15,H4 ,M7,M1,H1"
    with AdvisorChannel(tmp_path, bar_timeframes=wanted) as desk:
        there = ["H4", "H1", "M15", "M1"]
        for seconds in (14_400, 3600, 900, 60):
            time = NOW + OFFSET - 2 * 14_400
            desk.ea.bar(GOLD, seconds, time - time % seconds, (1, 2, 0.5, 1.5), 10, 20)
        for failing in (1, 2, 3):
            for path in (desk.folder / "bars").iterdir():
                path.unlink()
            desk.ea.set(account=failing)  # so that every file is to be written anew
            desk.ea.fail_files(fail_writes=1 + failing)  # the heartbeat comes before the bars
            desk.ea.wait(1)
            assert desk.names("bars") == sorted(
                f"{in_a_path(GOLD)}_{name}.csv" for name in there[failing:]
            )


def test_the_lists_of_bars_may_have_blanks_and_mistakes(tmp_path: Path) -> None:
    inputs = {"bar_symbols": f" NONE, {GOLD} ,,", "bar_timeframes": " M15 ,M7, H1"}
    with AdvisorChannel(tmp_path, **inputs) as desk:
        for seconds in (900, 3600):
            start = NOW + OFFSET - 3 * 3600
            desk.ea.bar(GOLD, seconds, start - start % seconds, (1, 2, 0.5, 1.5), 10, 20)
        desk.ea.wait(1)
        assert desk.names("bars") == [f"{in_a_path(GOLD)}_H1.csv", f"{in_a_path(GOLD)}_M15.csv"]
        said = "\n".join(desk.ea.log())
        assert "no symbol NONE" in said
        assert "no timeframe M7" in said


def test_torras_silence_is_shown_and_changes_nothing(desk: AdvisorChannel) -> None:
    path = desk.folder / "state" / "torra.json"
    assert "has not been heard of" in desk.ea.shown()
    for age, words in ((5, "alive"), (60, "alive"), (61, "silent for 61 s")):
        desk.ea.clock(NOW - 1, wall=True)
        beat = {"n": 1, "gmt": NOW - age, "channel": "main", "state": "ACTIVE"}
        path.write_text(seal(body_of(beat, message="torra")), encoding="ascii")
        desk.ea.wait(1)
        assert words in desk.ea.shown()
    assert desk.order()["status"] == "FILLED"
    other = {"n": 1, "gmt": NOW, "channel": "other", "state": "ACTIVE"}
    former = {"n": 1, "gmt": NOW, "state": "ACTIVE"}
    for text, words in (
        (body_of(other, message="torra"), "has not been heard of"),
        (body_of(former, version=1, message="torra"), "of another protocol"),
    ):
        path.write_text(seal(text), encoding="ascii")
        desk.ea.wait(1)
        assert words in desk.ea.shown()
    path.write_text("forged", encoding="ascii")
    desk.ea.run(1)
    assert "has not been heard of" in desk.ea.shown()


def test_the_key_stays_out_of_files_and_logs(desk: AdvisorChannel) -> None:
    desk.order()
    desk.put("forged", 9, "TFORGED")
    desk.ea.run(2)
    texts = [path.read_bytes() for path in desk.folder.rglob("*") if path.is_file()]
    assert len(texts) > 6
    assert not [text for text in texts if KEY.encode() in text]
    assert not [line for line in (*desk.ea.log(), desk.ea.shown()) if KEY in line]
