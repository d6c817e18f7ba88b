"""What the Expert Advisor counts of each bar equals a recount from the same ticks and books.

It is compiled and run (tests.doubles.compiled_ea); the recount is tests.worlds.flow_files.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.advisor_channel import GOLD, KEY, OFFSET, AdvisorChannel, in_a_path, mac
from tests.doubles.compiled_ea import ACCOUNT
from tests.worlds.flow_files import HEADER, Bar, Entry, line, market

NOW = 1_771_200_000
"""A full minute, hour and four hours of the server's clock, and UTC plus OFFSET."""

FIRST = NOW + OFFSET
BOOK: list[Entry] = [(1, 2000.10, 1, 0.0), (1, 2000.30, 3, 0.5), (2, 2000.00, 2, 0.0)]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., AdvisorChannel]]:
    opened: list[AdvisorChannel] = []

    def begin(*, depth: int = 10, **inputs: Any) -> AdvisorChannel:
        told: dict[str, Any] = {"bar_timeframes": "M1", **inputs}
        folder = tmp_path / str(len(opened))
        desk = AdvisorChannel(folder, **told)
        opened.append(desk)
        desk.ea.clock(NOW)
        desk.ea.symbol(GOLD, depth=depth)
        desk.ea.restart()  # a symbol that had no depth before was not watched
        desk.ea.timer()
        return desk

    yield begin
    for desk in opened:
        desk.ea.kill()


def path(desk: AdvisorChannel, timeframe: str = "M1") -> Path:
    return desk.folder / "flow" / f"{in_a_path(GOLD)}_{timeframe}.csv"


def rows(desk: AdvisorChannel, timeframe: str = "M1") -> list[str]:
    """Return the lines of the bars, after holding the file against its description."""
    raw = path(desk, timeframe).read_text("ascii")
    body, _, end = raw.rpartition("end,")
    assert end == mac(body, KEY)
    head, columns, *found, nothing = body.split("\n")
    assert (columns, nothing) == (HEADER, "")
    assert head == (
        f'{{"v":2,"msg":"flow","channel":"main","account":{ACCOUNT},"broker_symbol":"{GOLD}",'
        f'"tf":"{timeframe}","count":{len(found)},"digits":2,"server_offset_s":{OFFSET}}}'
    )
    return found


def close(desk: AdvisorChannel, bar: Bar, *, seconds: int = 60, ticks: int | None = None) -> None:
    """Let a bar happen: its ticks, its books at their seconds, its end, and the rounds after."""
    ea = desk.ea
    if bar.ticks:
        ea.ticks(GOLD, bar.ticks)
    for second, book in bar.books:
        pass_to(desk, second - OFFSET)
        ea.book(GOLD, book)
    ea.bar(GOLD, seconds, bar.time, (1, 1, 1, 1), len(bar.ticks) if ticks is None else ticks, 1)
    pass_to(desk, bar.time + seconds - OFFSET)
    # The next one has begun: so this one is over.
    ea.bar(GOLD, seconds, bar.time + seconds, (1, 1, 1, 1), 1, 1)
    ea.timer(1, 1.0)


def close_euro(desk: AdvisorChannel) -> None:
    """Let a bar of another symbol happen, of one tick."""
    desk.ea.ticks("EURUSD", [(FIRST * 1000, 1.10000, 1.10012, 0.0, 6)])
    for time in (FIRST, FIRST + 60):
        desk.ea.bar("EURUSD", 60, time, (1, 1, 1, 1), 1, 1)
    desk.ea.timer(3, 1.0)


def pass_to(desk: AdvisorChannel, moment: float) -> None:
    """Move the clock there, with a round at least every ten seconds."""
    now = float(desk.ea.broker_state()["gmt"])
    while moment - now > 10:
        desk.ea.timer(1, 10.0)
        now += 10
    if moment > now:
        desk.ea.timer(1, moment - now)


def recount(bars: Sequence[Bar], *, watched_from: int) -> list[str]:
    """Return the lines of bars whose book is watched from a moment on."""
    book: Sequence[Entry] | None = None
    found = []
    for bar in bars:
        if bar.books:
            book = bar.books[-1][1]
        watched = bar.time >= watched_from
        found.append(line(bar, book if watched else None, len(bar.books)))
    return found


