"""The work behind `torra replay --journal`: every stored tick of a home, run again to the bit.

The database is read as it is at one moment and copied into a throw-away folder; the ticks run again
there, a desk's (torra.replay.rerun.journal_replay) as those of hosted streams (hosted_replay). So a
desk or a host may be at work beside it, and nothing of the home changes. Every tick is accounted
for: the same, different with its first difference and the input whose digest fails
(torra.replay.rerun.differences), or not run again and why. A home without a database or a tick, and
names and times that are none raise ConfigError.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from instance_database import Database
from torra.clock import System, duration
from torra.errors import ConfigError, StoreUnavailable
from torra.evaluation.wording import count
from torra.exhibits.figures import sanitize
from torra.home import DATABASE
from torra.replay.recomposing import Progress
from torra.replay.rerun.differences import CAUSES, TickDiffers
from torra.replay.rerun.hosted_replay import replay_hosted
from torra.replay.rerun.inputs_then import LEFT
from torra.replay.rerun.journal_replay import Comparison, replay
from torra.replay.shards.history import moment
from torra.store import hosted as hosted_table
from torra.store import replay_queries
from torra.store.connection import connect_reader, copy
from torra.store.faults import explain
from torra.store.hosted import is_hosted
from torra.tick.rules_version import RULES, RULES_VERSION

WHY_LEFT: Final = {
    "other_rules": "made by another version of the rules",
    "no_record": "their rows beside the record are gone",
    "no_profile": "their profile is not stored, or has settings that this version does not know",
    "no_bars": "their bars are not stored any more",
    "no_replies": "their replies or their chart are not stored any more",
    "no_news": "the headlines that they saw are not stored any more",
    "no_lessons": "the lessons that they were told are not stored any more",
    "own_scorer": "their host's own fallback asked a model by itself",
    "put_aside": "a newer answer about their bar took their place",
    "not_run": "run again they ended as no tick",
    "unrecorded": "done without a record",
    "claimed": "under way",
    "released": "given back before their end",
    "skipped": "skipped then: there is nothing to run again",
}
"""Why ticks were not run again."""

LONGEST: Final = 120
"""Characters of a value in the table."""

PRUNE_EVERY: Final = 200
"""Ticks after which the texts of those that ran again are forgotten."""


@dataclass(slots=True)
class InstanceCheck:
    """What became of the ticks of one instance.

    `left` counts the ticks that did not run again by their reason, `versions` those of other rules
    by their version, `skipped` the skipped ones by what the desk said then.
    """

    instance: str
    timeframes: tuple[str, ...]
    same: int = 0
    different: list[TickDiffers] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    versions: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def ticks(self) -> int:
        """How many ticks there are."""
        return self.same + len(self.different) + self.left.total()

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        differences = [asdict(one) for one in self.different]
        return {
            "instance": self.instance,
            "timeframes": list(self.timeframes),
            "ticks": self.ticks,
            "run_again": self.same + len(self.different),
            "same": self.same,
            "different": len(self.different),
            "first_difference": differences[0] if differences else None,
            "causes": dict(Counter(one.cause for one in self.different)),
            "differences": differences,
            "not_run_again": dict(sorted(self.left.items())),
            "versions": dict(sorted(self.versions.items())),
            "skipped": dict(sorted(self.skipped.items())),
        }


@dataclass(frozen=True, slots=True)
class JournalCheck:
    """What became of the ticks of a home, by instance."""

    instances: tuple[InstanceCheck, ...]

    @property
    def same(self) -> bool:
        """Whether every tick that could run again was the same."""
        return not any(one.different for one in self.instances)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "rules": RULES_VERSION,
            "same": self.same,
            "instances": [one.as_json() for one in self.instances],
        }

    def text(self) -> str:
        """Return it for a terminal."""
        ran = sum(one.same + len(one.different) for one in self.instances)
        differ = sum(len(one.different) for one in self.instances)
        said = f"{differ:,} of {count(ran, 'tick')} that ran again differ."
        if not differ:
            said = f"{count(ran, 'tick')} ran again, every one the same to the bit."
        if not ran:
            said = "No tick could run again."
        return "\n\n".join(["\n".join(_instance(one)) for one in self.instances] + [said])


def check(
    home: Path,
    symbol: str = "",
    *,
    timeframes: str = "",
    begin: str | None = None,
    end: str | None = None,
    progress: Progress,
) -> JournalCheck:
    """Run the stored ticks of a home again, those of one instance where a name or symbol is given.

    `timeframes` as M15,H1 and the closes from `begin` to `end` choose among them.
    """
    first, last = moment("--from", begin), moment("--to", end)
    wanted = [part.strip().upper() for part in timeframes.split(",") if part.strip()]
    with _copied(home) as folder:
        source = Database.open(folder / DATABASE, now=System().real_now)
        into = Database.open(folder / "again.db", now=System().real_now)
        with closing(source), closing(into):
            found = [
                _checked(source, into, name, wanted, first, last, progress)
                for name in _instances(source, home, symbol)
            ]
    some = tuple(one for one in found if one.ticks)
    if not some:
        raise ConfigError("no stored tick is of that timeframe and time")
    return JournalCheck(some)


@contextmanager
def _copied(home: Path) -> Iterator[Path]:
    """Copy a desk's database, read-only, into a folder that goes again; raises ConfigError."""
    path = home / DATABASE
    if not path.exists():
        raise ConfigError(f"no desk has run in {home} yet: there is no tick to check; see --home")
    with tempfile.TemporaryDirectory(prefix="torra-journal-") as folder:
        try:
            # Without a log nobody writes to it: it then opens on a read-only volume too.
            still = not path.with_name(f"{path.name}-wal").exists()
            with closing(connect_reader(path, still=still)) as db:
                copy(db, Path(folder) / DATABASE)
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(explain(path, error)) from error
        except sqlite3.DatabaseError as error:
            raise ConfigError(explain(path, error)) from error
        yield Path(folder)


