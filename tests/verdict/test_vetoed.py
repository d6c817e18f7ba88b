"""Who took an opening away: the gate, or a swarm's officer or judge for one side."""

from __future__ import annotations

from agents.contracts import GateRuling
from tests.cases import cases
from torra.verdict.vetoed import refusal, sided

BUYS = {"veto_sides": ("BUY",), "reasons": ("CROWDED", "THIN_DATA", "NEGATIVE_EV")}


@cases(
    ("ruling", "side", "codes", "first"),
    [
        (BUYS, "BUY", ("CROWDED", "NEGATIVE_EV"), "CROWDED"),
        (BUYS, "SELL", (), ""),
        (BUYS | {"veto": True}, "BUY", (), ""),
        ({"veto": True, "reasons": ("JUDGE_HOLD",)}, "BUY", (), "JUDGE_HOLD"),
        ({"veto": True, "reasons": ("JUDGE_HOLD", "STALE_DATA")}, "BUY", (), ""),
        ({"veto": True, "reasons": ("STALE_DATA",)}, "SELL", (), ""),
        ({"reasons": ("JUDGE_HOLD",)}, "SELL", (), ""),
    ],
)
def test_a_refusal_of_one_side_has_its_reason(
    ruling: dict[str, object], side: str, codes: tuple[str, ...], first: str
) -> None:
    gate = GateRuling(**ruling)  # type: ignore[arg-type]
    assert sided(gate, side) == codes
    assert refusal(gate, side) == first
