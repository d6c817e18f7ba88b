"""Safe access to stored records: a part that is missing, or of another type, reads as an empty one.

Records of skipped ticks, of older versions and of hosts lack parts; the pages show what there is.
Nothing here raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from torra.tick.debate import SHADOW

Row = dict[str, Any]

GATE: Final = "risk_gate"

NOT_COUNTED: Final = "shadow: recorded, not counted"
"""The note beside every figure of agents in shadow mode."""


def mapping(value: Any) -> Row:
    """Return a mapping as a dict, anything else as an empty one."""
    return dict(value) if isinstance(value, Mapping) else {}


def sequence(value: Any) -> list[Any]:
    """Return a list, a tuple or the names of a mapping as a list, anything else as an empty one."""
    return list(value) if isinstance(value, (list, tuple, Mapping)) else []


def reports(deliberation: Mapping[str, Any]) -> list[Row]:
    """Return the reports of a deliberation, each as a dict."""
    return [mapping(report) for report in sequence(deliberation.get("reports"))]


def is_gate(report: Mapping[str, Any]) -> bool:
    """Return whether a report is the gate's."""
    return bool(report.get("ruling")) or report.get("agent_id") == GATE


def in_shadow(deliberation: Mapping[str, Any]) -> bool:
    """Return whether the agents of a deliberation only looked on and L1 alone decided."""
    return SHADOW in sequence(deliberation.get("flags"))


def said_multiplier(record: Mapping[str, Any], deliberation: Mapping[str, Any]) -> Any:
    """Return the multiplier that the adjustments of a record were made with.

    It is the one in force, but in shadow: there the desk's own ruling is recorded and the gate's
    rules alone are in force.
    """
    told = deliberation.get("ruling") if in_shadow(deliberation) else record.get("gate")
    return mapping(told).get("multiplier")
