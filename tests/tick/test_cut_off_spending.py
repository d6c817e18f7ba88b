"""What a reply costs that was cut off and is asked again: booked at that moment, else not asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_config import OUTPUT_TOKENS
from agents.contracts import CallBound, ModelUnavailable, Request
from agents.debate.deliberation import Deliberation
from instance_database import Database
from tests.cases import cases
from tests.doubles import vendor_line
from tests.doubles.scripted import Scripted, settings
from tests.doubles.vendor_server import HONEST, VENDORS, Reply, VendorServer
from tests.worlds import vendor_desk
from tests.worlds.purses import (
    PAID,
    PRICES,
    a_deliberation,
    a_request,
    booking,
    bounds_seen,
    purse_of,
    rows,
    states,
)
from tests.worlds.stores import NOON, Hand, open_database

ROLE = "technical"
USUAL = OUTPUT_TOKENS["quick"]


def more(bound: CallBound, **changes: Any) -> CallBound:
    """Return what is asked for within the stage: twice the output for the second attempt."""
    larger = {"output_tokens": 2 * bound.output_tokens, "requests": 1, "attempt": 2}
    return replace(bound, **(larger | changes))


def bound_of(role: str = ROLE) -> CallBound:
    return next(iter(bounds_seen(role)))


def second(**changes: Any) -> Request:
    return replace(a_request(ROLE), **({"attempt": 2, "max_output_tokens": 2 * USUAL} | changes))


def worst(bound: CallBound) -> float:
    return PRICES.worst_case(
        "anthropic",
        bound.model,
        prompt_bytes=bound.prompt_bytes,
        output_tokens=bound.output_tokens,
    )


def test_the_larger_row_takes_the_place_of_the_smaller(database: Database, hand: Hand) -> None:
    analysts = bounds_seen(ROLE)
    purse = purse_of(database, Scripted(), hand, PAID.agents)
    assert purse.reserve("analysts", analysts)
    before = {row["who"]: row["usd"] for row in rows(database)}
    assert purse.reserve("analysts", [more(analysts[0])])
    after = {row["who"]: row["usd"] for row in rows(database)}
    assert before.keys() == after.keys(), "one row for each attempt"
    assert after[ROLE, 1, 1] == before[ROLE, 1, 1]
    assert after[ROLE, 1, 2] == worst(more(analysts[0])) > before[ROLE, 1, 2]


def test_what_others_of_the_stage_have_not_sent_stays_booked(
    database: Database, hand: Hand
) -> None:
    bounds = [bound_of("bull_researcher"), bound_of("bear_researcher")]
    provider = Scripted()
    purse = purse_of(database, provider, hand, PAID.agents)
    assert purse.reserve("research", bounds)
    assert purse.reserve("research", [more(bounds[0])])
    other = bounds[1].role_id
    assert states(database)[other, 1, 1] == states(database)[other, 1, 2] == "reserved"
    purse.submit(a_request(other))
    assert [request.role.id for request in provider.requests] == [other]


@cases("fits", [True, False])
def test_the_ceiling_decides(tmp_path: Path, hand: Hand, fits: bool) -> None:
    database = open_database(tmp_path / str(fits), hand)
    bound = bound_of()
    ceiling = 2.0
    # Both attempts are booked at the usual output; what is left pays for twice that, or does not.
    spent = ceiling - worst(bound) - worst(more(bound)) + (-1e-9 if fits else 1e-9)
    database.book("mine", "an earlier tick", [booking(spent)], at=NOON, until=NOON)
    provider = Scripted()
    agents = settings(provider="anthropic", max_api_cost_per_hour=ceiling).agents
    purse = purse_of(database, provider, hand, agents)
    assert purse.reserve("analysts", [bound])
    assert purse.reserve("analysts", [more(bound)]) is fits
    assert database.spent("mine", NOON) <= ceiling
    if fits:
        purse.submit(second())
        return
    for request in (second(), second(max_output_tokens=USUAL)):
        with pytest.raises(ModelUnavailable, match="budget"):
            purse.submit(request)
    assert (ROLE, 1, 2) not in states(database), "what is not asked again costs nothing"


def test_when_all_is_over_nothing_more_is_booked(database: Database, hand: Hand) -> None:
    bound = bound_of()
    purse = purse_of(database, Scripted(), hand, PAID.agents)
    assert purse.reserve("analysts", [bound])
    closed: Deliberation = purse.settled(a_deliberation())
    assert closed.cost_usd == 0.0
    assert not purse.reserve("analysts", [more(bound)])
    assert rows(database) == []


def limit(body: dict[str, Any]) -> int:
    """Return the output limit of a request on the wire."""
    found = body.get("generationConfig", {}).get("maxOutputTokens") or body.get("max_tokens")
    return int(found)


@pytest.mark.parametrize("vendor", VENDORS)
def test_twice_the_output_is_what_each_vendor_is_sent(vendor: str, tmp_path: Path) -> None:
    script = {ROLE: [Reply(stop="length"), HONEST]}
    with VendorServer(script) as server, vendor_line.line(server, vendor) as line:
        found = vendor_desk.tick(tmp_path / "desk", line.provider, vendor_line.agents(vendor))
        sent = [limit(exchange.body) for exchange in server.asked(ROLE)]
    assert sent == [USUAL, 2 * USUAL]
    assert [(call["status"], call["detail"]) for call in found.of(ROLE)] == [
        ("garbage", "length"),
        ("ok", ""),
    ]
    assert found.failures == {}
