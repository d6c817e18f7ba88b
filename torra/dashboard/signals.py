"""The screen Signals and positions."""

from __future__ import annotations

from flask import url_for

from torra.dashboard import screens
from torra.dashboard.rendering import desk_view, page
from torra.dashboard.routes import Route


def signals() -> str:
    """Show Signals and positions."""
    desk = desk_view().desk()
    return page(
        "signals.html",
        desk,
        live=url_for("torra_agents.api_desk"),
        cells=screens.strip(desk),
        shape="desk",
    )


ROUTES = (Route("/signals", "signals", signals),)
