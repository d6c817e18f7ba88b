"""What the rules say for their numbers: a claim, points for it, what they grant, what would end it.

Every sentence is made from `agents.phrases` alone. A point for a report leans to the report's own
side, by its signal, and one against it leans the other way; what leans to neither is counted and
not said. An analyst that finds a score too high while no signal leans down points at the score
itself. An advocate without a case says so. A falsifier lies on the path of price and does not hold
yet: a close beyond a line, within `AHEAD` bars. A risk is what backs a case and is stretched
furthest, then what speaks against it and was not granted.

A reply has the shape that a model would give it. Its horizon is fixed for some seats: what money
and worth say is read in days, mood and news within a session, oscillators and ticks in four bars.
Everybody else goes by the regime: sixteen bars in a trend, four in a range; where the hours are
late, the session that ends.

Pure functions; nothing raises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from agents.arguments import AGAINST, CLAIM_WORDS, FALSIFIERS, FOR, format_price, pending_falsifiers
from agents.contracts import SIDES, VECTORS, Falsifier, Horizon
from agents.features import sides
from agents.phrases import ABOUT, PHRASES, Phrase
from torra.providers.rules.engine import CLOSE, Numbers, RuleSignal, SeatView, focus_of, side_of

AHEAD: Final = 12
"""Bars within which a falsifier may come true."""

WAY: Final = {1: "up", -1: "down"}
BIAS: Final = {1: "UP", -1: "DOWN", 0: "NEUTRAL"}
WINNER: Final = {1: "LONG", -1: "SHORT", 0: "NONE"}

STRONG: Final = 0.5
"""Lean from which the other side's strongest point is granted."""

FAR: Final = (
    "the {vector} score stands as low as {n} already",
    "so much of the way down lies behind it",
)
UNMOVED: Final = (
    "the {vector} score stands at {n} and does not back it",
    "so the chart has not turned",
)
"""A score as an argument against a side: for higher prices, where it went far or did not go."""

FLOORS: Final[Mapping[int, Mapping[str, str]]] = {
    1: {"technical.support": "the support", "technical.swing_low": "the last swing low"},
    -1: {"technical.resistance": "the resistance", "technical.swing_high": "the last swing high"},
}
"""Levels whose loss ends a case for a side, the nearest first, with their names."""

HORIZONS: Final[Mapping[str, Horizon]] = {
    "fundamental": "days",
    "sentiment": "session",
    "news": "session",
    "momentum": "bars_4",
    "microstructure": "bars_4",
    "macro": "days",
}
"""The time that a seat speaks for, whatever the regime."""

LATE: Final = {"CLOSED": 0.8, "Friday NEW_YORK": 0.9}
"""Factors of a size in late hours, by session or weekday and session: a gap may follow."""

TREND_FROM: Final = 0.5
"""Strength of the trend from which sixteen bars are spoken for, not four."""

DECIMALS: Final = 4
"""Adjustments are rounded to this many decimals."""

Reply = dict[str, Any]


class RuleArgument(NamedTuple):
    """One signal as an argument: the feature that it cites, the half-sentence, why it matters.

    `grants`: as an answer to the other side, whether it yields the point.
    """

    signal: RuleSignal
    id: str
    half: str
    why: str
    grants: bool = False


class Argument(NamedTuple):
    """What a report says: its claim, the points for it and against it, its answer to a rival."""

    side: int
    claim: str
    points_for: Sequence[RuleArgument] = ()
    points_against: Sequence[RuleArgument] = ()
    answers: Sequence[RuleArgument] = ()

    def reads(self) -> list[str]:
        """Return what else its points read, beside the feature that each of them cites."""
        points = (*self.points_for, *self.points_against)
        names = dict.fromkeys(name for point in points for name in point.signal.reads)
        cited = {point.id for point in points}
        return [name for name in names if name not in cited]


def argue(view: SeatView, moves: Numbers, side: int, *, given_up: bool = False) -> Argument:
    """Return the argument of a report that pushes to a side (+1, -1, 0) with these adjustments.

    `given_up`: it has a case of its own and grants all of it to the other side.
    """
    office, moved = SIDES.get(view.role.id), any(moves.values())
    if office and not moved:
        return Argument(office, _no_case(view, office, given_up=given_up))
    if not side:
        count, known = len({signal.reads for signal in view.all()}), "pull both ways, evenly"
        if not moved and view.gaps:
            known = f"{verb('say', count)} what the scores say"
        elif not moved:
            known = f"{verb('ask', count)} for no more than the scores have"
        return Argument(0, f"No side: the {view.role.title}'s {_readings(count)} {known}.")
    points = top_points(view, side, FOR, gaps=view.gaps) or of_scores(view, moves, side)
    first = _first(view, points, moves, side)
    points = [first[0], *(point for point in points if point != first[0])][:FOR]
    answers = _answers(view, side) if office else []
    met = [answer.signal.reads for answer in answers]
    # one more than is granted: the answer may take one of them
    against = top_points(view, -side, AGAINST + 1, gaps=view.gaps)
    against = [point for point in against if point.signal.reads not in met]
    return Argument(side, _counted(view, first, side), points, against[:AGAINST], answers)


