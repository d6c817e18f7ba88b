"""What the rules say for their numbers: a claim, points for it, what they grant, what would end it.

Every sentence is made from `agents.phrases` alone. A point for a report leans to the report's
own side, by its reading, and one against it leans the other way; what leans to neither is counted
and not said. An analyst that finds a score too high while no reading leans down points at the score
itself. An advocate without a case says so. A falsifier lies on the path of price and does not hold
yet: a close beyond a line, within `AHEAD` bars.

Pure functions; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

from agents.arguments import AGAINST, CLAIM_WORDS, FALSIFIERS, FOR, format_price, pending_falsifiers
from agents.contracts import SIDES, VECTORS, Falsifier, Feature, Request
from agents.features import sides
from agents.phrases import Phrase
from torra.providers.rules.others import analysts, push
from torra.providers.rules.readings import CLOSE, RuleSignal, number

AHEAD: Final = 12
"""Bars within which a falsifier may come true."""

STRONG: Final = 0.5
"""Lean from which the other side's strongest point is granted."""

ATR: Final = "technical.atr14"
FAR: Final = (
    "the {vector} score stands as low as {n} already",
    "so much of the way down lies behind it",
)
APART: Final = (
    "the {vector} score stands at {n} and does not back it",
    "so the chart has not turned",
)
"""A score as an argument against a side: for higher prices, where it went far or did not go."""

FLOORS: Final[Mapping[int, tuple[tuple[str, str], ...]]] = {
    1: (("technical.support", "the support"), ("technical.swing_low", "the last swing low")),
    -1: (
        ("technical.resistance", "the resistance"),
        ("technical.swing_high", "the last swing high"),
    ),
}
"""Levels whose loss ends a case for a side, the nearest first, with their names."""


class RuleArgument(NamedTuple):
    """One reading as an argument: the feature that it cites, the half-sentence, why it matters."""

    reading: RuleSignal
    id: str
    half: str
    why: str


class RuleRebuttal(NamedTuple):
    """The answer to the other side's strongest point, and whether it grants that."""

    point: RuleArgument
    says: str
    grants: bool


class Argument(NamedTuple):
    """What a report says: its claim, the points for it and against it, its answer to a rival."""

    side: int
    claim: str
    points_for: tuple[RuleArgument, ...] = ()
    points_against: tuple[RuleArgument, ...] = ()
    answer: RuleRebuttal | None = None

    def reads(self) -> Iterator[str]:
        """Yield what else its points read, beside the feature that each of them cites."""
        made = (*self.points_for, *self.points_against)
        cited = {point.id for point in made}
        found = dict.fromkeys(name for point in made for name in point.reading.reads)
        yield from (name for name in found if name not in cited)


def argue(
    request: Request,
    heard: Mapping[str, Sequence[RuleSignal]],
    moves: Mapping[str, float],
    side: int,
    base: float | None = None,
    *,
    given_up: bool = False,
) -> Argument:
    """Return the argument of a report that pushes to a side (+1, -1, 0) with these adjustments.

    `heard` are its readings by vector; `base` is what they are measured from, None for the scores.
    `given_up`: it has a case of its own and grants all of it to the other side.
    """
    office, title = SIDES.get(request.role.id), request.role.title
    if not any(moves.values()):
        if office is not None:
            return Argument(office, _no_case(request, heard, office, given_up=given_up))
        count = _count(heard)
        known = (
            "say what the scores say" if base is None else "ask for no more than the scores have"
        )
        known = known if count > 1 else known.replace("say", "says", 1).replace("ask", "asks", 1)
        return Argument(0, f"No side: the {title}'s {_readings(count)} {known}.")
    if side == 0:
        read = _readings(_count(heard))
        return Argument(0, f"No side: the {title}'s {read} pull both ways, evenly.")
    found = strongest(request, heard, side, base, FOR) or of_scores(request, moves, side)
    # one more than is granted: the answer may take one of them
    against = strongest(request, heard, -side, base, AGAINST + 1)
    first = _first(found, request, heard)
    claim = _claim(request, first, side)
    if _borrowed(first[0], request, heard) and claim == _claim(request, first[:1], side):
        # the agent whose subject it is may claim the same: this one speaks of its score
        first = [*of_scores(request, moves, side), *first]
        claim = _claim(request, first[:1], side)
    claim = _counted(claim, first[0], request, heard)
    found = [first[0], *(point for point in found if point is not first[0])][:FOR]
    answer = _answer(request, heard, side)
    met = None if answer is None else answer.point.reading.reads
    against = [point for point in against if point.reading.reads != met]
    return Argument(side, claim, tuple(found), tuple(against[:AGAINST]), answer)


