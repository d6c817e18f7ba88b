"""The record of one tick: what it saw and thought, every number of it as plain JSON.

Pages and `torra tick --json` show the record, and a later replay is compared with it. `build` runs
inside the tick's transaction on values that already exist; it computes nothing but the hash of the
bars. Whoever reads a record takes it as a TickRecord (tick_record), which names every key.
"""

from __future__ import annotations

import hashlib
import platform
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd

from agent_framework import Deliberation
from agents.contracts import VECTORS, GateRuling
from agents.debate.deliberation import OUTAGE
from agents.registry import wording
from ath_calculator import Records
from instance_database import ConsensusResult, TickKey
from technical_calculator import c_versions
from torra.clock import iso
from torra.config import Instance, Profile
from torra.evaluation.standing.track_record import NO_RECORD, TrackRecord
from torra.evidence.feature_bundle import Bundle
from torra.evidence.news_digest import NewsItem, NewsView, Weighted
from torra.evidence.outside_readings import OutsideView
from torra.evidence.scheduled_events import EventView
from torra.lessons.recall import NOTHING, RetrievedLessons
from torra.market.bar_view import BarView
from torra.market.spreads import NO_SPREADS, SpreadView
from torra.plugins import loading as plugins
from torra.store.tick_store import OpeningContext
from torra.tick.late_answers import LateReplies
from torra.tick.marks import INVENTED, INVENTED_IDS, LEAN_AGAINST, UNFORESEEN, OrderPhrase
from torra.tick.rules_version import RULES_VERSION
from torra.tick.sentence import Finished, sentence
from torra.verdict.risk_engine import Action, SignalDraft
from torra.verdict.vetoed import sided

if TYPE_CHECKING:
    from torra.tick.tick_record import NewsRecord

RECORDED_PACKAGES: Final = ("torra", "numpy", "pandas", "pandas-ta-classic", "ta-lib")
"""Libraries whose versions can change a score and are therefore stored with it."""

RULES_NAME: Final = "rules"
"""Name of the version of the rules among a record's versions."""

CALL_TEXTS: Final = ("system", "user", "reply")
"""Fields of a call that the `calls` table keeps."""


OF_INPUTS: Final = ("timeframe", "close", "atr", "apart", "events", "outside")
OF_CONSENSUS: Final = (
    *("composite", "consensus", "verdict", "l1_composite", "l1_consensus", "l1_verdict"),
    *("low_consensus", "high_consensus"),
)
"""What a record has of a tick's inputs and of its consensus by the same name."""


@dataclass(frozen=True, slots=True)
class TickInputs:
    """Everything that the tick saw: bars, L1, evidence and memory.

    `now` is the desk's clock at that moment. `before` is how the instance stood
    (JournalStore.standing), with the `path` of bars that its paper bridge then lived through; of a
    tick that is stored after another one of its close it is how the instance stood between the two.
    `together` has the L1 composites of the timeframes that closed with it, `apart` names those that
    closed at the same moment and ran before, later or not at all. `invented`: what lies beside the
    bars is a demo's own invention.
    """

    instance: Instance
    profile: Profile
    timeframe: str
    bar_time: datetime
    as_of: datetime
    now: datetime
    before: Mapping[str, Any]
    view: BarView
    row: Mapping[str, float]
    records: Records
    ath_score: float
    memory: Mapping[str, Any]
    bundle: Bundle
    revision: int | None = None
    news: NewsView | None = None
    events: EventView | None = None
    spreads: SpreadView = NO_SPREADS
    outside: OutsideView | None = None
    lessons: RetrievedLessons = NOTHING
    standing: TrackRecord = NO_RECORD
    together: Mapping[str, float] = field(default_factory=dict)
    apart: tuple[str, ...] = ()
    invented: bool = False

    @property
    def key(self) -> TickKey:
        """The tick's own key."""
        return TickKey(self.instance.id, self.timeframe, self.bar_time)

    @property
    def l1(self) -> Mapping[str, float]:
        """The four deterministic scores."""
        return self.bundle.scores

    @property
    def close(self) -> float:
        """The close of the bar: the current price."""
        return float(self.row["close"])

    @property
    def atr(self) -> float:
        """ATR(14) of the deciding timeframe."""
        return float(self.row["atr14"])


