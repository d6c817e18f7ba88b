"""Streams of events as they are kept: what a running debate told, envelope by envelope."""

from __future__ import annotations

from torra.store_connection import Store


class EventStore(Store):
    """Streams and their events."""
