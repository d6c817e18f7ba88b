"""A scripted data source for the pages: real shipped bars, made-up readings, honest arithmetic.

Every record has the full shape of a tick's journal and its sums come out, so a page made from it
recomputes. `ScriptedView(state)` plays one state of the desk; to look at it in a browser: `python
-m tests.worlds.demo_view PORT STATE`. The newest ticks of BTCUSD M15 carry one source type each,
see SOURCES.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from agents.contracts import VECTORS, AgentReport
from agents.debate import scoring
from agents.registry import AGENTS
from tests import ROOT
from tests.worlds.records import quiet, tick_record
from tests.worlds.values import view_value
from torra import clock
from torra.config import Markov
from torra.dashboard.record import arithmetic
from torra.dashboard.view import bar_reading
from torra.dashboard.view.desk_values import ChartBars, DeskStatus, Overview, Symbol
from torra.dashboard.view.stream_reading import HISTORY, OWN
from torra.errors import StoreUnavailable
from torra.tick.marks import OrderPhrase
from torra.tick.sentence import Finished, in_page_words, sentence
from torra.verdict import sentiment_rules
from torra.verdict.vetoed import sided

NOW = datetime(2021, 12, 1, 10, 17, 30, tzinfo=UTC)
SOURCES = (
    "AGENT_BUDGET",
    "AGENT_PARTIAL",
    "L1_ONLY",
    "LEGACY",
    "AGENT_SKIPPED",
    "AGENT_FULL",
)
STREAMS = {"BTCUSD": ("M15", "H1"), "EURUSD": ("H1",), "XAUUSD": ("M15", "H1")}
DIGITS = {"BTCUSD": 2, "EURUSD": 5, "XAUUSD": 2}
WEIGHTS = {
    "price_action": 0.25,
    "key_levels": 0.20,
    "momentum": 0.25,
    "structure": 0.20,
    "ath": 0.10,
}
TIMEFRAME_WEIGHTS = {"M15": 0.4, "H1": 0.6}
SLIP = 15.0
"""What an opening of the script is filled above its plan: the spread."""

CUT_POINTS = (-0.3, -0.1, 0.1, 0.3)
INSTANCES = 50
ALARM = {
    "key": "quiet_ea:main",
    "kind": "QUIET_EA",
    "detail": "no heartbeat for 90 s <b>since</b>",
    "at": "2026-11-21T20:58:00Z",
}
THRESHOLDS = {"buy": 0.5, "sell": 0.5}
COMPONENTS = {
    "price_action": (("pa_trend_bars", 0.5), ("pa_wicks", 0.3), ("pa_gap", 0.2)),
    "key_levels": (("kl_support", 0.4), ("kl_fib", 0.3), ("kl_cloud", 0.3)),
    "momentum": (("mo_rsi", 0.4), ("mo_macd", 0.4), ("mo_cci", 0.2)),
    "structure": (("st_swings", 0.6), ("st_break", 0.4)),
}
HOSTILE = (
    "Buyers <script>alert(1)</script> hold <b onmouseover=alert(2)>the line</b>"
    " \u202egnihtyreve\u202c \u0007and 50 % of \u2066{{ 7*7 }}\u2069 https://evil.test/?q=1"
)


BLOCK = {
    "provider": "anthropic",
    "reason": "401: the key was refused",
    "since": "2026-11-21T20:40:00Z",
    "until": "2026-11-21T21:40:00Z",
}


FAILS = "anthropic claude-haiku-5-5: 0 of its newest 20 calls usable: the reply cannot be read"


class ScriptedView:
    """A desk in one state.

    live, demo, empty, stale, weekend, halted, reducing, stopped, blocked, unheard (its models
    fail), broken, failing; busy: proposals wait, an alarm stands and debates run; many: as many
    symbols as INSTANCES.
    """

    def __init__(self, state: str = "demo", sources: tuple[str, ...] = SOURCES) -> None:
        self.state = state
        self.sources = sources
        self._rows: dict[tuple[str, str, str], list[dict[str, Any]]] = {}

    def desk(self) -> DeskStatus:
        if self.state == "broken":
            raise StoreUnavailable("disk I/O error")
        if self.state == "failing":
            raise RuntimeError("a fault that nobody foresaw <secret>")
        trading = {"halted": "HALTED", "reducing": "REDUCING"}.get(self.state, "ACTIVE")
        busy = self.state in ("busy", "many")
        status = {
            **({"waiting_by": {"EURUSD": 2}, "alarms": [ALARM]} if busy else {}),
            "demo": self.state == "demo",
            "rate": clock.SAMPLE_RATE if self.state == "demo" else None,
            "now": clock.iso(NOW),
            "real_now": "2026-11-21T21:00:00Z",
            "role": "STOPPED" if self.state == "stopped" else "ACTIVE",
            "trading_state": trading,
            "trading_reason": "a person asked for it" if trading != "ACTIVE" else "",
            "version": "0.1.0",
            "cost_hour": 0.4312,
            "ceiling": 2.0,
            "failing": [FAILS] if self.state == "unheard" else [],
            "blocks": [BLOCK] if self.state == "blocked" else [],
        }
        return view_value(DeskStatus, status)

    def overview(self) -> Overview:
        desk = self.desk()
        if self.state == "bare":
            return Overview(desk)
        instances = [self._instance(name) for name in STREAMS]
        if self.state == "many":
            named = [f"{name}-{number:02d}" for number in range(INSTANCES) for name in STREAMS]
            instances += [
                {**instances[place % 3], "instance": name}
                for place, name in enumerate(named[: INSTANCES - 3])
            ]
        else:
            instances = [{**one, **self._chart(one)} for one in instances]
        told = {"desk": desk, "instances": instances, "debates": self._debates()}
        return view_value(Overview, told)

    def _chart(self, one: dict[str, Any]) -> dict[str, Any]:
        name = one["instance"]
        if self._silent(name):
            return {"price": None, "day_close": None, "bars": [], "marks": []}
        rows = bars(name, STREAMS[name][0])
        midnight = rows[-1]["time"][:10]
        before = [bar["close"] for bar in rows if bar["time"][:10] < midnight]
        shown = rows[-HISTORY:]
        since = shown[0]["time"]
        return {
            "price": rows[-1]["close"],
            "day_close": before[-1] if before else None,
            "bars": shown,
            "marks": [
                {"at": at, "side": row["side"], "what": what}
                for row in self._trades(name)
                for what, at in (("open", row.get("opened_at")), ("close", row["closed_at"]))
                if at is not None and at >= since
            ],
        }

    def symbol(self, instance: str, timeframe: str, limit: int) -> Symbol | None:
        desk = self.desk()
        if timeframe not in STREAMS.get(instance, ()):
            return None
        stream = self._stream(instance, timeframe)
        rows = [] if self._silent(instance) else self._ticks(instance, timeframe)[:limit]
        names = list(STREAMS)
        place = names.index(instance)
        told = {
            "desk": desk,
            **self._names(instance),
            "stream": stream,
            "latest": stream["tick"],
            "holding": self._holding(instance),
            "changes": self._changes(instance, timeframe),
            "bars": self._drawn(instance, timeframe, limit)["bars"],
            "ticks": rows,
            "trades": self._trades(instance),
            "skipped": self._skips(instance, timeframe),
            "states": self._states(instance, timeframe),
            "previous": names[place - 1] if place else None,
            "next": names[place + 1] if place + 1 < len(names) else None,
        }
        return view_value(Symbol, told)

    def _drawn(self, instance: str, timeframe: str, limit: int, upto: str = "~") -> dict[str, Any]:
        every = [] if self._silent(instance) else bars(instance, timeframe)
        closed = [bar for bar in every if bar["time"] < upto]
        shown = closed[-limit:]
        return {"bars": shown, "columns": bar_reading.columns(closed, len(shown))}

    def bars(self, instance: str, timeframe: str, as_of: str, limit: int) -> ChartBars | None:
        if timeframe not in STREAMS.get(instance, ()):
            return None
        known = {tick["bar_time"] for tick in self._ticks(instance, timeframe)}
        drawn = self._drawn(instance, timeframe, limit, as_of)
        there = [bar["time"] for bar in drawn["bars"] if bar["time"] in known]
        return view_value(ChartBars, {"digits": DIGITS[instance], **drawn, "ticks": there})

    def tick(self, instance: str, timeframe: str, bar_time: str) -> dict[str, Any] | None:
        desk = self.desk()
        if timeframe not in STREAMS.get(instance, ()) or self._silent(instance):
            return None
        for skip in self._skips(instance, timeframe):
            if skip["bar_time"] == bar_time:
                why = {"reason": skip["reason"], "detail": skip["detail"]}
                key = {"instance": instance, "timeframe": timeframe, "bar_time": bar_time}
                return {
                    **key,
                    "skipped": why,
                    "desk": desk.as_json(),
                    "previous": None,
                    "next": None,
                }
        times = [bar["time"] for bar in bars(instance, timeframe)]
        if bar_time not in times[60:]:
            return None
        place = times.index(bar_time)
        told = self._record(instance, timeframe, place)
        return {
            **told,
            "desk": desk.as_json(),
            "outcomes": outcomes(told["signal"]),
            "headlines": self._headlines(told),
            "digits": DIGITS[instance],
            "previous": times[place - 1] if place > 60 else None,
            "next": times[place + 1] if place + 1 < len(times) else None,
        }

    def _headlines(self, told: dict[str, Any]) -> list[dict[str, Any]]:
        return []

    def _silent(self, instance: str) -> bool:
        return self.state == "empty" or (instance == "XAUUSD" and self.state != "full")

    def _debates(self) -> list[dict[str, Any]]:
        if self.state not in ("busy", "many"):
            return []
        return [
            {
                "stream_id": f"stream-{number}",
                "instance": name,
                "timeframe": "H1",
            }
            for number, name in enumerate(("EURUSD", "BTCUSD"))
        ]

    def _states(self, instance: str, timeframe: str) -> dict[str, Any]:
        rows = [] if self._silent(instance) else self._ticks(instance, timeframe)[::-1]
        history = [(clock.parse(row["close_time"]), row["consensus"]) for row in rows]
        settings = Markov(cut_points=CUT_POINTS)
        view = sentiment_rules.markov(history, timeframe, settings)
        return {
            "view": view,
            "smoothing": settings.smoothing,
            "history": [
                (clock.iso(close), sentiment_rules.state(score, CUT_POINTS))
                for close, score in history
            ],
        }

    def _names(self, instance: str) -> dict[str, Any]:
        return {
            "instance": instance,
            "symbol": instance,
            "feed": "sample",
            "digits": DIGITS[instance],
            "timeframes": list(STREAMS[instance]),
            "thresholds": THRESHOLDS,
        }

    def _instance(self, name: str) -> dict[str, Any]:
        streams = [self._stream(name, timeframe) for timeframe in STREAMS[name]]
        ticks = [stream["tick"] for stream in streams if stream["tick"]]
        return {
            **self._names(name),
            "streams": streams,
            "latest": max(ticks, key=lambda tick: tick.as_of, default=None),
            "holding": self._holding(name),
            "changes": self._changes(name, *STREAMS[name]),
        }

    def _stream(self, instance: str, timeframe: str) -> dict[str, Any]:
        step = clock.duration(timeframe)
        close = clock.floor(NOW, timeframe) + step
        silent = self._silent(instance)
        record = None if silent else self._record(instance, timeframe, -1)
        age = None
        if record:
            age = (NOW - clock.parse(record["as_of"])).total_seconds()
            age += 7200 if self.state in ("stale", "weekend") else 0
        late = self.state in ("stale", "weekend")
        skips = self._skips(instance, timeframe) if late else []
        old = age is not None and age > 1.5 * step.total_seconds()
        quiet = None
        if skips and self.state == "weekend":
            ends = [clock.iso(clock.parse(skips[p]["bar_time"]) + step) for p in (-1, 0)]
            quiet = {"count": len(skips), "first": ends[0], "last": ends[1]}
        history = [] if silent else [row["consensus"] for row in self._ticks(instance, timeframe)]
        return {
            "timeframe": timeframe,
            "tick": record and tick_record(record),
            "history": history[:48][::-1],
            "next_in_seconds": (close - NOW).total_seconds() / 180,
            "age_seconds": age,
            "stale": old and quiet is None,
            "quiet": quiet,
            "skipped": {**skips[0], "bar_time": clock.iso(close)} if skips else None,
        }

    def _holding(self, instance: str) -> dict[str, Any] | None:
        if instance != "BTCUSD" or self.state == "empty":
            return None
        close = bars("BTCUSD", "M15")[-1]["close"]
        position = {
            "instance": instance,
            "symbol": instance,
            "side": "LONG",
            "lots": 0.05,
            "entry": close - 220.0,
            "stop": close - 760.0,
            "target": close + 860.0,
            "opened_at": NOW - timedelta(hours=3),
            "signal_id": "TAB12CD34EF56",
            "state": "FILLED",
        }
        return {"position": position, "now": (close, 220.0 * 0.05, 220.0 / 540.0)}

    def _changes(self, instance: str, *timeframes: str) -> dict[str, int]:
        rows = [] if self._silent(instance) else [self._ticks(instance, t) for t in timeframes]
        ticks = [tick for some in rows for tick in some]
        changed = sum(t["verdict"] != t["l1_verdict"] for t in ticks)
        return {"changed": changed, "every": len(ticks)}

    def _trades(self, instance: str) -> list[dict[str, Any]]:
        if instance != "BTCUSD" or self.state == "empty":
            return []
        price = bars("BTCUSD", "M15")[-60]["close"]
        rows = (("BUY", 40, "target", 2.0), ("SELL", 90, "stop", -1.0))
        return [
            {
                "sid": f"T{back:012d}",
                "side": side,
                "lots": 0.04,
                "entry": price,
                "price": price + SLIP,
                "close_price": price + SLIP + r * 500 * (1 if side == "BUY" else -1),
                "closed_at": bars("BTCUSD", "M15")[-back]["time"],
                "profit": r * 20.0,
                "r_multiple": r,
                "close_reason": reason,
            }
            for side, back, reason, r in rows
        ]

    def _skips(self, instance: str, timeframe: str) -> list[dict[str, Any]]:
        if (instance, timeframe) != ("BTCUSD", "M15"):
            return []
        newest = clock.parse(bars(instance, timeframe)[-1]["time"])
        gap = clock.iso(newest + timedelta(minutes=15))
        if self.state == "weekend":
            return [
                {
                    "bar_time": clock.iso(newest + back * timedelta(minutes=15)),
                    "state": "skipped",
                    "reason": "no_bar",
                    "detail": "the feed brought no bar for this close",
                }
                for back in range(6, 0, -1)
            ]
        return [
            {
                "bar_time": gap,
                "state": "skipped",
                "reason": "stale",
                "detail": "the newest bar closed 3 bars ago",
            }
        ]

    def _ticks(self, instance: str, timeframe: str) -> list[dict[str, Any]]:
        key = (self.state, instance, timeframe)
        if key not in self._rows:
            self._rows[key] = self._made(instance, timeframe)
        return [row.copy() for row in self._rows[key]]

    def _made(self, instance: str, timeframe: str) -> list[dict[str, Any]]:
        count = len(bars(instance, timeframe))
        records = (self._record(instance, timeframe, place) for place in range(60, count))
        names = (
            "bar_time", "l1", "composite", "consensus", "verdict", "l1_verdict", "l1_consensus",
            "source_type", "action", "reason", *OWN,
        )  # fmt: skip
        rows = [
            {
                **{n: r.get(n) for n in names},
                **{vector: r["scores"][vector]["score"] for vector in VECTORS},
                "ath": r["ath"],
                "close_time": r["as_of"],
            }
            for r in records
        ]
        return rows[::-1]

    def _record(self, instance: str, timeframe: str, place: int) -> dict[str, Any]:
        series = bars(instance, timeframe)
        place %= len(series)
        back = len(series) - 1 - place
        plain = instance != "BTCUSD" or timeframe != "M15"
        source = "AGENT_BUDGET" if plain or back >= len(self.sources) else self.sources[back]
        return record(instance, timeframe, place, source)


@cache
def bars(instance: str, timeframe: str) -> list[dict[str, Any]]:
    """Return 330 shipped bars up to NOW."""
    source = "EURUSD_H1" if instance == "EURUSD" else f"BTCUSD_{timeframe}"
    shift = timedelta(weeks=208) if instance == "EURUSD" else timedelta()
    scale = 0.031 if instance == "XAUUSD" else 1.0
    rows = []
    with (ROOT / "sample_data" / f"{source}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            time = clock.parse(row.pop("time")) + shift
            if time + clock.duration(timeframe) <= NOW:
                values = {name: float(value) * scale for name, value in row.items()}
                rows.append({"time": clock.iso(time), **values})
    return rows[-330:]


Argue = Callable[
    [str, str, dict[str, float], str, int], tuple[list[dict[str, Any]], dict[str, Any]]
]
"""Makes up what a desk said: see `debate`."""


@cache
def record(
    instance: str, timeframe: str, place: int, source: str, argue: Argue | None = None
) -> dict[str, Any]:
    """Return the whole record of one tick."""
    series = bars(instance, timeframe)
    l1, components = readings(series, place)
    reports, deliberation = (argue or debate)(instance, timeframe, l1, source, place)
    multiplier, veto = deliberation["ruling"]["multiplier"], deliberation["ruling"]["veto"]
    adjustments = deliberation["adjustments"]
    agents = scoring.add_adjustments(l1, adjustments)
    finals = {v: scoring.blended(l1[v], agents[v]) for v in VECTORS}
    free = scoring.add_adjustments(l1, scoring.adjust(deliberation["debate"], 1.0))
    ungated = {v: scoring.blended(l1[v], free[v]) for v in VECTORS}
    high = max(bar["high"] for bar in series[: place + 1])
    close = series[place]["close"]
    spread = atr(series, place)
    ath = round(1 - 2 * math.tanh((high - close) / (20 * spread)), 8)
    composite, l1_composite = weigh(finals, ath), weigh(l1, ath)
    bar_time = clock.parse(series[place]["time"])
    as_of = bar_time + clock.duration(timeframe)
    composites = {
        timeframe: {
            "composite": composite,
            "close_time": clock.iso(as_of),
            "weight": TIMEFRAME_WEIGHTS[timeframe],
            "fresh": True,
        }
    }
    if instance == "BTCUSD":
        other = "H1" if timeframe == "M15" else "M15"
        composites[other] = {
            "composite": round(composite * 0.9, 8),
            "close_time": clock.iso(clock.floor(as_of, other)),
            "weight": TIMEFRAME_WEIGHTS[other],
            "fresh": place % 50 != 0,
        }
    consensus = mean({n: c for n, c in composites.items() if c["fresh"]}, composite)
    verdict, l1_verdict = judge(consensus), judge(l1_composite)
    action, reason, denied = act(verdict, veto, place)
    signal = None
    if action.startswith("OPEN"):
        sign = 1 if action == "OPEN_BUY" else -1
        signal = {
            "sid": f"T{instance}{timeframe}{place}",
            "kind": "open",
            "side": action[5:],
            "lots": 0.05,
            "entry": close,
            "stop": close - sign * 2 * spread,
            "target": close + sign * 4 * spread,
            "expires": clock.iso(as_of + timedelta(seconds=180)),
            "state": "PENDING",
        }
    view_value = {
        "instance": instance,
        "symbol": instance,
        "timeframe": timeframe,
        "bar_time": clock.iso(bar_time),
        "as_of": clock.iso(as_of),
        "close": close,
        "atr": spread,
        "ath": ath,
        "l1": l1,
        "notes": {v: f"{v.replace('_', ' ')} reads {l1[v]:+.2f}" for v in VECTORS},
        "components": components,
        "agents": agents,
        "scores": {v: {"score": finals[v], "note": ""} for v in VECTORS},
        "ungated": ungated,
        "low": {v: min(finals[v], ungated[v]) for v in VECTORS},
        "high": {v: max(finals[v], ungated[v]) for v in VECTORS},
        "adjustments": adjustments,
        "source_type": source,
        "composite": composite,
        "consensus": consensus,
        "verdict": verdict,
        "l1_composite": l1_composite,
        "l1_consensus": round(l1_composite * 0.96, 8),
        "l1_verdict": l1_verdict,
        "low_consensus": consensus,
        "high_consensus": consensus,
        "composites": composites,
        "weights": WEIGHTS,
        "thresholds": THRESHOLDS,
        "gate": {
            "multiplier": multiplier,
            "veto": veto,
            "reasons": deliberation["ruling"]["reasons"],
            "rule": {"multiplier": 0.8, "veto": False, "reasons": ["OPEN_EXPOSURE"]},
        },
        "action": action,
        "reason": reason,
        "denied": denied,
        "signal": signal,
        "signals": [signal] if signal else [],
        "calls": deliberation["calls"],
        "cost_usd": deliberation["cost_usd"],
        "elapsed_ms": 412.7,
        "provider": "rules",
        "profile": "4f2a90bb17c0de55",
        "versions": {"python": "3.11.7", "torra": "0.1.0"},
        "bars": {
            "from": series[0]["time"],
            "to": series[place]["time"],
            "count": 750,
            "hash": "9be1c0ffee00aa11",
        },
        "features": [
            {"id": "technical.rsi14", "value": 61.53, "unit": "index"},
            {"id": "technical.adx14", "value": None, "unit": "index"},
            {"id": "market.spread_atr", "value": 0.082, "unit": "ATR"},
            {"id": "memory.markov_state", "value": "BULLISH", "unit": ""},
        ],
        "memory": {
            "current_markov_state": "BULLISH",
            "state_duration": 3,
            "recent_transitions": ["NEUTRAL→BULLISH", "BEARISH→NEUTRAL"],
            "sentiment_trend": [0.31, 0.28, 0.35],
            "session": "LONDON",
            "open_positions": [],
        },
        "skipped": None,
        "deliberation": deliberation | {"reports": reports},
    }
    record = tick_record(view_value)
    if "panel" not in deliberation:
        answers = arithmetic._answers(record.deliberation)
        failed = [name for name in deliberation.get("failures", ()) if name != "risk_gate"]
        found = scoring.panel_of(answers, failed, WEIGHTS) if answers else scoring.NEUTRAL
        view_value["deliberation"] = {**view_value["deliberation"], "panel": scoring.plain(found)}
        record = tick_record(view_value)
    orders = [OrderPhrase(one.kind, one.side, one.lots) for one in record.signals]
    spoken = record.deliberation
    said = Finished(
        symbol=instance, timeframe=timeframe, verdict=verdict, l1_verdict=l1_verdict,
        consensus=consensus, l1_consensus=record.l1_consensus, buy=record.thresholds.buy,
        sell=record.thresholds.sell, reason=reason, denied=denied, orders=orders,
        vetoed=record.gate.ruling.vetoes(verdict), vetoed_for=sided(record.gate.ruling, verdict),
        source=source, flags=spoken.flags, push=spoken.panel.push,
    )  # fmt: skip
    return quiet(view_value, sentence=in_page_words(sentence(said)))


def readings(series: list[dict[str, Any]], place: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Return four made-up but bar-driven scores with components that sum to them."""
    spread = atr(series, place)
    closes = [bar["close"] for bar in series[: place + 1]]
    drift = {
        "price_action": (closes[-1] - closes[-4]) / spread * 0.8,
        "key_levels": (closes[-1] - sum(closes[-20:]) / 20) / spread * 0.5,
        "momentum": (closes[-1] - closes[-12]) / spread * 0.4,
        "structure": (closes[-1] - closes[-40]) / spread * 0.25,
    }
    scores, parts = {}, {}
    for vector in VECTORS:
        names = COMPONENTS[vector]
        values = [math.tanh(drift[vector] * (1.2 - 0.3 * i)) for i, _ in enumerate(names)]
        parts[vector] = [
            {"name": name, "value": value, "weight": weight}
            for (name, weight), value in zip(names, values, strict=True)
        ]
        scores[vector] = round(sum(v * w for v, (_, w) in zip(values, names, strict=True)), 8)
    return scores, parts


