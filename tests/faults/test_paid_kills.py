"""A desk that dies while its vendor is at work forgets no call and does not pass its ceiling.

Lives of a paying desk end by SIGKILL between the reservation, the call, the answer and the books;
the vendor keeps books of its own. Each call that it knows of must have its booking, at no less than
it did cost, and no sliding hour may have cost more than the ceiling: a restart resets no meter
(promises D1 and L5).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.faults import lives
from tests.worlds import desks
from torra.clock import parse
from torra.tick.spending import HOUR

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")

START: Final = datetime.fromisoformat("2021-11-08T02:00:00+00:00")
CEILING: Final = 0.03
"""USD an hour: the worst case of about three ticks, of which five come in an hour without kills."""

DYING: Final = ("reserved", "asked:1", "asked:2", "asked:3", "asked:4", "settled", "recorded")
"""Where a life that pays ends; an `asked` of a higher number dies with answers in hand."""

Rows = list[tuple[datetime, float]]


def dearest_hour(paid: Rows) -> float:
    """Return the most USD that any sliding hour did cost."""
    ordered = sorted(paid)
    dearest = spent = 0.0
    first = 0
    for at, usd in ordered:
        spent += usd
        while ordered[first][0] <= at - HOUR:
            spent -= ordered[first][1]
            first += 1
        dearest = max(dearest, spent)
    return dearest


def check(folder: Path) -> None:
    """Compare the vendor's books with the ledger."""
    paid = [
        (parse(at), role, turn, attempt, usd)
        for at, role, turn, attempt, usd in lives.spent(folder)
    ]
    database = desks.open_database(folder)
    booked = lives.rows(database, "select role, round, attempt, usd, at from ledger")
    database.close()
    assert dearest_hour([(at, usd) for at, *_, usd in paid]) <= CEILING + 1e-9
    calls = Counter((at, role, turn, attempt) for at, role, turn, attempt, _ in paid)
    known = Counter(
        (parse(row["at"]), row["role"], row["round"], row["attempt"])
        for row in booked
        if row["usd"] >= lives.COST
    )
    assert not calls - known, "calls that nobody booked"


@pytest.mark.timeout(1500)
def test_no_death_forgets_a_call_or_passes_the_ceiling(
    tmp_path: Path, scaled: Callable[..., int], record_property: Callable[[str, object], None]
) -> None:
    lives.warm()
    kills = scaled(150, least=6)
    dice = random.Random(20261122)
    upto = START + timedelta(minutes=15) * 2 * kills
    for _ in range(kills):
        life = partial(
            lives.live, tmp_path, START, upto,
            ceiling=CEILING, point=dice.choice(DYING), spare=dice.choice((0, 0, 0, 0, 1)),
        )  # fmt: skip
        assert lives.run(life)
        check(tmp_path)
    paid = lives.spent(tmp_path)
    dearest = dearest_hour([(parse(at), usd) for at, *_, usd in paid])
    assert dearest > 0.7 * CEILING, "the ceiling was never in the way: nothing was tried"
    record_property(
        "seen", f"{kills} deaths, {len(paid)} calls, dearest hour {dearest / CEILING:.0%}"
    )
