"""What a swarm adds to a tick: its board as a picture, and words of the record's own values.

`board` places the experts: each on a row of its own, where it stands between SHORT and LONG, as
large as its word counts; a conflict is a line between two of them. `brief` is the line of the first
screen. The page reads everything else in the record. Words of models pass through
`figures.sanitize`. Pure functions; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from agent_config import EXPERTS
from agents.contracts import AgentReport, Evidence
from agents.debate.swarm import Board, Conflict, ExpectedValue, ExpertStance
from torra.dashboard.record import surroundings
from torra.dashboard.record.thesis import NO_SIDE
from torra.exhibits import figures
from torra.exhibits.figures import DASH, MINUS
from torra.tick.sentence import BELOW_ZERO
from torra.tick.tick_record import (
    DebateRecord,
    SwarmRecord,
    TickRecord,
)
from torra.tick.words import swarm_words
from torra.words.badge import Badge, capital
from torra.words.orders import LEANS

WIDTH: Final = 366.0
NAME_WIDTH: Final = 104.0
WEIGHT_WIDTH: Final = 46.0
ROW: Final = 24.0
HEAD: Final = 16.0
FOOT: Final = 14.0
"""Geometry of the picture, in its own units; as wide as the waterfalls beside it."""

LEAST_DOT: Final = 3.0
MOST_DOT: Final = 9.0
"""Radius of an expert whose word counts nothing, and of one whose word counts in full."""

SPANS: Final = (0.05, 0.1, 0.2, 0.3)
"""How far the axis reaches: the first that holds every stance; none goes beyond 0.3."""


class BoardRow(NamedTuple):
    """An expert's row: its stance and its report, None where it has none, and its dot.

    `mark` is its side, or why it has none; `weight` how much its word counts, 0 to 1.
    """

    name: str
    stand: ExpertStance | None
    report: AgentReport
    mark: Badge
    weight: float | None
    x: float
    y: float
    r: float


class BoardPicture(NamedTuple):
    """The board as a picture: its rows, the lines between two that conflict, and its axis.

    `mean` is where the experts stand together; None where none leans.
    """

    rows: list[BoardRow]
    lines: list[tuple[BoardRow, BoardRow]]
    axis: list[tuple[float, str]]
    mean: float | None
    height: float
    width: float = WIDTH


def board(record: TickRecord) -> BoardPicture | None:
    """Return the picture of a swarm's board; None where no expert was asked."""
    debate = record.deliberation
    swarm = debate.swarm
    if swarm is None or not (swarm.board.stands or swarm.board.abstained):
        return None
    stands = {stand.agent: stand for stand in swarm.board.stands}
    reports = {report.agent_id: report for report in debate.reports}
    seats = {name for stage in debate.stages for name in stage.agents}
    seats |= reports.keys() | debate.failures.keys()
    silent = [name for name in EXPERTS if name in seats and name not in stands]
    span = _span(swarm.board)
    rows: list[BoardRow] = []
    for name in [*sorted(stands, key=lambda expert: -stands[expert].stance), *silent]:
        stand, report = stands.get(name), reports.get(name) or AgentReport(name)
        weight = swarm.trust.get(name, None if swarm.trust else 1.0)
        counts = (weight or 0.0) * (stand.trust if stand else 0.0)
        row = BoardRow(
            name,
            stand,
            report,
            side_of(stand.side) if stand else _silence(report, debate),
            weight,
            _x(stand.stance if stand else 0.0, span),
            HEAD + ROW * (len(rows) + 0.5),
            round(LEAST_DOT + (MOST_DOT - LEAST_DOT) * math.sqrt(max(0.0, min(1.0, counts))), 1),
        )
        rows.append(row)
    at = {row.name: row for row in rows if row.stand}
    return BoardPicture(
        rows,
        [
            (at[one.long], at[one.short])
            for one in swarm.board.conflicts
            if one.long in at and one.short in at
        ],
        [(_x(value, span), _axis_word(value)) for value in (-span, 0.0, span)],
        _mean(swarm.board, span),
        HEAD + ROW * len(rows) + FOOT,
    )


