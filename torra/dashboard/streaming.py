"""Streams of events to the browser."""

from __future__ import annotations

from torra.dashboard.routes import Route

ROUTES: tuple[Route, ...] = ()
