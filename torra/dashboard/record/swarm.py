"""What a swarm adds to a tick: the regime, the board as a picture, the judge, its expected value.

`shown` makes the section of a tick's page, `brief` its one line for the first screen. The board is
drawn as it is stored: each expert on a row of its own, where it stands between SHORT and LONG, as
large as its word counts; a conflict is a line between two of them. Words of models pass through
`figures.clean`. A tick of another desk has no such section. Pure functions; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from agent_config import EXPERTS
from agents.contracts import WINNERS, AgentReport, Evidence
from agents.debate.expected_value import ExpectedValue
from torra.dashboard.record import surroundings
from torra.dashboard.record.shown import NOT_COUNTED
from torra.dashboard.record.thesis import NO_SIDE
from torra.exhibits import figures, lesson_words
from torra.exhibits.figures import DASH, MINUS, Cell, cell
from torra.tick.sentence import BELOW_ZERO
from torra.tick.tick_record import (
    BoardRecord,
    ConflictRecord,
    DebateRecord,
    ExpertStance,
    SwarmRecord,
    TickRecord,
    statement,
)
from torra.tick.words import swarm_words
from torra.words.badge import Badge
from torra.words.market import REGIMES
from torra.words.orders import LEANS

LONGEST: Final = 300
"""Most characters of a claim, a counter or an end."""

SIDES: Final[Mapping[str, int]] = WINNERS

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


@dataclass(frozen=True, slots=True)
class SwarmRegimeView:
    """The code's word for the market, what it means, what the reader says, what is left."""

    mark: Badge | None
    meaning: str
    reader: str
    disputed: bool
    claim: str
    budget: str
    storm: str
    first: str


@dataclass(frozen=True, slots=True)
class ExpertShown:
    """An expert's row: where it stands, how much its word counts, or why it said nothing.

    `x` and `r` are of its dot, None where it has none; `title` is its name. `odd` are the anomaly
    and the pattern that it names.
    """

    title: str
    side: Badge
    stance: Cell
    weight: str
    sureness: str
    y: float
    x: float | None
    r: float
    claim: str
    odd: tuple[str, ...]
    past: str
    why: str


@dataclass(frozen=True, slots=True)
class ConflictShown:
    """Two experts that lean opposite ways: their claims, what would settle it, its line."""

    above: str
    below: str
    strength: str
    claims: tuple[tuple[str, str], ...]
    settle: str
    line: tuple[float, float, float, float] | None


@dataclass(frozen=True, slots=True)
class BoardShown:
    """The board as a picture and in words."""

    experts: tuple[ExpertShown, ...]
    conflicts: tuple[ConflictShown, ...]
    side: Badge
    surest: str
    agreed: str
    axis: tuple[tuple[float, str], ...]
    zero: float
    mean: float | None
    width: float
    height: float
    spoken: str


@dataclass(frozen=True, slots=True)
class WorthShown:
    """The expected value, term by term."""

    terms: tuple[tuple[str, str, Cell], ...]
    value: Cell
    even: str
    chance: str
    verdict: str
    vetoes: bool


@dataclass(frozen=True, slots=True)
class JudgeShown:
    """The judge: its side, its claim, the case against itself, what would prove it wrong."""

    side: Badge
    confidence: str
    claim: str
    counter: str
    ends: tuple[str, ...]
    close: bool
    why: str
    unfalsified: bool
    worth: WorthShown | None


@dataclass(frozen=True, slots=True)
class SwarmShown:
    """The section of a swarm on a tick's page; a part that the tick lacks is None."""

    regime: SwarmRegimeView
    board: BoardShown | None
    judge: JudgeShown | None
    thin: bool
    note: str


def shown(record: TickRecord) -> SwarmShown | None:
    """Return the section of a swarm; None of another desk's tick."""
    spoken = record.deliberation
    told = spoken.swarm
    if told is None:
        return None
    seated = bool(told.board.stands or told.board.abstained)
    return SwarmShown(
        regime=_regime(spoken, told),
        board=_board(record, told) if seated else None,
        judge=_judge(record, told) if seated else None,
        thin=told.thin,
        note=_note(record) if spoken.in_shadow else "",
    )


def _note(record: TickRecord) -> str:
    """Return what counts of a swarm in shadow; nothing of it in older records."""
    words = f"{NOT_COUNTED.capitalize()}."
    if record.gate.budget is None:
        return words
    share = swarm_words.percent(record.gate.budget)
    rows = "The officer's rows and the regime's budget count"
    return f"{words} {rows}: the regime leaves {share} of a size."


