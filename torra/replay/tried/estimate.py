"""What settings would have come to on the desk's own stored bars of the last days, on L1 alone.

The saved profile, the changed one and, if several settings changed, each change by itself run over
the bars of every instance that uses the profile (torra.replay.l1.sweep). No agent is asked and
nothing is sent, so a run costs nothing and takes seconds. It is still a look at the market: every
configuration is entered into the log of trials before its result is known.

An instance without enough bars is left out, with the reason; where all are, `Tried.says` tells it.
Amounts of accounts in different currencies are never added up. What a run of L1 on one symbol
cannot know is among the notes. Faults of the store pass through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from instance_database import Database
from technical_calculator import WARM_UP
from torra.clock import duration, iso
from torra.config import Instance, Profile
from torra.desk.promotion import FOREVER
from torra.errors import ConfigError
from torra.evaluation.observations import TradeObservation
from torra.evaluation.wording import MINUS, count, listed
from torra.market.clock_shifts import shifted
from torra.money.book import known_currencies
from torra.money.open_positions import PAPER
from torra.money.results import ClosedTrade, Curve, Tally
from torra.profiles.fields import canonical, changed
from torra.profiles.guard import Change, compare
from torra.replay.l1.sweep import L1Backtest, L1Result
from torra.replay.l1.verdicts import moment_of
from torra.replay.shards import trials
from torra.replay.shards.history import History

MOST_ALONE: Final = 10
"""Changes of which each is run by itself."""

FEW: Final = 300
"""Trades below which a difference is hardly ever more than luck (torra.evaluation.power)."""

LATE: Final = timedelta(days=4)
"""Time after the begin within which the first tick may come: a long weekend without trading."""

NO_AGENTS: Final = (
    "The arithmetic (L1) decides by itself here. Agents are not asked, so what they count, who "
    "they are and what models cost changes nothing in these figures."
)
BY_ITSELF: Final = (
    "Each symbol runs by itself: limits on several positions at once, and the account as a whole, "
    "are not counted."
)
NO_CALENDAR: Final = "Scheduled events are left out: stored bars do not contain the calendar."
AS_IF_APPROVED: Final = "With execution approve, these are the trades if you had said yes to each."
NOBODY_SENDS: Final = "With execution off nothing is sent, so there is no trade."
WATCHED: Final = "Execution is off: these are the trades that would have been sent if it were auto."

AGENTS_ALONE: Final = frozenset({"agents", "news"})
"""Sections that change nothing where nobody is asked."""

SAVED: Final = "before"
WANTED: Final = "after"
"""The two configurations that every try has."""

Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Sums:
    """What the trades of one configuration came to in one currency, "" where nobody has told it.

    `fall` is the deepest fall of the running sum of closed trades below its highest point, and
    `halts` how often the desk halted itself.
    """

    currency: str
    trades: int = 0
    won: int = 0
    money: float = 0.0
    r: float = 0.0
    fall: float = 0.0
    halts: int = 0


@dataclass(frozen=True, slots=True)
class Alone:
    """What one change by itself would have come to, everything else as it is saved."""

    name: str
    before: Any
    after: Any
    sums: tuple[Sums, ...]


@dataclass(frozen=True, slots=True)
class TriedOn:
    """The bars of one instance: how many ticks ran from when to when, and what both came to.

    From `whole_from` on every timeframe has ticks; `looks` is how many the symbol has had.
    """

    instance: str
    symbol: str
    currency: str
    ticks: int
    begin: str
    whole_from: str
    end: str
    looks: int
    before: Sums
    after: Sums


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An instance that could not be run, and why."""

    instance: str
    why: str


