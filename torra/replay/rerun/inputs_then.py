"""What a stored tick runs again with: its instance, bars, profile and debate, as they were then.

`inputs_then` finds them by what the record names them by. NotAgain says that something is not
stored (any more), or that other rules made the tick; Spoilt that something is not what its digest
names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal, NamedTuple, get_args

import pandas as pd
from pydantic import ValidationError

from instance_database import Database, TickKey
from torra.clock import TIMEFRAMES, parse
from torra.config import Instance, Profile
from torra.store import bars as bar_table
from torra.store import lessons as lesson_table
from torra.store import news as news_table
from torra.store import replay_queries
from torra.store.replay_queries import StoredDebate
from torra.tick.record import RULES_NAME, describe
from torra.tick.rules_version import RULES_VERSION
from torra.tick.tick_record import BarRange, JournalRecord

Left = Literal[
    "other_rules", "no_record", "no_profile", "no_bars", "no_replies", "no_news", "no_lessons",
    "own_scorer", "not_run",
]  # fmt: skip
"""Why a tick did not run again."""

LEFT: Final[tuple[str, ...]] = get_args(Left)

BROKER: Final = "clock_ok"
"""Figure of the exposure that only a tick with a bridge to a broker has."""

EXECUTION: Final = re.compile(r'"execution":"\w+"')
"""A profile's switch of execution in its JSON, where the name stands once."""


class ProfileThen(NamedTuple):
    """The profile of a tick; `altered` is the digest of its stored text, "" where that is sound."""

    profile: Profile
    altered: str = ""


class NotAgain(Exception):
    """Raised for a tick that cannot run again."""

    def __init__(self, state: Left, detail: str) -> None:
        super().__init__(detail)
        self.state: Left = state
        self.detail = detail


class Spoilt(Exception):
    """Raised for a tick one of whose inputs is not what its digest names: it does not run on it."""

    def __init__(self, name: str, then: str, now: str, detail: str) -> None:
        super().__init__(detail)
        self.differences = {name: (then, now)}
        self.detail = detail


class InputsThen(NamedTuple):
    """What a tick runs again with; `stored_at` is the real time at which it was stored."""

    key: TickKey
    instance: Instance
    profile: ProfileThen
    bars: pd.DataFrame
    told: StoredDebate
    stored_at: str


def inputs_then(
    source: Database,
    text: str,
    record: JournalRecord,
    at: str,
    *,
    instance: Instance | None = None,
    bars_of: Callable[[JournalRecord], BarRange] = lambda record: record.bars,
) -> InputsThen:
    """Return what a tick needs; raises NotAgain where something is missing.

    `instance` is whose tick it is, `bars_of` reads from the record what names its bars; without
    them it is a desk's.
    """
    _of_these_rules(record)
    named = bars_of(record)
    told = replay_queries.debate_of(source, text)
    if told is None:
        raise NotAgain("no_record", "its row in the table sentiment is gone")
    key = TickKey(record.instance, record.timeframe, parse(record.bar_time))
    bars = bars_stored(source, key, named)
    if len(bars) != named.count:
        gone = f"{len(bars)} of its {named.count} bars are stored"
        raise NotAgain("no_bars", gone)
    profile = profile_then(source, record.instance, record.profile, record.execution, at)
    if told.requests and not told.calls:
        raise NotAgain("no_replies", f"its {len(told.requests)} replies were deleted: too old")
    if record.picture and source.picture(record.picture) is None:
        raise NotAgain("no_replies", "the chart that was shown was deleted: too old")
    if gone := _headlines_gone(source, record):
        raise NotAgain("no_news", gone)
    if gone := _lessons_gone(source, record):
        raise NotAgain("no_lessons", gone)
    if (found := describe(bars)["hash"]) != named.hash:
        what = f"of its {len(bars)} bars up to {named.last} at least one was altered"
        raise Spoilt("bars", named.hash, found, what)
    return InputsThen(key, instance or instance_then(record), profile, bars, told, at)


def _of_these_rules(record: JournalRecord) -> None:
    made = record.versions.get(RULES_NAME)
    if made != str(RULES_VERSION):
        raise NotAgain(
            "other_rules", f"made by version {made} of the rules, this is {RULES_VERSION}"
        )