def top_points(view: SeatView, side: int, most: int, *, gaps: bool = False) -> list[RuleArgument]:
    """Return the points for a side, those that pull hardest first, one for the same features.

    `gaps`: they pull by how far they lie from their score.
    """
    pulls: list[tuple[float, RuleSignal]] = []
    for vector, signals in view.signals.items():
        base = view.scores[vector] if gaps else 0.0
        pulls += [
            (side * signal.weight * (signal.lean - base), signal)
            for signal in signals
            if side * signal.lean > 0.0
        ]
    points: dict[tuple[str, ...], RuleArgument] = {}
    # Python sorts stably, backwards too: equal pulls keep their order.
    for _, signal in sorted(pulls, key=itemgetter(0), reverse=True):
        if signal.reads not in points and _is_clear(signal):
            points[signal.reads] = _point(view, signal, side)
            if len(points) == most:
                break
    return list(points.values())


def of_scores(view: SeatView, moves: Numbers, side: int) -> list[RuleArgument]:
    """Return the score that is furthest from its readings as the one point."""
    vector = max(moves, key=lambda name: side * moves[name])
    return [_of_score(view, vector, side, PHRASES[f"scores.{vector}",])]


def of_far_score(view: SeatView, side: int) -> RuleArgument:
    """Return the score that has gone furthest against a side, as what speaks for that side."""
    vector = min(VECTORS, key=lambda name: side * view.scores[name])
    half, why = FAR if side * view.scores[vector] < 0.0 else UNMOVED
    half = half.replace("{vector}", vector.replace("_", " "))
    phrase = Phrase(half=half, why=why, number="itself", format="{:+.2f}")
    return _of_score(view, vector, side, phrase)


def _of_score(view: SeatView, vector: str, side: int, phrase: Phrase) -> RuleArgument:
    name, values = f"scores.{vector}", (view.scores[vector],)
    return _point(view, RuleSignal((name,), name, values, float(side), 1.0, False, phrase), side)


def preferring(cited: Collection[str], points: Iterable[RuleArgument]) -> list[RuleArgument]:
    """Return the points, those that others cite before the rest."""
    return sorted(points, key=lambda point: point.id not in cited)


def undecided(
    view: SeatView, cited: Collection[str], lead: str, reason: str, more: str
) -> Argument:
    """Return why no side is taken, and the strongest point of each side.

    The claim says what would decide: a close past a level, else a lead. `more` of the reason is
    left out where it has no room.
    """
    up, down = (
        preferring(cited, top_points(view, side, FOR + AGAINST))[:1] or [of_far_score(view, side)]
        for side in (1, -1)
    )
    ends = [*falsifiers(view, 1, up)[:1], *falsifiers(view, -1, down)[:1]]
    prices = [format_price(end["level"], view.features) for end in ends]
    if len(prices) == 1:
        lead = f"a close {ends[0]['close']} {prices[0]}"
    elif prices:
        lead = f"a close outside {' to '.join(prices)}"
    return Argument(0, fitting(reason, more, f"; {lead} decides."), up, down)


def falsifiers(view: SeatView, side: int, points: Iterable[RuleArgument]) -> list[Reply]:
    """Return closes that would end a case, none of which has come yet; [] without a case."""
    numbers, features = view.numbers, view.features
    if not points or CLOSE not in numbers:
        return []
    close, atr = numbers[CLOSE], numbers.get("technical.atr14")
    lines = [
        (point.signal.values[phrase.line], phrase.line_name)
        for point in points
        if (phrase := point.signal.phrase).line is not None
    ]
    lines += [(numbers[level], name) for level, name in FLOORS[side].items() if level in numbers]
    if atr:
        lines.append((close - side * atr, "one average range from here"))
    lines.sort(key=lambda line: abs(line[0] - close))
    ends: dict[str, Reply] = {}
    drawn = [Falsifier("below" if side > 0 else "above", *line, AHEAD) for line in lines]
    for end in pending_falsifiers(drawn, side, features):
        # two names of one price are one falsifier
        ends.setdefault(format_price(end.level, features), end._asdict())
    return list(ends.values())[:FALSIFIERS]


