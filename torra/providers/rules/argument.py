"""What the rules say for their numbers: a claim, points for it, what they grant, what would end it.

Every sentence is made from `agents.phrases` alone. A point for a report leans to the report's own
side, by its signal, and one against it leans the other way; what leans to neither is counted and
not said. An analyst that finds a score too high while no signal leans down points at the score
itself. An advocate without a case says so. A falsifier lies on the path of price and does not hold
yet: a close beyond a line, within `AHEAD` bars. A risk is what backs a case and is stretched
furthest, then what speaks against it and was not granted.

Pure functions; nothing raises.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

from agents.arguments import AGAINST, CLAIM_WORDS, FALSIFIERS, FOR, format_price, pending_falsifiers
from agents.contracts import SIDES, VECTORS, Falsifier, Request
from agents.features import Features, number, sides
from agents.phrases import PHRASES, Phrase
from torra.providers.rules.peer_reports import analysts, case_of, push
from torra.providers.rules.rule import CLOSE, RuleSignal, Signals, side_of

AHEAD: Final = 12
"""Bars within which a falsifier may come true."""

WAY: Final = {1: "up", -1: "down"}

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


class ReaderView(NamedTuple):
    """A request, and the signals that its seat reads in it.

    `base` is what the signals are measured from, None for the scores.
    """

    request: Request
    signals: Signals
    base: float | None = 0.0

    def own(self) -> frozenset[str]:
        """Return the vectors that are the role's own subject."""
        focus = self.request.role.focus
        return frozenset(vector for vector in focus if focus[vector] == "primary")

    def all(self) -> list[RuleSignal]:
        """Return the signals of every vector."""
        return [signal for signals in self.signals.values() for signal in signals]


def argue(
    view: ReaderView, moves: Mapping[str, float], side: int, *, given_up: bool = False
) -> Argument:
    """Return the argument of a report that pushes to a side (+1, -1, 0) with these adjustments.

    `given_up`: it has a case of its own and grants all of it to the other side.
    """
    request, office = view.request, SIDES.get(view.request.role.id)
    moved = any(moves.values())
    if office and not moved:
        return Argument(office, _no_case(view, office, given_up=given_up))
    if not side:
        known, count = "pull both ways, evenly", len({signal.reads for signal in view.all()})
        if not moved and view.base is None:
            known = f"{verb('say', count)} what the scores say"
        elif not moved:
            known = f"{verb('ask', count)} for no more than the scores have"
        return Argument(0, f"No side: the {request.role.title}'s {_readings(count)} {known}.")
    points = top_points(view, side, FOR) or of_scores(request, moves, side)
    first = _first(view, points, moves, side)
    points = [*first[:1], *(point for point in points if point != first[0])][:FOR]
    answers = _answers(view, side) if office else []
    # one more than is granted: the answer may take one of them
    against = top_points(view, -side, AGAINST + 1)
    met = [answer.signal.reads for answer in answers]
    against = [point for point in against if point.signal.reads not in met]
    claim = _counted(view, _claim(request, first, side), first[0])
    return Argument(side, claim, points, against[:AGAINST], answers)


def top_points(view: ReaderView, side: int, most: int) -> list[RuleArgument]:
    """Return the points for a side, those that pull hardest first, one for the same features."""
    pulls: list[tuple[float, RuleSignal]] = []
    for vector, signals in view.signals.items():
        base = score_of(view.request, vector) if view.base is None else view.base
        pulls += [
            (side * signal.weight * (signal.lean - base), signal)
            for signal in signals
            if side * signal.lean > 0.0
        ]
    # Python sorts stably, backwards too: equal pulls keep their order.
    pulls.sort(key=itemgetter(0), reverse=True)
    points: dict[tuple[str, ...], RuleArgument] = {}
    for _, signal in pulls:
        if signal.reads not in points and signal.phrase.fits(signal.values, fades=signal.fades):
            points[signal.reads] = _point(signal, side, view.request.features)
            if len(points) == most:
                break
    return list(points.values())


def of_scores(request: Request, moves: Mapping[str, float], side: int) -> list[RuleArgument]:
    """Return the score that is furthest from its readings as the one point."""
    vector = max(moves, key=lambda name: side * moves[name])
    return [_of_score(request, vector, side, PHRASES[f"scores.{vector}",])]


def of_far_score(request: Request, side: int) -> RuleArgument:
    """Return the score that has gone furthest against a side, as what speaks for that side."""
    vector = min(VECTORS, key=lambda name: side * score_of(request, name))
    half, why = FAR if side * score_of(request, vector) < 0.0 else UNMOVED
    half = half.replace("{vector}", vector.replace("_", " "))
    return _of_score(request, vector, side, Phrase(half, why, float, "{:+.2f}"))


