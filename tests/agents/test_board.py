"""The board: stances, what is agreed, what conflicts and who is surest, as an oracle has them.

The order of the experts changes nothing, and its lines in the judge's prompt stay below 900 bytes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any, Final

from agent_config import EXPERTS, TRUST_FLOOR
from agents.contracts import REGIMES, VECTORS, AgentReport, Point
from agents.debate.scoring import CountedReport
from agents.debate.swarm import SETTLES, Board, Directive, as_features, board, with_board
from agents.registry import AGENTS
from scoring_rubric import build_interpretive_prompt
from tests.doubles.scripted import SWARM_FEATURES, a_report, context

Scaled = Callable[..., int]
FACTS: Final = ("technical.rsi14", "technical.bos", "market.session", "spread.last_atr")
FOCUS: Final = {"primary": Fraction(1), "secondary": Fraction(1, 2)}
WORDS: Final = {"high": Fraction(1), "medium": Fraction(3, 4), "low": Fraction(1, 2)}
MOVES: Final = (None, 0.0, 0.05, -0.05, 0.1, -0.1, 0.3, -0.3, 0.04, -0.04)


def an_expert(rng: random.Random, name: str) -> CountedReport:
    role = AGENTS[name].role
    if rng.random() < 0.15:
        return CountedReport(role, AgentReport.abstain(name, "a test"))
    moves = {v: rng.choice(MOVES) if v in role.focus else None for v in VECTORS}
    if rng.random() < 0.3:  # of one mind, so that stances are often equal
        moves = dict.fromkeys(role.focus, rng.choice(MOVES[1:]))
    cited = rng.sample(FACTS, rng.randint(0, 3))
    return CountedReport(role, a_report(
        name, adjustments=moves, confidence=rng.choice([*WORDS]),
        points_for=tuple(Point("It reads so", one, 1.0, "", 1) for one in cited),
        flags=rng.choice([(), (), ("ungrounded",), ("conceded",), ("invented",)]),
    ))  # fmt: skip


def a_directive(rng: random.Random) -> Directive:
    weights = {n: rng.choice([TRUST_FLOOR, 0.4, 0.75, 1.0]) for n in EXPERTS}
    return Directive(
        rng.choice(REGIMES), rng.choice([*REGIMES, ""]), trusted=rng.choice([{}, weights])
    )


def exactly(number: float) -> Fraction:
    return Fraction(repr(number))


def an_oracle(answers: list[CountedReport], told: Directive) -> dict[str, Any]:
    """Return the board in exact fractions, reckoned from the words of the experts."""
    stance: dict[str, Fraction] = {}
    k: dict[str, Fraction] = {}
    for role, report in answers:
        if report.abstained:
            continue
        scored = [
            (FOCUS[role.focus[v]], exactly(a))
            for v, a in report.adjustments.items()
            if a is not None
        ]
        whole = sum(f for f, _ in scored)
        stance[role.id] = (
            sum((f * a for f, a in scored), Fraction(0)) / whole if whole else Fraction(0)
        )
        word = "low" if "conceded" in report.flags else report.confidence
        k[role.id] = WORDS[word] * (Fraction(3, 10) if "ungrounded" in report.flags else 1)
    w = {n: exactly(told.trusted.get(n, 1.0)) for n in stance}
    cites = {a.role.id: {p.id for p in a.report.points_for} for a in answers}
    agreed = {}
    for way in (1, -1):
        side = [n for n, s in stance.items() if s * way > 0]
        both = [cites[a] & cites[b] for a, b in combinations(side, 2)]
        agreed[way] = set().union(*both)
    apart = {n: s for n, s in stance.items() if abs(s) >= Fraction(1, 20)}
    conflicts = {
        (a, b): k[a] * k[b] * (apart[a] - apart[b])
        for a, b in product(apart, repeat=2)
        if apart[a] > 0 > apart[b]
    }
    lean = sum((w[n] * k[n] * s for n, s in stance.items()), Fraction(0))
    loudest = max((w[n] * k[n] for n, s in stance.items() if s), default=Fraction(0))
    loud = {n for n, s in stance.items() if s and w[n] * k[n] == loudest}
    furthest = max((abs(stance[n]) for n in loud), default=Fraction(0))
    surest = sorted(n for n in loud if abs(stance[n]) == furthest)
    return {
        "stance": stance, "k": k, "w": w, "agreed": agreed, "conflicts": conflicts, "lean": lean,
        "surest": surest[0] if surest else "",
    }  # fmt: skip


def side_of(way: Fraction | int) -> str:
    return "LONG" if way > 0 else "SHORT" if way < 0 else "NONE"


def near(told: float, exact: Fraction) -> bool:
    return abs(exactly(told) - exact) <= Fraction(2, 10**8)


def test_it_is_what_an_oracle_makes_of_the_same_words(scaled: Scaled) -> None:
    rng, met = random.Random(19), Counter[str]()
    for _ in range(scaled(10_000, 300)):
        answers, told = [an_expert(rng, name) for name in EXPERTS], a_directive(rng)
        found, true = board(rng.sample(answers, 4), told), an_oracle(answers, told)
        assert [one.agent for one in found.stands] == sorted(true["stance"])
        assert {*found.abstained} == {*EXPERTS} - {*true["stance"]}
        for one in found.stands:
            assert near(one.stance, true["stance"][one.agent])
            assert one.side == side_of(true["stance"][one.agent])
            assert near(one.trust, true["k"][one.agent])
            assert exactly(one.weight) == true["w"][one.agent]
        assert near(found.lean, true["lean"]) and found.surest == true["surest"]
        if abs(true["lean"]) > Fraction(1, 10**7) or not true["lean"]:
            assert found.dominant == side_of(true["lean"])
        assert {way: {*ids} for way, ids in found.agreed.items()} == {
            side_of(way): ids for way, ids in true["agreed"].items() if ids
        }
        assert all([*ids] == sorted(ids) for ids in found.agreed.values())
        _conflicts_are(found, true["conflicts"], answers)
        met[found.dominant] += 1
        met["conflicts"] += bool(found.conflicts)
        met["more than three"] += len(true["conflicts"]) > 3
        met["agreed"] += any(found.agreed.values())
        met["nobody"] += not found.surest
    assert min(met[one] for one in ("LONG", "SHORT", "conflicts", "agreed")) > 20, met
    assert met["NONE"] and met["more than three"] and met["nobody"], met


def _conflicts_are(
    found: Board, true: Mapping[tuple[str, str], Fraction], answers: list[CountedReport]
) -> None:
    """Assert that the three strongest conflicts stand there, with two facts of each side."""
    told = [((one.long, one.short), one.strength) for one in found.conflicts]
    assert len(told) == min(3, len(true)) == len({pair for pair, _ in told})
    assert all(near(strength, true[pair]) for pair, strength in told)
    assert [one for _, one in told] == sorted((one for _, one in told), reverse=True)
    left = [true[pair] for pair in {*true} - {pair for pair, _ in told}]
    assert not left or max(left) <= true[told[-1][0]] + Fraction(1, 10**7)
    cites = {a.role.id: [p.id for p in a.report.points_for] for a in answers}
    for one in found.conflicts:
        assert {*one.claims} == {one.long, one.short}
        for name, claims in one.claims.items():
            assert [claim.id for claim in claims] == cites[name][:2]
        assert one.settle == SETTLES[frozenset((one.long, one.short))]


def test_its_lines_in_a_prompt_take_900_bytes_at_most(scaled: Scaled) -> None:
    rng, longest, about = random.Random(31), 0, context(features=SWARM_FEATURES)
    for _ in range(scaled(1_000, 100)):
        answers, told = [an_expert(rng, name) for name in EXPERTS], a_directive(rng)
        lines = as_lines(answers, told)
        assert len(lines) == len(as_features(board(answers, told), about.as_of))
        longest = max(longest, len("\n".join(lines).encode()))
    # Two against two, all of one trust, in a disputed regime: as long as it gets.
    split = [
        CountedReport(
            AGENTS[n].role, a_report(n, adjustments=dict.fromkeys(AGENTS[n].role.focus, s * 0.123))
        )
        for n, s in zip(EXPERTS, (1, 1, -1, -1), strict=True)
    ]
    for first, second in product(REGIMES, repeat=2):
        longest = max(longest, len("\n".join(as_lines(split, Directive(first, second)))))
    assert 400 < longest <= 900, longest


def as_lines(answers: list[CountedReport], told: Directive) -> list[str]:
    """Return the lines of the judge's prompt that show the board."""
    about = with_board(context(features=SWARM_FEATURES), answers, told)
    user = build_interpretive_prompt(about, AGENTS["judge"].role).user
    return [line for line in user.splitlines() if line.startswith("board.")]


def test_what_an_expert_calls_odd_is_on_the_board() -> None:
    told = AgentReport("liquidity", dict.fromkeys(VECTORS), "high", anomaly="stop_sweep")
    heard = [CountedReport(AGENTS["liquidity"].role, told)]
    quiet = [CountedReport(AGENTS["liquidity"].role, replace(told, anomaly=""))]
    shown, bare = (
        with_board(context(), answers, Directive()).features for answers in (heard, quiet)
    )
    assert shown["board.anomalies"].value == "liquidity:stop_sweep"
    assert "board.anomalies" not in bare


def test_the_key_uncertainty_is_what_would_settle_the_strongest_conflict() -> None:
    def answer(name: str, value: float) -> CountedReport:
        return CountedReport(AGENTS[name].role, a_report(name, value))

    heard = [answer("geometry", 0.06), answer("liquidity", 0.3), answer("macro", -0.3)]
    for split in (heard, heard[::-1]):
        found = board(split, Directive())
        assert as_features(found, "")["board.settle_1"].value == "technical.bos"
        assert [one.short for one in found.conflicts] == ["macro", "macro"]
        assert found.key_uncertainty == "a close beyond the last swing"
    assert board(heard[:2], Directive()).key_uncertainty == ""
