"""Names where a tick that ran again differs from what is stored, and what was altered where it can.

A tick has four kinds of inputs: bars, a profile, replies and its record. Bars and profiles have a
digest, so an altered one is certain; so has the question of a hosted tick. A reply has none: it was
altered where an agent was asked the same and is heard otherwise. Of the record, many numbers stand
in a second table: where that agrees with the tick of now, the record was altered. What is left is
said to be not known.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from instance_database import Database
from torra.replay.rerun.journal_replay import BESIDE, COMPANY, RECORD, Comparison
from torra.tick.record import RULES_NAME, versions

Kind = Literal[
    "bar", "setting", "chart", "reply", "headline", "lesson", "library", "record", "unknown"
]

SAID: Final[Mapping[Kind, str]] = {
    "bar": "altered bar",
    "setting": "altered setting",
    "chart": "altered chart",
    "reply": "altered reply",
    "headline": "altered headline",
    "lesson": "altered lesson",
    "library": "other versions of libraries",
    "record": "altered record",
    "unknown": "cause not known",
}

NOT_TOLD: Final = (
    "an input in its record was altered, or this program computes otherwise under the same version "
    "of the rules"
)

OF_THE_GATE: Final = ("multiplier", "veto", "reasons", "detail")
"""Parts of a ruling that a gate's reply may have changed."""

NAMES: Final = ("id", "name", "agent_id", "sid", "event")
"""Fields by which an item of a list is named, where it has one."""

SEEN_FIRST: Final = (
    "bars", "close", "atr", "ath_price", "low_price", "records_since", "record_score", "ath",
    "thresholds", "weights", "l1", "components",
    "notes", "features", "memory", "regime", "news", "events", "outside", "spreads", "picture",
)  # fmt: skip
"""Fields of what a tick saw: they come before what was made of it."""

TWINS: Final[Mapping[str, tuple[str, str]]] = {
    **{
        name: ("chains", name)
        for name in (
            "l1", "composite", "consensus", "verdict", "l1_composite", "l1_consensus",
            "l1_verdict", "low_consensus", "high_consensus",
        )
    },
    "ath": ("sentiment", "ath"),
    "source_type": ("sentiment", "source_type"),
    "scores": ("sentiment", "composite"),
    "adjustments": ("debate", "adjustments"),
    "gate": ("debate", "ruling"),
}  # fmt: skip
"""Fields of a record that stand in a second place, or follow from one."""


class Difference(NamedTuple):
    """A value that is not the stored one; `place` leads to it, as scores.momentum.score."""

    place: str
    then: Any
    now: Any


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a tick differs: a kind, and what exactly was altered as far as that can be told."""

    kind: Kind
    what: str


@dataclass(frozen=True, slots=True)
class TickDiffers:
    """A tick that is not the same: where first, and why."""

    key: str
    first: Difference
    cause: Cause

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        told = {"key": self.key, "field": self.first.place, "then": self.first.then}
        return {**told, "now": self.first.now, "cause": self.cause.kind, "what": self.cause.what}


def first_difference(found: Comparison) -> Difference:
    """Return the first difference of a tick, in the order of the way of a tick."""
    places = {name: number for number, name in enumerate(SEEN_FIRST)}
    name = min(found.differences, key=lambda name: places.get(name, len(places)))
    return _leaf(name, *found.differences[name])


def cause(source: Database, found: Comparison) -> Cause:
    """Return why a tick that differs does so."""
    for kind, look in LOOKS:
        if what := look(source, found):
            return Cause(kind, what)
    return Cause("unknown", NOT_TOLD)


def _bar(_: Database, found: Comparison) -> str:
    return found.detail if "bars" in found.differences else ""


def _setting(_: Database, found: Comparison) -> str:
    """Return which stored profile was altered, and a setting of it where one shows."""
    if "profile" not in found.differences:
        return ""
    then, now = found.differences["profile"]
    what = f"the stored profile {then} has the digest {now} now"
    for name in ("thresholds", "weights"):
        if name in found.differences:
            leaf = _leaf(name, *found.differences[name])
            return f"{what}; {leaf.place} was {leaf.then}, is {leaf.now}"
    return what


def _chart(source: Database, found: Comparison) -> str:
    """Return the chart that is not the one that its hash names; "" where it is."""
    name = found.then.get("picture")
    data = source.picture(name) if name else None
    if data is None or hashlib.sha256(data).hexdigest() == name:
        return ""
    return f"the picture {name} has another hash"


def _question(_: Database, found: Comparison) -> str:
    """Return what was altered of a hosted tick's question in its record; "" where its hash fits."""
    told = found.then.get("hosted")
    if not told or found.record is None:
        return ""
    differences = found.differences
    if "now" in differences:
        return f"journal: hosted.moment is {told['moment']}, now is {differences['now'][0]}"
    return "" if found.record["hosted"]["asked"] == told["asked"] else _handed(differences)