def _of_score(request: Request, vector: str, side: int, phrase: Phrase) -> RuleArgument:
    values = (score_of(request, vector),)
    signal = RuleSignal((f"scores.{vector}",), values, float(side), 1.0, False, phrase)
    return _point(signal, side, request.features)


def preferring(cited: Collection[str], points: Iterable[RuleArgument]) -> list[RuleArgument]:
    """Return the points, those that others cite before the rest."""
    return sorted(points, key=lambda point: point.id not in cited)


def undecided(view: ReaderView, cited: Collection[str], lead: str, *reasons: str) -> Argument:
    """Return why no side is taken, and the strongest point of each side.

    The claim says what would decide: a close past a level, else a lead. The last of the reasons are
    left out where it has no room for them.
    """
    features = view.request.features
    up, down = (
        preferring(cited, top_points(view, side, FOR + AGAINST))[:1]
        or [of_far_score(view.request, side)]
        for side in (1, -1)
    )
    ends = [*falsifiers(features, 1, up)[:1], *falsifiers(features, -1, down)[:1]]
    prices = [format_price(end.level, features) for end in ends]
    if len(prices) == 1:
        lead = f"a close {ends[0].close} {prices[0]}"
    elif prices:
        lead = f"a close outside {' to '.join(prices)}"
    for most in range(len(reasons), 0, -1):
        claim = f"{''.join(reasons[:most])}; {lead} decides."
        if len(claim.split()) <= CLAIM_WORDS:
            break
    return Argument(0, claim, up, down)


def falsifiers(features: Features, side: int, points: Iterable[RuleArgument]) -> list[Falsifier]:
    """Return closes that would end a case, none of which has come yet; [] without a case."""
    close, atr = number(features, CLOSE), number(features, "technical.atr14")
    if not points or close is None:
        return []
    lines = [
        (point.signal.values[phrase.line], phrase.line_name)
        for point in points
        if (phrase := point.signal.phrase).line is not None
    ]
    floors = ((number(features, level), name) for level, name in FLOORS[side].items())
    lines += [floor for floor in floors if floor[0] is not None]
    if atr:
        lines.append((close - side * atr, "one average range from here"))
    lines.sort(key=lambda line: abs(line[0] - close))
    way: Literal["above", "below"] = "below" if side > 0 else "above"
    ends: dict[str, Falsifier] = {}
    for end in pending_falsifiers((Falsifier(way, *line, AHEAD) for line in lines), side, features):
        # two names of one price are one falsifier
        ends.setdefault(format_price(end.level, features), end)
    return list(ends.values())[:FALSIFIERS]


def risks(view: ReaderView, argument: Argument, most: int) -> list[str]:
    """Return what may go wrong with an argument for a side, a sentence each; [] without a case."""
    if not argument.points_for:
        return []
    side, features = argument.side, view.request.features
    granted = {point.signal.reads for point in (*argument.points_against, *argument.answers)}
    # what has gone furthest: one such sentence says it all
    far = max(
        (
            signal
            for signal in view.all()
            if side * signal.lean > 0.0 and signal.phrase.faded and not signal.fades
            if signal.phrase.fits(signal.values, fades=True)
        ),
        key=lambda signal: abs(signal.lean),
        default=None,
    )
    against = top_points(view._replace(base=0.0), -side, AGAINST + 1 + most)
    points = [point for point in against if point.signal.reads not in granted]
    if far:
        points.insert(0, _point(far._replace(fades=True), -side, features))
    sentences = dict.fromkeys(f"{capital(point.half)}, {point.why}." for point in points)
    return list(sentences)[:most]


def score_of(request: Request, vector: str) -> float:
    """Return a score; no evidence may raise, so one that is no number counts as 0."""
    value: Any = request.scores.get(vector, 0.0)
    return value if math.isfinite(value) else 0.0


# --- words ----------------------------------------------------------------------------------------