def test_with_a_book_every_number_is_that_of_a_recount(
    start: Callable[..., AdvisorChannel], scaled: Callable[..., int]
) -> None:
    desk = start()
    bars = market(FIRST, scaled(1000, least=40), books=True, trades=True)
    bars[0].books = [(FIRST, BOOK)]  # so that it is watched from the first second on
    for bar in bars:
        close(desk, bar)
    found = rows(desk)
    assert found == recount(bars, watched_from=FIRST)[-1000:]
    cells = [row.split(",") for row in found]
    assert any(row[6] and not row[10] for row in cells), "some book must be too thin for a lot"
    assert any(not row[6] for row in cells[1:]) and any(row[6] and row[11] == "0" for row in cells)


def test_without_a_book_its_columns_are_empty_and_the_others_are_those_of_a_recount(
    start: Callable[..., AdvisorChannel], scaled: Callable[..., int]
) -> None:
    """Here the bars lie before the start: the terminal has kept their ticks."""
    desk = start(depth=0)
    bars = market(FIRST - 61_200, scaled(1000, least=40), books=False, trades=True, seed=2)
    for bar in bars:
        desk.ea.ticks(GOLD, bar.ticks)
        desk.ea.bar(GOLD, 60, bar.time, (1, 1, 1, 1), len(bar.ticks), 1)
    desk.ea.timer(2, 1.0)
    assert rows(desk) == recount(bars, watched_from=FIRST * 2)
    assert all(row.endswith(",,,,,,") for row in rows(desk))


def test_a_bar_is_counted_to_its_last_millisecond_and_no_farther(
    start: Callable[..., AdvisorChannel],
) -> None:
    desk = start(depth=0)
    inside = [(FIRST * 1000, 1.0, 1.1, 0.0, 6), (FIRST * 1000 + 59_999, 1.2, 1.3, 0.0, 6)]
    around = [(FIRST * 1000 - 1, 9.0, 9.1, 0.0, 6), (FIRST * 1000 + 60_000, 9.0, 9.1, 0.0, 6)]
    desk.ea.ticks(GOLD, sorted(inside + around))
    close(desk, Bar(FIRST), ticks=2)
    assert rows(desk) == [line(Bar(FIRST, inside), None, 0)] == [f"{FIRST},2,1,0,10.0000,10,,,,,,"]


def test_a_book_that_was_not_watched_from_the_beginning_of_a_bar_is_none(
    start: Callable[..., AdvisorChannel],
) -> None:
    desk = start()
    bars = market(FIRST, 6, books=False)
    for number in range(6):
        bars[number].books = [(bars[number].time + 30, BOOK)]
    close(desk, bars[0])  # seen for the first time half a minute into it
    close(desk, bars[1])
    desk.ea.set(connected=0)
    desk.ea.timer()
    desk.ea.set(connected=1)
    close(desk, bars[2])  # the line was gone for a moment
    close(desk, bars[3])
    desk.ea.timer(1, 11.0)  # the computer slept
    close(desk, bars[4])
    close(desk, bars[5])
    assert [bool(row.split(",")[6]) for row in rows(desk)] == [False, True] * 3


def test_a_book_that_could_not_be_had_at_the_start_is_asked_for_once_a_minute(
    start: Callable[..., AdvisorChannel],
) -> None:
    desk = start(depth=0)
    bars = market(FIRST, 4, books=False)
    for bar in bars[1:]:
        bar.books = [(bar.time, BOOK), (bar.time + 30, BOOK)]
    close(desk, bars[0])
    desk.ea.symbol(GOLD, depth=10)
    for bar in bars[1:]:
        close(desk, bar)
    assert [bool(row.split(",")[6]) for row in rows(desk)] == [False, False, True, True]


