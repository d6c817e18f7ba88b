"""What is asked and answered in a debate: prompts, schemas, hashes, and what run_debate() returns.

Every mode debates one tick with all evidence, with replies that differ by seat and round alone; and
again where seats fail, veto or fall silent. A review of a closed trade stands beside the debates.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from agent_config import MODES
from agent_framework import blend, consult_trader, run_debate
from agents.contracts import VECTORS, Request
from agents.registry import TRADER
from scoring_rubric import build_review_prompt, request_hash
from tests.agents.test_review_prompt import NOTE, about, rendered
from tests.doubles import scripted
from tests.golden.exact import as_json, in_lines, with_machine
from tests.worlds import reviews
from tests.worlds.desk_prompts import at_the_desk, at_the_firm, golden_files
from tests.worlds.lesson_reviews import SEEN
from torra.tick.debate import score_chart

GARBAGE: Final = "no JSON"


def varied(request: Request) -> dict[str, Any]:
    """Return a reply that fits, of numbers that follow from the seat and the round alone."""
    chance = random.Random(
        f"{request.role.id}|{request.timeframe}|{request.bar_time}|{request.round}"
    )
    reply = scripted.honest(request)
    if "adjustments" in reply:
        reply["adjustments"] = {vector: chance.uniform(-0.3, 0.3) for vector in VECTORS}
    if "multiplier" in reply:
        reply["multiplier"] = chance.choice([1.0, 0.7, 0.4])
    if "confidence" in reply:
        reply["confidence"] = chance.choice(["high", "medium", "low"])
    return reply


def veto(request: Request) -> dict[str, Any]:
    """Return a gate's veto."""
    return scripted.ruling(request, veto=True, multiplier=0.5, reason_code="HIGH_VOLATILITY")


def silent(request: Request) -> dict[str, Any]:
    """Return a reply without an opinion."""
    return scripted.report(request, value=None, abstained=True, abstain_reason="nothing to read")


def script(mode: str, case: str) -> dict[str, Any]:
    """Return who answers what in a case: in `degraded` and `halved` only some seats do."""
    seats = MODES[mode].seats
    entries: dict[str, dict[str, Any]] = {
        "varied": {},
        "garbage": dict.fromkeys(seats, GARBAGE),
        "refused": dict.fromkeys(seats, TimeoutError()),
        "vetoed": {"risk_gate": veto},
        "gateless": {"risk_gate": GARBAGE},
        "silent": dict.fromkeys(seats[:-1], silent),
        "degraded": dict.fromkeys(seats[1:4], GARBAGE),
        "halved": {seat: [GARBAGE, varied] for seat in seats[1:-1:2]},
        "undecided": dict.fromkeys(("research_manager", "judge", "bull_researcher"), GARBAGE),
    }
    return {**dict.fromkeys(seats, varied), **entries[case]}


CASES: Final = (
    "varied", "garbage", "refused", "vetoed", "gateless", "silent", "degraded", "halved",
    "undecided",
)  # fmt: skip

SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "rounds": {"debate_rounds": 3, "rebuttal": "always"},
    "unsure": {"second_look": "always", "quorum": 1},
    "fewer": {"active_agents": ("technical", "bear_researcher", "risk_gate")},
}
"""Settings that ask more, or fewer, by case; all seats answer in them."""


def make(folder: Path) -> dict[str, str]:
    """Return prompts as text, schemas and debates as JSON."""
    texts = {
        f"prompts/{name.removeprefix('prompt_')}": text for name, text in golden_files().items()
    }
    texts["prompts/review.txt"] = rendered(build_review_prompt(about(SEEN), NOTE))
    log: list[tuple[str, Request]] = []
    for mode in MODES:
        debates = {case: _debate(mode, script(mode, case), log) for case in CASES}
        for case, changes in SETTINGS.items():
            if mode == "budget" or "active_agents" not in changes:
                debates[case] = _debate(mode, script(mode, "varied"), log, **changes)
        texts[f"{mode}.json"] = as_json(debates)
    texts["fallback.json"] = as_json(
        _debate("budget", script("budget", "refused"), log, fallback=score_chart)
    )
    trader = scripted.Scripted()
    order, config = at_the_firm("trader"), scripted.settings(mode="firm")
    consult_trader(TRADER, order, config, trader.submit, monotonic=lambda: 0.0, deadline=60.0)
    home = reviews.Home(folder, answers := reviews.Answers())
    home.close_trade()
    home.reviewer.review_due()
    home.database.close()
    alone = [*trader.requests, *answers.requests]
    log += [("desk", request) for request in alone]
    texts["alone.json"] = as_json([_named(request) for request in alone])
    texts["schemas.json"] = json.dumps(_schemas(log), indent=1)
    texts["second_looks.json"] = as_json(_again(log))
    return with_machine(texts)


def _debate(
    mode: str,
    entries: Mapping[str, Any],
    log: list[tuple[str, Request]],
    fallback: Any = None,
    **changes: Any,
) -> dict[str, Any]:
    provider = scripted.Scripted(entries)
    tick = at_the_desk(features=scripted.SWARM_FEATURES, picture=b"png")
    config = scripted.settings(mode=mode, picture="rendered", **changes)
    scores = run_debate(
        tick, config, provider.submit, monotonic=lambda: 0.0, deadline=60.0, fallback=fallback
    )
    requests = sorted(provider.requests, key=lambda one: (one.round, one.role.id, one.attempt))
    log += [(mode, request) for request in requests]
    return {
        "returned": scores,
        "blended": blend(tick.scores, scores),
        "requests": [_named(request) for request in requests],
    }


def _named(request: Request) -> str:
    """Return whose request it is, by which model, and its hash, in one line."""
    place = f"{request.role.id} {request.round}.{request.attempt} {request.model}"
    return f"{place} {request.max_output_tokens} {request_hash(request)}"


def _schemas(log: Iterable[tuple[str, Request]]) -> dict[str, Any]:
    """Return the schema of every seat's reply, in its order; seats with one schema share a row."""
    shared: dict[str, tuple[set[str], Any]] = {}
    for mode, request in log:
        names, _ = shared.setdefault(json.dumps(request.schema), (set(), request.schema))
        names.add(f"{mode} {request.role.id}")
    return {", ".join(sorted(names)): schema for names, schema in shared.values()}


def _again(log: Iterable[tuple[str, Request]]) -> dict[str, Any]:
    """Return what the later attempts and rounds of each seat are told, by seat."""
    texts: dict[str, Any] = {}
    for mode, request in log:
        if (request.round, request.attempt) != (1, 1):
            name = f"{mode} {request.role.id} {request.round}.{request.attempt}"
            texts.setdefault(name, in_lines(request.user))
    return texts
