"""The state of a debate, read from its events: who is at work, who is done, what the result is.

`follow` reads the events of one attempt at a tick, in order, however many there are. A reload, a
second visitor and a debate that ended long ago all get the same picture. Unknown events and fields
are skipped. Text of models is cleaned. Pure functions: `now` is an argument, from which the time of
an agent at work is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agents.contracts import VECTORS
from torra import clock
from torra.dashboard.record import surroundings
from torra.dashboard.record.reasoning import REASONS
from torra.dashboard.record.stored import NOT_COUNTED, Row, mapping, sequence
from torra.exhibits import figures
from torra.exhibits.figures import Mark, cell

STATES: Final = {
    "pending": Mark("·", "pending", "flat"),
    "running": Mark("◔", "in progress", "note"),
    "done": Mark("●", "done", "note"),
    "abstained": Mark("○", "abstained", "flat"),
    "failed": Mark("✕", "failed", "warn"),
    "not asked": Mark("○", "not asked", "flat"),
}
"""States of an agent, with their marks."""

PHASES: Final = {
    "analysts": "analysts",
    "debate": "debate, round {}",
    "gate": "gate",
    "fallback": "fallback",
}

ENDS: Final = {
    "producer_lost": (
        "The desk ended while it ran.",
        "The next desk runs this tick again if its bar is not too old; then it is a new debate.",
    ),
    "store": (
        "The database could not be used.",
        "What was decided may be stored all the same: the tick's own page tells. If not, the desk "
        "tries again while its bar is at most two bars old.",
    ),
    "failed": (
        "The tick failed.",
        "The desk lets its claim go and tries again while the bar is at most two bars old.",
    ),
    "skipped": (
        "The tick was skipped.",
        "Nothing was computed or sent; the row stays with its reason, and the next bar is next.",
    ),
}
"""Meaning and consequence of an error's code; of `skipped:<reason>` the first word counts."""

BETWEEN: Final = "the consensus lies between the thresholds"
SUMMARY_CHARS: Final = 600
SILENT_SECONDS: Final = 60.0
"""A debate without an event for longer than this is not called live."""


def follow(events: Iterable[Mapping[str, Any]], seats: Sequence[str], now: datetime) -> Row:
    """Return the state of a debate.

    `events` have seq, event, payload (a mapping) and at (ISO); `seats` are the agents of the desk
    in asking order, as far as they are known.
    """
    told = _Telling(seats, now)
    for event in events:
        told.take(event)
    return told.picture()