def _no_case(
    request: Request, heard: Mapping[str, Sequence[RuleSignal]], office: int, *, given_up: bool
) -> str:
    """Return what an advocate that votes 0 says: how many ask for its side, and too softly."""
    asked = [
        office * (reading.lean - _score(request, vector)) > 0.0
        for vector, found in heard.items()
        for reading in found
    ]
    more = "more" if office > 0 else "less"
    if not any(asked):
        return f"No case: none of {len(asked)} readings asks for {more} than its score."
    ask = "asks" if sum(asked) == 1 else "ask"
    asking = f"{sum(asked)} of {len(asked)} readings {ask} for {more}"
    end = "they yield to the other side's case" if given_up else "the others outweigh them"
    return f"No case: {asking}, and {end}."


def falsifiers(request: Request, said: Argument) -> list[Falsifier]:
    """Return closes that would end a case, none of which has come yet; [] without a case."""
    close, atr = (number(request.features.get(name)) for name in (CLOSE, ATR))
    if not said.points_for or close is None:
        return []
    lines = [*_own_lines(said), *_floors(request.features, said.side)]
    if atr:
        lines.append((close - said.side * atr, "one average range from here"))
    lines.sort(key=lambda line: abs(line[0] - close))
    way: Literal["above", "below"] = "below" if said.side > 0 else "above"
    ends = (Falsifier(way, price, name, AHEAD) for price, name in lines)
    told: dict[str, Falsifier] = {}
    for one in pending_falsifiers(ends, said.side, request.features):
        # two names of one price are one falsifier
        told.setdefault(format_price(one.level, request.features), one)
    return list(told.values())[:FALSIFIERS]


def strongest(
    request: Request,
    heard: Mapping[str, Sequence[RuleSignal]],
    side: int,
    base: float | None,
    most: int,
) -> list[RuleArgument]:
    """Return the points for a side, those that pull hardest first, one for the same features."""
    pulls: list[tuple[float, RuleSignal]] = []
    for vector, found in heard.items():
        start = _score(request, vector) if base is None else base
        pulls += [
            (side * reading.weight * (reading.lean - start), reading)
            for reading in found
            if side * reading.lean > 0.0
        ]
    # Python sorts stably, backwards too: equal pulls keep their order.
    pulls.sort(key=itemgetter(0), reverse=True)
    points: dict[tuple[str, ...], RuleArgument] = {}
    for _, reading in pulls:
        if reading.reads in points:
            continue
        saying = reading.saying
        if saying is not None:
            points[reading.reads] = _point(reading, saying, side, request.features)
            if len(points) == most:
                break
    return list(points.values())


def _point(
    reading: RuleSignal, saying: Phrase, side: int, features: Mapping[str, Feature]
) -> RuleArgument:
    fades = reading.fades and bool(saying.faded)
    half = saying.text(reading.values, side, fades=fades)
    cited = _cited(reading, saying, side, features)
    return RuleArgument(reading, cited, half, saying.reason(side, fades=fades))


def _cited(reading: RuleSignal, saying: Phrase, side: int, features: Mapping[str, Feature]) -> str:
    """Return the feature that a point of a side rests on: what it is about, if that leans so."""
    main, about = reading.main, saying.about
    first = main if about is None else reading.reads[about(*reading.values)]
    for name in (first, main, *reading.reads):
        if side in sides(name, features):
            return name
    return main


def of_scores(request: Request, moves: Mapping[str, float], side: int) -> list[RuleArgument]:
    """Return the score that is furthest from its readings as the one point."""
    vector = max(moves, key=lambda name: side * moves[name])
    score = _score(request, vector)
    reading = RuleSignal((f"scores.{vector}",), (score,), float(side), 1.0)
    return [_point(reading, reading.told, side, request.features)]


