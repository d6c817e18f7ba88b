"""What a tick knew from beyond the chart, in words: real readings, told as a record tells them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.worlds import outside_series
from torra.evidence import outside_readings as readings
from torra.evidence.companion_readings import NUMBERS, Lack
from torra.evidence.news_digest import NewsStatus, NewsSubject
from torra.evidence.outside_numbers import Closes, SeriesHistory, SeriesRow, SeriesThen
from torra.evidence.outside_readings import OutsideView, SeriesValue
from torra.exhibits import figures
from torra.exhibits.beyond import company_words, outside_words
from torra.exhibits.beyond.outside_row import OutsideRow, OutsideShown
from torra.outside.shelf import BROKEN
from torra.words.ticks import NO_NUMBER

DAY = timedelta(days=1)
AS_OF = datetime(2026, 2, 14, tzinfo=UTC)
BEGIN = datetime(2023, 1, 2, tzinfo=UTC)
DAYS = (AS_OF - BEGIN).days
GOLD = NewsSubject("XAUUSD", "gold", currencies=("USD",))
PAIR = NewsSubject("EURUSD", "fx", currencies=("EUR", "USD"))
SUBJECTS = {
    "gold": GOLD,
    "index": NewsSubject("US500", "index", currencies=("USD",)),
    "fx": PAIR,
    "oil": NewsSubject("WTI", "oil", currencies=("USD",)),
    "stock": NewsSubject("ACME", "stock", "ACME", ("USD",)),
    "crypto": NewsSubject("BTCUSD", "crypto", currencies=("USD",)),
    "": NewsSubject("THING"),
}


def told(
    subject: NewsSubject,
    rows: list[SeriesRow],
    *,
    as_of: datetime = AS_OF,
    closes: Closes = (),
    trouble: str = "empty",
) -> OutsideView:
    """Return the part of a record of a tick that read these rows."""
    stored = outside_series.stored(rows)
    histories = {one.row.name: SeriesHistory(live=False) for one in stored}
    for name, history in histories.items():
        history.add(one for one in stored if one.row.name == name)

    def then(name: str) -> SeriesThen | None:
        return histories[name].then(as_of) if name in histories else None

    return readings.read(
        subject, then, as_of, closes=lambda _span: closes, trouble=lambda _block: trouble
    )


def made(subject: NewsSubject, **more: Any) -> OutsideView:
    names = readings.series_for(subject)
    source = more.pop("source", "mine.csv")
    rows = [*outside_series.rows(names, BEGIN, DAYS, source=source)]
    return told(subject, rows, **more)


def at(*days: tuple[str, int, float], source: str = "fred") -> list[SeriesRow]:
    """Return values of series of some days before AS_OF, known at 22:00 of the next day."""
    return [
        SeriesRow(name, AS_OF - ago * DAY, AS_OF - ago * DAY + timedelta(hours=46), value, source)
        for name, ago, value in days
    ]


def row(found: OutsideShown, name: str) -> OutsideRow:
    (one,) = [row for row in found.rows if row.name.startswith(name)]
    return one


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.journey
@pytest.mark.parametrize("asset", [name for name in SUBJECTS if name])
def test_every_number_that_a_class_reads_has_its_row(asset: str) -> None:
    subject = SUBJECTS[asset]
    record = made(subject)
    found = outside_words.shown(subject.symbol, record)
    known = {
        name
        for name, value in record.numbers.items()
        if value is not None
        and (name.startswith(("derivs.", "positioning.fear")) or name == "cot.net_pct")
        and not name.endswith("_rank")
    } | {f"macro.{name}" for name in readings.LEVELS_OF.get(asset, ())}
    assert len(found.rows) == len(known)
    for one in found.rows:
        assert one.value[-1] != figures.DASH and "from your file mine.csv" in one.origin
        assert "pp" not in one.value.split() + one.change.split()
    assert not any("Not known" in note for note in found.notes)


def test_the_file_of_a_stranger_is_cut_and_cleaned() -> None:
    found = made(PAIR, source="\u202e<b>x" * 40)
    said = row(outside_words.shown("EURUSD", found), "Slope of the US").origin
    name = said.partition("from your file ")[2]
    assert len(name) == company_words.FILE_CHARS and "\u202e" not in name and name.endswith("…")


def test_series_of_different_days_are_told_one_by_one() -> None:
    rows = at(("DGS2", 3, 4.0), ("DGS10", 3, 4.5), ("DGS2", 2, 4.1))
    slope = row(outside_words.shown("EURUSD", told(PAIR, rows)), "Slope")
    assert slope.value == "+0.50 percentage points"
    assert slope.origin.startswith("the 10-year US yield of 2026-02-11, known since ")
    assert "; the 2-year US yield of 2026-02-12, known since " in slope.origin
    assert slope.day == "2026-02-11"


def test_one_that_is_too_old_says_so_and_has_no_value() -> None:
    rows = at(("DFII10", 40, 2.05), ("T10YIE", 3, 2.3))
    found = outside_words.shown("XAUUSD", told(GOLD, rows))
    old = row(found, "10-year US real yield")
    assert old.old and old.value == "too old to count" and old.change == figures.DASH
    assert old.origin.startswith("2.05 % of 2026-01-05, known since 2026-01-06 22:00 UTC")
    assert found.brief == "1 number known, 1 too old"


def test_a_small_value_has_the_decimals_that_a_trader_would_say() -> None:
    (small,) = at(("DGS2", 3, -0.6349))
    assert outside_words.series_amount(small.name, small.value) == "−0.63 %"
    (funding,) = at(("derivs.funding", 3, 0.0123))
    assert outside_words.series_amount(funding.name, funding.value) == "0.0123 %"
    (many,) = at(("derivs.open_interest", 3, 123456.7))
    assert outside_words.series_amount(many.name, many.value) == "123,457 contracts"


def test_of_a_pair_that_quotes_the_euro_longs_are_told_as_shorts() -> None:
    names = [f"cot.eur.{part}" for part in ("long", "short", "open_interest")]
    rows = [*outside_series.rows(names, BEGIN, DAYS)]
    dear = replace(PAIR, symbol="GBPEUR", currencies=("GBP", "EUR"))
    found = outside_words.shown("GBPEUR", told(dear, rows))
    assert "as shorts of this pair" in row(found, "Leveraged funds in the euro").name
    straight = outside_words.shown("EURUSD", told(PAIR, rows))
    assert "shorts of this" not in row(straight, "Leveraged funds in the euro").name
    assert "in 4 weeks" in row(straight, "Leveraged funds in the euro").change


# --- gold and the real yield ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (-1.0, "Gold still goes against the real yield: "),
        (1.0, "Gold has lately risen with the real yield."),
        (0.0, "Gold no longer goes against the real yield: "),
    ],
)
def test_whether_gold_still_goes_against_the_real_yield(way: float, said: str) -> None:
    days = [(AS_OF - ago * DAY, 2.0 + (ago % 17) / 10.0) for ago in range(400, 1, -1)]
    rows = at(*[("DFII10", (AS_OF - day).days, value) for day, value in days])
    noise = {0.0: 1.0}.get(way, 0.0)
    closes = [
        (day.date(), 1000.0 + 20.0 * way * value + noise * (place * 37 % 11))
        for place, (day, value) in enumerate(days)
    ]
    found = outside_words.shown("XAUUSD", told(GOLD, rows, closes=closes))
    assert [note for note in found.notes if note.startswith(said)]
    few = outside_words.shown("XAUUSD", told(GOLD, rows, closes=closes[:100]))
    assert [note for note in few.notes if "cannot be told" in note]


@pytest.mark.journey
def test_no_other_symbol_tells_of_gold() -> None:
    for asset in ("index", "fx", "oil", "crypto"):
        found = outside_words.shown(SUBJECTS[asset].symbol, made(SUBJECTS[asset]))
        assert not any("old" in note and "real yield" in note for note in found.notes)


# --- nothing known --------------------------------------------------------------------------------


def test_an_empty_store_is_told_once_with_the_command() -> None:
    found = outside_words.shown("EURUSD", told(PAIR, []))
    assert found.brief == "nothing known" and found.rows == []
    own, fred, cftc = found.notes
    assert own == f"Not known: the 2-year yield of EUR (yield_2y.EUR). {outside_words.BY_FILE}"
    assert "the 2-year US yield (DGS2), the 10-year US yield (DGS10)" in fred
    assert "FRED publishes it: name fred in outside.sources" in fred
    assert cftc.startswith(
        "Not known: positions of leveraged funds in the euro. The CFTC publishes it"
    )
    assert all("torra data import FILE" in said for said in found.notes)


def test_a_publisher_that_fails_is_not_blamed_for_what_a_file_brings() -> None:
    own, fred, cftc = outside_words.shown("EURUSD", told(PAIR, [], trouble="unreachable")).notes
    assert own.endswith(outside_words.BY_FILE)
    assert "FRED could not be reached" in fred and "The CFTC could not be reached" in cftc


@pytest.mark.parametrize("status", NewsStatus)
def test_every_trouble_of_a_publisher_has_its_words(status: NewsStatus) -> None:
    (said,) = outside_words.shown("XAUUSD", told(GOLD, [], trouble=str(status))).notes[:1]
    assert "_" not in said.replace("_yield", "") and said.endswith((".", ")"))
    assert outside_words.brief(str(status)) != str(status) or status == "refused"
    if status not in ("available", "empty", "no_key", "no_file"):
        assert str(status) in NO_NUMBER


def test_what_only_a_file_brings_is_no_gap_beside_what_is_known() -> None:
    said = " ".join(outside_words.shown("EURUSD", told(PAIR, [])).notes)
    assert "fear" not in said and "derivs" not in said
    alone = outside_words.shown("ETHUSD", told(NewsSubject("ETHUSD", "crypto"), [])).notes
    assert len(alone) == 1 and "the fear and greed index (fear_greed)" in alone[0]


def test_a_symbol_of_no_class_says_what_to_set() -> None:
    (said,) = outside_words.shown("THING", told(SUBJECTS[""], [])).notes
    assert said.startswith("Nothing from beyond the chart is read for THING: ") and "asset" in said


def test_a_store_that_could_not_be_read_is_told() -> None:
    record = BROKEN
    assert outside_words.shown("XAUUSD", record).notes == [outside_words.UNREADABLE]


# --- in a line ------------------------------------------------------------------------------------


def test_a_line_has_each_block_with_its_values_or_why_not() -> None:
    rows = at(("DGS2", 2, 4.25), ("DGS10", 2, 4.5))
    said = outside_words.in_a_line("EURUSD", told(PAIR, rows))
    assert said == (
        "economy: slope of the US yields (10 less 2 years) +0.25 percentage points (2026-02-12); "
        "positions: nothing known"
    )
    assert outside_words.in_a_line("THING", told(SUBJECTS[""], [])) == (
        "nothing is read for this symbol"
    )


def test_the_source_of_a_filed_value_names_form_and_number() -> None:
    named = outside_words.source_of
    assert named("edgar 10-K/A 0000320193-23-000106") == "EDGAR (10-K/A 0000320193-23-000106)"
    assert named("edgar <b>\x00") == "EDGAR (<b>)" and named("fred") == "FRED"
    assert named("edgar.csv") == "your file edgar.csv"


# --- companions -----------------------------------------------------------------------------------


def companions(statuses: dict[str, str] | None = None, **seen: bool) -> OutsideView:
    """Return what a record tells of companions; of each whether it was too late to count."""
    numbers: dict[str, float | None] = {}
    for name, stale in seen.items():
        values = (0.0557, 0.505, -0.806, 97.6, -0.4144)
        for which, value in zip(NUMBERS, values, strict=True):
            numbers[f"companion.{name}.{which}"] = None if stale else value
    moment = datetime(2026, 2, 12, 15, tzinfo=UTC)
    return OutsideView(
        numbers,
        statuses or {"companion": "available"},
        {
            f"companion.{name}": SeriesValue(104.2335, moment, moment, "USDX.f", stale)
            for name, stale in seen.items()
        },
    )


def test_a_companion_that_came_late_says_so() -> None:
    told = companions({"companion": "late", "companion.dxy": "late"}, dxy=True)
    found = outside_words.shown("XAUUSD", told)
    (only,) = found.rows
    assert only.old and only.value == "too late to count" and only.change == figures.DASH
    assert found.notes == ["Not known: dxy. Its bar of this close had not come yet."]
    assert outside_words.in_a_line("XAUUSD", told) == "companions: late"


@pytest.mark.parametrize("lack", list(Lack))
def test_every_lack_of_a_companion_is_told_in_words(lack: Lack) -> None:
    record = OutsideView(
        {f"companion.dxy.{name}": None for name in NUMBERS},
        {"companion": str(lack), "companion.dxy": str(lack)},
    )
    found = outside_words.shown("XAUUSD", record)
    assert found.rows == []
    (note,) = found.notes
    assert note.startswith("Not known: dxy. ") and note.count(".") >= 2
    assert outside_words.brief(str(lack)) != str(lack) or lack is Lack.LATE