class _Telling:
    """The state of a debate after the events so far."""

    def __init__(self, seats: Sequence[str], now: datetime) -> None:
        self._now = now
        self._agents: dict[str, Row] = {name: _agent(name) for name in seats}
        self._log: list[Row] = []
        self._start: Row = {}
        self._began: Any = None
        self._newest: Any = None
        self._stage = ""
        self._seq = 0
        self._end: Row | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in one event."""
        payload, kind = mapping(event.get("payload")), str(event.get("event"))
        self._seq = max(self._seq, int(figures.number(event.get("seq")) or 0))
        self._newest = event.get("at")
        self._began = self._began or event.get("at")
        # only names of HEARD: an event's name is data and must not reach another method
        heard = getattr(self, f"_{kind}", None) if kind in HEARD else None
        if heard is not None:
            heard(payload, event)

    def picture(self) -> Row:
        """Return the state of the debate for a page."""
        over = self._end is not None
        agents = list(self._agents.values())
        for agent in agents:
            if over and agent["state"] in ("pending", "running"):
                # it is over: nobody is at work or to come
                agent |= {"state": "not asked" if agent["state"] == "pending" else "failed"}
        silent = None if over else _since(self._newest, self._now)
        return {
            "seq": self._seq,
            "over": over,
            "end": self._end,
            "stage": "" if over else self._stage,
            "agents": [_shown(agent, self._now) for agent in agents],
            "log": self._log,
            "counts": _counts(agents),
            "elapsed": None if over else _since(self._began, self._now),
            "silent": silent is not None and silent > SILENT_SECONDS,
            "silence": figures.span(silent),
            "instance": figures.clean(self._start.get("instance"), 40),
            "timeframe": figures.clean(self._start.get("timeframe"), 8),
            "bar_time": self._start.get("bar_time"),
            "close": figures.moment(self._start.get("close_time")),
        }

    def _tick_start(self, payload: Row, event: Mapping[str, Any]) -> None:
        self._start = payload
        where = (payload.get("instance"), payload.get("timeframe"))
        what = " ".join(figures.clean(part, 40) for part in where)
        closed = figures.moment(payload.get("close_time"))
        self._say(event, "", "flat", f"The tick of {what} began, on the bar that closed {closed}.")

    def _agent_start(self, payload: Row, event: Mapping[str, Any]) -> None:
        agent = self._of(payload)
        agent |= {"state": "running", "since": event.get("at"), **_where(payload)}
        self._stage = agent["where"]

    def _agent_complete(self, payload: Row, event: Mapping[str, Any]) -> None:
        agent, quiet = self._of(payload), bool(payload.get("abstained"))
        state = "abstained" if quiet else "done"
        agent |= {
            "state": state,
            "ms": payload.get("ms"),
            "confidence": "" if quiet else figures.clean(payload.get("confidence"), 20),
            "votes": _votes(payload),
            **_where(payload),
        }
        words = figures.clean(payload.get("summary"), SUMMARY_CHARS)
        words = surroundings.plain_reason(words) if quiet else words
        tone = STATES[state].tone
        sure = f", {agent['confidence']} confidence" if agent["confidence"] else ""
        self._say(event, agent["title"], tone, words, f"{STATES[state].word}{sure}", agent)

    def _agent_error(self, payload: Row, event: Mapping[str, Any]) -> None:
        agent = self._of(payload)
        reason = figures.clean(payload.get("error"), 200) or "no reason is told"
        agent |= {"state": "failed", "ms": payload.get("ms"), "why": reason, **_where(payload)}
        self._say(event, agent["title"], "warn", reason, "failed", agent)

    def _debate_round(self, payload: Row, event: Mapping[str, Any]) -> None:
        said = [mapping(one).get("agent") for one in sequence(payload.get("statements"))]
        who = " and ".join(figures.title(str(name)) for name in said if name) or "nobody"
        number = figures.plain(payload.get("round"), 0)
        self._say(event, "", "flat", f"Round {number} of the debate is over: {who} made a case.")

    def _synthesis(self, payload: Row, event: Mapping[str, Any]) -> None:
        multiplier = figures.plain(payload.get("multiplier"), 2)
        veto = "openings are vetoed" if payload.get("veto") else "no veto"
        source = figures.mark(payload.get("source_type")).text
        self._stage = "verdict"
        words = f"Multiplier × {multiplier}, {veto}; {source}."
        words += f" {NOT_COUNTED.capitalize()}." if payload.get("shadow") else ""
        self._say(event, "Gate", "flat", words, "ruled")

    def _decision(self, payload: Row, event: Mapping[str, Any]) -> None:
        verdict, action = figures.mark(payload.get("verdict")), figures.mark(payload.get("action"))
        consensus = figures.signed(payload.get("consensus"))
        denied = [figures.clean(one, 60) for one in sequence(payload.get("denied"))]
        self._end = {
            "kind": "decision",
            "verdict": verdict,
            "l1_verdict": figures.mark(payload.get("l1_verdict")),
            "action": action,
            "consensus": consensus,
            "reason": _reason(payload.get("reason")),
            "denied": denied,
            "source": figures.mark(payload.get("source_type")),
            "cost": figures.money(payload.get("cost_usd")),
            "took": figures.plain(payload.get("elapsed_ms"), 0),
        }
        words = f"{verdict.text}, consensus {consensus}; action {action.text}."
        self._say(event, "Verdict", verdict.tone, words, "decided")

    def _error(self, payload: Row, event: Mapping[str, Any]) -> None:
        code = figures.clean(payload.get("code"), 80)
        what, then = ENDS.get(code.partition(":")[0], ("It ended without a result.", ""))
        message = figures.clean(payload.get("message"), 400)
        again = bool(payload.get("recoverable"))
        self._end = {"kind": "error", "code": code, "what": what, "then": then,
                     "message": message, "again": again}  # fmt: skip
        self._say(event, "End", "warn", f"{what} {message}".strip(), code)

    def _of(self, payload: Row) -> Row:
        name = figures.clean(payload.get("agent"), 40)
        return self._agents.setdefault(name, _agent(name))

    def _say(
        self,
        event: Mapping[str, Any],
        who: str,
        tone: str,
        words: str,
        head: str = "",
        agent: Mapping[str, Any] | None = None,
    ) -> None:
        self._log.append(
            {
                "seq": int(figures.number(event.get("seq")) or 0),
                "who": who,
                "tone": tone,
                "head": head,
                "words": words,
                "where": agent["where"] if agent else "",
                # an agent that fails keeps the votes of an earlier round: they are not of this
                # event
                "votes": agent["votes"] if agent and head != "failed" else [],
            }
        )


HEARD: Final = (
    "tick_start", "agent_start", "agent_complete", "agent_error", "debate_round", "synthesis",
    "decision", "error",
)  # fmt: skip


def _agent(name: str) -> Row:
    return {
        "name": name,
        "title": figures.title(name),
        "state": "pending",
        "where": "",
        "since": None,
        "ms": None,
        "confidence": "",
        "votes": [],
        "why": "",
    }


def _where(payload: Mapping[str, Any]) -> Row:
    phase = figures.clean(payload.get("phase"), 20)
    form = PHASES.get(phase, phase)
    return {"where": form.format(figures.plain(payload.get("round"), 0)) if form else ""}


def _votes(payload: Mapping[str, Any]) -> list[Row]:
    votes = mapping(payload.get("adjustments"))
    return [
        {"name": figures.title(vector), **cell(votes.get(vector))}
        for vector in VECTORS
        if figures.number(votes.get(vector)) is not None
    ]


def _shown(agent: Row, now: datetime) -> Row:
    """Return an agent for a page; `elapsed` are seconds so far of one that is at work."""
    state = STATES[agent["state"]]
    running = agent["state"] == "running"
    elapsed = _since(agent["since"], now) if running else None
    took = figures.number(agent["ms"])
    told = figures.DASH if took is None else f"{took / 1000:.1f} s"
    return {
        "name": agent["name"],
        "title": agent["title"],
        "state": agent["state"],
        "mark": state.text,
        "tone": state.tone,
        "where": agent["where"],
        "elapsed": None if elapsed is None else round(elapsed, 1),
        "took": f"{elapsed:.0f} s" if elapsed is not None else told,
        "about": agent["why"] or agent["confidence"],
    }


def _counts(agents: Sequence[Row]) -> str:
    words = [agent["state"] for agent in agents]
    told = [f"{words.count(state)} {STATES[state].word}" for state in STATES if state in words]
    return ", ".join(told)


def _reason(word: Any) -> str:
    """Return the reason of the action with its meaning."""
    told = figures.clean(word, 200)
    meaning = BETWEEN if told == "THRESHOLD" else REASONS.get(told, "")
    return f"{told}: {meaning}" if meaning else told


def _since(at: Any, now: datetime) -> float | None:
    try:
        return max(0.0, (now - clock.parse(str(at))).total_seconds())
    except (ValueError, OverflowError):
        return None