def of_far_score(request: Request, side: int) -> RuleArgument:
    """Return the score that has gone furthest against a side, as what speaks for that side."""
    vector = min(VECTORS, key=lambda name: side * request.scores.get(name, 0.0))
    name, score = f"scores.{vector}", request.scores.get(vector, 0.0)
    half, why = FAR if side * score < 0.0 else APART
    half = half.replace("{vector}", vector.replace("_", " "))
    words = Phrase(half, why, lambda value: value, "{:+.2f}")
    reading = RuleSignal((name,), (score,), float(side), 1.0, own=words)
    return RuleArgument(reading, name, words.text((score,), side), words.reason(side))


def of_both_sides(
    request: Request, heard: Mapping[str, Sequence[RuleSignal]], cited: Collection[str]
) -> dict[int, RuleArgument]:
    """Return the strongest point of each side, one that others cite before one of its own."""
    best = {}
    for side in (1, -1):
        points = strongest(request, heard, side, 0.0, FOR + AGAINST)
        points.sort(key=lambda point: point.id not in cited)
        best[side] = points[0] if points else of_far_score(request, side)
    return best


def undecided(request: Request, best: Mapping[int, RuleArgument], lead: str, *reasons: str) -> str:
    """Return why no side is taken and what would decide: a close past a level, else a lead.

    The last of the reasons are left out where the claim has no room for them.
    """
    ends = [falsifiers(request, Argument(side, "", (best[side],)))[:1] for side in (-1, 1)]
    prices = [
        format_price(end.level, request.features) for found in reversed(ends) for end in found
    ]
    ways = [end.close for found in ends for end in found]
    close = f"{ways[0]} {prices[0]}" if len(prices) == 1 else f"outside {' to '.join(prices)}"
    decides = f"a close {close}" if prices else lead
    for most in range(len(reasons), 0, -1):
        claim = f"{''.join(reasons[:most])}; {decides} decides."
        if len(claim.split()) <= CLAIM_WORDS:
            break
    return claim


def _counted(
    claim: str, point: RuleArgument, request: Request, heard: Mapping[str, Sequence[RuleSignal]]
) -> str:
    """Return a claim about a score of another's subject with how many readings were held to it.

    The agent whose subject it is says the same without.
    """
    block, _, vector = point.id.partition(".")
    if block != "scores" or vector in _own(request):
        return claim
    return claim.replace("its readings", f"its {_readings(len(heard.get(vector, ())))}", 1)


def _first(
    points: Sequence[RuleArgument], request: Request, heard: Mapping[str, Sequence[RuleSignal]]
) -> list[RuleArgument]:
    """Return the points in the order for a claim: those of the role's own subject first.

    Without any, one of each other subject: who reads only that one puts it in other words.
    """
    if request.role.id in SIDES:
        told = _told(request)
        # what an analyst has said already is no claim of its own
        return sorted(points, key=lambda point: point.id in told)
    own = _own(request)
    if not own:
        return list(points)
    subjects = _subjects(heard)
    first = [point for point in points if own & subjects.get(point.reading.reads, set())]
    if first:
        return [*first, *(point for point in points if point not in first)]
    apart: dict[frozenset[str], RuleArgument] = {}
    for point in points:
        apart.setdefault(frozenset(subjects.get(point.reading.reads, ())), point)
    return list(apart.values())


def _told(request: Request) -> set[str]:
    """Return what each of the others leads with: the first feature that it cites."""
    return {report.evidence[0].id for report in request.reports if report.evidence}


def _own(request: Request) -> set[str]:
    """Return the vectors that are a role's own subject."""
    return {vector for vector, focus in request.role.focus.items() if focus == "primary"}


def _subjects(heard: Mapping[str, Sequence[RuleSignal]]) -> dict[tuple[str, ...], set[str]]:
    """Return the vectors of each reading, by the features that it reads."""
    found: dict[tuple[str, ...], set[str]] = {}
    for vector, readings in heard.items():
        for reading in readings:
            found.setdefault(reading.reads, set()).add(vector)
    return found


