"""How often the shipped default says BUY and SELL, agents and all, on the shipped bars."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Scale
from tests.worlds import desks
from torra.config import Instance

LEAST, MOST = 0.01, 0.25
"""Share of the valid ticks of an instance that each of BUY and SELL may take."""

ALL_BARS = 9000
"""More than any shipped stream has."""


@pytest.mark.parametrize("instance", [desks.BTC, desks.EUR], ids=lambda item: item.id)
@pytest.mark.timeout(3000)
def test_each_verdict_is_neither_rare_nor_common(
    instance: Instance,
    tmp_path: Path,
    scaled: Scale,
    record_property: Callable[[str, object], None],
) -> None:
    bars = scaled(ALL_BARS)
    desk = desks.open_desk(tmp_path, (instance,))
    desks.open_for_work(desk)
    _, end = desks.sample().period()
    ran = sum(1 for _ in desk.warm_up(end, bars))
    sql = "select verdict, count(*) as n from chains group by verdict"
    found = {row["verdict"]: row["n"] for row in desk.database.connection().query(sql)}
    desk.database.close()
    total = sum(found.values())
    shares = {side: found.get(side, 0) / total for side in ("BUY", "SELL")}
    told = " and ".join(f"{share:.1%} {side}" for side, share in shares.items())
    record_property("seen", f"{instance.id}: {told} of {total:,} ticks")
    assert total > 0.9 * min(ran, bars)
    if bars == ALL_BARS:  # a few days say nothing about rates
        assert all(LEAST <= share <= MOST for share in shares.values()), shares