def risks(view: SeatView, argument: Argument, most: int) -> list[str]:
    """Return what may go wrong with an argument for a side, a sentence each; [] without a case."""
    if not argument.points_for:
        return []
    side = argument.side
    granted = {point.signal.reads for point in (*argument.points_against, *argument.answers)}
    # what has gone furthest: one such sentence says it all
    stretched = [
        faded
        for signal in view.all()
        if side * signal.lean > 0.0 and signal.phrase.faded and not signal.fades
        if _is_clear(faded := signal._replace(fades=True))
    ]
    far = max(stretched, key=lambda signal: abs(signal.lean), default=None)
    points = [_point(view, far, -side)] if far else []
    against = top_points(view, -side, AGAINST + 1 + most)
    points += [point for point in against if point.signal.reads not in granted]
    sentences = dict.fromkeys(f"{capital(point.half)}, {point.why}." for point in points)
    return list(sentences)[:most]


# --- words ----------------------------------------------------------------------------------------


def capital(text: str) -> str:
    """Return a text with a capital letter at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def verb(word: str, count: int) -> str:
    """Return a verb for so many: "asks" for one, "ask" for others."""
    return f"{word}s" if count == 1 else word


def fitting(text: str, rest: str, end: str = ".") -> str:
    """Return a sentence, without its rest where it would have more than CLAIM_WORDS words."""
    whole = f"{text}{rest}{end}"
    return whole if len(whole.split()) <= CLAIM_WORDS else f"{text}{end}"


def _readings(count: int) -> str:
    return "one reading" if count == 1 else f"{count} readings"


def _is_clear(signal: RuleSignal) -> bool:
    return signal.phrase.fits(signal.values, fades=signal.fades)


def _no_case(view: SeatView, office: int, *, given_up: bool) -> str:
    """Return what an advocate that votes 0 says: how many ask for its side, and too softly."""
    asking = [
        office * (signal.lean - view.scores[vector]) > 0.0
        for vector, signals in view.signals.items()
        for signal in signals
    ]
    more, count = "more" if office > 0 else "less", sum(asking)
    if not count:
        return f"No case: none of {len(asking)} readings asks for {more} than its score."
    end = "they yield to the other side's case" if given_up else "the others outweigh them"
    asks = f"{count} of {len(asking)} readings {verb('ask', count)} for {more}"
    return f"No case: {asks}, and {end}."


def _point(view: SeatView, signal: RuleSignal, side: int) -> RuleArgument:
    """Return a signal as a point of a side.

    It rests on the feature that it is about, if that leans so, else on the first that does.
    """
    phrase, reads, main = signal.phrase, signal.reads, signal.main
    about = reads[ABOUT[phrase.about](*signal.values)] if phrase.about else main
    for cited in (about, main, *reads, main):
        if side in sides(cited, view.features):
            break
    fades = signal.fades and bool(phrase.faded)
    return RuleArgument(signal, cited, *phrase.words(signal.values, side, fades=fades))


def _first(
    view: SeatView, points: list[RuleArgument], moves: Numbers, side: int
) -> list[RuleArgument]:
    """Return the points in the order for a claim: those of the role's own subject first.

    Without any, one of each other subject: who reads only that one puts it in other words. Where
    one point fills the claim, the agent whose subject it is may claim the same: then the score.
    """
    if view.role.id in SIDES:
        leading = _leading(view)
        # what an analyst leads with already is no claim of its own
        return sorted(points, key=lambda point: point.id in leading)
    own = _own(view)
    read = {vector: {signal.reads for signal in view.signals[vector]} for vector in view.signals}
    subjects = [[name for name in read if point.signal.reads in read[name]] for point in points]
    ours = [point for point, names in zip(points, subjects, strict=True) if own.intersection(names)]
    if ours or not own:
        return sorted(points, key=lambda point: point not in ours)
    first = [point for n, point in enumerate(points) if subjects.index(subjects[n]) == n]
    alone = _claim(view, first, side) == _claim(view, first[:1], side)
    return of_scores(view, moves, side) if alone else first


def _own(view: SeatView) -> set[str]:
    """Return the vectors that are the role's own subject."""
    return {vector for vector, focus in view.role.focus.items() if focus == "primary"}


def _leading(view: SeatView) -> set[str]:
    """Return what each of the others leads with: the first feature that it cites."""
    return {report.evidence[0].id for report in view.request.reports if report.evidence}


def _counted(view: SeatView, points: Sequence[RuleArgument], side: int) -> str:
    """Return the claim of some points, whose first is perhaps a score of another's subject.

    Then it says how many readings the score was held to: the agent whose subject it is says the
    same without.
    """
    claim = _claim(view, points, side)
    block, _, vector = points[0].id.partition(".")
    if block != "scores" or vector in _own(view):
        return claim
    count = len(view.signals.get(vector, ()))
    return claim.replace("its readings", f"its {_readings(count)}", 1)