def brief(record: TickRecord) -> str:
    """Return a swarm in one line: regime, whom it trusted, what conflicted, what was decided.

    "" of another desk, and where no expert was heard.
    """
    debate = record.deliberation
    swarm = debate.swarm
    if swarm is None or not swarm.board.stands:
        return ""
    conflict = next(iter(swarm.board.conflicts), None)
    surest = swarm_words.expert(swarm.board.surest)
    parts = (
        _brief_market(swarm),
        f"{surest} weighs most here" if surest else "",
        swarm_words.against(conflict) if conflict else "no conflict",
        _brief_judge(debate, swarm),
        "some evidence is invented" if record.invented else "",
    )
    return " · ".join(figures.sanitize(part, 160) for part in parts if part)


def tie_breaker(record: TickRecord) -> tuple[str, str] | None:
    """Return what would settle a tick on which the judge takes no side, and why it is that.

    None where a judge takes a side, or none was heard.
    """
    swarm, judge = record.deliberation.swarm, record.deliberation.judge
    if swarm is None or judge is None or judge.winner in LEANS:
        return None
    conflict = next(iter(swarm.board.conflicts), None)
    if conflict is None:
        return DASH, "the judge takes no side, and no two experts conflict"
    return settles(conflict, record), "would settle the conflict"


def settles(conflict: Conflict, record: TickRecord) -> str:
    """Return what would settle a conflict."""
    return figures.sanitize(swarm_words.settles(conflict, record.features), 120) or DASH


def extra_findings(report: AgentReport) -> list[tuple[str, str]]:
    """Return what only a swarm's seats say, each with its label; [] of another's report."""
    levels = ", ".join(swarm_words.feature(name) for name in report.levels)
    chance, side = swarm_words.percent(report.win_share), LEANS.get(report.winner, "no side")
    rows = (
        ("Reads", swarm_words.market(report.regime)),
        ("Alone would leave of a size", swarm_words.percent(report.budget)),
        ("Goes first", swarm_words.expert(report.first)),
        ("Finds odd", figures.title(report.anomaly)),
        ("Sees", figures.title(report.pattern)),
        ("Levels", levels),
        (f"Chance {swarm_words.HITS}", f"{chance}, {side}" if chance else ""),
        ("Against itself", report.counter),
        ("Asks", "to end the open position" if report.close else ""),
    )
    return [(label, figures.sanitize(text, 300)) for label, text in rows if text]


def trusted(swarm: SwarmRecord | None) -> dict[str, float]:
    """Return how much the word of each expert counts; of none where all count alike."""
    return swarm.trust if swarm else {}


def side_of(name: str | None) -> Badge:
    """Return the mark of a side; that of none for anything else."""
    return figures.mark(name) if name in LEANS else NO_SIDE


def sentence(text: str) -> str:
    """Return words of code as a sentence begins: a capital, and minus signs."""
    return capital(text).replace(" -", f" {MINUS}")


def expert_title(name: str | None) -> str:
    """Return what an expert is called, with a capital."""
    return capital(figures.sanitize(swarm_words.expert(name), 40))


def why_silent(report: AgentReport, debate: DebateRecord) -> str:
    """Return why an expert has no stance."""
    if report.abstained:
        return surroundings.plain_reason(report.reason)
    name = report.agent_id
    return figures.sanitize(debate.failures.get(name) or debate.unasked.get(name), 120)


def claim(cites: Iterable[Evidence], report: AgentReport | None) -> str:
    """Return what a side rests on: the expert's own words of a fact, else its name and value."""
    says = {point.id: point.says for point in (report.points_for if report else ())}
    words = [
        figures.sanitize(says.get(one.id), 160).rstrip(".")
        or f"{swarm_words.feature(one.id)} {figures.format_any(one.value)}"
        for one in cites
    ]
    text = "; ".join(figures.sanitize(word, 160) for word in words) or "it cites no fact"
    return BELOW_ZERO.sub(MINUS, text)


