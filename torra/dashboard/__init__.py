"""The dashboard: pages as an app of their own, and a plug-in for another Flask app."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torra.dashboard.app import TorraOverlay, create_app

__all__ = ["TorraOverlay", "create_app"]


def __getattr__(name: str) -> object:
    """Load Flask and the pages when they are asked for: the command line needs neither."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from torra.own_names import check_names  # noqa: PLC0415

    # A host's environment holds what others need, too; told before an import fails somewhere deep.
    check_names()
    from torra.dashboard import app  # noqa: PLC0415

    return getattr(app, name)
