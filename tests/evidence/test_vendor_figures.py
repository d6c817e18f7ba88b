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


@pytest.mark.parametrize(
    ("without", "gone"),
    [
        ("pe", "pe_to_peers"),
        ("rating.hold", "analyst_rating"),
        ("rating.period", "analyst_rating"),
        ("earnings.1.surprise_pct", "earnings_surprise_pct"),
        ("earnings.1.period", "earnings_surprise_pct"),
    ],
)
def test_a_missing_part_leaves_it_out(without: str, gone: str) -> None:
    known = {name: value for name, value in KNOWN.items() if name != without}
    assert {*read(KNOWN, PEERS, AS_OF)} - {*read(known, PEERS, AS_OF)} == {gone}


def test_two_peers_have_no_middle() -> None:
    two = {name: PEERS[name] for name in ("AAA", "BBB")}
    assert "pe_to_peers" not in read(KNOWN, two, AS_OF)
    loss = {**two, "CCC": {"pe": -3.0, "pb": 5.0}}
    found = read(KNOWN, loss, AS_OF)
    assert "pe_to_peers" not in found
    assert found["pb_to_peers"] == 2.0
    assert "pe_to_peers" not in read({**KNOWN, "pe": -2.0}, PEERS, AS_OF)


@pytest.mark.parametrize("period", [20250930.0, 20260630.0, 20269999.0, 1.0])
def test_a_surprise_of_long_ago_or_of_no_day_is_none(period: float) -> None:
    found = read({**KNOWN, "earnings.1.period": period}, PEERS, AS_OF)
    assert "earnings_surprise_pct" not in found


def test_the_newest_quarter_may_have_an_estimate_alone() -> None:
    known = {name: one for name, one in KNOWN.items() if not name.startswith("earnings.1")}
    known |= {
        "earnings.1.period": 20260630.0, "earnings.1.estimate": 1.2,
        "earnings.2.period": 20260331.0, "earnings.2.surprise_pct": 4.5,
    }  # fmt: skip
    assert read(known, PEERS, AS_OF)["earnings_surprise_pct"] == 4.5


@pytest.mark.parametrize("period", [20190101.0, 29990101.0])
def test_ratings_of_long_ago_or_of_the_future_are_none(period: float) -> None:
    assert "analyst_rating" not in read({**KNOWN, "rating.period": period}, PEERS, AS_OF)


def test_a_peer_next_to_nothing_makes_no_multiple() -> None:
    peers = {name: {"pe": 1e-300} for name in PEERS}
    assert "pe_to_peers" not in read({**KNOWN, "pe": 1e300}, peers, AS_OF)


def test_no_analyst_rates_nothing() -> None:
    nobody = {name: 0.0 for name in KNOWN if name.startswith("rating.")}
    assert "analyst_rating" not in read({**KNOWN, **nobody}, PEERS, AS_OF)
