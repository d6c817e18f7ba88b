"""The page Orders, with a tab for each stage of an order, and the page of one order.

An order is one from its proposal over its signal to its result. What a stage lists is read by
`approvals`, `signals` and `trades`, which also answer the API and the files; `orders` has the
commands. Addresses of the pages before this one lead here, with their words. Without a desk behind
the pages the list says so. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

from flask import redirect, request, url_for
from flask.typing import ResponseReturnValue

from torra.dashboard.doors.routes import Fields, Route
from torra.dashboard.streams import price_lines
from torra.dashboard.streams.committee import newest_card
from torra.dashboard.trade import approvals, signals, trade_rows, trades
from torra.dashboard.trade.order import DeskOrder
from torra.dashboard.view import list_query
from torra.dashboard.view.rendering import desk_page, desk_view, state
from torra.store.trade.proposals_and_alarms import REFUSED
from torra.verdict.signal_states import UNDER_WAY, UNEXECUTED

STAGES: Final = ("all", "waiting", "working", "open", "closed", "refused")
"""The tabs of the page."""

STATES: Final = {"working": ("WAITING", *UNDER_WAY), "refused": UNEXECUTED}
"""The states of the signals in a stage; of another one all."""

QUERY: Final[Fields] = {
    **trades.QUERY,
    **trades.PERIOD,
    **signals.QUERY,
    "stage": {"type": "string", "enum": STAGES, "default": "all"},
}


def orders() -> str:
    """Show the orders of a stage."""
    stage = request.args.get("stage") or "all"
    list_query.require_known("stage", stage, STAGES)
    if state().backing is None:
        return desk_page("orders.html", here=False, stage=stage)
    desk = desk_view().desk()
    shown: dict[str, Any] = {}
    if stage in ("all", "waiting"):
        shown |= approvals.waiting_list(desk)
    if stage == "waiting":
        shown |= approvals.decided_list()
    if stage in ("all", "refused"):  # an approved proposal stands there as its signal
        shown |= approvals.decided_list(REFUSED)
    if stage in ("all", "working", "open"):
        shown |= signals.controls()
    if stage in ("all", "working", "refused"):
        shown |= signals.signal_list(STATES.get(stage, ()))
    if stage == "closed":
        shown |= trades.trade_list()
    cursor = shown.get("cursor")
    return desk_page(
        "orders.html",
        desk,
        here=True,
        live=stage != "closed",
        stage=stage,
        stages=STAGES,
        orders=trade_rows,
        older=list_query.address(".orders", QUERY, before=cursor) if cursor else None,
        newest=list_query.address(".orders", QUERY) if request.args.get("before") else None,
        **shown,
    )


def order(sid: str) -> str:
    """Show one order: its stages, what made it, and what a person may do about it."""
    order = DeskOrder.find(sid)
    return desk_page(
        "order.html",
        live=True,
        order=order,
        orders=trade_rows,
        over=price_lines.LINES,
        card=newest_card((order.signal or order.proposal_row).instance),
        **(approvals.decision(order) if order.proposal else {}),
        **(signals.life(order) if order.signal else {}),
    )


def old_list(stage: str) -> Callable[[], ResponseReturnValue]:
    """Return the view of an address that was the list of a stage."""

    def lead() -> ResponseReturnValue:
        """Lead to the orders of the stage, by the same words."""
        words = urlencode([("stage", stage), *request.args.items(multi=True)])
        return redirect(f"{url_for('.orders')}?{words}", 303)

    return lead


def old_page(sid: str) -> ResponseReturnValue:
    """Lead to the order that the address was a page of."""
    return redirect(url_for(".order", sid=sid), 303)


ROUTES = (
    Route("/orders", "orders", orders, query=QUERY),
    Route("/orders/<sid>", "order", order),
    Route("/approvals", "approvals", old_list("waiting")),
    Route("/approvals/<sid>", "approval", old_page),
    Route("/signals", "signals", old_list("all")),
    Route("/signals/<sid>", "signal", old_page),
    Route("/trades", "trades", old_list("closed")),
)