def brief(record: TickRecord) -> str:
    """Return a swarm in one line: regime, whom it trusted, what conflicted, what was decided.

    "" of another desk, and where no expert was heard.
    """
    spoken = record.deliberation
    told = spoken.swarm
    if told is None or not told.board.stands:
        return ""
    mark = "some evidence is invented" if record.invented else ""
    parts = [*_brief_market(told), *_brief_conflict(told), _brief_judge(spoken, told), mark]
    return " · ".join(figures.sanitize(part, 160) for part in parts if part)


def tie_breaker(record: TickRecord) -> tuple[str, str] | None:
    """Return what would settle a tick on which the judge takes no side, and why it is that.

    None where a judge takes a side, or none was heard.
    """
    told, judge = record.deliberation.swarm, record.deliberation.judge
    if told is None or judge is None or SIDES.get(judge.winner or ""):
        return None
    one = next(iter(told.board.conflicts), None)
    if one is None:
        return DASH, "the judge takes no side, and no two experts conflict"
    return _settles(one, record), "would settle the conflict"


def _settles(one: ConflictRecord, record: TickRecord) -> str:
    return figures.sanitize(swarm_words.settles(one, record.features), 120) or DASH


def extra_findings(said: AgentReport) -> list[tuple[str, str]]:
    """Return what only a swarm's seats say, each with its label; [] of another's report."""
    levels = ", ".join(swarm_words.feature(name) for name in said.levels)
    chance, side = swarm_words.percent(said.win_share), LEANS.get(said.winner or "")
    told = (
        ("Reads", swarm_words.market(said.regime)),
        ("Alone would leave of a size", swarm_words.percent(said.budget)),
        ("Goes first", swarm_words.expert(said.first)),
        ("Finds odd", figures.title(said.anomaly or "")),
        ("Sees", figures.title(said.pattern or "")),
        ("Levels", levels),
        (f"Chance {swarm_words.HITS}", f"{chance}, {side or 'no side'}" if chance else ""),
        ("Against itself", said.counter or ""),
        ("Asks", "to end the open position" if said.close else ""),
    )
    return [(label, figures.sanitize(text, LONGEST)) for label, text in told if text]


def trusted(told: SwarmRecord | None) -> dict[str, float]:
    """Return how much the word of each expert counts; of none where all count alike."""
    if told is None:
        return {}
    return {name: weight for name, weight in told.trust.items() if weight is not None}


# --- the regime -----------------------------------------------------------------------------------


def _regime(spoken: DebateRecord, told: SwarmRecord) -> SwarmRegimeView:
    known, reader = told.regime, spoken.reader
    return SwarmRegimeView(
        mark=figures.mark(known.code) if known.code else None,
        meaning=REGIMES.get(known.code or "", ""),
        reader=_sentence(swarm_words.reading(known)),
        disputed=known.disputed,
        claim=figures.sanitize(statement(reader), LONGEST) if reader else "",
        budget=swarm_words.budget(known, reader.budget if reader else None),
        storm=_sentence(swarm_words.storm(told)).replace(" x ", " × "),
        first=_title(known.first) if known.first else "",
    )


# --- the board ------------------------------------------------------------------------------------


def _board(record: TickRecord, told: SwarmRecord) -> BoardShown:
    spoken = record.deliberation
    board, reports = told.board, {one.agent_id: one for one in spoken.reports}
    stands = {str(one.agent): one for one in board.stands}
    silent = [name for name in _asked(spoken) if name not in stands]
    order = [*sorted(stands, key=lambda name: -(stands[name].stance or 0.0)), *silent]
    span = _span(board)
    rows = tuple(
        _expert(name, stands.get(name), reports.get(name), told, place, span, record)
        for place, name in enumerate(order)
    )
    at = dict(zip(order, rows, strict=True))
    return BoardShown(
        experts=rows,
        conflicts=tuple(
            _conflict(one, at, reports, _settles(one, record)) for one in board.conflicts
        ),
        side=side_of(board.dominant),
        surest=_title(board.surest) if board.surest else "",
        agreed=_agreed(board),
        axis=tuple((_x(value, span), _axis_word(value)) for value in (-span, 0.0, span)),
        zero=_x(0.0, span),
        mean=_mean(board, span),
        width=WIDTH,
        height=HEAD + ROW * len(rows) + FOOT,
        spoken="; ".join(map(_spoken, rows)),
    )


def _asked(spoken: DebateRecord) -> list[str]:
    """Return the experts that had a seat, in their own order."""
    seated = {name for stage in spoken.stages for name in stage.agents}
    told = {one.agent_id for one in spoken.reports}
    return [name for name in EXPERTS if name in seated | told | set(spoken.failures)]