@dataclass(frozen=True, slots=True)
class TickDebate:
    """The debate's record, the two blends that the brain needs, the chart that was shown.

    `late` watches calls for which the tick no longer waits. `standing_in` is the record of an
    undebated desk; it counts in place of the real one while the agents only look on (shadow).
    `company` is what openings were foreseen by, None at a desk that consults nobody.
    """

    deliberation: Deliberation
    gated: Mapping[str, Any]
    ungated: Mapping[str, Any]
    picture: bytes | None = None
    late: LateReplies | None = None
    standing_in: Deliberation | None = None
    company: OpeningContext | None = None

    @property
    def counted(self) -> Deliberation:
        """The deliberation that decides: what was said, or in shadow that nothing was."""
        return self.standing_in or self.deliberation


class TickResult(NamedTuple):
    """The values of a finished tick, of which its record is made.

    `signals` are the rows that it wrote, `proposed` the orders that wait for a person instead;
    `desk` is what the whole desk brought to the decision, and when: trading state and exposure
    (NO_EXPOSURE for a HOLD of which no record is kept).
    """

    inputs: TickInputs
    debated: TickDebate
    saved: ConsensusResult
    action: Action
    signals: tuple[Mapping[str, Any], ...]
    desk: Mapping[str, Any]
    elapsed_ms: float
    proposed: tuple[SignalDraft, ...] = ()


