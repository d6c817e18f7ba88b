"""One history as the world writes it: files of terminals, vendors, exchanges and programs.

Every file of `FILES` holds the bars of `TRUTH`, in a summer in which clocks are ahead, or is wrong
in one way. `says` is what a refusal names; "" where the bars come out as they are.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import pandas as pd

from tests.worlds.price_series import rows_of

SYMBOL, TIMEFRAME = "EURUSD", "M15"
BARS: Final = 40
BEGIN: Final = datetime(2024, 7, 28, 22, tzinfo=UTC)
STEP: Final = timedelta(minutes=15)
SERVER: Final = "new_york+7"
ATHENS: Final = ZoneInfo("Europe/Athens")
SERVER_ZONE: Final = timezone(timedelta(hours=3))
"""The zone of both broker's clocks in summer."""

WINTER: Final = timezone(timedelta(hours=-5))
CLOCK: Final = "--clock"


def _truth() -> pd.DataFrame:
    rows = []
    for place in range(BARS):
        begin, end = 1.085 + 0.0001 * (place * 7 % 11), 1.085 + 0.0001 * ((place + 1) * 7 % 11)
        high, low = max(begin, end) + 0.00013, min(begin, end) - 0.00012
        rows.append([round(price, 5) for price in (begin, high, low, end)] + [100.0 + place])
    index = pd.DatetimeIndex([BEGIN + place * STEP for place in range(BARS)], name="time")
    return pd.DataFrame(rows, index=index, columns=["open", "high", "low", "close", "volume"])


TRUTH: Final = _truth()


class FieldFile(NamedTuple):
    """A file: its bytes, the clock that a user gives, and what comes of it.

    `shape` is part of the shape that a report names, `volume` whether the file has one.
    """

    name: str
    content: bytes
    clock: str | None = None
    says: str = ""
    shape: str = ""
    volume: bool = True
    suffix: str = ".csv"


Stamp = Callable[[datetime], str]


def of_form(form: str, zone: tzinfo = UTC) -> Stamp:
    """Return how a time is written: by a form of strftime, in a zone."""
    return lambda moment: moment.astimezone(zone).strftime(form)


def since_1970(unit: int = 1, hours: int = 0) -> Stamp:
    """Return a time as a count of so many units a second, moved by hours."""
    return lambda moment: str(int(moment.timestamp() + 3_600 * hours) * unit)


ISO: Final = of_form("%Y-%m-%dT%H:%M:%SZ")
HEAD: Final = "time,open,high,low,close,volume"


def rows(stamp: Stamp = ISO, separator: str = ",", more: Sequence[str] = ()) -> list[str]:
    """Return the lines of the bars: time, four prices, volume, and cells behind them."""
    found = []
    for bar in rows_of(TRUTH):
        cells = [stamp(bar.Index.to_pydatetime())]
        cells += [f"{price:.5f}" for price in (bar.open, bar.high, bar.low, bar.close)]
        found.append(separator.join([*cells, str(int(bar.volume)), *more]))
    return found


def text(
    lines: Sequence[str], head: str | None = HEAD, newline: str = "\n", encoding: str = "utf-8"
) -> bytes:
    """Return lines as the bytes of a file."""
    every = [*([head] if head is not None else []), *lines]
    return (newline.join(every) + newline).encode(encoding)


def changed(place: int, line: str) -> list[str]:
    """Return the lines of plain bars with another one at a place."""
    found = rows()
    found[place] = line
    return found


