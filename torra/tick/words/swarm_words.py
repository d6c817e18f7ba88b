"""What pages and commands say alike of a swarm: regime, board, judge, expected value.

Code makes these words of codes and numbers; prose of a model is never among them, and who shows
such prose beside them cleans it. Pure functions; what is not known is "".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from agent_config import EXPERTS, REGIME_BUDGET
from agents.contracts import AgentReport
from agents.debate.scoring import DIRECTIONS
from agents.debate.swarm import Board, Conflict, ExpectedValue
from agents.features import name_of
from torra.tick.tick_record import (
    DebateRecord,
    FeatureRecord,
    GateRecord,
    RegimeDirective,
    SwarmRecord,
    statement,
)
from torra.words.orders import LEANS
from torra.words.ticks import EXPERT_CUTS, FLAGS, REGIMES

LEVEL: Final = "geometry.level."
"""How the ids of computed levels begin, whose values are prices."""

HITS: Final = "that the target is hit before the stop"
"""What the chance of a judge is of."""

NO_SPREADS: Final = "no spreads, ticks or order book of this symbol are known"

LACKS: Final[Mapping[str, str]] = {
    "no liquidity evidence": "too few bars to tell sweeps and volume",
    "no micro or flow evidence": NO_SPREADS,
    "no spread or order flow evidence": NO_SPREADS,
    "no macro or companion or sentiment evidence": (
        "no other markets, yields, positions or options are known"
    ),
    "no geometry evidence": "too few bars to tell the shape of the chart",
}
"""What an expert lacks, by how its reason begins (agents.evidence.missing)."""

NAMES_OF_FEATURES: Final = re.compile(r" \([a-z0-9_]+(?:, [a-z0-9_]+)*\)$")
"""Ends of feature ids behind a reason, which only a page can explain."""

BOARD_FEATURES: Final[Mapping[str, str]] = {
    "board.lean": "where the experts stand together",
    "board.dominant": "the side of the experts together",
    "board.surest": "the expert that weighs most here",
    "board.long": "experts that lean up",
    "board.short": "experts that lean down",
    "board.neutral": "experts that lean neither way",
    "board.agreed_long": "facts that two experts cite for up",
    "board.agreed_short": "facts that two experts cite for down",
    "board.conflicts": "conflicts between experts",
    "board.anomalies": "what the experts call odd",
    "board.regime_note": "the regime, and whether the reader disputes it",
    "stakes.reward_r": "what the target gains",
    "stakes.cost_r": "what the trade costs",
    "stakes.break_even": "the chance from which the trade pays",
}
"""Names of what only a judge is told."""


def expert(name: str | None) -> str:
    """Return what an expert is called; another name as words."""
    return (name or "").replace("_", " ")


def market(name: str | None) -> str:
    """Return a regime in a sentence; "" where none is known."""
    known = REGIMES.get(name or "")
    return known.meaning if known else (name or "").replace("_", " ")


def feature(name: str | None) -> str:
    """Return the name of a feature, of those that only a judge is told too."""
    return BOARD_FEATURES.get(name or "") or name_of(name or "")


def lack(reason: str) -> str:
    """Return what an expert lacks in plain words; "" of another reason."""
    return next((says for begins, says in LACKS.items() if reason.startswith(begins)), "")


def silence(reason: str | None) -> str:
    """Return why an agent abstained, without ids of features."""
    return lack(reason or "") or NAMES_OF_FEATURES.sub("", reason or "")


def percent(share: float | None) -> str:
    """Return a share in percent; "" where it is not known or none."""
    return f"{100 * share:.0f} %" if share is not None and 0.0 <= share <= 1.0 else ""


def reading(regime: RegimeDirective) -> str:
    """Return what the reader of the regime says of the code's word."""
    if not regime.reader:
        return "nobody read it beside the code"
    if not regime.disputed:
        return "the reader names it too"
    return f"the reader reads {market(regime.reader)}: the lower budget counts where agents do"


def budget(regime: RegimeDirective, alone: float | None = None) -> str:
    """Return what the regime leaves of an opening's size, and whose share that is.

    `alone` is the reader's own share, which is told where it is not that of the regime's row.
    """
    if not (left := percent(regime.budget)):
        return ""
    named = (regime.code, regime.reader) if regime.disputed else (regime.code,)
    row = percent(min(REGIME_BUDGET.get(name, 1.0) for name in named))
    whose = "the lower row of the two regimes" if regime.disputed else "the regime's row"
    own = percent(alone)
    if own in ("", row):
        return f"{left} of an opening's size"
    return (
        f"{left} of an opening's size: the reader alone would leave {own}; {whose} leaves {row}: "
        "the lower one counts"
    )