def instance_then(record: JournalRecord) -> Instance:
    """Return the instance of a tick as it was then: its timeframes and the way of its signals.

    Of the timeframes those that took part in the consensus or closed at the same moment, and the
    one on whose bars the paper bridge advanced: no other one has a say in a tick.
    """
    names = {record.timeframe, *record.composites, *record.together, *record.apart}
    names |= {path_timeframe(record)} - {""}
    instance = Instance(
        name=record.instance, symbol=record.symbol, timeframes=tuple(names), feed="store"
    )
    route = next((signal.bridge for signal in record.signals), "")
    if BROKER in record.desk.exposure or route not in ("", "paper"):
        bridge, _, channel = (route or "torra_files main").partition(" ")
        # Not validated: the plug-in that it may be need not be installed any more.
        return instance.model_copy(update={"bridge": bridge, "channel": channel})
    return instance


def path_timeframe(record: JournalRecord) -> str:
    """Return the timeframe of the bars that the paper bridge lived through at a tick, or ""."""
    path = record.before.path
    step = parse(record.as_of) - parse(path[-1][0]) if path else None
    return next((name for name, length in TIMEFRAMES.items() if length == step), "")


def profile_then(
    source: Database, instance: str, wanted: str, execution: str, at: str
) -> ProfileThen:
    """Return the profile with which a tick ran, found by its digest; raises NotAgain without one.

    A tick that was a record only, because a newer one had overtaken it, ran with execution off: its
    digest is that of a profile so changed. The digest is made of the stored text, so a setting that
    has come since changes nothing. `wanted` and `execution` are those of its record, `at` is the
    real time at which the tick was stored.
    """
    switch = f'"execution":"{execution}"'
    silent = execution == "off"
    altered: list[tuple[str, str]] = []
    for row in replay_queries.profiles_of(source, instance):
        text = str(row["profile"])
        run = EXECUTION.sub(switch, text)
        if digest_of(text) == row["digest"]:
            if digest_of(run) == wanted:
                return ProfileThen(_read(run, "this version has other settings than its profile"))
        # Of an altered text nobody knows what digest it had with execution off.
        elif wanted in (row["digest"], digest_of(run)) or (silent and row["applied_at"] <= at):
            altered.append((run, digest_of(text)))
    for run, now in altered:
        with suppress(NotAgain):
            return ProfileThen(_read(run, "altered"), altered=now)
        raise Spoilt("profile", wanted, now, "its stored profile cannot be read")
    raise NotAgain("no_profile", f"its profile {wanted} is not stored")


def _read(text: str, why: str) -> Profile:
    try:
        return Profile.model_validate_json(text)
    except ValidationError as error:
        raise NotAgain("no_profile", why) from error


def digest_of(text: str) -> str:
    """Return the digest of a profile's stored text (torra.config.Profile.digest)."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _headlines_gone(source: Database, record: JournalRecord) -> str:
    """Return how many of the headlines that a tick saw are not stored any more, "" for none."""
    if record.invented:
        return ""  # no store has them: they stand in the record itself
    seen = {row.id for row in record.news.items} if record.news else set()
    gone = len(seen) - len(news_table.news_items(source, sorted(seen)))
    return f"{gone} of the {len(seen)} headlines that it saw are gone: too old" if gone else ""


def _lessons_gone(source: Database, record: JournalRecord) -> str:
    """Return how many of the lessons that a tick knew are not stored any more, "" for none."""
    notes = record.lessons.notes if record.lessons else ()
    known = {(note.lesson, note.author) for note in notes}
    found = lesson_table.lessons_by(source, sorted({number for number, _ in known}))
    stored = {(lesson.number, words.author) for lesson in found for words in lesson.words}
    gone = len(known - stored)
    return f"{gone} of the {len(known)} lessons that it was told are gone" if gone else ""


def bars_stored(source: Database, key: TickKey, named: BarRange) -> pd.DataFrame:
    """Return the bars that a record names, as they are stored now."""
    return bar_table.bars_then(
        source,
        key.instance,
        key.timeframe,
        parse(named.first),
        parse(named.last),
        named.revision or 0,
    )
