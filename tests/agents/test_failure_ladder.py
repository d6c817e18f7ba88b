"""When things fail: what counts then, who is left out, what is asked again under which cap."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, cast

import pytest

from agent_config import CAPS, MODES, OUTPUT_TOKENS
from agents.contracts import (
    SIDES,
    VECTORS,
    CallBound,
    Completion,
    ModelUnavailable,
    Request,
    SourceType,
)
from agents.debate.deliberation import Deliberation
from agents.registry import AGENTS, Agent
from tests.cases import cases
from tests.doubles.scripted import (
    FULL_FEATURES,
    Raises,
    Scripted,
    chart,
    context,
    debate,
    honest,
    report,
    reporting,
    settings,
)
from torra.tick.debate import score_chart

DESK = MODES["budget"].seats
OPINIONS = frozenset(DESK) - {"risk_gate"}


def everything_fails(**more: Any) -> Scripted:
    return Scripted(dict.fromkeys(DESK, RuntimeError("down")) | more)


@pytest.mark.parametrize("fallback", [None, score_chart])
def test_a_record_that_somebody_changes_moves_no_later_tick(fallback: Any) -> None:
    record = debate(everything_fails(chart_scorer=chart(score=0.5)), fallback=fallback)
    for part in (record.analyst_avg, record.debate):
        cast(dict[str, float], part).update(dict.fromkeys(VECTORS, 9.0))
    again = debate(everything_fails(chart_scorer=chart(score=0.5)), fallback=fallback)
    assert set(again.analyst_avg.values()) == {0.0}
    assert all(abs(move) <= 0.3 for move in again.debate.values())


def test_legacy_moves_by_the_fallback_within_the_bound_times_the_rules() -> None:
    volatile = context(features={"technical.volatility_percentile": 99.0})
    record = debate(
        everything_fails(chart_scorer=chart(score=0.5)), about=volatile, fallback=score_chart
    )
    assert record.source_type is SourceType.LEGACY
    assert record.ruling.reasons == ("HIGH_VOLATILITY",)
    l1 = context().scores
    for vector in VECTORS:
        move = max(-0.3, min(0.3, 0.5 - l1[vector]))
        assert record.scores[vector]["score"] == pytest.approx(l1[vector] + 0.7 * move, abs=1e-8)
        assert record.ungated[vector]["score"] == pytest.approx(l1[vector] + move, abs=1e-8)


@cases(
    "told",
    [
        None,
        {},
        dict.fromkeys(VECTORS, 0.1),
        {v: {"score": "0.1", "note": ""} for v in VECTORS},
        {v: {"score": True, "note": ""} for v in VECTORS},
    ],
)
def test_a_hosts_own_fallback_may_return_anything(told: Any) -> None:
    record = debate(everything_fails(), fallback=lambda _context, _ask: told)
    assert record.source_type is SourceType.L1_ONLY


def test_a_null_is_a_missing_side_on_its_vector() -> None:
    part = dict.fromkeys(VECTORS, -0.1) | {"momentum": None}
    script = {
        "technical": reporting(value=0.2),
        "bull_researcher": reporting(value=0.15),
        "bear_researcher": reporting(adjustments=part),
    }
    record = debate(Scripted(script))
    assert record.debate["momentum"] == pytest.approx(0.2)
    assert record.debate["structure"] == pytest.approx(0.2 + (0.15 - 0.1) / 2)


@cases("value", [0.1, 0.3])
@cases("agent", sorted(OPINIONS))
def test_a_sole_answer_is_used_alone_within_its_bound(agent: str, value: float) -> None:
    provider = everything_fails()
    way = SIDES.get(agent, 1)
    provider.script[agent] = [reporting(value=value * way, confidence="medium")]
    record = debate(provider)
    bound = 0.3 if agent == "technical" else 0.15
    assert record.source_type is SourceType.AGENT_PARTIAL
    assert record.adjustments["momentum"] == pytest.approx(0.75 * min(value, bound) * way)


# --- what may be spent --------------------------------------------


@pytest.mark.parametrize("refused", ["analysts", "research", "gate"])
def test_a_refused_stage_fails_for_budget_and_makes_no_call(refused: str) -> None:
    provider = Scripted()
    record = debate(provider, reserve=lambda stage, _bounds: stage != refused)
    kinds = {"analysts": "analyst", "research": "researcher", "gate": "gate"}
    members = {name for name in DESK if AGENTS[name].role.kind == kinds[refused]}
    assert record.failures == dict.fromkeys(members, "budget")
    assert not {request.role.id for request in provider.requests} & members
    assert record.source_type is SourceType.AGENT_PARTIAL


def test_who_refuses_a_stage_may_say_why() -> None:
    def reserve(stage, _bounds):
        if stage == "research":
            raise ModelUnavailable("deadline")
        return True

    record = debate(Scripted(), reserve=reserve)
    assert record.failures == dict.fromkeys(("bull_researcher", "bear_researcher"), "deadline")
    assert not [flag for flag in record.flags if flag.startswith("reserve_failed")]


def no_ledger(_stage: object, _bounds: object) -> None:
    raise OSError("disk full")


@pytest.mark.parametrize("reserve", [lambda *_: False, lambda *_: None, no_ledger])
def test_without_leave_to_spend_nothing_is_asked_and_l1_stands(reserve: Callable[..., Any]) -> None:
    provider = Scripted()
    record = debate(provider, reserve=reserve, fallback=score_chart)
    assert (record.source_type, provider.requests) == (SourceType.L1_ONLY, [])
    assert "fallback_failed:budget" in record.flags


# --- one retry, and the cap --------------------------------------------


@pytest.mark.parametrize(
    "first", ["{", RuntimeError(), Raises(OSError()), ModelUnavailable("error")]
)
def test_an_error_or_garbage_is_asked_once_more(first: Any) -> None:
    provider = Scripted({"technical": [first, reporting(value=0.2)]})
    record = debate(provider)
    assert record.source_type is SourceType.AGENT_BUDGET
    assert [request.attempt for request in provider.asked("technical")] == [1, 2]
    assert [call.status for call in record.calls[:2]] in (["garbage", "ok"], ["error", "ok"])


@cases(
    ("first", "reason"),
    [
        (TimeoutError(), "timeout"),
        (report(symbol="EURUSD"), "wrong_symbol"),
        *((ModelUnavailable(word), word) for word in ("timeout", "refused", "budget", "miss")),
    ],
)
def test_other_failures_are_not_asked_again(first: Any, reason: str) -> None:
    provider = Scripted({"technical": [first, reporting(value=0.2)]})
    record = debate(provider)
    assert len(provider.asked("technical")) == 1
    assert record.failures == {"technical": reason}


def test_an_agent_asks_twice_at_most_and_an_unknown_reason_is_an_error() -> None:
    provider = Scripted({"technical": [ModelUnavailable("<script>"), ModelUnavailable("sk-key")]})
    record = debate(provider)
    assert record.failures == {"technical": "error"}
    assert len(provider.asked("technical")) == 1


def test_a_foreign_exceptions_text_is_not_kept() -> None:
    record = debate(Scripted({"technical": RuntimeError("https://x?token=SECRET")}))
    assert "SECRET" not in repr(record)
    assert {call.detail for call in record.calls if call.status == "error"} == {"RuntimeError"}


def test_retries_stay_under_the_cap_and_leave_the_gate_its_request() -> None:
    """Seven opinions that all need a retry: 14 requests, the last one's among them."""
    role = AGENTS["technical"].role
    names = tuple(f"a{n}" for n in range(7))
    agents = {name: Agent(replace(role, id=name), AGENTS["technical"].analyze) for name in names}
    config = settings(active_agents=names)
    provider = Scripted(dict.fromkeys(names, "garbage"))
    record = debate(provider, agents=agents, config=config, fallback=score_chart)
    assert len(provider.requests) == 14
    assert provider.requests[-1].role.id == "chart_scorer"
    assert record.source_type is SourceType.LEGACY
    provider = Scripted({**dict.fromkeys(names, "garbage"), "a0": reporting()})
    debate(provider, agents=agents, config=config)
    assert len(provider.requests) == 14
    assert provider.requests[-1].role.id == "risk_gate"


