"""What stands first on a tick's page: for, against, without agents, and six facts in a line.

The points are those of an approval (torra.dashboard.trade.why), so both pages say the same. Pure
functions over a record; text of models passes through `figures.clean`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from torra.config import SymbolSpec
from torra.dashboard.record.agreement import PanelShown
from torra.dashboard.record.citations import EQUAL, JUDGED, CitedRow
from torra.dashboard.record.shown import ShownTick
from torra.exhibits import figures
from torra.exhibits.figures import DASH
from torra.tick.tick_record import ProposedOrder, SignalRecord
from torra.verdict.order_levels import Levels
from torra.verdict.position_size import worth

TRUE: Final = JUDGED[EQUAL][0]
"""Glyph of a citation that is as the evidence has it."""

VERBS: Final = {"BUY": "buying", "SELL": "selling"}


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact of a tick: its name, its figure, and what must be said besides."""

    name: str
    value: str
    more: str = ""


def side_of(record: ShownTick) -> str:
    """Return the side that a tick is about: its verdict's, or the one that it came nearer to."""
    if record.verdict in VERBS:
        return str(record.verdict)
    return "SELL" if (record.consensus or 0.0) < 0 else "BUY"


def facts(
    record: ShownTick,
    panel: PanelShown | None,
    cited: Sequence[CitedRow],
    falsifiers: Sequence[str],
    spec: SymbolSpec | None,
    currency: str,
    proposed: Levels | None = None,
) -> list[Fact]:
    """Return how sure, which size, what at risk, on what evidence, at what cost, and what refutes.

    `spec` are the symbol's terms, None where the desk does not know them any more; `proposed` the
    levels of an order that waits or waited for a person.
    """
    sides = panel.get("sides", []) if panel else []
    right = sum(all(one["glyph"] == TRUE for one in row["by"]) for row in cited)
    calls = len(record.made_calls)
    elapsed = record.elapsed_ms
    return [
        Fact("Sure of it", sides[0]["kept"], f"of {sides[0]['raw']} before what speaks against it")
        if sides
        else Fact("Sure of it", DASH, "no agent took a side"),
        _size(record, f"× {sides[0]['size']} of what risk allows" if sides else ""),
        _risk(record, spec, currency, proposed),
        Fact("Evidence", f"{len(cited)} cited", f"{right} true" if cited else "")
        if cited
        else Fact("Evidence", "Nothing cited"),
        Fact(
            "Cost",
            figures.money(record.cost_usd),
            f"{calls} calls, {figures.plain(elapsed / 1000, 1)} s"
            if elapsed is not None
            else f"{calls} calls",
        ),
        Fact("Proved wrong by", falsifiers[0] if falsifiers else DASH),
    ]


def _size(record: ShownTick, more: str) -> Fact:
    orders: list[SignalRecord | ProposedOrder] = [*record.written, *record.proposed]
    opening = next((one for one in orders if one.kind == "open"), None)
    if opening is None:
        return Fact("Size", "A close" if orders else "No order")
    return Fact("Size", f"{figures.plain(opening.lots, 2)} lots", more)


def _risk(
    record: ShownTick, spec: SymbolSpec | None, currency: str, proposed: Levels | None
) -> Fact:
    orders: list[SignalRecord | ProposedOrder] = [*record.written, *record.proposed]
    opening = next((one for one in orders if one.kind == "open"), None)
    at = opening if isinstance(opening, SignalRecord) else proposed
    if opening is None or opening.lots is None:
        return Fact("At risk", "Nothing")
    if at is None or at.entry is None or at.stop is None:
        return Fact("At risk", DASH, "where its stop lay is not known")
    distance = abs(at.entry - at.stop)
    digits = 5 if record.digits is None else record.digits
    away = f"stop {figures.plain(distance, digits)} away"
    if spec is None:
        return Fact("At risk", away)
    money = figures.plain(worth(distance, opening.lots, spec), 2)
    return Fact("At risk", f"{money} {currency}".rstrip(), away)


def without(record: ShownTick, told: Mapping[str, str] | None) -> tuple[str, str]:
    """Return what would have happened without agents, in a word and in a sentence.

    `told` is what torra.replay.changed says of a tick that agents changed: did, came and done; None
    where they changed nothing of it, or nobody can tell.
    """
    alone, verdict = figures.mark(record.l1_verdict).word, figures.mark(record.verdict).word
    l1 = figures.signed(record.l1_consensus)
    if record.l1_verdict is None:
        return "Not known", "What L1 alone said is not recorded."
    if told:
        return told["did"], f"L1 alone stood at {l1}. {told['came']} With agents: {told['done']}"
    if record.l1_verdict == record.verdict:
        return "The same", f"L1 alone stood at {l1}, which is {alone} too."
    return alone.capitalize(), f"L1 alone stood at {l1}; with agents the verdict is {verdict}."
