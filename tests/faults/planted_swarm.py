"""Planted faults of the swarm: its judge, its reader, its experts, its risk officer, its arms."""

from __future__ import annotations

from typing import Final

from tests.faults.changes import At, always, replace, without
from tests.faults.planting import Seam, Table, fault

SWARM: Final[Table] = {
    "W1": {
        "swarm-side": fault(
            "a veto of one side vetoes both",
            At(
                "agents.contracts:GateRuling.vetoes",
                replace("side in self.veto_sides", "bool(self.veto_sides)"),
            ),
            "test_a_decision_on_a_side_hangs_on_no_veto_of_the_other",
            "test_no_row_and_no_budget_enlarges_a_size_or_frees_a_side",
        ),
        "swarm-reader": fault(
            "a reader's budget counts in place of the regime's",
            At("agents.debate.swarm:directive", replace("min(shares)", "shares[-1]")),
            "test_what_the_regime_makes_of_trust_and_budget_stays_in_its_bounds",
        ),
        "swarm-first": fault(
            "who goes first silences others below the floor",
            At(
                "agents.debate.swarm:put_first",
                replace("max(TRUST_FLOOR, weight * FIRST_OTHERS)", "weight * FIRST_OTHERS"),
            ),
            "test_who_goes_first_silences_nobody",
        ),
        "swarm-unfalsified": fault(
            "the word of a judge that cannot be proved wrong counts in full",
            At("agents.evidence:trust", without("'unfalsified'")),
            "test_a_judge_that_nothing_could_prove_wrong_leaves_less",
        ),
        "swarm-judgeless": fault(
            "a failed judge counts as one that is sure",
            At(
                "agents.debate.scoring:UNJUDGED",
                replace("AgentReport('arbiter')", "AgentReport('arbiter', confidence='high')"),
            ),
            "test_a_judge_that_failed_is_worth_no_more_than_an_unsure_one",
        ),
        "swarm-level": fault(
            "a level of nowhere is the nearest one",
            At("agents.debate.replies:nearest", always("distance <= LEVEL_ATR * atr")),
            "test_a_level_is_within_a_quarter_of_an_atr_of_a_computed_one",
        ),
        "swarm-thin": fault(
            "one expert has a conviction like four",
            At("agents.debate.swarm:is_thin", replace("SPOKEN_LEAST", "0")),
            "test_a_swarm_of_one_expert_is_thin_and_its_conviction_is_bounded",
        ),
    },
    "W2": {
        "swarm-storm": fault(
            "of one storm the factors are multiplied",
            At(
                "agents.risk_gate:rules",
                replace(
                    "min(..., officer.storm)",
                    "factors.pop(GateReason.HIGH_VOLATILITY, 1.0) * officer.storm",
                ),
            ),
            "test_no_row_and_no_budget_enlarges_a_size_or_frees_a_side",
        ),
        "swarm-chance": fault(
            "what came of a judge's chances is ignored",
            At(
                "agents.debate.swarm:expected_value",
                replace("min(judge.win_share, known)", "judge.win_share"),
            ),
            "test_what_came_of_a_chance_before_is_held_against_it",
        ),
        "swarm-budget": fault(
            "the size ignores the budget of the regime",
            At(
                "agents.debate.deliberation:Deliberation.size_share",
                replace("self.swarm is not None", "False"),
            ),
            "test_no_row_and_no_budget_enlarges_a_size_or_frees_a_side",
        ),
        "swarm-shadow": fault(
            "the risk officer counts for nothing in shadow",
            At(
                "torra.tick.debate:run_tick_debate",
                replace(
                    "agent_framework.l1_only_record(context, "
                    "plan.config, deliberation.source_type)",
                    "agent_framework.l1_only_record(context, "
                    'plan.config.model_copy(update={"officer": False}), deliberation.source_type)',
                ),
            ),
            "test_in_shadow_a_swarm_opens_nothing_on_a_crowded_side",
        ),
        "swarm-ladder": fault(
            "the desk below has no risk officer",
            At("torra.config:Profile.debate", replace("self.agents.row().officer", "None")),
            "test_a_swarm_that_steps_down_keeps_its_officer_and_the_budget_of_the_regime",
        ),
        "swarm-fast-pass": fault(
            "the gate's model is left out where a position can open",
            Seam(
                "agent_framework:deliberate",
                "passes(context=lambda context: replace(context, pivotal=False))",
            ),
            "test_where_nothing_can_open_the_gate_is_not_asked_and_its_rules_stand",
        ),
    },
    "W4": {
        "swarm-past": fault(
            "a tick that runs again is told nothing of its seats' past",
            At(
                "torra.replay.rerun.journal_replay",
                replace("always(record.standing)", "None"),
            ),
            "test_standing_again.py::test_every_tick_runs_again_to_the_same_record",
        ),
    },
}