def _instances(source: Database, home: Path, symbol: str) -> list[str]:
    """Return the instances that are meant; raises ConfigError where there is none."""
    known = [*replay_queries.ticked_instances(source), *hosted_table.hosted_streams(source)]
    if not known:
        raise ConfigError(f"the desk in {home} has run no tick yet: torra run starts it")
    if not symbol:
        return known
    wanted = symbol.upper()
    if alone := [name for name in known if wanted == name.upper()]:
        return alone
    named = [name for name in known if wanted in _symbols(source, name)]
    if not named:
        raise ConfigError(f"the desk has no tick of {symbol}; it has ticks of {', '.join(known)}")
    return named


def _symbols(source: Database, instance: str) -> set[str]:
    """Return the symbol of an instance, as its newest record has it."""
    with suppress(ValueError, LookupError):
        newest = replay_queries.journalled(source, instance, 1)
        return {str(replay_queries.journal_row(source, key)[0]["symbol"]).upper() for key in newest}
    return set()


def _checked(
    source: Database,
    into: Database,
    instance: str,
    timeframes: Sequence[str],
    begin: datetime | None,
    end: datetime | None,
    progress: Progress,
) -> InstanceCheck:
    hosted = is_hosted(instance)
    how_ended = hosted_table.hosted_ends if hosted else replay_queries.tick_ends
    ends = how_ended(source, instance, timeframes, begin, end)
    names = sorted({row["timeframe"] for row in ends}, key=duration)
    found = InstanceCheck(instance, tuple(names))
    keys = replay_queries.journalled(source, instance, timeframes=timeframes, begin=begin, end=end)
    for row in ends:
        if row["state"] != "done":
            found.left[row["state"]] += row["number"]
        if row["state"] == "skipped":
            found.skipped[row["reason"]] += row["number"]
    done = sum(row["number"] for row in ends if row["state"] == "done")
    if done > len(keys):
        found.left["unrecorded"] += done - len(keys)
    run_again = replay_hosted if hosted else replay
    with progress(len(keys), instance) as forward:
        for number, one in enumerate(run_again(source, into, instance, keys=keys), start=1):
            forward(1)
            _count(found, source, one)
            if number % PRUNE_EVERY == 0:
                into.prune(System().real_now() + timedelta(days=1), limit=PRUNE_EVERY**2)
    return found


def _count(found: InstanceCheck, source: Database, one: Comparison) -> None:
    if one.state in LEFT:
        found.left[one.state] += 1
        if one.state == "other_rules":
            found.versions[str(one.then["versions"].get("rules"))] += 1
    elif one.state == "same":
        found.same += 1
    else:
        found.different.append(TickDiffers.of(source, one))


# --- how it is told -------------------------------------------------------------------------------


def _instance(one: InstanceCheck) -> Iterator[str]:
    ran = one.same + len(one.different)
    yield f"{one.instance} {', '.join(one.timeframes)}: {count(one.ticks, 'tick')}"
    differ = len(one.different)
    yield f"  {ran:>7,} run again: {one.same:,} the same to the bit, {differ:,} different"
    for reason, number in sorted(one.left.items(), key=lambda item: -item[1]):
        yield f"  {number:>7,} not run again, {WHY_LEFT[reason]}{_more(one, reason)}"
    if one.different:
        first = one.different[0]
        yield f"  first difference: {first.key}, {_pair(first)}"
    for cause, number in Counter(tick.cause for tick in one.different).items():
        first = next(tick for tick in one.different if tick.cause == cause)
        detail = f": {first.detail}" if first.detail else ""
        yield f"  {number:>7,} {CAUSES[cause]}{sanitize(detail, 2 * LONGEST)}"
        yield f"          first at {first.key}, {_pair(first)}"


def _more(one: InstanceCheck, reason: str) -> str:
    if reason == "skipped":
        return f" ({', '.join(f'{name} {number:,}' for name, number in one.skipped.most_common())})"
    if reason == "other_rules":
        told = ", ".join(f"version {name} {number:,}" for name, number in one.versions.items())
        return f" ({told}; this is {RULES_VERSION}: {RULES[RULES_VERSION]})"
    return ""


def _pair(one: TickDiffers) -> str:
    values = (one.then, one.now)
    then, now = ("none" if value is None else sanitize(str(value), LONGEST) for value in values)
    return f"{one.field}: {then} then, {now} now"