def _handed(differences: Mapping[str, tuple[Any, Any]]) -> str:
    """Return which of what was handed over is another one in the record."""
    if "l1" in differences or ("notes" in differences and "chains.l1" not in differences):
        return "journal: hosted.own_scores"
    if "chains.l1" in differences:
        leaf = _leaf("l1", *map(json.loads, differences["chains.l1"]))
        return f"journal: {leaf.place} is {leaf.now}, the table chains has {leaf.then}"
    if "features" in differences:
        leaf = _leaf("features", *differences["features"])
        name = leaf.place.removeprefix("features.").removeprefix("host.").removesuffix(".value")
        return f"journal: hosted.extra, {name} was {leaf.then}, is {leaf.now}"
    return "journal: hosted.asked is no hash of the profile, extra, headlines and picture beside it"


def _reply(source: Database, found: Comparison) -> str:
    """Return whose stored reply was altered; "" where none was."""
    differences, heard = found.differences, set(_heard_otherwise(found))
    for place in source.twins(found.key)["calls"]:
        role, round_, attempt = place.rsplit(".", 2)
        then, now = differences.get(f"calls.{place}", (None, None))
        if role in heard and _asked(then) == _asked(now):
            return f"reply of {role} (round {round_}, attempt {attempt})"
    debate = source.debate_of(found.key)
    for gone in sorted(debate.asked - debate.calls.keys()) if debate else ():
        return f"reply of {gone[0]} (round {gone[1]}, attempt {gone[2]}), which is gone"
    return ""