# --- replies that were cut off --------------------------------------------

ROLE: Final = "technical"
MOST: Final = CAPS["output_tokens"][1]


def cut(request: Request) -> Completion:
    """Return a reply that ended at its output limit."""
    text = json.dumps(honest(request))
    tokens = request.max_output_tokens
    return Completion(text[:-20], "m", "scripted", 1000, tokens, 0.001, stop_reason="length")


class Grants:
    """Grants every stage, and of what is asked for within one what it is told to."""

    def __init__(self, within: Callable[[], object] = lambda: True) -> None:
        self.within = within
        self.asked: list[tuple[str, CallBound]] = []

    def __call__(self, stage: str, bounds: tuple[CallBound, ...]) -> Any:
        if all(bound.attempt == 1 for bound in bounds):
            return True
        self.asked += [(stage, bound) for bound in bounds]
        return self.within()


def told(provider: Scripted, grants: Any = None, **how: Any) -> Deliberation:
    return debate(provider, reserve=grants, **how)


def limits(provider: Scripted, role: str = ROLE) -> list[int]:
    return [request.max_output_tokens for request in provider.asked(role)]


def test_it_is_asked_again_with_twice_the_output() -> None:
    provider, grants = Scripted({ROLE: [cut, honest]}), Grants()
    record = told(provider, grants)
    usual = OUTPUT_TOKENS["quick"]
    assert limits(provider) == [usual, 2 * usual] and ROLE not in record.failures
    first, second = (call for call in record.calls if call.role_id == ROLE)
    assert (first.status, first.detail, first.stop_reason) == ("garbage", "length", "length")
    assert (second.status, second.attempt) == ("ok", 2)
    ((stage, bound),) = grants.asked
    assert stage == "analysts"
    assert (bound.role_id, bound.attempt, bound.requests) == (ROLE, 2, 1)
    assert bound.output_tokens == 2 * usual
    assert provider.requests[0].user == provider.asked(ROLE)[1].user


