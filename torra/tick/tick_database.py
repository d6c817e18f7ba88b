"""The store that a tick runs on: the database of a home, or the memory of a replay."""

from __future__ import annotations

from typing import TypeAlias

from instance_database import Database
from torra.store.memory import MemoryStore

TickDatabase: TypeAlias = Database | MemoryStore
"""Errors of it are StoreUnavailable."""
