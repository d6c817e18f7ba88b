"""The pages of reasons and guards are what the code says, and name truly who gives which reason."""

from __future__ import annotations

import re

import pytest

from tests import ROOT
from torra.bridges.guards import GUARDS
from torra.words.deny_reasons import DenyReason, deny_table, guard_table

GIVERS = {
    "risk_engine": (
        "torra/verdict/risk_engine.py",
        "torra/verdict/ticket_checks.py",
        "torra/verdict/order_levels.py",
        "torra/verdict/position_size.py",
    ),
    "signal_bridge": ("signal_bridge.py", "torra/trading/courier.py"),
    "bridge": ("torra/bridges/**/*.py",),
    "approval": ("torra/tick/approval.py",),
}
"""The parts of docs/deny_reasons.md and where their code lies."""


@pytest.mark.parametrize(
    ("page", "written"),
    [
        ("deny_reasons.md", deny_table()),
        ("guards.md", guard_table((one.reason, one.scope, one.meaning) for one in GUARDS)),
    ],
)
def test_the_page_is_what_the_code_writes(page: str, written: str) -> None:
    found = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert found == written, "write the page anew: see its last line"


def test_every_reason_has_one_row_in_the_order_of_the_enum() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \| [^|]+ \|$", deny_table(), re.MULTILINE)
    assert rows == [reason.value for reason in DenyReason]
    assert all(reason.name == reason.value for reason in DenyReason)


def test_every_reason_is_given_by_a_part_that_there_is() -> None:
    for reason in DenyReason:
        assert {*reason.issuers.split(", ")} <= {*GIVERS}, reason


@pytest.mark.parametrize("giver", GIVERS)
def test_the_last_column_names_the_part_that_gives_the_reason(giver: str) -> None:
    paths = [path for pattern in GIVERS[giver] for path in ROOT.glob(pattern)]
    source = "".join(path.read_text(encoding="utf-8") for path in paths)
    given = {DenyReason[name] for name in re.findall(r"\bDenyReason\.([A-Z_]+)\b", source)}
    told = {reason for reason in DenyReason if giver in reason.issuers.split(", ")}
    assert given == told


def test_every_guard_has_one_row_in_the_order_in_which_it_is_asked() -> None:
    page = guard_table((one.reason, one.scope, one.meaning) for one in GUARDS)
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)
    assert rows == [(str(number), guard.reason) for number, guard in enumerate(GUARDS, 1)]
