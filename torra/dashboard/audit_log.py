"""The audit log as a page and as a file."""

from __future__ import annotations

from torra.dashboard.routes import Route

ROUTES: tuple[Route, ...] = ()
