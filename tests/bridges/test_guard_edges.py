"""Each guard objects at the same edge, whoever asks: advisor, paper, or the MetaTrader5 package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doubles.advisor_channel import AdvisorChannel
from tests.worlds.guard_edges import (
    EDGES,
    NOT_OF_THE_PACKAGE,
    ack_of,
    case_of,
    on_package,
    on_paper,
)


@pytest.mark.parametrize("reason", EDGES)
def test_the_edge_of_each_guard(guarded: AdvisorChannel, tmp_path: Path, reason: str) -> None:
    for number, (signal, market, objects) in enumerate(EDGES[reason]):
        refusals = {
            "advisor": ack_of(guarded, case_of(signal, market))["reason"],
            "paper": on_paper(signal, market),
        }
        if reason not in NOT_OF_THE_PACKAGE:
            refusals["package"] = on_package(tmp_path / str(number), signal, market)
        for judge, refusal in refusals.items():
            assert (refusal == reason) == objects, (judge, signal, market, refusal)
            assert objects or refusal in ("", "retcode"), (judge, signal, market, refusal)