def test_it_is_asked_once_more_and_not_twice() -> None:
    provider, grants = Scripted({ROLE: [cut, cut, honest]}), Grants()
    record = told(provider, grants)
    assert len(limits(provider)) == 2 and record.failures[ROLE] == "garbage"
    assert len(grants.asked) == 1


@cases(
    ("cap", "sent"),
    [(200, [200, 400]), (3_999, [3_999, 7_998]), (5_000, [5_000, MOST]), (MOST, [MOST])],
)
def test_the_output_is_never_above_the_largest_cap(cap: int, sent: list[int]) -> None:
    provider, grants = Scripted({ROLE: [cut, honest]}), Grants()
    record = told(provider, grants, config=settings(role_caps={ROLE: {"output_tokens": cap}}))
    assert limits(provider) == sent
    assert (ROLE in record.failures) == (len(sent) == 1), "at the largest there is nothing to gain"
    assert len(grants.asked) == len(sent) - 1


def raises(error: BaseException) -> Callable[[], object]:
    def within() -> object:
        raise error

    return within


REFUSALS: Final[dict[str, Callable[[], object]]] = {
    "no room": lambda: False,
    "another value": lambda: 1,
    "a failure": raises(OSError("locked")),
    "a refusal": raises(ModelUnavailable("budget")),
}


@cases("how", REFUSALS)
def test_without_leave_it_is_not_asked_again(how: str) -> None:
    provider, grants = Scripted({ROLE: [cut, honest]}), Grants(REFUSALS[how])
    record = told(provider, grants)
    assert len(limits(provider)) == 1 and len(grants.asked) == 1
    assert record.failures == {ROLE: "garbage"}
    (call,) = (call for call in record.calls if call.role_id == ROLE)
    assert call.detail == "length"


def test_where_nothing_is_reserved_it_is_asked_again() -> None:
    provider = Scripted({ROLE: [cut, honest]})
    assert told(provider).failures == {} and len(limits(provider)) == 2


def test_another_failure_is_asked_again_with_the_same_output() -> None:
    provider, grants = Scripted({ROLE: ["no JSON", honest]}), Grants()
    assert told(provider, grants).failures == {}
    assert limits(provider) == [OUTPUT_TOKENS["quick"]] * 2 and grants.asked == []


