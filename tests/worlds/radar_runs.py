"""Made-up runs of the radar, and replies of agents that are honest, odd or hostile."""

from __future__ import annotations

import random
from typing import Any, Final

from instance_database import Database
from torra.radar.decisions import (
    NO_ORDER_OUT,
    Decisions,
    Demotion,
    applied,
    open_rows,
    sentences_about,
    short_id,
)
from torra.radar.result import Coverage, DemotionWorth, RadarRow, RadarRun
from torra.store import radar_runs
from torra.tools.contract import Fact, fact
from torra.words.radar import CODES

AT: Final = "2026-01-05T10:00:00Z"
STATES: Final = ("HELD_BACK", "OBSERVED", "OPENED", "PROPOSED")
ODD: Final = (
    None,
    3.5,
    "",
    "buy now",
    ["x"],
    {"row": "x"},
    True,
    "act",
    "\x00",
    "A0|H1@",
    "s1" * 99,
)


def stream_fact(stream: str, name: str, value: float | str) -> Fact:
    return fact(f"{stream}@{AT}/{name}", value, f"the {name}", AT, "ticks")


def row(stream: str, bucket: Any, codes: tuple[str, ...], **more: Any) -> RadarRow:
    symbol, timeframe = stream.split("|")
    values = {"radar.consensus": 0.31, "technical.close": 1.1, "technical.atr14": 0.01}
    return RadarRow(**{
        "stream": stream, "symbol": symbol, "timeframe": timeframe, "bucket": bucket,
        "code": codes[0], "codes": codes, "as_of": AT, "age_s": 0.0, "distance": 0.1,
        "facts": tuple(stream_fact(stream, *one) for one in values.items()), **more,
    })  # fmt: skip


def run_of(*rows: RadarRow, **more: Any) -> RadarRun:
    buckets = {
        name: tuple(one for one in rows if one.bucket == name)
        for name in ("act", "watch", "exit_radar")
    }
    return RadarRun(**{
        **buckets, "portfolio_brief": ("Deserves a look now: 1 near.", "The desk holds nothing."),
        "tool_calls": 0, "audit_log": (), "reasoning_log": ("by rules",), "elapsed_seconds": 0.1,
        "scanned_at": AT, "using_non_ai_fallback": False, "using_cached_data": False,
        "fallback_reason": "", "fallback_trigger": "", "mode": "rules", "as_of": AT,
        "coverage": Coverage(
            streams=len(rows) + 2, quiet=2, **{name: len(those) for name, those in buckets.items()}
        ), **more,
    })  # fmt: skip


def agents_run(stream: str = "BTCUSD|M15", other: str = "BTCUSD|H1") -> RadarRun:
    """Return what agents made of a run: one row demoted, one with an objection, cards, a worth."""
    rules = run_of(
        row(stream, "act", ("HELD_BACK",), deny_reason="GATE_VETO"), row(other, "act", ("OPENED",))
    )
    cited = f"{AT}/radar.consensus"
    wants = Decisions(
        tuple(Demotion("signal", one, (cited,)) for one in (stream, other)),
        say={"say": ["s2", "s1", "s6"], "because": []},
    )
    worth = DemotionWorth(count=31, mean=-0.2, low=-0.5, high=0.1)
    more = {"tool_calls": 3, "audit_log": (4, 5, 6), "cost_usd": 0.0123, "worth": worth}
    return applied(rules, wants).model_copy(update=more)


def stored(database: Database, run: RadarRun) -> int:
    """Store a run as a scan does and return its number."""
    return radar_runs.add_run(database, {
        "universe": "u", "as_of": run.as_of, "mode": run.mode,
        "trigger_code": run.fallback_trigger, "document": run.model_dump_json(),
    })  # fmt: skip


