"""The screen Profiles."""

from __future__ import annotations

from flask import url_for

from torra.dashboard import screens
from torra.dashboard.rendering import desk_view, page
from torra.dashboard.routes import Route


def profiles() -> str:
    """Show Profiles."""
    desk = desk_view().desk()
    return page(
        "profiles.html",
        desk,
        live=url_for("torra_agents.api_desk"),
        cells=screens.strip(desk),
        shape="desk",
    )


ROUTES = (Route("/profiles", "profiles", profiles),)