def build(result: TickResult, provider: str) -> dict[str, Any]:
    """Return the record of a finished tick as JSON values, without its deliberation."""
    from torra.tick.tick_record import JournalRecord  # noqa: PLC0415 - its models take time to make

    inputs, debated, action, saved = result.inputs, result.debated, result.action, result.saved
    profile = inputs.profile
    deliberation, counted, view = debated.deliberation, debated.counted, inputs.view
    gated, ungated, agents = (
        {vector: chart[vector]["score"] for vector in VECTORS}
        for chart in (debated.gated, debated.ungated, deliberation.scores)
    )
    spreads = {} if inputs.spreads == NO_SPREADS else asdict(inputs.spreads)
    parts: dict[str, Any] = {
        "instance": inputs.instance.id,
        "symbol": inputs.instance.symbol,
        **{name: getattr(inputs, name) for name in OF_INPUTS},
        **{name: getattr(saved, name) for name in OF_CONSENSUS},
        "bar_time": iso(inputs.bar_time),
        "as_of": iso(inputs.as_of),
        "ath": inputs.ath_score,
        "ath_price": inputs.records.high,
        "low_price": inputs.records.low,
        "records_since": inputs.records.since and iso(inputs.records.since),
        "record_score": profile.record_score,
        "together": dict(inputs.together),
        "l1": dict(inputs.l1),
        "notes": dict(inputs.bundle.notes),
        "components": {
            vector: [
                {"name": part.name, "value": part.value, "weight": part.weight}
                for part in inputs.bundle.explained[vector].components
            ]
            for vector in VECTORS
        },
        "agents": agents,
        "scores": dict(debated.gated),
        "ungated": ungated,
        # An opening must stand with the gate and without it (sentiment_rules.opening_stands).
        "low": {vector: min(gated[vector], ungated[vector]) for vector in VECTORS},
        "high": {vector: max(gated[vector], ungated[vector]) for vector in VECTORS},
        "adjustments": dict(deliberation.adjustments),
        "composites": dict(saved.composites),
        "weights": profile.sentiment_weights.model_dump(),
        "thresholds": profile.thresholds.model_dump(),
        "gate": {
            **_ruling(counted.ruling),
            # Where it vetoes no side alone a record has not a letter of it.
            **({"veto_sides": [*counted.ruling.veto_sides]} if counted.ruling.veto_sides else {}),
            **({"budget": counted.swarm.budget} if counted.swarm else {}),
            "rule": _ruling(counted.rule_ruling),
        },
        "action": action.name,
        "reason": action.reason,
        "denied": action.denied,
        # A reverse has two signals, the close first; its record shows the opening.
        "signal": next(iter(sorted(result.signals, key=lambda row: row["kind"] != "open")), None),
        "signals": result.signals,
        "proposed": [OrderPhrase(each.kind, each.side, each.lots) for each in result.proposed],
        "sentence": sentence(finished(result)),
        "source_type": deliberation.source_type,
        "flags": _flags(result),
        "calls": len(deliberation.calls),
        "cost_usd": deliberation.cost_usd,
        "elapsed_ms": round(result.elapsed_ms, 3),
        "provider": provider,
        # By its hash: the bytes stand once in their own table.
        "picture": hashlib.sha256(debated.picture).hexdigest() if debated.picture else None,
        "profile": profile.digest(),
        "execution": profile.execution,
        "now": iso(inputs.now),
        "before": dict(inputs.before),
        "desk": {
            name: dict(value) if name == "exposure" else value
            for name, value in result.desk.items()
        },
        "versions": {
            **versions(),
            "rubric": wording(profile.agents),
            # What it was made with that another package may have brought.
            **plugins.versions(
                (
                    inputs.instance.feed,
                    inputs.instance.bridge,
                    profile.agents.provider,
                    *(profile.news.sources if profile.agents.include_news else ()),
                )
            ),
        },
        "bars": describe(view, inputs.revision),
        "features": [
            {
                "id": item.id,
                "value": item.value,
                # That of an invented one says so.
                "unit": f"{item.unit} {INVENTED}".lstrip()
                if inputs.invented and item.id.startswith(INVENTED_IDS)
                else item.unit,
            }
            for item in inputs.bundle.features.values()
        ],
        "memory": dict(inputs.memory),
        "regime": {"name": inputs.bundle.regime.name, "reads": dict(inputs.bundle.regime.reads)},
        "news": None if inputs.news is None else _news(inputs.news),
        # By value; the hour only where it was asked for.
        "spreads": {name: value for name, value in spreads.items() if name != "hour" or value}
        or None,
        # Where there are none a record has not a letter of it.
        **({"lessons": inputs.lessons.as_dict()} if inputs.lessons else {}),
        **({"standing": inputs.standing} if inputs.standing else {}),
        **({"company": debated.company.as_dict()} if debated.company else {}),
        **({INVENTED: True} if inputs.invented else {}),
        "skipped": None,
    }
    # Not validated: what a tick stores is what it decided, whatever its form.
    return JournalRecord.model_construct(**parts).as_json()


def finished(result: TickResult) -> Finished:
    """Return what the tick's sentence says of it."""
    inputs, debated, saved = result.inputs, result.debated, result.saved
    deliberation, counted = debated.deliberation, debated.counted
    consulted = deliberation.consulted
    judges = (report.winner for report in deliberation.reports if report.win_share is not None)
    written = [(draft.kind, draft.side, draft.lots) for draft in result.proposed] or [
        (row["kind"], row["side"], row["lots"]) for row in result.signals
    ]
    return Finished(
        symbol=inputs.instance.symbol,
        timeframe=inputs.timeframe,
        verdict=saved.verdict,
        l1_verdict=saved.l1_verdict,
        consensus=saved.consensus,
        l1_consensus=saved.l1_consensus,
        buy=inputs.profile.thresholds.buy,
        sell=inputs.profile.thresholds.sell,
        reason=result.action.reason,
        denied=[*map(str, result.action.denied)],
        orders=[OrderPhrase(*order) for order in written],
        vetoed=counted.vetoes(saved.verdict),
        vetoed_for=sided(counted.ruling, saved.verdict),
        against=LEAN_AGAINST in _flags(result),
        source=str(deliberation.source_type),
        flags=deliberation.flags,
        push=deliberation.panel.push,
        trader=debated.company is not None,
        declined=consulted.report.decline_code if consulted and consulted.report else "",
        judge=next(judges, ""),
        outage=counted.conviction_for("BUY") if counted.outage else None,
        invented=inputs.invented,
    )