def _expert(
    name: str,
    stand: ExpertStance | None,
    report: AgentReport | None,
    told: SwarmRecord,
    place: int,
    span: float,
    record: TickRecord,
) -> ExpertShown:
    spoken = record.deliberation
    weight = told.trust.get(name, 1.0 if not told.trust else None)
    said, trust = report or AgentReport(name), stand.trust if stand else None
    counts = (weight or 0.0) * (trust or 0.0)
    odd = [figures.title(word) for word in (said.anomaly, said.pattern) if word]
    return ExpertShown(
        title=_title(name),
        side=side_of(stand.side) if stand else _silence(said, spoken, name),
        stance=cell(stand.stance if stand else None, 3, "it has no stance"),
        weight=figures.plain(weight, 2) if stand else DASH,
        sureness=figures.sanitize(swarm_words.sureness(said, trust), 120) if stand else "",
        y=HEAD + ROW * (place + 0.5),
        x=_x(stand.stance or 0.0, span) if stand else None,
        r=round(LEAST_DOT + (MOST_DOT - LEAST_DOT) * math.sqrt(max(0.0, min(1.0, counts))), 1),
        claim=figures.sanitize(statement(said), LONGEST) if stand else "",
        odd=tuple(figures.sanitize(word, 40) for word in odd),
        past=_past(name, record),
        why="" if stand else _why_silent(said, spoken, name),
    )


def _past(name: str, record: TickRecord) -> str:
    """Return how often an expert was right in this regime before, where a tick was told."""
    told = record.standing.numbers if record.standing else {}
    share = swarm_words.percent(told.get(f"{name}_hit_share"))
    return f"right {share} of the time in this regime" if share else ""


def _silence(said: AgentReport, spoken: DebateRecord, name: str) -> Badge:
    state = "abstained" if said.abstained else "failed" if name in spoken.failures else "not asked"
    return figures.mark(state)


def _why_silent(said: AgentReport, spoken: DebateRecord, name: str) -> str:
    if said.abstained:
        return surroundings.plain_reason(said.reason)
    return figures.sanitize(spoken.failures.get(name) or spoken.unasked.get(name), 120)


def _conflict(
    one: ConflictRecord,
    at: Mapping[str, ExpertShown],
    reports: Mapping[str, AgentReport],
    settle: str,
) -> ConflictShown:
    above, below = at.get(one.long or ""), at.get(one.short or "")
    line = None
    if above and below and above.x is not None and below.x is not None:
        line = (above.x, above.y, below.x, below.y)
    claims = tuple(
        (_title(name), _claim(one.claims.get(name or "", ()), reports.get(name or "")))
        for name in (one.long, one.short)
    )
    return ConflictShown(
        _title(one.long), _title(one.short), figures.plain(one.strength, 3), claims, settle, line
    )


def _claim(cited: Iterable[Evidence], report: AgentReport | None) -> str:
    """Return what a side rests on: the expert's own words of a fact, else its name and value."""
    said = {point.id: point.says for point in (report.points_for if report else ())}
    words = [
        figures.sanitize(said.get(one.id), 160).rstrip(".")
        or f"{swarm_words.feature(one.id)} {figures.format_any(one.value)}"
        for one in cited
    ]
    told = "; ".join(figures.sanitize(word, 160) for word in words) or "it cites no fact"
    return BELOW_ZERO.sub(MINUS, told)


def _agreed(board: BoardRecord) -> str:
    """Return the facts that two experts of a side cite."""
    parts = [
        f"{side_of(side).text}: {', '.join(swarm_words.feature(name) for name in ids)}"
        for side, ids in board.agreed.items()
        if ids
    ]
    return figures.sanitize("; ".join(parts), 240)


def _span(board: BoardRecord) -> float:
    widest = max((abs(one.stance or 0.0) for one in board.stands), default=0.0)
    return next((one for one in SPANS if widest <= one), SPANS[-1])


def _x(value: float, span: float) -> float:
    room = WIDTH - NAME_WIDTH - WEIGHT_WIDTH - 2 * MOST_DOT
    share = (max(-1.0, min(1.0, value / span)) + 1.0) / 2.0
    return round(NAME_WIDTH + MOST_DOT + share * room, 1)


def _mean(board: BoardRecord, span: float) -> float | None:
    """Return where the experts stand together: their mean stance, weighed as the board does."""
    whole = math.fsum((one.weight or 0.0) * (one.trust or 0.0) for one in board.stands)
    return None if board.lean is None or whole <= 0.0 else _x(board.lean / whole, span)


def _axis_word(value: float) -> str:
    side = "SHORT" if value < 0 else "LONG" if value > 0 else ""
    return f"{side} {figures.format_signed(value, 2)}".strip() if value else "0"


def _spoken(row: ExpertShown) -> str:
    if row.x is None:
        return f"{row.title} {row.side.word}"
    return f"{row.title} {row.side.word} {row.stance['text']}, counts {row.weight}"


# --- the judge ------------------------------------------------------------------------------------


