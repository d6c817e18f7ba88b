"""What Torra computes, sends, stores and shows is what stands in the goldens, part by part.

`make test` checks what decides and what moves money, and the pages and commands that show most of
it; `make journeys` checks the desks that take longest.
"""

from __future__ import annotations

import pytest

from tests.golden import parts

DAILY = (
    "bytes_ticks", "bytes_debates", "bytes_vendors", "bytes_trades", "bytes_orders",
    "pages_demo", "pages_live", "notices", "drawings",
)  # fmt: skip
LONG = ("commands", "pages_debates", "pages_desks", "pages_faults", "commands_days")


@pytest.mark.parametrize("part", DAILY)
def test_a_part_is_as_in_its_goldens(part: str) -> None:
    parts.check(part)


@pytest.mark.journey
@pytest.mark.parametrize("part", LONG)
def test_a_long_part_is_as_in_its_goldens(part: str) -> None:
    parts.check(part)


def test_every_part_is_checked() -> None:
    assert {*DAILY, *LONG, "inventory", "tables"} == {*parts.PARTS}