def storm(swarm: SwarmRecord) -> str:
    """Return why the budget takes less than the regime's share; "" where it takes all of it."""
    if swarm.storm >= 1.0:
        return ""
    return (
        f"the gate took x {swarm.storm:.2f} for the same storm: only the smallest factor counts, "
        "not the product"
    )


def sureness(report: AgentReport, trust: float | None) -> str:
    """Return an expert's own word of how sure it is, with what it was cut to and why."""
    cut = next((why for flag, why in EXPERT_CUTS.items() if flag in report.flags), "")
    kept = f", cut to {trust:.2f} as {cut}" if cut and trust is not None else ""
    return f"its own confidence {report.confidence}{kept}"


def break_even(expected: ExpectedValue) -> float | None:
    """Return the chance, 0 to 1, from which the side pays; None where the stakes are not known."""
    if expected.reward_r is None or expected.cost_r is None or expected.reward_r <= -1.0:
        return None
    return (1.0 + expected.cost_r) / (1.0 + expected.reward_r)


def chance(expected: ExpectedValue, *, by_rule: bool = False) -> str:
    """Return which chance counts, and why: the lower of the said one and what came of such ones.

    `by_rule`: the judge is the rules, whose chance is a formula's.
    """
    text = f"{HITS}: {'a rule says' if by_rule else 'said'} {percent(expected.said)}"
    came = percent(expected.calibrated)
    if not came:
        return f"{text}; what came of such chances is not known yet"
    lower = "came" if (expected.calibrated or 0.0) < expected.said else "said"
    return f"{text}, of such chances {came} came true: the lower counts ({lower})"


def value_of(expected: ExpectedValue) -> float | None:
    """Return the expected value in R by its own terms; None where one of them is not known."""
    p, reward, cost = expected.used, expected.reward_r, expected.cost_r
    if reward is None or cost is None:
        return None
    return p * reward - (1.0 - p) - cost


class ValueTerms(NamedTuple):
    """The terms of an expected value in R as they are printed: `won - lost - cost` is `value`."""

    chance: float
    reward: float
    won: float
    lost: float
    cost: float
    value: float
    decimals: int


def terms(expected: ExpectedValue) -> ValueTerms | None:
    """Return the printed terms of an expected value; None where one of them is not known.

    They have two decimals where these add up, else three, and there the cost is the rest.
    """
    if expected.reward_r is None or expected.cost_r is None or expected.value_r is None:
        return None
    for decimals in (2, 3):
        p, reward, cost, value = (
            round(term, decimals)
            for term in (expected.used, expected.reward_r, expected.cost_r, expected.value_r)
        )
        won, lost = round(p * reward, decimals), round(1.0 - p, decimals)
        if round(won - lost - cost, decimals) == value:
            break
    else:
        cost = round(won - lost - value, decimals)
    return ValueTerms(p, reward, won, lost, cost, value, decimals)


def worth(expected: ExpectedValue) -> str:
    """Return the expected value term by term: "0.48 x 2.00 R - 0.52 x 1 R - 0.04 R = +0.41 R"."""
    parts = terms(expected)
    if parts is None:
        return "not known: what the trade stakes is not recorded"
    digits = parts.decimals
    sums = (
        f"{parts.chance:.{digits}f} x {parts.reward:.{digits}f} R - {parts.lost:.{digits}f} x 1 R "
        f"- {parts.cost:.{digits}f} R = {parts.value:+.{digits}f} R"
    )
    even = percent(break_even(expected))
    pays = f"; pays from {even} on" if even else ""
    veto = f"; vetoes every {expected.vetoes}" if expected.vetoes else ""
    return f"{sums}{pays}{veto}"


def against(one: Conflict) -> str:
    """Return who conflicts: "liquidity (long) against geometry (short)"."""
    return f"{expert(one.long)} (long) against {expert(one.short)} (short)"


def settles(one: Conflict, features: Iterable[FeatureRecord] = ()) -> str:
    """Return what would settle a conflict, with the price of a level that is on record."""
    says, name = one.settle.says, one.settle.feature
    price = next((item.value for item in features if item.id == name), None)
    if not says or not name.startswith(LEVEL) or not isinstance(price, float | int):
        return says
    return f"{says}, {price:,.10g}"


