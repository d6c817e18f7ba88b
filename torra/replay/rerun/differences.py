"""Tells where a tick that ran again first differs from what is stored, and whose digest fails.

Bars, a profile, a chart and the question of a hosted tick have a digest, so an altered one is
certain. A reply, a headline, a lesson and the record have none: what they changed is seen in the
first field that differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from instance_database import Database
from torra.replay.rerun.journal_replay import RECORD, Comparison
from torra.tick.record import RULES_NAME, versions

Cause = Literal["record", "bar", "setting", "chart", "question", "library", "unknown"]

CAUSES: Final[Mapping[Cause, str]] = {
    "record": "no record of a tick",
    "bar": "altered bar",
    "setting": "altered setting",
    "chart": "altered chart",
    "question": "altered question",
    "library": "other versions of libraries",
    "unknown": "no digest fails",
}

NAMES: Final = ("id", "name", "agent_id", "sid", "event")
"""Fields by which an item of a list is named, where it has one."""

SEEN_FIRST: Final = (
    "bars", "close", "atr", "ath_price", "low_price", "records_since", "record_score", "ath",
    "thresholds", "weights", "l1", "components",
    "notes", "features", "memory", "regime", "news", "events", "outside", "spreads", "picture",
    "company",
)  # fmt: skip
"""Fields of what a tick saw: they come before what was made of it."""


@dataclass(frozen=True, slots=True)
class TickDiffers:
    """A tick that is not the same, and which of its inputs has another digest.

    `field` leads to the first value that is not the stored one, as scores.momentum.score.
    """

    key: str
    field: str
    then: Any
    now: Any
    cause: Cause
    detail: str

    @classmethod
    def of(cls, source: Database, comparison: Comparison) -> TickDiffers:
        """Return what a comparison found; the stored chart is looked up in `source`."""
        places = {name: number for number, name in enumerate(SEEN_FIRST)}
        differences = comparison.differences
        name = min(differences, key=lambda name: places.get(name, len(places)))
        first = _leaf(name, *differences[name])
        return cls(comparison.key, *first, _cause(source, comparison), comparison.detail)


OF_AN_INPUT: Final[Mapping[str, Cause]] = {RECORD: "record", "bars": "bar", "profile": "setting"}
"""Differences without which a tick could not run again as it was."""


def _cause(source: Database, comparison: Comparison) -> Cause:
    then = comparison.then
    for name, cause in OF_AN_INPUT.items():
        if name in comparison.differences:
            return cause
    picture = then.get("picture")
    data = source.picture(picture) if picture else None
    if data is not None and hashlib.sha256(data).hexdigest() != picture:
        return "chart"
    hosted, record = then.get("hosted"), comparison.record
    if hosted and record is not None and record["hosted"]["asked"] != hosted["asked"]:
        return "question"
    of_now = versions()
    others = [name for name in of_now if then["versions"].get(name) != of_now[name]]
    return "library" if set(others) - {RULES_NAME} else "unknown"


def _leaf(place: str, then: Any, now: Any) -> tuple[str, Any, Any]:
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
    return place, then, now


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _name_of(before: Any, after: Any, number: int) -> str:
    for item in (before, after):
        if isinstance(item, Mapping):
            return next((str(item[name]) for name in NAMES if name in item), str(number))
    return str(number)