def odd_run(chance: random.Random) -> RadarRun:
    """Return a run of up to 24 rows of any bucket."""
    rows = []
    for number in range(chance.randrange(25)):
        bucket = chance.choice(("act", "act", "watch", "exit_radar"))
        codes = chance.sample(
            [one for one in CODES[bucket] if one != "DEMOTED"], 1 + chance.randrange(2)
        )
        deny = "TRADING_HALTED" if bucket == "act" and codes[0] == "HELD_BACK" else ""
        rows.append(
            row(
                f"A{number}|H1",
                bucket,
                tuple(codes[:1] if bucket == "act" else codes),
                deny_reason=deny,
            )
        )
    return run_of(*rows)


def evidence_of(chance: random.Random, run: RadarRun) -> dict[str, tuple[Fact, ...]]:
    """Return what tools gave of some rows."""
    return {
        one.stream: tuple(
            stream_fact(one.stream, f"news.items.{n}", n - 2.0) for n in range(chance.randrange(20))
        )
        for one in open_rows(run)
        if chance.random() < 0.5
    }


def reply(
    chance: random.Random, run: RadarRun, evidence: dict[str, tuple[Fact, ...]]
) -> dict[str, Any]:
    """Return the reply of a turn: names that are there, names that are not, and no names."""
    rows = [*run.act, *run.watch, *run.exit_radar]
    names = [one.stream for one in rows] or ["A0|H1"]
    ids = [one.id for each in rows for one in (*each.facts, *evidence.get(each.stream, ()))]
    ids += [short_id(each, one.id) for each in rows for one in each.facts]
    said = [one.id for one in sentences_about(run, evidence)[0]]

    odd = [one for one in ODD if isinstance(one, str) or chance.random() < 0.02]

    def some(known: list[str], most: int) -> list[Any]:
        pool = [*known, *known, *odd]
        return [chance.choice(pool) for _ in range(chance.randrange(most))]

    def cites(name: str) -> list[Any]:
        own = [one for one in ids if one.startswith(f"{name}@")]
        return some(chance.choice((own, ids, [])), 4)

    demote = [{"row": name, "cites": cites(str(name))} for name in some(names, 8)]
    say = some(chance.choice((names, said)), 40)
    pairs = [some(said, 4) for _ in range(chance.randrange(6))]
    whole = {"calls": [], "demote": demote, "say": say, "because": pairs, "done": True}
    if chance.random() < 0.1:
        whole[chance.choice([*whole])] = chance.choice(ODD)
    return whole


def check_held(rules: RadarRun, run: RadarRun) -> None:
    """Check that of a run of the rules nothing was promoted, lost, changed or moved too far."""
    before = {one.stream: one for one in (*rules.act, *rules.watch, *rules.exit_radar)}
    after = {one.stream: one for one in (*run.act, *run.watch, *run.exit_radar)}
    assert sorted(before) == sorted(after) and len(after) == len(
        [*run.act, *run.watch, *run.exit_radar]
    )
    marks = {"bucket", "code", "codes", "objections"}
    for name, old in before.items():
        new = after[name]
        assert old.model_dump(exclude=marks) == new.model_dump(exclude=marks)
        if (new.bucket, new.code, new.codes) != (old.bucket, old.code, old.codes):
            assert (old.bucket, new.bucket) == ("act", "watch") and old.code in NO_ORDER_OUT
            assert new.codes == ("DEMOTED",) and new.objections
        for one in new.objections:
            assert one.by == "signal" and one.cites
            assert all(cited.startswith(f"{name}@") for cited in one.cites)
            assert old.bucket == "act"
    demoted = [one.stream for one in rules.act if after[one.stream].bucket == "watch"]
    stood = {
        "act": [one.stream for one in rules.act if one.stream not in demoted],
        "watch": [*demoted, *(one.stream for one in rules.watch)],
        "exit_radar": [one.stream for one in rules.exit_radar],
    }
    for bucket, names in stood.items():
        now = [one.stream for one in getattr(run, bucket)]
        assert sorted(now) == sorted(names)
        assert all(abs(now.index(one) - names.index(one)) <= 3 for one in names), bucket
    counts = {name: len(getattr(run, name)) for name in stood}
    assert run.coverage.model_dump() == {**rules.coverage.model_dump(), **counts}