def capital(text: str) -> str:
    """Return a text with a capital letter at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def verb(word: str, count: int) -> str:
    """Return a verb for so many: "asks" for one, "ask" for others."""
    return f"{word}s" if count == 1 else word


def _readings(count: int) -> str:
    return "one reading" if count == 1 else f"{count} readings"


def _no_case(view: ReaderView, office: int, *, given_up: bool) -> str:
    """Return what an advocate that votes 0 says: how many ask for its side, and too softly."""
    asking = [
        office * (signal.lean - score_of(view.request, vector)) > 0.0
        for vector, signals in view.signals.items()
        for signal in signals
    ]
    more, count = "more" if office > 0 else "less", sum(asking)
    if not count:
        return f"No case: none of {len(asking)} readings asks for {more} than its score."
    end = "they yield to the other side's case" if given_up else "the others outweigh them"
    asks = f"{count} of {len(asking)} readings {verb('ask', count)} for {more}"
    return f"No case: {asks}, and {end}."


def _point(signal: RuleSignal, side: int, features: Features) -> RuleArgument:
    """Return a signal as a point of a side.

    It rests on the feature that it is about, if that leans so, else on the first that does.
    """
    phrase, reads = signal.phrase, signal.reads
    fades = signal.fades and bool(phrase.faded)
    about = reads[phrase.about(*signal.values)] if phrase.about else signal.main
    for cited in (about, signal.main, *reads, signal.main):
        if side in sides(cited, features):
            break
    half = phrase.text(signal.values, side, fades=fades)
    return RuleArgument(signal, cited, half, phrase.reason(side, fades=fades))


def _counted(view: ReaderView, claim: str, point: RuleArgument) -> str:
    """Return a claim about a score of another's subject with how many readings were held to it.

    The agent whose subject it is says the same without.
    """
    block, _, vector = point.id.partition(".")
    if block != "scores" or vector in view.own():
        return claim
    count = len(view.signals.get(vector, ()))
    return claim.replace("its readings", f"its {_readings(count)}", 1)


def _first(
    view: ReaderView, points: list[RuleArgument], moves: Mapping[str, float], side: int
) -> list[RuleArgument]:
    """Return the points in the order for a claim: those of the role's own subject first.

    Without any, one of each other subject: who reads only that one puts it in other words. Where
    one point fills the claim, the agent whose subject it is may claim the same: then the score.
    """
    request = view.request
    if request.role.id in SIDES:
        claimed = _claimed(request)
        # what an analyst has said already is no claim of its own
        return sorted(points, key=lambda point: point.id in claimed)
    own = view.own()
    read = {vector: {signal.reads for signal in view.signals[vector]} for vector in view.signals}
    subjects = [[name for name in read if point.signal.reads in read[name]] for point in points]
    ours = [point for point, names in zip(points, subjects, strict=True) if own & {*names}]
    if ours or not own:
        return [*ours, *(point for point in points if point not in ours)]
    first = [point for n, point in enumerate(points) if subjects.index(subjects[n]) == n]
    alone = _claim(request, first, side) == _claim(request, first[:1], side)
    return of_scores(request, moves, side) if alone else first


def _claimed(request: Request) -> set[str]:
    """Return what each of the others leads with: the first feature that it cites."""
    return {report.evidence[0].id for report in request.reports if report.evidence}


def _claim(request: Request, points: Sequence[RuleArgument], side: int) -> str:
    """Return the claim of at most CLAIM_WORDS words: the two strongest points, or the strongest.

    A researcher's has the strongest and how many of the analysts push its way, where most of them
    do, and where an analyst may have said the same.
    """
    first, *others = (point.half for point in points[:2])
    rest = "".join(f" and {half}" for half in others)
    if request.role.id in SIDES:
        alone = not others or points[0].id in _claimed(request)
        rest = _backers(request, side, alone=alone) or rest
    return fitting(f"{capital(WAY[side])}: {first}", rest)


def fitting(text: str, rest: str) -> str:
    """Return a sentence, without its rest where it would have more than CLAIM_WORDS words."""
    whole = f"{text}{rest}."
    return whole if len(whole.split()) <= CLAIM_WORDS else f"{text}."


def _backers(request: Request, side: int, *, alone: bool) -> str:
    """Return how many of the analysts push to a side, where more than half of them do.

    `alone`: where fewer do as well.
    """
    pushes = [push(report) for report in analysts(request)]
    count, backing = len(pushes), sum(side * value > 0.0 for value in pushes)
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


def _answers(view: ReaderView, side: int) -> list[RuleArgument]:
    """Return the answer to the other side's strongest point, if its case can be read already."""
    rival = case_of(view.request, -side)
    # without a case, what it cites is not its own
    cited = (
        [item.id for item in rival.evidence[:1]]
        if rival and any(rival.adjustments.values())
        else []
    )
    # what the point itself is about, before what it reads besides
    strongest = max(
        (
            s
            for s in view.all()
            if s.lean and {*s.reads}.intersection(cited) and s.phrase.fits(s.values, fades=s.fades)
        ),
        key=lambda signal: (signal.main in cited, -side * signal.lean),
        default=None,
    )
    if strongest is None:
        return []
    own, lead = side_of(strongest.lean), "Not so on"
    grants = own != side and abs(strongest.lean) >= STRONG
    if own != side:
        lead = "Granted to" if grants else "Weak on"
    point = _point(strongest, own, view.request.features)
    return [point._replace(half=f"{lead} the other side: {point.half}", grants=grants)]
