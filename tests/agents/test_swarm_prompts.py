"""What a swarm's seats read: all of their own block, what is quoted and fenced, and that it fits.

The golden texts are those of tests/golden/bytes_debates.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given

from agent_config import (
    GATE_ID,
    JUDGE_ID,
    MAX_PROMPT_BYTES,
    MODES,
    PROMPT_BYTES,
    READER_ID,
)
from agents.contracts import (
    OPINIONS,
    DebateContext,
    Evidence,
    Feature,
    Point,
    Prompt,
    Request,
)
from agents.debate.deliberation import Deliberation
from agents.features import FEATURES
from agents.registry import AGENTS
from scoring_rubric import LEFT_OUT, build_interpretive_prompt, second_look
from tests.agents import test_prompts as plain
from tests.agents.test_debate_invariants import cases as drawn
from tests.agents.test_firm_prompts import LESSONS
from tests.agents.test_prompts import (
    LONGEST,
    TALES,
    attacks,
    outside_fences,
)
from tests.conftest import Scale
from tests.doubles import scripted
from tests.doubles.scripted import Scripted, a_report, debate, settings
from torra.evidence.companion_readings import NUMBERS
from torra.evidence.outside_readings import LEVELS_OF

CONFIG: Final = settings(mode="swarm", picture="rendered")
OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "liquidity": ("liquidity.",),
    "microstructure": ("micro.",),
    "macro": ("macro.",),
    "geometry": ("geometry.",),
    READER_ID: ("memory.", "market.regime"),
    JUDGE_ID: ("board.", "stakes.", "geometry.level."),
    GATE_ID: ("gate.", "market.", "memory."),
}
"""What each seat is there for: no number of it may be left out."""


# --- the fence ------------------------------------------------------------------------------------


def test_no_words_of_an_expert_leave_their_fence_at_the_judge(scaled: Scale) -> None:
    """Names of patterns and levels are of closed sets; words of a claim and of a point are not."""

    def outside(*told: Any) -> list[str]:
        about = replace(scripted.context(features=scripted.SWARM_FEATURES), reports=told)
        return outside_fences(build_interpretive_prompt(about, AGENTS[JUDGE_ID].role).user)

    def hostile(text: str, name: str) -> Any:
        return a_report(
            "geometry",
            claim=text,
            points_for=(Point(text, "technical.rsi14", 61.2, text, 1),),
            evidence=(Evidence(name, text), Evidence("technical.rsi14", 61.2)),
            flags=(text,),
        )

    silent = replace(
        hostile("", ""), claim="", points_for=(), evidence=(hostile("", "").evidence[1],)
    )
    calm = outside(silent)

    @drawn(scaled(10_000))
    @given(attacks, attacks)
    def check(text: str, name: str) -> None:
        assert outside(hostile(text, name)) == calm

    check()


# --- the size -------------------------------------------------------------------------------------

BESIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "crypto": ("cot.", "positioning.", "derivs."),
    "stock": ("company.", "fundamentals."),
    "index": ("cot.", "positioning."),
}
"""Blocks from beside the chart that a class has and others have not."""

EVERYWHERE: Final = ("flow.", "spread.", "micro.", "liquidity.", "geometry.", "lessons.")
COMPANIONS: Final = ("dollar_index", "vix", "brent_oil", "us10y")


def known_of(asset: str) -> Iterator[str]:
    """Yield the ids of all that can be known of a symbol of a class beside its bars."""
    levels = tuple(f"macro.{name}" for name in LEVELS_OF.get(asset, ()))
    blocks = (*EVERYWHERE, *BESIDE[asset])
    yield from (name for name in FEATURES if name.startswith((*blocks, *levels)))
    yield from (f"geometry.level.{place}" for place in range(1, 9))
    yield from (f"companion.{name}.{number}" for name in COMPANIONS for number in NUMBERS)
    yield from (f"stakes.{name}" for name in ("cost_r", "reward_r", "break_even"))
    yield from (f"standing.{name}_hit_share" for name in MODES["swarm"].seats)
    yield from (f"standing.win_share_{tenth}" for tenth in range(10))


def fullest(asset: str, tale: str) -> DebateContext:
    """Return a real tick with all that can be known, each number as long as it gets."""
    (about,) = plain.real_ticks("BTCUSD_M15", 1, tale)
    more = {
        name: Feature(name, -12345.6789, "ATR", about.as_of, decimals=4)
        for name in known_of(asset)
        if about.features.get(name) is None or about.features[name].value is None
    }
    shares = {
        name: Feature(name, 0.5833, "", about.as_of, decimals=4)
        for name in more
        if name.startswith(("standing.", "stakes."))
    }
    memory = {**about.memory, "recent_trades": plain.TRADES}
    features = {**about.features, **more, **shares}
    return replace(
        about, features=features, memory=memory, lessons=LESSONS, asset=asset, picture=b"png"
    )


def wordy(tale: str) -> Any:
    """Replies as long as they can be made to matter, in every shape of a swarm."""

    def entry(request: Request) -> dict[str, Any]:
        kind = request.role.kind
        if kind == "gate":
            return scripted.ruling(request)
        names = sorted(request.features, key=lambda name: (-len(name), name))[:40]
        told: dict[str, Any] = {
            "claim": tale * 50,
            "points_for": [
                {"id": name, "value": request.features[name].value, "says": tale * 30, "why": tale}
                for name in ("scores.momentum", "scores.structure")
            ],
            "evidence": [{"id": name, "value": -9.9e9} for name in names],
        }
        if kind == "reader":
            return scripted.regime(request, **told, first="microstructure", regime="trend_down")
        if kind == "judge":
            return scripted.decision(request, **told, side="SHORT", counter=tale * 30)
        levels = [one.value for name, one in request.features.items() if ".level." in name]
        value = 0.3 if request.role.id in ("liquidity", "macro") else -0.3
        return scripted.report(request, value=value, levels=levels, **told)

    return entry


def asked_in_full(about: DebateContext, tale: str) -> tuple[Deliberation, list[Request]]:
    """Return the record of a swarm that never stops, and what it was asked: all within bounds."""
    provider = Scripted(dict.fromkeys(MODES["swarm"].seats, wordy(tale)))
    record = debate(provider, about=about, config=CONFIG)
    assert not record.failures
    assert {request.role.id for request in provider.requests} == {*MODES["swarm"].seats}
    for request in provider.requests:
        assert len((request.system + request.user).encode()) <= most(request), request.role.id
        assert left_out(about, request, OWN[request.role.id]) == []
        assert all(name.startswith(LEFT_OUT) for name in left_out(about, request)), request.role.id
    return record, provider.requests


def most(request: Request) -> int:
    """Return the bytes that a prompt may have."""
    return PROMPT_BYTES.get(request.role.id, MAX_PROMPT_BYTES)


def left_out(
    about: DebateContext, request: Request, prefixes: tuple[str, ...] = ("",)
) -> list[str]:
    """Return what a seat may see of some blocks, is known, and is not in its request."""
    seen = AGENTS[request.role.id].role.evidence
    known = (name for name, one in about.features.items() if one.value is not None)
    mine = (name for name in known if name.startswith(seen) and name.startswith(prefixes))
    return [name for name in mine if name not in request.features]


@pytest.mark.journey
@pytest.mark.parametrize("asset", BESIDE)
def test_a_swarm_is_shown_all_that_can_be_known_and_no_prompt_is_refused(
    asset: str, scaled: Scale
) -> None:
    """Headlines, lessons, companions, trades, its past, prose without end: nothing is left out."""
    for tale in TALES[: scaled(len(TALES), 2)]:
        about = fullest(asset, tale)
        record, requests = asked_in_full(about, tale)
        assert not [flag for flag in record.flags if flag.startswith("shortened")]
        again = len(second_look(Prompt("", "", "finding", tuple(about.features)), LONGEST).user)
        for request in requests:
            assert left_out(about, request) == []
            size = len((request.system + request.user).encode())
            if request.role.kind in OPINIONS:
                assert size + again <= most(request), request.role.id
            told = "A lesson of ordinary length" in request.user
            assert told == (request.role.id in CONFIG.agents.memory.roles), request.role.id


def test_who_is_shown_less_still_has_its_own_block_whole() -> None:
    """A host with hundreds of numbers from beside the chart."""
    about = fullest("index", TALES[0])
    many = {f"{block}number_{n:03d}" for block in ("derivs.", "flow.") for n in range(300)}
    more = {name: Feature(name, -12345.6789, "ATR", about.as_of, decimals=4) for name in many}
    told = replace(about, features={**about.features, **more})
    record, _ = asked_in_full(told, TALES[0])
    shown_less = {flag.partition(":")[2] for flag in record.flags if flag.startswith("shortened")}
    assert shown_less == {READER_ID, "liquidity", "microstructure", "macro", GATE_ID}