@dataclass(frozen=True, slots=True)
class Tried:
    """Everything that a try found. `before` and `after` have one entry for each currency.

    `digest` is that of the saved profile, `changes` what the other one changes; without a change
    `after` equals `before`. `days` is what was asked for; the bars may be fewer. `capital_after` is
    the changed profile's capital.
    """

    profile: str
    digest: str
    days: int
    capital: float
    begin: str
    end: str
    changes: tuple[dict[str, Any], ...]
    before: tuple[Sums, ...]
    after: tuple[Sums, ...]
    alone: tuple[Alone, ...]
    ran_on: tuple[TriedOn, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    says: str
    capital_after: float

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What is tried: the saved profile against the changed one, and the closes in (begin, end]."""

    name: str
    saved: Profile
    wanted: Profile
    days: int
    end: datetime

    @property
    def begin(self) -> datetime:
        """The moment after which bars count."""
        return self.end - timedelta(days=self.days)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What the wanted profile changes."""
        return compare(canonical(self.saved), canonical(self.wanted))

    @property
    def watched(self) -> bool:
        """Whether nothing is sent either way: then there is nothing but what would have been."""
        return self.saved.execution == self.wanted.execution == "off"

    def alone(self) -> list[tuple[Change, Profile]]:
        """Return each change with the saved profile that has it alone; none for a single one.

        One that does not stand by itself is left out.
        """
        changes = self.changes
        if len(changes) < 2:
            return []
        saved, found = canonical(self.saved), []
        for change in changes[:MOST_ALONE]:
            try:
                one = Profile.model_validate(changed(saved, {change.place: change.after}))
            except ValueError:
                continue
            found.append((change, one))
        return found


@dataclass(slots=True)
class _Tries:
    """Every configuration of a question, and what each has come to so far, by instance."""

    question: WhatIf
    profiles: dict[str, Profile]
    alone: list[tuple[Change, Profile]]
    currencies: Mapping[str, str]
    swept: dict[str, dict[str, L1Result]] = field(default_factory=dict)
    ran_on: list[TriedOn] = field(default_factory=list)

    @classmethod
    def of(cls, question: WhatIf, currencies: Mapping[str, str]) -> _Tries:
        alone = question.alone()
        single = {change.name: profile for change, profile in alone}
        profiles = {SAVED: question.saved, WANTED: question.wanted, **single}
        return cls(question, profiles, alone, currencies)

    def run(self, home: Path, database: Database, instance: Instance) -> None:
        """Run everything on one instance; raises ConfigError, and keeps nothing of it then."""
        ground, bars = _ground(database, instance, self.question)
        looks = _log(home, instance, bars, self.profiles.values(), self.question)
        self.swept[instance.id] = {
            name: ground.run(runnable(profile, watched=self.question.watched))
            for name, profile in self.profiles.items()
        }
        closes, currency = ground.ticks.close, self.currencies[instance.id]
        self.ran_on.append(
            TriedOn(
                instance=instance.id,
                symbol=instance.symbol,
                currency=currency,
                ticks=len(closes),
                begin=iso(moment_of(int(closes[0]))),
                whole_from=iso(moment_of(_whole_from(ground))),
                end=iso(moment_of(int(closes[-1]))),
                looks=looks,
                before=self._sums(SAVED, [instance.id], currency),
                after=self._sums(WANTED, [instance.id], currency),
            )
        )

    def concluded(self, left: Sequence[LeftOut]) -> Tried:
        """Return what all of it came to."""
        question, ran = self.question, self.ran_on
        before, after = self._by_currency(SAVED), self._by_currency(WANTED)
        changes = question.changes
        return Tried(
            profile=question.name,
            digest=question.saved.digest(),
            days=question.days,
            capital=question.saved.risk.capital,
            begin=min((one.begin for one in ran), default=""),
            end=max((one.end for one in ran), default=""),
            changes=tuple(change.as_dict() for change in changes),
            before=before,
            after=after,
            alone=tuple(
                Alone(change.name, change.before, change.after, self._by_currency(change.name))
                for change, _ in self.alone
            ),
            ran_on=tuple(ran),
            left_out=tuple(left),
            notes=tuple(_notes(question, ran)),
            says=said(before, after, changed=bool(changes), left=left),
            capital_after=question.wanted.risk.capital,
        )

    def _by_currency(self, name: str) -> tuple[Sums, ...]:
        """Return what a configuration came to, a row for each currency."""
        currencies = dict.fromkeys(one.currency for one in self.ran_on)
        return tuple(
            self._sums(name, [on.instance for on in self.ran_on if on.currency == one], one)
            for one in currencies
        )

    def _sums(self, name: str, instances: Sequence[str], currency: str) -> Sums:
        found = [self.swept[instance][name] for instance in instances]
        trades = [trade for one in found for trade in one.trades]
        return sums_of(trades, currency, sum(one.halts for one in found))


def newest_close(database: Database, instances: Iterable[Instance]) -> datetime | None:
    """Return the newest close of any stored bar of some instances; None where there is none."""
    found = [
        frame.index[-1].to_pydatetime() + duration(name)
        for instance in instances
        for name in instance.timeframes
        if len(frame := database.load_bars(instance.id, name, as_of=FOREVER, limit=1))
    ]
    return max(found, default=None)


def tried(
    home: Path,
    database: Database,
    instances: Sequence[Instance],
    question: WhatIf,
    paper: str,
    tell: Tell = lambda _stage, _done, _total: None,
) -> Tried:
    """Run a question over the stored bars of some instances; `paper` is paper's currency."""
    tries = _Tries.of(question, _currencies(database, instances, paper))
    left = []
    for number, instance in enumerate(instances):
        tell(f"runs {instance.id}", number, len(instances))
        try:
            tries.run(home, database, instance)
        except ConfigError as error:
            left.append(LeftOut(instance.id, str(error)))
    tell("adds up", len(instances), len(instances))
    return tries.concluded(left)


def runnable(profile: Profile, *, watched: bool = False) -> Profile:
    """Return a profile as L1 alone can run it: without a calendar, and nobody has to say yes.

    One that is `watched` has its execution off, and trades here all the same.
    """
    changes: dict[str, Any] = {"events": profile.events.model_copy(update={"calendar": ""})}
    if profile.execution == "approve" or watched:
        changes["execution"] = "auto"
    return profile.model_copy(update=changes)


# --- bars -----------------------------------------------------------------------------------------


def _ground(database: Database, instance: Instance, question: WhatIf) -> tuple[L1Backtest, History]:
    """Return the scored bars of an instance; raises ConfigError where they are too few."""
    frames = {}
    for name in instance.timeframes:
        # All there are: records are those of everything that the desk has seen.
        bars = database.load_bars(instance.id, name, as_of=question.end)
        if len(bars):
            frames[name] = bars
    if not frames:
        raise ConfigError("no bar of it is stored yet")
    for shift in shifted(frames):
        raise ConfigError(f"its timeframes are of different clocks: {shift.line}")
    if all(len(bars) < WARM_UP for bars in frames.values()):
        most = max(map(len, frames.values()))
        raise ConfigError(f"{count(most, 'bar')} of it are stored, and scores take {WARM_UP}")
    ground = L1Backtest(instance, frames, begin=question.begin, end=question.end)
    if not len(ground.ticks.close):
        raise ConfigError(f"no bar of it closed in the last {count(question.days, 'day')}")
    return ground, History(instance.symbol, frames, dict.fromkeys(frames, "store"))


def _whole_from(ground: L1Backtest) -> int:
    """Return the first close from which on every timeframe that is there has ticks."""
    of, closes = ground.ticks.stream, ground.ticks.close
    return max(int(closes[of == number][0]) for number in set(of.tolist()))


def _log(
    home: Path, instance: Instance, bars: History, profiles: Iterable[Profile], question: WhatIf
) -> int:
    """Enter every configuration into the log of trials; return how many the symbol has now."""
    period = {"begin": iso(question.begin), "end": iso(question.end)}
    names = (
        trials.name_of(
            "settings", instance.symbol, bars.digest, {"profile": profile.digest(), **period}
        )
        for profile in profiles
    )
    return trials.log(home, instance.symbol, names, f"settings of {question.name}")


# --- sums -----------------------------------------------------------------------------------------


def _currencies(database: Database, instances: Iterable[Instance], paper: str) -> dict[str, str]:
    known = known_currencies(database, paper)
    return {one.id: known.get(one.route, "") for one in instances}


def sums_of(trades: Iterable[TradeObservation], currency: str, halts: int) -> Sums:
    """Return what trades of one currency came to, one after the other as they ended."""
    tally, curve = Tally(), Curve()
    for trade in sorted(trades, key=lambda one: one.closed):
        told = ClosedTrade(
            iso(trade.closed), trade.instance, trade.symbol, trade.side, trade.reason, PAPER,
            trade.profit, trade.r,
        )  # fmt: skip
        tally.add(told)
        curve.add(told)
    money, r, fall = (round(one, 2) + 0.0 for one in (tally.profit, tally.r, curve.deepest))
    return Sums(currency, tally.trades, tally.won, money, r, fall, halts)


# --- words ----------------------------------------------------------------------------------------


def said(
    before: Sequence[Sums], after: Sequence[Sums], *, changed: bool, left: Sequence[LeftOut] = ()
) -> str:
    """Return what a try came to in a sentence or two."""
    if not before:
        why = "; ".join(f"{one.instance}: {one.why}" for one in left)
        return f"Nothing could be run. {why or 'No symbol uses this profile'}."
    if not changed:
        return f"As saved: {listed([came_to(one) for one in before])}."
    return (
        f"As saved: {listed([came_to(one) for one in before])}. "
        f"With the changes: {listed([came_to(one) for one in after])}."
    )


def came_to(one: Sums) -> str:
    """Return what trades came to: 39 trades, +256.80 USD, +2.76 R, deepest fall 210.10 USD."""
    if not one.trades:
        return "no trade"
    return (
        f"{count(one.trades, 'trade')}, {amount(one.money, one.currency)}, "
        f"{signed(one.r)} R, deepest fall {amount(one.fall, one.currency, sign=False)}"
    )


def amount(value: float, currency: str, *, sign: bool = True) -> str:
    """Write an amount with its currency."""
    told = signed(value) if sign else f"{value:,.2f}"
    return f"{told} {currency}" if currency else told


def signed(value: float) -> str:
    """Write a number with its sign and thousands apart; zero has none."""
    return f"{value:+,.2f}".replace("-", MINUS) if round(value, 2) else "0.00"


def _notes(question: WhatIf, told: Sequence[TriedOn]) -> Iterable[str]:
    """Yield what to know before these figures are believed."""
    if not told:
        return
    yield from _of_the_bars(question, told)
    yield NO_AGENTS
    dead = [change.name for change in question.changes if change.place[0] in AGENTS_ALONE]
    if dead:
        yield f"Not measured here: {listed(dead)}."
    yield BY_ITSELF
    yield from _of_the_profiles(question)
    looks = [f"{one.looks:,} at {one.symbol}" for one in told]
    yield (
        f"Every try is a look at the market and is counted: {listed(looks)} so far. The more "
        "looks, the more likely that the best of them was luck."
    )


def _of_the_bars(question: WhatIf, told: Sequence[TriedOn]) -> Iterable[str]:
    for one in told:
        if one.whole_from > iso(question.begin + LATE):
            days = count(question.days, "day")
            yield f"{one.instance}: its bars reach back to {one.whole_from[:10]} only, not {days}."
    if min(sum(one.before.trades for one in told), sum(one.after.trades for one in told)) < FEW:
        yield "So few trades cannot tell skill from luck: a better result here proves nothing yet."


def _of_the_profiles(question: WhatIf) -> Iterable[str]:
    """Yield what of the two profiles bars alone cannot know."""
    profiles = (question.saved, question.wanted)
    if any(profile.events.calendar for profile in profiles):
        yield NO_CALENDAR
    sends = {profile.execution for profile in profiles}
    if "approve" in sends:
        yield AS_IF_APPROVED
    if question.watched:
        yield WATCHED
    elif "off" in sends:
        yield NOBODY_SENDS