def _claim(view: SeatView, points: Sequence[RuleArgument], side: int) -> str:
    """Return the claim of at most CLAIM_WORDS words: the two strongest points, or the strongest.

    A researcher's has the strongest and how many of the analysts push its way, where most of them
    do, and where an analyst may have claimed the same.
    """
    first, *others = (point.half for point in points[:2])
    rest = "".join(f" and {half}" for half in others)
    if view.role.id in SIDES:
        alone = not others or points[0].id in _leading(view)
        rest = _backers(view, side, alone=alone) or rest
    return fitting(f"{capital(WAY[side])}: {first}", rest)


def _backers(view: SeatView, side: int, *, alone: bool) -> str:
    """Return how many of the analysts push to a side, where more than half of them do.

    `alone`: where fewer do as well.
    """
    count = len(view.analysts)
    backing = sum(side * peer.push > 0.0 for peer in view.analysts)
    most = 2 * backing > count
    if count == 1:
        text = " and the analyst pushes" if backing else ", though the analyst does not push"
    elif most:
        text = f" and {backing} of {count} analysts push"
    elif not backing:
        text = f", though none of {count} analysts pushes"
    else:
        text = f", though only {backing} of {count} analysts push"
    return f"{text} {WAY[side]}" if count and (alone or most) else ""


def _answers(view: SeatView, side: int) -> list[RuleArgument]:
    """Return the answer to the other side's strongest point, if its case can be read already."""
    rival = view.cases[-side].report
    # without a case, what it cites is not its own
    if not (rival.evidence and any(rival.adjustments.values())):
        return []
    cited = rival.evidence[0].id
    # what the point itself is about, before what it reads besides
    strongest = max(
        (s for s in view.all() if s.lean and cited in s.reads and _is_clear(s)),
        key=lambda signal: (signal.main == cited, -side * signal.lean),
        default=None,
    )
    if strongest is None:
        return []
    own, lead, grants = side_of(strongest.lean), "Not so on", False
    if own != side:
        grants = abs(strongest.lean) >= STRONG
        lead = "Granted to" if grants else "Weak on"
    point = _point(view, strongest, own)
    return [point._replace(half=f"{lead} the other side: {point.half}", grants=grants)]


# --- replies --------------------------------------------------------------------------------------


def report(
    view: SeatView,
    argument: Argument,
    moves: Numbers,
    confidence: str,
    names: Iterable[str],
) -> Reply:
    """Return the reply of who moves scores; without a vector that it can read it abstains."""
    lacking = ", ".join(focus_of(view.role)) or "any score"
    return {
        **argued(view, argument),
        "adjustments": dict.fromkeys(VECTORS) | dict(moves),
        "confidence": confidence,
        "evidence": cite(view, names if moves else ()),
        "flags": [],
        "abstained": not moves,
        "abstain_reason": "" if moves else f"no readable evidence about {lacking}",
    }


def argued(view: SeatView, argument: Argument) -> Reply:
    """Return the claim and the points of a reply."""
    for_it, against = (
        [
            citation(view, point.id) | {"says": capital(point.half), "why": point.why}
            for point in points
        ]
        for points in (argument.points_for, argument.points_against)
    )
    return {"claim": argument.claim, "points_for": for_it, "points_against": against}


def cite(view: SeatView, names: Iterable[str]) -> list[Reply]:
    """Return the citations of those features that are there, each with its value."""
    return [citation(view, name) for name in names if name in view.numbers or name in view.words]


def citation(view: SeatView, name: str) -> Reply:
    """Return a feature as it is cited, with None for a value that is not there."""
    feature = view.features.get(name)
    return {"id": name, "value": feature and feature.value}


def towards(view: SeatView, side: int, share: float) -> float:
    """Return a share of the role's bound as an adjustment to a side, 0 where it points away."""
    # never -0.0: bull and bear without a case say the same nothing
    return side * round(view.role.bound * max(0.0, share), DECIMALS) + 0.0


def level(value: float, levels: Numbers) -> str:
    """Return the confidence whose least value a value reaches first, "low" below all of them."""
    return next((name for name, least in levels.items() if value >= least), "low")


def horizon(view: SeatView) -> Horizon:
    """Return the time that a report speaks for."""
    if view.role.id in HORIZONS:
        return HORIZONS[view.role.id]
    if late_factor(view) < 1.0:
        return "session"
    return "bars_16" if view.trend >= TREND_FROM else "bars_4"


def late_factor(view: SeatView) -> float:
    """Return what late hours leave of a size, 1 where it is not late or nothing is known."""
    day, session = (view.words.get(f"market.{name}") for name in ("day_of_week", "session"))
    if not (day and session):
        return 1.0
    return LATE.get(session, LATE.get(f"{day} {session}", 1.0))
