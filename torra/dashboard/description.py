"""The API's own description, in OpenAPI."""

from __future__ import annotations

from torra.dashboard.routes import Route

ROUTES: tuple[Route, ...] = ()