def _judge(record: TickRecord, told: SwarmRecord) -> JudgeShown | None:
    said = record.deliberation.judge
    if said is None:
        return _silent_judge(record.deliberation)
    by_rule = record.provider == lesson_words.RULES
    worth = _worth(told.judgement, by_rule=by_rule) if told.judgement else None
    return JudgeShown(
        side=side_of(said.winner),
        confidence=figures.sanitize(said.confidence, 20),
        claim=figures.sanitize(statement(said), LONGEST),
        counter=figures.sanitize(said.counter, LONGEST),
        ends=tuple(figures.sanitize(one, LONGEST) for one in said.falsifiers if one),
        close=said.close,
        why=_no_side(record) if not worth else "",
        unfalsified="unfalsified" in said.flags,
        worth=worth,
    )


def _no_side(record: TickRecord) -> str:
    settles = tie_breaker(record)
    more = f" What would settle it: {settles[0]}." if settles and settles[0] != DASH else ""
    return f"It takes no side: there is no trade to weigh and nothing to prove wrong.{more}"


def _silent_judge(spoken: DebateRecord) -> JudgeShown | None:
    name = "judge"
    report = next((one for one in spoken.reports if one.agent_id == name), None)
    if report is not None and report.abstained:
        why = f"It abstained: {surroundings.plain_reason(report.reason)}."
    elif name in spoken.failures:
        why = "It gave no answer: its word counts as a low one."
    elif name in spoken.unasked:
        why = "It was not asked."
    else:
        return None
    return JudgeShown(NO_SIDE, "", "", "", (), False, why, False, None)


def _worth(told: ExpectedValue, *, by_rule: bool) -> WorthShown:
    found = swarm_words.terms(told)
    chance = f"chance {swarm_words.chance(told, by_rule=by_rule)}"
    if found is None:
        why = "What the trade stakes is not recorded, so nothing is vetoed by it."
        return WorthShown((), cell(None), "", chance, why, False)
    digits = found.decimals
    hits = f"{found.chance:.{digits}f} × {found.reward:.{digits}f} R"
    terms = (
        ("Target reached", hits, cell(found.won, digits)),
        ("Stopped out", f"{found.lost:.{digits}f} × 1 R", cell(-found.lost, digits)),
        ("Spread and slippage", "", cell(-found.cost, digits)),
    )
    even = swarm_words.percent(swarm_words.break_even(told))
    value = cell(found.value, digits)
    value["text"] = f"= {value['text']} R"
    return WorthShown(terms, value, even, chance, _verdict(told), bool(told.vetoes))


def _verdict(told: ExpectedValue) -> str:
    """Return what the side gains or loses by the chance, and what that vetoes."""
    value, side = told.value_r or 0.0, LEANS.get(told.side or "", "judged")
    gain, loss = figures.format_signed(value, 2), figures.plain(-value, 2)
    does = f"gains {gain} R" if value > 0.0 else f"loses {loss} R"
    so = "so the judge vetoes nothing" if value > 0.0 else "yet nothing is vetoed"
    so = f"so every {told.vetoes} is vetoed" if told.vetoes else so
    return f"By this chance a {side} trade {does}, {so}."


# --- the line of the first screen -----------------------------------------------------------------


def _brief_market(told: SwarmRecord) -> Iterable[str]:
    market = swarm_words.market(told.regime.code)
    if market:
        left = swarm_words.percent(told.regime.budget)
        disputed = f", disputed by the reader ({swarm_words.market(told.regime.reader)})"
        head = f"{_sentence(market)}{disputed if told.regime.disputed else ''}"
        yield f"{head}: {left} of a size" if left else head
    if told.board.surest:
        yield f"{swarm_words.expert(told.board.surest)} weighs most here"


def _brief_conflict(told: SwarmRecord) -> Iterable[str]:
    one = next(iter(told.board.conflicts), None)
    yield swarm_words.against(one) if one else "no conflict"


def _brief_judge(spoken: DebateRecord, told: SwarmRecord) -> str:
    said = spoken.judge
    if said is None:
        return "no judge was heard"
    side = LEANS.get(said.winner or "")
    if side is None:
        return "the judge takes no side"
    chance = swarm_words.percent(said.win_share)
    value = told.judgement.value_r if told.judgement else None
    worth = "" if value is None else f", worth {figures.format_signed(value, 2)} R"
    hits = f", target before stop {chance}" if chance else ""
    return f"the judge: {side}{hits}{worth}"


# --- words ----------------------------------------------------------------------------------------


def side_of(name: str | None) -> Badge:
    """Return the mark of a side; that of none for anything else."""
    return figures.mark(name) if SIDES.get(name or "") else NO_SIDE


def _title(name: str | None) -> str:
    return _sentence(figures.sanitize(swarm_words.expert(name), 40))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".replace(" -", f" {MINUS}")
