"""Planted faults of the firm: its manager, its trader, escalation, chain and caps."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, never, replace, returns, sets
from tests.faults.planting import Seam, Table, fault

FIRM: Final[Table] = {
    "G1": {
        "manager-weights": fault(
            "a manager's weight is not cut at 1",
            At("agents.debate.replies", replace("between(value, 0.0, 1.0)", "value")),
            "test_a_number_outside_its_range_is_clamped_and_flagged",
        ),
        "manager-word": fault(
            "a manager that is not sure lowers nothing",
            At("agents.debate.scoring", replace("min(raw, trust(...))", "raw")),
            "test_a_size_is_the_product_of_the_docs",
        ),
        "manager-side": fault(
            "a manager that names the other side costs nothing",
            At("agents.debate.scoring", replace("max(loss, OPPOSITION_COST)", "loss")),
            "test_a_size_is_the_product_of_the_docs",
        ),
        "manager-none": fault(
            "a manager that takes no side costs nothing where an analyst objects",
            At("agents.debate.scoring", replace("none_cost if ... else 0.0", "0.0")),
            "test_a_size_is_the_product_of_the_docs",
        ),
        "debate-unheld": fault(
            "a debate that was not held is a manager's NONE",
            At("agent_framework", returns("replace(UNJUDGED, winner='NONE')", "UNHELD")),
            "test_a_size_is_the_product_of_the_docs",
        ),
        "trader-latch": fault(
            "a decline latches nothing",
            At(
                "torra.tick.decision",
                replace("ruling.vetoes(side) or side == ...", "ruling.vetoes(side)"),
            ),
            "test_a_decline_takes_the_opening_away_and_latches_on_its_side",
        ),
        "trader-unheard": fault(
            "a decline does nothing",
            Seam(
                "torra.verdict.risk_engine:review",
                "passes(decision=lambda decision: replace(decision, declined=False))",
            ),
            "test_a_decline_takes_the_opening_away_and_latches_on_its_side",
        ),
    },
    "G2": {
        "trader-latched": fault(
            "the trader is asked although a veto of the side still holds",
            At("torra.tick.thesis:predict_consensus", replace("side in latched", "False")),
            "test_a_decline_takes_the_opening_away_and_latches_on_its_side",
        ),
        "trader-no-size": fault(
            "the trader is asked about an opening of no size",
            At(
                "torra.tick.thesis:predict_consensus",
                replace("not size(prices, spec, profile.risk, share)", "False"),
            ),
            "test_an_opening_of_no_size_is_nothing_to_ask_about",
        ),
        "trader-late": fault(
            "the trader is asked with no time left",
            At("torra.tick.thesis:consulted", replace("'deadline' if short else ''", "''")),
            "test_where_too_little_time_is_left_it_is_not_asked",
        ),
        "trader-parted": fault(
            "a tick that is taken over foresees by what the rest of its close has left",
            At("torra.store.tick_store:TickStore", never("record.get(...)")),
            "test_what_a_death_parts_from_its_close_foresees_as_its_close_did",
        ),
        "escalation": fault(
            "the chief is asked from just above the conviction of the setting",
            At(
                "torra.tick.thesis:tier_of",
                replace("conviction >= rule.at", "conviction > rule.at"),
            ),
            "test_the_border_of_the_escalation_is_the_setting_itself",
        ),
        "trader-free": fault(
            "the worst case of a tick leaves the chief out",
            At(
                "torra.tick.degradation:consulting_tiers", replace("('deep', 'chief')", "('deep',)")
            ),
            "test_the_worst_case_of_a_tick_has_the_trader_at_its_dearest",
        ),
    },
    "G4": {
        "firm-company": fault(
            "a tick that runs again foresees by the state after its close",
            At(
                "torra.replay.rerun.replay_store:JournalDatabase.company",
                returns("found", "...(..., position=held)"),
            ),
            At("torra.store.tick_store:TickStore.company", sets("stored", "{}")),
            "test_every_tick_of_a_firm_runs_again_to_the_same_record",
        ),
    },
}
