"""Values of the pages' view made of plain dicts, as a scripted desk has them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter

from torra.dashboard.view.desk_values import StreamStatus, Symbol
from torra.verdict.sentiment_rules import MarkovView

Made = TypeVar("Made")

NO_STATES: Final = {"view": MarkovView(None, 0, (), (), {}), "smoothing": 1.0}


def view_value(kind: type[Made], told: object) -> Made:
    """Return a value of torra.dashboard.view.desk_values, its parts as dicts or as values."""
    found: Made = _adapter(kind).validate_python(told)  # type: ignore[arg-type]
    return found


def made_symbol(timeframe: str = "M15", **parts: Any) -> Symbol:
    """Return a symbol with a stream of which nothing is known besides these parts."""
    stream = StreamStatus(timeframe=timeframe)
    return view_value(Symbol, {"instance": "", "stream": stream, "states": NO_STATES, **parts})


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
