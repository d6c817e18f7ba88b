"""What a mode is expected to cost, beside the bill of servers that count tokens by other rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_config import MODES, VENDORS
from docs import representative_tick
from tests.cases import cases
from tests.doubles.vendor_line import prices
from tests.doubles.vendor_server import ANTHROPIC, GOOGLE, OPENAI
from tests.worlds import desks, paid_ticks
from torra.config import Profile
from torra.desk.models import expected_cost
from torra.desk.models.expected_cost import EARNED_TICKS, CostBasis, ShippedTick, shipped_tick
from torra.evaluation.promotion_rule import RULE
from torra.providers.prices import PriceList
from torra.tick.tick_record import FeatureRecord, TickRecord

TICKS = 6
WITHIN = 0.25
FIRST = [("budget", ANTHROPIC), ("full", GOOGLE), ("firm", OPENAI), ("swarm", ANTHROPIC)]
EVERY = [(mode, vendor) for mode in MODES for vendor in VENDORS]


def estimate(tick: TickRecord | ShippedTick | None = None, *, own: bool = False) -> CostBasis:
    return CostBasis(tick or shipped_tick(), 120, prices(), lambda vendor: own and vendor == OPENAI)


def expected(tick: TickRecord | ShippedTick | None = None, **agents: Any) -> Any:
    return estimate(tick).expected(Profile().with_agents(**agents))


def usd(**agents: Any) -> float:
    return float(expected(**agents)["tick_usd"])


@pytest.mark.by_day(2)
@pytest.mark.by_day(4)
@pytest.mark.parametrize(("mode", "vendor"), [*FIRST, *(one for one in EVERY if one not in FIRST)])
def test_what_is_expected_of_a_tick_is_within_a_quarter_of_its_bill(
    tmp_path: Path, mode: str, vendor: str
) -> None:
    paid, calls = paid_ticks.bill(tmp_path, vendor, mode, TICKS)
    assert calls >= TICKS * 4
    assert usd(mode=mode, provider=vendor) == pytest.approx(paid / TICKS, rel=WITHIN)


def test_a_day_and_the_ticks_of_earned_are_so_many_ticks() -> None:
    told = expected(provider=GOOGLE, max_api_cost_per_hour=100.0)
    assert told["day_usd"] == pytest.approx(120 * told["tick_usd"], rel=1e-3)
    assert told["earned_usd"] == pytest.approx(EARNED_TICKS * told["tick_usd"], rel=1e-3)
    assert RULE.count(1) == EARNED_TICKS, "the first look at agents in shadow"
    # no day costs more than its hours may
    held = expected(provider=GOOGLE, max_api_cost_per_hour=0.01)
    assert held["day_usd"] == pytest.approx(0.24) and held["tick_usd"] == told["tick_usd"]


def test_every_mode_is_told_with_every_vendor_as_a_profile_of_it_is() -> None:
    rows = estimate().by_mode()
    assert [(row["mode"], row["vendor"]) for row in rows] == EVERY
    for row in rows:
        found = expected(mode=row["mode"], provider=row["vendor"])
        assert found == {name: row[name] for name in found}


def test_the_models_of_a_profile_are_what_it_is_expected_to_pay() -> None:
    cheap = usd(provider=ANTHROPIC, deep_think_model="claude-haiku-5-5")
    mixed = usd(provider=ANTHROPIC, role_models={"bull_researcher": "claude-haiku-5-5"})
    assert cheap < mixed < usd(provider=ANTHROPIC)
    assert usd(provider="rules") == 0.0
    alone = usd(provider="rules", role_models={"bear_researcher": "google:gemini-3.8-flash"})
    assert 0.0 < alone < usd(provider=GOOGLE)


@cases(
    ("less", "more"),
    [
        ({"call_policy": "pivotal"}, {"call_policy": "always"}),
        ({"call_policy": "pivotal", "pivotal_sample": 0.0}, {"call_policy": "pivotal"}),
        ({"gate_call": "openings"}, {"gate_call": "always"}),
        ({"rebuttal": "never"}, {"rebuttal": "auto"}),
        ({"rebuttal": "auto"}, {"rebuttal": "always"}),
        ({"second_look": "never"}, {"second_look": "auto"}),
    ],
)
def test_what_happens_on_some_ticks_alone_counts_by_its_share(
    less: dict[str, Any], more: dict[str, Any]
) -> None:
    assert (
        0.0
        < usd(mode="firm", provider=ANTHROPIC, **less)
        < usd(mode="firm", provider=ANTHROPIC, **more)
    )


def test_a_seat_counts_once_the_newest_tick_has_evidence_for_it(tmp_path: Path) -> None:
    macro = FeatureRecord(id="macro.us10y", value=4.1, unit="%")
    own = shipped_tick().model_copy(update={"features": (macro,)})
    paid = {"mode": "swarm", "provider": ANTHROPIC}
    with_macro = expected(own, **paid)["tick_usd"] - usd(**paid)
    assert with_macro > 0.0002, "the expert on macro numbers is asked"
    desk = desks.open_desk(tmp_path)
    try:
        read = CostBasis.of(desk.database, [desks.BTC], prices(), {})
        assert read.tick == shipped_tick() and read.closes == 120
        desks.open_for_work(desk)
        desks.step(desk)
        newest = CostBasis.of(desk.database, [desks.EUR, desks.BTC], prices(), {}).tick
        assert newest.bar_time == "2021-11-10T10:00:00Z"
        # a tick of the small desk has no evidence of the experts, and still they count
        told = expected(newest, **paid)["tick_usd"]
        assert told == pytest.approx(usd(**paid), rel=0.1)
    finally:
        desk.close()


def test_what_has_no_price_is_named() -> None:
    strange = expected(provider=ANTHROPIC, deep_think_model="claude-9")
    assert strange["unpriced"] == ["anthropic:claude-9"] and strange["tick_usd"] is None
    assert "anthropic:claude-9 has no price" in expected_cost.sentence(strange)
    plugged = expected(provider="some-package:model")
    assert plugged["unpriced"] == ["some-package:model:deep", "some-package:model:quick"]
    assert expected_cost.figures(plugged) == ("no price",) * 3


def test_a_local_server_costs_nothing_unless_the_list_prices_it() -> None:
    rows = {(row["mode"], row["vendor"]): row for row in estimate(own=True).by_mode()}
    assert expected_cost.figures(rows["firm", OPENAI]) == ("0.0000", "0.00", "0.00")
    assert rows["firm", GOOGLE]["tick_usd"]
    mixed = Profile().with_agents(provider=ANTHROPIC, quick_think_model=f"{OPENAI}:my-model")
    assert 0.0 < (estimate(own=True).expected(mixed)["tick_usd"] or 0.0) < usd(provider=ANTHROPIC)
    listed = PriceList({"my-model": {"input": 1.0, "output": 2.0}})
    local = CostBasis(shipped_tick(), 120, listed, lambda _: True)
    alone = Profile().with_agents(provider=OPENAI, quick_think_model="my-model")
    assert (local.expected(alone)["tick_usd"] or 0.0) > 0.0, "the home's prices.json names one"


def with_value(value: float | None) -> ShippedTick:
    """Return the shipped tick with one value in all of its evidence."""
    seen = (one.model_copy(update={"value": value}) for one in shipped_tick().features)
    return shipped_tick().model_copy(update={"features": tuple(seen)})


@cases(
    ("value", "agents"),
    [(1.0, {"active_agents": ["technical", "nobody"]}), (1e308, {"mode": "full"})],
)
def test_what_cannot_be_estimated_is_not_told_as_nothing(
    value: float, agents: dict[str, Any]
) -> None:
    told = expected(with_value(value), provider=GOOGLE, **agents)
    assert told["tick_usd"] is told["day_usd"] is told["earned_usd"] is None
    assert expected_cost.figures(told) == ("unknown",) * 3
    assert expected_cost.sentence(told) == "no cost can be estimated"
    assert len(estimate(with_value(value)).by_mode()) == len(EVERY)


def test_evidence_without_a_value_is_the_shipped_ticks() -> None:
    paid: dict[str, Any] = {"mode": "full", "provider": GOOGLE}
    assert expected(with_value(None), **paid) == expected(**paid)


def test_a_paid_seat_that_the_tick_does_not_ask_is_named() -> None:
    told = expected(mode="full", provider=GOOGLE)
    assert told["uncounted"] == ["news"] and told["tick_usd"]
    said = "not asked on that tick and not counted: news"
    assert expected_cost.sentence(told).endswith(said)
    alone = expected(mode="full", provider="rules", role_models={"news": "google:gemini-3.8-flash"})
    assert alone["tick_usd"] is None and alone["uncounted"] == ["news"]
    assert expected_cost.sentence(alone) == f"no cost can be estimated; {said}"
    assert expected(mode="full", provider="rules")["uncounted"] == [], "the rules cost nothing"


@pytest.mark.journey
def test_the_shipped_tick_is_one_of_the_sample() -> None:
    page = representative_tick.PAGE.read_text("utf-8")
    assert page == representative_tick.render(), "python -m docs.generate"
