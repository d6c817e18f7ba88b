"""Planted faults of what is thought: bars, replies, the synthesis, the deadline, fence and ceiling.

Each takes out one safeguard; every test that it names has to fail then.
"""

from __future__ import annotations

from typing import Final

from tests.faults.planting import Edit, Fault

REPLIES: Final = "agents/debate/replies.py"
SYNTHESIS: Final = "agents/debate/synthesis.py"
GATE: Final = "agents/risk_gate.py"
STAGES: Final = "agents/debate/stages.py"
FENCE: Final = "agents/fence.py"
SITTING: Final = "agents/debate/sitting.py"
DOOR: Final = "torra/feeds/door.py"
SPENDING: Final = "torra/tick/spending.py"
PRICES: Final = "torra/providers/prices.py"

TEST_REPLIES: Final = "tests/agents/test_replies.py::"
INVARIANTS: Final = "tests/agents/test_debate_invariants.py::"
LADDER: Final = "tests/agents/test_failure_ladder.py::"
DEADLINE: Final = "tests/agents/test_deadline.py::"
PROMPTS: Final = "tests/agents/test_prompts.py::"
INJECTION: Final = "tests/agents/test_injection.py::"
LEDGER: Final = "tests/tick/test_ledger.py::"
CEILING: Final = "tests/tick/test_ceiling.py::test_no_sliding_hour_costs_more_than_its_ceiling"
TEST_DOOR: Final = "tests/feeds/test_door.py::"
REFUSED: Final = TEST_DOOR + "test_a_broken_frame_is_refused_with_its_reason"
MUTATED: Final = TEST_DOOR + "test_no_mutated_frame_slips_through"

