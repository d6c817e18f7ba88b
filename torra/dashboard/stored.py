"""Reading stored records without trusting their shape: a part that is missing is an empty one.

Records of skipped ticks, of older versions and of hosts lack parts; the pages show what there is.
Nothing here raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Row = dict[str, Any]

GATE: Final = "risk_gate"


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
