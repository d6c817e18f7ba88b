"""What pages, commands and the tick's sentence say alike of a manager and of a trader's thesis.

Code makes these words of codes and numbers; prose of a model is never among them, and who shows
such prose beside them cleans it. Pure functions; what is not known is "".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_config import EscalationSettings
from agents.debate.deliberation import Consulted
from torra.clock import duration
from torra.tick.marks import UNFORESEEN
from torra.tick.sentence import number, why_declined
from torra.tick.tick_record import DebateRecord, StoredCall, statement
from torra.words.ticks import NO_THESIS

UNKNOWN: Final = "conviction not recorded"

UNFORESEEN_WORDS: Final = (
    "the trader was not asked: another timeframe of the same close changed the consensus after the "
    "debate, so this opening was not foreseen"
)


def why_without(failure: str | None) -> str:
    """Return why there is no thesis; a failure that is not known is named by its word."""
    known = NO_THESIS.get(failure or "")
    return known or f"the trader gave no answer ({(failure or 'unknown').replace('_', ' ')})"


def bars_long(bars: int | None, timeframe: str | None) -> str:
    """Return a number of bars with the time that they take: "16 bars (4 hours)"."""
    if not bars or bars < 0:
        return ""
    text = f"{bars} bar{'' if bars == 1 else 's'}"
    try:
        hours = bars * duration(timeframe or "").total_seconds() / 3600
    except (KeyError, ValueError):
        return text
    amount, unit = (hours, "hour") if hours < 48 else (hours / 24, "day")
    if hours < 1:
        amount, unit = 60 * hours, "minute"
    return f"{text} ({amount:.3g} {unit}{'' if amount == 1 else 's'})"


def rows(
    debate: DebateRecord,
    flags: Sequence[str],
    timeframe: str,
    rule: EscalationSettings | None = None,
    calls: Sequence[StoredCall] = (),
) -> dict[str, str]:
    """Return what a manager and a trader said of a tick, for a terminal, by the name of its row.

    `rule` is by which the trader's tier was chosen, None where it is not known; `calls` are those
    of the tick, of which the trader's names its model.
    """
    cells: dict[str, str] = {}
    if (manager := debate.manager) is not None:
        weights = [
            f"{name.removesuffix('_researcher')} x {share:.2f}"
            for name, share in manager.weights.items()
        ]
        head = f"{manager.winner or 'NONE'}, {manager.confidence} confidence"
        cells["manager"] = f"{'; '.join([head, ', '.join(weights)])}: {statement(manager)}"
    if (consulted := debate.consulted) is not None:
        cells["thesis"] = _thesis(consulted, timeframe, rule)
        if report := consulted.report:
            ends = () if report.declined else report.falsifiers
            rows = {"ends by": "; ".join(ends), "risks": "; ".join(report.risks)}
            cells |= {name: text for name, text in rows.items() if text}
            cells["written by"] = author(consulted, calls)
    elif UNFORESEEN in flags:
        cells["thesis"] = UNFORESEEN_WORDS
    return cells


def author(consulted: Consulted, calls: Sequence[StoredCall]) -> str:
    """Return who wrote a thesis: its role, the model where a call names it, and its tier."""
    own = [one.model for one in calls if one.role_id == consulted.agent and one.status == "ok"]
    model = " ".join(str(own[-1]).split())[:60] if own and own[-1] else ""
    tier = f"{consulted.tier} tier" if consulted.tier else ""
    return ", ".join(part for part in ("Trader", model, tier) if part)


def _thesis(consulted: Consulted, timeframe: str, rule: EscalationSettings | None) -> str:
    when, at = (rule.when, rule.at) if rule else (None, None)
    report, tier = consulted.report, escalated(consulted.tier, consulted.conviction, when, at)
    if report is None:
        return f"none, as {why_without(consulted.failure)}"
    if report.declined:
        why = why_declined(report.decline_code)
        head = f"the trader declined the {consulted.side}{f', as {why}' if why else ''}"
        return f"{head}: {statement(report)}"
    horizon = bars_long(report.horizon_bars, timeframe)
    about = [f"for the {consulted.side}", f"at most {horizon}" if horizon else "", tier]
    return f"{', '.join(part for part in about if part)}: {statement(report)}"


def escalated(
    tier: str | None, conviction: float | None, when: str | None = None, at: float | None = None
) -> str:
    """Return which tier of models a trader was asked of, and by which rule where that is known."""
    known = conviction if conviction is not None and 0.0 <= conviction <= 1.0 else None
    # With as many decimals as it takes to see on which side of the border it lies.
    sure = UNKNOWN if known is None else f"conviction {_plain(known, at or 0.0)}"
    border = "" if at is None else _plain(at, at)
    if tier == "chief":
        why = {
            "conviction": sure if at is None else f"{sure}, from {border} on",
            "pivotal": "the agents alone decided the verdict",
        }.get(when or "", "")
        return f"escalated to the chief tier{f': {why}' if why else ''}"
    if when == "conviction" and at is not None and known is not None:
        return f"not escalated: {sure}, below {border}"
    return ""


def _plain(value: float, other: float) -> str:
    return number(value, (other,)).removeprefix("+")