def _borrowed(
    point: RuleArgument, request: Request, heard: Mapping[str, Sequence[RuleSignal]]
) -> bool:
    """Tell whether a point is of another analyst's subject."""
    own = _own(request)
    if request.role.id in SIDES or not own:
        return False
    return not own & _subjects(heard).get(point.reading.reads, own)


def _claim(request: Request, points: Sequence[RuleArgument], side: int) -> str:
    """Return the claim of at most CLAIM_WORDS words: the two strongest points, or the strongest.

    A researcher's has the strongest and how many of the analysts push its way, where most of them
    do, and where an analyst may have said the same.
    """
    first, rest = points[0].half, [f" and {point.half}" for point in points[1:2]]
    if request.role.id in SIDES:
        alone = len(points) == 1 or points[0].id in _told(request)
        rest = backers(request, side, alone=alone) or rest
    way = "Up" if side > 0 else "Down"
    whole = f"{way}: {''.join([first, *rest])}."
    return whole if len(whole.split()) <= CLAIM_WORDS else f"{way}: {first}."


def backers(request: Request, side: int, *, alone: bool) -> list[str]:
    """Return how many of the analysts push to a side, where more than half of them do.

    `alone`: where fewer do as well.
    """
    pushes = [push(report) for report in analysts(request)]
    if not pushes:
        return []
    backing, way = sum(side * push > 0.0 for push in pushes), "up" if side > 0 else "down"
    if len(pushes) == 1:
        told = " and the analyst pushes" if backing else ", though the analyst does not push"
    elif 2 * backing > len(pushes):
        told = f" and {backing} of {len(pushes)} analysts push"
    elif not backing:
        told = f", though none of {len(pushes)} analysts pushes"
    else:
        told = f", though only {backing} of {len(pushes)} analysts push"
    return [f"{told} {way}"] if alone or 2 * backing > len(pushes) else []


def _answer(
    request: Request, heard: Mapping[str, Sequence[RuleSignal]], side: int
) -> RuleRebuttal | None:
    """Return the answer to the other side's strongest point.

    None where there is no case of the other side to be read yet.
    """
    rival = next((r for r in request.reports if SIDES.get(r.agent_id) == -side), None)
    if request.role.id not in SIDES or rival is None or not rival.evidence:
        return None
    if not any(rival.adjustments.values()):
        return None  # it has no case: what it cites is not its own
    cited = rival.evidence[0].id
    mine = [
        reading
        for found in heard.values()
        for reading in found
        if cited in reading.reads and reading.side and reading.saying is not None
    ]
    # what the other side's own point is about, before what it reads besides
    mine = [reading for reading in mine if reading.main == cited] or mine
    if not mine:
        return None
    strongest = max(mine, key=lambda reading: -side * reading.lean)
    point = _point(strongest, strongest.told, strongest.side, request.features)
    if strongest.side == side:
        return RuleRebuttal(point, f"Not so on the other side: {point.half}", grants=False)
    if abs(strongest.lean) < STRONG:
        return RuleRebuttal(point, f"Weak on the other side: {point.half}", grants=False)
    return RuleRebuttal(point, f"Granted to the other side: {point.half}", grants=True)


def _own_lines(said: Argument) -> Iterator[tuple[float, str]]:
    for point in said.points_for:
        saying = point.reading.told
        if saying.line is not None:
            yield point.reading.values[saying.line], saying.line_name


def _floors(features: Mapping[str, Feature], side: int) -> Iterator[tuple[float, str]]:
    for name, words in FLOORS[side]:
        price = number(features.get(name))
        if price is not None:
            yield price, words


def _score(request: Request, vector: str) -> float:
    value: Any = request.scores.get(vector, 0.0)
    # No evidence may raise here; a score that is no number counts as 0.
    return value if math.isfinite(value) else 0.0


def _count(heard: Mapping[str, Sequence[RuleSignal]]) -> int:
    """Return how many readings there are, one that speaks of several scores once."""
    return len({reading.reads for found in heard.values() for reading in found})


def _readings(count: int) -> str:
    return "one reading" if count == 1 else f"{count} readings"