# --- rounds --------------------------------------------


@cases("mode", ["budget", "full"])
@cases("rounds", [1, 2, 3])
def test_each_further_round_shows_each_side_the_others_case(mode: str, rounds: int) -> None:
    provider = Scripted({"bear_researcher": reporting(value=-0.1)})
    about = context(features=FULL_FEATURES)
    record = debate(provider, about=about, config=settings(mode=mode, debate_rounds=rounds))
    assert record.source_type == f"AGENT_{mode.upper()}"
    analysts = sorted(name for name in MODES[mode].seats if AGENTS[name].role.kind == "analyst")
    for side, other in (("bull", "bear"), ("bear", "bull")):
        requests = provider.asked(f"{side}_researcher")
        assert [request.round for request in requests] == list(range(1, rounds + 1))
        shown = [[told.agent_id for told in request.reports] for request in requests]
        assert shown == [analysts, *[[*analysts, f"{other}_researcher"]] * (rounds - 1)]
        assert all("momentum -0.1" in r.user for r in requests[1:]) or side == "bear"
    assert len(record.earlier) == 2 * (rounds - 1)
    seen = [told.agent_id for told in provider.asked("risk_gate")[0].reports]
    assert seen == [*analysts, "bear_researcher", "bull_researcher"]


def test_the_last_answered_round_counts() -> None:
    first, second, bear = (reporting(value=value) for value in (0.1, 0.02, -0.04))
    script = {"bull_researcher": [first, second], "bear_researcher": [bear, TimeoutError()]}
    record = debate(Scripted(script), config=settings(debate_rounds=2))
    assert record.source_type is SourceType.AGENT_BUDGET
    assert record.debate["momentum"] == pytest.approx(0.1 + (0.02 - 0.04) / 2)
    assert "round_2_without:bear_researcher" in record.flags


def test_a_further_round_needs_a_case_to_answer() -> None:
    down = {"bull_researcher": TimeoutError(), "bear_researcher": TimeoutError()}
    provider = Scripted(down)
    debate(provider, config=settings(debate_rounds=3))
    assert len(provider.asked("bull_researcher")) == 1


# --- listening --------------------------------------------


def test_listeners_are_told_in_order_and_cannot_break_a_tick() -> None:
    told = []
    quiet = debate(Scripted({"bear_researcher": RuntimeError()}))

    def listen(kind, payload) -> None:
        told.append((kind, payload.get("agent")))
        raise ValueError("listener")

    record = debate(Scripted({"bear_researcher": RuntimeError()}), on_event=listen)
    assert record.scores == quiet.scores
    assert "event_failed" in record.flags
    kinds = [kind for kind, _ in told]
    assert kinds[0] == "agent_start"
    assert kinds[-1] == "decision"
    assert ("agent_error", "bear_researcher") in told
    assert kinds.count("debate_round") == 1
    assert kinds.count("agent_complete") == 3


def test_a_listener_gets_what_an_agent_reported() -> None:
    events = {}

    def listen(kind, payload) -> None:
        if kind == "agent_complete":
            events[payload["agent"]] = payload

    record = debate(Scripted(), about=context(features=FULL_FEATURES), on_event=listen)
    assert any(answer.evidence for answer in record.reports)
    for answer in record.reports:
        event = events.pop(answer.agent_id)
        assert event["adjustments"] == answer.adjustments != {}
        assert event["evidence"] == [cited._asdict() for cited in answer.evidence]
        assert (event["abstained"], event["confidence"]) == (answer.abstained, answer.confidence)
        assert event["summary"] == (answer.claim or answer.reasoning)
        assert event["round"] == 1 and event["stage"] and event["ms"] >= 0.0
    assert not events


def test_a_retry_waits_as_long_as_the_vendor_asks() -> None:
    busy = ModelUnavailable("error", "429", again=0.25)
    provider = Scripted({"technical": [busy, honest]})
    debate(provider)
    assert [request.delay_s for request in provider.asked("technical")] == [0.0, 0.25]
