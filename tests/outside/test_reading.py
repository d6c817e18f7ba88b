"""What publishers send is read by the names of its columns: a value, or a reason with its line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.doubles.outside_server import week
from torra.collecting.line import SourceError
from torra.evidence.news_digest import NewsStatus
from torra.evidence.outside_numbers import CFTC, FRED, MARKETS, SERIES
from torra.outside import cftc, fred
from torra.outside.answers import ALL_LATER, NO_RELEASE, SeriesAnswer

NOW = datetime(2026, 2, 13, 12, tzinfo=UTC)
S = NewsStatus


def table(*lines: str, head: str = "observation_date,DGS10") -> bytes:
    return "\n".join((head, *lines, "")).encode()


def of_fred(*lines: str, **more: str) -> SeriesAnswer:
    return fred.read("DGS10", table(*lines, **more), NOW)


def of_cftc(*rows: Any, market: str = "gold") -> SeriesAnswer:
    return cftc.read(market, json.dumps(rows).encode(), NOW)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# --- FRED -----------------------------------------------------------------------------------------


def test_a_table_is_read_by_its_names() -> None:
    found = of_fred("2026-02-05,4.21", "2026-02-06,.", "2026-02-09,", "2026-02-10,-0.5")
    assert [(row.at, row.value) for row in found.items] == [
        (moment("2026-02-05"), 4.21), (moment("2026-02-10"), -0.5),
    ]  # fmt: skip
    assert found.items[0].known_at == moment("2026-02-06 22:00")
    assert {(row.name, row.source) for row in found.items} == {("DGS10", "fred")}
    assert (found.status, found.dropped, found.detail) == (S.AVAILABLE, 0, "")
    turned = of_fred("4.21,2026-02-05", "-0.5,2026-02-10", head="DGS10,observation_date")
    old = of_fred("2026-02-05,4.21\r", "2026-02-10,-0.5\r", head="\ufeffDATE,DGS10\r")
    assert turned.items == old.items == found.items


HEADS = """
observation_date
observation_date,DGS2
observation_date,DGS10,DGS2
day,DGS10
DGS10,DGS10
observation_date;DGS10
<!DOCTYPE html><html>
{"error": "no"}
"observation_date,DGS10
"""


@pytest.mark.parametrize("head", HEADS.split("\n"))
def test_what_is_not_two_columns_is_refused(head: str) -> None:
    with pytest.raises(SourceError) as refused:
        of_fred("2026-02-05,4.21", head=head)
    assert refused.value.status is S.BROKEN
    assert refused.value.detail == "the reply is not the table of a day and DGS10"
    with pytest.raises(SourceError, match="not UTF-8"):
        fred.read("DGS10", head.encode("utf-16"), NOW)


WRONG_LINES = f"""
2026-02-06 | not two columns
2026-02-06,4.2,1 | not two columns
2026-02-06,"4.2 | not two columns
2026-02-06,4,2 | not two columns
2026-02-30,4.2 | '2026-02-30' is no day
06/02/2026,4.2 | '06/02/2026' is no day
0000-01-01,4.2 | '0000-01-01' is no day
\u0662026-02-06,4.2 | is no day
2026-02-06,nan | 'nan' is no value
2026-02-06,1e5 | '1e5' is no value
2026-02-06,#N/A | '#N/A' is no value
2026-02-06,{"9" * 400} | is no value
2026-02-05,4.22 | 2026-02-05 was told before, with another value
"""


@pytest.mark.parametrize("row", WRONG_LINES.strip().split("\n"))
def test_a_line_that_cannot_be_read_is_told_with_its_number(row: str) -> None:
    line, reason = row.split(" | ")
    found = of_fred("2026-02-05,4.21", line, "2026-02-10,4.3")
    assert found.detail.startswith("line 3: ") and reason in found.detail
    assert found.items[-1].value == 4.3 and found.dropped >= 1
    assert found.status is S.AVAILABLE


def test_a_day_that_is_told_twice_counts_once_or_not_at_all() -> None:
    assert len(of_fred("2026-02-05,4.21", "2026-02-05,4.21").items) == 1
    found = of_fred("2026-02-05,4.21", "2026-02-05,4.22", "2026-02-05,4.21")
    assert found.items == () and found.status is S.BROKEN and found.dropped == 2


@pytest.mark.parametrize(
    ("lines", "status", "detail"),
    [
        ((), S.EMPTY, ""),
        (("2026-02-05,.",), S.EMPTY, ""),
        (("2026-02-14,4.2", "9999-12-31,4.2"), S.EMPTY, ALL_LATER),
        (("x,y", "2026-02-06"), S.BROKEN, "line 2: 'x' is no day"),
    ],
)
def test_no_value_has_a_reason(lines: tuple[str, ...], status: NewsStatus, detail: str) -> None:
    found = of_fred(*lines)
    assert (found.items, found.status, found.detail) == ((), status, detail)


# --- the CFTC -------------------------------------------------------------------------------------


@pytest.mark.parametrize("market", MARKETS)
def test_a_week_of_each_market_is_three_series(market: str) -> None:
    found = of_cftc(week(market, "2026-02-03", long=7, short=5, interest=90), market=market)
    values = {row.name: row.value for row in found.items}
    assert values == {
        f"cot.{market}.long": 7, f"cot.{market}.short": 5, f"cot.{market}.open_interest": 90,
    }  # fmt: skip
    assert {*values} <= {*SERIES}
    assert {row.at for row in found.items} == {moment("2026-02-03")}
    assert {row.known_at for row in found.items} == {moment("2026-02-06 20:30")}
    assert {row.source for row in found.items} == {"cftc"}
    numbers = {
        name: int(word) if name.startswith("open") else word
        for name, word in week(market, "2026-02-03", long=7, short=5, interest=90).items()
    }
    assert of_cftc(numbers, market=market).items == found.items, "a count may come as a number"


def test_the_vocabulary_is_whole() -> None:
    assert {*cftc.TOPICS} == {*CFTC} and {*cftc.TOPICS.values()} == {*MARKETS}
    assert {*fred.TOPICS} == {*FRED}


WRONG_WEEKS = """
cftc_contract_market_code "084691" cftc_contract_market_code is not 088691
cftc_contract_market_code null cftc_contract_market_code is not 088691
m_money_positions_long_all null m_money_positions_long_all is no count
m_money_positions_short_all "1.5" m_money_positions_short_all is no count
m_money_positions_short_all "-4" m_money_positions_short_all is no count
open_interest_all true open_interest_all is no count
open_interest_all [1000] open_interest_all is no count
open_interest_all "299" more positions than open_interest_all
report_date_as_yyyy_mm_dd "2026-02-30T00:00:00.000" is no day
report_date_as_yyyy_mm_dd "02/03/2026" is no day
report_date_as_yyyy_mm_dd 20260203 is no day
report_date_as_yyyy_mm_dd "2026-01-27T00:00:00.000" told before, with another
"""


@pytest.mark.parametrize("line", WRONG_WEEKS.strip().split("\n"))
def test_a_week_that_cannot_be_read_is_told_with_its_row(line: str) -> None:
    column, value, reason = line.split(" ", 2)
    bad = {**week("gold", "2026-02-03"), column: json.loads(value)}
    found = of_cftc(week("gold", "2026-01-27", long=301), bad, week("gold", "2026-01-20"))
    assert found.detail.startswith("row 2: ") and reason in found.detail
    assert found.items[0].at == moment("2026-01-20") and found.status is S.AVAILABLE


@pytest.mark.parametrize("payload", [None, {}, {"error": True, "message": "no"}, "text", 5, True])
def test_what_is_no_list_and_no_row_of_it_is_refused(payload: Any) -> None:
    if not isinstance(payload, dict):
        found = of_cftc(week("gold", "2026-01-20"), payload)
        assert found.detail == "row 2: not an object" and len(found.items) == 3
    with pytest.raises(SourceError, match="no list of weeks") as refused:
        cftc.read("gold", json.dumps(payload).encode(), NOW)
    assert refused.value.status is S.BROKEN


def test_a_week_whose_release_nobody_knows_is_left_out_and_counted() -> None:
    gap = [week("gold", f"2013-10-{day:02}") for day in (8, 15, 22, 29)]
    found = of_cftc(*gap, week("gold", "2013-10-01"), week("gold", "2013-09-24"))
    assert (found.dropped, found.detail) == (4, "")
    assert [row.known_at for row in found.items[::3]] == [
        moment("2013-09-27 19:30"), moment("2013-10-26 04:00"),
    ]  # fmt: skip
    alone = of_cftc(*gap)
    assert (alone.status, alone.detail, alone.dropped) == (S.EMPTY, NO_RELEASE, 4)
