"""Modules that few tests need and that take long to import: each process collects every test."""

from __future__ import annotations

import importlib
from typing import Any


class Later:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Whoever collects tests asks every global for names such as __test__ and _mock_name."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)
