"""What a vendor says of a company beside its ratios: peers, ratings, the last surprise."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agents.features import ids_of
from torra.evidence.vendor_figures import peers_of, read

AS_OF = datetime(2026, 5, 4, tzinfo=UTC)
KNOWN = {
    "pe": 30.0,
    "pb": 6.0,
    "rating.strong_buy": 10.0,
    "rating.buy": 5.0,
    "rating.hold": 3.0,
    "rating.sell": 1.0,
    "rating.strong_sell": 1.0,
    "rating.period": 20260501.0,
    "earnings.1.period": 20260331.0,
    "earnings.1.surprise_pct": 4.5,
    "earnings.2.surprise_pct": -9.0,
    "peer.BBB": 2.0,
    "peer.AAA": 1.0,
    "peer.CCC": 3.0,
}
PEERS = {
    "AAA": {"pe": 10.0, "pb": 2.0},
    "BBB": {"pe": 20.0, "pb": 3.0},
    "CCC": {"pe": 40.0, "pb": 4.0},
}


def test_all_of_it_in_round_numbers() -> None:
    found = read(KNOWN, PEERS, AS_OF)
    assert found == {
        "pe_to_peers": 1.5,
        "pb_to_peers": 2.0,
        "analyst_rating": pytest.approx((20 + 5 - 1 - 2) / 40),
        "earnings_surprise_pct": 4.5,
    }
    assert {f"fundamentals.{name}" for name in found} == {*ids_of("fundamentals")[-4:]}
    assert peers_of(KNOWN) == ("AAA", "BBB", "CCC")


TO_PEERS, RATING, SURPRISE = "pe_to_peers", "analyst_rating", "earnings_surprise_pct"
NOBODY = {name: 0.0 for name in KNOWN if name.startswith("rating.")}


@pytest.mark.parametrize(
    ("changes", "gone"),
    [
        ({"pe": None}, TO_PEERS),
        ({"pe": -2.0}, TO_PEERS),
        ({"rating.hold": None}, RATING),
        ({"rating.period": None}, RATING),
        ({"rating.period": 20190101.0}, RATING),
        ({"rating.period": 29990101.0}, RATING),
        (NOBODY | {"rating.period": 20260501.0}, RATING),
        ({"earnings.1.surprise_pct": None, "earnings.2.surprise_pct": None}, SURPRISE),
        ({"earnings.1.surprise_pct": None}, SURPRISE),
        *(({"earnings.1.period": period}, SURPRISE)
          for period in (None, 20250930.0, 20260630.0, 20269999.0, 1.0)),
    ],
)  # fmt: skip
def test_what_is_missing_or_of_another_time_leaves_it_out(
    changes: dict[str, float | None], gone: str
) -> None:
    known = {name: value for name, value in {**KNOWN, **changes}.items() if value is not None}
    assert {*read(KNOWN, PEERS, AS_OF)} - {*read(known, PEERS, AS_OF)} == {gone}


def test_peers_count_that_have_a_ratio_and_three_of_them() -> None:
    two = {name: PEERS[name] for name in ("AAA", "BBB")}
    assert TO_PEERS not in read(KNOWN, two, AS_OF)
    found = read(KNOWN, {**two, "CCC": {"pe": -3.0, "pb": 5.0}}, AS_OF)
    assert TO_PEERS not in found and found["pb_to_peers"] == 2.0
    tiny = {name: {"pe": 1e-300} for name in PEERS}
    assert TO_PEERS not in read({**KNOWN, "pe": 1e300}, tiny, AS_OF)


def test_the_newest_quarter_may_have_an_estimate_alone() -> None:
    known = {name: value for name, value in KNOWN.items() if name != "earnings.1.surprise_pct"}
    known |= {"earnings.2.period": 20260331.0, "earnings.2.surprise_pct": 4.5}
    assert read(known, PEERS, AS_OF)[SURPRISE] == 4.5
