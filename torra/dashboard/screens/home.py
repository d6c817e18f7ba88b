"""Home and the list of all symbols: what a trader asks first, from the desk's view and money.

Home answers, from the top: what waits for a person, how the money stands, what it may still lose,
what the agents changed, what they cost, and how each symbol stands. A desk of more than TILES
symbols has a row for each of them, as the page Symbols has. Nothing is changed. An app over a view
without a database knows no money, and shows none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from torra import clock
from torra.dashboard.doors.routes import Api, Fields, Route
from torra.dashboard.record import agreement, reasoning
from torra.dashboard.record.shown import WATCH_ONLY
from torra.dashboard.streams import attention, committee, skips, sources, tick_words
from torra.dashboard.streams.attention import AttentionReason
from torra.dashboard.trade import approvals
from torra.dashboard.view.answer_models import SYMBOL_ROW
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_values import ChangeCount, Overview, OverviewSymbol
from torra.dashboard.view.kept import LruCache, Same
from torra.dashboard.view.rendering import desk_view, page, state
from torra.dashboard.view.stream_reading import CHARTED
from torra.desk.promotion import watch_only
from torra.evaluation.wording import count, listed
from torra.exhibits import glances
from torra.exhibits import money as money_words
from torra.exhibits.glances import CandlePaths, GlanceCandle, MoneyPaths
from torra.feeds.sample import SHOWN_AS
from torra.money.book import AccountMoney, Money
from torra.money.open_positions import LinePoint
from torra.radar.result import run_of
from torra.store import jobs as job_table
from torra.store import radar_runs
from torra.words.ticks import SOURCES

TILES: Final = CHARTED
"""Instances that have a tile each; more are rows of a table."""

DEBATES: Final = 6
"""Running debates that are shown by name; the count beside them is of all."""

ACCOUNTS: Final = 3
"""Accounts whose money Home shows; of more the page Orders tells."""

PROPOSALS: Final = 3
"""Proposals that Home shows; of more the page Orders tells."""

Sort = Literal["attention", "name", "desk"]
SORTS: Final[Mapping[Sort, str]] = {
    "attention": "attention first",
    "name": "name",
    "desk": "your own order",
}
"""Orders of the instances and their words."""

PERIODS: Final[Mapping[str, str]] = {"today": "24 hours", "week": "7 days", "all": "All"}
"""Periods of the line of money, and their words."""

QUERY: Final[Fields] = {
    "sort": {"type": "string", "enum": list(SORTS)},
    "line": {"type": "string", "enum": list(PERIODS), "default": "today"},
}


PIECES: Final[LruCache[str]] = LruCache(256)
"""Rendered rows of symbols; the key of each is everything that it shows."""


class SymbolRow(NamedTuple):
    """An instance on a page: its place in the desk file, why it wants a look, its debate.

    `debate` is the stream of its running debate, `event` what is near in its calendar, `first` why
    no tick has run yet; each is "" without one.
    """

    place: int
    symbol: OverviewSymbol
    notices: tuple[AttentionReason, ...]
    debate: str
    event: str
    first: str

    @property
    def shown(self) -> Hashable:
        """Everything that its row shows but ages and waits of streams, which always change."""
        symbol = self.symbol
        known = (symbol.instance, symbol.feed, symbol.digits, symbol.currency, symbol.holding)
        return (*known, Same(symbol.latest), *self[2:])

    @property
    def rank(self) -> int:
        """How urgent it is; a smaller rank comes first."""
        return self.notices[0].rank if self.notices else attention.CALM


ORDERS: Final[Mapping[Sort, Callable[[SymbolRow], Any]]] = {
    "attention": lambda row: (row.rank, row.symbol.instance),
    "name": lambda row: row.symbol.instance,
    "desk": lambda row: row.place,
}


def overview() -> str:
    """Show Home."""
    data, behind, period = desk_view().overview(), state().backing, _argument("line", PERIODS)
    money = None if behind is None else behind.money(tags=False)
    lines = {} if behind is None else behind.money_lines(period)
    newest = None if behind is None else radar_runs.newest_run(behind.database)
    scan = run_of(newest["document"]) if newest else None
    return _page(
        "overview.html",
        data,
        compact=len(data.instances) > TILES,
        period=period,
        periods=PERIODS,
        waiting=approvals.waiting(PROPOSALS) if money and data.desk.waiting else [],
        money=money,
        accounts=accounts_shown(money) if money else [],
        exposed=[one for one in money.accounts if one.open.positions or one.open.orders]
        if money
        else [],
        lines={name: money_line(points) for name, points in lines.items()},
        amount=money_words.amount,
        not_counted=money_words.NOT_COUNTED,
        count=count,
        candles=candles,
        shown_as=SHOWN_AS,
        agents=_agents(data),
        worth=job_table.newest_says(behind.database, "worth") if behind else "",
        watching=_watch(behind) if behind else "",
        card=committee.newest_card(*(one.id for one in behind.settings.instances))
        if behind
        else None,
        radar=scan,
        radar_age_s=(behind.now() - clock.parse(scan.as_of)).total_seconds()
        if behind and scan
        else 0.0,
    )


def symbols() -> str:
    """Show every symbol of the desk as a row."""
    return _page("symbols.html", desk_view().overview())


def api_overview() -> ResponseReturnValue:
    """Answer the desk, its symbols with their streams, and the debates that run."""
    data = desk_view().overview()
    return jsonify(
        desk=data.desk.as_json(),
        symbols=[SYMBOL_ROW.model_validate(one).model_dump(mode="json") for one in data.instances],
        debates=[debate._asdict() for debate in data.debates],
    )


# --- details --------------------------------------------------------------------------------------


def _page(template: str, data: Overview, **more: object) -> str:
    sort = _argument("sort", SORTS)
    ticks = [stream.tick for stream in data.streams if stream.tick]
    # all streams of a timeframe close at the same moment
    waits = {stream.timeframe: stream.next_in_seconds for stream in reversed(data.streams)}
    return page(
        template,
        data.desk,
        live=True,
        data=data,
        rows=sorted(symbol_rows(data), key=ORDERS[sort]),
        sort=sort,
        sorts=SORTS,
        waits=dict(sorted(waits.items(), key=lambda wait: clock.duration(wait[0]))),
        debates=data.debates[:DEBATES],
        warnings=sources.warnings(data.instances),
        met=[SOURCES[name] for name in sorted({str(tick.source_type) for tick in ticks})
             if name in SOURCES],
        feeds=attention.feeds,
        kept=_kept,
        tick_words=tick_words,
        distance=reasoning.distance,
        spark=glances.spark,
        agreement=agreement,
        skips=skips,
        **more,
    )  # fmt: skip


def symbol_rows(data: Overview) -> list[SymbolRow]:
    """Return the instances in the order of the desk file."""
    # newest first in the data: reversed, so that the newest debate of an instance wins
    debates = {one.instance: one.stream_id for one in reversed(data.debates)}
    return [
        SymbolRow(
            place,
            one,
            attention.notices(one, data.desk),
            debates.get(one.instance, ""),
            sources.near_event([stream.tick for stream in one.streams], data.desk.now),
            "" if one.latest else attention.first_tick(one.streams, data.desk, one.feed),
        )
        for place, one in enumerate(data.instances)
    ]


def _kept(shown: Hashable, caller: Callable[[], str]) -> str:
    """Return a piece of a page; one that shows the same as before is not rendered again."""
    return PIECES.get(shown, caller)


def accounts_shown(money: Money) -> list[AccountMoney]:
    """Return the accounts whose money Home shows: those that have traded, else the first one."""
    traded = [one for one in money.accounts if one.whole.trades or one.open.positions]
    return traded[:ACCOUNTS] or list(money.accounts[:1])


def money_line(points: Iterable[LinePoint]) -> MoneyPaths | None:
    """Return the line of a period, from 0 at its beginning; None without two known values."""
    values = [point.whole for point in points]
    first = next((value for value in values if value is not None), 0.0)
    return glances.money_line([None if value is None else value - first for value in values])


def candles(symbol: OverviewSymbol) -> CandlePaths:
    """Return the small chart of an instance, its trades marked at the bars of their moments."""
    frame = min(symbol.timeframes, key=clock.duration, default="")
    places = {bar.time: place for place, bar in enumerate(symbol.bars)}
    marks: dict[str, list[int]] = {"BUY": [], "SELL": [], "close": []}
    for mark in symbol.marks:
        place = places.get(_bar_of(mark.at, frame))
        if place is not None:
            marks[mark.side if mark.what == "open" else mark.what].append(place)
    prices = ([price for price in bar[1:5] if price is not None] for bar in symbol.bars)
    bars = [GlanceCandle(*known) if len(known) == 4 else None for known in prices]
    return glances.candles(bars, *marks.values())


def _bar_of(at: str, frame: str) -> str:
    """Return the opening time of the bar in which a moment lies; "" where that is not known."""
    try:
        return clock.iso(clock.floor(clock.parse(at), frame))
    except (ValueError, OverflowError):
        return ""


def _agents(data: Overview) -> ChangeCount:
    """Return how many verdicts of the desk's own instances the agents changed, of all."""
    counts = [one.changes for one in data.instances if not one.hosted]
    return ChangeCount(sum(one.changed for one in counts), sum(one.every for one in counts))


def _watch(behind: PageContext) -> str:
    """Return the badge of agents that only look on, with their symbols where others count."""
    setups = behind.desk.setups
    names = [n for n, one in setups.items() if watch_only(behind.database, one.profile)]
    some = f": {listed(names)}" if len(names) < len(setups) else ""
    return WATCH_ONLY + some if names else ""


def _argument(name: str, words: Mapping[Any, str]) -> Any:
    """Return what the request asks for; the first word for none or an unknown one."""
    choice = request.args.get(name, "")
    return choice if choice in words else next(iter(words))


ROUTES = (
    Route("/", "overview", overview, query=QUERY),
    Route("/symbols", "symbols", symbols, query={"sort": QUERY["sort"]}),
    Api("/api/v1/overview", "api_overview", api_overview),
)
