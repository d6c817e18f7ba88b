"""docs/deny_reasons.md is the enum, and says truly which reasons this version gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torra.risk_engine import DENIALS, DenyReason, deny_table

ROOT = Path(__file__).resolve().parent.parent
GIVERS = {"risk_engine": "torra/risk_engine.py", "signal_bridge": "signal_bridge.py"}


def test_the_page_is_what_the_code_writes() -> None:
    page = (ROOT / "docs/deny_reasons.md").read_text(encoding="utf-8")
    assert page == deny_table(), "write the page anew: see its last line"


def test_every_reason_has_one_row_in_the_order_of_the_enum() -> None:
    assert list(DENIALS) == list(DenyReason)
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \| [^|]+ \|$", deny_table(), re.MULTILINE)
    assert rows == [reason.value for reason in DenyReason]
    assert all(reason.name == reason.value for reason in DenyReason)


@pytest.mark.parametrize("giver", GIVERS)
def test_the_last_column_names_the_part_that_gives_the_reason(giver) -> None:
    source = (ROOT / GIVERS[giver]).read_text(encoding="utf-8")
    given = {DenyReason(name) for name in re.findall(r"DenyReason\.([A-Z_]+)\b", source)}
    told = {reason for reason, row in DENIALS.items() if giver in row.given_by}
    assert given == told