def debate(
    instance: str, timeframe: str, l1: dict[str, float], source: str, place: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return reports and the deliberation of one source type."""
    asked = ["technical", "bull_researcher", "bear_researcher", "risk_gate"]
    heard = {
        "AGENT_PARTIAL": ["technical", "risk_gate"],
        "L1_ONLY": [],
        "LEGACY": [],
        "AGENT_SKIPPED": [],
    }.get(source, asked)
    reports = [report(name, l1, place) for name in heard]
    if source == "AGENT_FULL":
        reports[2] |= {
            "abstained": True,
            "reason": "nothing speaks against it",
            "adjustments": dict.fromkeys(VECTORS),
            "evidence": [],
            "reasoning": "",
            "key_points": [],
        }
    known = [
        scoring.CountedReport(AGENTS[r["agent_id"]].role, as_report(r))
        for r in reports
        if r["agent_id"] != "risk_gate"
    ]
    result = scoring.synthesise(known)
    veto = place % 23 == 0 and bool(known)
    multiplier = 0.56 if known else 0.8
    adjustments = scoring.adjust(result.debate, multiplier)
    if source == "LEGACY":
        adjustments = {v: round(0.8 * max(-0.3, min(0.3, 0.1 - l1[v])), 8) for v in VECTORS}
    failures = {
        name: "timeout" for name in asked if name not in heard and source != "AGENT_SKIPPED"
    }
    calls = [] if source == "AGENT_SKIPPED" else [call(name, failures) for name in asked]
    if source == "LEGACY":
        calls.append(call("chart_scorer", {}))
    ruling = {
        "multiplier": multiplier,
        "veto": veto,
        "reasons": ["OPEN_EXPOSURE", *(["MODEL_JUDGEMENT"] if known else [])],
        "detail": "another instance holds a position",
    }
    stages = [
        {
            "name": "analysts",
            "round": 1,
            "agents": {"technical": "answered"},
            "ms": 120.4,
            "status": "ok",
        },
        {
            "name": "research",
            "round": 1,
            "agents": {"bull_researcher": "answered", "bear_researcher": "answered"},
            "ms": 201.0,
            "status": "ok",
        },
        {
            "name": "gate",
            "round": 1,
            "agents": {"risk_gate": "answered"},
            "ms": 90.1,
            "status": "ok",
        },
    ]
    return reports, {
        "source_type": source,
        "analyst_avg": result.analyst_avg,
        "debate": result.debate,
        "adjustments": adjustments,
        "ruling": ruling,
        "rule_ruling": {**ruling, "multiplier": 0.8, "veto": False, "reasons": ["OPEN_EXPOSURE"]},
        "failures": failures,
        "calls": calls,
        "stages": stages if calls else [],
        "flags": ["late:bear_researcher"] if failures else [],
        "cost_usd": round(sum(c["cost_usd"] for c in calls), 6),
        "elapsed_ms": 411.5,
    }


def report(name: str, l1: dict[str, float], place: int) -> dict[str, Any]:
    """Return one agent's report, with text that a page must not trust."""
    lean = {"technical": 0.11, "bull_researcher": 0.12, "bear_researcher": -0.09}.get(name, 0.0)
    votes = {v: round(lean + 0.05 * math.sin(place + i), 4) for i, v in enumerate(VECTORS)}
    if name == "technical":
        votes["key_levels"] = None
    gate = name == "risk_gate"
    return {
        "agent_id": name,
        "adjustments": dict.fromkeys(VECTORS) if gate else votes,
        "confidence": "medium" if name == "bear_researcher" else "high",
        "reasoning": f"{name}: price action reads {l1['price_action']:+.2f}. {HOSTILE}",
        "key_points": ["RSI 61.53 is above its middle", f"Structure is intact {HOSTILE[:40]}"],
        "evidence": [
            {"id": "technical.rsi14", "value": 61.53},
            {"id": "market.spread_atr", "value": 0.082},
        ],
        "flags": ["ungrounded"] if name == "bear_researcher" and place % 2 else [],
        "abstained": False,
        "reason": "",
        "ruling": {
            "multiplier": 0.56,
            "veto": place % 23 == 0,
            "reasons": ["MODEL_JUDGEMENT"],
            "detail": "the bull's case rests on one candle",
        }
        if gate
        else None,
    }


def as_report(told: dict[str, Any]) -> AgentReport:
    return AgentReport(
        told["agent_id"],
        told["adjustments"],
        told["confidence"],
        flags=tuple(told["flags"]),
        abstained=told["abstained"],
    )


def call(name: str, failures: dict[str, str]) -> dict[str, Any]:
    """Return one call to a model."""
    failed = name in failures
    return {
        "role_id": name,
        "stage": "gate"
        if name == "risk_gate"
        else "analysts"
        if name == "technical"
        else "research",
        "round": 1,
        "attempt": 1,
        "status": "timeout" if failed else "ok",
        "model": "rules",
        "provider": "rules",
        "system": f"You are the {name} of a trading desk. Answer as JSON.",
        "user": f"Evidence:\ntechnical.rsi14 = 61.53\n{{NONCE}} {HOSTILE}",
        "reply": "" if failed else '{"symbol": "BTCUSD", "adjustments": {"price_action": 0.11}}',
        "input_tokens": 1480,
        "output_tokens": 0 if failed else 212,
        "cost_usd": 0.0 if failed else 0.0031,
        "elapsed_ms": 6750.0 if failed else 118.0,
        "request_hash": "c0ffee" * 6,
        "detail": "no answer within 6.75 s" if failed else "",
    }


def act(verdict: str, veto: bool, place: int) -> tuple[str, str, list[str]]:
    if verdict == "HOLD":
        return ("CLOSE", "OPPOSITE_VERDICT", []) if place % 61 == 0 else ("HOLD", "THRESHOLD", [])
    if veto:
        return "HOLD", "GATE_VETO", ["GATE_VETO"]
    if place % 4:
        return "HOLD", "POSITION_HELD", []
    return f"OPEN_{verdict}", "VERDICT", []


def outcomes(signal: dict[str, Any] | None) -> dict[str, Any]:
    """Return the row of an opening that has been filled and has ended at its target."""
    if signal is None:
        return {}
    sign = 1 if signal["side"] == "BUY" else -1
    fill = signal["entry"] + (SLIP if sign > 0 else 0.0)
    now = {
        "state": "CLOSED",
        "price": fill,
        "opened_at": signal["expires"],
        "close_price": signal["target"],
        "closed_at": signal["expires"],
        "profit": sign * (signal["target"] - fill) * signal["lots"],
        "r_multiple": 1.9,
        "close_reason": "TARGET",
        "detail": "",
        "closed": None,
    }
    return {signal["sid"]: {**signal, **now}}


def atr(series: list[dict[str, Any]], place: int) -> float:
    window = series[max(0, place - 13) : place + 1]
    return sum(bar["high"] - bar["low"] for bar in window) / len(window)


def weigh(scores: dict[str, float], ath: float) -> float:
    values = {**scores, "ath": ath}
    return round(sum(WEIGHTS[name] * values[name] for name in WEIGHTS) / sum(WEIGHTS.values()), 8)


def mean(fresh: dict[str, Any], otherwise: float) -> float:
    total = sum(item["weight"] for item in fresh.values())
    if not total:
        return otherwise
    return round(sum(i["composite"] * i["weight"] for i in fresh.values()) / total, 8)


def judge(consensus: float) -> str:
    return "BUY" if consensus >= 0.5 else "SELL" if consensus <= -0.5 else "HOLD"


if __name__ == "__main__":
    from tests.doubles.visitors import open_app
    from torra.dashboard.server import serve

    serve(
        open_app(ScriptedView(sys.argv[2] if len(sys.argv) > 2 else "demo")),
        port=int(sys.argv[1]),
    )