DEBATE: Final = (
    # --- bars -------------------------------------------------------------------------------------
    Fault(
        "door-nan",
        "M2",
        "bars with NaN and infinite prices pass",
        DOOR,
        "if not np.isfinite(values).all():",
        "if False:",
        (REFUSED, MUTATED),
    ),
    Fault(
        "door-stale",
        "M1",
        "old bars pass",
        DOOR,
        "    if age > max_age_bars:\n",
        "    if False:\n",
        (REFUSED, TEST_DOOR + "test_two_bars_of_age_pass_and_a_moment_more_does_not"),
    ),
    Fault(
        "door-future",
        "M3",
        "bars that are not closed yet pass",
        DOOR,
        '        (Refusal.FUTURE, times > latest, "is not closed yet"),\n',
        "",
        (REFUSED, TEST_DOOR + "test_a_bar_is_closed_at_its_last_moment_and_not_before"),
    ),
    Fault(
        "door-high-low",
        "M2",
        "bars whose high is below their low pass",
        DOOR,
        "    if unfit.any():\n",
        "    if False:\n",
        (REFUSED, MUTATED),
    ),
    Fault(
        "door-positive",
        "M2",
        "prices of zero and below pass",
        DOOR,
        "    if low.any():\n",
        "    if False:\n",
        (REFUSED,),
    ),
    Fault(
        "news-first-seen",
        "M3",
        "headlines count from when they were published, not from when they were seen",
        "torra/evidence/news_digest.py",
        "if item.first_seen <= as_of and ",
        "if item.published <= as_of and ",
        (
            "tests/evidence/test_news_digest.py::test_what_is_seen_later_or_too_old_does_not_count",
            "tests/evidence/test_news_digest.py::test_later_items_never_change_an_earlier_view",
        ),
    ),
    # --- replies ----------------------------------------------------------------------------------
    Fault(
        "reply-nan",
        "L1",
        "a reply may hold NaN and infinity",
        REPLIES,
        "allow_inf_nan=False",
        "allow_inf_nan=True",
        (TEST_REPLIES + "test_what_is_no_finite_number_is_garbage_not_a_vote",),
        also=(
            Edit(REPLIES, "    parse_float=_number,\n    parse_constant=_constant,\n", ""),
            Edit(REPLIES, "    if not math.isfinite(converted):\n", "    if False:\n"),
        ),
    ),
    Fault(
        "report-nan",
        "L1",
        "a report of another hand may hold NaN and infinity",
        REPLIES,
        "    if not math.isfinite(converted):\n",
        "    if False:\n",
        (TEST_REPLIES + "test_what_an_agent_of_another_hand_returns_is_checked_too",),
    ),
    Fault(
        "reply-strict",
        "L1",
        "a text or a boolean passes for a number",
        REPLIES,
        "strict=True, frozen=True",
        "strict=False, frozen=True",
        (TEST_REPLIES + "test_what_is_no_finite_number_is_garbage_not_a_vote",),
    ),
    Fault(
        "reply-symbol",
        "L6",
        "an answer about another symbol counts",
        REPLIES,
        "    if told != symbol:\n",
        "    if False:\n",
        (
            TEST_REPLIES + "test_another_symbol_fails_closed",
            INJECTION + "test_a_reply_about_another_symbol_is_refused_in_every_seat",
        ),
    ),
    Fault(
        "reply-bound",
        "L4",
        "an agent's adjustment may be any size",
        REPLIES,
        "_within(_finite(value), role.bound)",
        "_finite(value)",
        (TEST_REPLIES + "test_a_finite_number_outside_the_bound_is_clamped_and_flagged",),
    ),
    Fault(
        "ruling-bound",
        "L4",
        "a gate's multiplier may be above one or below zero",
        REPLIES,
        "max(0.0, min(1.0, _finite(judged.multiplier)))",
        "_finite(judged.multiplier)",
        (TEST_REPLIES + "test_a_ruling_is_held_to_zero_to_one",),
    ),
    # --- synthesis and gate -----------------------------------------------------------------------
    Fault(
        "adjustment-bound",
        "L4",
        "the desk may move a vector by more than 0.3",
        SYNTHESIS,
        "round(clamp(debate[vector] * multiplier, ADJUSTMENT_BOUND), SCORE_DECIMALS)",
        "round(debate[vector] * multiplier, SCORE_DECIMALS)",
        (INVARIANTS + "test_a_desk_of_one_mind_goes_to_every_bound_and_not_beyond",),
    ),
    Fault(
        "blend",
        "L4",
        "the blend leaves L1 by more than 0.06",
        SYNTHESIS,
        "l1 + BLEND_WEIGHT * (agent_score - l1)",
        "l1 + 1.5 * BLEND_WEIGHT * (agent_score - l1)",
        (INVARIANTS + "test_a_desk_of_one_mind_goes_to_every_bound_and_not_beyond",),
    ),
    Fault(
        "debate-shift",
        "L4",
        "bull and bear shift by more than 0.15",
        SYNTHESIS,
        "trust(report) * clamp(value, RESEARCHER_BOUND)",
        "2.0 * trust(report) * value",
        (INVARIANTS + "test_swapping_bull_and_bear_changes_nothing_and_they_shift_little",),
    ),
    Fault(
        "ungrounded",
        "L4",
        "a citation that is not true costs nothing",
        SYNTHESIS,
        'weight * UNGROUNDED_WEIGHT if "ungrounded" in report.flags else weight',
        "weight * UNGROUNDED_WEIGHT if False else weight",
        (
            INVARIANTS + "test_trust_only_shrinks_at_a_desk_of_one_analyst",
            "tests/agents/test_desk_agents.py::"
            "test_a_value_that_is_not_in_the_bundle_moves_the_score_less",
        ),
    ),
    Fault(
        "gate-multiplier",
        "L4",
        "the gate's model may raise the multiplier of the rules",
        GATE,
        "multiplier = min(rule.multiplier, model.multiplier)",
        "multiplier = model.multiplier",
        (INVARIANTS + "test_a_model_never_loosens_the_rules",),
    ),
    Fault(
        "gate-veto",
        "L4",
        "the gate's model may lift a veto of the rules",
        GATE,
        "veto = rule.veto or model.veto",
        "veto = model.veto",
        (INVARIANTS + "test_a_model_never_loosens_the_rules",),
    ),
    Fault(
        "event-window",
        "R1",
        "the gate does not look at scheduled events",
        GATE,
        "        _near_event(features, settings),\n",
        "",
        (
            "tests/agents/test_gate.py::test_both_ends_belong_to_the_window",
            "tests/desk/test_outlook.py::test_no_opening_near_a_high_impact_event",
        ),
    ),
    # --- time -------------------------------------------------------------------------------------
    Fault(
        "deadline-stage",
        "L3",
        "a stage waits two seconds longer than its time",
        STAGES,
        "left = max(0.0, until + GRACE_SECONDS - monotonic())",
        "left = max(0.0, until + 2.0 - monotonic())",
        (DEADLINE + "test_an_agent_that_hangs_without_asking",),
    ),
    Fault(
        "deadline-tick",
        "L3",
        "a tick's deadline is later than its profile says",
        "torra_trader.py",
        "deadline = due + profile.agents.timeout_seconds",
        "deadline = due + profile.agents.timeout_seconds + 5.0",
        ("tests/tick/test_tick.py::test_a_provider_that_never_answers_does_not_hold_a_tick",),
    ),
    Fault(
        "fallback-time",
        "L3",
        "no time is kept for the single model",
        SITTING,
        "kept = FALLBACK_SHARE * max(0.0, self.deadline - self.began)",
        "kept = 0.0",
        (DEADLINE + "test_a_fifth_of_the_whole_is_kept_whatever_the_shares",),
    ),
    Fault(
        "left-behind-exit",
        "L3",
        "a call that hangs keeps the process from ending",
        STAGES,
        'name="torra-agent", daemon=True',
        'name="torra-agent", daemon=False',
        (DEADLINE + "test_the_process_exits_while_calls_hang",),
    ),
    Fault(
        "left-behind-cap",
        "L3",
        "threads that were left behind are not counted",
        STAGES,
        "return abandoned() > MAX_ABANDONED",
        "return False",
        (DEADLINE + "test_too_many_threads_left_behind_mean_l1_until_they_drain",),
    ),
    # --- money ------------------------------------------------------------------------------------
    Fault(
        "ceiling",
        "L5",
        "a stage is granted above the ceiling of the hour",
        SPENDING,
        "if spent + usd > self._settings.max_api_cost_per_hour:",
        "if False:",
        (LEDGER + "test_a_stage_above_the_ceiling_makes_no_call", CEILING),
    ),
    Fault(
        "reservation",
        "L5",
        "a request goes out that no reservation covers",
        SPENDING,
        "if row is None or row.sent or row.ended or not _fits(request, row):",
        "if row is None:",
        (LEDGER + "test_a_request_that_no_reservation_covers_is_refused",),
    ),
    Fault(
        "reservation-size",
        "L5",
        "a tenth of the worst case is reserved",
        SPENDING,
        "usd = worst_case(prices, settings, local, bound)\n    return [",
        "usd = 0.1 * worst_case(prices, settings, local, bound)\n    return [",
        (CEILING,),
    ),
    Fault(
        "reservation-cached",
        "L5",
        "the worst case does not count a cached token that is dearer than plain input",
        PRICES,
        "                BilledTokens(0, tokens, 0, output),\n",
        "",
        ("tests/providers/test_prices.py::test_no_cost_exceeds_its_worst_case",),
    ),
    Fault(
        "reservation-kept",
        "L5",
        "a call that never answered costs nothing",
        SPENDING,
        "self._database.keep(row.id)",
        "self._database.release(row.id)",
        (LEDGER + "test_a_call_without_an_answer_keeps_its_worst_case",),
    ),
    Fault(
        "ledger-fails-open",
        "L5",
        "a ledger that cannot be written grants everything",
        SITTING,
        '            self.flags.append(f"reserve_failed:{stage.name}")\n'
        '            return "budget"\n',
        '            return ""\n',
        (LADDER + "test_without_leave_to_spend_nothing_is_asked_and_l1_stands",),
    ),
    Fault(
        "calls-on-file",
        "L8",
        "what the models saw and said is not kept",
        "torra_trader.py",
        "        database.write_calls(key, debated.deliberation.calls)\n",
        "",
        (
            "tests/tick/test_tick_debate.py::test_what_a_tick_cost_stands_in_journal_ledger_and_calls",
        ),
    ),
    # --- strangers' words -------------------------------------------------------------------------
    Fault(
        "fence-nonce",
        "L6",
        "every call of a tick has the same nonce",
        SITTING,
        'text = f"{context.nonce}|{stage.name}|{stage.round}|{role_id}"',
        "text = context.nonce",
        (PROMPTS + "test_every_call_has_a_nonce_of_its_own_and_none_the_ticks",),
    ),
    Fault(
        "fence-forged",
        "L6",
        "a text may carry the nonce of its fence",
        FENCE,
        "without_nonce(text.translate(_PLAINER), nonce).translate(_PLAINER)",
        "text.translate(_PLAINER)",
        (PROMPTS + "test_a_fence_can_neither_be_forged_nor_left",),
        also=(Edit(FENCE, " and (not nonce or nonce.lower() not in text.lower()):", ":"),),
    ),
    Fault(
        "fence-brackets",
        "L6",
        "a text may carry the brackets of a fence",
        FENCE,
        'dict.fromkeys(_OPENING, "(")',
        'dict.fromkeys("", "(")',
        (PROMPTS + "test_what_looks_like_a_fence_is_written_in_brackets",),
    ),
    Fault(
        "fence-without-nonce",
        "L6",
        "prose is shown without a nonce",
        FENCE,
        "return NONCE.fullmatch(context.nonce) is not None",
        "return True",
        (PROMPTS + "test_without_a_proper_nonce_no_prose_is_shown",),
    ),
    Fault(
        "numbers-only",
        "L6",
        "the news agent's prose enters the other prompts",
        "scoring_rubric.py",
        "quotable = has_nonce(context) and report.agent_id not in NUMBERS_ONLY",
        "quotable = has_nonce(context)",
        (
            PROMPTS + "test_of_a_news_report_only_numbers_and_ids_enter_another_prompt",
            INJECTION + "test_a_news_agent_of_attacks_leaves_the_other_prompts_as_they_were",
        ),
    ),
)