def agreed(board: Board) -> str:
    """Return the facts that two experts of a side cite."""
    sides = [
        f"{side_of(side).text}: {', '.join(map(swarm_words.feature, ids))}"
        for side, ids in board.agreed.items()
        if ids
    ]
    return figures.sanitize("; ".join(sides), 240)


def no_judge(record: TickRecord) -> str:
    """Return why there is no expected value: no side, or no judge; "" of another desk."""
    debate = record.deliberation
    if debate.judge is not None:
        settle = tie_breaker(record)
        more = f" What would settle it: {settle[0]}." if settle and settle[0] != DASH else ""
        return f"It takes no side: there is no trade to weigh and nothing to prove wrong.{more}"
    report = next((one for one in debate.reports if one.agent_id == "judge"), None)
    if report is not None and report.abstained:
        return f"It abstained: {surroundings.plain_reason(report.reason)}."
    if "judge" in debate.failures:
        return "It gave no answer: its word counts as a low one."
    return "It was not asked." if "judge" in debate.unasked else ""


def verdict(judgement: ExpectedValue) -> str:
    """Return what the side gains or loses by the chance, and what that vetoes."""
    value = judgement.value_r
    if swarm_words.terms(judgement) is None or value is None:
        return "What the trade stakes is not recorded, so nothing is vetoed by it."
    gain, loss = figures.format_signed(value, 2), figures.plain(-value, 2)
    does = f"gains {gain} R" if value > 0.0 else f"loses {loss} R"
    so = "so the judge vetoes nothing" if value > 0.0 else "yet nothing is vetoed"
    so = f"so every {judgement.vetoes} is vetoed" if judgement.vetoes else so
    return f"By this chance a {LEANS.get(judgement.side, 'judged')} trade {does}, {so}."


def _silence(report: AgentReport, debate: DebateRecord) -> Badge:
    if report.abstained:
        return figures.mark("abstained")
    return figures.mark("failed" if report.agent_id in debate.failures else "not asked")


def _span(board: Board) -> float:
    widest = max((abs(stand.stance) for stand in board.stands), default=0.0)
    return next((span for span in SPANS if widest <= span), SPANS[-1])


def _x(value: float, span: float) -> float:
    room = WIDTH - NAME_WIDTH - WEIGHT_WIDTH - 2 * MOST_DOT
    share = (max(-1.0, min(1.0, value / span)) + 1.0) / 2.0
    return round(NAME_WIDTH + MOST_DOT + share * room, 1)


def _mean(board: Board, span: float) -> float | None:
    """Return where the experts stand together: their mean stance, weighed as the board does."""
    whole = math.fsum(stand.weight * stand.trust for stand in board.stands)
    return _x(board.lean / whole, span) if whole > 0.0 else None


def _axis_word(value: float) -> str:
    if not value:
        return "0"
    return f"{'SHORT' if value < 0 else 'LONG'} {figures.format_signed(value, 2)}"


def _brief_market(swarm: SwarmRecord) -> str:
    regime = swarm.regime
    if not (market := swarm_words.market(regime.code)):
        return ""
    if regime.disputed:
        market += f", disputed by the reader ({swarm_words.market(regime.reader)})"
    left = swarm_words.percent(regime.budget)
    return f"{capital(market)}: {left} of a size" if left else capital(market)


def _brief_judge(debate: DebateRecord, swarm: SwarmRecord) -> str:
    judge = debate.judge
    if judge is None:
        return "no judge was heard"
    side = LEANS.get(judge.winner)
    if side is None:
        return "the judge takes no side"
    chance = swarm_words.percent(judge.win_share)
    value = swarm.judgement.value_r if swarm.judgement else None
    worth = "" if value is None else f", worth {figures.format_signed(value, 2)} R"
    hits = f", target before stop {chance}" if chance else ""
    return f"the judge: {side}{hits}{worth}"
