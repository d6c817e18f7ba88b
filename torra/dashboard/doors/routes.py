"""The table of routes: what each address answers, who may ask it and how often.

Every screen module has its part of the table, `ROUTES`; `every_route` joins the parts. The
blueprint, the access checks, the OpenAPI description and the tests are all made from this table,
so every address states its scope. Nothing here answers a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, Literal

from flask.typing import ResponseReturnValue

SCREENS: Final = (
    "screens.entry", "trade.orders", "screens.tick", "screens.watching", "screens.home",
    "streams.radar", "streams.committee", "streams.film", "streams.ask",
    "screens.views", "trade.order_pages", "trade.approvals", "trade.signals", "trade.trades",
    "trade.journal", "trade.lessons", "screens.costs", "settings.models", "screens.agent_effect",
    "screens.history", "settings.profiles", "settings.new_symbol", "settings.first_run",
    "screens.jobs", "screens.replays", "screens.files", "screens.health", "screens.audit_log",
    "screens.streaming", "screens.notices", "description",
)  # fmt: skip
"""The modules of torra.dashboard that have routes. `views` has the catch-all route, at its end."""


Fields = Mapping[str, Mapping[str, Any]]
"""Parameters or a body by name, each with its JSON schema."""


@dataclass(frozen=True, slots=True)
class Route:
    """One address with its view; `scope` is the least scope of a visitor, None for anybody.

    `reply` is the kind of answer. `per_minute` is how often one visitor may ask, None for any
    number. `query` and `body` describe parameters and JSON body for the API's description. A route
    that takes `files` takes its body as multipart/form-data, no larger than any other body. One
    with `conflicts` may answer a GET with 409.
    """

    rule: str
    name: str
    view: Callable[..., ResponseReturnValue]
    methods: tuple[str, ...] = ("GET",)
    scope: Literal["read", "approve", "admin"] | None = "read"
    reply: Literal["html", "json", "events", "csv", "picture"] = "html"
    per_minute: int | None = None
    query: Fields = field(default_factory=dict)
    body: Fields = field(default_factory=dict)
    files: bool = False
    conflicts: bool = False

    @property
    def summary(self) -> str:
        """The first line of the view's docstring, which says what the route does."""
        return (self.view.__doc__ or "").strip().partition("\n")[0]


Api = partial(Route, reply="json")
"""An address that answers JSON."""

Command = partial(Route, methods=("POST",), reply="json")
"""An address that changes something, and answers a program with JSON."""


@cache
def every_route() -> tuple[Route, ...]:
    """Return the whole table."""
    modules = [import_module(f"torra.dashboard.{name}") for name in SCREENS]
    return tuple(route for module in modules for route in module.ROUTES)


@cache
def by_name() -> Mapping[str, Route]:
    """Return the table by the name of the endpoint."""
    return {route.name: route for route in every_route()}
