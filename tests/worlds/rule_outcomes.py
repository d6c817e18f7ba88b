"""The outcomes of fixed ticks, as digests by part: they change when the rules do, and only then.

A desk of three answered by a script that depends on nothing but who is asked and when, and a desk
of eight answered by the rules provider run through the same bars of the sample; and the lexicon
scores the judged headlines.
`python -m tests.worlds.rule_outcomes` notes them for a new version of the rules.
"""

from __future__ import annotations

import hashlib
import json
import platform
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from agents.contracts import VECTORS, Completion, Request
from tests.doubles import scripted
from tests.worlds import desks
from torra.clock import parse
from torra.config import ROOT, Profile, validate
from torra.news.lexicon import score
from torra.providers.registry import open_provider
from torra.store import replay_queries
from torra.store.connection import TickKey, to_json
from torra.tick.record import versions
from torra.tick.rules_version import RULES_VERSION

GOLDEN: Final = ROOT / "tests" / "tick" / "golden" / "rules.json"
CLOSES: Final = 26
DIGITS: Final = 9
"""Significant digits that count where the numbers come of other libraries than the noted ones."""

PROFILES: Final = {
    "budget": {
        "thresholds": {"buy": 0.02, "sell": 0.02},
        "on_opposite": "reverse",
        "risk": {"capital": 100_000.0, "exposure_cap_pct": 60.0},
    },
    "full": {
        "thresholds": {"buy": 0.1, "sell": 0.1},
        "on_opposite": "close",
        "agents": {"mode": "full", "debate_rounds": 2},
    },
}

PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "scores of the bars": ("l1", "components", "notes", "ath"),
    "evidence and memory": ("features", "memory", "regime"),
    "synthesis": ("agents", "adjustments", "scores", "ungated"),
    "gate": ("gate",),
    "brain": ("composite", "consensus", "verdict", "composites", "low_consensus", "high_consensus"),
    "risk checks": ("action", "reason", "denied", "signals"),
}
"""Fields of a record by the part of the rules that makes them."""

FIELDS: Final = "fields of a record"
AGREED: Final = "agreement of the desk"
NUMBERED: Final = "paper bridge"
ASKED: Final = "prompts"
ANSWERED: Final = "rules provider"
TONE: Final = "tone of headlines"

JUDGED: Final = ROOT / "tests" / "news" / "judged_headlines.txt"
"""Headlines with the sign of their tone, as a person judges it."""


class Steady:
    """Answers by agent, stream and bar alone: what it says never follows from a prompt."""

    name = "steady"

    def submit(self, request: Request) -> Future[Completion]:
        where = f"{request.role.id}|{request.timeframe}|{request.bar_time}|{request.round}"
        chance = random.Random(where)
        if request.role.kind == "gate":
            told = scripted.ruling(
                request, multiplier=chance.choice([1.0, 0.7, 0.4]), veto=chance.random() < 0.15
            )
        else:
            told = scripted.report(request, confidence=chance.choice(["high", "medium", "low"]))
            told["adjustments"] = {name: chance.uniform(-0.3, 0.3) for name in VECTORS}
        future: Future[Completion] = Future()
        future.set_result(Completion(json.dumps(told), "steady-1", "steady", 900, 90, 0.001))
        return future

    def close(self) -> None: ...


def outcomes(names: Iterable[str] = PROFILES, closes: int = CLOSES) -> dict[str, list[Any]]:
    """Run the fixed ticks; return what they came to, by part."""
    found: dict[str, list[Any]] = {TONE: [score(headline) for headline, _ in judged_headlines()]}
    for name in names:
        profile = validate(Profile, PROFILES[name], "a test")
        voice = Steady() if name == "budget" else open_provider(profile.agents)
        with tempfile.TemporaryDirectory() as folder:
            for part, told in _ran(Path(folder), profile, voice, closes):
                found.setdefault(part, []).append(told)
    return found


def judged_headlines() -> list[tuple[str, int]]:
    """Return headlines with the sign of their tone: +1, -1 or 0."""
    rows = (line.split("\t") for line in JUDGED.read_text(encoding="utf-8").splitlines())
    return [(row[1], {"+": 1, "-": -1, "0": 0}[row[0]]) for row in rows if len(row) == 2]


def _ran(folder: Path, profile: Profile, voice: Any, closes: int) -> Iterator[tuple[str, Any]]:
    desk = desks.open_desk(folder, (desks.BTC, desks.EUR), profile=profile, provider=voice)
    desks.open_for_work(desk)
    for _ in range(closes):
        desks.step(desk)
    database = desk.database
    for instance in desk.setups:
        for key in replay_queries.journalled(database, instance):
            record, _ = replay_queries.journal_row(database, key)
            place = TickKey(instance, record["timeframe"], parse(record["bar_time"]))
            yield from ((part, {n: record[n] for n in names}) for part, names in PARTS.items())
            yield FIELDS, sorted(record)
            yield AGREED, _panel(database.tick(place))
            asked = replay_queries.twins(database, key)["calls"]
            yield ASKED, {name: call["request_hash"] for name, call in asked.items()}
            if voice.name == "rules":
                debate = replay_queries.debate_of(database, key)
                calls = debate.calls if debate else {}
                yield ANSWERED, {str(place): call["reply"] for place, call in calls.items()}
        for row in database.signals(instance=instance, limit=1000):
            yield NUMBERED, {name: row[name] for name in ("sid", "state", "price", "profit")}
    desk.close()


def _panel(tick: Mapping[str, Any] | None) -> dict[str, Any]:
    panel = (tick or {})["deliberation"]["panel"]
    return {name: panel[name] for name in ("pushes", "push", "sided", "buy", "sell")}


def digests(found: Mapping[str, list[Any]], digits: int | None = None) -> dict[str, str]:
    """Return a digest by part, of numbers to the bit or to so many significant digits."""
    return {
        part: hashlib.sha256(to_json(_cut(told, digits)).encode()).hexdigest()[:16]
        for part, told in sorted(found.items())
    }


def _cut(value: Any, digits: int | None) -> Any:
    if isinstance(value, float) and digits is not None:
        return f"{value:.{digits}g}"
    if isinstance(value, Mapping):
        return {name: _cut(item, digits) for name, item in sorted(value.items())}
    return [_cut(item, digits) for item in value] if isinstance(value, list) else value


def made_with() -> dict[str, str]:
    """Return what decides about the last bits of a number: libraries and machine."""
    told = versions()
    names = ("numpy", "pandas", "pandas-ta-classic", "ta-lib-c")
    return {"machine": platform.machine(), **{name: told[name] for name in names}}


def golden() -> dict[str, Any]:
    """Return what is noted, by version of the rules."""
    noted: dict[str, Any] = json.loads(GOLDEN.read_text())
    return noted


def main() -> None:
    noted = golden() if GOLDEN.exists() else {}
    if str(RULES_VERSION) in noted:
        raise SystemExit(
            f"the outcomes of version {RULES_VERSION} of the rules are noted and never change: add "
            "a row to RULES in torra/tick/rules_version.py first"
        )
    found = outcomes()
    told = {"made_with": made_with(), "exact": digests(found), "rounded": digests(found, DIGITS)}
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(json.dumps({**noted, str(RULES_VERSION): told}, indent=2) + "\n")


if __name__ == "__main__":
    main()