def rows(
    debate: DebateRecord,
    verdict: str = "",
    features: Iterable[FeatureRecord] = (),
    gate: GateRecord | None = None,
) -> dict[str, str]:
    """Return what a swarm came to, for a terminal, by the name of its row.

    `verdict` is the side of which the size is told, none of a HOLD; `features` are the tick's,
    `gate` is what was in force.
    """
    swarm = debate.swarm
    if swarm is None:
        return {}
    left = budget(swarm.regime, debate.reader.budget if debate.reader else None)
    cells = (
        *_judgement(debate, swarm, verdict, gate),
        ("reader", reading(swarm.regime) if swarm.regime.code else ""),
        ("budget", "; ".join(part for part in (left, storm(swarm)) if part)),
        *_experts(debate, swarm),
        *_board(swarm.board, features),
        ("thin", FLAGS["thin_swarm"] if swarm.thin else ""),
    )
    return {name: says for name, says in cells if says}


def _judgement(
    debate: DebateRecord, swarm: SwarmRecord, verdict: str, gate: GateRecord | None
) -> Iterator[tuple[str, str]]:
    """Yield what the judge says, and the share of an opening's size, factor by factor."""
    judge = debate.judge
    if judge is not None:
        head = f"{judge.winner or 'NONE'}, {judge.confidence} confidence"
        yield "judge", f"{head}: {statement(judge)}"
    if verdict in DIRECTIONS:
        multiplier, conviction = (
            debate.ruling.multiplier,
            debate.panel.agreement(verdict).conviction,
        )
        share: float | None = swarm.budget
        note = ""
        if debate.in_shadow and gate is not None:
            multiplier, conviction, share = gate.multiplier, 1.0, gate.budget
            note = ": what the agents say does not count yet"
        if share is not None:
            size = f"gate {multiplier:.2f} x conviction {conviction:.2f} x budget {share:.2f}"
            yield "size", f"x {multiplier * conviction * share:.2f} = {size}{note}"
    if judge is not None:
        yield "counter", judge.counter
        yield "wrong by", "; ".join(judge.falsifiers)
        if swarm.judgement is not None:
            yield "chance", chance(swarm.judgement)
            yield "value", worth(swarm.judgement)
        yield "close", "asks to end the open position; a person decides" if judge.close else ""


def _experts(debate: DebateRecord, swarm: SwarmRecord) -> Iterator[tuple[str, str]]:
    """Yield the weights of the experts' words, the heaviest first, and where each one stands."""
    reports = {
        report.agent_id: report
        for report in debate.reports
        if report.agent_id in EXPERTS and not report.abstained
    }
    heaviest = sorted(swarm.trust.items(), key=lambda item: (-item[1], item[0]))
    weights = (f"{expert(name)} {weight:.2f}" for name, weight in heaviest if name in reports)
    yield "trust", ", ".join(weights)
    stands = {stand.agent: stand for stand in swarm.board.stands}
    for name, report in reports.items():
        odd = [word.replace("_", " ") for word in (report.anomaly, report.pattern) if word]
        named = f", sees {', '.join(odd)}" if odd else ""
        text = f"{named}: {statement(report)}"
        if (stand := stands.get(name)) is not None:
            weight = f", counts {swarm.trust[name]:.2f}" if name in swarm.trust else ""
            sure = f"{sureness(report, stand.trust)}{weight}"
            side = LEANS.get(stand.side, "neither side")
            text = f"{side} {stand.stance:+.3f}, {sure}{text}"
        else:
            text = f"{statement(report)}{named}"
        # a terminal has eleven places for a name
        yield name.removesuffix("structure"), text


def _board(board: Board, features: Iterable[FeatureRecord]) -> Iterator[tuple[str, str]]:
    """Yield where the experts stand together, and what would settle each conflict."""
    if board.stands:
        side = LEANS.get(board.dominant, "neither side")
        surest = f"; {expert(board.surest)} weighs most here" if board.surest else ""
        yield "board", f"{side}{surest}"
    for place, conflict in enumerate(board.conflicts, start=1):
        settled = settles(conflict, features) or "not recorded"
        name = "conflict" if place == 1 else f"conflict {place}"
        yield name, f"{against(conflict)}; would settle it: {settled}"