def _asked(call: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a call asked, without how it ended."""
    return {name: value for name, value in (call or {}).items() if name != "status"}


def _heard_otherwise(found: Comparison) -> Iterator[str]:
    """Yield the agents whose report, word or ruling is another one now."""
    differences = found.differences
    for name in ("reports", "earlier"):
        then, now = differences.get(f"debate.{name}", ((), ()))
        before, after = (_by_agent(reports or ()) for reports in (then, now))
        yield from (role for role in before | after if before.get(role) != after.get(role))
    then, now = differences.get("debate.stages", ((), ()))
    for stage, again in zip(then or (), now or (), strict=False):
        words = again["agents"]
        yield from (role for role, word in stage["agents"].items() if words.get(role) != word)
    asked = differences.get("debate.consulted", ({}, {}))
    then, now = (told if isinstance(told, Mapping) else {} for told in asked)
    if then.get("report") != now.get("report") or then.get("failure") != now.get("failure"):
        yield then.get("agent") or now.get("agent") or ""
    then, now = differences.get("debate.ruling", ({}, {}))
    # a side that is vetoed is no word of the gate's
    if any((then or {}).get(name) != (now or {}).get(name) for name in OF_THE_GATE):
        yield "risk_gate"
    if "debate.adjustments" in differences:
        yield "chart_scorer"


def _by_agent(reports: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for report in reports:
        found.setdefault(report["agent_id"], []).append(report)
    return found


def _company(_: Database, found: Comparison) -> str:
    """Return what of the state by which openings were foreseen is altered; "" where nothing is."""
    if COMPANY in found.differences:
        leaf = _leaf(COMPANY, *found.differences[COMPANY])
        return f"journal: {leaf.place} is {leaf.then}, and stood at {leaf.now}"
    then, now = found.differences.get("debate.consulted", (None, None))
    if bool(then) == bool(now) or "company" not in found.then:
        return ""
    asked = (told["side"] if told else "nobody" for told in (then, now))
    return "journal: company, by which the trader was asked of {} then, of {} now".format(*asked)


def _headline(_: Database, found: Comparison) -> str:
    """Return which of the news that a tick saw is not the stored one; "" where all is."""
    if "features" in found.differences:
        leaf = _leaf("features", *found.differences["features"])
        if leaf.place.startswith("features.news."):
            return f"{leaf.place.removeprefix('features.')} was {leaf.then}, is {leaf.now}"
    asked = found.differences.get("calls.news.1.1")
    # Nobody else is shown a stranger's words.
    others = [name for name in found.differences if name.startswith("calls.")]
    if asked and found.then.get("news") and others[0] == "calls.news.1.1":
        return "a headline that the news agent was shown"
    return ""


def _lesson(_: Database, found: Comparison) -> str:
    """Return which of what a tick was told of earlier trades is altered; "" where nothing is."""
    told = found.then.get("lessons")
    if told is None:
        return ""
    if "features" in found.differences:
        leaf = _leaf("features", *found.differences["features"])
        if not leaf.place.startswith("features.lessons."):
            return ""
        return f"{leaf.place.removeprefix('features.')} was {leaf.then}, is {leaf.now}"
    # What the agents said is as it was, so whoever was asked otherwise first read another note.
    asked = next((name for name in found.differences if name.startswith("calls.")), "")
    return f"a lesson that {asked.split('.')[1]} was told" if asked and told["notes"] else ""


def _standing(_: Database, found: Comparison) -> str:
    """Return which of what a tick was told of its seats' past is altered; "" where nothing is."""
    if not found.then.get("standing") or "features" not in found.differences:
        return ""
    leaf = _leaf("features", *found.differences["features"])
    if not leaf.place.startswith("features.standing."):
        return ""
    return f"{leaf.place.removeprefix('features.')} was {leaf.then}, is {leaf.now}"


def _record(_: Database, found: Comparison) -> str:
    """Return what was altered in the record or in another table; "" where nothing shows it."""
    differences = found.differences
    beside = {name.partition(".")[0] for name in differences} & set(BESIDE)
    alone = [name for name in differences if name.partition(".")[0] not in BESIDE]
    if fills := [name for name in alone if name.startswith("fills")]:
        return f"signals: {_leaf(fills[0], *differences[fills[0]]).place.removeprefix('fills.')}"
    if not alone:
        return f"tables {', '.join(sorted(beside))}: {first_difference(found).place}"
    # What the agents were asked is made of evidence and memory: the same asked, the same inputs.
    if not beside and not found.misses:
        return f"journal: {first_difference(found).place}"
    if "features" in differences:
        leaf = _leaf("features", *differences["features"])
        if leaf.place.startswith("features.memory."):
            return f"what the tick remembered, {leaf.place}: of an earlier tick, or of a signal"
    for name in alone:
        table, row = TWINS.get(name, ("", ""))
        if table and f"{table}.{row}" not in differences:
            return f"journal: {name} is not what the table {table} has"
    return ""


def _libraries(_: Database, found: Comparison) -> str:
    """Return which libraries have another version than then; "" where none has."""
    told, now = found.then.get("versions") or {}, versions()
    others = [name for name in now if name != RULES_NAME and told.get(name) != now[name]]
    return ", ".join(f"{name} {told.get(name)} then, {now[name]} now" for name in others)


def _leaf(place: str, then: Any, now: Any) -> Difference:
    """Return the first value within two unequal values that is not the same."""
    if isinstance(then, Mapping) and isinstance(now, Mapping):
        for name in [*then, *(now.keys() - then.keys())]:
            if then.get(name) != now.get(name):
                return _leaf(f"{place}.{name}", then.get(name), now.get(name))
    if _is_list(then) and _is_list(now):
        for number in range(max(len(then), len(now))):
            before = then[number] if number < len(then) else None
            after = now[number] if number < len(now) else None
            if before != after:
                return _leaf(f"{place}.{_name_of(before, after, number)}", before, after)
    return Difference(place, then, now)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _name_of(before: Any, after: Any, number: int) -> str:
    for item in (before, after):
        if isinstance(item, Mapping):
            return next((str(item[name]) for name in NAMES if name in item), str(number))
    return str(number)


def _no_record(_: Database, found: Comparison) -> str:
    return found.detail if RECORD in found.differences else ""


LOOKS: Final[tuple[tuple[Kind, Callable[[Database, Comparison], str]], ...]] = (
    ("record", _no_record),
    ("bar", _bar),
    ("setting", _setting),
    ("chart", _chart),
    ("record", _question),
    ("reply", _reply),
    ("record", _company),
    ("headline", _headline),
    ("lesson", _lesson),
    ("record", _standing),
    ("record", _record),
    ("library", _libraries),
)
"""Functions that say what of a kind was altered, "" for nothing; the surest first."""
