"""Every tool by its name: a new tool is a function and one row of tools.csv."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, create_model

from agents.features import rows_of
from torra.tools import books, market, records
from torra.tools.contract import ToolArgs, ToolSpec

MODULES: Final = {"books": books, "market": market, "records": records}

HERE: Final = Path(__file__)
TYPES: Final[dict[str, Any]] = {
    "text": str,
    "whole": int,
    "timeframe": Literal["M1", "M5", "M15", "M30", "H1", "H4", "D1"],
    "verdict": Literal["BUY", "HOLD", "SELL"],
}


def _argument(row: dict[str, str]) -> Any:
    """Return the type and the field of an argument; without a usual value it must be given."""
    limits = ("min_length", "max_length") if row["type"] == "text" else ("ge", "le")
    ends = zip(limits, (row["least"], row["most"]), strict=True)
    given: dict[str, Any] = {key: int(end) for key, end in ends if end}
    usual = json.loads(row["usual"]) if row["usual"] else ...
    kind = TYPES[row["type"]]
    return (
        kind | None if usual is None else kind,
        Field(usual, description=row["description"], **given),
    )


ARGUMENTS: Final = {row["argument"]: _argument(row) for row in rows_of(HERE.with_name("args.csv"))}


def _spec(row: dict[str, str]) -> ToolSpec:
    name = row["tool"]
    given = {key.rstrip("?"): ARGUMENTS[key] for key in row["args"].split()}
    args = create_model(name, __base__=ToolArgs, **given)
    work = getattr(MODULES[row["module"]], name)
    return ToolSpec(name, row["gives"], args, work, float(row["limit_s"]))


TOOLS: Final = {row["tool"]: _spec(row) for row in rows_of(HERE.with_name("tools.csv"))}
"""Every tool by its name, in the order of the table."""