def zipped(*names: str) -> bytes:
    """Return a zip whose members are all the plain file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, text(rows()))
    return packed.getvalue()


def _terminal() -> Iterator[FieldFile]:
    """Yield what MetaTrader 5 and its package write."""
    names = ("DATE", "TIME", "OPEN", "HIGH", "LOW", "CLOSE", "TICKVOL", "VOL", "SPREAD")
    server = SERVER_ZONE
    mt5 = "MetaTrader 5"
    for name, separator in (("tabs", "\t"), ("commas", ","), ("semicolons", ";")):
        head = separator.join(f"<{one}>" for one in names)
        form = of_form(f"%Y.%m.%d{separator}%H:%M:%S", server)
        content = text(rows(form, separator, ["0", "7"]), head, "\r\n")
        yield FieldFile(f"mt5-{name}", content, SERVER, shape=mt5)
        yield FieldFile(f"mt5-{name}-athens", content, "Europe/Athens", shape=mt5)
        yield FieldFile(f"mt5-{name}-no-clock", content, says=CLOCK)
        plain = text(rows(form, separator, ["0", "7"]), separator.join(names), "\r\n")
        yield FieldFile(f"mt5-{name}-no-brackets", plain, SERVER, shape=mt5)
        yield FieldFile(f"mt5-{name}-no-brackets-no-clock", plain, says=CLOCK)
    tabs = rows(of_form("%Y.%m.%d\t%H:%M:%S", server), "\t", ["0", "7"])
    head = "\t".join(f"<{one}>" for one in names)
    encodings = ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig")
    for name, encoding in zip(("16", "16-no-mark", "16-be", "8-mark"), encodings, strict=True):
        content = text(tabs, head, "\r\n", encoding)
        yield FieldFile(f"mt5-utf-{name}", content, SERVER, shape=mt5)
    marked = codecs.BOM_UTF16_BE + text(tabs, head, "\r\n", "utf-16-be")
    yield FieldFile("mt5-utf-16-be-mark", marked, SERVER, shape=mt5)
    yield FieldFile("mt5-old-mac", text(tabs, head, "\r"), SERVER, shape=mt5)
    chart = text(rows(of_form("%Y.%m.%d,%H:%M", server)), None)
    yield FieldFile("mt5-chart", chart, SERVER)
    yield FieldFile("mt5-chart-no-clock", chart, says=CLOCK)
    for volume in ("TickVolume", "Tick Volume", "tick_volume"):
        head = f"DateTime,Open,High,Low,Close,{volume},Spread"
        content = text(rows(of_form("%Y.%m.%d %H:%M:%S", server), more=["7"]), head)
        yield FieldFile(f"terminal-{volume}", content, SERVER, shape="MetaTrader")
        yield FieldFile(f"terminal-{volume}-no-clock", content, says=CLOCK)
    head = "time,open,high,low,close,tick_volume,spread,real_volume"
    for name, stamp in (
        ("seconds", since_1970(hours=3)),
        ("datetime", of_form("%Y-%m-%d %H:%M:%S", server)),
    ):
        lines = rows(stamp, more=["7", "0"])
        package = text(lines, head)
        indexed = text([f"{at},{line}" for at, line in enumerate(lines)], f",{head}")
        yield FieldFile(f"package-{name}", package, SERVER, shape="MetaTrader5 package")
        yield FieldFile(f"package-{name}-index", indexed, SERVER, shape="MetaTrader5 package")
        yield FieldFile(f"package-{name}-no-clock", package, says=CLOCK)


def _vendors() -> Iterator[FieldFile]:
    """Yield what charts, exchanges and vendors write."""
    head = "time,open,high,low,close,Volume"
    yield FieldFile("tradingview-unix", text(rows(since_1970()), head), shape="TradingView")
    yield FieldFile("tradingview-iso", text(rows(), head))
    berlin = of_form("%Y-%m-%dT%H:%M:%S+02:00", timezone(timedelta(hours=2)))
    yield FieldFile("tradingview-zone", text(rows(berlin), head))
    plots = text(rows(since_1970(), more=["1.08", "", "NaN"]), f"{head},MA,Plot,Plot")
    yield FieldFile("tradingview-plots", plots)
    more = ["1722204899999", "21127974.46", "346", "1.0", "2.0", "0"]
    for name, unit in (("milli", 1_000), ("micro", 1_000_000)):
        content = text(rows(since_1970(unit), more=more), None)
        yield FieldFile(f"binance-{name}", content, shape="Binance")
    names = "open_time,open,high,low,close,volume,close_time,quote_volume,count,taker,quote,ignore"
    content = text(rows(since_1970(1_000), more=more), names)
    yield FieldFile("binance-head", content, shape="Binance")
    mixed = rows(since_1970(1_000), more=more)[:20] + rows(since_1970(1_000_000), more=more)[20:]
    yield FieldFile("binance-both-units", text(mixed, None), shape="Binance")
    gmt, columns = of_form("%d.%m.%Y %H:%M:%S.000"), "Open,High,Low,Close,Volume"
    yield FieldFile("dukascopy-gmt", text(rows(gmt), f"Gmt time,{columns}"), shape="Dukascopy")
    local = of_form("%d.%m.%Y %H:%M:%S.000 GMT+0300", SERVER_ZONE)
    content = text(rows(local), f"Local time,{columns}")
    yield FieldFile("dukascopy-local", content, shape="Dukascopy")
    eet = of_form("%Y.%m.%d %H:%M:%S", ATHENS)
    yield FieldFile("dukascopy-eet", text(rows(eet), f"Time (EET),{columns}"), shape="Dukascopy")
    utc = text(rows(of_form("%Y.%m.%d %H:%M:%S")), f"Time (UTC),{columns}")
    yield FieldFile("dukascopy-utc", utc, shape="Dukascopy")
    ascii_ = text(rows(of_form("%Y%m%d %H%M%S", WINTER), ";"), None)
    yield FieldFile("histdata-with-a-volume", ascii_, says=CLOCK)
    none = re.sub(rb";\d+(\r?\n|$)", rb";0\1", ascii_)
    yield FieldFile("histdata-ascii", none, volume=False, shape="HistData")
    histdata = text(rows(of_form("%Y.%m.%d,%H:%M", WINTER)), None)
    yield FieldFile("histdata-mt", histdata, "-05:00")
    yield FieldFile("histdata-mt-no-clock", histdata, says=CLOCK)


def _programs() -> Iterator[FieldFile]:
    """Yield what pandas, yfinance and spreadsheets write."""
    heads = "Open,High,Low,Close,Volume"
    zoned = of_form("%Y-%m-%d %H:%M:%S+00:00")
    numbered = text([f"{at},{line}" for at, line in enumerate(rows())], f",{HEAD}")
    yield FieldFile("pandas-index", text(rows(zoned), f",{heads}"), shape="pandas")
    yield FieldFile("pandas-numbered", numbered)
    for name in ("Datetime", "Date", "timestamp"):
        yield FieldFile(f"pandas-{name}", text(rows(zoned), f"{name},{heads}"))
    adjusted = [",".join((*(c := line.split(","))[:5], c[4], c[5])) for line in rows(zoned)]
    names = "Datetime,Open,High,Low,Close,Adj Close,Volume"
    yield FieldFile("yfinance-adjusted", text(adjusted, names))
    ticker = "Price,Open,High,Low,Close,Volume\nTicker,A,A,A,A,A\nDatetime,,,,,"
    yield FieldFile("yfinance-three-heads", text(rows(zoned), ticker))
    yield FieldFile("plain", text(rows()))
    yield FieldFile("plain-capitals", text(rows(), HEAD.upper()))
    yield FieldFile("plain-no-zone", text(rows(of_form("%Y-%m-%d %H:%M"))))
    yield FieldFile("plain-slashes", text(rows(of_form("%Y/%m/%d %H:%M"))), "utc")
    yield FieldFile("plain-thousandths", text(rows(of_form("%Y-%m-%dT%H:%M:%S.000Z"))))
    yield FieldFile("plain-zone-and-clock", text(rows()), SERVER, says="carries the zone Z")
    shuffled = [",".join((*(c := line.split(","))[4:], *c[:4])) for line in rows()]
    yield FieldFile("plain-other-order", text(shuffled, "close,volume,time,open,high,low"))
    yield FieldFile("plain-no-head", text(rows(), None))
    bare = [line.rpartition(",")[0] for line in rows()]
    yield FieldFile("no-volume", text(bare, HEAD.rpartition(",")[0]), volume=False)
    quoted = ['"' + line.replace(",", '","') + '"' for line in (HEAD, *rows())]
    yield FieldFile("quoted", text(quoted, None))
    yield FieldFile("quoted-head", text(rows(), quoted[0]))
    semicolons = rows(separator=";")
    yield FieldFile("semicolons", text(semicolons, HEAD.replace(",", ";")))
    commas = text([line.replace(".", ",") for line in semicolons], HEAD.replace(",", ";"))
    yield FieldFile("decimal-commas", commas)
    yield FieldFile("comma-head-tab-rows", text(rows(separator="\t")))
    yield FieldFile("blank-lines-below", text([*rows(), "", "", ""]))
    yield FieldFile("blank-lines-below-the-head", text(["", "", *rows()]))
    yield FieldFile("blank-line-above", text(rows(), f"\n{HEAD}"))
    yield FieldFile("newest-first", text(rows()[::-1]))
    yield FieldFile("gzip", gzip.compress(text(rows()), mtime=0), suffix=".csv.gz")
    yield FieldFile("zip", zipped("EURUSD.csv"), suffix=".zip")
    head = "Date,Open,High,Low,Close,Volume"
    for name, form in (
        ("day-first", "%d/%m/%Y %H:%M"),
        ("month-first", "%m/%d/%Y %H:%M"),
        ("twelve-hours", "%m/%d/%Y %I:%M %p"),
        ("month-name", "%d %b %Y %H:%M"),
    ):
        content = text(rows(of_form(form)), head)
        yield FieldFile(name, content, "utc")
        yield FieldFile(f"{name}-no-clock", content, says=CLOCK)


def _refused() -> Iterator[FieldFile]:
    """Yield what is no history, and histories with one fault."""
    early = of_form("%m/%d/%Y %H:%M")
    doubtful = rows(lambda moment: early(moment - timedelta(days=25)))
    head = HEAD.replace("time", "date")
    yield FieldFile("doubtful-dates", text(doubtful, head), "utc", says="day or its month first")
    first = rows()[0].split(",")
    thousands = ",".join((first[0], '"1,234.50"', '"1,234.60"', '"1,234.40"', '"1,234.50"', "1"))
    yield FieldFile("thousands", text(changed(0, thousands)), says="line 2")
    of_three = text([f"{first[0]};56,000;56,010;55,990;56,005;7"], HEAD.replace(",", ";"))
    yield FieldFile(
        "commas-of-thousands", of_three, says="open is '56,000', not a number; write numbers with a"
    )
    both = text([f"{first[0]};100,5;101;99.5;100;7"], HEAD.replace(",", ";"))
    yield FieldFile("commas-and-dots", both, says="'100,5', not a number")
    unix = text(rows(since_1970(1_000)), None)
    yield FieldFile("unix-on-a-clock", unix, SERVER, says="so its clock is utc: use that")
    ticks = text(["2024-07-28T22:00:00Z,1.1,1.2"], "time,bid,ask")
    yield FieldFile("ticks", ticks, says="holds ticks")
    for year in ("9999", "1969"):
        line = rows()[-1].replace("2024", year, 1)
        yield FieldFile(f"year-{year}", text(changed(BARS - 1, line)), says=f"year {year}")
    for name, line, says in (
        ("negative", f"{first[0]},1.1,1.2,-3.7,1.1,5", "has low -3.7"),
        ("zero", f"{first[0]},0,1.2,0,1.1,5", "has open 0"),
        ("not-a-number", f"{first[0]},1.1,1.2,n/a,1.1,5", "low is 'n/a', not a number"),
        ("infinite", f"{first[0]},1.1,inf,1.0,1.1,5", "line 2"),
        ("no-time", "soon,1.1,1.2,1.0,1.1,5", "'soon' is not a time"),
        ("high-below-low", f"{first[0]},1.1,1.0,1.2,1.1,5", "high 1.0, low 1.2"),
        ("nan", f"{first[0]},1.1,nan,1.0,1.1,5", "high is 'nan'"),
        ("underscore", f"{first[0]},1.1,1_3,1.0,1.1,5", "line 2: high is '1_3', not a number"),
        ("month-13", rows()[0].replace("-07-", "-13-"), "is not a time"),
        ("hour-25", rows()[0].replace("T22", "T25"), "is not a time"),
        ("padded", ",,,,,", "line 2: '' is not a time; the line has no bar"),
        ("another-form", f"28.07.2024 22:00,{','.join(first[1:])}", "not a time; write it like"),
        ("off-grid", rows()[0].replace(":00:00Z", ":00:07Z"), "grid"),
    ):
        yield FieldFile(name, text(changed(0, line)), says=says)
    short = text(rows()).rstrip().rpartition(b",")[0].rpartition(b",")[0]
    says = f"line {BARS + 1}: close is '', not a number; the line ends too early"
    yield FieldFile("cut-short", short, says=says)
    yield FieldFile("zone-missing", text([*rows(), "2024-07-29T08:00:00,1,1,1,1,1"]),
                    says=f"line {BARS + 2}: the time has no zone")  # fmt: skip
    yield FieldFile("column-twice", text(rows(), f"{HEAD},open"), says="has the column open twice")
    bare = [",".join(line.split(",")[:4]) for line in rows()]
    yield FieldFile("few-cells", text(bare, None), says="close; found no header and 4 cells")
    wide = text(rows(), HEAD + "," * 100_000)
    yield FieldFile("columns-alone", wide, says="has 100,006 columns: bars have some ten")
    offset = text(rows(), HEAD.replace("time", "Time (UTC+2)"))
    yield FieldFile("offset-in-the-head", offset, says="found time (utc+2), open")
    for name, content in (("binary", b"\xff\x00\x81 \xfe"), ("every-byte", bytes(range(256)) * 4)):
        yield FieldFile(name, content, says="not text")
    yield FieldFile("too-many-cells", text(changed(5, rows()[5] + ",1,2")), says="line 7")
    yield FieldFile("bar-twice", text([*rows(), rows()[-1]]), says="is there twice")
    swapped = [*rows()[:5], rows()[6], rows()[5], *rows()[7:]]
    yield FieldFile("out-of-order", text(swapped), says="comes before the bar above it")
    yield FieldFile("two-files", text([*rows(), HEAD, *rows()]), says=f"line {BARS + 2}")
    yield FieldFile("blank-line-within", text(changed(9, "")), says="line 11")
    yield FieldFile("empty", b"", says="is empty")
    yield FieldFile("blank", b"\r\n\r\n", says="is empty")
    yield FieldFile("head-alone", text([]), says="holds no bars")
    yield FieldFile(
        "no-close", text(rows(), HEAD.replace("close", "last")), says="needs time, open"
    )
    german = "Datum;Er\N{LATIN SMALL LETTER O WITH DIAERESIS}ffnung;Hoch;Tief;Schluss;Volumen"
    yield FieldFile("german-heads", text(rows(separator=";"), german), says="found datum")
    yield FieldFile("html", b"<!DOCTYPE html><html><body>Log in</body></html>", says="HTML")
    yield FieldFile("json", b'{"code": -1121, "msg": "Invalid symbol."}', says="JSON")
    yield FieldFile("parquet", b"PAR1\x15\x04\x15\x10" + bytes(40) + b"PAR1", says="Parquet")
    yield FieldFile("old-workbook", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), says="Excel")
    workbook = zipped("[Content_Types].xml", "xl/workbook.xml")
    yield FieldFile("workbook", workbook, says="Excel", suffix=".xlsx")
    yield FieldFile(
        "zip-of-two",
        zipped("a.csv", "b.csv"),
        says="with 2 files of bars in it: unpack it",
        suffix=".zip",
    )
    packed = gzip.compress(text(rows()), mtime=0)[:-30]
    yield FieldFile("gzip-cut", packed, says="cannot read", suffix=".csv.gz")


FILES: Final = (*_terminal(), *_vendors(), *_programs(), *_refused())