def test_a_bar_with_a_gap_in_its_ticks_is_left_out_and_those_after_it_are_there(
    start: Callable[..., AdvisorChannel],
) -> None:
    desk = start(depth=0)
    bars = market(FIRST, 3, books=False)
    desk.ea.ticks(GOLD, bars[1].ticks)
    half = bars[1].ticks[len(bars[1].ticks) // 2 :]
    desk.ea.lose_ticks(GOLD, half[0][0], half[-1][0])
    close(desk, bars[0])
    held = rows(desk)
    close(desk, Bar(bars[1].time), ticks=len(bars[1].ticks))
    assert rows(desk) == held
    desk.ea.wait(25)
    assert rows(desk) == held
    close(desk, bars[2])
    desk.ea.wait(35)
    assert [int(row.split(",")[0]) for row in rows(desk)] == [bars[0].time, bars[2].time]


@pytest.mark.journey
def test_the_books_of_bars_that_are_left_out_or_not_counted_are_forgotten(
    start: Callable[..., AdvisorChannel],
) -> None:
    desk = start()

    def live(number: int, **how: Any) -> None:
        for bar in market(FIRST + number * 60, 8, books=False):
            close(desk, Bar(bar.time, [], [(bar.time + 1, BOOK)]), **how)
        desk.ea.wait(35)

    live(0, ticks=20)  # none of them is there: each bar is left out
    assert not path(desk).exists() and desk.ea.broker_state()["book_bars"] <= 2
    # A day and a half of order books of bars that nobody counts.
    for minute in range(36 * 60):
        pass_to(desk, NOW + 1200 + minute * 60)
        desk.ea.book(GOLD, BOOK)
    assert desk.ea.broker_state()["book_bars"] <= 24 * 60 + 2


def test_ticks_that_come_late_are_waited_for(start: Callable[..., AdvisorChannel]) -> None:
    desk = start(depth=0)
    bar = market(FIRST, 1, books=False)[0]
    close(desk, Bar(bar.time), ticks=len(bar.ticks))
    assert not path(desk).exists()
    desk.ea.ticks(GOLD, bar.ticks)
    desk.ea.wait(2)
    assert rows(desk) == recount([bar], watched_from=FIRST * 2)


def test_a_restart_in_the_middle_of_a_bar_loses_no_tick_of_it(
    start: Callable[..., AdvisorChannel],
) -> None:
    desk = start()
    bars = market(FIRST, 2, books=False)
    bars[0].books = [(FIRST, BOOK)]
    close(desk, bars[0])
    desk.ea.timer(3, 10.0)
    desk.ea.restart()
    for bar in bars:
        desk.ea.ticks(GOLD, bar.ticks)  # the terminal has kept them
    close(desk, Bar(bars[1].time, [], [(bars[1].time + 40, BOOK)]), ticks=len(bars[1].ticks))
    assert rows(desk) == recount(bars, watched_from=FIRST * 2)


def test_several_timeframes_and_symbols_have_a_file_each(
    start: Callable[..., AdvisorChannel],
) -> None:
    desk = start(bar_symbols=f"{GOLD},EURUSD", bar_timeframes="M1,M5,M5")
    desk.ea.symbol("EURUSD", digits=5, depth=0)
    bars = market(FIRST, 5, books=True)
    bars[0].books = [(FIRST, BOOK)]
    for bar in bars:
        close(desk, bar)
    all_ticks = list(itertools.chain.from_iterable(bar.ticks for bar in bars))
    desk.ea.bar(GOLD, 300, FIRST, (1, 1, 1, 1), len(all_ticks), 1)
    desk.ea.bar(GOLD, 300, FIRST + 300, (1, 1, 1, 1), 1, 1)
    close_euro(desk)
    books = list(itertools.chain.from_iterable(bar.books for bar in bars))
    assert rows(desk, "M5") == [line(Bar(FIRST, all_ticks), books[-1][1], len(books))]
    assert desk.names("flow") == [
        "EURUSD_M1.csv",
        f"{in_a_path(GOLD)}_M1.csv",
        f"{in_a_path(GOLD)}_M5.csv",
    ]
    assert f"\n{FIRST},1,0,0,12.0000,12,,,,,,\n" in (
        desk.folder / "flow" / "EURUSD_M1.csv"
    ).read_text("ascii")


def gmt(desk: AdvisorChannel) -> float:
    return float(desk.ea.broker_state()["gmt"])


def test_a_symbol_that_was_slow_is_left_alone_for_an_hour(
    start: Callable[..., AdvisorChannel],
) -> None:
    desk = start(depth=0)
    bars = market(FIRST, 3, books=False)
    desk.ea.set(ticks_take=40)
    close(desk, bars[0])
    assert len(rows(desk)) == 1
    close(desk, bars[1])
    began = gmt(desk)
    desk.ea.timer(350, 10.0)
    assert gmt(desk) == began + 3500, "it was asked again"
    assert len(rows(desk)) == 1
    desk.ea.set(ticks_take=0)
    desk.ea.timer(11, 10.0)
    assert len(rows(desk)) == 2


def test_the_first_question_is_asked_at_the_start_and_no_signal_of_a_close_waits_for_a_slow_one(
    start: Callable[..., AdvisorChannel],
) -> None:
    """The first ticks of a symbol take 45 s: nobody has been told yet that the advisor runs."""
    desk = start(depth=0)
    beat = desk.state("ea")
    desk.ea.set(ticks_take=45)
    began = gmt(desk)
    desk.ea.restart()
    assert gmt(desk) == began + 45, "it was not asked at the start"
    assert desk.state("ea") == beat, "its heart had begun to beat"
    desk.ea.timer()
    for bar in market(FIRST + 120, 3, books=False):
        close(desk, bar)
        assert gmt(desk) < bar.time - OFFSET + 60 + 5, "the close was held up"
        now = int(gmt(desk))
        ack = desk.order(created=now - 1, expires=now + 29)
        assert ack["status"] != "EXPIRED"


def test_a_symbol_whose_ticks_are_missing_keeps_no_other_one_waiting(
    start: Callable[..., AdvisorChannel],
) -> None:
    """A round has 200 ms, and each question takes 250."""
    desk = start(depth=0, bar_symbols=f"{GOLD},EURUSD")
    desk.ea.symbol("EURUSD", digits=5, depth=0)
    desk.ea.set(ticks_take=0.25)
    close(desk, Bar(FIRST), ticks=20)
    close_euro(desk)
    assert desk.names("flow") == ["EURUSD_M1.csv"]


def test_no_question_begins_while_a_signal_is_there(start: Callable[..., AdvisorChannel]) -> None:
    desk = start(depth=0)
    desk.ea.set(ticks_take=45)
    began = int(gmt(desk))
    name = desk.drop(created=began, expires=began + 30)
    desk.ea.restart()
    assert gmt(desk) == began
    desk.ea.timer()
    assert desk.ack(name)["status"] != "EXPIRED"


def test_nothing_is_counted_while_a_signal_is_under_way(
    start: Callable[..., AdvisorChannel],
) -> None:
    desk = start(depth=0)
    bar = market(FIRST, 1, books=False)[0]
    now = float(desk.ea.broker_state()["gmt"])
    desk.ea.fail(10012)
    desk.drop(created=int(now), expires=int(now) + 170)
    desk.ea.timer()
    assert desk.names("work"), "the broker's answer was unclear: it is looked for"
    desk.ea.ticks(GOLD, bar.ticks)
    desk.ea.bar(GOLD, 60, bar.time, (1, 1, 1, 1), len(bar.ticks), 1)
    desk.ea.bar(GOLD, 60, bar.time + 60, (1, 1, 1, 1), 1, 1)
    desk.ea.wait(3)
    assert desk.names("bars") and not desk.names("flow")
    desk.ea.wait(20)
    assert desk.names("flow")


def test_it_can_be_switched_off_and_the_bars_are_as_ever(
    start: Callable[..., AdvisorChannel],
) -> None:
    on, off = start(), start(write_flow=False)
    bars = market(FIRST, 3, books=True)
    for desk in (on, off):
        for bar in bars:
            close(desk, bar)
    file = Path("bars") / f"{in_a_path(GOLD)}_M1.csv"
    assert (on.folder / file).read_bytes() == (off.folder / file).read_bytes()
    assert len(rows(on)) == 3 and off.names("flow") == []


@pytest.mark.parametrize(
    ("named", "files"),
    [("", [GOLD, "EURUSD"]), (f" {GOLD} , USDX.f", [GOLD]), ("EURUSD", ["EURUSD"]), ("X", [])],
)
def test_only_the_named_symbols_are_counted(
    start: Callable[..., AdvisorChannel], named: str, files: list[str]
) -> None:
    desk = start(bar_symbols=f"{GOLD},EURUSD", flow_symbols=named)
    desk.ea.symbol("EURUSD", digits=5, depth=10)
    bar = market(FIRST, 1, books=False)[0]
    close(desk, bar)
    close_euro(desk)
    assert desk.names("flow") == sorted(f"{in_a_path(name)}_M1.csv" for name in files)
    assert desk.names("bars") == ["EURUSD_M1.csv", f"{in_a_path(GOLD)}_M1.csv"]


def test_another_account_takes_nothing_over(start: Callable[..., AdvisorChannel]) -> None:
    desk = start(depth=0)
    bars = market(FIRST, 2, books=False)
    close(desk, bars[0])
    desk.ea.set(account=777)
    close(desk, bars[1])
    assert '"account":777,' in path(desk).read_text("ascii")
