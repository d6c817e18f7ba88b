"""The models by which the API answers values: which of their fields, and what besides.

`of` derives one from the type of a value, so that no field is described twice; it reads the value's
attributes, and takes no other. The screens and the API's description share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import ConfigDict, create_model

from torra.dashboard.record.shown import ListedTick
from torra.dashboard.view.desk_values import (
    DeskStatus,
    OverviewSymbol,
    PositionValue,
    StreamStatus,
    Symbol,
)
from torra.tick.tick_record import ThresholdsRecord
from torra.verdict.risk_engine import Position

READING: Final = ConfigDict(from_attributes=True)


def of(kind: type, names: str = "", **more: Any) -> Any:
    """Return the closed model of a type's fields, or of those named, with what an answer adds."""
    hints = get_type_hints(kind)
    chosen = {name: hints[name] for name in names.split() or hints}
    return closed(f"{kind.__name__}Value", chosen | more)


def closed(name: str, kind: Any) -> Any:
    """Return the type of a value: of a mapping a closed model, of a list of one a list of them.

    The names before a field's type are apart by spaces. A field with a default may be missing.
    """
    if isinstance(kind, list):
        return GenericAlias(list, (closed(name, kind[0]),))
    if is_typeddict(kind) or hasattr(kind, "_fields"):
        return of(kind)
    if args := tuple(closed(name, part) for part in get_args(kind)):
        return reduce(or_, args) if isinstance(kind, UnionType) else get_origin(kind)[args]
    if not isinstance(kind, Mapping):
        return kind
    parts: dict[str, Any] = {
        field: own if isinstance(own, tuple) else (closed(name + title(field), own), ...)
        for fields, own in kind.items()
        for field in fields.split()
    }
    return create_model(name, __config__=READING, **parts)


def title(name: str) -> str:
    """Return a name as that of a model."""
    return "".join(part.capitalize() for part in name.split("_"))


TICK: Any = of(
    ListedTick,
    "bar_time as_of verdict l1_verdict action reason denied consensus l1_consensus source_type",
)
"""What is answered of a tick in a list; its own address answers the record."""

STREAM: Any = of(
    StreamStatus,
    "timeframe next_in_seconds age_seconds stale quiet skipped damaged",
    composite=float | None,
    tick=TICK | None,
)
FIELDS: Final = "instance symbol feed digits currency timeframes changes"
PARTS: Final = {
    "thresholds": of(ThresholdsRecord, "buy sell") | None,
    "position": of(
        Position,
        "side lots entry stop target state opened_at signal_id",
        now=get_type_hints(PositionValue)["now"],
    )
    | None,
}
DESK = of(DeskStatus, waiting=int)
SYMBOL_ROW: Any = of(OverviewSymbol, f"{FIELDS} price day_close", **PARTS, streams=[STREAM])
SYMBOL: Any = of(Symbol, FIELDS, **PARTS, stream=STREAM, ticks=[TICK])
