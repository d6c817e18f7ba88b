"""The screen Health."""

from __future__ import annotations

from flask import url_for

from torra.dashboard import screens
from torra.dashboard.rendering import desk_view, page
from torra.dashboard.routes import Route


def health() -> str:
    """Show Health."""
    desk = desk_view().desk()
    return page(
        "health.html",
        desk,
        live=url_for("torra_agents.api_desk"),
        cells=screens.strip(desk),
        shape="desk",
    )


ROUTES = (Route("/health", "health", health),)
