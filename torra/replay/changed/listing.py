"""The ticks that agents changed, newest first, and the whole paths with and without agents.

A tick's line is its own counterfactual (torra.replay.changed.without_agents). Lines are never added
up: one change decides whether the next could happen at all. Only the two whole paths may be
compared (`paths`), the desk's own and that of L1 alone over the same ticks (torra.replay.live).

Ticks in shadow changed nothing. Nothing is stored, sent or asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from heapq import merge
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from numpy.random import PCG64, Generator

from instance_database import Database, open_home
from torra.clock import parse
from torra.config import DeskSettings, Instance, load_desk
from torra.desk.promotion import PromotionSubject
from torra.errors import ConfigError
from torra.evaluation.observations import ArmObservation
from torra.evaluation.paired_days import day_result, equal_sized, excess_profit
from torra.evaluation.power import NOTABLE_SHARE, sample_size_sentence, share_count
from torra.evaluation.trade_figures import net_results
from torra.evaluation.wording import count, percent
from torra.home import has_database
from torra.replay import live
from torra.replay.changed.without_agents import ChangedTick, Kind, ScoredBars, changed_tick
from torra.store import standings as standing_table
from torra.store import tick_queries
from torra.store.standings import BEYOND
from torra.tick.marks import EXECUTION_OFF, PROPOSED

KINDS: Final[tuple[Kind, ...]] = ("verdict", "action", "size")
USUAL: Final[tuple[Kind, ...]] = ("verdict", "action")
"""What is listed unless another is asked for: conviction changes most sizes a little."""

SHOWN: Final = 20
MOST: Final = 200
"""Ticks on a page, and the most that are listed at once."""

LOOKED_AT: Final = 600
"""Ticks that one page looks through at most: a list of changed actions may find few of them."""


NOT_WARMED: Final = live.WarmedUp()


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """Some of the ticks that agents changed, newest first; `next` asks for those before."""

    ticks: tuple[ChangedTick, ...]
    next: str | None
    verdicts: int
    of: int

    @property
    def says(self) -> str:
        """How many verdicts were changed of how many, and how many it takes to judge."""
        if not self.of:
            return "No tick is on record yet."
        if not self.verdicts:
            told = f"The agents changed no verdict so far, of {_ticks(self.of)}."
        else:
            told = f"The agents changed {self.verdicts:,} of {self.of:,} verdicts."
        return f"{told} {enough(self.verdicts)}"

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "says": self.says,
            "verdicts_changed": self.verdicts,
            "ticks": self.of,
            "needed": share_count(NOTABLE_SHARE),
            "changed": [asdict(one) for one in self.ticks],
            "next": self.next,
        }


def enough(verdicts: int) -> str:
    """Return how many changed verdicts it takes to judge them, and how many there are."""
    better = f"that {percent(NOTABLE_SHARE)} of the changes paid"
    return sample_size_sentence(share_count(NOTABLE_SHARE), verdicts, "changed verdict", better)


@dataclass(frozen=True, slots=True)
class Paths:
    """The desk's whole path beside that of L1 alone.

    `r` and `l1_r` are the net R a trade of both, None without a trade. `money` is the difference in
    the account's currency at one size (torra.evaluation.paired_days), `low` and `high` bound it at
    95 %; all are None where they are not known. `asked` are the
    ticks whose orders waited for a person: of those the desk's path has what was approved, while
    the path of L1 has every order. `ticks` are those of the present setting, in its `mode`, which
    are compared; `warmed` of them and of the trades were made in warm-up: here they count.
    `left_out` tells of trades that do not.
    """

    profile: str
    says: str
    trades: int = 0
    l1_trades: int = 0
    r: float | None = None
    l1_r: float | None = None
    money: float | None = None
    low: float | None = None
    high: float | None = None
    asked: int = 0
    ticks: int = 0
    mode: str = ""
    warmed: live.WarmedUp = NOT_WARMED
    left_out: str = ""


def listed(
    database: Database,
    desk: DeskSettings,
    *,
    instance: str | None = None,
    kinds: Sequence[Kind] = USUAL,
    before: str | None = None,
    limit: int = SHOWN,
) -> ChangedPage:
    """Return ticks of the instances of a desk that agents changed, newest first.

    `before` is the `next` of the page before. Raises ConfigError for an instance that the desk has
    not, and for a cursor that is none.
    """
    some = desk.instances if instance is None else (desk.instance(instance),)
    known = {one.id: one for one in some}
    found: list[ChangedTick] = []
    place, seen, more = _place(before), 0, False
    bars = ScoredBars(database)
    for place_now, key in _candidates(database, known, kinds, place):
        if len(found) == limit or seen == LOOKED_AT:
            more = True
            break
        place, seen = place_now, seen + 1
        one = changed_tick(bars, known, key)
        if one is not None and set(one.changed) & set(kinds):
            found.append(one)
    tallies = tick_queries.verdict_tallies(database, list(known)).values()
    return ChangedPage(
        tuple(found),
        " ".join(place) if more else None,
        sum(changed for changed, _ in tallies),
        sum(ticks for _, ticks in tallies),
    )


def of_home(home: Path, **asked: Any) -> tuple[ChangedPage, tuple[Paths, ...]]:
    """Return the newest changed ticks of a home, and the whole paths of each of its profiles.

    A home without a database has neither. Raises ConfigError as `listed` does.
    """
    desk = load_desk(home)
    if asked.get("instance") is not None:
        desk.instance(asked["instance"])
    if not has_database(home):
        return ChangedPage((), None, 0, 0), ()
    with closing(open_home(home)) as database:
        page = listed(database, desk, **asked)
        return page, tuple(paths(database, one) for one in live.subjects(home, desk))


def paths(database: Database, subject: PromotionSubject) -> Paths:
    """Return what the desk's own path came to beside that of L1 alone, over the same ticks.

    Of 100,000 ticks this takes about a minute.
    """
    final = live.arm_seen(database, subject)
    if not final.ticks:
        return Paths(subject.name, "No tick of the present setting counts yet.")
    if all(tick.shadow for tick in final.ticks if tick.opinions):
        return Paths(
            subject.name, "The agents looked on: the desk's path is the one without agents."
        )
    asked = sum(tick.reason == PROPOSED for tick in final.ticks)
    if not final.trades and (why := _nothing_sent(final, asked)):
        return Paths(subject.name, why, asked=asked)
    if subject.profile.events.calendar:
        return Paths(
            subject.name, "A calendar kept openings back, so the path without agents is not known."
        )
    frames = live.frames_of(database, subject, final.ticks)
    try:
        left = live.exclusions(database, final)
        control, final = live.arms_of(final, subject, frames, left)
    except ConfigError as error:
        return Paths(subject.name, f"The path without agents is not known: {error}.")
    rng = Generator(PCG64([len(final.ticks), len(final.trades)]))
    equal = equal_sized(final, control)
    days = day_result(equal[0], equal[1:], rng).days
    share = final.capital * days.n / 100
    sure = days.low is not None and days.high is not None
    money = excess_profit(final, control) if final.trades or control.trades else 0.0
    return Paths(
        subject.name,
        ONE_PATH if money is None else "" if sure else "There are too few days for an interval.",
        trades=len(final.trades),
        l1_trades=len(control.trades),
        r=_mean(net_results(final)),
        l1_r=_mean(net_results(control)),
        money=money,
        low=None if days.low is None else days.low * share,
        high=None if days.high is None else days.high * share,
        asked=asked,
        ticks=len(final.ticks),
        mode=subject.profile.agents.mode,
        warmed=live.warmed_of(database, final),
        left_out=live.exclusion_words(left),
    )


ONE_PATH: Final = (
    "Only one of the paths, with agents and without, has a closed trade: nothing can be set "
    "beside it."
)


def _mean(results: Sequence[float]) -> float | None:
    return fmean(results) if results else None


def _nothing_sent(final: ArmObservation, asked: int) -> str:
    """Return why a desk that wanted orders has no trade; "" where none of them was kept back."""
    if asked:
        return (
            f"You were asked about {count(asked, 'order')}, and no approved one is closed: there "
            "is no trade with agents to compare."
        )
    if kept := sum(tick.reason == EXECUTION_OFF for tick in final.ticks):
        return (
            f"Execution is off, and {count(kept, 'order')} {'was' if kept == 1 else 'were'} not "
            "sent: there is no trade with agents to compare."
        )
    return ""


# --- the list -------------------------------------------------------------------------------------


def _candidates(
    database: Database,
    known: Mapping[str, Instance],
    kinds: Sequence[Kind],
    place: tuple[str, str],
) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the places of ticks that may be changed, newest first, each with its key."""
    streams = [
        _places(database, name, place, acting=acting)
        for name in known
        for acting in (False, True)
        if (set(kinds) & {"action", "size"} if acting else "verdict" in kinds or "action" in kinds)
    ]
    for found in merge(*streams, reverse=True):
        yield found, found[1]


def _places(
    database: Database, instance: str, place: tuple[str, str], *, acting: bool
) -> Iterator[tuple[str, str]]:
    while rows := standing_table.changed_places(database, instance, place, SHOWN, acting=acting):
        yield from rows
        place = rows[-1]


def _place(before: str | None) -> tuple[str, str]:
    if before is None:
        return BEYOND
    close, _, key = before.partition(" ")
    try:
        parse(close)
    except (ValueError, ConfigError) as error:
        raise ConfigError("before is the next of an earlier page; leave it out") from error
    return close, key


def _ticks(number: int) -> str:
    return "1 tick" if number == 1 else f"{number:,} ticks"
