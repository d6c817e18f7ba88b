"""Rendering for every screen: the state of its app, the page around its figures, addresses.

`page` renders a template of ours with the desk's strip, the menu, the visitor's scope and the token
that forms must carry. Nothing is read here except the state of the app and the visitor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from flask import abort, current_app, g, render_template, request, url_for

from torra.config import ROOT, DeskSettings
from torra.dashboard.doors.access import Access, Visitor
from torra.dashboard.view.backing import PageContext
from torra.dashboard.view.desk_values import DeskStatus
from torra.dashboard.view.desk_view import DeskView
from torra.exhibits import figures
from torra.words import glossary
from torra.words.ticks import ROLES, VECTOR_NAMES

EXTENSION: Final = "torra_agents"
"""Name of the blueprint and key of the state in `app.extensions`."""

STATIC: Final = ROOT / "static"
REFRESH_SECONDS: Final = 3
SERVER_CLOCK: Final = "new_york+7"
"""Wall clock of most brokers' servers; a desk with a channel has that channel's."""


class MenuPage(NamedTuple):
    """A page of the menu: its endpoint and its word."""

    endpoint: str
    word: str


class Room(NamedTuple):
    """A word of the menu with its pages, the first of which it leads to.

    `inside` are endpoints of pages that are reached from those.
    """

    word: str
    pages: tuple[MenuPage, ...]
    inside: tuple[str, ...] = ()


MENU: Final = (
    Room("Home", (MenuPage("overview", "Home"),), ("first_run",)),
    Room(
        "Symbols",
        (
            MenuPage("radar", "Radar"),
            MenuPage("symbols", "All symbols"),
            MenuPage("history", "History"),
            MenuPage("watching", "Debates"),
        ),
        ("film", "instance", "symbol", "tick", "watch", "new_symbol", "check_symbol", "add_symbol"),
    ),
    Room(
        "Orders",
        (
            MenuPage("orders", "Orders"),
            MenuPage("lessons", "Lessons"),
        ),
        ("order",),
    ),
    Room(
        "Research",
        (
            MenuPage("replays", "Replays"),
            MenuPage("ask_page", "Ask"),
            MenuPage("committee", "Committee"),
            MenuPage("jobs", "Jobs"),
        ),
        ("replay", "card", "job"),
    ),
    Room(
        "Desk",
        (
            MenuPage("health", "Health"),
            MenuPage("costs", "Cost"),
            MenuPage("models", "Models"),
            MenuPage("profiles", "Profiles"),
            MenuPage("audit", "Audit log"),
            MenuPage("help", "Help"),
        ),
        ("profile",),
    ),
)
"""The five words above every page. An address without a page of its own is in no room."""


@dataclass(frozen=True, slots=True)
class Vendored:
    """A vendored script: its file below static/, its integrity and the notice of its licence."""

    file: str
    integrity: str
    notice: str


@dataclass(frozen=True)
class PageState:
    """The state that the pages of one app share."""

    desk_view: DeskView
    access: Access
    backing: PageContext | None = None
    trusted_hosts: tuple[str, ...] = ()
    remote: bool = False
    """Whether the pages are served to other machines: a banner says so."""


def state() -> PageState:
    """Return the state of the app that answers this request."""
    page_state: PageState = current_app.extensions[EXTENSION]
    return page_state


def desk_view() -> DeskView:
    """Return the data source of the app that answers this request."""
    return state().desk_view


def backing() -> PageContext:
    """Return the backing of the pages; 404 for an app that has only a view."""
    return state().backing or abort(404)


def tick_link(instance: str, timeframe: str, bar_time: str) -> str:
    """Return the address of a tick's page."""
    return url_for(f"{EXTENSION}.tick", instance=instance, timeframe=timeframe, bar_time=bar_time)


def page(template: str, desk: DeskStatus | None = None, **context: object) -> str:
    """Render one of our templates with the values that all of them use.

    `endpoints` are those to which a visitor's page may link; `ordered` is whether a desk that takes
    orders stands behind the pages.
    """
    known = state()
    visitor: Visitor | None = g.get("torra_visitor")
    return render_template(
        f"torra_agents/{template}",
        desk=desk,
        fig=figures,
        explained=glossary.entry,
        roles=ROLES,
        short=VECTOR_NAMES,
        refresh=REFRESH_SECONDS,
        vendor=vendor_files(),
        menu=MENU,
        room=room_of(request.endpoint),
        visitor=visitor,
        csrf=known.access.csrf(visitor) if visitor and visitor.session else "",
        server_clock=server_clock(known.backing.settings if known.backing else None),
        remote=known.remote,
        # a stranger's page, the login or an error, links to nothing inside
        endpoints=current_app.view_functions if visitor else {},
        ordered=known.backing is not None,
        **context,
    )


def desk_page(template: str, desk: DeskStatus | None = None, **context: object) -> str:
    """Render a page with the state of the desk above its own figures.

    The figures of a page whose template says `live` change while it is open; of another one only
    what surrounds it.
    """
    return page(template, desk or desk_view().desk(), **context)


def room_of(endpoint: str | None) -> Room | None:
    """Return the room of the menu in which an endpoint's page is."""
    name = (endpoint or "").rpartition(".")[2]
    for room in MENU:
        if name in room.inside or any(page.endpoint == name for page in room.pages):
            return room
    return None


def server_clock(settings: DeskSettings | None) -> str:
    """Return the wall clock of the broker, as the pages' time switch shows it."""
    clocks = [channel.server_clock for channel in settings.channels.values()] if settings else []
    return clocks[0] if clocks else SERVER_CLOCK


@cache
def vendor_files() -> Mapping[str, Vendored]:
    """Return the vendored scripts by package name."""
    folder = STATIC / "vendor"
    vendored = {}
    for package in json.loads((folder / "vendor.json").read_text(encoding="utf-8"))["packages"]:
        (name, integrity), *_ = package["files"].items()
        notices = [item for item in package["licence_files"] if item.endswith(".NOTICE")]
        notice = (folder / notices[0]).read_text(encoding="utf-8").strip() if notices else ""
        vendored[package["name"]] = Vendored(f"vendor/{name}", integrity, notice)
    return vendored