def stored_deliberation(deliberation: Deliberation) -> dict[str, Any]:
    """Return a deliberation as the sentiment row keeps it, without the texts of its calls."""
    whole = deliberation.as_json()
    calls = [
        {name: value for name, value in call.items() if name not in CALL_TEXTS}
        for call in whole["calls"]
    ]
    return {**whole, "calls": calls}


def _news(view: NewsView) -> dict[str, Any]:
    """Return what a tick knew of the news; the texts stand in the table news, by id."""
    return {
        "status": view.status,
        "unique": view.unique,
        "score": view.score,
        "events": dict(view.events),
        "items": [
            {"id": counted.item.id, "age_hours": counted.age_hours, "weight": counted.weight}
            for counted in view.items
        ],
        "fundamentals": dict(view.fundamentals),
        "fundamentals_status": view.fundamentals_status,
    }


def news_view(record: NewsRecord, stored: Sequence[NewsItem]) -> NewsView:
    """Return the view that a record holds; `stored` are those of its items that are still there."""
    known = {item.id: item for item in stored}
    items = (
        Weighted(known[row.id], row.age_hours, row.weight)
        for row in record.items
        # Headlines are deleted after a time; the record outlives them.
        if row.id in known
    )
    return NewsView(
        record.status,
        tuple(items),
        record.unique,
        record.score,
        record.events,
        record.fundamentals,
        record.fundamentals_status,
    )


def _ruling(ruling: GateRuling) -> dict[str, Any]:
    return {
        "multiplier": ruling.multiplier,
        "veto": ruling.veto,
        "reasons": list(ruling.reasons),
    }


def _flags(result: TickResult) -> list[str]:
    """Return what is to be known of the tick as a whole; `deliberation.flags` are the debate's."""
    debated, counted = result.debated, result.debated.counted
    opened = [
        draft.side for draft in (*result.action.drafts, *result.proposed) if draft.kind == "open"
    ]
    # An opening is made that a trader might have been asked about, and was not.
    might = debated.company is not None and debated.deliberation.heard
    trader = debated.deliberation.consulted
    flags = {
        LEAN_AGAINST: counted.panel.agreement(result.saved.verdict).leans_against,
        UNFORESEEN: bool(might and opened and (trader is None or trader.side not in opened)),
        OUTAGE: counted.outage,
    }
    return [flag for flag, stands in flags.items() if stands]


def describe(bars: BarView | pd.DataFrame, revision: int | None = None) -> dict[str, Any]:
    """Name a range of bars: first and last time, number, revision and a hash of every value."""
    view = BarView.of(bars) if isinstance(bars, pd.DataFrame) else bars
    digest = hashlib.sha256(view.times.tobytes())
    digest.update(view.numbers.tobytes())
    return {
        "from": iso(view.first),
        "to": iso(view.last),
        "count": len(view),
        "revision": revision,
        "hash": digest.hexdigest()[:16],
    }


@cache
def versions() -> dict[str, str]:
    """Return the versions of everything that can change a score."""
    texts = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    texts |= {RULES_NAME: str(RULES_VERSION)}
    for package in RECORDED_PACKAGES:
        try:
            texts[package] = version(package)
        # A checkout that was never installed has no version.
        except PackageNotFoundError:
            texts[package] = "unknown"
    return {**texts, **c_versions()}
